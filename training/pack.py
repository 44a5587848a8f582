"""The input of training: passages, questions and their answers, as token ids in one file.

A pack is gathered where the bundles are (`training.gather`), and read on the machine with the accelerator,
where reading needs only numpy.
"""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exhibit.schemas.errors import BundleError

FORMAT = "exhibit-pack/1"
MOST_TOKENS = 254
"""The tokens kept of a text: the model reads 256, of which the first and the last are special tokens."""

Ints = npt.NDArray[np.int64]
Role = Literal["own", "train", "test", "heading", "library", "asked"]
ROLES: tuple[Role, ...] = ("own", "train", "test", "heading", "library", "asked")
"""The origins of a query: the converter's wording, a wording for training or testing, a heading, ACORD, a bundle's
row.
"""
Purpose = Literal["training", "measuring"]


@dataclass
class Pack:
    """Tables of training data that refer to each other by row number.

    The passages of a document are consecutive, in reading order.
    """

    purpose: Purpose
    documents: list[dict[str, Any]]
    """For each document: name, source, sha256, split (train or dev)."""
    kinds: list[str]
    """The kinds as `source/kind`, such as `cuad/Governing Law`."""
    passages: Ints
    """Columns: document, start, end, section, heading (-1 = none). A passage's text has the same number as its row."""
    queries: Ints
    """Columns: text, kind (-1 = none), role."""
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
    also: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Columns: query, query: other wordings of a library query, for training."""
    places: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Columns: start, end of each token of the passages, in characters of its passage; for training a reader."""
    short: Ints = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """Columns: row, start, end: the span of the short answer inside a row's gold."""
    says: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Columns: row, verdict: 1 if the answer to a yes-or-no question is yes, 0 if it is no."""
    sentences: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
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


def is_called(kind: str, names: Set[str]) -> bool:
    """Return whether a kind of question is in a set of names.

    The names may contain the benchmark (`cuad/Governing Law`) or not (`Governing Law`).
    """
    return kind in names or kind.partition("/")[2] in names


_ARRAYS = [f.name for f in fields(Pack) if f.name not in {"purpose", "documents", "kinds", "notes"}]

_LATER = {"also", "places", "short", "says", "sentences"}
"""Arrays that packs of earlier formats lack."""


def save_pack(pack: Pack, path: Path) -> None:
    """Write a pack, the data for training the models, to a compressed NumPy file."""
    told = {"format": FORMAT, "purpose": pack.purpose, "documents": pack.documents, "kinds": pack.kinds}
    arrays: dict[str, Any] = {name: _shrink(getattr(pack, name)) for name in _ARRAYS}
    text = json.dumps({**told, "notes": pack.notes}, ensure_ascii=False).encode()
    with path.open("wb") as stream:
        np.savez_compressed(stream, about=np.frombuffer(text, np.uint8), **arrays)


def load_pack(path: Path) -> Pack:
    """Read a pack, a file of training data that `training.gather` wrote; raise an error if the file is not valid."""
    try:
        with np.load(path) as archive:
            told = json.loads(archive["about"].tobytes())
            arrays = {name: archive[name] for name in _ARRAYS if name in archive or name not in _LATER}
    except (OSError, KeyError, ValueError) as error:
        raise BundleError(f"{path}: not a pack: {error}; make a pack with python -m training.gather") from error
    if told.get("format") != FORMAT:
        raise BundleError(
            f"{path}: its format is {told.get('format')!r}, expected {FORMAT!r}; gather it again with training.gather"
        )
    wide = {name: array if name == "tokens" else array.astype(np.int64) for name, array in arrays.items()}
    return Pack(told["purpose"], told["documents"], told["kinds"], notes=told["notes"], **wide)


def _shrink(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array if array.dtype == np.uint16 else array.astype(np.int32)
