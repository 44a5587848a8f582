"""Why a question failed, in one phrase: the first thing that went wrong on the way from document to answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from evaluation.cases import Case, GoldPassage, Passage
from evaluation.metrics import K
from evaluation.metrics._passages import matches
from evidence import Span
from law.citations import find_citations
from law.refusal import is_refusal

Verdict = Literal[
    "answered",
    "wrong document",
    "right document, wrong passage",
    "retrieved but not used",
    "answered though impossible",
    "refused though answerable",
    "gold not located",
    "failed",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


def judge(case: Case, *, k: int = K) -> Verdict:
    """Return what became of a question; `answered` is also an impossible one that was refused.

    The passages that count are those an answer was made from, where that is known, else the first k. Gold that is
    among the first k, but not among those, or that the answer does not cite though it cites others, was not used.
    """
    reply = case.reply
    if reply.error:
        return "failed"
    refused = reply.answer is not None and is_refusal(reply.answer)
    if case.is_impossible:
        return "answered" if refused or reply.answer is None else "answered though impossible"
    if not case.gold or (not reply.passages and reply.answer is not None):
        # nothing tells what should have been found, or what was
        return "refused though answerable" if refused else "answered"
    if _unlocated(case.gold):
        return "gold not located"
    return _retrieval(case, refused, k)


def cited(case: Case) -> list[int]:
    """Return the numbers of the passages that an answer cites, each once, as far as there are such passages."""
    numbers = (number for citation in find_citations(case.reply.answer or "") for number in citation.numbers)
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= len(case.reply.passages)))


def _retrieval(case: Case, refused: bool, k: int) -> Verdict:
    passages = case.reply.passages
    selected = case.reply.selected if case.reply.selected is not None else min(k, len(passages))
    first = passages[:selected]
    if any(holds_gold(passage, case.gold) for passage in first):
        if refused:
            return "refused though answerable"
        named = [passages[number - 1] for number in cited(case)]
        used = not named or any(holds_gold(passage, case.gold) for passage in named)
        return "answered" if used else "retrieved but not used"
    if any(holds_gold(passage, case.gold) for passage in passages[selected:k]):
        return "retrieved but not used"
    files = {gold.filename for gold in case.gold if gold.filename}
    return "right document, wrong passage" if any(p.filename in files for p in first) else "wrong document"


def _unlocated(golds: Sequence[GoldPassage]) -> bool:
    """Return whether gold has words and a file, and none of them stands there."""
    worded = [gold for gold in golds if gold.text and gold.text.strip()]
    return bool(worded) and len(worded) == len(golds) and not any(gold.places for gold in worded)


def holds_gold(passage: Passage, golds: Iterable[GoldPassage]) -> bool:
    """Return whether a passage has a character of located gold, words of other gold, or is of a file named as gold."""
    return any(_holds(passage, gold) for gold in golds)


def _holds(passage: Passage, gold: GoldPassage) -> bool:
    if not gold.text or not gold.text.strip():
        return gold.filename is not None and passage.filename == gold.filename
    if gold.places and passage.span is not None:
        if passage.filename != gold.filename:
            return False
        return any(_overlap(passage.span, span) for place in gold.places for span in place)
    return passage.filename in (None, gold.filename) and matches(passage.text, gold.text)


def _overlap(one: Span, other: Span) -> bool:
    return max(one.start, other.start) < min(one.end, other.end)
