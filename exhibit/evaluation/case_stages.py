"""The stages of the gold of one question, from what its reply tells."""

from collections.abc import Iterable

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.judgement import answer_judgement
from exhibit.evaluation.ranking import golds_of
from exhibit.evaluation.stages import GOLD_STAGES, GoldStages, StageName, SystemLists, follow_gold
from exhibit.evaluation.verdicts import find_cited


def stages_of(case: Case) -> list[GoldStages]:
    """Return the stages of each gold passage; none where the question has no answer in the documents, or failed.

    A reply without passages, or without citations, tells nothing of these stages.
    """
    reply = case.reply
    if case.is_impossible or reply.error:
        return []
    passages = reply.passages

    def numbered(numbers: Iterable[int]) -> list[Passage]:
        return [passages[number - 1] for number in numbers if 1 <= number <= len(passages)]

    told = reply.context is not None or reply.selected is not None
    lists = SystemLists(
        passages or None,
        numbered(reply.reranked) if reply.reranked is not None else None,
        reply.read(len(passages)) if passages and told else None,
        numbered(find_cited(case)) or None,
    )
    answered = answer_judgement(case)
    golds = [gold for gold in case.gold if gold.absent] + [gold for gold in golds_of(case) if not gold.absent]
    return [follow_gold(gold, lists, answered=answered) for gold in golds]


def first_loss(stages: Iterable[GoldStages]) -> StageName | None:
    """Return the earliest stage that loses one of several gold passages; None where no stage does."""
    lost = {one.lost_at for one in stages}
    return next((stage for stage in GOLD_STAGES if stage in lost), None)
