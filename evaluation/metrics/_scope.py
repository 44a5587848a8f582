"""What a metric may be computed from: the one place that decides which questions it applies to, and on which gold.

A metric says in its `About.needs` what it needs; where a question or its reply lacks one of them the value is None,
never 0. Metrics of passages see the gold that is located, or whose words nobody looked for; metrics of documents see
every file that gold names; and none sees a reply that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics._about import Need
from exhibit.evaluation.metrics._each import gold_files
from exhibit.evaluation.metrics._options import Options


def _asks_for_passages(case: Case) -> bool:
    return not case.is_impossible and (bool(case.grades) or any(gold.worded for gold in case.gold))


def _is_answerable(case: Case) -> bool:
    """Whether the documents are known to answer: not where all the gold that is quoted stands in none of them."""
    return not case.is_impossible and (not case.gold or any(not gold.absent for gold in case.gold))


_KNOWN: dict[Need, Callable[[Case], bool]] = {
    "gold spans": lambda case: not case.is_impossible and any(gold.located for gold in case.gold),
    "gold text": _asks_for_passages,
    "gold files": lambda case: bool(gold_files(case)),
    "grades": lambda case: bool(case.grades) and not case.is_impossible,
    "truth": lambda case: bool(case.truth.strip()) and not case.is_impossible,
    "expected": lambda case: bool(case.truth.strip()) and not case.is_impossible,
    "label": lambda case: bool(case.choices) and case.label is not None,
    "answer": lambda case: case.reply.answer is not None,
    "passages": lambda case: not case.reply.passages or any(map(_says_something, case.reply.passages)),
    "impossible": lambda case: case.is_impossible,
    "answerable": _is_answerable,
}
"""Whether a case has what a metric needs; what is not listed depends on the run, and the metric itself looks."""
_KEPT: dict[Need, Callable[[GoldPassage], bool]] = {
    "gold spans": lambda gold: gold.located,
    "gold text": lambda gold: gold.worded,
}


def scoped(case: Case, needs: Collection[Need], options: Options) -> Case | None:
    """Return a case with the gold that a metric may use; None where something that it needs is not known."""
    # SQuAD 2.0 scores the answers to impossible questions, too
    open_needs = set(needs) - ({"expected"} if options.parity == "squad" else set())
    if case.reply.error or not all(_KNOWN[need](case) for need in open_needs & _KNOWN.keys()):
        return None
    rules = [rule for need, rule in _KEPT.items() if need in needs]
    kept = tuple(gold for gold in case.gold if all(rule(gold) for rule in rules))
    return case if len(kept) == len(case.gold) else replace(case, gold=kept)


def is_wrong_file(passage: Passage, files: Collection[str]) -> bool | None:
    """Return whether a passage is from another file than these; None where its file is not known.

    A name that the bundle lacks, on words that none of its documents has, is a file from elsewhere. A passage whose
    words several files have names none of them, and is never a wrong document.
    """
    if passage.filename is not None:
        return passage.filename not in files
    return True if passage.told_filename and passage.text.strip() and not passage.also_in else None


def _says_something(passage: Passage) -> bool:
    return bool(passage.span) or bool(passage.text.strip())
