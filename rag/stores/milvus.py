"""Milvus: `milvus:http://HOST:19530[/DATABASE]`, a file `milvus:/PATH/FILE.db`, or `milvus:lite` inside the index.

Exact (FLAT, inner product) unless `?index=HNSW`, `IVF_FLAT` or `AUTOINDEX` is added. An index has a collection
for each of its layers. Their names begin with a word drawn at random, which is kept in the index's folder: two
indexes never share a collection, and a folder that is renamed finds its own again. A token is read from
MILVUS_TOKEN, and written nowhere.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag.ranking import check_rows, nothing, ranked
from rag.seams import Keys, Vectors
from rag.stores._milvus_address import Address
from rag.stores._milvus_connection import FLOATS, INTEGER, connect, told
from rag.stores._milvus_filter import conditions
from schemas.errors import BundleError, ServiceError

_KEY, _VECTOR, _DIGEST = "key", "vector", "digest"
_PLACE = "store"
_RECORD = "milvus.json"
_FILE = "milvus.db"
_MOST = 16384
"""The longest result that Milvus gives; deeper searches are put together from several."""
_QUERIES = 64
"""Queries in one call."""
_BYTES = 4 << 20
"""Of vectors in one message: Milvus takes 64 MiB."""
_KEYS = 8192
"""Keys in one message."""


def open(folder: Path, argument: str | None, *, name: str, dimensions: int) -> Store:
    """Open a layer's collection, made when there is none yet; what an unfinished index left is gone on with."""
    address = Address.parse(argument, own=folder / _PLACE / _FILE)
    record = folder / _PLACE / _RECORD
    wanted = {"store": argument or "lite", "dimensions": dimensions}
    if record.is_file():
        found = _read(record)
        if {key: found.get(key) for key in wanted} == wanted:
            return Store(address, f"{found['name']}_{name}", dimensions)
        if (folder / "manifest.json").is_file():
            raise BundleError(f"{record}: made for {found.get('dimensions')} numbers a vector in "
                              f"milvus:{found.get('store')}; build the index again")  # fmt: skip
        drop(folder)  # left by a run that was stopped, and had other settings
    record.parent.mkdir(parents=True, exist_ok=True)
    wanted["name"] = f"exhibit_{uuid.uuid4().hex[:16]}"
    record.write_text(json.dumps(wanted) + "\n", encoding="utf-8")
    return Store(address, f"{wanted['name']}_{name}", dimensions)


def drop(folder: Path) -> None:
    """Drop the collections of the index in a folder, wherever they are, and forget them."""
    record = folder / _PLACE / _RECORD
    found = _read(record)
    own = folder / _PLACE / _FILE
    address = Address.parse(found.get("store"), own=own)
    if address.uri != str(own):
        try:
            _drop_collections(address, f"{found['name']}_")
        except ServiceError as error:
            raise ServiceError(f"{error}; collections {found['name']}_* are left there, drop them by hand") from None
    shutil.rmtree(own, ignore_errors=True)
    record.unlink()


def _drop_collections(address: Address, prefix: str) -> None:
    connection = connect(address)
    try:
        with told(address.uri):
            for name in connection.client.list_collections():
                if name.startswith(prefix):
                    connection.client.drop_collection(name)
    finally:
        connection.close()


