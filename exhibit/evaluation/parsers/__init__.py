"""PDF parsers to compare: one file per library, selected with `exhibit ceiling --parser`.

Each has `read(path)`, which returns the text of each page, in order, as the library extracts it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from exhibit.schemas.errors import DocumentError, ToolkitError


@dataclass(frozen=True)
class TimedReader:
    """A parser with a timer, called in a worker process."""

    read: Callable[[Path], list[str]]

    def __call__(self, path: Path) -> tuple[list[str], float]:
        """Return the texts of the pages and the seconds taken; raise a `DocumentError` if the library fails."""
        started = time.perf_counter()
        try:
            pages = self.read(path)
        except (ToolkitError, MemoryError):
            raise
        except Exception as error:
            raise DocumentError(f"{path.name}: the parser failed ({type(error).__name__}: {error})") from error
        return pages, time.perf_counter() - started
