"""Evaluations from Python: every setting of a run that has a flag is a named parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from exhibit.bundles import Bundle
from exhibit.runs import Run, evaluate_settings

Place = Bundle | Path | str


def evaluate(
    bundles: Place | Iterable[Place],
    *,
    target: str | Path | Callable[..., Any] = "builtin",
    target_url: str | None = None,
    preset: str | None = None,
    embedder: str | None = None,
    llm: str | None = None,
    top_k: int | None = None,
    file_type: str | Sequence[str] | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    limit: int | None = None,
    sample_seed: int | None = None,
    ingest: Literal["auto", "never", "fresh"] | None = None,
    metrics: str | Sequence[str] | None = None,
    judge: str | None = None,
    threads: int | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    max_failures: float | None = None,
    output_dir: Path | str | None = None,
    run_name: str | None = None,
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Test a RAG system on bundles, and write a report.

    `target` is a system by name, a .toml file, or any function of a question, plain or async, that returns an answer,
    or an answer and passages. `settings` are those that `exhibit settings` lists and that have no parameter here.
    """
    named = {name: value for name, value in locals().items() if name not in ("bundles", "target", "settings")}
    given = {name: value for name, value in named.items() if value is not None}
    many = [bundles] if isinstance(bundles, Bundle | Path | str) else list(bundles)
    places = [str(one.root if isinstance(one, Bundle) else one) for one in many]
    function = target if callable(target) else None
    given |= {"dataset_paths": places, "target": "function" if function else str(target), **(settings or {})}
    return evaluate_settings(given, parts={"function": function} if function else None)
