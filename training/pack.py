"""The input of training: passages, questions and their answers, as token ids in one file.

`training.gather` writes a pack on the machine with the bundles. The machine with the accelerator needs only numpy to
read the pack.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exhibit.schemas.errors import BundleError

FORMAT = "exhibit-pack/2"
MOST_TOKENS = 254
"""The most tokens of a text: the model reads 256, of which the first and the last are special tokens."""

Ints = npt.NDArray[np.int64]
Role = Literal["own", "train", "test", "heading", "library", "asked"]
ROLES: tuple[Role, ...] = ("own", "train", "test", "heading", "library", "asked")
"""The origins of a query: the converter's wording, one for training or testing, a heading, ACORD, a bundle's row."""


@dataclass
class Pack:
    """Tables of training data that refer to each other by row number."""

    documents: list[dict[str, Any]]
    """For each document: name, source, sha256, split (train or dev)."""
    kinds: list[str]
    """The kinds as `source/kind`, such as `cuad/Governing Law`."""
    passages: Ints
    """Columns: document, start, end, section, heading (-1 = none). A passage's text has the same number as its row."""
    queries: Ints
    """Columns: text, kind (-1 = none), origin (an index in ROLES)."""
    rows: Ints
    """Columns: document, kind, query (the row's own words; -1 if it has a kind), impossible. One row per question."""
    gold: Ints
    """Columns: row, start, end: the spans of the answers in the document."""
    positives: Ints
    """Columns: row, passage, characters: the passages that contain gold, and the number of gold characters."""
    headings: Ints
    """Columns: query, passage: the passages under a heading."""
    grades: Ints
    """Columns: query, document, grade: a library of clauses."""
    tokens: npt.NDArray[np.uint16]
    ends: Ints
    """The end of each text among the tokens; the passages' texts come first."""
    also: Ints
    """Columns: query, query: other wordings of a library query, for training."""
    places: Ints
    """Columns: start, end of each token of the passages, in characters of its passage; for training a reader."""
    short: Ints
    """Columns: row, start, end: the span of the short answer inside a row's gold."""
    says: Ints
    """Columns: row, verdict: 1 if the answer to a yes-or-no question is yes, 0 if it is no."""
    sentences: Ints
    """Columns: start, end of each passage together with the rest of its sentences, as the reader reads it."""
    notes: dict[str, Any] = field(default_factory=dict)

    def text(self, number: int) -> npt.NDArray[np.uint16]:
        """Return the token ids of a text, without special tokens."""
        return self.tokens[self.ends[number - 1] if number else 0 : self.ends[number]]

    def documents_of(self, split: str) -> Ints:
        """Return the indexes, in `documents`, of the documents that belong to a split (`train` or `dev`)."""
        return np.array([n for n, document in enumerate(self.documents) if document["split"] == split], np.int64)

    def passages_of(self, document: int) -> slice:
        """Return the slice of a document's passages."""
        owners = self.passages[:, 0]
        return slice(int(np.searchsorted(owners, document)), int(np.searchsorted(owners, document, side="right")))


_ARRAYS = [f.name for f in fields(Pack) if f.name not in {"documents", "kinds", "notes"}]


def save_pack(pack: Pack, path: Path) -> None:
    """Write a pack, the data for training the models, to a compressed NumPy file."""
    about = {"format": FORMAT, "documents": pack.documents, "kinds": pack.kinds}
    arrays: dict[str, Any] = {name: getattr(pack, name) for name in _ARRAYS}
    small = {name: array if name == "tokens" else array.astype(np.int32) for name, array in arrays.items()}
    text = json.dumps({**about, "notes": pack.notes}, ensure_ascii=False).encode()
    with path.open("wb") as stream:
        np.savez_compressed(stream, about=np.frombuffer(text, np.uint8), **small)


def load_pack(path: Path) -> Pack:
    """Read a pack, a file of training data that `training.gather` wrote; raise an error if the file is not valid."""
    with np.load(path) as archive:
        about = json.loads(archive["about"].tobytes())
        if about.get("format") != FORMAT:
            raise BundleError(f"{path}: not of the format {FORMAT!r}; make it again with python -m training.gather")
        arrays = {name: archive[name] for name in _ARRAYS}
    wide = {name: array if name == "tokens" else array.astype(np.int64) for name, array in arrays.items()}
    return Pack(about["documents"], about["kinds"], notes=about["notes"], **wide)


COVER = 0.5
"""A passage answers if this share of it is gold, or if it contains this share of a gold span."""
_NEAR = 1
"""This many passages before and after a gold passage are never used as wrong: the answer may continue there."""

Random = np.random.Generator


@dataclass(frozen=True)
class Row:
    """A question about a document for training: the passages that answer it, and the passages that may answer it."""

    number: int
    """The row of the question in the pack."""
    document: int
    kind: int
    """The number of the question's kind; -1 = none."""
    query: int
    """The query in the question's own words; -1 if the question has a kind."""
    answers: Ints
    barred: Ints
    """The other passages that contain some of the gold or are adjacent to it: they may be right."""


def list_rows(pack: Pack) -> list[Row]:
    """Return the questions for training: first the questions with an answer, then the others."""
    gold, spans = group_rows(pack.positives), group_rows(pack.gold)
    answerable: list[Row] = []
    impossible: list[Row] = []
    for number, (document, kind, query, lacks) in enumerate(pack.rows.tolist()):
        if pack.documents[document]["split"] != "train" or not (lacks or number in gold):
            continue
        inside, cover = gold.get(number, NOTHING), []
        for passage, count in inside.tolist():
            _, start, end, *_ = pack.passages[passage].tolist()
            held = [(min(end, last) - max(start, first)) / (last - first) for first, last in spans[number].tolist()]
            cover.append(max([count / (end - start), *held]))
        covered = np.array(cover)
        answers = inside[covered >= min(COVER, covered.max()), 0] if cover else NOTHING[:, 0]
        span = pack.passages_of(document)
        near = np.unique(inside[:, :1] + np.arange(-_NEAR, _NEAR + 1))
        barred = np.setdiff1d(near[(near >= span.start) & (near < span.stop)], answers)
        (impossible if lacks else answerable).append(Row(number, document, kind, query, answers, barred))
    return [*answerable, *impossible]


NOTHING: Ints = np.zeros((0, 2), np.int64)


def group_rows(table: Ints) -> dict[int, Ints]:
    """Return the lines of a table by the number in its first column, without that column."""
    groups: dict[int, list[list[int]]] = defaultdict(list)
    for row, *line in table.tolist():
        groups[row].append(line)
    return {row: np.array(lines, np.int64) for row, lines in groups.items()}


def list_wordings(pack: Pack, *roles: Role) -> dict[int, Ints]:
    """Return, for each kind of question, the numbers of its queries from the given origins (see ROLES)."""
    wanted = np.isin(pack.queries[:, 2], [ROLES.index(role) for role in roles])
    return {kind: np.flatnonzero((pack.queries[:, 1] == kind) & wanted) for kind in range(len(pack.kinds))}
