"""The database of an index, and its words: sorted inverted lists, and BM25 search over chunks or headings."""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from exhibit.law.language import PART, is_content, list_numbers, list_word_parts, list_written_words, stem
from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys, Scores
from exhibit.rag.stores import find_rows, rank_keys
from exhibit.schemas.errors import BundleError

TABLES = (
    "CREATE TABLE documents (number INTEGER PRIMARY KEY, filename TEXT NOT NULL UNIQUE, first INTEGER NOT NULL, "
    "sections INTEGER NOT NULL, chunks BLOB NOT NULL, record BLOB NOT NULL)",
    "CREATE TABLE texts (number INTEGER PRIMARY KEY, text BLOB NOT NULL)",
    "CREATE TABLE names (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, run TEXT NOT NULL)",
    "CREATE TABLE lengths (field INTEGER PRIMARY KEY, keys BLOB NOT NULL, lengths BLOB NOT NULL)",
    "CREATE TABLE postings (field INTEGER PRIMARY KEY, terms BLOB NOT NULL, owners BLOB NOT NULL, "
    "counts BLOB NOT NULL)",
)
_PAGE_BYTES = 16384  # a typical row has some thousand numbers

FIELDS = ("words", "headings", "stated", "title", "initials", "opening", "pairs", "proper", "file")
"""The fields with words; a field's number on disk is its position in this list."""
SATURATION = 1.2
"""BM25's k1, with the textbook's value; a larger value gives repeated words more weight."""
LENGTH = 0.5  # BM25's b, below the textbook's 0.75, because all chunks have about the same size
# The weight of a part of a compound word: with 1/4 to 1/2, the right decision is first for 82 or 83 of 100 questions of
# LegalQuAD; with 0, for 78.
_PART_WEIGHT = 1 / 3
_IS_PART, _MAX_COUNT = 0x80, 0x7F  # a count is one byte: a flag and the number
_STOP_WORD = -1  # replaces the digest of every stop word
_MAX_FOUND = 256  # words whose entries are cached, because many questions have the same words

Array = npt.NDArray[Any]


def digest(term: str) -> int:
    """Return a word's CRC-32; among 200,000 words, one query word in 20,000 has the same checksum as another word."""
    return crc32(term.encode("utf-8", "surrogatepass"))


def compute_rarity(holders: Any, total: Any) -> Any:
    """Return the idf of terms, as in BM25, from the number of texts with each term and the number of all texts."""
    return np.log((total + 1) / (np.asarray(holders) + 0.5))


def weigh_terms(terms: Sequence[str]) -> Scores:
    return np.array([_PART_WEIGHT if term.startswith(PART) else 1.0 for term in terms], np.float32)


class Counted(NamedTuple):
    """The term counts of several texts, as arrays: a Counter for each text would take twenty times the memory."""

    lengths: Scores  # the number of terms of each text, with repetitions; a part of a word counts a third
    sizes: npt.NDArray[np.uint32]  # the number of distinct terms of each text
    terms: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint8]


class NameWords(NamedTuple):
    kind: str
    run: str  # the letters of the file's name, without the characters between them
    fields: dict[str, tuple[Array, Array]]


class DocumentWords(NamedTuple):
    names: NameWords
    chunks: Counted
    headings: Counted


def count_digests(counts: Mapping[str, int]) -> tuple[Array, Array]:
    """Return the digests of words and their counts as arrays; a count is at most 65,535, which fits into two bytes."""
    terms = np.fromiter(map(digest, counts), np.uint32, len(counts))
    return terms, np.fromiter((min(count, 0xFFFF) for count in counts.values()), np.uint16, len(counts))


@lru_cache(1 << 16)
def _digest_word(word: str) -> int:
    return digest(stem(word)) if is_content(word) else _STOP_WORD


def count_terms(texts: Iterable[str], *, parts: bool = False) -> Counted:
    """Return the term counts of each text; with `parts`, the parts of compound words are counted as well."""
    digests: list[int] = []
    flags: list[int] = []
    sizes: list[int] = []
    for text in texts:
        before = len(digests)
        digests += map(_digest_word, list_written_words(text))
        digests += map(digest, list_numbers(text))
        words = len(digests)
        digests += map(digest, list_word_parts(text) if parts else ())
        flags += [0] * (words - before) + [_IS_PART] * (len(digests) - words)
        sizes.append(len(digests) - before)
    terms, is_part = np.array(digests, np.int64), np.array(flags, np.uint8)
    content = terms != _STOP_WORD
    owners = np.repeat(np.arange(len(sizes)), sizes)[content]
    weights = np.where(is_part[content], np.float32(_PART_WEIGHT), np.float32(1))
    # one sort for all texts: a counter for each text takes a fifth longer
    entries, first, counts = np.unique(owners << 32 | terms[content], return_index=True, return_counts=True)
    return Counted(
        lengths=np.bincount(owners, weights, len(sizes)).astype(np.float32),
        sizes=np.bincount(entries >> 32, minlength=len(sizes)).astype(np.uint32),
        terms=entries.astype(np.uint32),  # the digest is the lower half
        counts=np.minimum(counts, _MAX_COUNT).astype(np.uint8) | is_part[content][first],
    )


