"""The metrics of CUAD's authors: precision and recall at every confidence threshold, as in their script.

A prediction is right if its set of words and that of a gold quote have a Jaccard index of at least 0.5. For
the parties of a contract, a prediction that contains the quote is also right. A quote without a right
prediction is missed. The precision at a recall is the highest precision at this recall or at a higher one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_SHARED = 0.5  # the share of common words among all words of quote and prediction, as in the authors' script
_CUTS = (*np.arange(0.99, 0, -0.01).tolist(), 0.001, 0.0)
"""The thresholds of the confidence, in turn."""
_MARKS = re.compile(r"[.,;:]")


class Predicted(NamedTuple):
    """A question with its gold quotes (none if nothing answers), and the predicted answers with their confidences."""

    gold: Sequence[str]
    said: Sequence[tuple[str, float]]
    is_parties: bool = False


class Published(NamedTuple):
    """CUAD's three metrics (AUPR, precision at 80% and at 90% recall), and the recall of all predictions."""

    area: float
    at_80: float
    at_90: float
    recall: float

    def __str__(self) -> str:
        """Return CUAD's metrics in one line: AUPR, precision at 80% and 90% recall, and recall of all predictions."""
        return (
            f"AUPR {self.area:.3f}, precision at 80% recall {self.at_80:.3f}, at 90% {self.at_90:.3f}; "
            f"recall of all {self.recall:.3f}"
        )


def compute_published(asked: Sequence[Predicted]) -> Published:
    """Return CUAD's metrics (AUPR, and precision at 80% and 90% recall), computed over all questions together."""
    tables = [_make_table(one) for one in asked]
    precisions, recalls = [1.0], [0.0]
    for cut in _CUTS:
        right = wrong = total = 0
        for one, table in zip(asked, tables, strict=True):
            kept = table[[likely > cut for _, likely in one.said]]
            right += int(kept.any(axis=0).sum())
            wrong += int((~kept.any(axis=1)).sum())
            total += len(one.gold)
        precisions.append(right / (right + wrong) if right + wrong else 1.0)
        recalls.append(right / total if total else 0.0)
    best = np.maximum.accumulate(precisions[::-1])[::-1]
    at = [next((float(p) for p, r in zip(best, recalls, strict=True) if r >= least), 0.0) for least in (0.8, 0.9)]
    return Published(float(np.trapezoid(best, recalls)), at[0], at[1], recalls[-1])


def _make_table(one: Predicted) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return a table of booleans: whether each prediction (row) is right for each gold quote (column)."""
    rows = [[_is_right(quote, words, one.is_parties) for quote in one.gold] for words, _ in one.said]
    return np.array(rows, np.bool_).reshape(len(one.said), len(one.gold))


def _is_right(quote: str, words: str, may_hold: bool) -> bool:
    gold, said = (set(_MARKS.sub("", text).lower().replace("/", " ").split()) for text in (quote, words))
    return len(gold & said) >= _SHARED * len(gold | said) or (may_hold and quote in words)
