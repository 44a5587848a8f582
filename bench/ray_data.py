"""Compares plain Ray tasks, which `--engine ray` uses, with Ray Data: the processor time for the same work.

    python -m bench.ray_data                        both convert the sample of CUAD; then a worker is killed
    python -m bench.ray_data --patience 60          wait at most 60 s for the killed worker's items

Each measurement runs in a separate process, with a cluster of two workers. It needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from bench._table import ROOT, print_table
from bench.scale.process import run_apart
from exhibit.converters import cuad
from exhibit.converters.steps.cli import main as convert_main
from exhibit.engine.limits import Limits
from exhibit.engine.outcome import Outcome, name_item
from exhibit.runtime.command import guarded

_ITEMS, _KILLER = 9, 7
_WAYS = ("plain tasks", "Ray Data")
_TICKS = os.sysconf("SC_CLK_TCK")


def kill_worker(number: int) -> int:
    """Return the square of a number; for one number, kill the Ray worker, as the system does when memory runs out."""
    if number == _KILLER:
        os.kill(os.getppid(), signal.SIGKILL)
    return number * number


def map_data(self: Any, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome[Any]]:
    """Apply a function to all items with Ray Data; yield the outcomes in order.

    The benchmark replaces the method `Runner.map` by this function.
    """
    import ray.data
    from ray import cloudpickle

    from exhibit.engine.runners import ray as runner

    runner.connect(self.address, self.jobs)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    work = (cloudpickle.dumps(function), self._limits, str(Path.cwd()))
    rows = [{"item": cloudpickle.dumps(item), "name": name_item(item)} for item in items]
    data = ray.data.from_items(rows, override_num_blocks=len(rows))
    for row in data.map(lambda row: {"told": runner._apply(work, row["item"], row["name"])}, num_cpus=1).iter_rows():
        yield cloudpickle.loads(row["told"])


def prepare(way: str) -> Any:
    """Start a local Ray cluster with two workers; return the class that runs work on it.

    If `way` is `Ray Data`, the class uses Ray Data; otherwise it uses plain Ray tasks.
    """
    from exhibit.engine.runners import ray as runner

    if way == _WAYS[1]:
        runner.Runner.map = map_data  # type: ignore[method-assign]
    runner.connect("local", 2)
    return runner.Runner


def convert(way: str, out: Path) -> tuple[float, float, str]:
    """Convert the sample of CUAD on a Ray cluster, with `way` either `plain tasks` or `Ray Data`.

    Return the processor seconds, the wall-clock seconds, and a digest of the bundle.
    """
    os.chdir(ROOT)
    prepare(way)
    started, before = time.perf_counter(), measure_processor_seconds(os.getpid())
    flags = ["--source", "samples/cuad", "--out", str(out), "--engine", "ray", "--jobs", "2"]
    if convert_main(cuad, flags):
        raise SystemExit(1)
    took = measure_processor_seconds(os.getpid()) - before, time.perf_counter() - started
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return *took, sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def survive(way: str, patience: float) -> str:
    """Apply a function to several items, one of which always kills its Ray worker; return a line of results.

    The line says how many items succeeded, or that the work was not finished within `patience` seconds. `way`
    is `plain tasks` or `Ray Data`.
    """
    runner = prepare(way)
    told: list[str | BaseException] = []

    def work() -> None:
        try:
            outcomes = list(runner(jobs=2, limits=Limits(seconds=60)).map(kill_worker, range(_ITEMS)))
            lost = sum(outcome.error is not None for outcome in outcomes)
            told.append(f"{_ITEMS - lost} done, {lost} set aside")
        except BaseException as error:
            told.append(error)
            raise

    started = time.perf_counter()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(patience)
    if told and isinstance(told[0], BaseException):
        raise told[0]
    return f"{told[0]}, {time.perf_counter() - started:.0f} s" if told else f"not done after {patience:g} s"


def measure_processor_seconds(root: int) -> float:
    """Return the processor seconds of a process and all its descendants, including those that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # the process has just ended
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = sum(map(int, fields[11:15])) / _TICKS
    family, children = {root}, {root}
    while children:
        children = {pid for pid, parent in parents.items() if parent in children}
        family |= children
    return sum(used.get(pid, 0.0) for pid in family)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Convert the CUAD sample with Ray tasks and with Ray Data, and print the times of both.

    Also print how each of them handles an item that kills its worker.
    """
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.ray_data",
        description=what,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--patience", type=float, default=120, metavar="S", help="seconds (default: 120)")
    options = parser.parse_args(arguments)
    rows = []
    for way in _WAYS:
        with tempfile.TemporaryDirectory() as folder:
            used, clock, digest = run_apart(convert, way, Path(folder) / "bundle").value
        killed = run_apart(survive, way, options.patience).value
        rows.append([way, f"{used:.1f}", f"{clock:.1f}", digest, killed])
    print_table("Ray", ["by", "processor s", "clock s", "bundle", "an item that kills its worker"], rows)
    return 0


if __name__ == "__main__":
    # passed by name: Ray's workers cannot import a function of a script
    sys.exit(import_module("bench.ray_data").main())
