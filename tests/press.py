"""One printing process and one browser for all conversions of a test session, instead of new ones for each."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from exhibit.converters import RawDocument
from exhibit.converters.printing.press import PdfPrinter, Printed
from exhibit.engine import Limits


class SharedPress(PdfPrinter):
    """Prints as its parent does, with the browser that printed before, where that knows all it has to know.

    Limits, other programs or another working folder are known only to a process that is started with them.
    """

    _shared: ClassVar[PdfPrinter | None] = None
    _started: ClassVar[object] = None
    _until_the_end: ClassVar[ExitStack] = ExitStack()
    _in_spite: ClassVar[bool] = False
    """True: what is set otherwise is not for the process that prints."""

    @classmethod
    def begin(cls) -> None:
        """Say where the tests begin: what is printed from there is printed together."""
        cls._started = _surroundings()

    def print(self, raw: RawDocument, corpus: Path) -> Printed:
        cls = SharedPress
        if self._limits != Limits() or (_surroundings() != cls._started and not cls._in_spite):
            return super().print(raw, corpus)
        if cls._shared is None:
            cls._shared = cls._until_the_end.enter_context(PdfPrinter())
        return cls._shared.print(raw, corpus)

    @classmethod
    def end(cls) -> None:
        """End the process and its browser."""
        if _surroundings() == cls._started:
            cls._until_the_end.close()
            cls._shared = None


def _surroundings() -> object:
    """Return what a printing process takes over when it starts; one that was forked from a test has none yet."""
    return os.getpid(), Path.cwd(), [os.environ.get(name) for name in ("PATH", "HOME", "EXHIBIT_BROWSER")]
