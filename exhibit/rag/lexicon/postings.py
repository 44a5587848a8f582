"""Inverted lists: the chunks, sections or documents that contain each word, in sorted blocks of the database."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from exhibit.rag.database import Database
from exhibit.rag.protocols import Keys

Array = npt.NDArray[Any]
Terms = npt.NDArray[np.uint32]

FIELDS = ("words", "headings", "stated", "title", "initials", "opening", "pairs", "proper", "file")
"""The fields that have words; a field's number on disk is its position in this list."""
_BLOCK = 2048
"""The least number of entries of a block, 18 kB; the lookup of a word reads one block."""
_PENDING = 1 << 16
"""The number of entries of a field that stay in memory before they move to disk: 0.6 MB."""
_SEPARATE = 512
"""The number of additions that are joined into one array: each array takes a hundred bytes beside its numbers."""
_BITS = 8
"""The number of leading bits of a word's digest that select one of 256 parts. Entries on disk are sorted part by part,
so that one part is in memory at a time.
"""
_REMEMBERED = 32 << 20
"""The most bytes of cached entries: questions share words, and a frequent word has many entries."""


def digest(term: str) -> int:
    """Return the checksum (CRC-32) that stands for a word in the database.

    With checksums, no list of all words has to be held in memory or merged. Two words rarely have the same
    checksum: with 200,000 words, the probability for a query word is 1 in 20,000.
    """
    return crc32(term.encode("utf-8", "surrogatepass"))


class TermCounts(NamedTuple):
    """The digests of one document's words, and the number of times that each word occurs in it."""

    terms: Terms
    counts: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "TermCounts":
        """Return the counts as arrays; a count above 65,535 becomes 65,535, the greatest that fits two bytes."""
        terms = np.fromiter(map(digest, counts), np.uint32, len(counts))
        return cls(terms, np.fromiter((min(count, 0xFFFF) for count in counts.values()), np.uint16, len(counts)))


class Entries(NamedTuple):
    """Rows of an inverted list: a word's digest, its owner (a chunk, section or document) and its count there."""

    terms: Array
    owners: Array
    counts: Array

    def sort(self) -> "Entries":
        """Return the entries sorted by word, then by the chunk, section or document in which the word occurs."""
        order = np.lexsort((self.owners, self.terms))
        return Entries(*(column[order] for column in self))


