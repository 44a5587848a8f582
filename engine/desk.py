"""One worker that keeps what it has opened (a browser) from item to item; an item that passes its limits costs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from exhibit.engine._crew import Crew
from exhibit.engine._spawn import belongs_to_script
from exhibit.engine._worker import Work, dump
from exhibit.engine.limits import Limits

In = TypeVar("In")
Out = TypeVar("Out")


class Desk(Generic[In, Out]):
    """Takes one item at a time, in a process of its own that lasts as long as the desk."""

    def __init__(self, function: Callable[[In], Out], *, limits: Limits) -> None:
        """Take the function; its process begins with the first item."""
        work = dump(Work.of(dump(function), limits))
        self._crew = Crew(work, limits, size=1, script=belongs_to_script(function), keep=False)

    def hand(self, item: In) -> Out:
        """Return what the function gives for an item; raise LimitError where it passes its limits."""
        result: Out = self._crew.submit(item).result().unwrap()
        return result

    def close(self) -> None:
        """End the process, and the programs that it started."""
        self._crew.close()
