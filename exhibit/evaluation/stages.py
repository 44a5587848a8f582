"""The stages of a gold passage, from the page to the answer, and the first stage that loses it.

Each stage is judged from what is known of a system: its parsed text, its chunks, its ranked lists, its context, its
citations and its answer. What is not known is None, and no later stage is blamed for what an earlier one lost.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple, get_args

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.judgement import Judgement
from exhibit.evaluation.ranking import rank_found, subtract_span
from exhibit.evidence import Document, Span
from exhibit.evidence.parser_markup import letters_of
from exhibit.evidence.pieces import TELLING, Place, Placement
from exhibit.evidence.place import place_text, spans_of

StageName = Literal["page", "text", "chunks", "retrieved", "reranked", "context", "cited", "answered"]
GOLD_STAGES: tuple[StageName, ...] = get_args(StageName)
"""In the order in which a passage goes through them."""
PROVISO = re.compile(
    r"\b(?:provided,? (?:however,? )?that|provided,? however|except(?:ing)?|unless|subject to|save (?:that|for|as)"
    r"|notwithstanding|other than)\b",
    re.I,
)
"""Words that begin an exception or a condition."""
_AROUND = 80
"""Characters on both sides of a short gold by which its place is known again: about a line."""
_ALTERNATIVES = 8
"""Places of one gold that are looked at; a source names rarely more than three."""
_SHOWN = 60
"""Characters that are shown on each side of a cut."""
_LINES = 3
"""Lines that a table has at least: two short ones may be a heading and a date."""
_CELL_WORDS = 5
"""Words of a table's line at the most; a line of prose has about twelve."""
_LIST_LINE = re.compile(r"[ \t]*(?:\([a-z0-9]{1,4}\)|\d{1,2}[.)]|[a-z][.)]|[•●▪◦‣–—*-])[ \t]", re.I)
_TABLE_MARKUP = re.compile(r"\|[^|\n]{1,200}\||</t[dhr]>|\\begin\{tabular|\t[^\t\n]{1,200}\t")


@dataclass(frozen=True)
class InText:
    """What a system's text has of a gold passage."""

    how: Literal["whole", "part", "absent"]
    share: float
    """The share of its letters and digits that the text has."""
    missing: tuple[str, ...] = ()
    """The words that the text does not have, stretch by stretch."""
    places: tuple[Place, ...] = ()
    """Where the text has it: one place for each place of the gold."""


class CutPoint(NamedTuple):
    """Where a chunk ends inside a gold passage."""

    at: int
    """The offset in the text that the chunks were cut from."""
    before: str
    after: str


@dataclass(frozen=True)
class InChunks:
    """What the chunks of a system have of a gold passage."""

    how: Literal["whole", "cut", "none"]
    share: float
    """The share of its letters and digits that the best chunk has."""
    chunk: int | None = None
    """The number of the best chunk, from 0."""
    cut: CutPoint | None = None
    before_proviso: bool = False
    """Whether the best chunk lacks an exception or a condition of the gold."""


class RankedStage(NamedTuple):
    """The rank, from 1, at which a list finds a gold passage; None where it does not find it."""

    rank: int | None
    before: int | None = None
    """The rank in the list before, where there is one."""


