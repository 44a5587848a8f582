"""Blends the weights of several training runs: adds them with factors, and reduces the sum to a given rank.

python -m training.blend one.safetensors two.safetensors --shares 0.5 0.5 --rank 22 --out models/embedders/weights/legal

Models from training runs with different seeds fail on different questions. A model with the mean of their
weights fails on fewer questions than any of them. Adapters can be blended with adapters. Rerankers can be
blended with rerankers, and readers with readers, if they were trained on the same adapter. The weights of
output layers (heads) have no low-rank form, so their weighted sum is used as it is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from training import _cli
from training.tensors import Array, read_tensors

_OF_ONE = ("sha256", "recipe", "torch", "left_out", "blend")
"""The keys of a record that describe one file of weights; `blend` lists the parts of weights that are a blend."""


def blend(adapters: Sequence[Mapping[str, Array]], shares: Sequence[float], *, rank: int) -> dict[str, Array]:
    """Return the low-rank weights nearest to the weighted sum of the adapters."""
    names = [name.removesuffix(".up") for name in adapters[0] if name.endswith(".up")]
    if any({f"{name}.up" for name in names} - set(other) for other in adapters):
        raise ToolkitError(
            "the adapters belong to different networks, so they cannot be blended; give adapters of one network"
        )
    blended: dict[str, Array] = {}
    for name in names:
        up = np.concatenate([s * a[f"{name}.up"] for a, s in zip(adapters, shares, strict=True)], axis=1)
        down = np.concatenate([a[f"{name}.down"] for a in adapters])
        # the sum is up @ down, of low rank: its singular values are computed from two small triangular matrices
        q, r = np.linalg.qr(up.astype(np.float64))
        p, t = np.linalg.qr(down.astype(np.float64).T)
        left, sizes, right = np.linalg.svd(r @ t.T)
        roots = np.sqrt(sizes[:rank])
        blended[f"{name}.up"] = ((q @ left[:, :rank]) * roots).astype(np.float32)
        blended[f"{name}.down"] = (roots[:, None] * (right[:rank] @ p.T)).astype(np.float32)
    rest = [name for name in adapters[0] if not name.endswith((".up", ".down"))]
    for name in rest:  # a head has no low-rank form
        blended[name] = sum((s * a[name] for a, s in zip(adapters, shares, strict=True)), np.zeros(1)).astype(
            np.float32
        )
    return blended


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the weighted sum of several adapters as one new adapter, with a JSON record of its parts."""
    parser = argparse.ArgumentParser(prog="python -m training.blend", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "adapters",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="low-rank weights, with their record NAME.json beside them",
    )
    parser.add_argument("--shares", nargs="+", type=float, required=True, metavar="X", help="the factor of each")
    parser.add_argument("--rank", type=int, default=22, help="the rank of the result (default: 22, 1.8 MB)")
    parser.add_argument("--out", type=Path, required=True, metavar="NAME", help="writes NAME.safetensors and NAME.json")
    options = parser.parse_args(arguments)
    if len(options.shares) != len(options.adapters):
        raise ToolkitError(
            f"{len(options.adapters)} adapters, {len(options.shares)} shares: give one share for each adapter"
        )
    records = [json.loads(path.with_suffix(".json").read_text(encoding="utf-8")) for path in options.adapters]
    arrays = blend([read_tensors(path) for path in options.adapters], options.shares, rank=options.rank)
    parts = [
        {"share": share, **{key: record[key] for key in _OF_ONE if key in record}}
        for share, record in zip(options.shares, records, strict=True)
    ]
    kept = {key: value for key, value in records[0].items() if key not in _OF_ONE}
    if len({record.get("adapter") for record in records}) > 1:
        raise ToolkitError(
            "the rerankers were trained on different adapters, so they cannot be blended; give rerankers of one adapter"
        )
    if any(record["documents"] != kept["documents"] for record in records):
        raise ToolkitError(
            "the adapters were trained on different documents, so no record can list them; give adapters of one pack"
        )
    told = {**kept, "strength": 1.0, "rank": options.rank, "blend": parts}
    _cli.write(arrays, options.out, told, eight="reranker" in told)  # as a reader's training writes them
    return 0


if __name__ == "__main__":
    sys.exit(main())
