"""Follow a gold passage through the stages of a system, from the page to the answer.

The result is the first stage that loses the passage. Each stage is judged from the known data of a system:
its parsed text, its chunks, its ranked lists, its context, its citations and its answer. An unknown stage
is None, and no later stage is blamed for a loss at an earlier one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.chunk_stage import InChunks as InChunks
from exhibit.evaluation.chunk_stage import find_in_chunks as find_in_chunks
from exhibit.evaluation.judgement import Judgement
from exhibit.evaluation.ranking import rank_found
from exhibit.evaluation.text_stage import InText as InText
from exhibit.evaluation.text_stage import find_in_text as find_in_text
from exhibit.evidence import Document

StageName = Literal["page", "text", "chunks", "retrieved", "reranked", "context", "cited", "answered"]
GOLD_STAGES: tuple[StageName, ...] = get_args(StageName)
"""The stages in the order in which a passage goes through them."""
LIST_STAGES = ("retrieved", "reranked", "context", "cited")
"""The stages that are lists of passages."""
_CUT_BY = {
    "budget": "cut by the budget",
    "number": "behind the passages that are read",
    "threshold": "below the threshold",
    "confidence": "nothing was read, as the confidence is low",
}
"""The reason why a passage is not in the context, by the limit of the context."""
_LINES = 3
"""A table has at least this many lines: two short lines may be a heading and a date."""
_CELL_WORDS = 5
"""A line of a table has at most this many words; a line of prose has about twelve."""
_LIST_LINE = re.compile(r"[ \t]*(?:\([a-z0-9]{1,4}\)|\d{1,2}[.)]|[a-z][.)]|[•●▪◦‣–—*-])[ \t]", re.I)
_TABLE_MARKUP = re.compile(r"\|[^|\n]{1,200}\||</t[dhr]>|\\begin\{tabular|\t[^\t\n]{1,200}\t")


class RankedStage(NamedTuple):
    """The rank, from 1, at which a gold passage is found in a stage's list of passages; None if it is not found."""

    rank: int | None
    before: int | None = None
    """The rank in the list before, if there is one."""
    reason: str = ""
    """The reason why the list does not find the passage, where it is known."""


@dataclass(frozen=True)
class GoldStages:
    """What happened to one gold passage at each stage of a system; a field is None if its stage is unknown."""

    page: bool | None = None
    text: InText | None = None
    chunks: InChunks | None = None
    retrieved: RankedStage | None = None
    reranked: RankedStage | None = None
    context: RankedStage | None = None
    cited: RankedStage | None = None
    answered: Judgement | None = None

    def is_kept(self, stage: StageName) -> bool | None:
        """Return whether the gold passage is still there after a stage of the system; None if that is unknown.

        The stage `text` keeps the passage if the extracted text has at least half of the passage's letters and
        digits. The stage `chunks` keeps it if one chunk has the whole passage. A stage with a list of passages
        keeps it if the gold passage is found in the list. The stage `answered` keeps it if the answer is right.
        """
        result = getattr(self, stage)
        if result is None or isinstance(result, bool):
            return result
        if isinstance(result, InText):
            return 2 * result.share >= 1
        if isinstance(result, InChunks):
            return result.how == "whole"
        return result.rank is not None if isinstance(result, RankedStage) else result == "right"

    @property
    def known(self) -> list[StageName]:
        """The names of the stages at which the fate of the gold passage is known, in the order of the stages."""
        return [stage for stage in GOLD_STAGES if getattr(self, stage) is not None]

    @property
    def lost_at(self) -> StageName | None:
        """The first stage that loses the passage; None if no known stage loses it.

        If a later stage has the passage, no earlier stage lost it: for example, two neighbouring chunks may
        together contain text that the chunker cut. This does not hold for the stage `answered`, because a right
        answer may come from another passage.
        """
        lost: StageName | None = None
        for stage in GOLD_STAGES:
            kept = self.is_kept(stage)
            if kept and stage != "answered":
                lost = None
            elif kept is False and lost is None:
                lost = stage
        return lost

    @property
    def reason(self) -> str:
        """The reason why the stage `lost_at` loses the gold passage, such as `in no chunk`; "" if no stage loses it."""
        lost = self.lost_at
        if lost == "text" and self.text is not None:
            return "absent from the text" if self.text.how == "absent" else "most of its words are missing"
        if lost == "chunks" and self.chunks is not None:
            cut = "cut before its proviso" if self.chunks.before_proviso else "cut"
            return cut if self.chunks.how == "cut" else "in no chunk"
        own = getattr(self, lost).reason if lost in LIST_STAGES else ""
        return own or _REASONS.get(lost, "")

    def as_row(self) -> dict[str, Any]:
        """Return a dict for the results file: the stage that lost the passage, the reason, and each known stage.

        The keys are `lost_at`, `reason` and the names of the stages, such as `text`, `chunks` and `retrieved`.
        """
        row: dict[str, Any] = {"lost_at": self.lost_at, "reason": self.reason}
        if self.page is not None:
            row["page"] = self.page
        if self.text is not None:
            row["text"] = {"how": self.text.how, "share": self.text.share, "missing": list(self.text.missing)}
        if self.chunks is not None:
            one = self.chunks
            row["chunks"] = {"how": one.how, "share": one.share, "cut before its proviso": one.before_proviso}
            if one.cut is not None:
                row["chunks"]["cut"] = one.cut._asdict()
        for stage in LIST_STAGES:
            ranked: RankedStage | None = getattr(self, stage)
            if ranked is not None:
                row[stage] = {"rank": ranked.rank} | ({} if ranked.before is None else {"before": ranked.before})
        return row | ({"answered": self.answered} if self.answered else {})


