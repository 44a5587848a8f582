"""Asking a server: questions a second and memory, against one on this machine that answers at once.

    python -m bench.targets [--questions 10000] [--threads 16]

The server is a process of its own. `asked`: replies taken as they come and dropped. `run`: a whole evaluation, from the
probe to the report. Memory is what this process holds beyond its start, after a tenth of the questions and at the end.
CPU is this process's own, which a busy machine does not change much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from bench._table import print_table
from evaluation.datasets import Dataset, Selection, load_datasets
from evaluation.evaluate import evaluate
from evaluation.settings import parse_settings
from evaluation.targets import TargetOptions, open_target
from schemas.command import guarded

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
    """Write so many questions on a few contracts."""
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
    return folder


def held() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def ask_only(dataset: Dataset, url: str, threads: int) -> list[str]:
    """Return the rate and the memory of asking alone."""
    target = open_target("http", TargetOptions(threads=threads), {"url": url})
    target.probe(dataset, dataset.cases)
    start, early, failed = held(), 0.0, 0
    began, cpu = time.perf_counter(), time.process_time()
    for number, (_, reply) in enumerate(target.ask(dataset, dataset.cases)):
        failed += bool(reply.error)
        if number == len(dataset.cases) // 10:
            early = held() - start
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return _row("asked", len(dataset.cases), seconds, cpu, failed, f"{early:.1f}", f"{held() - start:.1f}")


def whole_run(bundle: Path, url: str, threads: int, questions: int) -> list[str]:
    """Return the rate and the memory of a whole evaluation."""
    told = {"dataset_paths": [str(bundle)], "target_url": url, "threads": threads, "report_cases": 0}
    start = held()
    began, cpu = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as out:
        run = evaluate(parse_settings({**told, "output_dir": out, "run_name": "bench"}))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return _row("run", questions, seconds, cpu, run.failures.failed, "–", f"{held() - start:.1f}")


def _row(name: str, questions: int, seconds: float, cpu: float, failed: int, early: str, late: str) -> list[str]:
    rate, each = f"{questions / seconds:.0f}", f"{1000 * cpu / questions:.2f}"
    return [name, str(questions), f"{seconds:.1f}", rate, each, str(failed), early, late]


@guarded()
def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=16)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}/ask"
    try:
        with tempfile.TemporaryDirectory() as folder:
            bundle = write_bundle(Path(folder) / "leases", options.questions)
            [dataset], _ = load_datasets([bundle], Selection())
            rows = [ask_only(dataset, url, options.threads)]
            rows.append(whole_run(bundle, url, options.threads, options.questions))
    finally:
        server.terminate()
    print_table(
        "a server that answers at once",
        ["", "questions", "seconds", "a second", "CPU ms each", "failed", "MB at a tenth", "MB at the end"],
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
