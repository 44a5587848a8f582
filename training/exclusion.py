"""Documents that no model may be trained on: recognised by name, or by text shared with a listed document."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from exhibit.law.language import list_word_runs
from exhibit.law.names import make_file_key
from exhibit.schemas.errors import SourceError

NEVER = frozenset({"legalbenchrag", "privacyqa", "cpr"})
"""Bundles that retrieval is measured on, so that no document of them is trained on."""
SHINGLE = 8
"""The number of consecutive words that are compared: eight are rarely equal by chance, and a short clause has as
many.
"""
MOST_SHARED = 0.5
"""The share of its shingles in excluded documents from which on a text repeats them. Boilerplate stays below 0.2."""

_FACTOR = np.uint64(1_099_511_628_211)

Shingles = npt.NDArray[np.uint64]


def read_names(path: Path) -> frozenset[str]:
    """Return the names in the column `document` of a file, normalised by `make_document_key`."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    if not rows or "document" not in rows[0]:
        raise SourceError(f"{path}: no column 'document'; expected tab-separated benchmark, where, document")
    return frozenset(make_document_key(row["document"]) for row in rows)


def make_document_key(name: str) -> str:
    """Return a document's name without folder, extension, case and punctuation.

    Names in different lists can then be compared, even if the lists write the same name differently.
    """
    return make_file_key(PurePosixPath(unquote(name)).name)


def make_shingles(text: str) -> Shingles:
    """Return the hashes of all sequences of eight consecutive words in a text, each hash once."""
    words = np.array([zlib.crc32(word.encode()) for word in list_word_runs(text.casefold())], np.uint64)
    count = max(len(words) - SHINGLE + 1, 0)
    total = np.zeros(count, np.uint64)
    with np.errstate(over="ignore"):  # the hashes overflow on purpose
        for step in range(SHINGLE):
            total = total * _FACTOR + words[step : step + count]
    return np.unique(total)


class Excluded:
    """The documents that no model may be trained on: their names, and hashes of all their eight-word sequences.

    The hashes (shingles) show whether another text repeats one of these documents.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)
        self._seen: list[Shingles] = []
        self._all: Shingles = np.zeros(0, np.uint64)

    def lists(self, name: str) -> bool:
        """Return whether a document's name is in the list of documents that no model may be trained on."""
        return make_document_key(name) in self.names

    def learn(self, text: str) -> None:
        """Remember the text of a document that must not be used for training, as shingles (hashes of eight words)."""
        self._seen.append(make_shingles(text))
        self._all = np.zeros(0, np.uint64)

    def measure_shared(self, text: str) -> float:
        """Return the share of a text's shingles that excluded documents contain."""
        if self._seen and not len(self._all):
            self._all = np.unique(np.concatenate(self._seen))
        own = make_shingles(text)
        if not len(own) or not len(self._all):
            return 0.0
        places = np.minimum(np.searchsorted(self._all, own), len(self._all) - 1)
        return float((self._all[places] == own).mean())

    def repeats(self, text: str) -> bool:
        """Return whether at least half of a text's shingles are in excluded documents."""
        return self.measure_shared(text) >= MOST_SHARED
