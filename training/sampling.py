"""Draws the examples of a training step: questions in many wordings, with right and wrong passages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from training.pack import ROLES, Ints, Pack, is_called

COVER = 0.5
"""A passage answers if this share of it is gold, or if it contains this share of one of the gold spans."""
_NEAR = 1
"""The number of passages beside a gold one that are never drawn as wrong ones, since the answer may continue there."""

Random = np.random.Generator


@dataclass(frozen=True)
class Row:
    """A question about a document: the passages that answer it, and those that certainly do not."""

    document: int
    kind: int
    """The number of the question's kind; -1 = none."""
    query: int
    """The query with its own words if it has no kind; else -1."""
    answers: Ints
    weights: npt.NDArray[np.float64]
    """The probability that each answering passage is drawn."""
    others: Ints
    """The passages of the document without gold that are not beside a passage with gold."""
    number: int = -1
    """The row of the question in the pack."""


class Examples:
    """The questions from which training examples are drawn.

    Only questions about documents of the given splits are included. `leave_out` names kinds of questions to
    omit.
    """

    def __init__(
        self, pack: Pack, *, split: tuple[str, ...] = ("train",), leave_out: frozenset[str] = frozenset()
    ) -> None:
        self.pack = pack
        kept = {number for number, document in enumerate(pack.documents) if document["split"] in split}
        out = {number for number, kind in enumerate(pack.kinds) if is_called(kind, leave_out)}
        self.answerable: list[Row] = []
        self.impossible: list[Row] = []
        gold: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, passage, count in pack.positives.tolist():
            gold[row].append((passage, count))
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for row, start, end in pack.gold.tolist():
            spans[row].append((start, end))
        for number, (document, kind, query, impossible) in enumerate(pack.rows.tolist()):
            if document in kept and kind not in out and (impossible or gold[number]):
                row = replace(_make_row(pack, document, kind, query, gold[number], spans[number]), number=number)
                (self.impossible if impossible else self.answerable).append(row)
        self.wordings = {kind: _list_wordings(pack, kind, ("own", "train")) for kind in range(len(pack.kinds))}
        self.own = {kind: _list_wordings(pack, kind, ("own",)) for kind in range(len(pack.kinds))}
        self.kinds_of: dict[int, set[int]] = defaultdict(set)
        """The kinds that a passage has gold for: it is no wrong answer to any question of these kinds."""
        for row, passage, _ in pack.positives.tolist():
            if pack.rows[row, 1] >= 0:
                self.kinds_of[passage].add(int(pack.rows[row, 1]))
        self.headings = pack.headings[np.isin(pack.passages[pack.headings[:, 1], 0], list(kept))]
        self.passages = np.flatnonzero(np.isin(pack.passages[:, 0], list(kept)))
        sources = {name: number for number, name in enumerate(dict.fromkeys(d["source"] for d in pack.documents))}
        self.source_of_document = np.array([sources[document["source"]] for document in pack.documents])
        self.source_of_kind = np.array([sources[kind.partition("/")[0]] for kind in pack.kinds], np.int64)

    def compute_shares(self, rows: list[Row], balance: float) -> npt.NDArray[np.float64]:
        """Return the probability with which each row is drawn.

        A `balance` of 1 draws sources in proportion to their size, 0 draws all sources equally often.
        """
        sources = np.array([self.pack.documents[row.document]["source"] for row in rows])
        names, place, counts = np.unique(sources, return_inverse=True, return_counts=True)
        weights = (counts.astype(np.float64) ** balance / counts)[place] if len(names) else np.ones(len(rows))
        return np.asarray(weights / weights.sum(), np.float64)

    def draw_wording(self, row: Row, random: Random, *, own: float = 0.0) -> int:
        """Draw a random wording of the row's kind of question, and return the wording's number.

        With the probability `own`, only the benchmark's wordings of this kind are drawn. A row without a kind has
        one wording, which is always returned.
        """
        if row.kind < 0:
            return row.query
        wordings = self.own if own and random.random() < own else self.wordings
        return int(random.choice(wordings[row.kind]))


def _make_row(
    pack: Pack, document: int, kind: int, query: int, gold: list[tuple[int, int]], spans: list[tuple[int, int]]
) -> Row:
    span = pack.passages_of(document)
    inside = {passage for passage, _ in gold}
    near = {passage + step for passage in inside for step in range(-_NEAR, _NEAR + 1)}
    others = np.array([passage for passage in range(span.start, span.stop) if passage not in near], np.int64)
    cover = []
    for passage, count in gold:
        _, start, end, *_ = pack.passages[passage].tolist()
        held = ((min(end, last) - max(start, first)) / (last - first) for first, last in spans)
        cover.append(max([count / (end - start), *held]))
    kept = [at for at, share in enumerate(cover) if share >= COVER] or ([int(np.argmax(cover))] if cover else [])
    weights = np.array([min(cover[at], 1.0) for at in kept], np.float64)
    answers = np.array([gold[at][0] for at in kept], np.int64)
    return Row(document, kind, query, answers, weights / weights.sum() if len(weights) else weights, others)


def _list_wordings(pack: Pack, kind: int, roles: tuple[str, ...]) -> Ints:
    wanted = [number for number, role in enumerate(ROLES) if role in roles]
    return np.flatnonzero((pack.queries[:, 1] == kind) & np.isin(pack.queries[:, 2], wanted))
