"""Milvus: `milvus:http://HOST:19530[/DATABASE]`, a file `milvus:/PATH/FILE.db`, or `milvus:lite` (in the cache).

Searches are exact (FLAT, inner product) unless `?index=HNSW`, `IVF_FLAT` or `AUTOINDEX` is added. An index has a
collection for each layer; their names begin with a random word that is saved in the index's folder. The token is read
from MILVUS_TOKEN and never saved.
"""

import json
import logging
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from exhibit.models.protocols import Vectors
from exhibit.rag.protocols import Keys
from exhibit.rag.stores import make_empty_hits, rank_keys
from exhibit.schemas.errors import BundleError, ServiceError, ToolkitError
from exhibit.storage.atomic import remove_below
from exhibit.storage.cache import find_cache_folder

try:
    from grpc import RpcError
    from pymilvus import DataType, MilvusClient
    from pymilvus.exceptions import MilvusException
except ImportError as error:
    raise ToolkitError(
        "the store milvus needs an extra: pip install 'exhibit-rag[milvus]' (the default store, faiss, needs none)"
    ) from error

_SERVERS = ("http://", "https://", "tcp://")
_KINDS = {
    "FLAT": ({}, {}),
    "AUTOINDEX": ({}, {}),
    "HNSW": ({"M": 16, "efConstruction": 80}, {"ef": 256}),
    "IVF_FLAT": ({"nlist": 1024}, {"nprobe": 64}),
}  # Milvus's types of indexes, with the parameters of the index and of a search
_TOKEN = "MILVUS_TOKEN"
_NAME = re.compile(r"exhibit_[0-9a-f]{16}")
_MAX_RESULTS = 16384  # most results of one search
_MAX_KEYS = 8192  # most keys in one message or condition
_MAX_ROWS = 1024  # most rows in one message: 12 MiB with vectors of 3,072 numbers; Milvus accepts 64 MiB
_CONNECT_SECONDS = 10.0
_log = logging.getLogger(__name__)
Item = TypeVar("Item")


def open(folder: Path, argument: str | None, *, name: str, dimensions: int) -> "MilvusStore":
    """Open the collection of a layer, or create it."""
    record = _record_path(folder)
    wanted: dict[str, Any] = {"store": argument or "lite", "dimensions": dimensions}
    if record.is_file():
        about = _read_record(folder)
        if {key: about.get(key) for key in wanted} != wanted:
            raise BundleError(f"{record}: the index was built for {about}, not for {wanted}; build it again")
    else:
        about = {**wanted, "name": f"exhibit_{uuid.uuid4().hex[:16]}"}
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(f"{json.dumps(about)}\n", encoding="utf-8")
    return MilvusStore(*_parse(argument), f"{about['name']}_{name}", dimensions, record)


def drop(folder: Path, named: str | None = None) -> None:
    """Drop the collections of the index in a folder, and delete the file that records their name.

    Collections outside the cache are dropped only if the user names their address: an index may come from another
    person, and must not make this machine connect to a server or open a file.
    """
    about = _read_record(folder)
    uri = _parse(about.get("store"))[0]
    if uri in (_parse(None)[0], _parse(named)[0]):
        with _explain_errors(uri):
            client = _connect(uri)
            for name in client.list_collections():
                if name.startswith(f"{about['name']}_"):
                    client.drop_collection(name)
            client.close()
    else:
        _log.warning("milvus at %s: collections %s_* were not dropped; drop them yourself", uri, about["name"])
    remove_below(folder, _record_path(folder).relative_to(folder).as_posix())


def _record_path(folder: Path) -> Path:
    return folder / "store" / "milvus.json"


