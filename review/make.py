"""A sample of a run as one page that an expert opens by double click, judges, and saves a file from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import track
from exhibit.evaluation.report.shell import as_json, page
from exhibit.review.pages import Album, sheets_of
from exhibit.review.sample import draw_sample
from exhibit.review.source import Key, Record, ReviewedRun
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.review import REVIEW
from exhibit.storage.locations import keeping
from exhibit.storage.whole import write_whole

NAME = "review.html"
_HERE = Path(__file__).parent
_SCRIPTS = ("marking.js", "case.js", "review.js")
_PASSAGES = 8
"""Passages that are given in words."""
_LONGEST = 20_000
"""A text of a reply beyond this is cut: a model that repeats itself must not fill the page."""


class Made(NamedTuple):
    """A page that was written."""

    path: Path
    cases: int
    of: int
    sheets: int
    left_out: int
    """Pages that could not be drawn or did not fit."""


def make_review(run: ReviewedRun, path: Path, *, by: Sequence[str], size: int, seed: int) -> Made:
    """Write the page of a sample."""
    keys = draw_sample(run.rows, by=by, size=size, seed=seed)
    if not keys:
        raise ToolkitError(f"{run.folder}: no question to review")
    with keeping():  # remote documents: a page is drawn in several steps, and questions share documents
        cases, album = _cases(keys, run)
    sample = {"size": len(keys), "of": len(run.rows), "seed": seed, "by": list(by)}
    told = {"format": REVIEW, "review": _identity(run, keys), "run": run.name, "sample": sample}
    text = page(
        f"Review of {run.name} – Exhibit",
        (_HERE / "review.html").read_text(encoding="utf-8"),
        style=(_HERE / "review.css").read_text(encoding="utf-8"),
        scripts=[(_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS],
        data={"data": as_json({"about": told, "cases": cases, "sheets": album.sheets})},
    )
    write_whole(path, text)
    return Made(path, len(cases), len(run.rows), len(album.sheets), album.left_out)


def _cases(keys: Sequence[Key], run: ReviewedRun) -> tuple[list[Record], Album]:
    album = Album(run)
    wanted = [sheets_of(key, run.rows[key], run) for key in keys]
    chosen: list[list[str]] = [[] for _ in keys]
    # the best page of every question before the second of any: gold is not crowded out
    turns = [list(enumerate(turn)) for turn in zip_longest(*wanted)]
    steps = [(at, sheet) for turn in turns for at, sheet in turn if sheet is not None]
    for at, (filename, number, around) in track(steps, total=len(steps), label="pages", unit="page"):
        made = album.add(keys[at][0], filename, number, around=around)
        if made is not None:
            chosen[at].append(made)
    cases = [_case(key, run.rows[key]) | {"sheets": sheets} for key, sheets in zip(keys, chosen, strict=True)]
    return cases, album


def _case(key: Key, row: Record) -> Record:
    """Return what a reviewer is shown; not the verdict, which the review is compared with."""
    reply = row.get("reply") or {}
    cited = set(reply.get("citations") or ())
    return {
        "dataset": key[0],
        "id": key[1],
        "question": row["question"],
        "truth": _cut(row.get("truth") or ""),
        "impossible": bool(row.get("is_impossible")),
        "gold": [
            {
                "filename": gold.get("filename") or "",
                "pages": gold.get("pages") or [],
                "text": _cut(gold.get("text") or ""),
                "spans": (gold.get("places") or [[]])[0],
            }
            for gold in row.get("gold") or ()
        ],
        "answer": None if reply.get("answer") is None else _cut(reply["answer"]),
        "error": reply.get("error") or "",
        "passages": [
            _passage(passage, number in cited)
            for number, passage in enumerate((reply.get("passages") or [])[:_PASSAGES], 1)
        ],
    }


def _passage(passage: Record, cited: bool) -> Record:
    return {
        "filename": passage.get("filename") or "",
        "page": passage.get("page"),
        "span": passage.get("span"),
        "text": _cut(passage.get("text") or ""),
        "cited": cited,
    }


def _identity(run: ReviewedRun, keys: Sequence[Key]) -> str:
    """Return what tells this page's answers from another's in a browser's store, and reviews that belong together."""
    told: list[Any] = [run.name, *([*key, run.rows[key]["question"]] for key in keys)]
    return hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()[:16]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
