"""The kind of a question's expected answer, by which tables group questions."""

from collections.abc import Iterable

from exhibit.law.language import list_word_runs

EXPECTED = "expected_answer"
"""The label in tables for the kind of a question's expected answer."""
_SHORT = 12  # words: names, amounts, dates and periods are shorter, sentences are longer


def describe_expected(truth: str, golds: Iterable[str], *, impossible: bool) -> str:
    """Return `none in the documents`, `yes or no`, `quote` (of the gold), `short answer` or `text`."""
    if impossible:
        return "none in the documents"
    words = list_word_runs(truth.lower())
    if words and words[0] in ("yes", "no") and len(words) <= _SHORT:
        return "yes or no"
    if any(words and words == list_word_runs(gold.lower()) for gold in golds):
        return "quote"
    return "short answer" if len(words) <= _SHORT else "text"