@contextmanager
def report_damage(path: Path) -> Iterator[None]:
    """Raise a `BundleError` that advises a rebuild for every exception that a damaged or forged file causes."""
    try:
        yield
    except (sqlite3.Error, LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise BundleError(f"{path}: damaged ({error}); build the index again (--ingest fresh)") from error


class Database:
    """An SQLite file. Changes go to a copy, which replaces the file at `save`; until then, others read the old file."""

    def __init__(self, path: Path) -> None:
        self.path, self._partial = path, path.with_name(f".{path.name}.partial")
        self._connection: sqlite3.Connection | None = None
        self._changed = False

    def read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with report_damage(self.path):
            if self._connection is None:
                self._connection = self._open() if self.path.is_file() else self._begin()
            return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement once for each row; `save` makes the change permanent."""
        if self._connection is None or not self._changed:
            self.close()
            self._connection = self._begin()
        self._connection.executemany(sql, rows)

    def save(self) -> None:
        if self._connection is not None and self._changed:
            self._connection.commit()
            self._connection.close()
            self._connection, self._changed = None, False
            self._partial.replace(self.path)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._changed:
            self._partial.unlink(missing_ok=True)
        self._connection, self._changed = None, False

    def _open(self) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode=ro&immutable=1"
        connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        connection.execute("PRAGMA trusted_schema = OFF")
        tables = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if tables != set(TABLES):  # the file may come from a stranger
            raise ValueError("its tables are not those of an index")
        return connection

    def _begin(self) -> sqlite3.Connection:
        """Open a copy of the file for changes, or a new file; the copy needs no journal, because the original stays."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._partial.unlink(missing_ok=True)
        if self.path.is_file():
            shutil.copyfile(self.path, self._partial)
        connection, self._changed = sqlite3.connect(str(self._partial), check_same_thread=False), True
        for setting in (f"page_size = {_PAGE_BYTES}", "cache_size = -512", "journal_mode = OFF", "synchronous = OFF"):
            connection.execute(f"PRAGMA {setting}")
        if not self.path.is_file():
            for statement in TABLES:
                connection.execute(statement)
        return connection


class Columns:
    """Arrays of equal length that one row of a database table stores, sorted by the first array.

    The last but one array has the keys of the owners, which are the chunks, headings or documents with the words.
    An object is a snapshot: only objects created after `save` or `remove` show the change.
    """

    def __init__(self, database: Database, table: str, field: str, dtypes: Sequence[npt.DTypeLike]) -> None:
        self._database, self._table, self._field = database, table, FIELDS.index(field)
        self._dtypes = [np.dtype(dtype) for dtype in dtypes]
        self._pending: list[list[Array]] = []

    def add(self, *columns: Array) -> None:
        self._pending.append([np.asarray(*pair) for pair in zip(columns, self._dtypes, strict=True)])

    def remove(self, owners: Keys) -> None:
        remaining = ~np.isin(self.entries[-2], owners)
        self._write([column[remaining] for column in self.entries])

    def save(self) -> None:
        if self._pending:
            columns = [np.concatenate(parts) for parts in zip(self.entries, *self._pending, strict=True)]
            order = np.lexsort((columns[1], columns[0]))
            self._write([column[order] for column in columns])

    @cached_property
    def entries(self) -> list[Array]:
        rows = self._database.read(f"SELECT * FROM {self._table} WHERE field = ?", self._field)
        blobs = rows[0][1:] if rows else [b""] * len(self._dtypes)
        with report_damage(self._database.path):
            columns = [np.frombuffer(*pair) for pair in zip(blobs, self._dtypes, strict=True)]
            if len(set(map(len, columns))) > 1 or (columns[0][1:] < columns[0][:-1]).any():
                raise ValueError(f"the columns of its table {self._table} are incomplete or out of order")
        return columns

    def _write(self, columns: Sequence[Array]) -> None:
        row = (self._field, *(column.tobytes() for column in columns))
        self._database.write(f"INSERT OR REPLACE INTO {self._table} VALUES ({', '.join('?' * len(row))})", [row])


class Postings(Columns):
    """The inverted lists of a field (its words, each with the owners), sorted by word and then by owner."""

    def __init__(self, database: Database, field: str) -> None:
        # the key of a section needs more bits, because it contains the document's number
        owners = np.int64 if field == "headings" else np.uint32
        counts = np.uint8 if field in ("words", "headings") else np.uint16
        super().__init__(database, "postings", field, (np.uint32, owners, counts))
        self.find = lru_cache(_MAX_FOUND)(self._find)  # returns the owners of a word, sorted, and its counts

    def _find(self, term: str) -> tuple[Keys, Array]:
        # np.uint32, because with another type searchsorted would copy the column
        (terms, owners, counts), number = self.entries, np.uint32(digest(term))
        start, end = (int(np.searchsorted(terms, number, side=side)) for side in ("left", "right"))
        return owners[start:end].astype(np.int64), counts[start:end]


class Words:
    """The words of chunks or headings, sorted by key, with BM25 search; an object is a snapshot, as in `Columns`."""

    def __init__(self, database: Database, field: str = "words") -> None:
        self._postings = Postings(database, field)
        self._lengths = Columns(database, "lengths", field, (np.int64, np.float32))

    def __len__(self) -> int:
        return len(self._lengths.entries[0])

    def add(self, keys: Sequence[int] | Keys, counted: Counted) -> None:
        """Add texts by their term counts; each key must be greater than all earlier keys."""
        owners = np.asarray(keys, np.int64)
        self._postings.add(counted.terms, np.repeat(owners, counted.sizes), counted.counts)
        self._lengths.add(owners, counted.lengths)

    def remove(self, keys: Keys) -> None:
        self._lengths.remove(keys)
        self._postings.remove(keys)

    def save(self) -> None:
        self._lengths.save()
        self._postings.save()

    @cached_property
    def _mean(self) -> float:
        lengths = self._lengths.entries[1]
        return (float(lengths.mean(dtype=np.float64)) if len(lengths) else 0.0) or 1.0

    def compute_rarity(self, terms: Sequence[str]) -> Scores:
        """Return the idf of each term over the whole collection; rare words weigh more."""
        holders = np.array([len(self._postings.find(term)[0]) for term in terms], np.int64)
        weights: Scores = compute_rarity(holders, len(self)).astype(np.float32) * weigh_terms(terms)
        return weights

    def score_terms(self, terms: Sequence[str], keys: Keys) -> Scores:
        """Return the BM25 score of each chunk of `keys` (in order) for each term, without the term's idf."""
        table = np.zeros((len(keys), len(terms)), np.float32)
        for column, term in enumerate(terms if len(keys) else ()):
            owners, counts = self._postings.find(term)
            rows, matched = find_rows(owners, keys)
            table[matched, column] = counts[rows[matched]] & _MAX_COUNT
        known, all_lengths = self._lengths.entries
        rows, matched = find_rows(known, keys)
        lengths = np.zeros(len(keys), np.float32)
        lengths[matched] = all_lengths[rows[matched]]
        return self._saturate(table, lengths[:, None])

    def scores(self, terms: Sequence[str], keys: Keys) -> Scores:
        with np.errstate(invalid="ignore"):  # all values are finite, but some BLAS libraries raise the flag for padding
            sums: Scores = self.score_terms(terms, keys) @ self.compute_rarity(terms)
        return sums

    def search(self, terms: Sequence[str], k: int, *, method: str = "bm25") -> tuple[Vectors, Keys]:
        """Return the scores and keys of the k best texts; a `tfidf` score is the cosine times the question's norm."""
        keys, lengths = self._lengths.entries
        total = np.zeros(len(keys), np.float32)
        for term, weight in zip(terms, self.compute_rarity(terms), strict=True):
            owners, stored = self._postings.find(term)
            rows, matched = find_rows(keys, owners)
            if not matched.all():
                raise BundleError("the index has words of a text that it lacks; build the index again (--ingest fresh)")
            counts = (stored & _MAX_COUNT).astype(np.float32)
            if method == "tfidf":
                total[rows] += weight * weight * counts / self._norms[rows]
            else:
                total[rows] += weight * self._saturate(counts, lengths[rows])
        some = np.flatnonzero(total > 0)  # nonzero on numbers takes four times as long as on booleans
        if len(some) > k:
            some = np.sort(some[np.argpartition(-total[some], k - 1)[:k]])
        [scores], [best] = rank_keys(total[None, some], keys[None, some], min(k, len(some)))
        return scores, best

    @cached_property
    def _norms(self) -> Scores:
        squares = np.full(len(self), 1e-9)  # avoids a division by zero for a text without words
        terms, owners, stored = self._postings.entries
        _, row, holders = np.unique(terms, return_inverse=True, return_counts=True)
        counts = (stored & _MAX_COUNT) * np.where(stored & _IS_PART, np.float32(_PART_WEIGHT), np.float32(1))
        weighted = counts * compute_rarity(holders, len(self)).astype(np.float32)[row]
        rows, _ = find_rows(self._lengths.entries[0], owners.astype(np.int64))
        np.add.at(squares, rows, weighted.astype(np.float64) ** 2)
        norms: Scores = np.sqrt(squares).astype(np.float32)
        return norms

    def _saturate(self, counts: Scores, lengths: Scores) -> Scores:
        norm = SATURATION * (1 - LENGTH + LENGTH * lengths / self._mean)
        weights: Scores = (counts * (SATURATION + 1) / (counts + norm)).astype(np.float32)
        return weights
