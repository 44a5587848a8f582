"""Finds a summariser by the name of its file."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.rag.summaries._cache import SummaryCache
from exhibit.rag.summaries._protocol import Summariser
from exhibit.schemas.plugins import load_plugin


def open_summariser(config: Config, *, llm: LLM | None = None, cache: Path | None = None) -> Summariser:
    """Return the summariser that a configuration names; `cache` is the folder where answers are kept."""
    module, argument = load_plugin("exhibit.rag.summaries", config.summaries)
    opened = module.open(
        argument,
        llm=llm,
        cache=SummaryCache(cache / "summaries.sqlite" if cache else None),
        style=config.summary_style,
        characters=config.summary_characters,
    )
    for name in ("shown", "tokens", "temperature"):
        if hasattr(opened, name):  # it asks a model
            setattr(opened, name, getattr(config, f"summary_{name}"))
    return cast(Summariser, opened)
