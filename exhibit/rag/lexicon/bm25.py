"""The BM25 index of chunks or headings: the stored counts of their words, and the search over these counts."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.law.language import PART, is_content, list_numbers, list_word_parts, list_written_words, stem
from exhibit.models.protocols import Vectors
from exhibit.rag.database import Database
from exhibit.rag.lexicon.postings import FIELDS, Postings, Terms, digest
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import rank_keys
from exhibit.schemas.errors import BundleError

Counts = npt.NDArray[np.float32]
Lengths = npt.NDArray[np.uint16]

SATURATION = 1.2
"""BM25's k1: the larger it is, the more do further occurrences of a word count. The textbook's value."""
LENGTH = 0.5
"""BM25's b, the weight of the text's length. Lower than the textbook's 0.75, since all chunks have about one size."""

_PART_OF_WORD = 1 / 3
"""The weight of a part of a compound word. Between a half and a quarter the right decision of LegalQuAD is first for 82
or 83 of 100 questions; without parts for 78.
"""
_MOST = 255
"""The greatest count that fits a byte; a word that occurs more often in 500 characters is a line of dashes."""
_REMEMBERED = 1 << 16
"""The number of words whose digests are cached: some 8 MB; a contract has 2,000 different words."""
_TOGETHER = 256
"""The number of documents whose keys and lengths form one row of the database."""


def compute_rarity(spread: npt.NDArray[np.integer[Any]], total: int | Keys) -> Counts:
    """Return BM25's idf of terms, which is never negative.

    `spread` is the number of chunks that contain each term, `total` the number of all chunks.
    """
    return np.log1p((total - spread + 0.5) / (spread + 0.5)).astype(np.float32)


def weigh_terms(terms: Sequence[str]) -> Counts:
    """Return the weight of each term: 1 for a whole word, a third for a part of a compound word."""
    return np.array([_PART_OF_WORD if term.startswith(PART) else 1.0 for term in terms], np.float32)


class Counted(NamedTuple):
    """The term counts of several texts, as arrays: a Counter for each text would take twenty times the memory."""

    lengths: npt.NDArray[np.uint16]
    """The number of terms of each text, with repetitions."""
    sizes: npt.NDArray[np.uint32]
    """The number of distinct terms of each text."""
    terms: Terms
    counts: npt.NDArray[np.uint8]


_EMPTY = -1
"""The number that stands for every stop word instead of a digest."""


@lru_cache(_REMEMBERED)
def _digest_of(word: str) -> int:
    """Return the digest of the stem of a lower-case word; -1 for a stop word."""
    return digest(stem(word)) if is_content(word) else _EMPTY


def count_terms(texts: Iterable[str], *, parts: bool = False) -> Counted:
    """Return the term counts of each text, for `Words.add_counted`.

    With `parts`, the parts of compound words are counted as well.
    """
    digests: list[int] = []
    written: list[int] = []
    for text in texts:
        before = len(digests)
        digests += map(_digest_of, list_written_words(text))
        digests += map(digest, list_numbers(text))
        digests += map(digest, list_word_parts(text) if parts else ())
        written.append(len(digests) - before)
    total = len(written)
    terms = np.array(digests, np.int64)
    kept = terms != _EMPTY
    owners = np.repeat(np.arange(total), written)[kept]
    # one sort for all texts: a counter for each text takes a fifth longer (29,000 chunks of LegalBench-RAG-mini)
    entries, counts = np.unique(owners << 32 | terms[kept], return_counts=True)
    return Counted(
        lengths=np.minimum(np.bincount(owners, minlength=total), 0xFFFF).astype(np.uint16),
        sizes=np.bincount(entries >> 32, minlength=total).astype(np.uint32),
        terms=entries.astype(np.uint32),  # the digest is the lower half
        counts=np.minimum(counts, _MOST).astype(np.uint8),
    )


