"""Citations matched: the share of the expected answer's sources that the answer cites.

A source is a gold file or, without gold files, a name in square brackets in the expected answer. It is cited by the
number of a passage from it, or by its name; names must be equal after normalisation, without their `#page=`.
"""

from exhibit.evaluation.answer_words import cited_files, cited_names, file_names, plain_source
from exhibit.evaluation.metrics import Case, gold_files, per_case


def _score(case: Case) -> float | None:
    expected = _list_expected(case)
    if not expected:
        return None
    names = [*cited_names(case.reply.answer or ""), *cited_files(case)]
    given = {plain_source(part) for name in names for part in (name, name.partition("#page=")[0])}
    return sum(bool(one & given) for one in expected) / len(expected)


def _list_expected(case: Case) -> list[set[str]]:
    """Return the expected sources, each as the set of normalised names by which it can be cited."""
    named = [{plain_source(name), plain_source(name.partition("#page=")[0])} for name in cited_names(case.truth)]
    files = [{*map(plain_source, file_names(file))} for file in sorted(gold_files(case))]
    if len(files) == len(named) == 1:
        return [files[0] | named[0]]
    return files or named


NAMES, measure = per_case(citations_matched=_score)
