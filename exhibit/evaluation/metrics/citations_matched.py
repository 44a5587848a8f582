"""Citations matched: the share of the expected answer's sources that the answer cites.

The expected sources are the gold files or, without gold files, the names in square brackets in the expected
answer. An answer cites a source if it gives the number of a passage from that source, or the name of the
source. Names must be equal after normalisation, without their `#page=`.
"""

from exhibit.evaluation.answer_words import find_cited_files, find_cited_names, list_file_names, normalise_source
from exhibit.evaluation.metrics import Case, list_gold_files, score_per_case


def _score(case: Case) -> float | None:
    expected = _list_expected(case)
    if not expected:
        return None
    names = [*find_cited_names(case.reply.answer or ""), *find_cited_files(case)]
    given = {normalise_source(part) for name in names for part in (name, name.partition("#page=")[0])}
    return sum(bool(one & given) for one in expected) / len(expected)


def _list_expected(case: Case) -> list[set[str]]:
    """Return the expected sources, each as the set of normalised names by which it can be cited."""
    named = [
        {normalise_source(name), normalise_source(name.partition("#page=")[0])} for name in find_cited_names(case.truth)
    ]
    files = [{*map(normalise_source, list_file_names(file))} for file in sorted(list_gold_files(case))]
    if len(files) == len(named) == 1:
        return [files[0] | named[0]]
    return files or named


NAMES, measure = score_per_case(citations_matched=_score)
