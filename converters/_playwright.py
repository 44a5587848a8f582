"""Playwright, which drives the browser and is an extra: only printing needs it, and says how to get it."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from schemas.errors import ServiceError

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


def __getattr__(name: str) -> Any:
    """Return what is asked for by name, from Playwright: it takes 10 MB, and most processes print nothing."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, its_name, instead = _NAMES[name]
    return getattr(import_module(f"playwright.{module}"), its_name) if HERE else instead


class _MissingError(Exception):
    """Never raised: there is no browser that could fail."""


class _MissingTimeoutError(_MissingError):
    """Never raised, either."""


def _say() -> NoReturn:
    """Say what is missing."""
    raise ServiceError(NEEDED)


_NAMES: dict[str, tuple[str, str, Any]] = {
    "PlaywrightError": ("sync_api", "Error", _MissingError),
    "PlaywrightTimeout": ("sync_api", "TimeoutError", _MissingTimeoutError),
    "sync_playwright": ("sync_api", "sync_playwright", _say),
    "async_playwright": ("async_api", "async_playwright", _say),
}
"""Where Playwright has each, what it is called there, and what stands in for it where it is not installed."""
__all__ = ["HERE", "NEEDED", "PlaywrightError", "PlaywrightTimeout", "async_playwright", "sync_playwright"]
