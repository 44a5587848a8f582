"""Playwright, which drives the browser and is an extra: only printing needs it, and says how to get it.

It is imported by whoever prints, at the first print: most commands and most of their workers never do.
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from exhibit.schemas.errors import ServiceError

NEEDED = (
    "HTML, office files and mails, and texts in Chinese, Japanese or Korean are printed by Playwright, "
    "which is not installed: "
    "pip install 'exhibit-rag[print]', then python -m converters._browser"
)
HERE = importlib.util.find_spec("playwright") is not None

if TYPE_CHECKING:
    from playwright.async_api import Playwright as AsyncPlaywright
    from playwright.sync_api import Error as PlaywrightError
    from playwright.sync_api import Playwright
    from playwright.sync_api import TimeoutError as PlaywrightTimeout
else:

    class _NeverError(Exception):
        """Never raised: without Playwright there is no browser that could fail."""

    def __getattr__(name: str) -> Any:
        """Return what this module lends of Playwright; it is asked for as `_playwright.PlaywrightError`."""
        if name not in _LENT:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module("playwright.sync_api"), _LENT[name]) if HERE else _NeverError

    _LENT = {"PlaywrightError": "Error", "PlaywrightTimeout": "TimeoutError"}


@contextmanager
def driver() -> Iterator[Playwright]:
    """Yield Playwright's driver; one that does not start is an error of one line."""
    if not HERE:
        raise ServiceError(NEEDED)
    from playwright.sync_api import sync_playwright

    try:
        running = sync_playwright().start()
    except Exception as error:  # it raises whatever its pipe to the driver meets, and plain Exception
        raise _no_driver(error) from error
    try:
        yield running
    finally:
        running.stop()


@asynccontextmanager
async def async_driver() -> AsyncIterator[AsyncPlaywright]:
    """Yield Playwright's driver for tasks of one thread."""
    if not HERE:
        raise ServiceError(NEEDED)
    from playwright.async_api import async_playwright

    try:
        running = await async_playwright().start()
    except Exception as error:  # as above
        raise _no_driver(error) from error
    try:
        yield running
    finally:
        await running.stop()


def _no_driver(error: Exception) -> ServiceError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return ServiceError(
        f"Playwright's driver does not start: {reason}; it needs memory and open files: see ulimit -v and ulimit -n"
    )


__all__ = ["HERE", "NEEDED", "PlaywrightError", "PlaywrightTimeout", "async_driver", "driver"]
