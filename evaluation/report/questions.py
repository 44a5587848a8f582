"""Questions as the page's script reads them: each as a line of the list, and as the case that it opens to."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from exhibit.evaluation.report.drawing import PASSAGES, Wanted
from exhibit.evaluation.report.run import Record
from exhibit.evaluation.report.spans import Placed, best_place, gold_ranges, meets, placed
from exhibit.evaluation.report.wording import explain
from exhibit.evidence import Span

_LONGEST = 20_000
"""A text of a reply beyond this is cut: a model that repeats itself must not fill the report."""
_LONGEST_PASSAGE = 4000  # characters: two pages; a passage is shorter
_QUESTION, _ANSWER, _ERROR = 500, 240, 300
"""Characters of a line of the list, where search looks."""
FIELDS = ("id", "question", "answer", "file", "found", "error")
"""What a line of the report's list tells beside its dataset, verdict, kind of error and labels."""


class Table:
    """Values by number, each once."""

    def __init__(self) -> None:
        """Start empty."""
        self.numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """Return the number of a value."""
        return self.numbers.setdefault(value, len(self.numbers))

    def __iter__(self) -> Any:
        """Return the values in the order of their numbers."""
        return iter(self.numbers)


class Block:
    """Some cases that are loaded together: what they share is there once."""

    def __init__(self, metrics: Table, wanted: Wanted) -> None:
        """Start empty; metrics and documents have numbers for the whole report."""
        self.cases: list[Record] = []
        self._texts = Table()
        self._files: dict[int, str] = {}
        self._metrics = metrics
        self._wanted = wanted

    def add(self, dataset: str, rows: Sequence[Record | None], *, rank: int | None) -> None:
        """Add a question and what became of it in each run, None where a run did not ask it."""
        first = next(row for row in rows if row is not None)
        self.cases.append(
            {
                "dataset": dataset,
                "id": first["id"],
                "question": cut(first["question"], _LONGEST),
                "truth": cut(first["truth"], _LONGEST),
                "impossible": bool(first.get("is_impossible")),
                "labels": labels_of(first),
                "gold": [self._gold(dataset, gold, rows) for gold in first.get("gold") or ()],
                "sides": [None if row is None else self._side(dataset, row, rank) for row in rows],
            }
        )

    def as_json(self) -> Record:
        """Return what the script reads."""
        return {"texts": list(self._texts), "files": self._files, "cases": self.cases}

    def _side(self, dataset: str, row: Record, rank: int | None) -> Record:
        reply, at = row["reply"], placed(row)
        return {
            "verdict": row["verdict"],
            "why": explain(row),
            "answer": cut(reply.get("answer") or "", _LONGEST),
            "refused": bool(reply.get("refused")),
            "error": cut(reply.get("error") or "", _LONGEST),
            "seconds": reply.get("seconds") if _finite(reply.get("seconds")) else None,
            "confidence": reply.get("confidence") if _finite(reply.get("confidence")) else None,
            "selected": reply.get("selected"),
            "retrieved": len(reply.get("passages") or ()),
            # a failed question has no score, even where -1 was written for other tools
            "scores": [] if reply.get("error") else self._scores(row["scores"]),
            "passages": [self._passage(dataset, one, at) for one in (reply.get("passages") or ())[:PASSAGES]],
            "pages": self._wanted.ask(dataset, row, at, rank=rank),
        }

    def _scores(self, scores: Mapping[str, Any]) -> list[Any]:
        """Return metric, value, metric, value …"""
        return [one for m, v in scores.items() if _finite(v) for one in (self._metrics.number(m), round(v, 4))]

    def _gold(self, dataset: str, gold: Record, rows: Sequence[Record | None]) -> Record:
        filename = gold.get("filename") or ""
        retrieved = [
            Span(*passage["span"])
            for row in rows
            for passage in (row or {"reply": {}})["reply"].get("passages") or ()
            if passage.get("span") and passage.get("filename") == filename
        ]
        return {
            "file": self._file(dataset, filename),
            "pages": gold.get("pages") or [],
            "how": gold.get("how") or "",
            "text": self._texts.number(cut(gold.get("text") or "", _LONGEST)),
            "spans": best_place(gold["places"], retrieved) if gold.get("places") else [],
        }

    def _passage(self, dataset: str, passage: Record, at: Mapping[str, Placed]) -> Record:
        filename = passage.get("filename") or ""
        text = passage.get("text") or ""
        span = Span(*passage["span"]) if passage.get("span") else None
        gold = at[filename].gold if filename in at else []
        # the words are those of the span, unless a system gave others
        told = span is not None and span.end - span.start == len(text)
        return {
            "file": self._file(dataset, filename),
            "page": passage.get("page"),
            "score": round(passage["score"], 4) if _finite(passage.get("score")) else None,
            "text": self._texts.number(cut(text, _LONGEST_PASSAGE)),
            "gold": span is not None and meets(span, gold),
            "ranges": gold_ranges(span, gold) if span is not None and told else [],
            "span": span,
        }

    def _file(self, dataset: str, filename: str) -> int:
        """Return a document's number, -1 where none is named."""
        if not filename:
            return -1
        number = self._wanted.number(dataset, filename)
        self._files[number] = filename
        return number


def brief(row: Record) -> list[Any]:
    """Return what a line of the list tells of a row: `FIELDS`."""
    reply = row["reply"]
    recall = None if reply.get("error") else nearest(row["scores"], "char_recall")
    return [
        row["id"],
        cut(row["question"], _QUESTION),
        cut(reply.get("answer") or "", _ANSWER),
        row.get("filename") or next((g["filename"] for g in row.get("gold") or () if g.get("filename")), ""),
        None if recall is None else round(recall, 3),
        cut(reply.get("error") or "", _ERROR),
    ]


def labels_of(row: Record) -> dict[str, str]:
    """Return a question's own labels that are one word or a few."""
    return {key: cut(str(value), 200) for key, value in (row.get("labels") or {}).items() if _plain(value)}


def error_kind(row: Record) -> str:
    """Return what kind of error a reply is, its numbers and addresses left out; nothing where it is none."""
    words = re.sub(r"\d+", "…", " ".join((row["reply"].get("error") or "").split())[:200])
    return cut(words, 90)


def nearest(scores: Mapping[str, Any], family: str, depth: int = 8) -> float | None:
    """Return a metric at the depth nearest to the one wanted, None where it does not apply."""
    depths = [int(name.partition("@")[2]) for name in scores if name.startswith(f"{family}@")]
    if not depths:
        return None
    value: float | None = scores[f"{family}@{min(depths, key=lambda k: abs(k - depth))}"]
    return value if _finite(value) else None


def cut(text: str, longest: int) -> str:
    """Return a text, and a sign where it was cut."""
    return text if len(text) <= longest else f"{text[:longest]} …"


def _finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""
