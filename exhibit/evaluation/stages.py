"""Follow gold passages through the stages of a system, from the page to the answer.

The result is the first stage that loses a passage. Each stage is judged from the known data of a system: its parsed
text, its chunks, its ranked lists, its context, its citations and its answer. An unknown stage is None, and no later
stage is blamed for a loss at an earlier one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple, Protocol, get_args

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics import CEILING
from exhibit.evaluation.outcomes import find_cited
from exhibit.evaluation.placement import golds_of, rank_found
from exhibit.evidence import Document, Span, subtract_spans
from exhibit.evidence.locate import place_text, spans_of
from exhibit.evidence.place import TELLING, Place, Placement, letters_of
from exhibit.schemas.run import Outcome, RunQuestion
from exhibit.schemas.run_folder import RunFolder

# ---------------------------------------------------------------- the system's text


ALTERNATIVES = 8
"""At most this many places of one gold are searched; a source rarely names more than three."""
_AROUND = 80
"""Characters on each side of a short gold that identify its place: about a line."""


@dataclass(frozen=True)
class InText:
    """How much of a gold passage a system's text contains."""

    how: Literal["whole", "part", "absent"]
    share: float
    """The share of the passage's letters and digits that the text contains."""
    missing: tuple[str, ...] = ()
    """The words that the text lacks, in stretches."""
    places: tuple[Place, ...] = ()
    """The places in the system's text, one for each place of the gold."""


def find_in_text(gold: GoldPassage, document: Document, parsed: Document) -> InText | None:
    """Return how much of a gold passage a system's text (`parsed`) contains; None if that is unknown.

    If the passage occurs several times in the document, the occurrence with the best result counts.
    """
    results = [_place_in_text(place, document, parsed) for place in gold.places[:ALTERNATIVES]]
    known = [result for result in results if result is not None]
    if not known:
        return None
    best = max(known, key=lambda result: result.share)
    places = tuple(place for result in known if result.share == best.share for place in result.places)
    return InText(best.how, best.share, best.missing, places)


def _place_in_text(place: Place, document: Document, parsed: Document) -> InText | None:
    words = " ".join(document.text[span.start : span.end] for span in place)
    letters = letters_of(words)
    if not letters.text:
        return None
    where = place[0].start / max(len(document.text), 1) * len(parsed.text)
    if len(letters.text) < TELLING:
        return _place_short(place, letters.text, document, parsed)
    placement = place_text(words, parsed)
    missing = [words[start:end] for start, end in _find_missing_ranges(words, placement, parsed)]
    gone = sum(len(letters_of(stretch).text) for stretch in missing)
    share = max(0.0, 1 - gone / len(letters.text))
    if not placement.pieces:
        return InText("absent", 0.0, (join_lines(words),))
    spans = _find_nearest_spans(placement, parsed, where)
    named = tuple(filter(None, map(join_lines, missing)))
    return InText("part" if gone else "whole", share, named, (spans,))


def _place_short(place: Place, letters: str, document: Document, parsed: Document) -> InText | None:
    """Return whether a system's text contains a short gold passage: `whole`, `absent` or, if uncertain, None.

    `whole` requires that the text around the passage is found as well. If only the words of the passage are
    found, the result is None, because they may be another occurrence of the same words.
    """
    first, last = place[0].start, place[-1].end
    start = max(first - _AROUND, 0)
    wide = document.text[start : last + _AROUND]
    for piece in place_text(wide, parsed).pieces:
        if piece.start <= first - start and last - start <= piece.end:
            for spans in piece.places:
                found = _find_letters(letters, parsed.text, spans)
                if found is not None:
                    return InText("whole", 1.0, (), ((found,),))
    if letters in letters_of(parsed.text).text:
        return None
    return InText("absent", 0.0, (join_lines(document.text[first:last]),))


