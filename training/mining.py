"""Wrong passages that look right: those that the network, as it is now, ranks first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from training.pack import Ints
from training.sampling import Examples, Row

FIRST = 40
"""How many wrong passages of a document are kept, the likeliest first."""


def mine(
    examples: Examples, rows: Sequence[Row], passages: Tensor, queries: Tensor, *, first: int = FIRST
) -> list[Ints]:
    """Return, for each question, the wrong passages of its document, the likeliest first, over all its wordings."""
    device = passages.device
    middles = {
        kind: queries[torch.from_numpy(numbers).to(device)].mean(0) for kind, numbers in examples.wordings.items()
    }
    found: list[Ints] = []
    for row in rows:
        if not len(row.others):
            found.append(np.zeros(0, np.int64))
            continue
        others = torch.from_numpy(row.others).to(device)
        best = torch.topk(passages[others] @ middles[row.kind], min(first, len(others))).indices
        found.append(row.others[best.cpu().numpy()])
    return found
