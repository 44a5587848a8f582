"""Which version of a law a passage is from: the one of the question's day, or a near miss in another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.documents import touches
from exhibit.evidence import Span

_PLACE = re.compile(r"(\S.*?)#(\d+)-(\d+)(?: |$)")


def near_misses(case: Case) -> Iterator[tuple[str, Span]]:
    """Yield where the same paragraph stands in other versions, by the label `other_versions`."""
    for name, start, end in _PLACE.findall(str(case.labels.get("other_versions") or "")):
        yield name, Span(int(start), int(end))


def right_version(passage: Passage, case: Case) -> bool | None:
    """Return whether a passage of the right paragraph is of the right version; None for any other passage."""
    if passage.span is None:
        return None
    span = passage.span
    if any(passage.source == gold.filename and touches(span, gold) for gold in case.gold if gold.places):
        return True
    near = (place for name, place in near_misses(case) if name == passage.source)
    return False if any(span.start < place.end and place.start < span.end for place in near) else None
