"""PDF parsers to compare: one file per library, named by `exhibit ceiling --parser`.

Each has `read(path)`, which returns the texts of the pages as the library gives them, in order.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exhibit.schemas.errors import DocumentError, ToolkitError


@dataclass(frozen=True)
class TimedReader:
    """A parser that says how long it took; called in a worker."""

    read: Callable[[Path], list[str]]

    def __call__(self, path: Path) -> tuple[list[str], float]:
        """Return the pages and the seconds; whatever the library raises over a file is that file's fault."""
        started = time.perf_counter()
        try:
            pages = self.read(path)
        except (ToolkitError, MemoryError):
            raise
        except Exception as error:
            raise DocumentError(f"{path.name}: the parser failed ({type(error).__name__}: {error})") from error
        return pages, time.perf_counter() - started
