"""Document-level retrieval mismatch: the share of the first k passages that come from a file with no gold.

A passage whose file is not known, as several have its words, counts neither way; where fewer than k were retrieved the
share is of those; where none was, there is no share. The mean is over questions; `pooled` is over all passages at once.
"""

from collections.abc import Sequence
from dataclasses import replace

from exhibit.evaluation.metrics import KS, Case, Cutoff, Options, Values
from exhibit.evaluation.ranking import mismatches

NAMES = tuple(f"drm@{k}" for k in KS)


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the share of mismatched passages at each k."""
    counted = mismatches(cases, replace(options, ks=(cutoff,)) if cutoff else options)
    return {name: [None if m is None else m.wrong / m.passages for m in column] for name, column in counted.items()}
