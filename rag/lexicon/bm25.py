"""The words of chunks: which chunk has which word how often, in postings, for BM25 and what is made of it.

A word is kept as a 32-bit digest of its stem, so there is no vocabulary to hold, to merge or to renumber. Two words
of a collection that share a digest are rarer than misprints: 200,000 words leave a query word a chance of 1 in 20,000.
Ten million entries (310,000 chunks) take 50 MB on disk, where they stay: a question looks at those of its words.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.law.words import is_content, numbers, stem, written_words
from exhibit.models.protocols import Vectors
from exhibit.rag.columns import Array, Column, opened_archive, write_archive
from exhibit.rag.lexicon.runs import Entries, Runs
from exhibit.rag.protocols import Keys
from exhibit.rag.ranking import ranked
from exhibit.schemas.errors import BundleError

Terms = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.float32]

SATURATION = 1.2
"""BM25's k1: how soon a word that comes again stops counting; the textbook value."""
LENGTH = 0.5
"""BM25's b: chunks are cut to one size, so their lengths say less than the textbook's 0.75 supposes."""

_MOST = 255
"""Counts fit a byte; a word that comes more often in 500 characters is a rule of dashes."""
_REMEMBERED = 1 << 16
"""Words whose digests are remembered: some 8 MB; a contract has 2,000."""
_JOINED = 256
"""Documents whose keys are put into one array while an index is built."""
_WAITING = 1 << 18
"""Entries in memory before they are put aside on disk: 2.4 MB, the words of some 6,000 chunks."""


@lru_cache(maxsize=1 << 14)
def digest(term: str) -> int:
    """Return the number that a term is kept under."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def rarity(spread: npt.NDArray[np.integer[Any]], total: int | Keys) -> Counts:
    """Return BM25's idf of terms that so many of `total` chunks have: rare words weigh more, and none below nothing."""
    return np.log1p((total - spread + 0.5) / (spread + 0.5)).astype(np.float32)


class Counted(NamedTuple):
    """The words of some texts in arrays: a counter a text would take twenty times as much."""

    lengths: npt.NDArray[np.uint16]
    """How many terms each text has, repeats included."""
    sizes: npt.NDArray[np.uint32]
    """How many different ones."""
    terms: Terms
    counts: npt.NDArray[np.uint8]


