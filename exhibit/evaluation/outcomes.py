"""The outcome of each question with its reason, and the shares that follow from the outcomes.

The judge's mark or, if the question requires a label, the chosen label decides; otherwise the kernel of rules decides.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Values, without_choices
from exhibit.evaluation.judging.kernel import judge_answer
from exhibit.evaluation.metrics import K, list_gold_texts
from exhibit.evaluation.metrics.retrieval import has_right_version
from exhibit.evaluation.placement import find_first_gold, rank_found, touches
from exhibit.evaluation.statistics import Table
from exhibit.law.citations import find_citations
from exhibit.law.refusals import is_refusal
from exhibit.schemas.run import ANSWERED_RIGHTLY, AT_MOST, Outcome

MARK = "answer_correctness"  # the metric with the judge's marks of answers
GOOD_MARK = 4.0  # the least mark of a right answer: only details are missing; 3 means that something important is
GOOD = frozenset({Outcome.RIGHT, Outcome.RIGHTLY_REFUSED, Outcome.FOUND})
BAD = frozenset({Outcome.INVENTED, Outcome.WRONG, Outcome.WRONGLY_REFUSED, Outcome.FAILED, Outcome.MISSED})


class Finding(NamedTuple):
    outcome: Outcome
    reason: str


def find_outcome(case: Case, *, mark: float | None = None, answers: bool = True) -> Finding:
    """Return the outcome of a question; without `answers`, the system never answers: only its passages are judged."""
    reply = case.reply
    if reply.error:
        return Finding(Outcome.FAILED, reply.error)
    if reply.answer is None and not answers:
        return _judge_passages(case)
    answer = reply.answer or ""
    if case.choices and case.label is not None:
        return _judge_label(case, answer)
    refusal = "The reply is empty." if not answer.strip() else "The reply refuses." if is_refusal(answer) else ""
    if case.is_impossible and refusal:
        return Finding(Outcome.RIGHTLY_REFUSED, refusal)
    if case.is_impossible:
        return Finding(Outcome.INVENTED, "The reply gives an answer.")
    right: bool | None = mark is not None and mark >= GOOD_MARK
    reason = f"The judge gave {mark:g} of 5." if mark is not None else ""
    if refusal and not right:
        return Finding(Outcome.WRONGLY_REFUSED, refusal)
    if mark is None:
        right, reason = judge_answer(without_choices(case), case.truth, answer, tuple(list_gold_texts(case)))
    return Finding({True: Outcome.RIGHT, False: Outcome.WRONG, None: Outcome.NOT_JUDGED}[right], reason)


def _judge_label(case: Case, answer: str) -> Finding:
    chosen = find_chosen_label(answer, case.choices)
    right = chosen == case.label
    reason = f"The reply chooses {chosen}." if chosen else "The reply chooses no label."
    if case.is_impossible:
        return Finding(Outcome.RIGHTLY_REFUSED if right else Outcome.INVENTED, reason)
    if not right and (not answer.strip() or is_refusal(answer)):
        return Finding(Outcome.WRONGLY_REFUSED, reason)
    return Finding(Outcome.RIGHT if right else Outcome.WRONG, reason)


def _judge_passages(case: Case) -> Finding:
    """Return the outcome for a system without answers: `found` if the first K passages have half of a gold passage."""
    passages = case.reply.passages
    if case.is_impossible:
        return Finding(Outcome.NOT_JUDGED, "The documents do not answer the question, and no answer was requested.")
    if not any(gold.worded for gold in case.gold):
        return Finding(Outcome.NOT_JUDGED, "The gold has no words to compare with the passages.")
    numbers = range(1, min(K, len(passages)) + 1)
    if (first := find_first_gold(case, numbers)) is not None:
        return Finding(Outcome.FOUND, f"The passages up to number {first} contain at least half of a gold passage.")
    if passages and not any(passage.has_content for passage in passages):
        return Finding(Outcome.NOT_JUDGED, "The words of the retrieved passages are in no document.")
    if version := next((n for n in numbers if has_right_version(passages[n - 1], case) is False), None):
        return Finding(Outcome.MISSED, f"Passage {version} is another day's version of the right paragraph.")
    return Finding(Outcome.MISSED, f"The first {len(numbers)} passages do not contain half of any gold passage.")


def find_cited(case: Case) -> list[int]:
    """Return the numbers of the passages that an answer cites, each once; numbers without a passage are omitted."""
    numbers = (number for citation in find_citations(case.reply.answer or "") for number in citation.numbers)
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= len(case.reply.passages)))


def find_support(case: Case) -> bool | None:
    """Return whether a cited passage overlaps gold or, without citations, the used ones do; None if unknown."""
    golds = [gold for gold in case.gold if gold.worded]
    passages = case.reply.passages
    if case.reply.error or case.is_impossible or not golds or not any(passage.has_content for passage in passages):
        return None
    if cited := find_cited(case):
        return any(_touches(passages[number - 1], gold) for number in cited for gold in golds)
    return find_first_gold(case, case.reply.list_numbers_read(K)) is not None


def _touches(passage: Passage, gold: GoldPassage) -> bool:
    if gold.places and passage.span is not None:
        return passage.source == gold.filename and any(touches(span, gold) for span in passage.spans)
    return rank_found(gold, [passage]) is not None  # a location is unknown: the passage contains half of the text


LABELS = "labels.json"
_ABOUT = ("hypothesis", "deal_point")  # labels that name the subject of a choice; each has its own confusion table
_NOWHERE = re.compile(r"not ?(mentioned|found|stated)|none|unknown")

Chosen = tuple[str, str, str]  # the subject of a question, its label, and the chosen label; empty if there is none


def find_chosen_label(answer: str, choices: Sequence[str]) -> str | None:
    """Return the first label that a reply names; if the reply is a refusal, the label for "not mentioned"."""
    text = f" {_normalise_label(answer)} "
    offsets = {choice: text.find(f" {_normalise_label(choice)} ") for choice in choices}
    if named := [choice for choice in choices if offsets[choice] >= 0]:
        return min(named, key=lambda choice: offsets[choice])
    nothing = (choice for choice in choices if _NOWHERE.fullmatch(_normalise_label(choice)))
    return next(nothing, None) if is_refusal(answer) else None


def _normalise_label(text: str) -> str:
    """Return a label as lower-case words: `NotMentioned` becomes `not mentioned`."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))).lower()


