"""The browser of the tests, which uses the converters' own fonts so that pages look the same on every machine.

On a machine without fonts, text would have no size, and a test that waits for visible text would never end.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from exhibit.converters.pages.chromium import launch_options
from exhibit.storage.atomic import make_scratch_folder

PATIENCE = 30_000
"""The timeout in milliseconds for everything that a test waits for: twice the longest time on a busy machine."""


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield a browser whose temporary files are deleted when it ends, even if it is killed."""
    with make_scratch_folder() as folder, sync_playwright() as playwright:
        options = launch_options(folder)
        options["args"][-1] += ", EXCLUDE 127.0.0.1"
        del options["proxy"]  # pages are also opened from servers on loopback; host names are still not resolved
        options["env"] |= {"TMPDIR": str(folder)}
        browser = playwright.chromium.launch(**options)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def lend_browser(browser: Browser) -> Iterator[Browser]:
    """Yield a running browser for a block of code; afterwards close its pages and free the thread for asyncio.

    Between two calls Playwright's event loop stays suspended but counts as running, and asyncio refuses to
    start a second loop in the same thread. So the loop is registered as running only within the block.
    """
    asyncio._set_running_loop(browser._loop)
    try:
        yield browser
        for context in browser.contexts:
            context.close()
    finally:
        asyncio._set_running_loop(None)
