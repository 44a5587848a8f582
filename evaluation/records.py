"""A run's files: `eval_results.jsonl`, summaries and breakdowns, written whole and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.columns import Column
from exhibit.evaluation.datasets import GoldMatch
from exhibit.evaluation.journal import told_place
from exhibit.evaluation.missing import notes_on
from exhibit.evaluation.statistics import Estimate, Table, macro, summarise_by
from exhibit.evaluation.trec import Lines, trec_files, trec_lines
from exhibit.evaluation.verdicts import cited, examine
from exhibit.law.refusal import is_refusal
from exhibit.schemas.errors import BundleError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.whole import whole, write_whole

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


class RowText(NamedTuple):
    """A question's row as text, all but its scores: which metrics apply is known when the whole run is measured."""

    head: str
    """What stands before the scores."""
    tail: str
    """What stands after them."""
    repeats: tuple[str, ...]
    """Where it was asked several times: what was different each time, but for the scores."""
    trec: Lines
    """Its lines for other tools."""


def row_text(times: Sequence[Case], located: Mapping[tuple[int | str, int], GoldMatch], *, tag: str) -> RowText:
    """Return the row of a question that was asked once or several times: the reply is the first that is no error."""
    case = next((one for one in times if not one.reply.error), times[0])
    judgment = examine(case)
    head = {
        "id": case.id,
        "question": case.question,
        "truth": case.truth,
        "is_impossible": case.is_impossible,
        "filename": case.filename,
        "labels": case.labels,
        "gold": [_gold(case, index, located) for index in range(len(case.gold))],
        "reply": _reply(case),
    }
    tail = {
        "verdict": judgment.verdict,
        "stage": judgment.stage,
        "evidence": judgment.evidence,
        "notes": notes_on(case),
    }
    replies = [one.reply for one in times] if len(times) > 1 else []
    repeats = ({"answer": one.answer, "seconds": one.seconds, "error": one.error} for one in replies)
    return RowText(_json(head), _json(tail), tuple(map(_json, repeats)), trec_lines(times[0], tag=tag))


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def write_rows(folder: Path, rows: Iterable[RowText], table: Table, *, failed: float | None = None) -> None:
    """Write one object a question, and the lines for other tools; `failed` is the score of a question that failed.

    Where questions were asked several times the scores are their means, and `repeats` has each time's own.
    """
    every = max(1, len(table.repeats))
    with whole(folder / RESULTS) as results, trec_files(folder) as trec, results.open("wb") as out:
        for number, row in enumerate(rows):
            bad = bool(table.failed) and table.failed[number] == every
            scores = {name: failed if bad else column[number] for name, column in table.values.items()}
            line = [
                row.head[:-1],
                f', "scores": {_json(scores)}, ',
                row.tail[1:-1],
                _repeats(row, table, number),
                "}\n",
            ]
            # half a surrogate pair, which damaged PDFs hold, becomes a question mark
            out.write("".join(line).encode("utf-8", "replace"))
            trec.add(row.trec)


def _repeats(row: RowText, table: Table, number: int) -> str:
    if not row.repeats:
        return ""
    scores = [{name: column[number] for name, column in one.items()} for one in table.repeats]
    told = [f'{text[:-1]}, "scores": {_json(own)}}}' for text, own in zip(row.repeats, scores, strict=True)]
    return f', "repeats": [{", ".join(told)}]'


def _gold(case: Case, index: int, located: Mapping[tuple[int | str, int], GoldMatch]) -> dict[str, Any]:
    gold = case.gold[index]
    told = located.get((case.id, index), GoldMatch(None))
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
        **({"also_in": list(passage.also_in)} if passage.also_in else {}),
    } | told_place(passage)
    return {**row, "text": passage.text} if rank < _QUOTED else row


# ---------------------------------------------------------------- means


def summary_json(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return means as `summary.json` has them."""
    return {name: estimate.as_json() for name, estimate in estimates.items()}


def with_drm_means(summary: dict[str, Any], pooled: Mapping[str, float | None], table: Table) -> dict[str, Any]:
    """Return a dataset's summary with DRM's two other means beside it: over all passages, and over documents."""
    for name in summary:
        if name in pooled:
            summary[name] |= {"pooled": pooled[name], "macro": macro(table.values[name], table.documents)}
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


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of results; one at a time is read."""
    with path.open("rb") as file:
        # by bytes: a line ends at a line feed, and not at U+2028 and other marks that JSON keeps inside strings
        for line in file:
            if line.strip():
                yield parse_json(line.decode("utf-8"), where=path)


class _Reading:
    """A table that grows by rows; a metric that earlier rows do not have applied to none of them."""

    def __init__(self) -> None:
        self.ids: list[int | str] = []
        self.documents: list[str] = []
        self.labels: list[dict[str, Any]] = []
        self.failed: list[int] = []
        self.values: dict[str, Column] = {}
        self.repeats: list[dict[str, Column]] | None = None

    def add(self, row: dict[str, Any]) -> None:
        before = len(self.ids)
        bad = bool(row["reply"]["error"])
        times = row.get("repeats") or ()
        if self.repeats is None:
            self.repeats = [{} for _ in times]
        del self.repeats[len(times) :]
        # a failed question has no score, even where −1 was asked for
        _append(self.values, dict.fromkeys(row["scores"]) if bad else row["scores"], before)
        for own, one in zip(self.repeats, times, strict=False):
            _append(own, one["scores"], before)
        self.ids.append(row["id"])
        self.documents.append(_document(row))
        self.labels.append(row["labels"])
        self.failed.append(sum(bool(one["error"]) for one in times) if times else int(bad))


def _append(columns: dict[str, Column], scores: Mapping[str, float | None], before: int) -> None:
    for name in scores:
        if name not in columns:
            columns[name] = Column([None] * before)
    for name, column in columns.items():
        column.extend([scores.get(name)])


def _table(path: Path, name: str, groups: str | None) -> Table:
    read = _Reading()
    for row in read_rows(path):
        read.add(row)
    return Table(
        name=name,
        ids=read.ids,
        documents=read.documents,
        values=read.values,
        failed=read.failed,
        labels=read.labels,
        groups=groups,
        repeats=read.repeats or (),
    )


def _document(row: Mapping[str, Any]) -> str:
    named: Iterable[str | None] = [row["filename"], *(gold["filename"] for gold in row["gold"])]
    return next((name for name in named if name), f"\0{row['id']}")
