"""The commands in this process, talking to the Hub of a test."""

from __future__ import annotations

import time
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from tests.hub.loopback import LoopbackHub


def connect(hub: LoopbackHub, home: Path, monkeypatch: pytest.MonkeyPatch, *, token: str | None = None) -> list[float]:
    """Point the real Hub client, already imported, to the Hub of a test.

    Pauses between retries are skipped; their seconds are added to the returned list.
    """
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
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
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits
