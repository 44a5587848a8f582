"""Document-level retrieval mismatch: the share of the first k passages that are from a file without gold.

A passage whose words occur in several files has no known file and is ignored. If fewer than k passages were
retrieved, the share is over the retrieved passages; if none was retrieved, it is None. The reported mean is
over questions; `pooled` is the share over the passages of all questions together.
"""

from collections.abc import Sequence
from dataclasses import replace

from exhibit.evaluation.metrics import KS, Case, Cutoff, Options, Values
from exhibit.evaluation.ranking import count_mismatches

NAMES = tuple(f"drm@{k}" for k in KS)


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return, for each `drm@k`, the share of the first k passages that are from a file without gold.

    There is one value per question; it is None if no passage can be counted.
    """
    counted = count_mismatches(cases, replace(options, ks=(cutoff,)) if cutoff else options)
    return {name: [None if m is None else m.wrong / m.passages for m in column] for name, column in counted.items()}