@dataclass(frozen=True)
class GoldStages:
    """What is known of one gold passage at each stage; None where nothing is known."""

    page: bool | None = None
    text: InText | None = None
    chunks: InChunks | None = None
    retrieved: RankedStage | None = None
    reranked: RankedStage | None = None
    context: RankedStage | None = None
    cited: RankedStage | None = None
    answered: Judgement | None = None

    def kept(self, stage: StageName) -> bool | None:
        """Return whether a stage keeps the passage; None where that is not known.

        A text keeps it with at least half of its letters, chunks keep it when one of them has it whole, a list keeps
        it where it is found, and an answer where it is right.
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
    def lost_at(self) -> StageName | None:
        """The first stage that loses the passage; None where no stage that is known does.

        A stage in which the passage is found proves that no earlier one lost it: two neighbouring chunks may together
        bring back what the chunker cut. A right answer proves nothing, as it may come from elsewhere.
        """
        lost: StageName | None = None
        for stage in GOLD_STAGES:
            kept = self.kept(stage)
            if kept and stage != "answered":
                lost = None
            elif kept is False and lost is None:
                lost = stage
        return lost

    def as_row(self) -> dict[str, Any]:
        """Return what is known as plain values, stages that are not known left out."""
        row: dict[str, Any] = {"lost_at": self.lost_at}
        if self.page is not None:
            row["page"] = self.page
        if self.text is not None:
            row["text"] = {"how": self.text.how, "share": self.text.share, "missing": list(self.text.missing)}
        if self.chunks is not None:
            one = self.chunks
            row["chunks"] = {"how": one.how, "share": one.share, "cut before its proviso": one.before_proviso}
            if one.cut is not None:
                row["chunks"]["cut"] = one.cut._asdict()
        for stage in ("retrieved", "reranked", "context", "cited"):
            ranked: RankedStage | None = getattr(self, stage)
            if ranked is not None:
                row[stage] = {"rank": ranked.rank} | ({} if ranked.before is None else {"before": ranked.before})
        return row | ({"answered": self.answered} if self.answered else {})


# ---------------------------------------------------------------- the page


def is_on_page(gold: GoldPassage) -> bool | None:
    """Return whether a gold passage stands in its document; None where its words were not looked for."""
    if gold.located:
        return True
    return False if gold.absent else None


def kind_of_gold(gold: GoldPassage, document: Document) -> str:
    """Return `across pages`, `table`, `list` or `text`, by the lines of its first place and the markup of its quote."""
    place = gold.places[0]
    if len({page for span in place for page in document.pages_of(span)}) > 1:
        return "across pages"
    words = "\n".join(document.text[span.start : span.end] for span in place)
    lines = [line for line in words.splitlines() if line.strip()]
    short = sum(len(line.split()) <= _CELL_WORDS for line in lines)
    if _TABLE_MARKUP.search(gold.text or "") or (len(lines) >= _LINES and 3 * short >= 2 * len(lines)):
        return "table"
    return "list" if sum(bool(_LIST_LINE.match(line)) for line in lines) > 1 else "text"


# ---------------------------------------------------------------- the system's text


def find_in_text(gold: GoldPassage, document: Document, parsed: Document) -> InText | None:
    """Return what a system's text has of a gold passage, the best of its places; None where that cannot be told."""
    results = [_place_in_text(place, document, parsed) for place in gold.places[:_ALTERNATIVES]]
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
    missing = [words[start:end] for start, end in _missing_ranges(words, placement, parsed)]
    gone = sum(len(letters_of(stretch).text) for stretch in missing)
    share = max(0.0, 1 - gone / len(letters.text))
    if not placement.pieces:
        return InText("absent", 0.0, (_plain(words),))
    spans = _nearest_spans(placement, parsed, where)
    named = tuple(filter(None, map(_plain, missing)))
    return InText("part" if gone else "whole", share, named, (spans,))


def _place_short(place: Place, letters: str, document: Document, parsed: Document) -> InText | None:
    """Return what a text has of a few words, which are known again by the words around them.

    None where the text has these words, but not between the same neighbours: it may be another place.
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
    return InText("absent", 0.0, (_plain(document.text[first:last]),))


def _find_letters(letters: str, text: str, spans: Place) -> Span | None:
    start = spans[0].start
    fold = letters_of(text[start : spans[-1].end])
    at = fold.text.find(letters)
    if at < 0:
        return None
    first, last = fold.span(at, at + len(letters))
    return Span(start + first, start + last)


def _nearest_spans(placement: Placement, parsed: Document, where: float) -> Place:
    """Return the place of a text; of equal places the one nearest to an offset."""
    chosen = {min(piece.places, key=lambda place: abs(place[0].start - where)) for piece in placement.pieces}
    return tuple(sorted(spans_of(placement, parsed, wanted=chosen.__contains__)))


def _missing_ranges(words: str, placement: Placement, parsed: Document) -> list[Span]:
    """Return the ranges of a gold's words that a text does not have, those inside a placed piece among them."""
    missing = list(placement.added)
    for piece in placement.pieces:
        own = words[piece.start : piece.end]
        if piece.letters < len(letters_of(own).text):
            there = " ".join(parsed.text[span.start : span.end] for span in piece.places[0])
            missing += [Span(piece.start + start, piece.start + end) for start, end in _missing_words(own, there)]
    return sorted(missing)


def _missing_words(own: str, other: str) -> Iterable[Span]:
    """Yield the words of one text that another, which is almost the same, does not have; hyphens do not matter."""
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


