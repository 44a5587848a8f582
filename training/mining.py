"""Finds hard negatives: wrong passages that the network in its present state ranks high."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from training.pack import Ints
from training.sampling import Examples, Row

FIRST = 40
"""The number of wrong passages of a document that are kept, the highest-ranked first."""


def mine(
    examples: Examples, rows: Sequence[Row], passages: Tensor, queries: Tensor, *, first: int = FIRST
) -> list[Ints]:
    """Return, for each question, the passages of its document that are wrong but most similar to the question.

    There are at most `first` passages per question, the most similar first. If the question is of a known kind,
    the mean vector of all wordings of this kind is used instead of the question's own vector.
    """
    device = passages.device
    middles = {
        kind: queries[torch.from_numpy(numbers).to(device)].mean(0) for kind, numbers in examples.wordings.items()
    }
    by_document: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        by_document[row.document].append(at)
    wrong: list[Ints] = [np.zeros(0, np.int64)] * len(rows)
    for document, members in by_document.items():
        span = examples.pack.passages_of(document)
        allowed = np.zeros((len(members), span.stop - span.start), np.bool_)
        for place, at in enumerate(members):
            allowed[place, rows[at].others - span.start] = True
        asked = [middles[rows[at].kind] if rows[at].kind >= 0 else queries[rows[at].query] for at in members]
        near = torch.stack(asked) @ passages[span].T
        near = near.masked_fill(torch.from_numpy(~allowed).to(device), -torch.inf)
        # all questions of a document at once, on the device: row by row, this took half of the training time
        best = near.topk(min(first, near.shape[1])).indices.cpu().numpy()
        for place, at in enumerate(members):
            wrong[at] = best[place, : min(first, len(rows[at].others))] + span.start
    return wrong