def list_choices(cases: Iterable[Case]) -> list[Chosen]:
    """Return (subject, right label, chosen label) for each answered question that asks for a label."""
    chosen = []
    for case in cases:
        if case.choices and case.reply.answer is not None and not case.reply.error:
            about = next((case.labels[name] for name in _ABOUT if case.labels.get(name)), "")
            chosen.append((str(about), str(case.label), find_chosen_label(case.reply.answer, case.choices) or ""))
    return chosen


def describe_choices(made: Sequence[Chosen]) -> dict[str, Any]:
    right, chosen, hits = Counter[str](), Counter[str](), Counter[str]()
    by: dict[str, dict[str, Counter[str]]] = {}
    for about, label, choice in made:
        by.setdefault(about, {}).setdefault(label, Counter())[choice or "none"] += 1
        right[label] += 1
        chosen[choice] += 1
        hits[label] += label == choice
    return {
        "questions": len(made),
        "accuracy": hits.total() / len(made),
        "majority": max(right.values()) / len(made),
        "macro_f1": sum(2 * hits[label] / (right[label] + chosen[label]) for label in right) / len(right),
        "confusion": by,
    }


def score_outcome(outcome: Outcome, *, impossible: bool) -> dict[str, float | None]:
    """Return a question's value, 0 or 1, for each share of outcomes; None if a share does not apply to the question."""
    replied = outcome is not Outcome.FAILED
    return {  # a failed reply to an answerable question counts, so that no system gains by not replying
        ANSWERED_RIGHTLY: None if impossible else float(outcome is Outcome.RIGHT),
        AT_MOST: None if impossible else float(outcome in (Outcome.RIGHT, Outcome.NOT_JUDGED)),
        "abstention_accuracy": float(outcome is Outcome.RIGHTLY_REFUSED) if impossible and replied else None,
        "false_refusal_rate": float(outcome is Outcome.WRONGLY_REFUSED) if replied and not impossible else None,
    }


def make_outcome_columns(outcomes: Sequence[Outcome], impossible: Sequence[bool]) -> dict[str, Values]:
    """Return the shares that follow from an answering system's outcomes, with one value per question."""
    pairs = zip(outcomes, impossible, strict=True)
    rows = [score_outcome(outcome, impossible=none) for outcome, none in pairs]
    return {name: [row[name] for row in rows] for name in score_outcome(Outcome.FAILED, impossible=False)}


def describe_result(tables: Iterable[Table]) -> str:
    """Return a run's result in words: `153 to 198 of 243 answered correctly, 63 to 81%` with 45 not judged."""
    counts = Counter[Outcome]()
    for table in tables:
        # a failed question that the documents do not answer has no value and is not counted
        known = table.values.get(ANSWERED_RIGHTLY) or [0.0] * len(table.outcomes)
        pairs = zip(table.outcomes, known, strict=True)
        counts.update(kind for kind, value in pairs if value is not None or kind in (Outcome.FOUND, Outcome.MISSED))
    found, of = counts[Outcome.FOUND], counts[Outcome.FOUND] + counts[Outcome.MISSED]
    if of:
        return f"gold found for {found:,} of {of:,} questions, {100 * found / of:.0f}%"
    right, most = counts[Outcome.RIGHT], counts[Outcome.RIGHT] + counts[Outcome.NOT_JUDGED]
    answerable = most + sum(counts[outcome] for outcome in (Outcome.WRONG, Outcome.WRONGLY_REFUSED, Outcome.FAILED))
    if not answerable:
        return "no question was answered"
    low, high = round(100 * right / answerable), round(100 * most / answerable)
    if right == most:
        return f"{right:,} of {answerable:,} answered correctly, {low}%"
    return f"{right:,} to {most:,} of {answerable:,} answered correctly, {low} to {high}%"
