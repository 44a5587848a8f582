"""Document-level retrieval mismatch: the share of the first k passages that come from a file with no gold.

A passage whose file is not known, as several have its words, counts neither way; where fewer than k were retrieved the
share is of those; where none was, there is no share. The mean is over questions; `pooled` is over all passages at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from exhibit.evaluation.metrics import KS, Case, Cutoff, Options, Values, about, gold_files, is_wrong_file, scoped

NAMES = tuple(f"drm@{k}" for k in KS)


class Mismatch(NamedTuple):
    """How many passages there are, and how many of them come from a file with no gold."""

    wrong: int
    passages: int


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the share of mismatched passages at each k."""
    counted = mismatches(cases, replace(options, ks=(cutoff,)) if cutoff else options)
    return {name: [None if m is None else m.wrong / m.passages for m in column] for name, column in counted.items()}


def mismatches(cases: Sequence[Case], options: Options) -> dict[str, list[Mismatch | None]]:
    """Return the counts behind each share."""
    judged = [scoped(case, about("drm").needs, options) for case in cases]
    wrong = [[is_wrong_file(one, gold_files(case)) for one in case.reply.passages] if case else [] for case in judged]
    return {f"drm@{k}": [_counted(row[:k]) for row in wrong] for k in options.ks}


def totals(cases: Sequence[Case], options: Options) -> dict[str, Mismatch]:
    """Return the counts of all questions together, at each k; what several calls return can be added up."""
    return {
        name: Mismatch(sum(m.wrong for m in column if m), sum(m.passages for m in column if m))
        for name, column in mismatches(cases, options).items()
    }


def pooled(counts: Mapping[str, Mismatch]) -> dict[str, float | None]:
    """Return the share of mismatched passages among all of all questions, at each k."""
    return {name: count.wrong / count.passages if count.passages else None for name, count in counts.items()}


def _counted(wrong: Sequence[bool | None]) -> Mismatch | None:
    known = [one for one in wrong if one is not None]
    return Mismatch(sum(known), len(known)) if known else None