def _read_record(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        content: dict[str, Any] = json.loads(_record_path(folder).read_text(encoding="utf-8"))
        # collections with this prefix are dropped with the index, so it must be a prefix that we generated
        if _NAME.fullmatch(str(content["name"])):
            return content
    raise BundleError(f"{_record_path(folder)}: damaged; the index's collections are lost; build the index again")


def _parse(argument: str | None) -> tuple[str, str]:
    """Return the address and the index type of `URI[?index=HNSW]`; the default address is a file in the cache."""
    address, _, query = (argument or "").partition("?")
    kind = query.removeprefix("index=").upper() or "FLAT"
    if kind not in _KINDS:
        raise ToolkitError(f"--store milvus: no index type {kind!r}; choose one of {', '.join(_KINDS)}")
    if address.startswith(_SERVERS):
        if "@" in urlsplit(address).netloc:
            raise ToolkitError(f"--store milvus: no password in the URI; set the environment variable {_TOKEN}")
        return address, kind
    if address in ("", "lite"):
        return str(find_cache_folder() / "milvus.db"), kind
    if address.endswith(".db"):
        return str(Path(address).absolute()), kind
    raise ToolkitError(
        f"--store milvus:{address}: neither a server nor a .db file; give milvus:http://HOST:19530[/DATABASE], "
        "milvus:/PATH/FILE.db, or milvus:lite for a file in the cache"
    )


def _connect(uri: str) -> MilvusClient:
    with _explain_errors(uri):
        if not uri.startswith(_SERVERS):
            Path(uri).parent.mkdir(parents=True, exist_ok=True)
        return MilvusClient(uri, token=os.environ.get(_TOKEN, ""), timeout=_CONNECT_SECONDS)


@contextmanager
def _explain_errors(uri: str) -> Iterator[None]:
    """Turn an error of Milvus into a `ServiceError` with advice and without the token."""
    for name in ("milvus_lite", "pymilvus", "grpc"):  # silence these loggers: their messages contain the token
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    except (MilvusException, RpcError, OSError) as error:
        # only the cause mentions a wrong token
        cause = error.__cause__ if isinstance(error.__cause__, RpcError) else error
        words = cause.details() if isinstance(cause, RpcError) else str(getattr(cause, "message", "") or cause)
        words = str(words).strip().partition("\n")[0].replace(os.environ.get(_TOKEN) or "\0", "***")
        advice = f"is the server running, does the database exist, and is {_TOKEN} right?"
        if not uri.startswith(_SERVERS):
            advice = "a milvus-lite file serves one process at a time: end the other process, or use a server"
        raise ServiceError(f"milvus at {uri}: {words}; {advice}") from None


class MilvusStore:
    """The vectors of one layer of an index (documents, sections or chunks), in a Milvus collection.

    Rows with a key greater than the last saved key come from an interrupted run, or are being added by another process.
    Only the process that adds such rows sees them.
    """

    def __init__(self, uri: str, kind: str, collection: str, dimensions: int, record: Path) -> None:
        self.dimensions, self.collection = dimensions, collection
        self._uri, self._record = uri, record
        index_parameters, self._search_parameters = _KINDS[kind]
        self._last: int = json.loads(record.read_text(encoding="utf-8")).get("last", {}).get(collection, -1)
        self._client: Any = _connect(uri)
        with _explain_errors(uri):
            if not self._client.has_collection(collection):
                schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
                schema.add_field("key", DataType.INT64, is_primary=True)
                schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
                index = self._client.prepare_index_params()
                index.add_index("vector", index_type=kind, metric_type="IP", params=index_parameters)
                # Strong: added rows are found and counted at once
                self._client.create_collection(
                    collection, schema=schema, index_params=index, consistency_level="Strong"
                )
        self._call("load_collection")

    def __len__(self) -> int:
        [row] = self._call("query", filter=f"key <= {self._last}", output_fields=["count(*)"])
        return int(row["count(*)"])

    def add(self, keys: Sequence[int] | Keys, vectors: Vectors) -> None:
        if not len(keys):
            return
        numbers = np.asarray(keys, np.int64)
        self._last = max(self._last, int(numbers.max()))
        rows = zip(numbers.tolist(), np.asarray(vectors, np.float32), strict=True)
        for some in _batch([{"key": key, "vector": row} for key, row in rows], _MAX_ROWS):
            self._call("upsert", data=some)

    def remove(self, keys: Sequence[int] | Keys) -> None:
        for some in _batch(np.asarray(keys, np.int64).tolist(), _MAX_KEYS):
            self._call("delete", ids=some)

    def search(self, queries: Vectors, k: int, *, within: Sequence[int] | Keys | None = None) -> tuple[Vectors, Keys]:
        conditions = [f"key <= {self._last}"]
        if within is not None:
            wanted = np.unique(np.asarray(within, np.int64))
            wanted = wanted[wanted <= self._last]
            conditions = [f"key in {some}" for some in _batch(wanted.tolist(), _MAX_KEYS)]
        results = [self._search(queries, min(k, _MAX_RESULTS), condition) for condition in conditions]
        empty = make_empty_hits(len(queries), 0)
        scores, keys = (np.concatenate(columns, axis=1) for columns in zip(empty, *results, strict=True))
        return rank_keys(scores, keys, k)

    def _search(self, queries: Vectors, limit: int, condition: str) -> tuple[Vectors, Keys]:
        scores, keys = make_empty_hits(len(queries), limit)
        parameters = dict(self._search_parameters)
        if "ef" in parameters:
            parameters["ef"] = max(limit, parameters["ef"])
        replies = self._call(
            "search",
            data=list(np.asarray(queries, np.float32)),
            filter=condition,
            limit=limit,
            anns_field="vector",
            search_params={"metric_type": "IP", "params": parameters},
            # a search sees all rows of this process, without a wait of up to 200 ms for other processes' rows
            consistency_level="Session",
        )
        for row, hits in enumerate(replies):
            scores[row, : len(hits)] = [hit["distance"] for hit in hits]
            keys[row, : len(hits)] = [hit["key"] for hit in hits]
        return scores, keys

    def vectors(self, keys: Sequence[int] | Keys) -> Vectors:
        wanted = np.asarray(keys, np.int64).tolist()
        rows: dict[int, list[float]] = {}
        for some in _batch(wanted, _MAX_KEYS):
            stored = self._call("get", ids=some, output_fields=["key", "vector"])
            rows.update((row["key"], row["vector"]) for row in stored)
        return np.array([rows[key] for key in wanted if key in rows], np.float32).reshape(-1, self.dimensions)

    def save(self, keys: Keys) -> None:
        self._last = int(keys[-1]) if len(keys) else -1
        self._call("delete", filter=f"key > {self._last}")  # smaller keys were replaced or removed before
        self._call("flush")
        about = json.loads(self._record.read_text(encoding="utf-8"))
        about["last"] = {**about.get("last", {}), self.collection: self._last}
        self._record.write_text(f"{json.dumps(about)}\n", encoding="utf-8")

    def close(self) -> None:
        self._client.close()

    def _call(self, verb: str, **options: Any) -> Any:
        with _explain_errors(self._uri):
            return getattr(self._client, verb)(self.collection, **options)


def _batch(items: list[Item], size: int) -> Iterator[list[Item]]:
    return (items[at : at + size] for at in range(0, len(items), size))
