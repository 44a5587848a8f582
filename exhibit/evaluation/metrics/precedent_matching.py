"""Precedent matching: how similar the sources that an answer cites are to those in the expected answer's brackets.

Each expected source is compared with the most similar cited one: 1 for equal names after normalisation, 0.95 when one
contains the other, else up to 0.9 by the share of common words. Names of one topic without a common word get 0. A
citation by number means the file of that passage. `precedent_matching_strict` counts only equal names. Parity "seed"
gives 0.75 to names of one topic, and 0.75 to 0.9 to names with common words.
"""

from collections.abc import Sequence

from exhibit.evaluation.answer_words import cited_files, cited_names, file_names, likeness
from exhibit.evaluation.metrics import Case, Options, Values

NAMES = ("precedent_matching", "precedent_matching_strict")


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the mean over the expected sources; None where the expected answer names none."""
    rows = [[] if case.reply.error else _score_sources(case, seed=options.parity == "seed") for case in cases]
    return {
        "precedent_matching": [sum(row) / len(row) if row else None for row in rows],
        "precedent_matching_strict": [sum(one == 1.0 for one in row) / len(row) if row else None for row in rows],
    }


def _score_sources(case: Case, *, seed: bool) -> list[float]:
    """Return one score for each expected source."""
    given = [*cited_names(case.reply.answer or ""), *(name for file in cited_files(case) for name in file_names(file))]
    return [
        max((likeness(name, other, seed=seed) for name in names for other in given), default=0.0)
        for names in expected_sources(case)
    ]


def expected_sources(case: Case) -> list[list[str]]:
    """Return the sources that the expected answer names, each with the names by which it may be cited.

    The gold file is a further name of a source where it is clear to which source it belongs.
    """
    named = cited_names(case.truth)
    files = list(dict.fromkeys(gold.filename for gold in case.gold if gold.filename))
    if len(files) != len(named):
        return [[name] for name in named]
    return [[name, *file_names(file)] for name, file in zip(named, files, strict=True)]