_REASONS: dict[StageName | None, str] = {
    "page": "not located in its document",
    "retrieved": "another passage of its document",
    "reranked": "dropped by the reranker",
    "context": "left out of the context",
    "cited": "another passage is cited",
    "answered": "the answer is wrong",
}


# ---------------------------------------------------------------- the page


def is_on_page(gold: GoldPassage) -> bool | None:
    """Return whether a gold passage was found in its document; None if its words were not searched for."""
    if gold.located:
        return True
    return False if gold.absent else None


def kind_of_gold(gold: GoldPassage, document: Document) -> str:
    """Return the kind of a gold passage: `across pages`, `table`, `list` or `text`.

    If the passage has several locations, the pages and lines of the first are examined. Table markup in its
    quote also makes it a `table`.
    """
    place = gold.places[0]
    if len({page for span in place for page in document.pages_of(span)}) > 1:
        return "across pages"
    words = "\n".join(document.text[span.start : span.end] for span in place)
    lines = [line for line in words.splitlines() if line.strip()]
    short = sum(len(line.split()) <= _CELL_WORDS for line in lines)
    if _TABLE_MARKUP.search(gold.text or "") or (len(lines) >= _LINES and 3 * short >= 2 * len(lines)):
        return "table"
    return "list" if sum(bool(_LIST_LINE.match(line)) for line in lines) > 1 else "text"


# ---------------------------------------------------------------- from the search to the answer


class SystemLists(NamedTuple):
    """The passages of one question at each stage of a system: retrieved, reranked, in the context, and cited.

    A field is None if the system does not report the passages of that stage.
    """

    retrieved: Sequence[Passage] | None = None
    reranked: Sequence[Passage] | None = None
    context: Sequence[Passage] | None = None
    cited: Sequence[Passage] | None = None


NO_LISTS = SystemLists()
"""The lists of a system that was not asked."""


def follow_gold(
    gold: GoldPassage,
    lists: SystemLists = NO_LISTS,
    *,
    text: InText | None = None,
    chunks: InChunks | None = None,
    answered: Judgement | None = None,
    cut_by: str = "",
) -> GoldStages:
    """Return what happens to one gold passage at each stage of a system.

    In a list of passages, the gold passage is found at the rank where the passages so far contain at least half
    of it, as in recall. `cut_by` says what limited the context: `budget`, `number`, `threshold` or
    `confidence`.
    """
    ranks: dict[str, RankedStage | None] = {}
    before: int | None = None
    last: Sequence[Passage] | None = None
    for stage, passages in lists._asdict().items():
        # a passage without any known place is unknown, not wrong
        if passages is None or not gold.worded or (passages and not any(passage.tells for passage in passages)):
            ranks[stage] = None
            continue
        # a list that is the same as the one before it has the same result
        same = stage != "retrieved" and passages is last
        rank = before if same else rank_found(gold, passages)
        reason = _CUT_BY.get(cut_by, "") if stage == "context" and rank is None else ""
        if stage == "retrieved" and rank is None and not any(one.source == gold.filename for one in passages):
            reason = "no passage of its document"
        ranks[stage] = RankedStage(rank, before, reason)
        before, last = rank, passages
    return GoldStages(is_on_page(gold), text, chunks, answered=answered, **ranks)


def compute_ceiling(stages: Sequence[GoldStages], stage: StageName) -> float | None:
    """Return the share of gold passages that are left after a stage (see `compute_gold_left`).

    None if the result of the stage is unknown for every gold passage.
    """
    return compute_gold_left(stages, stage) if any(one.is_kept(stage) is not None for one in stages) else None


def compute_gold_left(stages: Iterable[GoldStages], stage: StageName) -> float | None:
    """Return the share of gold passages that are lost neither at a stage nor before it; None if unknown.

    A gold passage that an earlier stage lost counts as lost, even if its result at this stage is unknown. A
    gold passage that does not occur in its document counts only at the stage `page`, because no retrieval
    metric uses it.
    """
    upto = GOLD_STAGES[: GOLD_STAGES.index(stage) + 1]
    lost = [one.lost_at in upto for one in stages if _is_counted(one, stage, upto)]
    return 1 - sum(lost) / len(lost) if lost else None


def _is_counted(one: GoldStages, stage: StageName, upto: Sequence[StageName]) -> bool:
    if stage != "page" and one.lost_at == "page":
        return False
    return one.is_kept(stage) is not None or one.lost_at in upto
