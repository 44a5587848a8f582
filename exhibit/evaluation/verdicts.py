"""Give each question one verdict and its reason: whether the system failed, and at which stage.

A failure belongs to one of three stages:
- retrieval: the answer was made without the passage that has the right answer;
- reading: the answer was made with that passage, but refuses or uses other passages;
- invented: the answer states a figure that is in none of its passages, or answers an impossible question.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.correctness import find_invented_figures
from exhibit.evaluation.documents import touches
from exhibit.evaluation.judgement import judge_answer
from exhibit.evaluation.metrics import K, Options, is_wrong_file, limit_gold, list_gold_files
from exhibit.evaluation.metrics.version_accuracy import has_right_version
from exhibit.evaluation.ranking import find_answer_passage, find_first_gold, rank_found
from exhibit.law.citations import find_citations
from exhibit.law.refusals import is_refusal

Verdict = Literal[
    "answered",
    "wrong document",
    "right document, wrong passage",
    "right text, wrong version",
    "retrieved but not used",
    "figures that no passage has",
    "answered though impossible",
    "refused though answerable",
    "expected answer given",
    "right answer, another passage",
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
    "right text, wrong version": "retrieval",
    "retrieved but not used": "reading",
    "refused though answerable": "reading",
    "figures that no passage has": "invented",
    "answered though impossible": "invented",
}
"""The stage of each failure; the other verdicts are no failures of the system, or cannot be decided."""


@dataclass(frozen=True)
class Judgment:
    """A verdict on a reply, such as `wrong document`, with a text that states the reason for it."""

    verdict: Verdict
    evidence: str

    @property
    def stage(self) -> Stage | None:
        """The stage of the failure; None where there is no failure or its stage is unknown."""
        return STAGES.get(self.verdict)


def judge(case: Case, *, k: int = K) -> Verdict:
    """Return the verdict on a question; a refusal of an impossible question counts as `answered`."""
    return examine(case, k=k).verdict


def examine(case: Case, *, k: int = K) -> Judgment:
    """Return the verdict on a question, with the reason for it.

    The verdict `retrieved but not used` has two cases: gold is among the first k passages but not among the
    passages that the answer was made from, or the answer cites only passages without gold. If it is unknown
    from which passages the answer was made, the first k are assumed. A right answer never counts as a failure,
    whatever passages it was made from.
    """
    reply = case.reply
    if reply.error:
        return Judgment("failed", reply.error)
    refused = reply.answer is not None and is_refusal(reply.answer)
    if case.is_impossible:
        return _judge_impossible(case, refused)
    by_passage = any(gold.worded for gold in case.gold) and (reply.passages or reply.answer is None)
    judgment = _judge_retrieval(case, refused, k) if by_passage else _judge_by_answer(case, refused, k)
    if refused or reply.answer is None:
        return judgment
    right = judge_answer(case) == "right"
    if judgment.stage != "reading" and not right:
        invented = find_invented_figures(case)
        listed = ", ".join(invented[:3]) + (" …" if len(invented) > 3 else "")
        if invented:
            return Judgment("figures that no passage has", f"{listed}: in none of the passages. {judgment.evidence}")
    if judgment.stage and right:
        return Judgment("right answer, another passage", f"The reply gives the expected answer. {judgment.evidence}")
    return judgment


def _judge_impossible(case: Case, refused: bool) -> Judgment:
    if case.reply.answer is None:
        return Judgment("cannot be judged", "The documents do not answer it, and no answer was asked for.")
    if refused:
        return Judgment("answered", "The documents do not answer it, and the system said so.")
    return Judgment("answered though impossible", "The documents do not answer it.")


def find_cited(case: Case) -> list[int]:
    """Return the numbers of the passages that an answer cites, each once; numbers without a passage are left out."""
    numbers = (number for citation in find_citations(case.reply.answer or "") for number in citation.numbers)
    return list(dict.fromkeys(number for number in numbers if 1 <= number <= len(case.reply.passages)))


def _judge_by_answer(case: Case, refused: bool, k: int) -> Judgment:
    """Return the verdict on a question whose passages cannot be compared with gold.

    If the passages are from a wrong file, that is the verdict. Otherwise the answer is compared with the
    expected answer.
    """
    why = "the benchmark quotes no words of it"
    by_file = _judge_by_file(list_gold_files(case), case.reply, k, "right document, passage unknown", why)
    known = bool(list_gold_files(case)) and bool(case.reply.passages)
    if known and by_file.verdict == "wrong document":
        return by_file
    said = None if refused else judge_answer(case)
    if said == "right":
        return Judgment("expected answer given", "The reply says what is expected; which passage answers is not known.")
    answered = limit_gold(case, ("answer", "truth"), Options()) is not None
    number = find_answer_passage(case) if answered else None
    if number is not None and (refused or said == "wrong"):
        return Judgment("retrieved but not used", f"Passage {number} says what is expected, and the reply does not.")
    if case.gold and all(gold.absent for gold in case.gold):
        return Judgment("gold not located", "None of the passages that the benchmark quotes stands in its document.")
    if refused:
        return Judgment("refused though answerable", "It was refused; nothing tells which passage answers.")
    missing = "which passage answers" if not case.gold else "which passages the system read"
    return by_file if known else Judgment("cannot be judged", f"Nothing tells {missing}.")


def _judge_by_file(files: Collection[str], reply: Reply, k: int, verdict: Verdict, why: str) -> Judgment:
    read = reply.list_numbers_read(k)
    wrong = [is_wrong_file(reply.passages[number - 1], files) for number in read]
    if False in wrong:
        first = read[wrong.index(False)]
        return Judgment(verdict, f"Passage {first} is the first from the right document; {why}.")
    if None in wrong:
        evidence = f"Which file {wrong.count(None)} of the {len(read)} passages read are from is not known."
        return Judgment("cannot be judged", evidence)
    return Judgment("wrong document", f"None of the {len(read)} passages read is from a document with gold.")


def _judge_retrieval(case: Case, refused: bool, k: int) -> Judgment:
    passages = case.reply.passages
    read = case.reply.list_numbers_read(k)
    golds = [gold for gold in case.gold if gold.worded]
    looked_at = list(dict.fromkeys([*read, *range(1, min(k, len(passages)) + 1)]))
    used = find_first_gold(case, read)
    seen = used or find_first_gold(case, looked_at)
    if seen is None:
        return _judge_not_found(case, golds, read, k, examined=len(looked_at))
    where = f"With passage {seen} at least half of the gold is found"
    if used is None:
        return Judgment("retrieved but not used", f"{where}, but only {len(read)} were read.")
    if refused:
        return Judgment("refused though answerable", f"{where}.")
    named = find_cited(case)
    if not named or any(_touches(passages[number - 1], gold) for number in named for gold in golds):
        return Judgment("answered", f"{where}.")
    return Judgment("retrieved but not used", f"{where}. The answer cites {', '.join(map(str, named))}.")


def _judge_not_found(
    case: Case, golds: Sequence[GoldPassage], read: Sequence[int], k: int, *, examined: int
) -> Judgment:
    """Return the verdict on a question whose gold is not among the passages examined.

    The verdict says what was retrieved instead of the gold: another version of the provision, another passage
    of the same file, or another file.
    """
    passages = case.reply.passages
    version = next((n for n in read if has_right_version(passages[n - 1], case) is False), None)
    if version is not None:
        return Judgment("right text, wrong version", f"Passage {version} is that paragraph as of another day.")
    touching = next((n for n in read if any(_touches(passages[n - 1], gold) for gold in golds)), None)
    why = f"none of the {examined} examined holds half of the gold"
    why += f", which passage {touching} touches" if touching else ""
    unknown = bool(read) and not any(passages[number - 1].tells for number in read)
    files = {gold.filename for gold in golds if gold.filename}
    judgment = _judge_by_file(files, case.reply, k, "right document, wrong passage", why)
    if unknown and judgment.verdict == "right document, wrong passage" and any(p.text.strip() for p in passages):
        return Judgment("cannot be judged", f"No place can be told for the words of the {len(read)} passages read.")
    return judgment


def _touches(passage: Passage, gold: GoldPassage) -> bool:
    """Return whether a passage overlaps located gold, or contains half of the text of gold that is not located."""
    if gold.places and passage.span is not None:
        return passage.source == gold.filename and any(touches(span, gold) for span in passage.spans)
    return rank_found(gold, [passage]) is not None