def _plain(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------- the chunks


def find_in_chunks(places: Sequence[Place], chunks: Sequence[Place], text: str) -> InChunks | None:
    """Return how the chunks of a text hold a passage, the best of its places; None where it has no place there.

    Places and chunks count in the same text. White space and signs at the edge of a chunk cut nothing off.
    """
    results = [_hold(place, chunks, text) for place in places[:_ALTERNATIVES]]
    known = [result for result in results if result is not None]
    return max(known, key=lambda result: result.share, default=None)


def _hold(place: Place, chunks: Sequence[Place], text: str) -> InChunks | None:
    whole = _letters_in(place, text)
    if not whole:
        return None
    best: tuple[int, int] | None = None
    low, high = place[0].start, max(span.end for span in place)
    for number, spans in enumerate(chunks):
        if not any(span.start < high and low < span.end for span in spans):
            continue
        held = whole - _letters_in(_left(place, spans), text)
        if held and (best is None or held > best[0]):
            best = held, number
    if best is None:
        return InChunks("none", 0.0)
    if best[0] == whole:
        return InChunks("whole", 1.0, best[1])
    left = [gap for gap in _left(place, chunks[best[1]]) if _letters_in([gap], text)]
    return InChunks("cut", best[0] / whole, best[1], _cut_point(place, left, text), _lacks_proviso(place, left, text))


def _left(place: Sequence[Span], spans: Sequence[Span]) -> list[Span]:
    gaps = list(place)
    for span in spans:
        gaps = [piece for gap in gaps for piece in subtract_span(gap, span)]
    return gaps


def _letters_in(spans: Iterable[Span], text: str) -> int:
    return sum(sum(map(str.isalnum, text[span.start : span.end])) for span in spans)


def _cut_point(place: Place, left: Sequence[Span], text: str) -> CutPoint:
    """Return where the best chunk ends inside the passage, or begins where its beginning is missing."""
    start, gap = place[0].start, left[0]
    at = gap.end if gap.start <= start else gap.start
    before, after = text[max(at - _SHOWN, 0) : at], text[at : at + _SHOWN]
    return CutPoint(at, _plain(before), _plain(after))


def _lacks_proviso(place: Place, left: Sequence[Span], text: str) -> bool:
    """Return whether an exception or a condition of the passage begins in what the best chunk does not have."""
    start, end = place[0].start, place[-1].end
    words = (match.span() for match in PROVISO.finditer(text, start, end))
    # the words may themselves be cut: "provided | that"
    return any(gap.start < last and first < gap.end for first, last in words for gap in left)


# ---------------------------------------------------------------- from the search to the answer


class SystemLists(NamedTuple):
    """The passages that a system had in its hands for one question, stage by stage; None where it does not tell."""

    retrieved: Sequence[Passage] | None = None
    reranked: Sequence[Passage] | None = None
    context: Sequence[Passage] | None = None
    cited: Sequence[Passage] | None = None


NO_LISTS = SystemLists()
"""What is known of a system that was not asked."""


def follow_gold(
    gold: GoldPassage,
    lists: SystemLists = NO_LISTS,
    *,
    text: InText | None = None,
    chunks: InChunks | None = None,
    answered: Judgement | None = None,
) -> GoldStages:
    """Return the stages of one gold passage; lists find it by the one rule of recall."""
    ranks: dict[str, RankedStage | None] = {}
    before: int | None = None
    for stage, passages in lists._asdict().items():
        # a passage of which nothing can be placed is unknown, not wrong
        if passages is None or not gold.worded or (passages and not any(passage.tells for passage in passages)):
            ranks[stage] = None
            continue
        rank = rank_found(gold, passages)
        ranks[stage] = RankedStage(rank, before)
        before = rank
    return GoldStages(is_on_page(gold), text, chunks, answered=answered, **ranks)


def ceiling_after(stages: Iterable[GoldStages], stage: StageName) -> float | None:
    """Return the share of gold that is still there after a stage; None where no gold is known at it.

    Gold of which a stage up to this one is known and that none of them loses is there.
    """
    upto = GOLD_STAGES[: GOLD_STAGES.index(stage) + 1]
    known = [one for one in stages if one.kept(stage) is not None]
    if not known:
        return None
    return sum(one.lost_at is None or one.lost_at not in upto for one in known) / len(known)
