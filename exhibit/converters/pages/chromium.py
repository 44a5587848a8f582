"""Finds a Chromium for printing, or installs Playwright's (`exhibit doctor --fix browser`, which `make` runs)."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exhibit.converters.pages.text_pdf import find_font, make_sealed_environment, read_font_hashes
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ServiceError
from exhibit.storage.atomic import make_scratch_folder
from exhibit.storage.programs import find_program

if TYPE_CHECKING:
    from playwright.async_api import Browser, Error

NEEDED = (
    "HTML, office files and mails, and texts in Chinese, Japanese or Korean are printed by Playwright, "
    "which is not installed: pip install 'exhibit-rag[print]', then exhibit doctor --fix browser"
)
HERE = importlib.util.find_spec("playwright") is not None
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_MAC = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_FLAGS = re.findall(r"^--.*", Path(__file__).with_suffix(".txt").read_text(encoding="ascii"), re.MULTILINE)


def find_browser() -> Path | None:
    """Return a browser's executable; None if there is none. `EXHIBIT_BROWSER` overrides the search."""
    chosen = os.environ.get("EXHIBIT_BROWSER") or next(filter(None, map(find_program, _NAMES)), None)
    if chosen:
        return Path(chosen)
    known = list(_MAC)
    if HERE:
        from playwright.sync_api import sync_playwright

        with suppress(Exception), sync_playwright() as playwright:  # Playwright's driver may fail with any error
            known.append(playwright.chromium.executable_path)
    return next((Path(path) for path in known if Path(path).is_file()), None)


def require_browser() -> Path:
    browser = find_browser()
    if browser is None:
        remedy = "run 'exhibit doctor --fix browser', or set EXHIBIT_BROWSER to a browser's executable"
        raise ServiceError(f"no Chromium found to print documents with; {remedy}")
    return browser


def launch_arguments() -> list[str]:
    """Return Chromium's flags, which stop background requests; for root, they also turn off the sandbox."""
    return [*_FLAGS, "--no-sandbox"] if is_root() else _FLAGS


def launch_options(folder: Path) -> dict[str, Any]:
    """Return the launch options of a browser for printing; `folder` is the folder for its configuration."""
    return {
        "executable_path": require_browser(),
        "args": [*launch_arguments(), "--host-resolver-rules=MAP * ~NOTFOUND"],
        "env": make_sealed_environment(folder),
        "proxy": {"server": "http://nowhere.invalid:9", "bypass": "<-loopback>"},
    }


@asynccontextmanager
async def run_browser() -> AsyncIterator[Browser]:
    if not HERE:
        raise ServiceError(NEEDED)
    from playwright.async_api import async_playwright

    async with AsyncExitStack() as stack:
        # call it in a thread: inside a running event loop, Playwright cannot return its browser's path
        options = await asyncio.to_thread(launch_options, stack.enter_context(make_scratch_folder()))
        try:
            driver = await async_playwright().start()
        except Exception as error:  # Playwright raises errors of its pipe to the driver, even plain Exception
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            needs = "raise the limits of memory (ulimit -v) and of open files (ulimit -n)"
            raise ServiceError(f"Playwright's driver does not start: {reason}; {needs}") from error
        stack.push_async_callback(driver.stop)
        for sandbox in (False,) if is_root() else (True, False):  # some systems have no sandbox
            try:
                browser = await driver.chromium.launch(chromium_sandbox=sandbox, **options)
                break
            except import_browser_error() as error:
                problem = error.message.splitlines()[0]
        else:
            raise ServiceError(f"Chromium does not start: {problem}; run exhibit doctor --fix browser")
        stack.push_async_callback(browser.close)
        yield browser


def import_browser_error(*, late: bool = False) -> type[Error]:
    """Return Playwright's error class, or its timeout class if `late` is true; Playwright must be installed."""
    from playwright.async_api import Error, TimeoutError

    return TimeoutError if late else Error


def is_root() -> bool:
    """Return whether the user is root, for whom Chromium has no sandbox."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


@guarded()
def main() -> int:
    """Find or install a browser and verify the pinned fonts; print the browser's path and the number of fonts."""
    fonts = list(map(find_font, read_font_hashes()))
    if not HERE:
        raise ServiceError(NEEDED)
    if find_browser() is None:
        command = [sys.executable, "-m", "playwright", "install", "chromium"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if find_browser() is None:
            # later lines of the output are a stack trace
            lines = re.findall(r"^\w*Error: .*", done.stdout + done.stderr, re.MULTILINE)
            problem = f"Playwright's Chromium cannot be installed: {lines[0] if lines else f'exit {done.returncode}'}"
            raise ServiceError(f"{problem}; install Chromium, or set EXHIBIT_BROWSER to the executable of one")
    print(f"{require_browser()}, {len(fonts)} fonts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
