"""Measures models on the documents for tuning, by their ranking of the right document's passages.

The figures serve to choose between trainings. `exhibit evaluate` measures the effect of weights on the whole pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.network import Judge, Texts
from training.pack import ROLES, Ints, Pack, Role

ROLES_MEASURED: tuple[Role, ...] = ("own", "test", "asked")
"""The wordings in the measurements: the benchmark's, wordings not used for training, and questions of no kind."""
FIRST = 12  # first passages that a reranker scores
DENSE = 0.5  # the weight of the embedder's score beside the reranker's
HIT = 30  # a passage with so many characters of gold is a hit; less gold needs 0.8 of it
_SHARE = 0.8

Floats = npt.NDArray[np.float64]
Span = tuple[int, int]


@dataclass(frozen=True)
class Ask:
    """A question in a certain wording, about a document."""

    query: int
    document: int
    impossible: bool
    gold: tuple[Span, ...]


def list_asks(pack: Pack, *, role: Role, split: str | None = None) -> list[Ask]:
    """Return the questions of a pack, each in one wording of a role."""
    gold: dict[int, list[Span]] = defaultdict(list)
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
        if wordings:
            chosen = wordings[row * 7 % len(wordings)]
            wanted.append(Ask(chosen, document, bool(impossible), tuple(gold[row])))
    return wanted


def group_of(pack: Pack, ask: Ask) -> str:
    """Return the benchmark of a question: the field `group` of its document or, without it, the field `source`."""
    document = pack.documents[ask.document]
    return str(document.get("group") or document["source"])


@dataclass
class Measured:
    """The data for measurements: questions by benchmark and wording, and the vectors that find passages."""

    pack: Pack
    texts: Texts
    sample: int
    """The most questions of a group."""
    split: str | None = "dev"
    figures: dict[str, Any] = field(default_factory=dict)
    vectors: tuple[Tensor, Tensor] | None = None

    def groups(self, *, impossible: bool) -> Iterator[tuple[str, list[Ask]]]:
        """Yield each benchmark and wording, with a sample of its questions."""
        groups: dict[str, list[Ask]] = defaultdict(list)
        for role in ROLES_MEASURED:
            for ask in list_asks(self.pack, role=role, split=self.split):
                if impossible or not ask.impossible:
                    groups[f"{group_of(self.pack, ask)}, {role}"].append(ask)
        for name, asks in groups.items():
            order = np.random.default_rng(0).permutation(len(asks))[: self.sample]
            yield name, [asks[at] for at in sorted(order)]

    def rank(self, ask: Ask) -> tuple[Ints, Floats]:
        """Return the passages of a question's document, best first, and their scores."""
        assert self.vectors is not None
        passages, queries = self.vectors
        span = self.pack.passages_of(ask.document)
        near = (passages[span] @ queries[ask.query]).double().cpu().numpy()
        order = np.argsort(-near, kind="stable")
        return order + span.start, near[order]

    def count_gold(self, ask: Ask, passages: Ints) -> npt.NDArray[np.int64]:
        """Return the number of characters of gold in each of some passages."""
        _, start, end, *_ = self.pack.passages[passages].T
        shared = [np.clip(np.minimum(end, high) - np.maximum(start, low), 0, None) for low, high in ask.gold]
        return np.asarray(np.sum(shared, axis=0), np.int64)

    def show(self, title: str, group: str, count: int, figures: Mapping[str, float]) -> None:
        """Print a line of figures, and add it to the record."""
        rounded = {name: round(float(value), 3) for name, value in figures.items()}
        self.figures.setdefault("figures", {}).setdefault(title, {})[group] = {"n": count, **rounded}
        print(f"{title:16} {group:18} n {count:4} ", *(f"{k} {v:.3f}" for k, v in rounded.items()), flush=True)


def measure_ranking(measured: Measured, ask: Ask, ranked: Ints) -> dict[str, float]:
    """Return metrics of a ranking of a document's passages."""
    shared, total = measured.count_gold(ask, ranked[:64]), sum(end - start for start, end in ask.gold)
    _, start, end, *_ = measured.pack.passages[ranked[0]].tolist()
    return {
        "hit@1": float(shared[0] >= HIT or shared[0] >= _SHARE * total),
        "P@1": shared[0] / (end - start),
        "R@8": shared[:8].sum() / total,
        "R@12": shared[:FIRST].sum() / total,
        "R@64": shared.sum() / total,
    }


def measure_embedder(measured: Measured, title: str, vectors: tuple[Tensor, Tensor]) -> None:
    """Print how well an embedder ranks the passages of the right document."""
    measured.vectors = vectors
    for group, asks in measured.groups(impossible=False):
        rows = [measure_ranking(measured, ask, measured.rank(ask)[0]) for ask in asks]
        measured.show(title, group, len(rows), {key: float(np.mean([row[key] for row in rows])) for key in rows[0]})


def measure_judge(measured: Measured, title: str, judge: Judge) -> list[tuple[bool, float]]:
    """Print how well a reranker, a teacher or a reader ranks the embedder's first passages, beside its own score.

    `AUROC` compares the best scores of questions with and without an answer. Return, for each question, whether it has
    no answer, and its best score.
    """
    every: list[tuple[bool, float]] = []
    for group, asks in measured.groups(impossible=True):
        orders = [measured.rank(ask) for ask in asks]
        rows, best = [], []
        for ask, (order, near), judged in zip(asks, orders, _score(measured, judge, asks, orders), strict=True):
            best.append((ask.impossible, float(judged.max())))
            if not ask.impossible:
                head = _standardise(judged) + DENSE * _standardise(near[: len(judged)])
                moved = [order[: len(head)][np.argsort(-head, kind="stable")], order[len(head) :]]
                rows.append(measure_ranking(measured, ask, np.concatenate(moved)))
        means = {name: float(np.mean([row[name] for row in rows])) for name in ("hit@1", "R@8")}
        yes, no = ([score for impossible, score in best if impossible == kind] for kind in (False, True))
        if (area := compute_auroc(yes, no)) is not None:
            means["AUROC"] = area
        measured.show(title, group, len(rows), means)
        every += best
    return every


def _score(
    measured: Measured, judge: Judge, asks: Sequence[Ask], orders: Sequence[tuple[Ints, Floats]]
) -> list[Floats]:
    heads = [order[:FIRST] for order, _ in orders]
    texts = measured.pack.queries[[ask.query for ask in asks], 0]
    device = measured.texts.ids.device
    questions = torch.from_numpy(np.repeat(texts, [len(head) for head in heads])).to(device)
    with torch.no_grad():
        scores = judge.score(measured.texts, questions, torch.from_numpy(np.concatenate(heads)).to(device))
    return np.split(scores.double().cpu().numpy(), np.cumsum([len(head) for head in heads])[:-1])


def _standardise(values: Floats) -> Floats:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def compute_auroc(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """Return the AUROC: the probability that a question with an answer scores higher than one without."""
    if not len(yes) or not len(no):
        return None
    higher = np.subtract.outer(np.array(yes), np.array(no))
    return float((higher > 0).mean() + 0.5 * (higher == 0).mean())
