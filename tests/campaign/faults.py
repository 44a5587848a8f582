"""Kills, full disks, races and bad servers: `make faults`, or `python -m tests.campaign.faults`.

Each trial runs the commands as a user does, injects a fault, and checks what is left: no incomplete output,
nothing lost, nothing duplicated, no traceback, and the same result as without the fault.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine.limits import list_programs
from exhibit.rag.config import DEFAULT, Config
from tests.campaign.elsewhere import (
    can_limit_memory,
    has_network_namespaces,
    heard,
    little_memory,
    recording_server,
    spoil,
    write_pages,
)
from tests.campaign.table import Result, added, as_markdown, write_table
from tests.hostile.bombs import packed_zeros
from tests.hostile.files import FILES
from tests.rag.bundles import contract, rows_of, write_bundle

ROOT = Path(__file__).parent.parent.parent
_PATIENCE = 1200.0
"""Seconds that any command may take on a busy machine: beyond it, it hangs."""
_SMALL = ("--embedder", "hashing", "--jobs", "2")


BOMB = packed_zeros(2, 200)
"""Some hundred bytes that unpack to 200 MB."""


class Loss(Exception):  # noqa: N818 - what a trial ends with, not an error of the program
    """A failed trial, with the reason."""


def command(*arguments: str | Path) -> list[str]:
    """Return a command line that runs the current Python with these arguments."""
    return [sys.executable, *map(str, arguments)]


def run(line: list[str], folder: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command and wait for it; raise `Loss` if it hangs or prints a traceback."""
    environment = {**os.environ, "EXHIBIT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=_PATIENCE, errors="replace", **more
        )
    except subprocess.TimeoutExpired as error:
        raise Loss(f"hangs: {' '.join(line[1:4])}") from error
    if "Traceback" in done.stderr:
        raise Loss(f"traceback: {done.stderr.strip().splitlines()[-1][:200]}")
    return done


def expect(condition: bool, words: str) -> None:
    """Raise `Loss` with these words unless the condition holds."""
    if not condition:
        raise Loss(words)


# ---------------------------------------------------------------- commands with a known result


def convert(folder: Path) -> list[str]:
    """Return the command line that converts a sample."""
    source = ROOT / "samples" / "legalbenchrag"
    return command("-m", "converters.legalbenchrag", "--source", source, "--out", folder / "bundle", "--jobs", "2")


def index(folder: Path, out: str = "index") -> list[str]:
    """Return the command line that indexes a small corpus, which is written first if it does not exist."""
    if not (folder / "supply").exists():
        write_bundle(folder / "supply")
    return command("-m", "rag", "index", folder / "supply" / "corpus", "--out", folder / out, *_SMALL)


def evaluate(folder: Path, *flags: str, name: str = "r") -> list[str]:
    """Return the command line that evaluates a small bundle, which is written first if it does not exist."""
    if not (folder / "supply").exists():
        write_bundle(folder / "supply")
    results = ["--output-dir", folder / "results", "--run-name", name, "--report-cases", "0"]
    return command("evaluate_rag.py", "--dataset-paths", folder / "supply", *results, *_SMALL, *flags)


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by relative path."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def asked_once(folder: Path, questions: int, name: str = "r") -> list[dict[str, Any]]:
    """Return the result rows of a run; raise `Loss` unless each question occurs exactly once."""
    rows = rows_of(folder / "results" / name / "supply" / "eval_results.jsonl")
    expect(sorted(row["id"] for row in rows) == list(range(questions)), "questions lost or twice")
    return rows


# ---------------------------------------------------------------- trials


