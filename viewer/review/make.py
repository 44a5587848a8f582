"""A sample of a run as one page that an expert opens by double click, judges, and saves a file from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import track
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.review import REVIEW
from exhibit.schemas.run import RunPassage, RunQuestion
from exhibit.storage.locations import keeping
from exhibit.storage.whole import write_whole
from exhibit.viewer.cases import cut
from exhibit.viewer.page import as_json, page, read
from exhibit.viewer.review.drafts import DraftedBundle, Reviewed
from exhibit.viewer.review.pages import Album, sheets_of
from exhibit.viewer.review.sample import draw_sample
from exhibit.viewer.review.source import Key
from exhibit.viewer.sheets import Record

NAME = "review.html"
_SCRIPTS = ("build.js", "marking.js", "judging.js", "review.js")
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


def make_review(run: Reviewed, path: Path, *, by: Sequence[str], size: int, seed: int) -> Made:
    """Write the page of a sample."""
    drafted = isinstance(run, DraftedBundle)
    if isinstance(run, DraftedBundle):
        keys = run.worth_judging(size)
    else:
        keys = draw_sample(run.questions, by=by, size=size, seed=seed)
    if not keys:
        raise ToolkitError(f"{run.folder}: no question to review")
    with keeping():  # remote documents: a page is drawn in several steps, and questions share documents
        cases, album = _cases(keys, run)
    sample = {"size": len(keys), "of": len(run.questions), "seed": seed, "by": list(by)}
    told = {"format": REVIEW, "review": _identity(run, keys), "run": run.name, "sample": sample, "drafted": drafted}
    text = page(
        f"Review of {run.name} – Exhibit",
        read("review.html"),
        styles=["review.css"],
        scripts=_SCRIPTS,
        data={"data": as_json({"about": told, "cases": cases, "sheets": album.sheets})},
    )
    write_whole(path, text)
    return Made(path, len(cases), len(run.questions), len(album.sheets), album.left_out)


def _cases(keys: Sequence[Key], run: Reviewed) -> tuple[list[Record], Album]:
    album, rows = Album(run), [run.questions[key] for key in keys]
    wanted = [sheets_of(row, run) for row in rows]
    chosen: list[list[str]] = [[] for _ in keys]
    # the best page of every question before the second of any: gold is not crowded out
    turns = [list(enumerate(turn)) for turn in zip_longest(*wanted)]
    steps = [(at, sheet) for turn in turns for at, sheet in turn if sheet is not None]
    for at, (filename, number, around) in track(steps, total=len(steps), label="pages", unit="page"):
        made = album.add(keys[at][0], filename, number, around=around)
        if made is not None:
            chosen[at].append(made)
    cases = [_case(row) | {"sheets": sheets} for row, sheets in zip(rows, chosen, strict=True)]
    return cases, album


def _case(row: RunQuestion) -> Record:
    """Return what a reviewer is shown; not the verdict, which the review is compared with."""
    reply = row.reply
    return {
        "dataset": row.dataset,
        "id": row.id,
        "question": row.question,
        "truth": cut(row.truth, _LONGEST),
        "impossible": row.is_impossible,
        "gold": [
            {
                "filename": gold.filename or "",
                "pages": gold.pages,
                "text": cut(gold.text or "", _LONGEST),
                "spans": gold.places[0] if gold.places else [],
            }
            for gold in row.gold
        ],
        "answer": None if reply.answer is None else cut(reply.answer, _LONGEST),
        "error": reply.error,
        "passages": [
            _passage(passage, number in reply.citations) for number, passage in enumerate(reply.passages[:_PASSAGES], 1)
        ],
    }


def _passage(passage: RunPassage, cited: bool) -> Record:
    return {
        "filename": passage.filename or "",
        "page": passage.page,
        "span": passage.span,
        "text": cut(passage.text or "", _LONGEST),
        "cited": cited,
    }


def _identity(run: Reviewed, keys: Sequence[Key]) -> str:
    """Return what tells this page's answers from another's in a browser's store, and reviews that belong together."""
    told: list[Any] = [run.name, *([*key, run.questions[key].question] for key in keys)]
    return hashlib.sha256(json.dumps(told).encode("ascii")).hexdigest()[:16]
