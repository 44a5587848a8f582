"""Follow the gold passages of one question through the stages of a system."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.judgement import judge_answer
from exhibit.evaluation.metrics import CEILING
from exhibit.evaluation.ranking import golds_of
from exhibit.evaluation.stages import (
    GOLD_STAGES,
    GoldStages,
    InChunks,
    InText,
    StageName,
    SystemLists,
    compute_gold_left,
    follow_gold,
)
from exhibit.evaluation.verdicts import find_cited


class PreparedDocuments(Protocol):
    """The parsed texts and the chunks that a system made from the documents before the first question."""

    def find(self, gold: GoldPassage) -> tuple[InText | None, InChunks | None]:
        """Return how much of a gold passage the system's text contains, and how much its chunks contain.

        Either value is None if it is unknown.
        """


def stages_of(case: Case, prepared: PreparedDocuments | None = None) -> list[GoldStages]:
    """Return, for each gold passage, what happened to it at each stage, from the page to the answer.

    The list is empty if the question is impossible or failed. The retrieval stages are unknown for a reply
    without passages. The citation stage is unknown for a reply without citations.
    """
    reply = case.reply
    if case.is_impossible or reply.error:
        return []
    passages = reply.passages

    def choose_numbered(numbers: Iterable[int]) -> list[Passage]:
        return [passages[number - 1] for number in numbers if 1 <= number <= len(passages)]

    reranked: Sequence[Passage] | None = passages if reply.retrieved is not None else None
    told = reply.context is not None or reply.selected is not None
    lists = SystemLists(
        passages or None if reply.retrieved is None else reply.retrieved,
        choose_numbered(reply.reranked) if reply.reranked is not None else reranked,
        reply.read(len(passages)) if passages and told else None,
        choose_numbered(find_cited(case)) or None,
    )
    answered = judge_answer(case)
    followed = []
    for gold in list_followed_golds(case):
        text, chunks = prepared.find(gold) if prepared is not None else (None, None)
        followed.append(
            follow_gold(gold, lists, text=text, chunks=chunks, answered=answered, cut_by=reply.cut_by),
        )
    return followed


def list_followed_golds(case: Case) -> list[GoldPassage]:
    """Return the gold passages of a question for which each stage of the system is examined.

    First come the gold passages that were not found in their own document (`absent`), then the distinct gold
    passages that have a position or a text to compare.
    """
    return [gold for gold in case.gold if gold.absent] + [gold for gold in golds_of(case) if not gold.absent]


def find_first_loss(stages: Iterable[GoldStages]) -> StageName | None:
    """Return the earliest stage that loses a gold passage; None where no stage does."""
    lost = {one.lost_at for one in stages}
    return next((stage for stage in GOLD_STAGES if stage in lost), None)


def ceilings_of(stages: Sequence[GoldStages]) -> dict[str, float | None]:
    """Return, for each stage before the answer, the share of a question's gold passages that are not lost by then.

    The keys are metric names, such as `ceiling_retrieved`.
    """
    return {f"{CEILING}{stage}": compute_gold_left(stages, stage) for stage in GOLD_STAGES if stage != "answered"}