def _find_letters(letters: str, text: str, spans: Place) -> Span | None:
    start = spans[0].start
    fold = letters_of(text[start : spans[-1].end])
    at = fold.text.find(letters)
    if at < 0:
        return None
    first, last = fold.span(at, at + len(letters))
    return Span(start + first, start + last)


def _find_nearest_spans(placement: Placement, parsed: Document, where: float) -> Place:
    """Return the spans of a text's fragments in a parsed document.

    `placement` has the fragments and their locations. If a fragment has several locations, the location nearest
    to the offset `where` is used.
    """
    chosen = {min(piece.places, key=lambda place: abs(place[0].start - where)) for piece in placement.pieces}
    return tuple(sorted(spans_of(placement, parsed, wanted=chosen.__contains__)))


def _find_missing_ranges(words: str, placement: Placement, parsed: Document) -> list[Span]:
    """Return the spans of a gold passage's text that a system's text lacks, also inside located pieces."""
    missing = list(placement.added)
    for piece in placement.pieces:
        own = words[piece.start : piece.end]
        if piece.letters < len(letters_of(own).text):
            there = " ".join(parsed.text[span.start : span.end] for span in piece.places[0])
            missing += [Span(piece.start + start, piece.start + end) for start, end in _find_missing_words(own, there)]
    return sorted(missing)


