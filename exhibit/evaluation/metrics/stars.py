"""Stars: three metrics, the shares of the first five files that have at least 3, at least 4, and 5 stars.

ACORD's paper reports the same shares. The number of stars is the grade plus one: grade 2 is three stars. If
fewer than five files were retrieved, the missing files count as files without stars. The metrics apply only
to cases with grades.
"""

from collections.abc import Sequence
from functools import partial

from exhibit.evaluation.metrics import Case, Options, Values, score_each
from exhibit.evaluation.ranking import ranking_of

DEPTH = 5  # as in ACORD's paper
STARS = (3, 4, 5)  # as in ACORD's paper
NAMES = tuple(f"precision_{stars}star@{DEPTH}" for stars in STARS)


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return, for each case, the shares of the first five files with at least three, four and five stars.

    The stars of a file are its relevance grade plus one.
    """
    return {
        name: score_each(cases, partial(_compute_share, stars=stars)) for name, stars in zip(NAMES, STARS, strict=True)
    }


def _compute_share(case: Case, stars: int) -> float | None:
    ranking = ranking_of(case)
    files = ranking.order[:DEPTH] if ranking else ()
    return sum(case.grades.get(file, 0) + 1 >= stars for file in files) / DEPTH
