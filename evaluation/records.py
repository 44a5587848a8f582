"""A run's files: `eval_results.jsonl`, summaries and breakdowns, written whole and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.cases import Case, Passage, Values
from evaluation.datasets import Dataset, Found
from evaluation.journal import told_place
from evaluation.metrics import Options
from evaluation.metrics.drm import pooled
from evaluation.statistics import Estimate, Table, macro, summarise_by
from evaluation.verdicts import cited, examine
from law.refusal import is_refusal
from schemas.bundle import read_lines
from schemas.errors import BundleError
from schemas.parsing import parse_json
from storage.whole import write_whole

RESULTS = "eval_results.jsonl"
SUMMARY = "summary.json"
CONFIG = "config.json"
_QUOTED = 10
"""Passages that are written with their words."""
_MOST_VALUES = 60
"""A label with more values than this says what a question is, not of what kind."""


# ---------------------------------------------------------------- writing


def write_json(path: Path, content: Any) -> None:
    """Write a file by rename: whole or not at all."""
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def write_results(
    path: Path, dataset: Dataset, repeats: Sequence[Sequence[Case]], table: Table, *, failed: float | None = None
) -> None:
    """Write one object a question; `failed` is the score of a question whose reply is an error.

    Where questions were asked several times the scores are their means, the reply is the first that is no error, and
    `repeats` has what was different each time.
    """
    lines = []
    for row, times in enumerate(zip(*repeats, strict=True)):
        case = next((one for one in times if not one.reply.error), times[0])
        scores = {name: failed if case.reply.error else column[row] for name, column in table.values.items()}
        told = record(case, dataset.found, scores)
        if len(times) > 1:
            told["repeats"] = [_repeat(one, table.repeats[n], row) for n, one in enumerate(times)]
        lines.append(json.dumps(told, ensure_ascii=False, allow_nan=False))
    write_whole(path, "".join(f"{line}\n" for line in lines))


def _repeat(case: Case, values: Mapping[str, Values], row: int) -> dict[str, Any]:
    reply = case.reply
    scores = {name: column[row] for name, column in values.items()}
    return {"answer": reply.answer, "seconds": reply.seconds, "error": reply.error, "scores": scores}


def record(case: Case, found: Mapping[tuple[int | str, int], Found], scores: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with its truth, its reply, its scores and what became of it."""
    judgment = examine(case)
    return {
        "id": case.id,
        "question": case.question,
        "truth": case.truth,
        "is_impossible": case.is_impossible,
        "filename": case.filename,
        "labels": case.labels,
        "gold": [_gold(case, index, found) for index in range(len(case.gold))],
        "reply": _reply(case),
        "scores": dict(scores),
        "verdict": judgment.verdict,
        "stage": judgment.stage,
        "evidence": judgment.evidence,
    }


def _gold(case: Case, index: int, found: Mapping[tuple[int | str, int], Found]) -> dict[str, Any]:
    gold = case.gold[index]
    told = found.get((case.id, index), Found(None))
    places = [[list(span) for span in place] for place in gold.places]
    return {
        "filename": gold.filename, "text": gold.text, "places": places, "pages": list(told.pages), "how": told.how
    }  # fmt: skip


def _reply(case: Case) -> dict[str, Any]:
    reply = case.reply
    return {
        "answer": reply.answer,
        "refused": reply.answer is not None and is_refusal(reply.answer),
        "citations": cited(case),
        "passages": [_passage(passage, rank) for rank, passage in enumerate(reply.passages)],
        "selected": reply.selected,
        "seconds": reply.seconds,
        "error": reply.error,
        "usage": reply.usage,
        "first_token": reply.first_token,
        "confidence": reply.confidence,
    }


def _passage(passage: Passage, rank: int) -> dict[str, Any]:
    row = {
        "filename": passage.filename,
        "span": list(passage.span) if passage.span else None,
        "page": passage.page,
        "score": passage.score,
    } | told_place(passage)
    return {**row, "text": passage.text} if rank < _QUOTED else row


# ---------------------------------------------------------------- means


def summary_json(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return means as `summary.json` has them."""
    return {name: estimate.as_json() for name, estimate in estimates.items()}


def with_drm_means(
    summary: dict[str, Any], cases: Sequence[Case], values: Mapping[str, Values], options: Options, table: Table
) -> dict[str, Any]:
    """Return a dataset's summary with DRM's two other means beside it: over all passages, and over documents."""
    together = pooled(cases, options)
    for name in summary:
        if name in together:
            summary[name] |= {"pooled": together[name], "macro": macro(values[name], table.documents)}
    return summary


def breakdown(table: Table) -> dict[str, dict[str, Any]]:
    """Return the means for each value of every label that sorts questions into kinds."""
    names = dict.fromkeys(name for labels in table.labels for name in labels)
    kinds: dict[str, dict[str, Any]] = {}
    for name in names:
        values = {str(labels[name]) for labels in table.labels if labels.get(name) is not None}
        if name == table.groups or 1 < len(values) <= min(_MOST_VALUES, len(table.ids) // 2):
            kinds[name] = {value: summary_json(means) for value, means in summarise_by(table, name).items()}
    return kinds


# ---------------------------------------------------------------- reading


def read_tables(folder: Path) -> list[Table]:
    """Return the tables of a run, one a dataset."""
    if not folder.is_dir():
        raise BundleError(f"{folder}: no such run")
    config = read_json(folder / CONFIG)
    names = [name for name in config.get("datasets", {}) if (folder / name / RESULTS).is_file()]
    if not names:
        raise BundleError(f"{folder}: no results in it; it was stopped: go on with --resume --run-name {folder.name}")
    return [_table(folder / name / RESULTS, name, config["datasets"][name].get("groups")) for name in names]


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file of a run."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BundleError(f"{path}: missing; {path.parent} is not a run of evaluate_rag.py") from None
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: damaged: {error}") from error
    if not isinstance(content, dict):
        raise BundleError(f"{path}: must be a JSON object")
    return content


def _table(path: Path, name: str, groups: str | None) -> Table:
    rows = [parse_json(line, where=path) for line in read_lines(path)]
    bad = [bool(row["reply"]["error"]) for row in rows]
    names = dict.fromkeys(metric for row in rows for metric in row["scores"])
    # a failed question has no score, even where −1 was asked for
    values: dict[str, Values] = {
        metric: [None if failed else row["scores"].get(metric) for row, failed in zip(rows, bad, strict=True)]
        for metric in names
    }
    times = min((len(row.get("repeats") or ()) for row in rows), default=0)
    failed = [sum(bool(one["error"]) for one in row["repeats"]) for row in rows] if times else [*map(int, bad)]
    return Table(
        name=name,
        ids=[row["id"] for row in rows],
        documents=[_document(row) for row in rows],
        values=values,
        failed=failed,
        labels=[row["labels"] for row in rows],
        groups=groups,
        repeats=[{m: [row["repeats"][n]["scores"].get(m) for row in rows] for m in names} for n in range(times)],
    )


def _document(row: Mapping[str, Any]) -> str:
    named: Iterable[str | None] = [row["filename"], *(gold["filename"] for gold in row["gold"])]
    return next((name for name in named if name), f"\0{row['id']}")
