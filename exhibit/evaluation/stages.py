"""Follow gold passages through the stages of a system, from the page to the answer, to the first that loses them.

Stages without data are left out. A stage is never blamed for a loss at an earlier stage.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.converters import Tally
from exhibit.converters.tables.records import read_records
from exhibit.engine import track
from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.datasets import Dataset, list_names
from exhibit.evaluation.metrics import CEILING, STAGE_TITLES
from exhibit.evaluation.outcomes import find_cited
from exhibit.evaluation.placement import Documents, golds_of, rank_found
from exhibit.evaluation.replies import FileNamer, ReplyError, read_passages
from exhibit.evidence import Document, Span, subtract_spans
from exhibit.evidence.locate import place_text, spans_of
from exhibit.evidence.place import MIN_SHARED_LETTERS, Place, blank_markup, letters_of
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import LARGEST_FILE, read_regular, read_text
from exhibit.schemas.run import Outcome, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import list_files

MAX_PLACES = 8  # the most locations of one gold passage that are searched; a source rarely names more than three


class InText(NamedTuple):
    share: float  # the share of a gold passage's letters and digits that a system's text contains
    places: tuple[Place, ...] = ()  # their location in that text


def find_in_text(gold: GoldPassage, document: Document, parsed: Document) -> InText | None:
    """Return how much of a gold passage a system's text (`parsed`) contains, at best; None if that is unknown."""
    parts = [_place_in_text(place, document, parsed) for place in gold.places[:MAX_PLACES]]
    known = [part for part in parts if part is not None]
    if not known:
        return None
    share = max(part.share for part in known)
    return InText(share, tuple(place for part in known if part.share == share for place in part.places))


def _place_in_text(place: Place, document: Document, parsed: Document) -> InText | None:
    words = " ".join(document.text[span.start : span.end] for span in place)
    letters = letters_of(words).text
    if len(letters) < MIN_SHARED_LETTERS:
        # so few words may be another occurrence: their presence proves nothing
        return None if letters in letters_of(parsed.text).text else InText(0.0)
    placement = place_text(words, parsed)
    if not placement.pieces:
        return InText(0.0)
    # if several occurrences are equal, choose the one at the same relative position
    where = place[0].start / max(len(document.text), 1) * len(parsed.text)
    near = {min(piece.places, key=lambda place: abs(place[0].start - where)) for piece in placement.pieces}
    return InText(placement.share, (tuple(sorted(spans_of(placement, parsed, wanted=near.__contains__))),))


def find_in_chunks(places: Sequence[Place], chunks: Sequence[Place], text: str) -> float | None:
    """Return the share of a gold passage's letters and digits that the best chunk contains; 1 if it has them all.

    `places` are the occurrences of the passage, of which the best counts; without any, the result is None. They and
    the chunks are spans of `text`.
    """
    shares = []
    for place in places[:MAX_PLACES]:
        whole, start, end = _count_letters(place, text), place[0].start, place[-1].end
        near = [spans for spans in chunks if any(span.start < end and start < span.end for span in spans)]
        left = [_count_letters(subtract_spans(place, spans), text) for spans in near]
        shares += [1 - min(left, default=whole) / whole] if whole else []
    return max(shares, default=None)


def _count_letters(spans: Iterable[Span], text: str) -> int:
    return sum(sum(map(str.isalnum, text[span.start : span.end])) for span in spans)


FindPrepared = Callable[[GoldPassage], tuple[float | None, float | None]]
"""Returns the shares of a gold passage that the system's text and its best chunk contain; None if unknown."""
Say = Callable[[str], None]  # the function that gets each note
_CACHED = 1024  # the number of cached results: questions that are repeated or share a passage are close together


def open_target_documents(text: Callable[[str], str | None], chunks: Callable[[str], Sequence[Span]]) -> FindPrepared:
    """Return a function that looks for a gold passage in a target's texts and chunks."""

    @lru_cache(_CACHED)
    def find(gold: GoldPassage) -> tuple[float | None, float | None]:
        if not gold.located or gold.filename is None:
            return None, None
        words = text(gold.filename)
        if words is None:  # the system skipped the document
            return 0.0, None
        return 1.0, find_in_chunks(gold.places, [(span,) for span in chunks(gold.filename)], words)

    return find


