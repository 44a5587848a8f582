"""Builds all-MiniLM-L6-v2 as an ONNX graph from its weights: token ids in, unit vectors out.

With a head the graph reads a question and a passage together and outputs a score; with a span head also the log-odds
of a yes, and six numbers for each token: inside, begins and ends the quote that answers, and the same for the short
answer. The texts of a batch have equal lengths, so there is no padding and no mask.

In int8, a graph that outputs vectors or spans has one scale per token and one per column of the weights, which takes
half the time. A graph that outputs scores has one scale per block: its confidence was calibrated with such scales.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, LAYERS, EPSILON = 384, 12, 6, 1e-12  # from the model's own config.json
VECTORS, SCORES, TOKENS, VERDICTS = "vectors", "scores", "tokens", "verdicts"
"""The names of the graphs' outputs."""
_BLOCK = 128
"""The numbers that share a scale. One scale for a whole text is faster, but costs a point of recall."""
_MAX_WEIGHT = 100  # the largest weight as an integer: bench/results/models.md was measured with this value
_ZERO = 128  # the zero point of unsigned 8-bit numbers
_MIN_INSIDE = 1e-3  # divisor of a mean, as in training: in a passage without a quote the sum is nearly 0
_CONTRIB = "com.microsoft"
_OPSET = 20  # the first with Gelu
_SINGLE = npt.NDArray[np.float32]
_BYTES = npt.NDArray[np.uint8]
_PROBED = (WIDTH, 41)  # a matrix whose columns fill some kernels, and leave a rest for others
_PROBED_ROWS = (1, 13)  # one state has a kernel of its own


def build_graph(
    weights: dict[str, _SINGLE], *, precision: str, samples: Sequence[Sequence[int]] = (), signed: bool = False
) -> onnx.ModelProto:
    """Return the network as an ONNX graph in int8 or fp32.

    `samples` are the token ids of typical texts, from which scales per token are measured. `signed` stores int8 weights
    as signed integers: see `has_exact_signed_products`.
    """
    judges, reads = "head.weight" in weights, "spans.weight" in weights
    rows = precision == "int8" and samples and (reads or not judges)
    graph = _Graph(weights, precision, read_peaks(weights, samples) if rows else {}, signed=signed)
    state = _encode(graph, pairs=judges)
    # the texts side by side as one wide row for each token: onnxruntime then adds up a text's states as if it ran alone
    wide = graph.add("Reshape", graph.add("Transpose", state, perm=[1, 0, 2]), graph.add_integers(0, -1))
    mean = graph.add("ReduceMean", wide, graph.add_integers(0), keepdims=0)
    mean = graph.add("Reshape", mean, graph.add_integers(-1, WIDTH))
    if judges:
        both = graph.add("Concat", graph.add("Gather", state, graph.add_scalar(0), axis=1), mean, axis=-1)
        graph.add_head(both, "head", SCORES)
        if reads:
            graph.add_head(state, "spans", TOKENS)
            graph.add_head(_add_quoted(graph, state), "says", VERDICTS)
        more = {VERDICTS: ("texts", 1), TOKENS: ("texts", "tokens", len(weights["spans.weight"]))} if reads else {}
        return graph.make_model(inputs=("ids", "types"), outputs={SCORES: ("texts", 1), **more})
    graph.add("LpNormalization", mean, outputs=[VECTORS], axis=-1, p=2)
    return graph.make_model(inputs=("ids",), outputs={VECTORS: ("texts", WIDTH)})


def _encode(graph: "_Graph", *, pairs: bool, **gelu: Any) -> str:
    """Add the embeddings and all layers to the graph; return the name of its output, a state for each token."""
    state = _embed_tokens(graph, pairs=pairs)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        attend = _attend_at_once if f"{layer}.attention.self" in graph.peaks else _attend
        mixed = attend(graph, state, f"{layer}.attention.self")
        attended = graph.linear(mixed, f"{layer}.attention.output.dense")
        state = graph.normalise(graph.add("Add", attended, state), f"{layer}.attention.output.LayerNorm")
        wide = graph.add("Gelu", graph.linear(state, f"{layer}.intermediate.dense"), **gelu)
        narrow = graph.linear(wide, f"{layer}.output.dense")
        state = graph.normalise(graph.add("Add", narrow, state), f"{layer}.output.LayerNorm")
    return state


