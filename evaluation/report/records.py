"""Questions as the page's script reads them: all of them in brief, as many as fit with their evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from engine import track
from evaluation.report.drawing import PASSAGES, Library, draw
from evaluation.report.pages import Gallery
from evaluation.report.run import DatasetRun, Record, Run
from evaluation.report.spans import Placed, meets, placed
from evaluation.report.wording import ANSWERED, VERDICTS, explain
from evidence import Span

BRIEF_BUDGET = 9_000_000
DETAIL_BUDGET = 5_000_000
"""Characters that the list, and the texts that its questions open to, may take."""
_LONGEST = 20_000
"""A text of a reply beyond this is cut: a model that repeats itself must not fill the report."""

Chosen = tuple[str, Record]


def in_order(run: Run, *, cases: int) -> tuple[list[Chosen], set[tuple[str, Any]]]:
    """Return every question, failures first, and the keys of those whose pages are drawn, from all datasets alike."""
    worst = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
    turns = list(_in_turn([_in_turns(dataset) for dataset in run.datasets]))
    turns.sort(key=lambda chosen: chosen[1]["verdict"] == ANSWERED)
    drawn = {(name, row["id"]) for name, row in turns[:cases]}

    def order(chosen: Chosen) -> tuple[bool, bool, int]:
        verdict = chosen[1]["verdict"]
        return verdict == ANSWERED, (chosen[0], chosen[1]["id"]) not in drawn, worst.get(verdict, -1)

    everything = [(dataset.name, row) for dataset in run.datasets for row in dataset.rows]
    return sorted(everything, key=order), drawn


def make_records(run: Run, library: Library, gallery: Gallery, *, cases: int) -> list[Record]:
    """Return the questions that fit, each with what it opens to as long as that fits too."""
    ordered, drawn = in_order(run, cases=cases)
    records = []
    brief_left, detail_left = BRIEF_BUDGET, DETAIL_BUDGET
    for dataset, row in track(ordered, total=len(ordered), label="report", unit="question"):
        record = _brief(dataset, row)
        brief_left -= len(json.dumps(record))
        if brief_left < 0:
            break
        if detail_left > 0:
            detail = _detail(row)
            if (dataset, row["id"]) in drawn:
                detail |= draw(dataset, row, library, gallery)
            detail_left -= len(json.dumps(detail))
            if detail_left > 0:
                record["detail"] = detail
        records.append(record)
    return records


def _in_turns(dataset: DatasetRun) -> list[Chosen]:
    """Return a dataset's questions, its verdicts taking turns, so that the first few show every kind of failure."""
    groups = [[(dataset.name, row) for row in dataset.rows if row["verdict"] == verdict] for verdict in VERDICTS]
    return list(_in_turn(groups))


def _in_turn(groups: Sequence[Sequence[Chosen]]) -> Iterator[Chosen]:
    for turn in zip_longest(*groups):
        yield from (chosen for chosen in turn if chosen is not None)


def _brief(dataset: str, row: Record) -> Record:
    reply = row["reply"]
    return {
        "dataset": dataset,
        "id": row["id"],
        "question": _cut(row["question"], 2000),
        "verdict": row["verdict"],
        "labels": {key: _cut(str(value), 120) for key, value in (row.get("labels") or {}).items() if _plain(value)},
        "filename": row.get("filename") or "",
        "answer": _cut(reply.get("answer") or "", 300),
        "recall": None if reply.get("error") else _nearest(row["scores"], "char_recall"),
    }


def _detail(row: Record) -> Record:
    reply = row["reply"]
    at = placed(row)
    return {
        "why": explain(row),
        "truth": _cut(row["truth"], _LONGEST),
        "impossible": bool(row.get("is_impossible")),
        "answer": _cut(reply.get("answer") or "", _LONGEST),
        "refused": bool(reply.get("refused")),
        "seconds": reply.get("seconds"),
        "selected": reply.get("selected"),
        "retrieved": len(reply.get("passages") or ()),
        # a failed question has no score, even where -1 was written for other tools
        "scores": {} if reply.get("error") else {n: round(v, 4) for n, v in row["scores"].items() if _finite(v)},
        "gold": [
            {
                "filename": gold.get("filename") or "",
                "pages": gold.get("pages") or [],
                "how": gold.get("how") or "",
                "text": _cut(gold.get("text") or "", _LONGEST),
            }
            for gold in row.get("gold") or ()
        ],
        "passages": [_passage(passage, at) for passage in _with_text(reply)],
    }


def _passage(passage: Record, at: Mapping[str, Placed]) -> Record:
    filename = passage.get("filename") or ""
    text = _cut(passage.get("text") or "", 4000)
    parts: list[list[Any]] = [[text, 0]]
    span = Span(*passage["span"]) if passage.get("span") else None
    touches = span is not None and filename in at and meets(span, at[filename].gold)
    if span is not None and touches and span.end - span.start == len(passage.get("text") or ""):
        parts = _gold_parts(text, span, at[filename].gold)
    return {
        "filename": filename,
        "page": passage.get("page"),
        "score": passage["score"] if _finite(passage.get("score")) else None,
        "parts": parts,
        "gold": touches,
    }


def _gold_parts(text: str, span: Span, gold: Sequence[Span]) -> list[list[Any]]:
    """Return a passage's text in runs, those marked 1 that are gold."""
    inside = {edge - span.start for part in gold for edge in part if span.start < edge < span.end}
    cuts = sorted({0, len(text)} | {cut for cut in inside if cut < len(text)})
    runs = [Span(first + span.start, last + span.start) for first, last in pairwise(cuts)]
    return [[text[run.start - span.start : run.end - span.start], int(meets(run, gold))] for run in runs]


def _with_text(reply: Record) -> list[Record]:
    return [passage for passage in (reply.get("passages") or ())[:PASSAGES] if passage.get("text") is not None]


def _nearest(scores: Mapping[str, Any], family: str, depth: int = 8) -> float | None:
    depths = [int(name.partition("@")[2]) for name in scores if name.startswith(f"{family}@")]
    if not depths:
        return None
    value: float | None = scores[f"{family}@{min(depths, key=lambda k: abs(k - depth))}"]
    return value if _finite(value) else None


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]} …"
