"""One printing process and one browser for all conversions of a test session, instead of new ones for each."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from converters._benchmark import RawDocument
from converters._press import Press, _Printed
from engine import Limits


class SharedPress(Press):
    """Prints as its parent does, with the browser that printed before, where that knows all it has to know.

    Limits, a browser of the test's own choice and another working folder are known to a process of its own alone.
    """

    _shared: ClassVar[Press | None] = None
    _home: ClassVar[Path] = Path()
    _until_the_end: ClassVar[ExitStack] = ExitStack()
    _owner: ClassVar[int] = 0

    def _print(self, documents: tuple[RawDocument, ...], corpus: Path) -> _Printed:
        cls = SharedPress
        if cls._shared is None:
            cls._owner, cls._home = os.getpid(), Path.cwd()
            cls._shared = cls._until_the_end.enter_context(Press())
        elsewhere = (os.getpid(), Path.cwd()) != (cls._owner, cls._home)  # a process that was forked has none
        if elsewhere or self._limits != Limits() or "EXHIBIT_BROWSER" in os.environ:
            return super()._print(documents, corpus)
        printed = cls._shared._print(documents, corpus)
        self.browsers.add(printed.browser)
        return printed

    @classmethod
    def end(cls) -> None:
        """End the process and its browser."""
        if cls._owner == os.getpid():
            cls._until_the_end.close()
            cls._shared = None
