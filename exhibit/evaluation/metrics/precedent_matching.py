"""Precedent matching: how similar the sources that an answer cites are to the expected sources.

The expected sources are the names in the expected answer's brackets. Each gets the score of the most
similar cited source. Names that are equal after normalisation score 1. If one name contains the other, they
score 0.95. Other names score 0.9 times the number of words in both names, divided by the number of words in
either name. So names without a common word score 0, even if their topic is the same. A citation by number,
such as `[2]`, counts as the file name of passage 2. `precedent_matching_strict` counts only equal names.
The option `parity=seed` reproduces the scores of another project: names that share only a topic score 0.75,
and names with common words 0.75 to 0.9.
"""

from collections.abc import Sequence

from exhibit.evaluation.answer_words import compare_sources, find_cited_files, find_cited_names, list_file_names
from exhibit.evaluation.metrics import Case, Options, Values

NAMES = ("precedent_matching", "precedent_matching_strict")


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return, for each case, the mean score of the expected sources; None if no source is expected.

    `precedent_matching` averages similarities; `precedent_matching_strict` is the share of sources that are
    cited by an equal name.
    """
    rows = [[] if case.reply.error else _score_sources(case, seed=options.parity == "seed") for case in cases]
    return {
        "precedent_matching": [sum(row) / len(row) if row else None for row in rows],
        "precedent_matching_strict": [sum(one == 1.0 for one in row) / len(row) if row else None for row in rows],
    }


def _score_sources(case: Case, *, seed: bool) -> list[float]:
    """Return the similarity of each source in the expected answer to the most similar source that the reply cites.

    `seed` selects the similarity of parity "seed" (see `compare_sources`). Without citations all scores are 0.
    """
    given = [
        *find_cited_names(case.reply.answer or ""),
        *(name for file in find_cited_files(case) for name in list_file_names(file)),
    ]
    return [
        max((compare_sources(name, other, seed=seed) for name in names for other in given), default=0.0)
        for names in find_expected_sources(case)
    ]


def find_expected_sources(case: Case) -> list[list[str]]:
    """Return the sources that the expected answer names, each with the names by which it may be cited.

    If there are as many gold files as named sources, each file is a further name of the source at the same
    position.
    """
    named = find_cited_names(case.truth)
    files = list(dict.fromkeys(gold.filename for gold in case.gold if gold.filename))
    if len(files) != len(named):
        return [[name] for name in named]
    return [[name, *list_file_names(file)] for name, file in zip(named, files, strict=True)]
