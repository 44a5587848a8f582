"""The stages of the gold of one question: from what its reply tells, and from what the system made of the documents."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.judgement import answer_judgement
from exhibit.evaluation.metrics import CEILING
from exhibit.evaluation.ranking import golds_of
from exhibit.evaluation.stages import (
    GOLD_STAGES,
    GoldStages,
    InChunks,
    InText,
    StageName,
    SystemLists,
    follow_gold,
    gold_left,
)
from exhibit.evaluation.verdicts import find_cited


class PreparedDocuments(Protocol):
    """What a system made of the documents before any question was asked."""

    def find(self, gold: GoldPassage) -> tuple[InText | None, InChunks | None]:
        """Return what its text and its chunks hold of a gold passage; None where that is not known."""


def stages_of(case: Case, prepared: PreparedDocuments | None = None) -> list[GoldStages]:
    """Return the stages of each gold passage; none where the question has no answer in the documents, or failed.

    A reply without passages, or without citations, tells nothing of these stages.
    """
    reply = case.reply
    if case.is_impossible or reply.error:
        return []
    passages = reply.passages

    def numbered(numbers: Iterable[int]) -> list[Passage]:
        return [passages[number - 1] for number in numbers if 1 <= number <= len(passages)]

    reranked: Sequence[Passage] | None = passages if reply.retrieved is not None else None
    told = reply.context is not None or reply.selected is not None
    lists = SystemLists(
        passages or None if reply.retrieved is None else reply.retrieved,
        numbered(reply.reranked) if reply.reranked is not None else reranked,
        reply.read(len(passages)) if passages and told else None,
        numbered(find_cited(case)) or None,
    )
    answered = answer_judgement(case)
    followed = []
    for gold in golds_followed(case):
        text, chunks = prepared.find(gold) if prepared is not None else (None, None)
        followed.append(
            follow_gold(gold, lists, text=text, chunks=chunks, answered=answered, cut_by=reply.cut_by),
        )
    return followed


def golds_followed(case: Case) -> list[GoldPassage]:
    """Return the gold passages whose stages are told, in their order: those that are not located come first."""
    return [gold for gold in case.gold if gold.absent] + [gold for gold in golds_of(case) if not gold.absent]


def first_loss(stages: Iterable[GoldStages]) -> StageName | None:
    """Return the earliest stage that loses one of several gold passages; None where no stage does."""
    lost = {one.lost_at for one in stages}
    return next((stage for stage in GOLD_STAGES if stage in lost), None)


def ceilings_of(stages: Sequence[GoldStages]) -> dict[str, float | None]:
    """Return, under a metric's name for each stage before the answer, the share of a question's gold that is left."""
    return {f"{CEILING}{stage}": gold_left(stages, stage) for stage in GOLD_STAGES if stage != "answered"}