def killed(chance: random.Random, folder: Path) -> None:
    """Kill a command at a random moment, and run it again."""
    make, out, again = chance.choice(
        [(convert, "bundle", ()), (index, "index", ()), (evaluate, "results/r", ("--resume",))]
    )
    line = make(folder)
    environment = {**os.environ, "EXHIBIT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        line, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(chance.uniform(0.05, 8.0))
        process.send_signal(signal.SIGKILL)
    finished = process.returncode == 0
    if make is evaluate:
        started = (folder / "results" / "r" / "config.json").exists()
        done = (
            run([*line, *(again if started else ())], folder) if started or not (folder / "results").exists() else None
        )
        if done is None:  # killed between the folder and its first file
            shutil.rmtree(folder / "results")
            done = run(line, folder)
        expect(done.returncode == 0, f"does not resume: {done.stderr[-200:]}")
        asked_once(folder, 9)
        return
    expect(finished or not (folder / out).exists() or _whole(folder / out), "half of it is in place")
    if not (folder / out).exists():
        done = run(line, folder)
        expect(done.returncode == 0, f"does not run again: {done.stderr[-200:]}")
    expect(_whole(folder / out), "not whole")
    expect(not list(folder.glob("*.partial")), "leaves a partial folder")


def _whole(folder: Path) -> bool:
    return (folder / "bundle.json").is_file() or (folder / "manifest.json").is_file()


def full_disk(chance: random.Random, folder: Path) -> None:
    """Run a command that cannot write files beyond a few kilobytes: it fails cleanly and leaves no partial output."""
    make, out = chance.choice([(convert, "bundle"), (index, "index"), (evaluate, "results/r/summary.json")])
    size = chance.choice([0, 500, 2_000, 5_000, 20_000])

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    done = run(make(folder), folder, preexec_fn=limit)
    expect(done.returncode in (0, 1), f"exit {done.returncode}: {done.stderr[-200:]}")
    expect(done.returncode == 0 or "error: " in done.stderr, "no word of it")
    expect(done.returncode == 0 or not (folder / out).exists(), "half of it is in place")


def racing(chance: random.Random, folder: Path) -> None:
    """Run the same command twice at once."""
    evaluating = chance.random() < 0.7
    lines = [evaluate(folder, name=f"r{n}") if evaluating else index(folder) for n in range(2)]
    done: list[Any] = [None, None]

    def one(number: int) -> None:
        try:
            done[number] = run(lines[number], folder)
        except Loss as error:
            done[number] = error

    threads = [threading.Thread(target=one, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in done:
        if isinstance(result, Loss):
            raise result
    if evaluating:
        expect(all(result.returncode == 0 for result in done), f"one fails: {[r.stderr[-200:] for r in done]}")
        expect(asked_once(folder, 9, "r0") is not None and asked_once(folder, 9, "r1") is not None, "lost")
    else:
        expect(any(result.returncode == 0 for result in done), "both fail")
        expect(_whole(folder / "index"), "not whole")


def bad_server(chance: random.Random, folder: Path) -> None:
    """Evaluate against a server that spoils a fifth of its replies: errors, slow or invalid JSON, gzip bombs."""
    with failing_server(chance) as url:
        done = run(evaluate(folder, "--target-url", url, "--timeout", "5", "--retries", "1"), folder)
    expect(done.returncode in (0, 3), f"exit {done.returncode}: {done.stderr[-200:]}")
    asked_once(folder, 9)


@contextmanager
def failing_server(chance: random.Random) -> Iterator[str]:
    """Yield the address of a server that behaves badly to a fifth of the requests."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            good = json.dumps({"message": {"content": "Five years [1]."}, "context": {"data_points": {"text": ["x"]}}})
            fault = chance.randrange(8) if chance.random() < 0.2 else None
            bodies = {2: b"[" * 50_000, 3: b"", 4: b"<html>", 5: b'{"message": ' + b"9" * 5000 + b"}", 6: BOMB}
            body = bodies.get(fault or 0, good.encode())
            if fault == 7:
                self._drip_headers()
                return
            self.send_response(500 if fault == 0 else 200)
            if fault == 6:
                self.send_header("Content-Encoding", "gzip, gzip")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # whoever asked has had enough
                if fault == 1:
                    self._drip(body[:8])
                else:
                    self.wfile.write(body)

        def _drip(self, body: bytes) -> None:
            for byte in body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(1)

        def _drip_headers(self) -> None:
            with suppress(OSError):  # whoever asked has had enough
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                for _ in range(100):
                    self.wfile.write(b"X-Slow: yes\r\n")
                    self.wfile.flush()
                    time.sleep(0.2)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/ask"
    finally:
        server.shutdown()
        server.server_close()


EMBEDDERS = (Config.preset(DEFAULT).embedder, "hashing")


def hostile_folder(chance: random.Random, folder: Path) -> None:
    """Evaluate a bundle of fifty good documents together with all the hostile files.

    The run must use less than five minutes of processor time and less than twice the memory of a run without
    the hostile files. It is made with each embedder of `EMBEDDERS` and with the default limits.
    """
    bundle = write_bundle(folder / "supply")
    for number in range(47):
        (bundle / "corpus" / f"good{number}.txt").write_text(contract(f"Elm {number} Ltd", "Wales"), encoding="utf-8")
    flags = ["--output-dir", folder / "results", "--report-cases", "0", "--jobs", "2"]
    line = command("evaluate_rag.py", "--dataset-paths", bundle, *flags, "--embedder")
    usual = {name: measured([*line, name, "--run-name", f"{name}-alone"], folder / "alone") for name in EMBEDDERS}
    for one in FILES:
        (bundle / "corpus" / one.name).write_bytes(one.make())
    for name, alone in usual.items():
        hostile = measured([*line, name, "--run-name", name], folder)  # with a cache of its own
        print(f"  {name}: alone {alone}, among hostile files {hostile}", file=sys.stderr)
        asked_once(folder, 9, name)
        told = json.loads((folder / "results" / name / "supply" / "ingestion.json").read_text(encoding="utf-8"))
        named = {line.partition(": ")[0] for line in told["set_aside"]}
        expect(named == {one.name for one in FILES if not one.read}, f"named: {sorted(named)}")
        # of the processor, so that other work on the machine does not count; alone it is also what a clock shows
        expect(hostile.processor < 300, f"took {hostile}")
        expect(hostile.megabytes < 2 * alone.megabytes, f"took {hostile.megabytes} MB, usually {alone.megabytes}")


class Cost(NamedTuple):
    """The time and memory that a command used."""

    seconds: float
    processor: float
    megabytes: int

    def __str__(self) -> str:
        """Return the cost in words, for a progress line."""
        return f"{self.seconds:.0f} s ({self.processor:.0f} s of the processor) and {self.megabytes} MB"


def measured(line: list[str], folder: Path) -> Cost:
    """Run a command that must succeed; return its time and the peak memory of all its processes together."""
    stop = threading.Event()
    most = [0]

    def look() -> None:
        while not stop.wait(0.2):
            most[0] = max(most[0], sum(map(shared_memory, list_programs(os.getpid()))))

    watch = threading.Thread(target=look)
    watch.start()
    began, before = time.monotonic(), _processor()
    try:
        done = run(line, folder)
    finally:
        stop.set()
        watch.join()
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-300:]}")
    return Cost(time.monotonic() - began, _processor() - before, most[0] >> 20)


def _processor() -> float:
    """Return the processor time of all finished commands, including their worker processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shared_memory(pid: int) -> int:
    """Return the memory of a process in bytes; a shared page counts in proportion (PSS), 0 if the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def printed_unheard(chance: random.Random, folder: Path) -> None:
    """Convert HTML documents in a network namespace where every packet is recorded; no packet may be sent."""
    if not has_network_namespaces():
        raise Loss("not tried: no network namespaces here (unshare, ip)")
    number = write_pages(chance, folder)
    columns = ["--question", "question", "--answer", "answer", "--document", "document", "--jobs", "1"]
    source = ["--source", folder / "rows.jsonl", "--documents", folder / "pages", "--out", folder / "bundle"]
    done, receivers = heard(command("-m", "converters.table", *source, *columns), folder, run)
    expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr[-200:]}")
    expect("192.0.2.1" in receivers, "nobody listened")
    expect(set(receivers) == {"192.0.2.1"}, f"sent to {receivers}")
    expect(len(list((folder / "bundle" / "corpus").iterdir())) == number, "a document is missing")


def index_from_elsewhere(chance: random.Random, folder: Path) -> None:
    """Search a manipulated index: one that names a server, contains a symbolic link, or has a changed byte.

    The command must fail with an error, and nothing may be sent to the server.
    """
    expect(run(index(folder), folder).returncode == 0, "cannot be built")
    with recording_server() as (server, sent):
        spoil(chance, folder / "index", server)
        keys = dict.fromkeys(("RERANK_API_KEY", "OPENAI_API_KEY", "MILVUS_TOKEN"), "planted")
        os.environ.update(keys)
        done = run(command("-m", "rag", "search", folder / "index", "Which law governs?"), folder)
        for name in keys:
            del os.environ[name]
    expect(not sent, f"sent: {sent[:1]}")
    expect(done.returncode == 1 and "error: " in done.stderr, f"exit {done.returncode}: {done.stderr[-200:]}")


def stale(chance: random.Random, folder: Path) -> None:
    """Change a file of a bundle after a partial run and resume: the command must fail or name the changed file."""
    line = evaluate(folder)
    expect(run([*line, "--limit", "3"], folder).returncode == 0, "does not run")
    bundle = folder / "supply"
    path = chance.choice([bundle / "gold.jsonl", bundle / "train.json", *sorted((bundle / "corpus").iterdir())])
    path.write_text(path.read_text(encoding="utf-8").replace("England", "Norway") + " ", encoding="utf-8")
    done = run([*line, "--resume"], folder)
    said = done.stderr + done.stdout
    expect(done.returncode != 0 or path.name in said, f"{path.name} changed without a word: {said[-200:]}")


def out_of_memory(chance: random.Random, folder: Path) -> None:
    """Let the kernel kill an evaluation for lack of memory, then resume it without the memory limit."""
    parent = can_limit_memory()
    if parent is None:
        raise Loss("not tried: no cgroup that this user may make")
    with little_memory(parent) as cell:
        with suppress(Loss):  # what a killed process says is not looked at
            run(evaluate(folder), folder, preexec_fn=cell.enter)
        expect(cell.kills > 0, "the kernel killed nobody")
        until = time.monotonic() + 30
        while cell.alive and time.monotonic() < until:
            time.sleep(0.1)
        expect(not cell.alive, "leaves processes behind")
    started = (folder / "results" / "r" / "config.json").exists()
    done = run([*evaluate(folder), *(["--resume"] if started else [])], folder)
    expect(done.returncode == 0, f"does not go on: {done.stderr[-200:]}")
    asked_once(folder, 9)


TRIALS: dict[str, tuple[Callable[[random.Random, Path], None], int]] = {
    "killed at a random moment, run again": (killed, 12),
    "disk full after a few kilobytes": (full_disk, 10),
    "two runs at once": (racing, 5),
    "server that fails, drips or sends bombs to a fifth of the requests": (bad_server, 5),
    "fifty good documents among all hostile ones": (hostile_folder, 1),
    "HTML printed where every packet is heard": (printed_unheard, 2),
    "index from elsewhere: servers, links, other bytes": (index_from_elsewhere, 6),
    "run resumed on parts that changed": (stale, 4),
    "killed by the kernel for want of memory, run again": (out_of_memory, 2),
}


def main(argv: list[str] | None = None) -> int:
    """Run every kind of trial and print the table of results; return 1 if a trial failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=float, default=1.0, help="how often as many trials as usual (default: 1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=TRIALS, help="one kind of trial")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add to the totals of earlier runs in this file")
    parser.add_argument("--write", action="store_true", help="write the table into bench/results/campaign.md")
    options = parser.parse_args(argv)
    results: list[Result] = []
    began = time.monotonic()
    for what, (trial, usual) in TRIALS.items():
        if options.only not in (None, what):
            continue
        lost = []
        number = max(1, round(usual * options.times))
        for seed in range(options.seed, options.seed + number):
            with tempfile.TemporaryDirectory(prefix="faults-") as folder:
                try:
                    trial(random.Random(f"{what}-{seed}"), Path(folder))
                except Loss as error:
                    lost.append(f"seed {seed}: {error}")
            print(f"{what}: {seed - options.seed + 1}/{number}, lost {len(lost)}", file=sys.stderr, flush=True)
        results.append(Result(what, number, tuple(lost)))
    seconds = time.monotonic() - began
    if options.keep:
        results, seconds = added(options.keep, results, seconds)
    print(as_markdown(results))
    if options.write:
        write_table("faults", as_markdown(results), seconds)
    return 1 if any(result.lost for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
