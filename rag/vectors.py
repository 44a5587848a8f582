"""Vectors kept between runs, by text, role and model: what was embedded once is not embedded again."""

from __future__ import annotations

import hashlib
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from exhibit.models.embedders._unit import to_unit
from exhibit.models.protocols import Embedder, Role, Vectors
from exhibit.schemas.errors import ToolkitError

_KEY = np.dtype([("digest", "<u8"), ("rest", "V24"), ("check", "<u4")])
"""The sha256 of a role and a text, its first eight bytes apart to search by; and a checksum of the vector."""
_SLAB = 1024
"""Texts that are embedded before they are written: what a kill can cost."""
_LONGEST = 1 << 18
"""Digests that are sorted as one: 3 MB, and twice as much again while they are."""
_POLL = 0.01
"""Seconds between two looks whether another writer is done; it writes a slab in about as long."""

_Keys = npt.NDArray[np.void]
_Digests = npt.NDArray[np.uint64]
_Rows = npt.NDArray[np.uint32]


class VectorCache:
    """One model's vectors in two files that only grow: keys, and rows of single-precision numbers.

    A row counts once its key is written, so a kill leaves at most a tail that the next writer cuts off. Runs
    share the files: writers take turns, and everybody sees what the others added. In memory are 12 bytes a
    vector; the vectors stay on disk, at full precision, so that a second run gives the same numbers.
    """

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._dimensions = embedder.dimensions
        readable = re.sub(r"[^\w.-]+", "-", embedder.name)[:60]
        stem = f"{readable}-{hashlib.sha256(embedder.name.encode()).hexdigest()[:8]}-{self._dimensions}"
        self._keys, self._vectors = folder / f"{stem}.keys", folder / f"{stem}.vectors"
        self._width = 4 * self._dimensions
        self._known = _Known()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in (self._keys, self._vectors):
                path.touch()
        except OSError as error:
            raise _unwritable(folder, error) from error

    def __len__(self) -> int:
        """Return how many vectors there are."""
        self._refresh()
        return self._known.total

    def get(self, texts: Sequence[str], *, role: Role) -> tuple[npt.NDArray[np.bool_], Vectors]:
        """Return which texts are known, and a row for each text: its vector, or zeros."""
        self._refresh()
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        known = np.zeros(len(texts), np.bool_)
        if not self._known.total or not texts:
            return known, vectors
        wanted = _keys_of(texts, role)
        rows = self._known.find(wanted["digest"])
        places = np.flatnonzero(rows >= 0)
        if not len(places):
            return known, vectors
        # read, not mapped: around each number of a mapped file that is looked at, the system maps 64 kB
        with self._keys.open("rb", buffering=0) as key_file, self._vectors.open("rb", buffering=0) as vector_file:
            for position in places.tolist():
                key = np.frombuffer(_row(key_file, rows[position], _KEY.itemsize), _KEY)[0]
                vector = _row(vector_file, rows[position], self._width)
                if key["rest"] == wanted["rest"][position] and zlib.crc32(vector) == key["check"]:
                    vectors[position], known[position] = np.frombuffer(vector, "<f4"), True
        return known, vectors

    def put(self, texts: Sequence[str], vectors: Vectors, *, role: Role) -> None:
        """Add vectors."""
        rows = np.ascontiguousarray(vectors, "<f4")
        keys = _keys_of(texts, role)
        keys["check"] = [zlib.crc32(row.tobytes()) for row in rows]
        try:
            with self._writing() as (key_file, vector_file):
                vector_file.write(rows.tobytes())
                vector_file.flush()
                key_file.write(keys.tobytes())
        except OSError as error:
            raise _unwritable(self._vectors, error) from error

    @contextmanager
    def _writing(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Hold the files for this process alone, cut back to the rows that are whole in both."""
        lock = FileLock(self._keys.with_suffix(".lock"), poll_interval=_POLL)
        with lock, self._keys.open("r+b") as key_file, self._vectors.open("r+b") as vector_file:
            whole = self._whole()
            for file, width in ((vector_file, self._width), (key_file, _KEY.itemsize)):
                file.truncate(whole * width)
                file.seek(whole * width)
            yield key_file, vector_file

    def _whole(self) -> int:
        return min(self._keys.stat().st_size // _KEY.itemsize, self._vectors.stat().st_size // self._width)

    def _refresh(self) -> None:
        seen, whole = self._known.total, self._whole()
        if whole == seen:
            return
        if whole < seen:  # somebody cleared the files
            self._known, seen = _Known(), 0
        for start in range(seen, whole, _LONGEST):
            count = min(_LONGEST, whole - start)
            self._known.add(np.fromfile(self._keys, _KEY, count, offset=start * _KEY.itemsize)["digest"])


class _Known:
    """Digests with the rows they stand in, in a few sorted runs, each longer than the one after it or of full length.

    A batch becomes a run, and runs of like length are merged up to some length, so that few digests are ever copied: a
    cache of a million vectors, filled by five hundred, has about a dozen.
    """

    def __init__(self) -> None:
        self.total = 0
        self._runs: list[tuple[_Digests, _Rows]] = []

    def add(self, digests: _Digests) -> None:
        """Add the digests of the rows that follow."""
        rows = np.arange(self.total, self.total + len(digests), dtype=np.uint32)  # the rest would be six terabytes
        order = np.argsort(digests, kind="stable")
        self._runs.append((digests[order], rows[order]))
        self.total += len(digests)
        while len(self._runs) > 1 and self._are_alike(*(len(digests) for digests, _ in self._runs[-2:])):
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(_merged(older, newer))

    def _are_alike(self, older: int, newer: int) -> bool:
        return older < 2 * newer and older + newer <= _LONGEST

    def find(self, wanted: _Digests) -> npt.NDArray[np.int64]:
        """Return the last row of each digest, -1 where there is none."""
        rows = np.full(len(wanted), -1, np.int64)
        for digests, places in self._runs:
            last = np.maximum(np.searchsorted(digests, wanted, side="right") - 1, 0)
            here = digests[last] == wanted
            rows[here] = places[last[here]]
        return rows


def _merged(older: tuple[_Digests, _Rows], newer: tuple[_Digests, _Rows]) -> tuple[_Digests, _Rows]:
    """Return two runs as one, of equal digests the older first: of two rows for one text the later one counts."""
    places = np.searchsorted(older[0], newer[0], side="right")
    return np.insert(older[0], places, newer[0]), np.insert(older[1], places, newer[1])


def _row(file: io.FileIO, row: int, width: int) -> bytes:
    file.seek(int(row) * width)
    return file.read(width)


def _keys_of(texts: Sequence[str], role: Role) -> _Keys:
    """Return the keys; a text may hold half a surrogate pair."""
    digests = [hashlib.sha256(f"{role}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
    return np.frombuffer(b"".join(digest + bytes(4) for digest in digests), _KEY).copy()


def _unwritable(path: Path, error: OSError) -> ToolkitError:
    return ToolkitError(f"{path}: vectors cannot be kept: {error.strerror}; free space, or set EXHIBIT_CACHE elsewhere")


class CachedEmbedder:
    """An embedder that asks another one only for what the cache does not hold, and for each text once."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.many: int = getattr(embedder, "many", 0)
        self._embedder, self._cache = embedder, cache

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """Return one normalised row per text, in order."""
        known, vectors = self._cache.get(texts, role=role)
        places: dict[str, list[int]] = {}
        for row in map(int, np.flatnonzero(~known)):
            places.setdefault(texts[row], []).append(row)
        missing = list(places)
        slabs = max(_SLAB, self.many)
        for start in range(0, len(missing), slabs):
            slab = missing[start : start + slabs]
            fresh = to_unit(self._embedder.embed(slab, role=role), slab, name=self.name, dimensions=self.dimensions)
            self._cache.put(slab, fresh, role=role)
            for text, vector in zip(slab, fresh, strict=True):
                vectors[places[text]] = vector
        return vectors
