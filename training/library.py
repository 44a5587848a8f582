"""Training on a clause library (ACORD): queries, and the grades that lawyers gave to its clauses.

Each clause is a document. Its score for a query is the score of its best passage.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from training.network import Encoder, Texts
from training.pack import Ints, Pack
from training.sampling import Random

_DRAWN = {4: 4, 3: 4, 2: 3, 1: 5, 0: 8}
"""The number of clauses of each grade that are drawn with a query."""
_GAIN = {4: 4.0, 3: 3.0, 2: 1.0}
"""The target weight of a clause by its grade; a clause of grade 1 or 0 has none."""


@dataclass(frozen=True)
class Drawn:
    """The queries of a training step, each with some clauses, and the target probability of each clause."""

    queries: Ints
    """The numbers of the queries' texts."""
    clauses: list[Ints]
    """The documents that are clauses, by query."""
    shares: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]


def hold_out_queries(pack: Pack, share: float, fold: int = 0) -> frozenset[int]:
    """Return the held-out queries of the clause library: about this share, chosen by a hash of their words.

    Each fold holds out other queries: with a share of a fifth, five training runs measure every query once.
    """
    queries = {int(query) for query in pack.grades[:, 0]} if share else set()
    return frozenset(q for q in queries if fold <= _place(pack, q) / share < fold + 1)


def _place(pack: Pack, query: int) -> float:
    """Return a hash of a query's words as a number from 0 up to, but not including, 1."""
    words = pack.text(int(pack.queries[query, 0])).tobytes()
    return hashlib.sha256(words).digest()[0] / 256


class Library:
    """The training queries of a clause library (ACORD): each query has clauses with grades from lawyers.

    The queries in `without` are left out, because they are held out for measuring. A query whose clauses all
    have a grade below 2 is left out, too.
    """

    def __init__(self, pack: Pack, *, without: frozenset[int] = frozenset()) -> None:
        self.pack = pack
        self.graded: dict[int, dict[int, Ints]] = {}
        by: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for query, document, grade in pack.grades.tolist():
            by[query][grade].append(document)
        for query, grades in by.items():
            if query not in without and any(grade >= 2 for grade in grades):
                self.graded[query] = {grade: np.array(documents, np.int64) for grade, documents in grades.items()}
        self.words = {query: [query] for query in self.graded}
        """Each query with its other wordings."""
        for query, other in pack.also.tolist():
            if query in self.words:
                self.words[query].append(other)

    def draw(self, count: int, random: Random) -> Drawn:
        """Return `count` random queries for the clause library, or all queries if there are fewer.

        Each query comes with some random clauses of every grade that lawyers gave to clauses for this query.
        """
        chosen = random.choice(list(self.graded), size=min(count, len(self.graded)), replace=False)
        clauses, shares = [], []
        for query in chosen.tolist():
            documents: list[int] = []
            gains: list[float] = []
            for grade, graded in self.graded[query].items():
                some = random.choice(graded, size=min(_DRAWN[grade], len(graded)), replace=False)
                documents += some.tolist()
                gains += [_GAIN.get(grade, 0.0)] * len(some)
            total = np.array(gains, np.float32)
            clauses.append(np.array(documents, np.int64))
            shares.append(total / total.sum())
        asked = [int(random.choice(self.words[query])) for query in chosen.tolist()]
        return Drawn(self.pack.queries[asked, 0], clauses, shares)

    def passages(self, document: int) -> range:
        """Return the row numbers, in the pack, of the passages of one clause.

        In a clause library each clause is a document, so that `document` is the clause's number.
        """
        span = self.pack.passages_of(document)
        return range(span.start, span.stop)


def compute_library_loss(
    encoder: Encoder,
    texts: Texts,
    library: Library,
    count: int,
    random: Random,
    merged: Mapping[str, Tensor],
    temperature: float,
) -> Tensor:
    """Return the cross-entropy of the clauses' scores, averaged over queries.

    The targets are the probabilities in `Drawn`: a clause with a higher grade has a higher probability.
    """
    drawn = library.draw(count, random)
    device = texts.ids.device
    documents, place = np.unique(np.concatenate(drawn.clauses), return_inverse=True)
    spans = [library.passages(int(document)) for document in documents]
    owners = torch.tensor([at for at, span in enumerate(spans) for _ in span], device=device)
    passages = torch.tensor([passage for span in spans for passage in span], device=device)
    vectors = encoder.embed(texts, passages, merged=merged)
    asked = encoder.embed(texts, torch.from_numpy(drawn.queries).to(device), merged=merged)
    near = asked @ vectors.T
    best = near.new_full((len(near), len(documents)), -1.0)
    best = best.scatter_reduce(1, owners.expand(len(near), -1), near, "amax") / temperature
    losses, at = [], 0
    for number, (clauses, shares) in enumerate(zip(drawn.clauses, drawn.shares, strict=True)):
        mine = torch.from_numpy(place[at : at + len(clauses)]).to(device)
        at += len(clauses)
        logs = torch.log_softmax(best[number, mine], dim=0)
        losses.append(-(torch.from_numpy(shares).to(device) * logs).sum())
    return torch.stack(losses).mean()