def _find_missing_words(own: str, other: str) -> Iterable[Span]:
    """Yield the spans of words in `own` that the nearly equal text `other` lacks; hyphens are ignored."""
    mine = [match.span() for match in re.finditer(r"\S+", own)]
    theirs = [letters_of(word).text for word in other.split()]
    matcher = SequenceMatcher(None, [letters_of(own[start:end]).text for start, end in mine], theirs, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag not in ("delete", "replace"):
            continue
        block = "".join(theirs[start:end])
        for word in mine[first:last]:
            letters = letters_of(own[slice(*word)]).text
            if letters and letters not in block:
                yield Span(*word)


def join_lines(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


# ---------------------------------------------------------------- its chunks


_SHOWN_CHARS = 300
"""Characters of the passage, and of the chunk around it, that are kept on each side of a cut: about two sentences."""


class CutPoint(NamedTuple):
    """A chunk boundary inside a gold passage."""

    at: int
    """The offset in the text from which the chunks were cut."""
    before: str
    after: str
    """The words of the passage before and after the cut."""
    lead: str = ""
    rest: str = ""
    """The words of the first chunk before the passage, and those of the second chunk after it."""


@dataclass(frozen=True)
class InChunks:
    """How much of a gold passage the chunks of a system contain."""

    how: Literal["whole", "cut", "none"]
    share: float
    """The share of the passage's letters and digits that the best chunk contains."""
    chunk: int | None = None
    """The number of the best chunk, from 0."""
    cut: CutPoint | None = None


def find_in_chunks(places: Sequence[Place], chunks: Sequence[Place], text: str) -> InChunks | None:
    """Return how much of a gold passage the chunks contain.

    `places` are the occurrences of the passage, and `chunks` are the chunks, both as spans of `text`. The
    occurrence with the best result counts. Return None if there is no occurrence. White space and punctuation
    at the edge of a chunk do not count.
    """
    results = [_hold(place, chunks, text) for place in places[:ALTERNATIVES]]
    known = [result for result in results if result is not None]
    return max(known, key=lambda result: result.share, default=None)


def _hold(place: Place, chunks: Sequence[Place], text: str) -> InChunks | None:
    whole = _count_letters(place, text)
    if not whole:
        return None
    best: tuple[int, int] | None = None
    low, high = place[0].start, max(span.end for span in place)
    for number, spans in enumerate(chunks):
        if not any(span.start < high and low < span.end for span in spans):
            continue
        held = whole - _count_letters(subtract_spans(place, spans), text)
        if held and (best is None or held > best[0]):
            best = held, number
    if best is None:
        return InChunks("none", 0.0)
    if best[0] == whole:
        return InChunks("whole", 1.0, best[1])
    left = [gap for gap in subtract_spans(place, chunks[best[1]]) if _count_letters([gap], text)]
    return InChunks("cut", best[0] / whole, best[1], _cut_point(place, left, chunks, text))


def _count_letters(spans: Iterable[Span], text: str) -> int:
    return sum(sum(map(str.isalnum, text[span.start : span.end])) for span in spans)


def _cut_point(place: Place, left: Sequence[Span], chunks: Sequence[Place], text: str) -> CutPoint:
    """Return where a chunk cuts a gold passage; `left` has the spans that the chunk with most of the passage lacks."""
    (start, end), gap = (place[0].start, place[-1].end), left[0]
    at = gap.end if gap.start <= start else gap.start
    spans = [span for chunk in chunks for span in chunk]
    first = min((span.start for span in spans if span.start < at <= span.end), default=start)
    last = max((span.end for span in spans if span.start <= at < span.end), default=end)
    return CutPoint(
        at,
        join_lines(text[max(start, at - _SHOWN_CHARS) : at]),
        join_lines(text[at : min(end, at + _SHOWN_CHARS)]),
        join_lines(text[max(first, start - _SHOWN_CHARS) : start]),
        join_lines(text[end : min(last, end + _SHOWN_CHARS)]),
    )


# ---------------------------------------------------------------- all stages of a passage


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
    answered: Literal["right", "wrong"] | None = None

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
            return "cut" if self.chunks.how == "cut" else "in no chunk"
        own = getattr(self, lost).reason if lost in LIST_STAGES else ""
        return own or _REASONS.get(lost, "")

    def as_row(self) -> dict[str, Any]:
        """Return a dict for the results file: `lost_at`, the reason, and each known stage by its name."""
        row: dict[str, Any] = {"lost_at": self.lost_at, "reason": self.reason}
        if self.page is not None:
            row["page"] = self.page
        if self.text is not None:
            row["text"] = {"how": self.text.how, "share": self.text.share, "missing": list(self.text.missing)}
        if self.chunks is not None:
            one = self.chunks
            row["chunks"] = {"how": one.how, "share": one.share}
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
    answered: Literal["right", "wrong"] | None = None,
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
    page = True if gold.located else False if gold.absent else None  # None: its words were not searched for
    return GoldStages(page, text, chunks, answered=answered, **ranks)


def compute_gold_left(stages: Iterable[GoldStages], stage: StageName) -> float | None:
    """Return the share of gold passages that are lost neither at a stage nor before it; None if unknown.

    A gold passage that an earlier stage lost counts as lost, even if its result at this stage is unknown. A
    gold passage that does not occur in its document counts only at the stage `page`, because no retrieval
    metric uses it.
    """
    upto = GOLD_STAGES[: GOLD_STAGES.index(stage) + 1]
    counted = [one for one in stages if stage == "page" or one.lost_at != "page"]
    lost = [one.lost_at in upto for one in counted if one.is_kept(stage) is not None or one.lost_at in upto]
    return 1 - sum(lost) / len(lost) if lost else None


# ---------------------------------------------------------------- the passages of a question


class PreparedDocuments(Protocol):
    """The parsed texts and the chunks that a system made from the documents before the first question."""

    def find(self, gold: GoldPassage) -> tuple[InText | None, InChunks | None]:
        """Return how much of a gold passage the system's text contains, and how much its chunks contain.

        Either value is None if it is unknown.
        """


_ANSWERED: dict[Outcome | None, Literal["right", "wrong"]] = {
    Outcome.RIGHT: "right", Outcome.WRONG: "wrong", Outcome.WRONGLY_REFUSED: "wrong",
}  # fmt: skip


def stages_of(
    case: Case, prepared: PreparedDocuments | None = None, outcome: Outcome | None = None
) -> list[GoldStages]:
    """Return what happened to each gold passage at each stage; empty if the question is impossible or failed."""
    reply = case.reply
    if case.is_impossible or reply.error:
        return []
    passages = reply.passages

    def choose_numbered(numbers: Iterable[int]) -> list[Passage]:
        return [passages[number - 1] for number in numbers if 1 <= number <= len(passages)]

    after_search: Sequence[Passage] | None = passages if reply.retrieved is not None else None
    reported = reply.context is not None or reply.selected is not None
    lists = SystemLists(
        passages or None if reply.retrieved is None else reply.retrieved,
        choose_numbered(reply.reranked) if reply.reranked is not None else after_search,
        reply.read(len(passages)) if passages and reported else None,
        choose_numbered(find_cited(case)) or None,
    )
    answered = _ANSWERED.get(outcome)
    followed = []
    for gold in list_followed_golds(case):
        text, chunks = prepared.find(gold) if prepared is not None else (None, None)
        followed.append(follow_gold(gold, lists, text=text, chunks=chunks, answered=answered, cut_by=reply.cut_by))
    return followed


def list_followed_golds(case: Case) -> list[GoldPassage]:
    """Return the gold passages not found in their own document, then the distinct ones that can be compared."""
    return [gold for gold in case.gold if gold.absent] + [gold for gold in golds_of(case) if not gold.absent]


def find_first_loss(stages: Iterable[GoldStages]) -> StageName | None:
    """Return the earliest stage that loses a gold passage; None where no stage does."""
    lost = {one.lost_at for one in stages}
    return next((stage for stage in GOLD_STAGES if stage in lost), None)


def ceilings_of(stages: Sequence[GoldStages]) -> dict[str, float | None]:
    """Return, by metric name such as `ceiling_retrieved`, the share of a question's gold that is left after a stage."""
    return {f"{CEILING}{stage}": compute_gold_left(stages, stage) for stage in GOLD_STAGES if stage != "answered"}


# ---------------------------------------------------------------- the questions of a run


KEPT = "nowhere"
"""The name that stands for the stage where no known stage loses the gold."""
STAGE_TITLES = {
    "page": "on the page",
    "text": "in the system's text",
    "chunks": "in its chunks",
    "retrieved": "retrieved",
    "reranked": "kept by the reranker",
    "context": "in the context",
    "cited": "cited",
    "answered": "answered",
}
"""Descriptions of gold that a stage keeps."""


def find_loss(row: RunQuestion) -> str:
    """Return the first stage that loses some of a question's gold, `nowhere`, or an empty text if nothing is known."""
    return (row.lost_at or KEPT) if row.gold_stages else ""


@dataclass
class StageCounts:
    """The number of questions of a run by the first stage that loses some of their gold, and by the reason."""

    questions: int = 0
    lost: dict[str, Counter[str]] = field(default_factory=dict)
    """The counts by stage and reason."""
    known: set[str] = field(default_factory=set)
    """The stages about which something is known."""

    def add(self, row: RunQuestion) -> None:
        """Count one question; a question without known stages is not counted."""
        if not row.gold_stages:
            return
        self.questions += 1
        self.known.update(stage for gold in row.gold_stages for stage in gold if stage in GOLD_STAGES)
        if row.lost_at:
            first = next(gold for gold in row.gold_stages if gold.get("lost_at") == row.lost_at)
            self.lost.setdefault(row.lost_at, Counter())[str(first.get("reason") or row.lost_at)] += 1

    def list_stages(self) -> list[str]:
        """Return the stages for which at least one question has a known result, in the order of the stages."""
        return [stage for stage in GOLD_STAGES if stage in self.known]


def count_losses(run: RunFolder) -> Counter[str]:
    """Count the questions of a run by the first stage that loses some of their gold."""
    return Counter(row.lost_at for row in run.rows if row.lost_at)


def describe_losses(before: Counter[str], after: Counter[str]) -> list[str]:
    """Return a line for each stage at which more or fewer questions of the second run lose gold."""
    changed = (stage for stage in GOLD_STAGES if before[stage] != after[stage])
    return [f"{stage}: {before[stage]} questions lost gold there before, {after[stage]} after" for stage in changed]
