"""Code that all benches share: their data, timing, tables on the terminal and pages in bench/results."""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from exhibit.__main__ import main as run_command
from exhibit.schemas.errors import SourceError, ToolkitError

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results"
Result = TypeVar("Result")


class Table(NamedTuple):
    """A titled table; its cells are text or numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]


def publish(page: Path | None, title: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
    """Print the tables, and write them as a Markdown page if `page` is given."""
    for table in tables:
        cells = [[str(cell) for cell in row] for row in [table.head, *table.rows]]
        widths = [max(len(row[column]) for row in cells) for column in range(len(table.head))]
        print(f"\n{table.title}")
        for row in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join(_write_page(title, tables, notes)) + "\n", encoding="utf-8", newline="\n")
        print(f"\n{page}", file=sys.stderr)


def _write_page(title: str, tables: Sequence[Table], notes: Sequence[str]) -> Iterator[str]:
    command = " ".join(["python -m", *(Path(word).name if "/" in word else word for word in _list_command())])
    yield f"# {title}\n"
    yield f"`{command}`, {date.today():%-d %B %Y}, {os.cpu_count()} cores ({platform.machine()}).\n"
    for table in tables:
        yield f"## {table.title}\n"
        yield f"| {' | '.join(table.head)} |"
        yield "|---" * len(table.head) + "|"
        yield from (f"| {' | '.join(map(str, row))} |" for row in table.rows)
        yield ""
    yield from notes


def _list_command() -> list[str]:
    specification = getattr(sys.modules["__main__"], "__spec__", None)
    return [specification.name if specification else "bench", *sys.argv[1:]]


def find_data(name: str, given: Path | None = None) -> Path:
    """Return the folder of a benchmark's real data or, with a note on stderr, of the project's sample of it."""
    if given is not None:
        return given
    for folder in (os.environ.get("EXHIBIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and (Path(folder) / name).is_dir():
            return Path(folder) / name
    sample = ROOT / "samples" / name
    if not sample.is_dir():
        raise SourceError(f"{name}: no data; set EXHIBIT_DATA to a folder that contains {name}/")
    print(f"{name}: no real data (set EXHIBIT_DATA); the sample is too small to mean much", file=sys.stderr)
    return sample


def exhibit(*words: object) -> None:
    """Run a command of the product in this process; raise an error if it fails."""
    if code := run_command([str(word) for word in words]):
        raise ToolkitError(f"exhibit {' '.join(map(str, words))}: exit status {code}")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def time_work(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a function, and the seconds that it took."""
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


@contextmanager
def watch_memory(process: int) -> Iterator[Callable[[], int]]:
    """Sample the memory of a process and its children; yield a function that returns the peak in bytes."""
    peak, stopped = [0], threading.Event()

    def sample() -> None:
        while not stopped.wait(0.2):
            peak[0] = max(peak[0], measure_tree_memory(process))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield lambda: peak[0]
    finally:
        stopped.set()
        thread.join()


def measure_tree_memory(root: int) -> int:
    """Return the bytes that a process and its descendants hold; shared pages count once (Linux: PSS)."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    tree = {root}
    for _ in range(6):
        tree |= {child for child, parent in parents.items() if parent in tree}
    total = 0
    for process in tree:
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
            total += int(rollup.partition("Pss:")[2].split()[0]) * 1024
        except (OSError, IndexError, ValueError):
            continue
    return total
