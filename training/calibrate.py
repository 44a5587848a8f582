"""Fits a reranker's confidence: how likely a best score means that the document answers at all.

python -m training.calibrate --pack pack.npz --adapter legal.safetensors --reranker reranker.safetensors \\
    --fit-adapter without-dev.safetensors --fit-reranker reranker-without-dev.safetensors \\
    --measure held.npz --out models/rerankers/weights/confidence

A score says more of documents that were trained on than of others, so the fit needs weights that have not seen its
documents: those of a second training by the same recipe without --all, whose documents for tuning are fitted on. What
the shipped weights then say is measured on packs that neither of them saw.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import write_whole
from training import _cli
from training.figures import loaded_judge
from training.measure import asks, auroc, group_of
from training.network import Encoder, Judge, Texts, merge
from training.pack import Pack, Role, load_pack
from training.scoring import embed_all, rankings, rerank
from training.tensors import Array, read_tensors

FIRST = 16
"""Passages whose best score counts: so many does the preset `careful` read again."""
ROLES: tuple[Role, ...] = ("own", "test", "asked")
"""A question of a kind is asked in its benchmark's words and in others that were not trained on; any other as it is."""
THRESHOLDS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
"""Where refusing is looked at: below them hardly anything is refused, above them too much."""
_STEPS = 50
"""Newton's steps: two numbers settle in ten."""

Floats = npt.NDArray[np.float64]


class Verdict(NamedTuple):
    """The best score of a question, whether there is an answer, and where it was asked."""

    score: float
    answerable: bool
    document: int
    source: str
    role: Role


def verdicts(pack: Pack, adapted: Mapping[str, Array], judge: Judge, *, split: str | None = None) -> list[Verdict]:
    """Return the best score of every question of a pack, the right document given."""
    device = next(judge.parameters()).device
    texts = Texts(pack.tokens, pack.ends, device)
    vectors = embed_all(Encoder(adapted, rank=1, seed=0).to(device), texts, pack)
    told = []
    for role in ROLES:
        wanted = asks(pack, role=role, split=split)
        if not wanted:
            continue
        ranked = [order for order, _ in rankings(pack, wanted, *vectors)]
        for ask, scores in zip(wanted, rerank(judge, texts, pack, wanted, ranked, first=FIRST), strict=True):
            if len(scores):
                best = float(scores.max())
                told.append(Verdict(best, not ask.impossible, ask.document, group_of(pack, ask), role))
    return told


def fit(scores: Floats, answerable: Floats) -> tuple[float, float]:
    """Return slope and offset of the logistic curve that makes what is known likeliest."""
    if len(np.unique(answerable)) < 2:
        raise ToolkitError("questions with an answer and questions without one are needed: only one kind is there")
    table = np.stack([scores, np.ones_like(scores)], axis=1)
    curve = np.array([1.0, 0.0])
    # a thousandth of a question against a steeper curve: where the two kinds do not overlap the fit would never end
    ridge = 1e-3 * np.eye(2)
    for _ in range(_STEPS):
        likely = _logistic(table @ curve)
        weight = likely * (1 - likely)
        slope = table.T @ (answerable - likely) - ridge @ curve
        curve = curve + np.linalg.solve((table * weight[:, None]).T @ table + ridge, slope)
    return float(curve[0]), float(curve[1])


def _logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -60, 60))), np.float64)


def report(title: str, told: Sequence[Verdict], slope: float, offset: float) -> None:
    """Print, by source and words, how well the confidence tells answers from none, and what refusing would do."""
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in told:
        groups[verdict.source, verdict.role].append(verdict)
    for (source, role), some in sorted(groups.items()):
        sure = _logistic(slope * np.array([v.score for v in some]) + offset)
        answerable = np.array([v.answerable for v in some])
        yes, no = sure[answerable], sure[~answerable]
        area = auroc(yes.tolist(), no.tolist())
        if area is None:
            continue
        documents = len({v.document for v in some})
        print(f"{title}: {source}, {role} words: {len(some)} questions, {documents} documents: AUROC {area:.3f}")
        cuts = (f"{cut:g}: {np.mean(no < cut):.2f} / {np.mean(yes < cut):.2f}" for cut in THRESHOLDS)
        print(f"  right abstentions / false refusals at {', '.join(cuts)}")
        print(f"  said and true: {', '.join(_bins(sure, answerable))}")


def _bins(sure: Floats, answerable: npt.NDArray[np.bool_]) -> list[str]:
    """Return, for each fifth of the scale, the share of questions that have an answer."""
    told = []
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = (sure >= low) & ((sure < low + 0.2) | (low == 0.8))
        if here.any():
            told.append(f"{low:.1f} to {low + 0.2:.1f}: {answerable[here].mean():.2f} of {here.sum()}")
    return told


# ---------------------------------------------------------------- the command


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the confidence and print what it is worth."""
    parser = argparse.ArgumentParser(
        prog="python -m training.calibrate",
        description=__doc__.partition("\n")[0],
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _cli.add_inputs(parser)
    parser.add_argument("--adapter", type=Path, required=True, metavar="FILE", help="the embedder that is shipped")
    parser.add_argument("--reranker", type=Path, required=True, metavar="FILE", help="the reranker that is shipped")
    parser.add_argument("--fit-adapter", type=Path, metavar="FILE", help="an embedder trained without the dev split")
    parser.add_argument("--fit-reranker", type=Path, metavar="FILE", help="and its reranker, likewise")
    parser.add_argument("--out", type=Path, required=True, metavar="NAME", help="writes NAME.json")
    options = parser.parse_args(arguments)
    if (options.fit_adapter is None) != (options.fit_reranker is None):
        raise ToolkitError("--fit-adapter and --fit-reranker go together: a reranker stands on its own embedder")
    pack, weights, device = _cli.prepare(options)
    pairs = {
        "fit": (options.fit_adapter or options.adapter, options.fit_reranker or options.reranker),
        "shipped": (options.adapter, options.reranker),
    }
    told = verdicts(pack, *_loaded(weights, *pairs["fit"], device), split="dev")
    slope, offset = fit(np.array([v.score for v in told]), np.array([float(v.answerable) for v in told]))
    print(f"slope {slope:.4f}, offset {offset:.4f}")
    report("fitted on", told, slope, offset)
    shipped = _loaded(weights, *pairs["shipped"], device)
    for path in options.measure:
        report(path.stem, verdicts(load_pack(path), *shipped), slope, offset)
    _write(options.out.with_suffix(".json"), told, slope, offset, [_cli.digest(path) for path in pairs["fit"]])
    return 0


def _loaded(
    weights: Mapping[str, Array], adapter: Path, reranker: Path, device: torch.device
) -> tuple[dict[str, Array], Judge]:
    adapted = merge(weights, read_tensors(adapter))
    return adapted, loaded_judge(adapted, read_tensors(reranker)).to(device)


def _write(path: Path, told: Sequence[Verdict], slope: float, offset: float, digests: list[str]) -> None:
    record = {
        "slope": round(slope, 4),
        "offset": round(offset, 4),
        "fitted_on": {
            "what": "the documents for tuning, with weights that were trained without them; each question in its "
            "benchmark's words and in others that were not trained on",
            "adapter": digests[0],
            "reranker": digests[1],
            "documents": len({verdict.document for verdict in told}),
            "questions": len(told),
            "answerable": sum(verdict.answerable for verdict in told),
        },
    }
    write_whole(path, json.dumps(record, indent=1) + "\n")
    print(path)


if __name__ == "__main__":
    sys.exit(main())