class _Digests(dict[str, int]):
    """Words in lower case to the digest of what they are kept under, below 0 where they are not; each is made once."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        self[word] = number = digest(stem(word)) if is_content(word) else _EMPTY
        return number


_EMPTY = -1
"""Instead of the digest of a word that carries no meaning."""
_digests = _Digests()


def count_terms(texts: Iterable[str]) -> Counted:
    """Return how often each text has which term, of its search terms: all that `Words` needs to know of it."""
    digests: list[int] = []
    written: list[int] = []
    for text in texts:
        before = len(digests)
        digests += map(_digests.__getitem__, written_words(text))
        digests += map(digest, numbers(text))
        written.append(len(digests) - before)
    total = len(written)
    terms = np.array(digests, np.int64)
    kept = terms != _EMPTY
    owners = np.repeat(np.arange(total), written)[kept]
    # one sort for all texts: a counter for each takes a fifth longer (29,000 chunks of LegalBench-RAG-mini)
    entries, counts = np.unique(owners << 32 | terms[kept], return_counts=True)
    return Counted(
        lengths=np.minimum(np.bincount(owners, minlength=total), 0xFFFF).astype(np.uint16),
        sizes=np.bincount(entries >> 32, minlength=total).astype(np.uint32),
        terms=entries.astype(np.uint32),  # the digest is the lower half
        counts=np.minimum(counts, _MOST).astype(np.uint8),
    )


class Words:
    """The words of chunks under the chunks' keys; changes are in memory until `save`, or in files without a name."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._keys: Keys = np.zeros(0, np.int64)
        self._lengths: npt.NDArray[np.uint16] = np.zeros(0, np.uint16)
        self._terms: Terms = np.zeros(0, np.uint32)
        """Each term that occurs, in order; its postings are `_rows[_ends[i - 1] : _ends[i]]`."""
        self._ends: Keys = np.zeros(0, np.int64)
        self._rows: Terms = np.zeros(0, np.uint32)
        self._counts: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._new: list[tuple[Keys, npt.NDArray[np.uint16]]] = []
        self._single = 0
        """How many of the last of them are each of one document."""
        self._aside: tuple[Column, Column] | None = None
        """Keys and lengths before those, on disk."""
        self._runs = Runs(np.uint32, np.uint8, folder=path.parent if path else None, most=_WAITING)
        self._merged: tuple[Column, ...] | None = None
        """Keys, lengths, rows and counts that were merged on disk, until somebody looks at them."""
        self._total = 0
        self._measure()

    def __len__(self) -> int:
        return self._total

    # ---------------------------------------------------------------- changing them

    def add(self, keys: Sequence[int] | Keys, texts: Iterable[str]) -> None:
        """Add chunks; a key is above all that were added before."""
        self.add_counted(keys, count_terms(texts))

    def add_counted(self, keys: Sequence[int] | Keys, counted: Counted) -> None:
        """Add chunks whose words were counted before."""
        rows = np.repeat(np.arange(self._total, self._total + len(keys), dtype=np.uint32), counted.sizes)
        self._new.append((np.asarray(keys, np.int64), counted.lengths))
        self._single += 1
        if self._single == _JOINED:  # a hundred bytes of each array are its own: those of many are one
            self._put_aside(_JOINED)
        self._runs.add(Entries(counted.terms, rows, counted.counts))
        self._total += len(keys)

    def _put_aside(self, many: int) -> None:
        """Have the keys and lengths of the last so many in one array each; on disk, where there is a folder."""
        tail = self._new[-many:]
        joined = np.concatenate([keys for keys, _ in tail]), np.concatenate([lengths for _, lengths in tail])
        self._new[-many:] = [joined] if self.path is None else []
        self._single = 0
        if self.path is None:
            return
        if self._aside is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._aside = Column(np.int64, self.path.parent), Column(np.uint16, self.path.parent)
        for column, part in zip(self._aside, joined, strict=True):
            column.append(part)

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove chunks; keys that are not there are passed over."""
        self._join()
        kept = ~np.isin(self._keys, np.asarray(keys, np.int64))
        places = np.cumsum(kept) - 1
        entries = kept[self._rows]
        owners = np.repeat(self._terms, np.diff(self._ends, prepend=0))[entries]
        self._keys, self._lengths = self._keys[kept], self._lengths[kept]
        self._total = len(self._keys)
        self._post(Entries(owners, places[self._rows[entries]].astype(np.uint32), self._counts[entries]))

    def _join(self) -> None:
        """Have everything in memory, with what was added since the last look merged into the postings."""
        if self._merged is not None:
            self._keys, self._lengths, self._rows, self._counts = (column.read() for column in self._merged)
            self._merged = None  # its files are closed, and gone
            self._measure()
        if not self._has_new:
            return
        self._join_keys()
        added = self._runs.take()
        before = np.repeat(self._terms, np.diff(self._ends, prepend=0))
        self._post(
            Entries(
                np.concatenate([before, added.terms]),
                np.concatenate([self._rows, added.owners]),
                np.concatenate([self._counts, added.counts]),
            )
        )

    @property
    def _has_new(self) -> bool:
        return bool(self._new) or self._aside is not None

    def _join_keys(self) -> None:
        if self._aside is not None:
            keys, lengths = self._aside
            self._new.insert(0, (keys.read(), lengths.read()))
            self._aside = None  # its files are closed, and gone
        self._keys = np.concatenate([self._keys, *(keys for keys, _ in self._new)])
        self._lengths = np.concatenate([self._lengths, *(lengths for _, lengths in self._new)])
        self._new, self._single = [], 0
        self._check_keys([self._keys])
        self._measure()

    def _check_keys(self, pieces: Iterable[Keys]) -> None:
        last = -1
        for keys in pieces:
            if len(keys) and not (keys[0] > last and (np.diff(keys) > 0).all()):
                raise BundleError(f"{self.path or 'words'}: keys of chunks must grow; this is a defect of the caller")
            last = int(keys[-1]) if len(keys) else last

    def _post(self, entries: Entries) -> None:
        """Sort entries by term and row."""
        owners, self._rows, self._counts = entries.sorted()
        self._terms, sizes = np.unique(owners, return_counts=True)
        self._ends = np.cumsum(sizes).astype(np.int64)
        self._measure()

    def _merge(self, folder: Path) -> None:
        """Sort what was put aside on disk, and leave it there: too much for memory, perhaps."""
        if self._new:
            self._put_aside(len(self._new))
        keys, lengths = self._aside or (Column(np.int64, folder), Column(np.uint16, folder))
        self._check_keys(keys.pieces())
        rows, counts = Column(np.uint32, folder), Column(np.uint8, folder)
        blocks = [(np.zeros(0, np.uint32), np.zeros(0, np.int64))]
        for block in self._runs.blocks():
            terms, sizes = np.unique(block.terms, return_counts=True)
            before, ended = blocks[-1]
            if len(terms) and len(before) and before[-1] == terms[0]:  # a frequent term goes on
                ended[-1] += sizes[0]
                terms, sizes = terms[1:], sizes[1:]
            if len(terms):
                blocks.append((terms, sizes))
            rows.append(block.owners)
            counts.append(block.counts)
        self._terms = np.concatenate([terms for terms, _ in blocks])
        self._ends = np.cumsum(np.concatenate([sizes for _, sizes in blocks])).astype(np.int64)
        self._merged, self._aside = (keys, lengths, rows, counts), None

    def _measure(self) -> None:
        self._mean = (float(self._lengths.mean()) if len(self._lengths) else 0.0) or 1.0

    # ---------------------------------------------------------------- on disk

    def save(self) -> None:
        """Write everything to the path; the same words give the same bytes."""
        if self.path is None:
            raise BundleError("these words have no file; open them with a path")
        if self._runs.on_disk and not len(self._terms) and not len(self._keys):
            self._merge(self.path.parent)
        elif self._has_new:
            self._join()
        held: tuple[Array | Column, ...] = self._merged or (self._keys, self._lengths, self._rows, self._counts)
        keys, lengths, rows, counts = held
        postings: dict[str, Array | Column] = {"terms": self._terms, "ends": self._ends, "rows": rows, "counts": counts}
        write_archive(self.path, {"keys": keys, "lengths": lengths, **postings})

    # ---------------------------------------------------------------- looking

    def lengths(self, keys: Keys) -> Counts:
        """Return how many terms each chunk has; 0 for one that is not there."""
        self._join()
        rows, here = self._places(keys)
        counts = np.zeros(len(keys), np.float32)
        counts[here] = self._lengths[rows[here]]
        return counts

    def rarity(self, asked: Sequence[str]) -> Counts:
        """Return BM25's idf of each term over the whole collection: rare words weigh more."""
        self._join()
        sizes = [window.stop - window.start for window in map(self._window, asked)]
        return rarity(np.array(sizes, np.int64), len(self._keys))

    def frequencies(self, asked: Sequence[str], keys: Keys) -> Counts:
        """Return how often each chunk of `keys` (in order) has each term: a row a chunk, a column a term."""
        self._join()
        rows, here = self._places(keys)
        table = np.zeros((len(keys), len(asked)), np.float32)
        if not len(keys) or not here.any():
            return table
        places = np.flatnonzero(here)
        wanted = rows[places].astype(np.uint32)
        for column, term in enumerate(asked):
            posted, counts = self._postings(term)
            low, high = np.searchsorted(posted, [wanted[0], wanted[-1] + 1])
            posted, counts = posted[low:high], counts[low:high]
            if len(posted) > len(wanted):  # the fewer are looked up in the more
                at = np.minimum(np.searchsorted(posted, wanted), len(posted) - 1)
                hits = posted[at] == wanted
                table[places[hits], column] = counts[at[hits]]
            elif len(posted):
                at = np.minimum(np.searchsorted(wanted, posted), len(wanted) - 1)
                hits = wanted[at] == posted
                table[places[at[hits]], column] = counts[hits]
        return table

    def evidence(self, asked: Sequence[str], keys: Keys) -> Counts:
        """Return BM25 of each chunk of `keys` (in order) for each term apart, before the term's rarity is counted."""
        return self._bm25(self.frequencies(asked, keys), self.lengths(keys)[:, None])

    def scores(self, asked: Sequence[str], keys: Keys) -> Counts:
        """Return BM25 of each chunk of `keys` (in order)."""
        with np.errstate(invalid="ignore"):  # some BLAS raise the flag for lanes that they fill up; all is finite here
            sums: Counts = self.evidence(asked, keys) @ self.rarity(asked)
        return sums

    def search(self, asked: Sequence[str], k: int) -> tuple[Vectors, Keys]:
        """Return scores and keys of the k chunks of all that score highest by BM25, best first."""
        self._join()
        total = np.zeros(len(self._keys), np.float32)
        for term, weight in zip(asked, self.rarity(asked), strict=True):
            rows, counts = self._postings(term)
            total[rows] += weight * self._bm25(counts.astype(np.float32), self._lengths[rows].astype(np.float32))
        some = np.flatnonzero(total > 0)  # of numbers it takes four times as long
        if len(some) > k:
            some = np.sort(some[np.argpartition(-total[some], k - 1)[:k]])
        [scores], [keys] = ranked(total[None, some], self._keys[None, some], min(k, len(some)))
        return scores, keys

    def _bm25(self, counts: Counts, lengths: Counts) -> Counts:
        norm = SATURATION * (1 - LENGTH + LENGTH * lengths / self._mean)
        weights: Counts = (counts * (SATURATION + 1) / (counts + norm)).astype(np.float32)
        return weights

    def _postings(self, term: str) -> tuple[Terms, npt.NDArray[np.uint8]]:
        window = self._window(term)
        return self._rows[window], self._counts[window]

    def _window(self, term: str) -> slice:
        """Return where the postings of a term stand; an empty place where there are none."""
        number = np.uint32(digest(term))
        at = int(np.searchsorted(self._terms, number))
        if at == len(self._terms) or self._terms[at] != number:
            return slice(0, 0)
        return slice(int(self._ends[at - 1]) if at else 0, int(self._ends[at]))

    def _places(self, keys: Keys) -> tuple[Keys, npt.NDArray[np.bool_]]:
        if not len(self._keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        rows = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return rows, self._keys[rows] == keys


def _check(words: Words) -> None:
    """Raise a ValueError where the arrays of a file do not belong together."""
    rows, ends = words._rows, words._ends
    if len(words._lengths) != len(words._keys) or len(words._terms) != len(ends) or len(rows) != len(words._counts):
        raise ValueError("arrays of different lengths")
    if len(rows) and rows.dtype.kind not in "iu":
        raise ValueError("rows that are no numbers")
    # a large file is mapped, not read through: a row of no chunk fails the question that meets it
    mapped = isinstance(rows, np.memmap)
    if len(rows) and not mapped and (rows.min() < 0 or rows.max() >= len(words._keys)):
        raise ValueError("words of no chunk")
    if len(ends) and (ends.dtype.kind not in "iu" or ends.max() > len(rows)):
        raise ValueError("words that end nowhere")


def open_words(path: Path) -> Words:
    """Open the words in a file, or begin with none."""
    words = Words(path)
    if not path.is_file():
        return words
    with opened_archive(path, mapped=("rows", "counts")) as stored:
        words._keys, words._lengths = stored["keys"], stored["lengths"]
        words._terms, words._ends = stored["terms"], stored["ends"]
        words._rows, words._counts = stored["rows"], stored["counts"]
        _check(words)
    words._total = len(words._keys)
    words._measure()
    return words
