"""What became of a question, in one verdict with its evidence: where on the way from document to answer it went wrong.

Retrieval: the passage that answers was not among those read. Reading: it was, and the answer refuses, or is made from
others. Invented: the answer says what none of its passages does, or answers what the documents do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics import K
from exhibit.evaluation.metrics._gold_ranks import matches
from exhibit.evidence import Span
from exhibit.law.citations import claims_of, find_citations
from exhibit.law.figures import Figures, figures, missing_figures
from exhibit.law.refusal import is_refusal

Verdict = Literal[
    "answered",
    "wrong document",
    "right document, wrong passage",
    "retrieved but not used",
    "figures that no passage has",
    "answered though impossible",
    "refused though answerable",
    "right document, passage unknown",
    "gold not located",
    "cannot be judged",
    "failed",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Stage = Literal["retrieval", "reading", "invented"]
STAGES: dict[Verdict, Stage] = {
    "wrong document": "retrieval",
    "right document, wrong passage": "retrieval",
    "retrieved but not used": "reading",
    "refused though answerable": "reading",
    "figures that no passage has": "invented",
    "answered though impossible": "invented",
}
"""Where a failure lies; the other verdicts are no failures of the system, or cannot be told."""


_LISTED = 12
"""A dozen things are counted in words of one's own; a sum or a period is rarely so small and in no passage."""


@dataclass(frozen=True)
class Judgment:
    """A verdict and what it rests on."""

    verdict: Verdict
    evidence: str

    @property
    def stage(self) -> Stage | None:
        """Where the failure lies, None where there is none or it cannot be told."""
        return STAGES.get(self.verdict)


def judge(case: Case, *, k: int = K) -> Verdict:
    """Return what became of a question; `answered` is also an impossible one that was refused."""
    return examine(case, k=k).verdict


def examine(case: Case, *, k: int = K) -> Judgment:
    """Return the verdict on a question with its evidence.

    The passages that count are those an answer was made from, where that is known, else the first k. Gold that is
    among the first k, but not among those, or that the answer does not cite though it cites others, was not used.
    """
    reply = case.reply
    if reply.error:
        return Judgment("failed", reply.error)
    refused = reply.answer is not None and is_refusal(reply.answer)
    if case.is_impossible:
        return _impossible(case, refused)
    if not case.gold or (not reply.passages and reply.answer is not None):
        missing = "which passage answers" if not case.gold else "which passages the system read"
        if refused:
            return Judgment("refused though answerable", f"It was refused; nothing tells {missing}.")
        return Judgment("cannot be judged", f"Nothing tells {missing}.")
    if _unlocated(case.gold):
        return Judgment("gold not located", "None of the passages that the benchmark quotes stands in its document.")
    return _answerable(case, refused, k)


def _impossible(case: Case, refused: bool) -> Judgment:
    if case.reply.answer is None:
        return Judgment("cannot be judged", "The documents do not answer it, and no answer was asked for.")
    if refused:
        return Judgment("answered", "The documents do not answer it, and the system said so.")
    return Judgment("answered though impossible", "The documents do not answer it.")


def _answerable(case: Case, refused: bool, k: int) -> Judgment:
    """Return what became of a question whose passages and gold are known."""
    judgment = _retrieval(case, refused, k)
    if judgment.stage == "reading" or refused or case.reply.answer is None:
        return judgment
    invented = _invented(case)
    if invented:
        listed = ", ".join(invented[:3]) + (" …" if len(invented) > 3 else "")
        return Judgment("figures that no passage has", f"{listed}: in none of the passages. {judgment.evidence}")
    return judgment


def _invented(case: Case) -> list[str]:
    """Return the numbers of an answer that nothing bears out, and whether it has such a date.

    Words can be put otherwise; a number that stands in no passage, not in the name of its file, in the question or in
    the expected answer was made up.
    """
    told = figures("\n".join(claim.text for claim in claims_of(case.reply.answer or "")))
    large = {number for number in told.loose if not _counts(number)}
    if not large and not told.dates:
        return []
    read = (part for passage in case.reply.passages for part in (passage.text, passage.filename or ""))
    said = figures("\n\n".join([case.question, case.truth, *read]))
    numbers = sorted(large - said.numbers)
    dates = missing_figures(Figures(frozenset(), frozenset(), told.dates), said)
    return [*numbers, *(["a date"] if dates else [])]


def _counts(number: str) -> bool:
    """Return whether a number may count what the answer itself lists: "in two cases", "the following three"."""
    return number.isdecimal() and int(number) <= _LISTED


def cited(case: Case) -> list[int]:
    """Return the numbers of the passages that an answer cites, each once, as far as there are such passages."""
    numbers = (number for citation in find_citations(case.reply.answer or "") for number in citation.numbers)
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= len(case.reply.passages)))


def _retrieval(case: Case, refused: bool, k: int) -> Judgment:
    passages = case.reply.passages
    selected = case.reply.selected if case.reply.selected is not None else min(k, len(passages))
    first = passages[:selected]
    quoted = [gold for gold in case.gold if gold.text and gold.text.strip()]
    hits = [number for number, passage in enumerate(passages[: max(k, selected)], 1) if holds_gold(passage, quoted)]
    if not quoted:
        return _named_only(case, first, refused)
    if hits and hits[0] <= selected:
        where = f"Passage {hits[0]} is the first to touch the gold."
        if refused:
            return Judgment("refused though answerable", where)
        named = cited(case)
        if not named or any(number in hits for number in named):
            return Judgment("answered", where)
        return Judgment("retrieved but not used", f"{where} The answer cites {', '.join(map(str, named))}.")
    if hits:
        where = f"Passage {hits[0]} is the first to touch the gold, but only {selected} were read."
        return Judgment("retrieved but not used", where)
    return _nowhere(case, first)


def _nowhere(case: Case, first: Sequence[Passage]) -> Judgment:
    files = {gold.filename for gold in case.gold if gold.filename}
    same = [number for number, passage in enumerate(first, 1) if passage.filename in files]
    total = len(case.reply.passages)
    if not same:
        return Judgment("wrong document", f"None of the {len(first)} passages read is from a document with gold.")
    where = f"Passage {same[0]} is the first from the right document; none of {total} touches the gold."
    return Judgment("right document, wrong passage", where)


def _named_only(case: Case, first: Sequence[Passage], refused: bool) -> Judgment:
    """Return what can be told where the benchmark names documents and quotes no words of them."""
    files = {gold.filename for gold in case.gold if gold.filename}
    same = [number for number, passage in enumerate(first, 1) if passage.filename in files]
    if not same:
        return Judgment("wrong document", f"None of the {len(first)} passages read is from a document it names.")
    where = f"Passage {same[0]} is the first from the right document; the benchmark quotes no words of it."
    return Judgment("refused though answerable" if refused else "right document, passage unknown", where)


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