class Store:
    """One layer's vectors in a collection: key, vector, and a digest of the vector."""

    def __init__(self, address: Address, collection: str, dimensions: int) -> None:
        self.dimensions = dimensions
        self.collection = collection
        self._address = address
        self._connection = connect(address)
        self._client = self._connection.client
        try:
            with told(address.uri):
                if not self._client.has_collection(collection):
                    self._create()
                self._client.load_collection(collection)
            self._had_rows = len(self) > 0
        except BaseException:
            self._connection.close()
            raise

    def __len__(self) -> int:
        with told(self._address.uri):
            [row] = self._client.query(self.collection, filter="", output_fields=["count(*)"])
        return int(row["count(*)"])

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add rows, or replace those that have the keys; one that is there already is not sent again."""
        if not len(keys):
            return
        keys = np.asarray(keys, dtype=np.int64)
        if fault := check_rows(f"{self._address.uri} {self.collection}", keys, vectors, self.dimensions):
            raise BundleError(fault)
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        step = max(1, _BYTES // (4 * self.dimensions))
        for at in range(0, len(keys), step):
            self._upsert(keys[at : at + step], vectors[at : at + step])

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; keys that are not there are no error."""
        wanted = np.asarray(keys, dtype=np.int64)
        with told(self._address.uri):
            for at in range(0, len(wanted), _KEYS):
                self._client.delete(self.collection, ids=wanted[at : at + _KEYS].tolist())

    def keep(self, keys: Keys) -> None:
        """Remove every row that has none of these keys: what a run left that was stopped."""
        self.remove(np.setdiff1d(self.keys(), keys))

    def keys(self) -> Keys:
        """Return all keys, in order."""
        found: list[int] = []
        with told(self._address.uri):
            pages = self._client.query_iterator(self.collection, batch_size=_KEYS, output_fields=[_KEY])
            while page := pages.next():
                found += [row[_KEY] for row in page]
            pages.close()
        return np.unique(np.array(found, dtype=np.int64))

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the k nearest rows of each query, best first; -1 where there are fewer."""
        filters = list(self._conditions(k, within))
        pages = [self._search(queries[at : at + _QUERIES], k, filters) for at in range(0, len(queries), _QUERIES)]
        if not pages:
            return nothing(0, k)
        return np.concatenate([scores for scores, _ in pages]), np.concatenate([keys for _, keys in pages])

    def save(self) -> None:
        """Have everything written that was added."""
        with told(self._address.uri):
            self._client.flush(self.collection)

    def close(self) -> None:
        """Let go of the connection; a file can be moved after the last store of it is closed."""
        self._connection.close()

    def _create(self) -> None:
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(_KEY, INTEGER, is_primary=True)
        schema.add_field(_DIGEST, INTEGER)
        schema.add_field(_VECTOR, FLOATS, dim=self.dimensions)
        index = self._client.prepare_index_params()
        index.add_index(_VECTOR, index_type=self._address.kind, metric_type="IP", params=self._address.build())
        # Strong: what was added is found, and counted, at once
        self._client.create_collection(self.collection, schema=schema, index_params=index, consistency_level="Strong")

    def _upsert(self, keys: Keys, vectors: Vectors) -> None:
        digests = [_digest(vector) for vector in vectors]
        with told(self._address.uri):
            there = self._digests(keys) if self._had_rows else {}
            rows = [
                {_KEY: key, _DIGEST: digest, _VECTOR: vector}
                for key, digest, vector in zip(keys.tolist(), digests, vectors, strict=True)
                if there.get(key) != digest
            ]
            if rows:
                self._client.upsert(self.collection, rows)

    def _digests(self, keys: Keys) -> dict[int, int]:
        found: dict[int, int] = {}
        for condition in conditions(_KEY, np.unique(keys)):
            rows = self._client.query(self.collection, filter=condition, output_fields=[_KEY, _DIGEST])
            found |= {row[_KEY]: row[_DIGEST] for row in rows}
        return found

    def _conditions(self, k: int, within: Sequence[int] | Keys | None) -> Iterator[str]:
        """Yield the filters whose results, taken together, hold the k best."""
        if within is None and k <= _MOST:
            yield ""
            return
        wanted = self.keys() if within is None else np.unique(np.asarray(within, dtype=np.int64))
        step = _MOST if k > _MOST else max(1, len(wanted))
        for at in range(0, len(wanted), step):
            yield from conditions(_KEY, wanted[at : at + step])

    def _search(self, queries: Vectors, k: int, filters: Sequence[str]) -> tuple[Vectors, Keys]:
        limit = min(k, _MOST)
        scores, keys = [nothing(len(queries), 0)[0]], [nothing(len(queries), 0)[1]]
        for condition in filters:
            with told(self._address.uri):
                found = self._client.search(
                    self.collection, list(np.asarray(queries, dtype=np.float32)), filter=condition, limit=limit,
                    anns_field=_VECTOR, search_params={"metric_type": "IP", "params": self._address.widen(limit)},
                )  # fmt: skip
            part_scores, part_keys = nothing(len(queries), limit)
            for row, hits in enumerate(found):
                part_scores[row, : len(hits)] = [hit["distance"] for hit in hits]
                part_keys[row, : len(hits)] = [hit[_KEY] for hit in hits]
            scores.append(part_scores)
            keys.append(part_keys)
        return ranked(np.concatenate(scores, axis=1), np.concatenate(keys, axis=1), k)


def _digest(vector: Vectors) -> int:
    return int.from_bytes(hashlib.blake2b(vector.tobytes(), digest_size=8).digest(), "big", signed=True)


def _read(record: Path) -> dict[str, Any]:
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
        if isinstance(found, dict) and str(found["name"]).isidentifier():
            return found
    except (OSError, ValueError, KeyError):
        pass
    raise BundleError(f"{record}: damaged; the collections of this index cannot be found: build it again")