def _add_quoted(graph: "_Graph", state: str) -> str:
    """Add the input of the yes-or-no head, and return the name of this input."""
    inside = graph.add("Sigmoid", graph.add("Slice", TOKENS, *map(graph.add_integers, (0, 1, 2))))
    passage = graph.add("Unsqueeze", graph.add("Cast", "types", to=TensorProto.FLOAT), graph.add_integers(2))
    share = graph.add("Mul", inside, passage)
    total = graph.add("ReduceSum", graph.add("Mul", state, share), graph.add_integers(1), keepdims=0)
    least = graph.add_constant(np.array(_MIN_INSIDE, np.float32))
    whole = graph.add("Max", graph.add("ReduceSum", share, graph.add_integers(1), keepdims=0), least)
    first = graph.add("Gather", state, graph.add_scalar(0), axis=1)
    return graph.add("Concat", first, graph.add("Div", total, whole), axis=-1)


def _embed_tokens(graph: "_Graph", *, pairs: bool) -> str:
    """Add the nodes of the embedding layer, and return the name of their output: one vector per token."""
    kinds = graph.weights["embeddings.token_type_embeddings.weight"]
    words = graph.add("Gather", graph.weight("embeddings.word_embeddings.weight"), "ids")
    length = graph.add("Slice", graph.add("Shape", "ids"), graph.add_integers(1), graph.add_integers(2))
    positions = graph.weights["embeddings.position_embeddings.weight"]
    # with one token type, its embedding can be added to the positions'
    table = graph.add_constant(positions if pairs else positions + kinds[0])
    places = graph.add("Slice", table, graph.add_integers(0), length, graph.add_integers(0))
    state = graph.add("Add", words, places)
    if pairs:
        state = graph.add("Add", state, graph.add("Gather", graph.add_constant(kinds), "types"))
    return graph.normalise(state, "embeddings.LayerNorm")


