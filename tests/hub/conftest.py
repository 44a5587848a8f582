"""Fixtures of the Hub tests: a fake Hub, to which the real client of this process talks."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from tests.hub.loopback import LoopbackHub

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    """A fake Hub; at the end of a test, check that it got no unknown request."""
    with LoopbackHub.running() as running:
        yield running
    assert running.unknown == []


@pytest.fixture
def connected(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoopbackHub:
    """The fake Hub, with the client of this process logged in as `me`; pauses between retries are skipped."""
    for name in ("HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", hub.token("me"))
    home = tmp_path / "home"
    for name, value in (
        ("ENDPOINT", hub.url),
        ("HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}"),
        ("HF_HUB_CACHE", str(home / "hub")),
        ("HF_TOKEN_PATH", str(home / "token")),
        ("HF_STORED_TOKENS_PATH", str(home / "stored_tokens")),
        ("HF_HUB_DISABLE_XET", True),
        ("HF_HUB_OFFLINE", False),
        ("HF_HUB_DISABLE_TELEMETRY", True),
    ):
        monkeypatch.setattr(constants, name, value)
    huggingface_hub.utils.disable_progress_bars()
    monkeypatch.setattr(time, "sleep", lambda _: None)
    return hub


@pytest.fixture
def hub_env(hub: LoopbackHub, tmp_path: Path) -> dict[str, str]:
    return make_hub_env(hub, tmp_path / "hf_home")


def make_hub_env(hub: LoopbackHub, home: Path) -> dict[str, str]:
    """Return an environment in which a client in another process uses only the fake Hub, without a token."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    return {
        **{name: value for name, value in kept.items() if not name.lower().endswith("_proxy")},
        "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_UPDATE_DOWNLOAD_COUNTS": "0", "HTTP_PROXY": hub.url,
        "HTTPS_PROXY": hub.url, "NO_PROXY": "127.0.0.1,localhost", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1",
    }  # fmt: skip
