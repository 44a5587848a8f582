"""Fits a reranker's confidence: the probability, given the best score, that the document answers the question.

python -m training.calibrate --pack pack.npz --adapter legal.safetensors --reranker reranker.safetensors \\
    --fit-adapter without-dev.safetensors --fit-reranker reranker-without-dev.safetensors \\
    --measure held.npz --out models/rerankers/weights/confidence

Scores are more reliable on documents that the weights were trained on. So the fit uses a second pair of
weights, trained by the same recipe but without --all: --fit-adapter and --fit-reranker. It is made on the
documents for tuning, which this second training did not use. The confidence of the shipped weights
(--adapter, --reranker) is then measured on packs that neither training used (--measure).
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
from training.figures import load_judge
from training.measure import compute_auroc, group_of, list_asks
from training.network import Encoder, Judge, Texts, merge
from training.pack import Pack, Role, load_pack
from training.scoring import embed_all, rank_passages, rerank
from training.tensors import Array, read_tensors

FIRST = 16
"""The number of passages whose best score counts; the preset `careful` reranks as many."""
ROLES: tuple[Role, ...] = ("own", "test", "asked")
"""The wordings of the questions: a question with a kind is asked in its benchmark's words and in words outside the
training data; any other question as it is.
"""
THRESHOLDS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
"""The thresholds of refusing that are reported: lower ones refuse hardly any question, higher ones too many."""
_STEPS = 50
"""The number of Newton steps: two parameters converge in ten."""

Floats = npt.NDArray[np.float64]


class Verdict(NamedTuple):
    """A question with its best score, and whether it has an answer.

    It also has the question's document, its source, and the role of its wording (such as `train` or `test`).
    """

    score: float
    answerable: bool
    document: int
    source: str
    role: Role


def make_verdicts(pack: Pack, adapted: Mapping[str, Array], judge: Judge, *, split: str | None = None) -> list[Verdict]:
    """Return, for each question of a pack, the best reranker score of a passage in the question's document.

    Each result also says whether the document answers the question. A pack is a file of training data.
    """
    device = next(judge.parameters()).device
    texts = Texts(pack.tokens, pack.ends, device)
    vectors = embed_all(Encoder(adapted, rank=1, seed=0).to(device), texts, pack)
    told = []
    for role in ROLES:
        wanted = list_asks(pack, role=role, split=split)
        if not wanted:
            continue
        ranked = [order for order, _ in rank_passages(pack, wanted, *vectors)]
        for ask, scores in zip(wanted, rerank(judge, texts, pack, wanted, ranked, first=FIRST), strict=True):
            if len(scores):
                best = float(scores.max())
                told.append(Verdict(best, not ask.impossible, ask.document, group_of(pack, ask), role))
    return told


def fit(scores: Floats, answerable: Floats) -> tuple[float, float]:
    """Fit a logistic curve by maximum likelihood; return its slope and its offset."""
    if len(np.unique(answerable)) < 2:
        raise ToolkitError(
            "the fit needs questions with an answer and questions without one, and the pack has only one kind"
        )
    table = np.stack([scores, np.ones_like(scores)], axis=1)
    curve = np.array([1.0, 0.0])
    # a small penalty on the slope: if the two groups of questions do not overlap, the fit would not converge
    ridge = 1e-3 * np.eye(2)
    for _ in range(_STEPS):
        likely = _compute_logistic(table @ curve)
        weight = likely * (1 - likely)
        slope = table.T @ (answerable - likely) - ridge @ curve
        curve = curve + np.linalg.solve((table * weight[:, None]).T @ table + ridge, slope)
    return float(curve[0]), float(curve[1])


def _compute_logistic(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -60, 60))), np.float64)


def report(title: str, told: Sequence[Verdict], slope: float, offset: float) -> None:
    """Print how well the confidence separates answerable questions from unanswerable ones.

    Figures are printed for each benchmark (`source`) and each role of a question's wording, such as `train` or
    `test`. The confidence of a question is the logistic function of `slope` times its score plus `offset`.
    """
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in told:
        groups[verdict.source, verdict.role].append(verdict)
    for (source, role), some in sorted(groups.items()):
        sure = _compute_logistic(slope * np.array([v.score for v in some]) + offset)
        answerable = np.array([v.answerable for v in some])
        yes, no = sure[answerable], sure[~answerable]
        area = compute_auroc(yes.tolist(), no.tolist())
        if area is None:
            continue
        documents = len({v.document for v in some})
        print(f"{title}: {source}, {role} words: {len(some)} questions, {documents} documents: AUROC {area:.3f}")
        cuts = (f"{cut:g}: {np.mean(no < cut):.2f} / {np.mean(yes < cut):.2f}" for cut in THRESHOLDS)
        print(f"  right abstentions / false refusals at {', '.join(cuts)}")
        print(f"  said and true: {', '.join(_describe_bins(sure, answerable))}")


def _describe_bins(sure: Floats, answerable: npt.NDArray[np.bool_]) -> list[str]:
    """Return, for each fifth of the range of confidence, the share of its questions that have an answer, as text.

    For example, `0.8 to 1.0: 0.93 of 120` means that 93% of the 120 questions with this confidence have an
    answer.
    """
    told = []
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = (sure >= low) & ((sure < low + 0.2) | (low == 0.8))
        if here.any():
            told.append(f"{low:.1f} to {low + 0.2:.1f}: {answerable[here].mean():.2f} of {here.sum()}")
    return told


# ---------------------------------------------------------------- the command


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Calibrate the reranker's confidence, and write the fitted slope and offset to NAME.json (`--out NAME`).

    Print how well the confidence separates questions with an answer from questions without an answer.
    """
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
    parser.add_argument(
        "--fit-reranker", type=Path, metavar="FILE", help="a reranker trained without the dev split, on that embedder"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="NAME", help="writes NAME.json")
    options = parser.parse_args(arguments)
    if (options.fit_adapter is None) != (options.fit_reranker is None):
        raise ToolkitError(
            "--fit-adapter and --fit-reranker belong together, since a reranker needs its own embedder; give both"
        )
    pack, weights, device = _cli.prepare(options)
    pairs = {
        "fit": (options.fit_adapter or options.adapter, options.fit_reranker or options.reranker),
        "shipped": (options.adapter, options.reranker),
    }
    told = make_verdicts(pack, *_load(weights, *pairs["fit"], device), split="dev")
    slope, offset = fit(np.array([v.score for v in told]), np.array([float(v.answerable) for v in told]))
    print(f"slope {slope:.4f}, offset {offset:.4f}")
    report("fitted on", told, slope, offset)
    shipped = _load(weights, *pairs["shipped"], device)
    for path in options.measure:
        report(path.stem, make_verdicts(load_pack(path), *shipped), slope, offset)
    _write(options.out.with_suffix(".json"), told, slope, offset, [_cli.digest(path) for path in pairs["fit"]])
    return 0


def _load(
    weights: Mapping[str, Array], adapter: Path, reranker: Path, device: torch.device
) -> tuple[dict[str, Array], Judge]:
    adapted = merge(weights, read_tensors(adapter))
    return adapted, load_judge(adapted, read_tensors(reranker)).to(device)


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
