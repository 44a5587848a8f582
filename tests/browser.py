"""The one way in which tests open a browser: with the converters' own fonts, so that it draws alike everywhere.

On a machine without any font the text of a page has no size, and what is waited for is never to be seen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from exhibit.converters.printing.browser import launch_options
from exhibit.storage.atomic import make_scratch_folder

PATIENCE = 120_000
"""Milliseconds in which anything must come that a test waits for: ten times what a busy machine has needed."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """Yield a browser; what it keeps while it runs goes with it, even if it is killed."""
    with make_scratch_folder() as folder, sync_playwright() as playwright:
        options = launch_options(folder)
        options["args"][-1] += ", EXCLUDE 127.0.0.1"
        del options["proxy"]  # pages are also opened from servers on loopback; names still lead nowhere
        options["env"] |= {"TMPDIR": str(folder)}
        browser = playwright.chromium.launch(**options)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def taking_turns(browser: Browser) -> Iterator[Browser]:
    """Yield a browser that runs on; before and after, asyncio is to be had in this thread, and no page is open.

    Playwright stops in the middle of its own loop between two calls, and asyncio starts none beside one that runs.
    """
    asyncio._set_running_loop(browser._loop)
    try:
        yield browser
        for context in browser.contexts:
            context.close()
    finally:
        asyncio._set_running_loop(None)