def _attend(graph: "_Graph", state: str, prefix: str) -> str:
    """Add an attention block; return the name of its output."""
    scales = {"query": np.float32((WIDTH // HEADS) ** -0.5), "key": np.float32(1), "value": np.float32(1)}
    weight, bias = (
        np.concatenate([graph.weights[f"{prefix}.{part}.{kind}"] * scale for part, scale in scales.items()])
        for kind in ("weight", "bias")
    )
    graph.given[prefix] = state
    joint = graph.add_product(state, weight, bias)
    split = graph.add("Reshape", joint, graph.add_integers(0, 0, 3, HEADS, WIDTH // HEADS))
    heads = graph.add("Transpose", split, perm=[2, 0, 3, 1, 4])  # part, text, head, token, number
    query, key, value = (graph.add("Gather", heads, graph.add_scalar(part), axis=0) for part in range(3))
    scores = graph.add("Softmax", graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2])), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", scores, value), perm=[0, 2, 1, 3])
    return graph.add("Reshape", mixed, graph.add_integers(0, 0, WIDTH))


def _attend_at_once(graph: "_Graph", state: str, prefix: str) -> str:
    """Add an attention block as one fused node, which is faster than `_attend`; return the name of its output."""
    weight, bias = (
        np.concatenate([graph.weights[f"{prefix}.{part}.{kind}"] for part in ("query", "key", "value")])
        for kind in ("weight", "bias")
    )
    joint = graph.add_row_product(state, weight, prefix)
    parts = [f"{joint}_{part}" for part in ("query", "key", "value")]
    graph.add("Split", joint, outputs=parts, axis=-1, num_outputs=3)
    return graph.add("MultiHeadAttention", *parts, graph.add_constant(bias), domain=_CONTRIB, num_heads=HEADS)


class _Graph:
    """The nodes and constants of an ONNX graph under construction; names such as `constant_3` contain a number."""

    def __init__(
        self, weights: dict[str, _SINGLE], precision: str, peaks: Mapping[str, _SINGLE], *, signed: bool = False
    ) -> None:
        self.weights, self._precision, self.peaks, self._signed = weights, precision, peaks, signed
        self.given: dict[str, str] = {}
        """The input of each product, by the product's name."""
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, outputs: list[str] | None = None, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        outputs = outputs or [f"{kind}_{len(self._nodes)}"]
        self._nodes.append(helper.make_node(kind, list(inputs), outputs, **attributes))
        return outputs[0]

    def add_constant(self, value: npt.NDArray[np.generic]) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def add_integers(self, *values: int) -> str:
        return self.add_constant(np.array(values, np.int64))

    def add_scalar(self, value: int) -> str:
        return self.add_constant(np.array(value, np.int64))

    def number(self, value: float) -> str:
        return self.add_constant(np.array(value, np.float32))

    def weight(self, name: str) -> str:
        return self.add_constant(self.weights[name])

    def linear(self, state: str, name: str) -> str:
        """Add one of the network's linear layers, with its bias; return the name of its output."""
        self.given[name] = state
        if name in self.peaks:
            product = self.add_row_product(state, self.weights[f"{name}.weight"], name)
            return self.add("Add", product, self.weight(f"{name}.bias"))
        return self.add_product(state, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def add_product(self, state: str, weight: _SINGLE, bias: _SINGLE) -> str:
        """Add the nodes that compute `state` times a weight matrix plus a bias; return the name of their output."""
        if self._precision != "int8":
            return self.add("Add", self.add("MatMul", state, self.add_constant(weight.T)), self.add_constant(bias))
        rows, columns = weight.shape
        blocks = weight.reshape(rows, columns // _BLOCK, _BLOCK)
        scales = np.abs(blocks).max(axis=2) / np.float32(127)
        whole = (np.rint(blocks / scales[:, :, None]) + 128).astype(np.uint8)
        product = self.add(
            "MatMulNBits",
            state,
            self.add_constant(whole),
            self.add_constant(scales.reshape(-1)),
            domain=_CONTRIB,
            K=columns,
            N=rows,
            bits=8,
            block_size=_BLOCK,
            accuracy_level=4,
        )
        return self.add("Add", product, self.add_constant(bias))

    def add_row_product(self, state: str, weight: _SINGLE, name: str) -> str:
        """Add the product of `state` and the weight matrix in 8-bit integers, and return the name of the output."""
        shares = balance(self.peaks[name], weight)
        matrix = (weight * shares).T
        scales = np.abs(matrix).max(axis=0) / np.float32(_MAX_WEIGHT)
        state = self.add("Mul", state, self.add_constant(1 / shares))
        largest = self.add("ReduceMax", self.add("Abs", state), self.add_integers(-1), keepdims=1)
        largest = self.add("Max", largest, self.number(1e-6))  # a token of zeros has no scale
        zero, one = self.add_constant(np.array(_ZERO, np.uint8)), self.number(1)
        scaled = self.add("Mul", state, self.add("Div", self.number(_ZERO - 1), largest))
        whole = self.add("QuantizeLinear", scaled, one, zero)
        return self.add("Mul", self.add_integer_product(whole, np.rint(matrix / scales), scales), largest)

    def add_integer_product(self, state: str, matrix: _SINGLE, scales: _SINGLE) -> str:
        """Add a node that multiplies an 8-bit state by a matrix of small integers, and each column by its scale."""
        kind, middle = (np.int8, 0) if self._signed else (np.uint8, _ZERO)
        return self.add(
            "MatMulIntegerToFloat",
            state,
            self.add_constant((matrix + middle).astype(kind)),
            self.number(1 / (_ZERO - 1)),
            self.add_constant(scales),
            self.add_constant(np.array(_ZERO, np.uint8)),
            self.add_constant(np.array(middle, kind)),
            domain=_CONTRIB,
        )

    def add_head(self, state: str, name: str, output: str) -> None:
        """Add an output layer (a head): multiply `state` by the weights of `name` and add their bias."""
        weight, bias = (self.add_constant(self.weights[f"{name}.{part}"].T) for part in ("weight", "bias"))
        self.add("Add", self.add("MatMul", state, weight), bias, outputs=[output])

    def normalise(self, state: str, name: str) -> str:
        """Add a layer normalisation; return the name of its output."""
        return self.add(
            "LayerNormalization", state, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), epsilon=EPSILON
        )

    def make_model(
        self, *, inputs: Sequence[str], outputs: Mapping[str, Sequence[str | int]], kind: int = TensorProto.INT64
    ) -> onnx.ModelProto:
        """Return the graph as an ONNX model, after ONNX's checker has accepted it."""
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(given, kind, ["texts", "tokens"]) for given in inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape)) for name, shape in outputs.items()],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        onnx.checker.check_model(model)
        return model


def has_exact_signed_products(multiply: Callable[[_BYTES, _SINGLE], _SINGLE] | None = None) -> bool:
    """Return whether this processor multiplies unsigned states by signed weights without an overflow.

    Processors without instructions for dot products of 8-bit integers add two products in 16 bits, which can overflow.
    They get unsigned weights, which are slower and always exact, so that all processors compute the same vectors.
    """
    chance = np.random.default_rng(0)
    weight = chance.choice(np.array([-127, 127], np.float32), _PROBED)
    for rows in _PROBED_ROWS:
        state = chance.choice(np.array([0, 255], np.uint8), (rows, len(weight)))
        exact = (state.astype(np.float32) - _ZERO) @ weight
        if not np.array_equal((multiply or _multiply_signed)(state, weight), exact):
            return False
    return True


def _multiply_signed(state: _BYTES, weight: _SINGLE) -> _SINGLE:
    """Return the product of unsigned states (zero point 128) and signed weights, as onnxruntime computes it."""
    graph = _Graph({}, "int8", {}, signed=True)
    scales = np.full(weight.shape[1], _ZERO - 1, np.float32)
    product = graph.add_integer_product("states", weight, scales)
    model = graph.make_model(inputs=("states",), outputs={product: ("texts", "numbers")}, kind=TensorProto.UINT8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[_SINGLE] = session.run(None, {"states": state})
    return np.rint(found[0])


TEXTS = (Path(__file__).parent / "embedders" / "weights" / "measured.txt").read_text(encoding="utf-8").splitlines()
"""Texts for calibration: contracts, a policy, a question. The channels with large values are the same on 60 real
chunks.
"""


def read_peaks(weights: dict[str, _SINGLE], samples: Sequence[Sequence[int]]) -> dict[str, _SINGLE]:
    """Return, for each matrix product of the network, the largest absolute value of each input channel."""
    graph = _Graph(weights, "fp32", {})
    _encode(graph, pairs=False, approximate="tanh")  # the approximation is precise enough for a maximum
    outputs = dict.fromkeys(graph.given.values(), ("texts", "tokens", "numbers"))
    model = graph.make_model(inputs=("ids",), outputs=outputs).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    runs = [session.run(list(outputs), {"ids": np.array([ids], np.int64)}) for ids in samples]
    peaks = (np.max([np.abs(state[0]).max(axis=0) for state in states], axis=0) for states in zip(*runs, strict=True))
    return dict(zip(graph.given, peaks, strict=True))


def balance(peaks: _SINGLE, weight: _SINGLE) -> _SINGLE:
    """Return a divisor for each input channel that makes hidden states and weights equally hard to quantise."""
    shares = np.sqrt(np.maximum(peaks, 1e-6) / np.maximum(np.abs(weight).max(axis=0), 1e-6))
    rounded: _SINGLE = np.exp2(np.rint(np.log2(shares / np.median(shares)))).astype(np.float32)
    return rounded
