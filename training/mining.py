"""Wrong passages that look right: those that the network, as it is now, ranks first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from training.pack import Ints
from training.sampling import Examples, Row

Scores = npt.NDArray[np.float32]

FIRST = 40
"""How many wrong passages of a document are kept, the likeliest first."""


def mine(
    examples: Examples, rows: Sequence[Row], passages: Tensor, queries: Tensor, *, first: int = FIRST
) -> list[Ints]:
    """Return, for each question, the wrong passages of its document, the likeliest first, over all its wordings."""
    device = passages.device
    middles = torch.stack(
        [queries[torch.from_numpy(examples.wordings[kind]).to(device)].mean(0) for kind in sorted(examples.wordings)]
    )
    by_document: dict[int, Scores] = {}
    wrong: list[Ints] = []
    for row in rows:
        span = examples.pack.passages_of(row.document)
        if row.document not in by_document:
            by_document[row.document] = (passages[span] @ middles.T).float().cpu().numpy()
        near = by_document[row.document][row.others - span.start, row.kind]
        wrong.append(row.others[np.argsort(-near, kind="stable")[:first]])
    return wrong
