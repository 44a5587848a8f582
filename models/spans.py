"""Tokens to answers: of three numbers for each token, the stretches that are likeliest an answer's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.floating]


def decode(tokens: Numbers, *, lean: float = 0.0) -> list[tuple[int, int]]:
    """Return the stretches of tokens, half-open, whose sum is the greatest: several, one, or none.

    Each row has the log-odds that a token is inside an answer, begins one and ends one. A stretch counts all its
    insides, the beginning of its first token and the end of its last; `lean` is added to every inside, so that above
    zero more is taken for an answer.
    """
    out, within, closing = 0.0, -np.inf, -np.inf
    steps: list[tuple[bool, bool]] = []
    """Whether the best way to be outside comes from inside, and the best way to be inside from outside."""
    for inside, begins, ends in tokens.tolist():
        leaves, enters = closing > out, out + begins > within
        out, within = max(out, closing), max(out + begins, within) + inside + lean
        closing = within + ends
        steps.append((leaves, enters))
    spans: list[tuple[int, int]] = []
    end = len(steps) if closing > out else 0
    for at in range(len(steps) - 1, -1, -1):
        leaves, enters = steps[at]
        if end and enters:
            spans.append((at, end))
            end = 0
        elif not end and leaves:
            end = at
    return spans[::-1]
