"""Milvus: `milvus:http://HOST:19530[/DATABASE]`, a file `milvus:/PATH/FILE.db`, or `milvus:lite` inside the index.

Searches are exact (FLAT, inner product) unless `?index=HNSW`, `IVF_FLAT` or `AUTOINDEX` is added. An index has one
collection for each of its layers. Their names begin with a random word, which is saved in the index's folder: two
indexes never share a collection, and a renamed folder keeps its collections. The token is read from MILVUS_TOKEN, is
never saved, and is sent only to a server that MILVUS_URI or `--store` names.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.milvus_address import Address, make_conditions
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import check_rows, make_empty_hits, rank_keys
from exhibit.rag.stores._milvus import FLOATS, INTEGER, connect, is_named, translate_errors
from exhibit.schemas.errors import BundleError, ServiceError
from exhibit.storage.removal import remove_below

_KEY, _VECTOR, _DIGEST = "key", "vector", "digest"
_ID = "id"
"""The name of the primary key in the hits of servers that do not send it, such as Milvus 2.3."""
_SEEN = "Session"
"""The consistency level of searches: a search sees all rows of this process, and all rows that existed when it opened
the collection, since it counts them at that time with the level Strong. A search with Strong would wait 200 ms for
the server's next tick (measured: 209 against 6 ms with HNSW, 40,000 rows).
"""
_STANDSTILL = 120.0
"""The seconds without progress after which waiting for a server's index ends. A segment of a million rows takes some
minutes, and is counted only when it is complete.
"""
_PAUSE = 0.2  # seconds between two polls
_log = logging.getLogger(__name__)
_PLACE = "store"
_RECORD = "milvus.json"
_FILE = "milvus.db"
_NAME = re.compile(r"exhibit_[0-9a-f]{16}")
_MOST = 16384
"""The most results that Milvus returns for one search; deeper searches join several results."""
_QUERIES = 64
"""The number of queries in one call."""
_BYTES = 4 << 20
"""The bytes of vectors in one message; Milvus accepts 64 MiB."""
_KEYS = 8192
"""The number of keys in one message."""


def open(folder: Path, argument: str | None, *, name: str, dimensions: int) -> MilvusStore:
    """Open the Milvus collection of an index layer (`name`: document, section or chunk), or create it.

    The collection of an interrupted run is used again if the settings are the same.
    """
    address = Address.parse(argument, own=folder / _PLACE / _FILE)
    record = folder / _PLACE / _RECORD
    wanted = {"store": argument or "lite", "dimensions": dimensions}
    if record.is_file():
        about = _read(record)
        whole = (folder / "manifest.json").is_file()
        if {key: about.get(key) for key in wanted} == wanted:
            return MilvusStore(address, f"{about['name']}_{name}", dimensions, building=not whole)
        if whole:
            raise BundleError(f"{record}: built for vectors of {about.get('dimensions')} numbers in "
                                  f"milvus:{about.get('store')}, not {dimensions} in milvus:{wanted['store']}; "
                                  "build the index again")  # fmt: skip
        drop(folder, argument)  # left by an interrupted run with other settings
    record.parent.mkdir(parents=True, exist_ok=True)
    wanted["name"] = f"exhibit_{uuid.uuid4().hex[:16]}"
    record.write_text(json.dumps(wanted) + "\n", encoding="utf-8")
    return MilvusStore(address, f"{wanted['name']}_{name}", dimensions, building=True)


def peek(folder: Path, argument: str | None, *, name: str, dimensions: int, keys: Keys) -> MilvusStore | None:
    """Open an index's Milvus collection while another process is still writing the index.

    `name` selects the collection: `document`, `section` or `chunk`. Rows whose key is greater than the last of
    `keys` are hidden. Return None if the collection is a local file, which only the writing process can open,
    or if the index has no record of its collections.
    """
    address, record = Address.parse(argument, own=folder / _PLACE / _FILE), folder / _PLACE / _RECORD
    if not address.is_server or not record.is_file():
        return None
    store = MilvusStore(address, f"{_read(record)['name']}_{name}", dimensions, building=False)
    store.fence(int(keys[-1]))
    return store


def drop(folder: Path, named: str | None = None) -> None:
    """Drop the collections of the index in a folder, and delete the file that records their name.

    Collections outside the folder are dropped only if the user names their address, in `named` or on the
    command line: an index may come from another person, and must not make this machine connect to a server or
    open a file.
    """
    record = folder / _PLACE / _RECORD
    about = _read(record)
    own = folder / _PLACE / _FILE
    address = Address.parse(about.get("store"), own=own)
    if address.uri not in (str(own), Address.parse(named, own=own).uri) and not is_named(address.uri):
        _log.warning("milvus at %s: collections %s_* were not dropped; drop them by hand if they are yours",
                     address.uri, about["name"])  # fmt: skip
    elif address.uri != str(own):
        try:
            _drop_collections(address, f"{about['name']}_")
        except ServiceError as error:
            raise ServiceError(
                f"{error}; the collections {about['name']}_* are still there: delete them by hand"
            ) from None
    for name in (_FILE, _RECORD):
        remove_below(folder, f"{_PLACE}/{name}")


def _drop_collections(address: Address, prefix: str) -> None:
    connection = connect(address)
    try:
        with translate_errors(address.uri):
            for name in connection.client.list_collections():
                if name.startswith(prefix):
                    connection.client.drop_collection(name)
    finally:
        connection.close()


class MilvusStore:
    """The vectors of one layer of an index (documents, sections or chunks), in a Milvus collection.

    A row of the collection has a key, a vector, and a digest of the vector.
    """

    def __init__(self, address: Address, collection: str, dimensions: int, *, building: bool) -> None:
        self.dimensions = dimensions
        self._building = building
        self._last = np.iinfo(np.int64).max
        self.collection = collection
        self._address = address
        self._connection = connect(address)
        self._client = self._connection.client
        try:
            with translate_errors(address.uri):
                if not self._client.has_collection(collection):
                    self._create()
            self._call("load_collection")
            self._had_rows = len(self) > 0
        except BaseException:
            self._connection.close()
            raise

    def __len__(self) -> int:
        [row] = self._call("query", filter="", output_fields=["count(*)"])
        return int(row["count(*)"])

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        """Add rows, or replace rows with the same keys; an identical row is not sent again."""
        if not len(keys):
            return
        keys = np.asarray(keys, dtype=np.int64)
        if fault := check_rows(f"{self._address.uri} {self.collection}", keys, vectors, self.dimensions):
            raise BundleError(fault)
        self._last = max(self._last, int(keys.max()))
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        step = max(1, _BYTES // (4 * self.dimensions))
        for at in range(0, len(keys), step):
            self._upsert(keys[at : at + step], vectors[at : at + step])

    def remove(self, keys: Sequence[int] | Keys) -> None:
        """Remove rows; unknown keys are no error."""
        wanted = np.asarray(keys, dtype=np.int64)
        for at in range(0, len(wanted), _KEYS):
            self._call("delete", ids=wanted[at : at + _KEYS].tolist())

    def keep(self, keys: Keys) -> None:
        """Remove every row whose key is not in `keys`, such as the rows of an interrupted run."""
        self.remove(np.setdiff1d(self.keys(), keys))

    def fence(self, last: int) -> None:
        """Hide all rows with a key greater than `last` from searches.

        Rows that this process adds later are not hidden.
        """
        self._last = last

    def keys(self) -> Keys:
        """Return all keys, in order."""
        numbers: list[int] = []
        pages = self._call("query_iterator", batch_size=_KEYS, output_fields=[_KEY])
        with translate_errors(self._address.uri):
            while page := pages.next():
                numbers += [row[_KEY] for row in page]
            pages.close()
        return np.unique(np.array(numbers, dtype=np.int64))

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        """Return the scores and the keys of the k rows nearest to each query, best first.

        If there are fewer than k rows, the remaining keys are -1. With `within`, only rows with these keys are
        searched.
        """
        filters = list(self._make_conditions(k, within))
        if not len(queries):
            return make_empty_hits(0, k)
        scores, keys = self._search_all(queries, k, filters)
        if within is None and (keys > self._last).any():  # only in this case, since every filter takes time
            filters = [each for each in filters if each] or [f"{_KEY} <= {self._last}"]
            scores, keys = self._search_all(queries, k, filters)
        return scores, keys

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        """Return the stored vectors for these keys, in the order of `keys`; unknown keys are left out."""
        wanted = np.asarray(keys, dtype=np.int64).tolist()
        by_key: dict[int, list[float]] = {}
        for at in range(0, len(wanted), _KEYS):
            rows = self._call("get", ids=wanted[at : at + _KEYS], output_fields=[_KEY, _VECTOR])
            by_key.update((row[_KEY], row[_VECTOR]) for row in rows)
        here = [by_key[key] for key in wanted if key in by_key]
        return np.array(here, dtype=np.float32).reshape(-1, self.dimensions)

    def save(self) -> None:
        """Make Milvus write all added rows to storage.

        While the collection is being built, also wait until the server has built its final search index.
        """
        self._call("flush")
        if self._building and self._address.is_server and self._address.kind != "FLAT":
            self._await_index()

    def close(self) -> None:
        """Close the connection; a Milvus file can be moved after the last store that uses it is closed."""
        self._connection.close()

    def _call(self, verb: str, **options: Any) -> Any:
        return self._connection.call(verb, self.collection, **options)

    def _create(self) -> None:
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field(_KEY, INTEGER, is_primary=True)
        schema.add_field(_DIGEST, INTEGER)
        schema.add_field(_VECTOR, FLOATS, dim=self.dimensions)
        index = self._client.prepare_index_params()
        index.add_index(_VECTOR, index_type=self._address.kind, metric_type="IP", params=self._address.build())
        # Strong: additions are found and counted at once
        self._client.create_collection(self.collection, schema=schema, index_params=index, consistency_level="Strong")

    def _await_index(self) -> None:
        """Wait until the server has built its index of all rows, and load the index.

        Until then a server searches new rows through a temporary index, which finds fewer of the nearest rows: with
        HNSW on 40,000 rows, 93.3% of the 64 nearest instead of 96.1%. Without this call, the server would load the
        final index only after ten seconds or more.
        """
        left, since = -1, time.monotonic()
        while pending := int(self._call("describe_index", index_name=_VECTOR)["pending_index_rows"]):
            if pending != left:
                left, since = pending, time.monotonic()
            if time.monotonic() - since > _STANDSTILL:
                return  # the server is overloaded or stuck; a search still finds all rows
            time.sleep(_PAUSE)
        self._call("release_collection")
        self._call("load_collection")

    def _upsert(self, keys: Keys, vectors: Vectors) -> None:
        digests = [_digest(vector) for vector in vectors]
        there = self._read_digests(keys) if self._had_rows else {}
        rows = [
            {_KEY: key, _DIGEST: digest, _VECTOR: vector}
            for key, digest, vector in zip(keys.tolist(), digests, vectors, strict=True)
            if there.get(key) != digest
        ]
        if rows:
            self._call("upsert", data=rows)

    def _read_digests(self, keys: Keys) -> dict[int, int]:
        digests: dict[int, int] = {}
        for condition in make_conditions(_KEY, np.unique(keys)):
            rows = self._call("query", filter=condition, output_fields=[_KEY, _DIGEST])
            digests |= {row[_KEY]: row[_DIGEST] for row in rows}
        return digests

    def _make_conditions(self, k: int, within: Sequence[int] | Keys | None) -> Iterator[str]:
        """Yield the filters for a search: the server is asked once per filter, and the results are merged.

        The filter "" selects all rows. Several filters are needed if `within` or `k` exceeds the server's limits.
        """
        if within is None and k <= _MOST:
            yield ""
            return
        here = self.keys() if within is None else np.zeros(0, dtype=np.int64)
        wanted = here[here <= self._last] if within is None else np.unique(np.asarray(within, dtype=np.int64))
        step = _MOST if k > _MOST else max(1, len(wanted))
        for at in range(0, len(wanted), step):
            yield from make_conditions(_KEY, wanted[at : at + step])

    def _search_all(self, queries: Vectors, k: int, filters: Sequence[str]) -> tuple[Vectors, Keys]:
        pages = [self._search(queries[at : at + _QUERIES], k, filters) for at in range(0, len(queries), _QUERIES)]
        return np.concatenate([scores for scores, _ in pages]), np.concatenate([keys for _, keys in pages])

    def _search(self, queries: Vectors, k: int, filters: Sequence[str]) -> tuple[Vectors, Keys]:
        limit = min(k, _MOST)
        scores, keys = [make_empty_hits(len(queries), 0)[0]], [make_empty_hits(len(queries), 0)[1]]
        for condition in filters:
            answers = self._call(
                "search", data=list(np.asarray(queries, dtype=np.float32)), filter=condition, limit=limit,
                anns_field=_VECTOR, search_params={"metric_type": "IP", "params": self._address.widen(limit)},
                consistency_level=_SEEN,
            )  # fmt: skip
            part_scores, part_keys = make_empty_hits(len(queries), limit)
            for row, hits in enumerate(answers):
                part_scores[row, : len(hits)] = [hit["distance"] for hit in hits]
                part_keys[row, : len(hits)] = [hit[_KEY] if _KEY in hit else hit[_ID] for hit in hits]
            scores.append(part_scores)
            keys.append(part_keys)
        return rank_keys(np.concatenate(scores, axis=1), np.concatenate(keys, axis=1), k)


def _digest(vector: Vectors) -> int:
    return int.from_bytes(hashlib.blake2b(vector.tobytes(), digest_size=8).digest(), "big", signed=True)


def _read(record: Path) -> dict[str, Any]:
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        # collections with this prefix are dropped with the index, so the prefix must be one that we generated
        if isinstance(content, dict) and _NAME.fullmatch(str(content["name"])):
            return content
    except (OSError, ValueError, KeyError):
        pass
    raise BundleError(
        f"{record}: damaged, so that the collections of this index cannot be found; build the index again"
    )
