"""Prints the retrieval figures of existing weights on packs (files of questions and passages); trains nothing.

python -m training.figures --pack pack.npz --measure mini.npz --adapter models/embedders/weights/legal.safetensors
python -m training.figures … --reranker models/rerankers/weights/legal.safetensors
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from exhibit.runtime.command import guarded
from training import _cli
from training.network import Encoder, Judge, load, merge
from training.tensors import Array, read_tensors


def load_encoder(weights: Mapping[str, Array], low: Mapping[str, Array]) -> Encoder:
    """Return the network with its low-rank weights kept apart, so that it can be measured with and without them."""
    encoder = Encoder(weights, rank=_rank(low), seed=0)
    load(encoder, low)
    return encoder


def load_judge(weights: Mapping[str, Array], low: Mapping[str, Array]) -> Judge:
    """Return a trained reranker.

    `weights` are the full weights of the embedder that the reranker was trained on. `low` has what the
    training produced: low-rank weights and an output layer (`head`).
    """
    judge = Judge(weights, rank=_rank(low), seed=0)
    load(judge.encoder, low)
    with torch.no_grad():
        judge.head.weight.copy_(torch.from_numpy(low["head.weight"]))
        judge.head.bias.copy_(torch.from_numpy(low["head.bias"]))
    return judge


def _rank(low: Mapping[str, Array]) -> int:
    return next(int(array.shape[0]) for name, array in low.items() if name.endswith(".down"))


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command: print the retrieval figures of a trained embedder, or of a trained reranker."""
    parser = argparse.ArgumentParser(prog="python -m training.figures", description=__doc__.partition("\n")[0])
    _cli.add_inputs(parser)
    parser.add_argument("--adapter", type=Path, required=True, metavar="FILE", help="the embedder's low-rank weights")
    parser.add_argument(
        "--reranker", type=Path, metavar="FILE", help="the low-rank weights of a reranker on that embedder"
    )
    options = parser.parse_args(arguments)
    pack, weights, device = _cli.prepare(options)
    low = read_tensors(options.adapter)
    ground = _cli.ground_of(pack, device, options)
    if options.reranker is None:
        encoder = load_encoder(weights, low).to(device)
        _cli.report_embedder(encoder, pack, options, strength=1.0, leave_out=ground.leave_out)
        _cli.report_library(encoder, pack, ground, strength=1.0)
    else:
        adapted = merge(weights, low)
        judge = load_judge(adapted, read_tensors(options.reranker)).to(device)
        _cli.report_reranker(judge, adapted, pack, options, leave_out=ground.leave_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
