"""What training reads: passages, questions and which answers which, as token ids in one file.

A pack is gathered where the bundles are (`training.gather`) and read where the accelerator is: it needs numpy alone.
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
"""Tokens kept of a text: the model reads 256, and its first and last mark the ends."""

Ints = npt.NDArray[np.int64]
Role = Literal["own", "train", "test", "heading", "library", "asked"]
ROLES: tuple[Role, ...] = ("own", "train", "test", "heading", "library", "asked")
"""Where a question comes from: the converter's wording, ours for training or testing, a heading, ACORD, a row."""
Purpose = Literal["training", "measuring"]


@dataclass
class Pack:
    """Tables that point into each other by row; passages of a document stand together, in reading order."""

    purpose: Purpose
    documents: list[dict[str, Any]]
    """name, source, sha256, split (train or dev) of each document."""
    kinds: list[str]
    """`source/kind`, as `cuad/Governing Law`."""
    passages: Ints
    """document, start, end, section, heading: one row a passage; its text has the same number. heading = -1: none."""
    queries: Ints
    """text, kind, role: kind = -1 where a question is of none."""
    rows: Ints
    """document, kind, query, impossible: a question of a bundle; query = its own words, -1 where it has a kind."""
    gold: Ints
    """row, start, end: where the answers stand in the document."""
    positives: Ints
    """row, passage, characters: which passages have gold in them, and how much."""
    headings: Ints
    """query, passage: what stands under a heading."""
    grades: Ints
    """query, document, grade: a library of clauses."""
    tokens: npt.NDArray[np.uint16]
    ends: Ints
    """Where each text ends among the tokens; passages first."""
    also: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """query, query: other words for a query on a library of clauses, to train on."""
    places: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """start, end of each token of the passages, in characters of its passage: what a reader is taught by."""
    short: Ints = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """row, start, end: where the short answer stands inside a row's gold."""
    says: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """row, verdict: 1 if the answer to a yes-or-no question is yes, 0 if it is no."""
    notes: dict[str, Any] = field(default_factory=dict)

    def text(self, number: int) -> npt.NDArray[np.uint16]:
        """Return the token ids of a text, without marks."""
        return self.tokens[self.ends[number - 1] if number else 0 : self.ends[number]]

    def documents_of(self, split: str) -> Ints:
        """Return the numbers of the documents of a split."""
        return np.array([n for n, document in enumerate(self.documents) if document["split"] == split], np.int64)

    def passages_of(self, document: int) -> slice:
        """Return where a document's passages stand."""
        owners = self.passages[:, 0]
        return slice(int(np.searchsorted(owners, document)), int(np.searchsorted(owners, document, side="right")))


def is_called(kind: str, names: Set[str]) -> bool:
    """Return whether one of the names is a kind's: `cuad/Rofr/Rofo/Rofn`, or without its benchmark."""
    return kind in names or kind.partition("/")[2] in names


_ARRAYS = [f.name for f in fields(Pack) if f.name not in {"purpose", "documents", "kinds", "notes"}]

_LATER = {"also", "places", "short", "says"}
"""Arrays that packs of before do not have."""


def save_pack(pack: Pack, path: Path) -> None:
    """Write a pack, compressed."""
    told = {"format": FORMAT, "purpose": pack.purpose, "documents": pack.documents, "kinds": pack.kinds}
    arrays: dict[str, Any] = {name: _small(getattr(pack, name)) for name in _ARRAYS}
    text = json.dumps({**told, "notes": pack.notes}, ensure_ascii=False).encode()
    with path.open("wb") as stream:
        np.savez_compressed(stream, about=np.frombuffer(text, np.uint8), **arrays)


def load_pack(path: Path) -> Pack:
    """Read a pack."""
    try:
        with np.load(path) as archive:
            told = json.loads(archive["about"].tobytes())
            arrays = {name: archive[name] for name in _ARRAYS if name in archive or name not in _LATER}
    except (OSError, KeyError, ValueError) as error:
        raise BundleError(f"{path}: not a pack: {error}; make one with python -m training.gather") from error
    if told.get("format") != FORMAT:
        raise BundleError(f"{path}: format {told.get('format')!r}, expected {FORMAT!r}; gather it again")
    wide = {name: array if name == "tokens" else array.astype(np.int64) for name, array in arrays.items()}
    return Pack(told["purpose"], told["documents"], told["kinds"], notes=told["notes"], **wide)


def _small(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array if array.dtype == np.uint16 else array.astype(np.int32)
