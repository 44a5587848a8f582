"""Metrics of a ranking of the passages within the question's own document, by vectors or by scores.

These metrics are for choosing between training runs. They look only at single passages; the effect of the
weights on the whole pipeline is measured with `evaluate_rag.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from training.pack import ROLES, Ints, Pack, Role

DEPTHS = (1, 8, 64)  # as in the papers' tables

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ask:
    """A question in a certain wording, about a document."""

    row: int
    query: int
    document: int
    kind: int
    impossible: bool
    gold: tuple[tuple[int, int], ...]


def list_asks(pack: Pack, *, role: Role, split: str | None = None, each: int = 1) -> list[Ask]:
    """Return the questions of a pack in wordings of one role, at most `each` wordings per question.

    A role is the origin of a wording, such as `train`, `test` or `asked` (the bundle's own question). The
    wordings are chosen by the row number of the question, so that the choice is always the same.
    """
    gold: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, start, end in pack.gold.tolist():
        gold[row].append((start, end))
    by_kind: dict[int, list[int]] = defaultdict(list)
    for number, (_, kind, number_of_role) in enumerate(pack.queries.tolist()):
        if ROLES[number_of_role] == role and kind >= 0:
            by_kind[kind].append(number)
    wanted = []
    for row, (document, kind, query, impossible) in enumerate(pack.rows.tolist()):
        if split is not None and pack.documents[document]["split"] != split:
            continue
        wordings = by_kind[kind] if kind >= 0 else [query] if role == "asked" else []
        for turn in range(min(each, len(wordings))):
            chosen = wordings[(row * 7 + turn * 5) % len(wordings)]
            wanted.append(Ask(row, chosen, document, kind, bool(impossible), tuple(gold[row])))
    return wanted


def measure_characters(pack: Pack, ask: Ask, ranked: Ints) -> list[float]:
    """Return the precision of the first passage, and the recall of the first 8 and the first 64, in characters."""
    figures = []
    total = sum(end - start for start, end in ask.gold)
    for depth in DEPTHS:
        shared = seen = 0
        for _, start, end, *_ in pack.passages[ranked[:depth]].tolist():
            seen += end - start
            shared += sum(max(0, min(end, high) - max(start, low)) for low, high in ask.gold)
        figures.append(shared / seen if depth == 1 else shared / total)
    return figures


def make_table(pack: Pack, wanted: Sequence[Ask], ranked: Sequence[Ints]) -> dict[str, list[float]]:
    """Return, for each benchmark, the number of questions and the means of their three metrics in percent.

    The metrics are those of `measure_characters`: precision of the first passage, recall of the first 8, and
    recall of the first 64. The key `all` has the values over all benchmarks. Questions without gold are left
    out.
    """
    groups: dict[str, list[list[float]]] = defaultdict(list)
    for ask, order in zip(wanted, ranked, strict=True):
        if ask.impossible or not ask.gold:
            continue
        figures = measure_characters(pack, ask, order)
        groups[group_of(pack, ask)].append(figures)
        groups["all"].append(figures)
    return {name: [len(rows), *(100 * np.mean(rows, axis=0)).tolist()] for name, rows in sorted(groups.items())}


def group_of(pack: Pack, ask: Ask) -> str:
    """Return the benchmark of a question: the field `group` of its document or, without it, the field `source`."""
    document = pack.documents[ask.document]
    return str(document.get("group") or document["source"])


def join_scores(near: Scores, judged: Scores, *, dense: float) -> Scores:
    """Return the weighted sum of two scores of each passage, after standardising both scores.

    `judged` are the reranker's scores, with weight 1. `near` are the embedder's scores, with weight `dense`.
    """
    return _standardise(judged) + dense * _standardise(near)


def _standardise(values: Scores) -> Scores:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def compute_auroc(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """Return the AUROC: the probability that a question with an answer scores higher than one without.

    None if there are no questions with an answer, or none without.
    """
    if not len(yes) or not len(no):
        return None
    values = np.concatenate([yes, no])
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(1, len(values) + 1)
    for value in np.unique(values):  # equal values share their ranks
        same = values == value
        if same.sum() > 1:
            ranks[same] = ranks[same].mean()
    return float((ranks[: len(yes)].sum() - len(yes) * (len(yes) + 1) / 2) / (len(yes) * len(no)))


def measure_abstention(yes: Sequence[float], no: Sequence[float]) -> tuple[float, float]:
    """Return two shares at the best threshold: right abstentions and false refusals.

    A question is refused if its score is below the threshold. `no` has the scores of questions without an
    answer: the first share is the share of these that are refused. `yes` has the scores of questions with an
    answer: the second share is the share of these that are refused. The best threshold has the largest
    difference of the first share minus the second.
    """
    best = max(sorted([*yes, *no]), key=lambda cut: np.mean(np.array(no) < cut) - np.mean(np.array(yes) < cut))
    return float(np.mean(np.array(no) < best)), float(np.mean(np.array(yes) < best))


# ---------------------------------------------------------------- a library of clauses


def compute_library_ndcg(
    pack: Pack, near: Scores, queries: Sequence[int], depths: tuple[int, ...] = (5, 10)
) -> list[float]:
    """Return the mean nDCG in percent at each depth, with the grade as gain.

    It is computed over the graded clauses of each query; clauses without a grade are ignored. `near` has one
    row for each query, with the score of each passage.
    """
    figures = []
    for at, query in enumerate(queries):
        scores = near[at]
        grades = {d: g for q, d, g in pack.grades[pack.grades[:, 0] == query].tolist()}
        clauses = sorted(grades)
        spans = [pack.passages_of(document) for document in clauses]
        best = np.array([scores[span].max() if span.stop > span.start else -np.inf for span in spans])
        gains = np.array([grades[clauses[place]] for place in np.argsort(-best, kind="stable")[: max(depths)]])
        ideal = np.array(sorted(grades.values(), reverse=True))
        figures.append([_compute_dcg(gains[:depth]) / _compute_dcg(ideal[:depth]) for depth in depths])
    means: list[float] = (100 * np.mean(figures, axis=0)).tolist()
    return means


def _compute_dcg(gains: npt.NDArray[np.int64]) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())
