"""Measures asking a server: questions per second and memory, with a server on this machine that answers at once.

    python -m bench.targets [--questions 1000 10000 50000] [--threads 16] [--measure asked run]

The server and each measurement run in separate processes. `asked`: replies are received and discarded. `run`: an
evaluation from the probe to its last file except the report; `report`: the report of that run. MB is the peak memory of
the process, and of its workers together. CPU is processor time of all of them, which depends little on other programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from bench._table import print_table
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.viewer import write_report

CLAUSE = "The term of this Agreement is five years from the Effective Date, unless either party ends it before."
PASSAGES = 5


def serve(ready: Connection) -> None:
    """Answer every question at once, and send the port through the pipe."""
    passages = [{"filename": f"{number}.txt", "text": CLAUSE} for number in range(PASSAGES)]
    body = json.dumps({"answer": "Five years [1].", "passages": passages}).encode("ascii")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    reply = head.encode("ascii") + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = asked.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
                await reader.readexactly(int(length))
                writer.write(reply)
                await writer.drain()

    async def start() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(start())


def write_bundle(folder: Path, questions: int) -> Path:
    """Write a bundle of so many questions about a few contracts."""
    (folder / "corpus").mkdir(parents=True)
    for number in range(20):
        (folder / "corpus" / f"{number}.txt").write_text(f"LEASE {number}\n\n{CLAUSE}\n", encoding="utf-8")
    rows = [
        {
            "id": id,
            "question": f"What is the term of lease {id % 20}, asked for the {id}th time?",
            "answer": "Five years",
            "is_impossible": False,
            "contexts": [{"filename": f"{id % 20}.txt", "text": CLAUSE}],
        }
        for id in range(questions)
    ]
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    with (folder / "gold.jsonl").open("w", encoding="utf-8") as gold:
        for id in range(questions):
            start = len(f"LEASE {id % 20}\n\n")
            line = {"id": id, "context": 0, "filename": f"{id % 20}.txt", "spans": [[start, start + len(CLAUSE)]]}
            told = {"pages": [], "alternatives": [], "how": "exact", "score": 1.0, "labels": {"lease": id % 20}}
            gold.write(json.dumps(line | told) + "\n")
    return folder


class Cost(NamedTuple):
    """The cost of a measurement: of this process and of its workers."""

    seconds: float
    cpu: float
    held: float
    workers: float

    @staticmethod
    def until_now(began: float) -> Cost:
        """Return the cost of this process so far."""
        workers = [process.pid for process in multiprocessing.active_children() if process.pid]
        own, theirs = os.times(), sum(map(_cpu, workers))
        return Cost(
            time.perf_counter() - began, own.user + own.system + theirs, _most(os.getpid()), sum(map(_most, workers))
        )


def _most(process: int) -> float:
    """Return the peak memory of a process, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1000


def _cpu(process: int) -> float:
    """Return the processor seconds of a process."""
    told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def ask_only(bundle: Path, url: str, threads: int) -> list[list[str]]:
    """Return the cost of asking alone."""
    [dataset], _ = load_datasets([bundle], Selection())
    target = open_target("http", TargetOptions(threads=threads), {"url": url})
    target.probe(dataset, dataset.cases)
    before = Cost.until_now(began := time.perf_counter())
    failed = sum(bool(reply.error) for _, reply in target.ask(dataset, dataset.cases))
    return [_row("asked", len(dataset.cases), failed, before, Cost.until_now(began))]


def whole_run(bundle: Path, url: str, threads: int) -> list[list[str]]:
    """Return the cost of an evaluation, and of its report."""
    told = {"dataset_paths": [str(bundle)], "target_url": url, "threads": threads, "report_cases": 0}
    before = Cost.until_now(began := time.perf_counter())
    marks: list[Cost] = []

    def report(folder: Path, **given: Any) -> Path:
        marks.append(Cost.until_now(began))
        return write_report(folder, **given)

    with tempfile.TemporaryDirectory() as out, patch("exhibit.evaluation.evaluate.write_report", report):
        run = evaluate(parse_settings({**told, "output_dir": out, "run_name": "bench"}))
    failures = run.failures
    rows = [_row("run", failures.asked, failures.failed, before, marks[0])]
    return [*rows, _row("report", failures.asked, failures.failed, marks[0], Cost.until_now(began))]


def _row(name: str, questions: int, failed: int, before: Cost, after: Cost) -> list[str]:
    seconds, cpu = after.seconds - before.seconds, after.cpu - before.cpu
    rate, each = f"{questions / seconds:.0f}", f"{1000 * cpu / questions:.2f}"
    held = [f"{before.held:.0f}", f"{after.held:.0f}", f"{after.workers:.0f}" if after.workers else "–"]
    return [name, str(questions), f"{seconds:.1f}", rate, each, str(failed), *held]


MEASUREMENTS = {"asked": ask_only, "run": whole_run}


def measure(name: str, bundle: Path, url: str, threads: int, out: Connection) -> None:
    """Send a measurement's rows."""
    out.send(MEASUREMENTS[name](bundle, url, threads))


def in_process(name: str, bundle: Path, url: str, threads: int) -> list[list[str]]:
    """Return the rows of a measurement in a new process, so that only its memory is counted."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=measure, args=(name, bundle, url, threads, theirs))
    process.start()
    theirs.close()
    try:
        rows: list[list[str]] = ours.recv()
    except EOFError:
        raise ToolkitError(f"{name}: the measurement ended without a result; its error is above") from None
    finally:
        process.join()
    return rows


@guarded()
def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--measure", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}/ask"
    try:
        rows = []
        for questions in options.questions:
            with tempfile.TemporaryDirectory() as folder:
                bundle = write_bundle(Path(folder) / "leases", questions)
                rows += [row for name in options.measure for row in in_process(name, bundle, url, options.threads)]
    finally:
        server.terminate()
    print_table(
        "a server that answers at once",
        ["", "questions", "seconds", "a second", "CPU ms each", "failed", "MB before", "MB most", "workers' MB"],
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