def open_prepared_files(dataset: Dataset, folder: Path | None, file: Path | None, say: Say) -> FindPrepared:
    """Return a function that looks for a gold passage in `--parsed` texts, in a file of `--chunks`, or in both."""
    texts = read_parsed_folder(folder, dataset.documents.named) if folder else {}
    files = {gold.filename for case in dataset.cases for gold in case.gold if gold.located and gold.filename}
    if folder and (missing := sorted(files - set(texts))):
        say(f"{dataset.name}: {folder} has no text of {list_names(missing)}: it is unknown whether their gold was lost")
    documents = dataset.documents.with_texts(texts)
    chunks = _place_chunks(file, dataset, documents, say) if file else None

    @lru_cache(_CACHED)
    def find(gold: GoldPassage) -> tuple[float | None, float | None]:
        document, parsed = dataset.documents.get(gold.filename), texts.get(gold.filename or "")
        chunked = documents.get(gold.filename)
        if not gold.located or chunked is None:
            return None, None
        text = find_in_text(gold, document, parsed) if document and parsed else None
        places = gold.places if parsed is None else text.places if text else ()
        cut = None if chunks is None else find_in_chunks(places, chunks.get(chunked.filename, []), chunked.text)
        return text.share if text else None, cut

    return find


def _place_chunks(file: Path, dataset: Dataset, documents: Documents, say: Say) -> dict[str, list[Place]]:
    chunks = read_chunks(file, dataset.documents.named)
    by_file: dict[str, list[Place]] = {}
    unplaced = 0
    for chunk in track(chunks, total=len(chunks), label="chunks", unit="chunk"):
        placed = documents.place(replace(chunk, told_page=None))
        files = [placed.filename] if placed.filename else placed.also_in
        unplaced += not (files and placed.spans)
        for filename in files if placed.spans else ():
            spans = placed.spans if placed.spans == (chunk.span,) else documents.find_all_spans(chunk.text, filename)
            by_file.setdefault(filename, []).append(spans)
    if not by_file:
        raise SourceError(f"{file}: no chunk is from a document of {dataset.name}; is the file for another bundle?")
    if unplaced:
        say(f"{dataset.name}: {unplaced} of {len(chunks)} chunks of {file} were not located in its documents")
    return by_file


_ENDINGS = (".txt", ".text", ".md", ".markdown", ".mmd", ".html", ".htm")


def read_parsed_folder(folder: Path, names: FileNamer) -> dict[str, Document]:
    """Return the parsed texts of a folder by corpus file."""
    texts: dict[str, Document] = {}
    for path in list_files(folder):
        filename = names(path.name) if path.suffix.lower() in _ENDINGS else None
        if filename in texts:
            raise SourceError(f"{path}: a second text of {filename}; remove one of them")
        if filename is not None:
            text = read_text(path, error=SourceError, most=LARGEST_FILE)
            texts[filename] = Document(filename, blank_markup(text))
    if not texts:
        needed = f"the name of a document of the bundle and one of the endings {', '.join(_ENDINGS)}"
        raise SourceError(f"{folder}: no file has {needed}; name files after their documents")
    return texts


def read_chunks(path: Path, names: FileNamer) -> tuple[Passage, ...]:
    """Return the chunks of a JSONL, JSON, CSV or Parquet file; `names` maps a chunk's file name to a corpus file."""
    if not path.is_file():
        raise SourceError(f"{path}: no such file; --chunks takes a file with one chunk per row (JSONL, CSV, Parquet)")
    records = read_records(path, read_regular(path, most=None), Tally(strict=True), accounted=False)
    try:
        chunks = read_passages([record.cells for record in records], names=names)
    except ReplyError as error:
        raise SourceError(f"{path}: {error}; a chunk must be an object with its text in `text`") from error
    return chunks


GOLD_STAGES = tuple(STAGE_TITLES)
_REASONS: dict[str, str] = {
    "page": "not located in its document",
    "retrieved": "only other passages of its document were found",
    "reranked": "dropped by the reranker",
    "context": "left out of the context",
    "cited": "another passage is cited",
    Outcome.WRONG: "the answer is wrong",
    Outcome.WRONGLY_REFUSED: "the system refused",
    "budget": "cut by the token budget",
    "number": "ranked below the passages that are read",
    "threshold": "below the threshold",
    "confidence": "no passage was read, because the confidence is low",
}
"""The reason for a loss, by stage, outcome or limit of the context."""

GoldStages = dict[str, Any]
"""A gold passage's `lost_at`, the first stage that loses it, the `reason`, and the value of each known stage."""
PassageLists = Mapping[str, Sequence[Passage] | None]  # a question's passages at each stage; None if not reported


