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
    """A printer that reuses the browser of earlier conversions whenever it can.

    With limits, other programs or another working folder it starts a new process, because a process gets these
    only at its start.
    """

    _shared: ClassVar[PdfPrinter | None] = None
    _started: ClassVar[object] = None
    _until_the_end: ClassVar[ExitStack] = ExitStack()
    _in_spite: ClassVar[bool] = False
    """True: what is set otherwise is not for the process that prints."""

    @classmethod
    def begin(cls) -> None:
        """Record the settings of this process; documents that are printed with the same settings share one browser."""
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
        """End the shared printing process and its browser, unless the settings have changed."""
        if _surroundings() == cls._started:
            cls._until_the_end.close()
            cls._shared = None


def _surroundings() -> object:
    """Return the process id, the working folder and the variables that a printing process inherits."""
    return os.getpid(), Path.cwd(), [os.environ.get(name) for name in ("PATH", "HOME", "EXHIBIT_BROWSER")]
