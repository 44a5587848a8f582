"""Versions of laws: whether the first passage is the right provision, in the version of the question's date.

`provision_first`: whether the first passage is from the right provision of the right law, in any version.
`version_accuracy`: whether its version is the one in force on the question's date; None if the first
passage is not from the right provision.
"""

import re
from collections.abc import Iterator, Sequence

from exhibit.evaluation.documents import touches
from exhibit.evaluation.metrics import Case, Options, Passage, Values, score_each
from exhibit.evidence import Span

NAMES = ("provision_first", "version_accuracy")


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return two scores for each question about a provision of a law; None for all other questions.

    `provision_first` is 1 if the first passage is from the right provision, else 0. `version_accuracy` is 1 if
    the passage is also from the version in force, else 0; it is None if the provision is wrong.
    """
    first = score_each(cases, _compare_first)
    return {
        "provision_first": [None if value is None else float(value >= 0) for value in first],
        "version_accuracy": [None if value is None or value < 0 else value for value in first],
    }


def _compare_first(case: Case) -> float | None:
    """Return 1 if the first passage has the right version, 0 for another version, -1 for another provision.

    None if the question asks for no provision.
    """
    if case.is_impossible or "paragraph" not in case.labels or not any(gold.places for gold in case.gold):
        return None
    right = has_right_version(case.reply.passages[0], case) if case.reply.passages else None
    return -1.0 if right is None else float(right)


_PLACE = re.compile(r"#(\d+)-(\d+)(?: |$)")


def find_near_misses(case: Case) -> Iterator[tuple[str, Span]]:
    """Yield the file and the span of the provision in each wrong version of the law.

    A version is wrong if it is not in force on the question's date. The label `other_versions` has these spans.
    """
    parts = _PLACE.split(str(case.labels.get("other_versions") or ""))
    for name, start, end in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        yield name.lstrip(), Span(int(start), int(end))


def has_right_version(passage: Passage, case: Case) -> bool | None:
    """Return whether a passage has the right version of the provision that the question asks about.

    The result is True if the passage overlaps gold, False if it overlaps the same provision in another version,
    and None otherwise.
    """
    spans = passage.spans
    if any(passage.source == gold.filename and touches(span, gold) for gold in case.gold for span in spans):
        return True
    near = [place for name, place in find_near_misses(case) if name == passage.source]
    return False if any(one.start < place.end and place.start < one.end for one in spans for place in near) else None
