"""Which cases a metric applies to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from exhibit.evaluation.cases import Case, Values


def each(cases: Sequence[Case], score: Callable[[Case], float | None]) -> Values:
    """Return one value a case, None where the system failed to reply."""
    return [None if case.reply.error else score(case) for case in cases]


def gold_texts(case: Case) -> list[str]:
    """Return the words of the gold passages; none for an impossible row."""
    return [] if case.is_impossible else [gold.text for gold in case.gold if gold.text and gold.text.strip()]


def gold_files(case: Case) -> frozenset[str]:
    """Return the files that hold gold; none for an impossible row."""
    return frozenset() if case.is_impossible else frozenset(gold.filename for gold in case.gold if gold.filename)
