"""Prepares the weights that training starts from: all-MiniLM-L6-v2, and a cross-encoder trained on MS MARCO.

    python -m training.base --pack pack.npz --out base.safetensors

The cross-encoder is cross-encoder/ms-marco-MiniLM-L-12-v2 (Apache-2.0), the base of the reranker `teacher`. The output
file is small, because it is copied to another machine: weights have 8 bits, and only words of the pack have vectors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exhibit.runtime.command import guarded
from training.network import CLS, SEP, Array, read_tensors, write_tensors
from training.pack import load_pack

FILES = {
    "embedder": "embedders/weights/legal",
    "reranker": "rerankers/weights/legal",
    "reader": "weights/reader",
}
"""The files of weights in the folder exhibit/models that are added to all-MiniLM-L6-v2."""
_WORDS = "embeddings.word_embeddings.weight"
PAD = 0  # the token id of padding


def keep_words(weights: Mapping[str, Array], used: npt.NDArray[np.int64]) -> dict[str, Array]:
    """Return a network in which only the `used` words keep their vectors; all others are zeros, which compress well."""
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
    parser.add_argument("--pack", type=Path, required=True, metavar="FILE", help="from python -m training.gather")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    # import here, because the machine for training may lack the packages that it needs
    from exhibit.models.network import OFFICIAL
    from exhibit.models.rerankers.teacher import PUBLISHED

    used = np.unique(np.concatenate([load_pack(options.pack).tokens, [PAD, CLS, SEP]])).astype(np.int64)
    networks = {"minilm": OFFICIAL.weights(), "teacher": PUBLISHED.weights()}
    arrays = {f"{n}/{name}": array for n, some in networks.items() for name, array in keep_words(some, used).items()}
    write_tensors(arrays, options.out, eight=[name for name, array in arrays.items() if array.ndim == 2])
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB, {len(used)} word vectors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