def follow_gold(
    gold: GoldPassage, lists: PassageLists, *, in_text: float | None = None, in_chunks: float | None = None,
    outcome: Outcome | None = None, cut_by: str = "",
) -> GoldStages:  # fmt: skip
    """Return the result of each stage for one gold passage; in lists it is found as in recall.

    `in_text` and `in_chunks` are its shares in the system's text and in the best chunk.
    """
    stages: GoldStages = {"lost_at": None, "reason": ""}

    def add(stage: str, kept: bool, value: Any, reason: str) -> None:
        stages[stage] = value
        if not kept and stages["lost_at"] is None:
            stages.update(lost_at=stage, reason=reason)
        # if a later stage has the passage, no earlier stage lost it: two chunks may together contain it. A right
        # answer does not show this: it may come from another passage
        if kept and stage != "answered":
            stages.update(lost_at=None, reason="")

    if gold.located or gold.absent:  # otherwise the document was not searched for its words
        add("page", gold.located, gold.located, _REASONS["page"])
    if in_text is not None:
        missing = "most of its words are missing" if in_text else "absent from the text"
        add("text", 2 * in_text >= 1, {"share": in_text}, missing)
    if in_chunks is not None:
        add("chunks", in_chunks == 1, {"share": in_chunks}, "cut" if in_chunks else "in no chunk")
    before: int | None = None
    for name, passages in lists.items():
        # a passage without a known location is unknown, not wrong
        if passages is None or not gold.worded or (passages and not any(passage.has_content for passage in passages)):
            continue
        rank = rank_found(gold, passages)
        reason = _REASONS[cut_by if name == "context" and cut_by in _REASONS else name]
        if name == "retrieved" and not any(passage.source == gold.filename for passage in passages):
            reason = "no passage of its document was found"
        add(name, rank is not None, {"rank": rank} | ({} if before is None else {"before": before}), reason)
        before = rank
    if outcome in (Outcome.RIGHT, Outcome.WRONG, Outcome.WRONGLY_REFUSED):
        right = outcome is Outcome.RIGHT
        add("answered", right, "right" if right else "wrong", _REASONS.get(outcome, ""))
    return stages


def stages_of(case: Case, find: FindPrepared | None = None, outcome: Outcome | None = None) -> list[GoldStages]:
    """Return the result of each stage for each gold passage; empty if the question is impossible or failed."""
    reply, passages = case.reply, case.reply.passages
    if case.is_impossible or reply.error:
        return []
    reported = passages and (reply.context is not None or reply.selected is not None)
    reranked = None if reply.reranked is None else reply.choose_passages(reply.reranked)
    lists: PassageLists = {
        "retrieved": passages or None if reply.retrieved is None else reply.retrieved,
        "reranked": passages if reranked is None and reply.retrieved is not None else reranked,
        "context": reply.read(len(passages)) if reported else None,
        "cited": reply.choose_passages(find_cited(case)) or None,
    }
    followed = []
    absent = [gold for gold in case.gold if gold.absent]
    for gold in absent + [gold for gold in golds_of(case) if not gold.absent]:
        in_text, in_chunks = find(gold) if find else (None, None)
        stages = follow_gold(gold, lists, in_text=in_text, in_chunks=in_chunks, outcome=outcome, cut_by=reply.cut_by)
        followed.append({"gold": case.gold.index(gold), **stages})
    return followed


def find_first_loss(stages: Iterable[GoldStages]) -> str | None:
    """Return the earliest stage that loses a gold passage; None if no stage does."""
    return min(filter(None, (passage["lost_at"] for passage in stages)), key=GOLD_STAGES.index, default=None)


def ceilings_of(stages: Sequence[GoldStages]) -> dict[str, float | None]:
    """Return, by metric name such as `ceiling_retrieved`, the share of a question's gold that is left after a stage."""
    left: dict[str, float | None] = {}
    for number, stage in enumerate(GOLD_STAGES[:-1], 1):  # without `answered`
        upto = GOLD_STAGES[:number]
        # no retrieval metric uses gold that does not occur in its document
        counted = [passage for passage in stages if stage == "page" or passage["lost_at"] != "page"]
        lost = [passage["lost_at"] in upto for passage in counted if stage in passage or passage["lost_at"] in upto]
        left[f"{CEILING}{stage}"] = 1 - sum(lost) / len(lost) if lost else None
    return left


KEPT = "nowhere"  # the value of `lost_at` for gold that no known stage loses


@dataclass
class StageCounts:
    """Counts a run's questions by the first stage that loses some of their gold, and by the reason."""

    questions: int = 0  # with known stages
    lost: dict[str, Counter[str]] = field(default_factory=dict)  # the counts by stage and reason
    known: set[str] = field(default_factory=set)  # the stages with known results

    def add(self, row: RunQuestion) -> None:
        if not row.gold_stages:
            return
        self.questions += 1
        self.known.update(stage for gold in row.gold_stages for stage in gold if stage in GOLD_STAGES)
        if row.lost_at:
            first = next(gold for gold in row.gold_stages if gold.get("lost_at") == row.lost_at)
            self.lost.setdefault(row.lost_at, Counter())[str(first.get("reason") or row.lost_at)] += 1


def count_losses(run: RunFolder) -> Counter[str]:
    return Counter(row.lost_at for row in run.rows if row.lost_at)


def describe_losses(before: Counter[str], after: Counter[str]) -> list[str]:
    changed = (stage for stage in GOLD_STAGES if before[stage] != after[stage])
    return [f"{at}: gold lost for {before[at]} questions of the first run, {after[at]} of the second" for at in changed]
