"""Playwright, which drives the browser and is an extra: only printing needs it, and says how to get it.

It is imported by whoever prints, at the first print: most commands and most of their workers never do.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from exhibit.schemas.errors import ServiceError

NEEDED = (
    "documents that are not PDFs are printed by Playwright, which is not installed: "
    "pip install 'exhibit-rag[print]', then python -m converters._browser"
)
HERE = importlib.util.find_spec("playwright") is not None

if TYPE_CHECKING:
    from playwright.async_api import async_playwright
    from playwright.sync_api import Error as PlaywrightError
    from playwright.sync_api import TimeoutError as PlaywrightTimeout
    from playwright.sync_api import sync_playwright
else:

    class _NeverError(Exception):
        """Never raised: without Playwright there is no browser that could fail."""

    def __getattr__(name: str) -> Any:
        """Return what this module lends of Playwright; it is asked for as `_playwright.PlaywrightError`."""
        if name not in _LENT:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        package, theirs = _LENT[name]
        if HERE:
            return getattr(importlib.import_module(package), theirs)
        return _say_what_is_missing if name.endswith("_playwright") else _NeverError

    def _say_what_is_missing() -> None:
        raise ServiceError(NEEDED)

    _LENT = {
        "PlaywrightError": ("playwright.sync_api", "Error"),
        "PlaywrightTimeout": ("playwright.sync_api", "TimeoutError"),
        "async_playwright": ("playwright.async_api", "async_playwright"),
        "sync_playwright": ("playwright.sync_api", "sync_playwright"),
    }

__all__ = ["HERE", "NEEDED", "PlaywrightError", "PlaywrightTimeout", "async_playwright", "sync_playwright"]
