"""Measures models on the documents for tuning, by their ranking of the right document's passages.

The figures serve to choose between trainings. `exhibit evaluate` measures the effect of weights on the whole pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.network import Judge, Texts
from training.pack import Ints, Pack, Role, list_wordings

ROLES_MEASURED: tuple[Role, ...] = ("own", "test", "asked")
"""The wordings in the measurements: the benchmark's, wordings not used for training, and questions of no kind."""
FIRST = 12  # first passages that a reranker scores
DENSE = 0.5  # the weight of the embedder's score beside the reranker's
HIT = 30  # a passage with this many characters of gold, or with the share `_SHARE` of the gold, is a hit
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


def list_asks(pack: Pack, role: Role) -> list[Ask]:
    """Return the questions about the documents for tuning, each in one wording from the origin `role` (see ROLES)."""
    gold: dict[int, list[Span]] = defaultdict(list)
    for row, start, end in pack.gold.tolist():
        gold[row].append((start, end))
    by_kind, wanted = list_wordings(pack, role), []
    for row, (document, kind, query, impossible) in enumerate(pack.rows.tolist()):
        wordings = by_kind[kind].tolist() if kind >= 0 else [query] if role == "asked" else []
        if wordings and pack.documents[document]["split"] == "dev":
            chosen = wordings[row * 7 % len(wordings)]
            wanted.append(Ask(chosen, document, bool(impossible), tuple(gold[row])))
    return wanted


@dataclass
class Ground:
    """The data of a training run: its pack with all texts on the device, and the figures of its models."""

    pack: Pack
    texts: Texts
    record: dict[str, Any]
    sample: int
    """The most questions of a group that are measured."""
    vectors: tuple[Tensor, Tensor] | None = None
    """The vectors of all passages and queries, by the embedder that was measured last."""

    @property
    def device(self) -> torch.device:
        """The device of the texts."""
        return self.texts.ids.device

    def groups(self, *, impossible: bool) -> Iterator[tuple[str, list[Ask]]]:
        """Yield a sample of questions for each benchmark and origin of wording, with a name such as `cuad, own`."""
        groups: dict[str, list[Ask]] = defaultdict(list)
        for role in ROLES_MEASURED:
            for ask in list_asks(self.pack, role):
                if impossible or not ask.impossible:
                    groups[f"{self.pack.documents[ask.document]['source']}, {role}"].append(ask)
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

    def show(self, title: str, group: str, count: int, figures: Mapping[str, float]) -> None:
        """Print a line of figures, and add it to the record."""
        rounded = {name: round(float(value), 3) for name, value in figures.items()}
        self.record.setdefault("figures", {}).setdefault(title, {})[group] = {"n": count, **rounded}
        print(f"{title:16} {group:18} n {count:4} ", *(f"{k} {v:.3f}" for k, v in rounded.items()), flush=True)


def measure_ranking(ground: Ground, ask: Ask, ranked: Ints) -> dict[str, float]:
    """Return metrics of a ranking of a document's passages."""
    _, start, end, *_ = ground.pack.passages[ranked[:64]].T
    spans = [np.clip(np.minimum(end, high) - np.maximum(start, low), 0, None) for low, high in ask.gold]
    shared, total = np.sum(spans, axis=0), sum(high - low for low, high in ask.gold)
    return {
        "hit@1": float(shared[0] >= HIT or shared[0] >= _SHARE * total),
        "P@1": shared[0] / (end[0] - start[0]),
        "R@8": shared[:8].sum() / total,
        "R@12": shared[:FIRST].sum() / total,
        "R@64": shared.sum() / total,
    }


def measure_embedder(ground: Ground, title: str, vectors: tuple[Tensor, Tensor]) -> None:
    """Print how well an embedder ranks the passages of the right document."""
    ground.vectors = vectors
    for group, asks in ground.groups(impossible=False):
        rows = [measure_ranking(ground, ask, ground.rank(ask)[0]) for ask in asks]
        ground.show(title, group, len(rows), {key: float(np.mean([row[key] for row in rows])) for key in rows[0]})


def measure_judge(ground: Ground, title: str, judge: Judge) -> list[tuple[bool, float]]:
    """Print how well a reranker, a teacher or a reader ranks the embedder's first passages.

    `AUROC` compares the best scores of questions with and without an answer. Return, for each question, whether it
    has no answer, and its best score.
    """
    every: list[tuple[bool, float]] = []
    for group, asks in ground.groups(impossible=True):
        orders = [ground.rank(ask) for ask in asks]
        rows, best = [], []
        for ask, (order, near), judged in zip(asks, orders, _score(ground, judge, asks, orders), strict=True):
            best.append((ask.impossible, float(judged.max())))
            if not ask.impossible:
                head = _standardise(judged) + DENSE * _standardise(near[: len(judged)])
                moved = [order[: len(head)][np.argsort(-head, kind="stable")], order[len(head) :]]
                rows.append(measure_ranking(ground, ask, np.concatenate(moved)))
        means = {name: float(np.mean([row[name] for row in rows])) for name in ("hit@1", "R@8")}
        yes, no = ([score for impossible, score in best if impossible == kind] for kind in (False, True))
        if (area := compute_auroc(yes, no)) is not None:
            means["AUROC"] = area
        ground.show(title, group, len(rows), means)
        every += best
    return every


def _score(ground: Ground, judge: Judge, asks: Sequence[Ask], orders: Sequence[tuple[Ints, Floats]]) -> list[Floats]:
    heads = [order[:FIRST] for order, _ in orders]
    texts = ground.pack.queries[[ask.query for ask in asks], 0]
    questions = torch.from_numpy(np.repeat(texts, [len(head) for head in heads])).to(ground.device)
    with torch.no_grad():
        scores = judge.score(ground.texts, questions, torch.from_numpy(np.concatenate(heads)).to(ground.device))
    return np.split(scores.double().cpu().numpy(), np.cumsum([len(head) for head in heads])[:-1])


def _standardise(values: Floats) -> Floats:
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def compute_auroc(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """Return the AUROC: the probability that a question with an answer has a higher score than a question without."""
    if not len(yes) or not len(no):
        return None
    higher = np.subtract.outer(np.array(yes), np.array(no))
    return float((higher > 0).mean() + 0.5 * (higher == 0).mean())