class Words:
    """The words of chunks or headings with BM25 search; postings are on disk, keys and text lengths in memory."""

    def __init__(self, database: Database | None = None, field: str = "words") -> None:
        self._database = database or Database()
        self._field = FIELDS.index(field)
        # a section's key contains its document's number, and needs more bits
        owners = np.uint32 if field == "words" else np.int64
        self._postings = Postings(self._database, field, owners=owners, counts=np.uint8)
        self._pending: list[tuple[Keys, Lengths]] = []
        self._read: tuple[Keys, Lengths] | None = None
        self._known_norms: Counts | None = None

    def __len__(self) -> int:
        return len(self._keys)

    # ---------------------------------------------------------------- changes

    def add(self, keys: Sequence[int] | Keys, texts: Iterable[str]) -> None:
        """Add texts; each key must be greater than all earlier keys."""
        self.add_counted(keys, count_terms(texts))

    def add_counted(self, keys: Sequence[int] | Keys, counted: Counted) -> None:
        """Add texts by their term counts, as `count_terms` returns them."""
        owners = np.asarray(keys, np.int64)
        self._postings.add(counted.terms, np.repeat(owners, counted.sizes), counted.counts)
        self._pending.append((owners, counted.lengths))
        self._read = None
        if len(self._pending) >= _TOGETHER:
            self._write_lengths()

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove texts; unknown keys are ignored."""
        kept = ~np.isin(self._keys, np.asarray(keys, np.int64))
        self._pending = [(self._keys[kept], self._lengths[kept])]
        self._database.write("DELETE FROM lengths WHERE field = ?", [(self._field,)])
        self._write_lengths()
        self._postings.remove(np.asarray(keys, np.int64))

    def save(self) -> None:
        """Write all additions to the database."""
        self._write_lengths()
        self._postings.save()

    def _write_lengths(self) -> None:
        self._read = None
        added = [(keys, lengths) for keys, lengths in self._pending if len(keys)]
        self._pending = []
        if added:
            keys, lengths = (np.concatenate(column) for column in zip(*added, strict=True))
            row = (self._field, int(keys[0]), keys.tobytes(), lengths.tobytes())
            self._database.write("INSERT INTO lengths VALUES (?, ?, ?, ?)", [row])

    def _read_columns(self) -> tuple[Keys, Lengths]:
        """Return all keys in order, and the number of words of each text."""
        if self._read is None:
            self._write_lengths()
            rows = self._database.read("SELECT keys, lengths FROM lengths WHERE field = ? ORDER BY first", self._field)
            with self._database.report_damage():
                keys = np.frombuffer(b"".join(keys for keys, _ in rows), np.int64)
                lengths = np.frombuffer(b"".join(lengths for _, lengths in rows), np.uint16)
                if len(lengths) != len(keys) or not (np.diff(keys) > 0).all():
                    raise ValueError("the keys in its table of text lengths are out of order or incomplete")
            self._read, self._known_norms = (keys, lengths), None
            self._mean = (float(lengths.mean()) if len(lengths) else 0.0) or 1.0
        return self._read

    @property
    def _keys(self) -> Keys:
        return self._read_columns()[0]

    @property
    def _lengths(self) -> Lengths:
        return self._read_columns()[1]

    # ---------------------------------------------------------------- searches

    def find_lengths(self, keys: Keys) -> Counts:
        """Return the number of terms of each text; 0 for an unknown key."""
        rows, here = self._find_places(keys)
        counts = np.zeros(len(keys), np.float32)
        counts[here] = self._lengths[rows[here]]
        return counts

    def compute_rarity(self, asked: Sequence[str]) -> Counts:
        """Return BM25's idf of each term over the whole collection: rare words weigh more."""
        spread = np.array([len(self._postings.find(term)[0]) for term in asked], np.int64)
        return compute_rarity(spread, len(self._keys)) * weigh_terms(asked)

    def count_frequencies(self, asked: Sequence[str], keys: Keys) -> Counts:
        """Return the frequency of each term in each text of `keys` (in order): a row per text, a column per term."""
        table = np.zeros((len(keys), len(asked)), np.float32)
        for column, term in enumerate(asked if len(keys) else ()):
            owners, counts = self._postings.find(term)
            if len(owners):
                at = np.minimum(np.searchsorted(owners, keys), len(owners) - 1)
                hits = owners[at] == keys
                table[hits, column] = counts[at[hits]]
        return table

    def score_terms(self, asked: Sequence[str], keys: Keys) -> Counts:
        """Return the BM25 score of each chunk of `keys` (in order) for each term, without the term's idf."""
        return self._compute_bm25(self.count_frequencies(asked, keys), self.find_lengths(keys)[:, None])

    def scores(self, asked: Sequence[str], keys: Keys) -> Counts:
        """Return the BM25 score of each chunk of `keys` (in order)."""
        with np.errstate(invalid="ignore"):  # some BLAS raise the flag for padding; all values are finite here
            sums: Counts = self.score_terms(asked, keys) @ self.compute_rarity(asked)
        return sums

    def search(self, asked: Sequence[str], k: int, *, method: str = "bm25") -> tuple[Vectors, Keys]:
        """Return the scores and keys of the k texts that match the words `asked` best, best first.

        With the method `tfidf`, the score is the cosine of the TF-IDF vectors times the norm of the question's
        vector. This factor is the same for all texts, so that it does not change their order.
        """
        total = np.zeros(len(self._keys), np.float32)
        for term, weight in zip(asked, self.compute_rarity(asked), strict=True):
            owners, counts = self._postings.find(term)
            rows, here = self._find_places(owners)
            if not here.all():
                raise BundleError(
                    "the table of words names a text that is not in the index; build the index again (--ingest fresh)"
                )
            often = counts.astype(np.float32)
            if method == "tfidf":
                total[rows] += weight * weight * often / self._norms[rows]
            else:
                total[rows] += weight * self._compute_bm25(often, self._lengths[rows].astype(np.float32))
        some = np.flatnonzero(total > 0)  # nonzero on numbers takes four times as long as on booleans
        if len(some) > k:
            some = np.sort(some[np.argpartition(-total[some], k - 1)[:k]])
        [scores], [keys] = rank_keys(total[None, some], self._keys[None, some], min(k, len(some)))
        return scores, keys

    @property
    def _norms(self) -> Counts:
        """The norm of each text's TF-IDF vector, computed from all words at the first use."""
        if self._known_norms is None:
            squares = np.full(len(self._keys), 1e-9)  # avoids a division by zero for a text without words
            for terms, owners, counts in self._postings.blocks():
                _, place, spread = np.unique(terms, return_inverse=True, return_counts=True)
                weighted = counts * compute_rarity(spread, len(self._keys))[place]
                np.add.at(squares, self._find_places(owners.astype(np.int64))[0], weighted.astype(np.float64) ** 2)
            self._known_norms = np.sqrt(squares).astype(np.float32)
        return self._known_norms

    def _compute_bm25(self, counts: Counts, lengths: Counts) -> Counts:
        norm = SATURATION * (1 - LENGTH + LENGTH * lengths / self._mean)
        weights: Counts = (counts * (SATURATION + 1) / (counts + norm)).astype(np.float32)
        return weights

    def _find_places(self, keys: Keys) -> tuple[Keys, npt.NDArray[np.bool_]]:
        """Return the row of each key, and for each key whether it exists; the row of an unknown key has no meaning."""
        own = self._keys
        if not len(own):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        if own[-1] - own[0] == len(own) - 1:  # no key was removed, so the rows are consecutive
            rows = np.clip(keys - own[0], 0, len(own) - 1)
        else:
            rows = np.minimum(np.searchsorted(own, keys), len(own) - 1)
        return rows, own[rows] == keys
