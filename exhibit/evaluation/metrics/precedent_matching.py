"""Precedent matching: how near the sources that an answer cites are to those that the truth names in square brackets.

Each source of the truth takes its nearest: 1 when the names are equal after normalisation, 0.95 when one holds the
other, else at most 0.9 by the words they share. Two names on one topic that share no word get nothing. A citation by
number is the file of that passage. `precedent_matching_strict` counts only what is equal. Parity "seed" gives names of
one topic 0.75, and those that share words 0.75 to 0.9.
"""

from collections.abc import Sequence

from exhibit.evaluation.answer_words import cited_files, cited_names, file_names, likeness
from exhibit.evaluation.metrics import Case, Options, Values

NAMES = ("precedent_matching", "precedent_matching_strict")


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the mean over the truth's sources, None where the truth names none."""
    rows = [[] if case.reply.error else _scores(case, seed=options.parity == "seed") for case in cases]
    return {
        "precedent_matching": [sum(row) / len(row) if row else None for row in rows],
        "precedent_matching_strict": [sum(one == 1.0 for one in row) / len(row) if row else None for row in rows],
    }


def _scores(case: Case, *, seed: bool) -> list[float]:
    """Return one score a source of the truth."""
    given = [*cited_names(case.reply.answer or ""), *(name for file in cited_files(case) for name in file_names(file))]
    return [
        max((likeness(name, other, seed=seed) for name in names for other in given), default=0.0)
        for names in expected_sources(case)
    ]


def expected_sources(case: Case) -> list[list[str]]:
    """Return the sources that the truth names, each with the names it may be cited by.

    The gold file is another name of a source where it is plain which one it belongs to.
    """
    named = cited_names(case.truth)
    files = list(dict.fromkeys(gold.filename for gold in case.gold if gold.filename))
    if len(files) != len(named):
        return [[name] for name in named]
    return [[name, *file_names(file)] for name, file in zip(named, files, strict=True)]
