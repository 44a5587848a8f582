"""Fixtures of the Hub tests: a local Hub, and the real clients in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hub.loopback import LoopbackHub

ROOT = Path(__file__).parent.parent.parent
RunClient = Callable[..., str]


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    """A local Hub; at the end of a test, check that it got no unknown request and had no internal error."""
    with LoopbackHub() as running:
        yield running
    assert running.unknown == []
    assert running.crashes == []


@pytest.fixture
def hub_env(hub: LoopbackHub, tmp_path: Path) -> dict[str, str]:
    """The environment in which both clients talk only to the Hub of this test; it holds no token.

    The Hub is also the proxy for every other host, so that a request to another host is noticed and does not
    leave the machine. Large files are sent by LFS, where each step can be made to fail; HF_HUB_DISABLE_XET=0
    uses hf_xet instead.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HF_", "HUGGING", "TRANSFORMERS_")) and not name.lower().endswith("_proxy")
    }
    return {
        **kept,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(tmp_path / "hf_home"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_XET": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # else `datasets` tells a server of Amazon what it loads
        "HTTP_PROXY": hub.url,
        "HTTPS_PROXY": hub.url,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
    }


@pytest.fixture
def run_client(hub_env: dict[str, str], tmp_path: Path) -> RunClient:
    """A function that runs Python code with the real clients in a new process.

    Both clients read HF_ENDPOINT when they are imported.
    """

    def run(
        code: str, token: str | None = None, *, expect: int = 0, both: bool = False, stdin: str = "", **env: str
    ) -> str:
        given = {**hub_env, **({"HF_TOKEN": token} if token else {}), **env}
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, cwd=tmp_path, env=given, input=stdin, capture_output=True, encoding="utf-8", timeout=120
        )
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr if both else done.stdout

    return run
