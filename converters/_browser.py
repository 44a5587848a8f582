"""A Chromium to print with: the system's when there is one, else Playwright's, else Debian's package.

`python -m converters._browser` finds or fetches one and says which; `make` calls it during set-up.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from exhibit.converters import _playwright
from exhibit.converters._fonts import font_hashes, sealed_environment
from exhibit.schemas.command import guarded
from exhibit.schemas.errors import ServiceError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_MAC = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-features=OptimizationHints,MediaRouter,Translate,NetworkTimeServiceQuerying",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    # widths and line breaks as the font has them, not as the screen or the desktop would like them
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--force-color-profile=srgb",
    "--force-device-scale-factor=1",
    "--lang=en-GB",
)


def find_browser() -> Path | None:
    """Return a browser's executable, or None; `EXHIBIT_BROWSER` overrules the search."""
    chosen = os.environ.get("EXHIBIT_BROWSER")
    if chosen:
        return Path(chosen)
    for name in _NAMES:
        path = shutil.which(name)
        if path:
            return Path(path)
    return next((Path(p) for p in (*_MAC, _playwrights()) if p and Path(p).is_file()), None)


def launch_arguments() -> list[str]:
    """Return Chromium's flags: nothing leaves the machine by itself; no sandbox only for root, who has none."""
    return [*_QUIET, "--no-sandbox"] if is_root() else list(_QUIET)


def launch_options(folder: Path, *, gate: bool = False) -> dict[str, Any]:
    """Return what a browser that prints is started with; the folder is its own, for as long as it runs.

    It reaches nothing: no name and no address leads anywhere, and its proxy is such a name. With `gate` it may reach
    this machine, so that a context can be given a proxy that stands here; its own requests still lead nowhere.
    """
    resolver = "--host-resolver-rules=MAP * ~NOTFOUND" + (", EXCLUDE 127.0.0.1" if gate else "")
    return {
        "executable_path": require_browser(),
        "args": [*launch_arguments(), resolver],
        "env": sealed_environment(folder),
        "proxy": {"server": "http://nowhere.invalid:9", "bypass": "<-loopback>"},
    }


def is_root() -> bool:
    """Return whether this is the one user for whom Chromium has no sandbox."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def require_browser() -> Path:
    """Return a browser's executable or say how to get one."""
    browser = find_browser()
    if browser is None:
        raise ServiceError(
            "no Chromium found to print documents with; run 'python -m converters._browser' to fetch one, "
            "or set EXHIBIT_BROWSER to a browser's executable"
        )
    return browser


def fetch_browser() -> Path:
    """Find a browser, or fetch one: from Playwright, then, as root on Debian, from the distribution."""
    if not _playwright.HERE:
        raise ServiceError(_playwright.NEEDED)
    attempts = {"Playwright's Chromium": [[sys.executable, "-m", "playwright", "install", "chromium"]]}
    if shutil.which("apt-get") and is_root():
        attempts["the distribution's Chromium"] = [
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
        ]
    failures = []
    for name, commands in attempts.items():
        if find_browser() is not None:
            break
        started = time.monotonic()
        problem = _fault(commands)
        took = f"{time.monotonic() - started:.1f} s"
        print(f"{name}: {'not to be had' if problem else 'fetched'} ({took})", file=sys.stderr)
        failures += [f"{name}: {problem}"] if problem else []
    try:
        return require_browser()
    except ServiceError as error:
        raise ServiceError("; ".join([str(error), *failures])) from None


def _fault(commands: list[list[str]]) -> str:
    """Run commands quietly; return the line in which the first that fails says why, or nothing."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
        if done.returncode:
            said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            # what comes after it is the tool's stack, which says nothing to people
            return next((line for line in said if re.match(r"E: |(\w*Error): ", line)), f"exit {done.returncode}")
    return ""


def _playwrights() -> str | None:
    if not _playwright.HERE:
        return None
    with suppress(ServiceError), _playwright.driver() as playwright:
        return playwright.chromium.executable_path
    return None


@guarded()
def main() -> int:
    """Print the browser's path, fetching one when there is none, and see that the fonts are the pinned ones."""
    print(f"{fetch_browser()}, {len(font_hashes())} fonts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
