"""Progress on stderr: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

from exhibit.schemas.command import is_quiet

Item = TypeVar("Item")

_EVERY = 5.0
"""Seconds between two lines in a log."""


def track(
    items: Iterable[Item], *, total: int | None, label: str, unit: str = "doc", stream: TextIO | None = None
) -> Iterator[Item]:
    """Yield the items and show how far they are; nothing is printed for work that takes under two seconds."""
    if is_quiet():
        yield from items
        return
    out = stream or sys.stderr
    if out.isatty():
        from tqdm import tqdm  # a fifth of what a worker imports, and it shows no bar

        yield from tqdm(items, total=total, desc=label, unit=unit, file=out, delay=2.0, leave=False)
        return
    started = last = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - last >= _EVERY:
            last = now
            done = f"{count}/{total}" if total else f"{count}"
            rate = count / (now - started)
            left = f", {_duration((total - count) / rate)} left" if total and total > count else ""
            print(f"{label}: {done} {unit}s, {rate:.1f}/s{left}", file=out, flush=True)


def _duration(seconds: float) -> str:
    """Return a time as people say it: 40 s, 12 min, 3 h 20 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