class Postings:
    """The inverted lists of one field; additions are merged at the next lookup or by `save`.

    A merge holds only a part of the entries in memory.
    """

    def __init__(
        self, database: Database, field: str, *, owners: npt.DTypeLike = np.uint32, counts: npt.DTypeLike = np.uint16
    ) -> None:
        self._database = database
        self._number = FIELDS.index(field)
        self._dtypes = (np.dtype(np.uint32), np.dtype(owners), np.dtype(counts))
        self._pending: list[Entries] = []
        self._size = 0
        self._is_aside = False
        self._recent: OrderedDict[int, tuple[Keys, Array]] = OrderedDict()
        self._recent_bytes = 0

    def add(self, terms: Array, owners: Array, counts: Array) -> None:
        """Add entries, given as three columns of equal length.

        Each entry has the digest of a word, its owner (the chunk, section or document that contains the word), and
        the number of times that the owner contains it.
        """
        if len(terms):
            self._pending.append(Entries(*map(np.asarray, (terms, owners, counts), self._dtypes)))
            self._size += len(terms)
        if len(self._pending) >= _SEPARATE:
            self._pending = [self._join(self._pending)]
        if self._size >= _PENDING:
            self._put_aside()

    def remove(self, owners: Keys) -> None:
        """Remove all entries of some chunks, sections or documents."""
        self.save()
        self._rewrite(without=owners)

    def find(self, term: str) -> tuple[Keys, Array]:
        """Return the owners (chunks, sections or documents) that contain a word, in order, and its count in each."""
        self.save()
        number = digest(term)
        known = self._recent.get(number)
        if known is None:
            known = self._look_up(number)
            self._remember(number, known)
        else:
            self._recent.move_to_end(number)
        return known

    def save(self) -> None:
        """Write all additions to the database."""
        if self._size or self._is_aside:
            self._rewrite()

    def blocks(self) -> Iterator[Entries]:
        """Yield all entries in blocks, sorted by word and then by owner (a chunk, section or document).

        All entries of a word are in the same block.
        """
        self.save()
        return self._make_blocks()

    def _make_blocks(self) -> Iterator[Entries]:
        low, high = self._number << 32, (self._number + 1) << 32
        places = self._database.read("SELECT place FROM postings WHERE place >= ? AND place < ?", low, high)
        for (place,) in places:
            [row] = self._database.read("SELECT terms, owners, counts FROM postings WHERE place = ?", place)
            yield self._decode_entries(row)

    def _look_up(self, number: int) -> tuple[Keys, Array]:
        rows = self._database.read(
            "SELECT terms, owners, counts FROM postings WHERE place <= ? AND place >= ? ORDER BY place DESC LIMIT 1",
            self._number << 32 | number,
            self._number << 32,
        )
        with self._database.report_damage():
            entries = self._decode_entries(rows[0] if rows else (b"", b"", b""))
            here = slice(*np.searchsorted(entries.terms, [number, number + 1]))
            return entries.owners[here].astype(np.int64), entries.counts[here].copy()

    def _decode_entries(self, row: tuple[bytes, ...]) -> Entries:
        columns = [np.frombuffer(blob, dtype) for blob, dtype in zip(row, self._dtypes, strict=True)]
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns of its table of words have different lengths")
        return Entries(*columns)

    def _remember(self, number: int, found: tuple[Keys, Array]) -> None:
        self._recent[number] = found
        self._recent_bytes += sum(column.nbytes for column in found)
        while self._recent_bytes > _REMEMBERED and len(self._recent) > 1:
            _, oldest = self._recent.popitem(last=False)
            self._recent_bytes -= sum(column.nbytes for column in oldest)

    def _rewrite(self, *, without: Keys | None = None) -> None:
        """Write the added entries together with the stored entries, in one sorted order.

        Entries of the chunks, sections or documents in `without` are removed.
        """
        for entries in self._make_blocks():
            kept = slice(None) if without is None else ~np.isin(entries.owners, without)
            self.add(*(column[kept] for column in entries))
        low, high = self._number << 32, (self._number + 1) << 32
        self._database.write("DELETE FROM postings WHERE place >= ? AND place < ?", [(low, high)])
        for entries in self._sort_additions():
            self._database.write("INSERT INTO postings VALUES (?, ?, ?, ?)", self._cut(entries))
        self._recent.clear()
        self._recent_bytes = 0

    def _cut(self, entries: Entries) -> Iterator[tuple[int, bytes, bytes, bytes]]:
        """Split entries into blocks and yield each as a database row; all entries of a word are in one block."""
        firsts = np.concatenate([[0], np.flatnonzero(np.diff(entries.terms)) + 1])  # where each word begins
        wanted = np.arange(0, len(entries.terms), _BLOCK)
        starts = np.unique(firsts[np.searchsorted(firsts, wanted, side="right") - 1]).tolist()
        for start, end in zip(starts, [*starts[1:], len(entries.terms)], strict=True):
            terms, owners, counts = (column[start:end].tobytes() for column in entries)
            yield self._number << 32 | int(entries.terms[start]), terms, owners, counts

    def _sort_additions(self) -> Iterator[Entries]:
        """Yield all entries that are not yet in the database, in sorted parts; no word is in two parts.

        When the last part has been yielded, no entry is pending.
        """
        if not self._is_aside:
            if self._size:
                yield self._join(self._pending).sort()
            self._pending, self._size = [], 0
            return
        self._put_aside()
        aside = self._database.scratch.database
        aside.execute("CREATE INDEX IF NOT EXISTS parts ON added (part)")
        for part in range(self._number << _BITS, (self._number + 1) << _BITS):
            rows = aside.execute("SELECT terms, owners, counts FROM added WHERE part = ?", [part])
            if entries := [self._decode_entries(row) for row in rows]:
                yield self._join(entries).sort()
            aside.execute("DELETE FROM added WHERE part = ?", [part])
        self._is_aside = False

    def _put_aside(self) -> None:
        self._is_aside = True
        if not self._size:
            return
        entries = self._join(self._pending)
        parts = (entries.terms >> np.uint32(32 - _BITS)).astype(np.uint8)
        order = np.argsort(parts, kind="stable")
        entries = Entries(*(column[order] for column in entries))
        cuts = np.searchsorted(parts[order], np.arange((1 << _BITS) + 1, dtype=np.int64)).tolist()
        rows = (
            (self._number << _BITS | part, *(column[start:end].tobytes() for column in entries))
            for part, (start, end) in enumerate(pairwise(cuts))
            if start < end
        )
        self._database.scratch.database.executemany("INSERT INTO added VALUES (?, ?, ?, ?)", rows)
        self._pending, self._size = [], 0

    def _join(self, parts: list[Entries]) -> Entries:
        return Entries(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
