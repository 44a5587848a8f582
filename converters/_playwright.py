"""Playwright, which drives the browser and is an extra: only printing needs it, and says how to get it."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from schemas.errors import ServiceError

NEEDED = (
    "documents that are not PDFs are printed by Playwright, which is not installed: "
    "pip install 'exhibit-rag[print]', then python -m converters._browser"
)
HERE = importlib.util.find_spec("playwright") is not None

if TYPE_CHECKING or HERE:
    from playwright.async_api import async_playwright
    from playwright.sync_api import Error as PlaywrightError
    from playwright.sync_api import TimeoutError as PlaywrightTimeout
    from playwright.sync_api import sync_playwright
else:

    class PlaywrightError(Exception):
        """Never raised: there is no browser that could fail."""

    class PlaywrightTimeout(PlaywrightError):  # noqa: N818 - Playwright's own name
        """Never raised, either."""

    def sync_playwright():
        """Say what is missing."""
        raise ServiceError(NEEDED)

    async_playwright = sync_playwright

__all__ = ["HERE", "NEEDED", "PlaywrightError", "PlaywrightTimeout", "async_playwright", "sync_playwright"]
