"""Retrieval: how much gold the passages have, how early, and from which documents.

Rankings have graded items. If a case has grades (`Case.grades`, as in ACORD), the items are files; a file's rank is
that of its first passage. If irrelevant files have grades too (grade 0), ungraded files are left out of the ranking,
because many of them may be relevant. Otherwise the items are gold passages, each at the rank of the retrieved passage
that finds it (`placement.rank_found`); of several that one passage finds, the others get the next free ranks, so that
nDCG does not exceed 1. Gold that names a file but quotes no text is not an item; only the document metrics count it.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from exhibit.evaluation.answer_words import compare_words, set_f1, split_words
from exhibit.evaluation.metrics import (
    Case,
    Options,
    Passage,
    is_wrong_file,
    list_gold_files,
    list_gold_texts,
    metrics_of,
    once_per_case,
)
from exhibit.evaluation.metrics.parity import match_seed, score_seed_ndcg, split_seed_words
from exhibit.evaluation.placement import find_gold_ranks, golds_of, touches
from exhibit.evidence import Span, subtract_spans

metric = metrics_of("Retrieval")

# ---------------------------------------------------------------- characters


@metric(
    title="Retrieved text that is gold",
    meaning="share of the first k passages' characters that are gold",
    needs=("gold spans", "passages"),
    at=("ks",),
    depths=(1, 8),
)
def char_precision(case: Case, options: Options, k: int) -> float | None:
    return _score_characters(case, options, k)[0]


@metric(
    title="Gold text retrieved",
    meaning="share of the gold characters among the first k passages",
    needs=("gold spans", "passages"),
    at=("ks",),
    depths=(8, 64),
)
def char_recall(case: Case, options: Options, k: int) -> float | None:
    return _score_characters(case, options, k)[1]


class _Piece(NamedTuple):
    span: Span
    rank: int
    """The rank of the piece's passage, from 0."""


Pieces = dict[str | None, list[_Piece]]
"""The pieces by file; None = text of no document, which counts as retrieved and overlaps nothing."""
Scores = dict[int, tuple[float | None, float | None]]
"""Precision and recall at each cutoff."""


def _score_characters(case: Case, options: Options, k: int) -> tuple[float | None, float | None]:
    ks = options.ks if k in options.ks else tuple(sorted({*options.ks, k}))
    score = _score_as_published if options.parity == "legalbenchrag" else _score_union
    return score(case, ks, options.count_added)[k]


@once_per_case
def _score_union(case: Case, ks: Sequence[int], count_added: bool) -> Scores:
    """Return character precision and recall; the first k passages are united, so that a character counts once.

    Of a gold passage at several places only the best place counts: the one with the largest retrieved share.

        recall@k    = sum over golds of length x best share / sum of lengths     (length: of the longest place)
        precision@k = retrieved characters inside those best places / retrieved characters
    """
    retrieved = _collect_pieces(case, ks[-1], count_added)
    pieces = {file: _unite(some) if file else some for file, some in retrieved.items()}
    golds = []
    for gold in golds_of(case):
        places = [spans for place in gold.places if (spans := [span for span in place if span.start < span.end])]
        if places and gold.filename is not None:
            counts = [_count_overlap(place, pieces.get(gold.filename, ()), ks) for place in places]
            golds.append((gold.filename, places, counts, max(map(_measure_length, places))))
    scores = []
    for column, characters in enumerate(_count_characters(pieces, ks)):
        best: dict[str, list[_Piece]] = {}
        credit = 0.0
        for file, places, counts, length in golds:
            shares = [row[column] / _measure_length(place) for row, place in zip(counts, places, strict=True)]
            chosen = places[shares.index(max(shares))]
            credit += max(
                row[column] * length / _measure_length(place) for row, place in zip(counts, places, strict=True)
            )
            # overlapping golds share characters, which precision must count once
            best.setdefault(file, []).extend(_Piece(span, 0) for span in chosen)
        inside = sum(
            _count_overlap([piece.span for piece in _unite(some)], pieces.get(file, ()), ks)[column]
            for file, some in best.items()
        )
        scores.append((_divide(inside, characters), _divide(credit, sum(length for *_, length in golds))))
    return _hide_unknown(case, ks, scores)


@once_per_case
def _score_as_published(case: Case, ks: Sequence[int], count_added: bool) -> Scores:
    """Return precision and recall as LegalBench-RAG publishes them.

    Passages are not united, the overlaps of each retrieved snippet with each gold snippet are added up, and only the
    first place of a gold counts.
    """
    pieces = _collect_pieces(case, ks[-1], count_added)
    golds = [(gold.filename or "", gold.places[0]) for gold in case.gold if gold.located]
    counts = [_count_overlap(place, pieces.get(file, ()), ks) for file, place in golds]
    length = sum(_measure_length(place) for _, place in golds)
    shared = [sum(row[column] for row in counts) for column in range(len(ks))]
    pairs = zip(shared, _count_characters(pieces, ks), strict=True)
    return _hide_unknown(case, ks, [(_divide(part, whole), _divide(part, length)) for part, whole in pairs])


def _collect_pieces(case: Case, depth: int, count_added: bool) -> Pieces:
    pieces: Pieces = {}
    seen: set[str] = set()
    for rank, passage in enumerate(case.reply.passages[:depth]):
        known = passage.span is not None and passage.source is not None
        if known:
            pieces.setdefault(passage.source, []).extend(_Piece(span, rank) for span in passage.spans)
        whole = Span(0, len(passage.text))
        extra = (passage.added if count_added else ()) if known else (whole,) if count_added or passage.tells else ()
        if extra and passage.text not in seen:  # a repeated passage counts once
            seen.add(passage.text)
            pieces.setdefault(None, []).extend(_Piece(span, rank) for span in extra)
    return pieces


def _hide_unknown(case: Case, ks: Sequence[int], scores: Sequence[tuple[float, float]]) -> Scores:
    """Return the scores, with None at each cutoff k where the content of all of the first k passages is unknown."""
    first = next((rank for rank, passage in enumerate(case.reply.passages) if passage.tells), len(case.reply.passages))
    unknown = bool(case.reply.passages)
    return {k: (None, None) if unknown and first >= k else row for k, row in zip(ks, scores, strict=True)}


def _unite(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Return the pieces without the characters that an earlier piece already covers."""
    united: list[_Piece] = []
    for span, rank in pieces:
        left = [span]
        for other, _ in united:
            if other.start < span.end and span.start < other.end:
                left = subtract_spans(left, [other])
        united += [_Piece(part, rank) for part in left]
    return united


def _count_overlap(spans: Iterable[Span], pieces: Iterable[_Piece], ks: Sequence[int]) -> list[int]:
    """Return, for each k, how many characters of the spans the first k passages contain."""
    by_rank = [0] * (ks[-1] + 1)
    for span in spans:
        for (start, end), rank in pieces:
            if start < span.end and span.start < end:
                by_rank[rank + 1] += min(end, span.end) - max(start, span.start)
    total = list(accumulate(by_rank))
    return [total[k] for k in ks]


def _count_characters(pieces: Pieces, ks: Sequence[int]) -> list[int]:
    every = [piece for some in pieces.values() for piece in some if piece.span.start < piece.span.end]
    return [sum(span.end - span.start for span, rank in every if rank < k) for k in ks]


def _measure_length(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


def _divide(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


# ---------------------------------------------------------------- documents and pages


@metric(
    title="Right document found",
    meaning="questions with a passage of the right file among the first k",
    needs=("gold files", "passage files"),
    at=("ks",),
    depths=(1,),
)
def document_hit(case: Case, k: int) -> float | None:
    wrong = [is_wrong_file(passage, list_gold_files(case)) for passage in case.reply.passages[:k]]
    return 1.0 if False in wrong else None if None in wrong else 0.0


@metric(
    title="Passages from a wrong document",
    meaning="share of the first k passages from a file without gold",
    higher_is_better=False,
    needs=("gold files", "passage files"),
    at=("ks",),
    depths=(1, 8),
)
def drm(case: Case, k: int) -> float | None:
    wrong, known = count_wrong_files(case, k)
    return wrong / known if known else None


def count_wrong_files(case: Case, k: int) -> tuple[int, int]:
    """Return how many of the first k passages are from a file without gold, and how many have a known file."""
    wrong = [is_wrong_file(passage, list_gold_files(case)) for passage in case.reply.passages[:k]]
    return wrong.count(True), len(wrong) - wrong.count(None)


@metric(
    title="Right page found",
    meaning="questions with a passage from a page of the gold among the first k",
    needs=("gold files", "passage files"),
    at=("ks",),
    depths=(8,),
    short=False,
)
def page_hit(case: Case, k: int) -> float | None:
    pages = {(gold.filename, page) for gold in case.gold for page in gold.pages}
    if not pages:
        return None
    hits = [_is_on_page(passage, pages) for passage in case.reply.passages[:k]]
    return 1.0 if True in hits else None if None in hits else 0.0


def _is_on_page(passage: Passage, pages: set[tuple[str | None, int]]) -> bool | None:
    """Return whether a passage is on one of the pages; the page that the system reports counts only if the words
    were not located.
    """
    own = passage.pages or ((passage.page,) if passage.span and passage.page else ())
    own = own or ((passage.told_page,) if passage.told_page and passage.filename else ())
    if not own:
        return False if is_wrong_file(passage, {name for name, _ in pages if name}) else None
    return any((passage.source, page) in pages for page in own)


# ---------------------------------------------------------------- rankings

GOLD_GRADE = 3
"""A file with at least this grade is gold; grades are 0 to 4, for one to five stars."""


class Ranking(NamedTuple):
    """A list of item names, best first, with the grades of the judged items; gold has at least the grade `least`."""

    order: Sequence[str]
    grades: Mapping[str, int]
    least: int

    @property
    def gold_ranks(self) -> list[int]:
        """The ranks, from 1, of the retrieved gold items."""
        return [rank for rank, item in enumerate(self.order, 1) if self.grades.get(item, 0) >= self.least]

    @property
    def golds(self) -> int:
        """The number of gold items."""
        return sum(grade >= self.least for grade in self.grades.values())


@once_per_case
def ranking_of(case: Case) -> Ranking | None:
    """Return the ranked items of a case with their grades: files if the case has grades, else gold passages.

    None if the case has neither grades nor a gold passage with a position or a text to compare.
    """
    if case.grades:
        files = [passage.source or f"passage-{rank}" for rank, passage in enumerate(case.reply.passages, 1)]
        judged = [file for file in dict.fromkeys(files) if file in case.grades or 0 not in case.grades.values()]
        return Ranking(judged, case.grades, GOLD_GRADE)
    ranks = find_gold_ranks(case)
    if not ranks:
        return None
    items: dict[int, str] = {}
    free = 1
    for rank, number in sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None):
        free = max(rank, free)
        items[free] = f"gold-{number}"
        free += 1
    order = [items.get(rank, f"passage-{rank}") for rank in range(1, max(len(case.reply.passages) + 1, free))]
    return Ranking(order, {f"gold-{number}": 1 for number in range(len(ranks))}, 1)


@metric(
    title="Gold passages found",
    meaning="share of gold passages of which the first k hold at least half",
    needs=("gold text", "passages"),
    at=("k",),
)
def recall(case: Case, options: Options, k: int) -> float | None:
    if options.parity == "seed":
        matched, golds = match_seed(case, k)
        return len({gold for golds_there in matched for gold in golds_there}) / golds if golds else None
    if case.grades:
        ranking = ranking_of(case)
        return sum(rank <= k for rank in ranking.gold_ranks) / ranking.golds if ranking and ranking.golds else None
    ranks = find_gold_ranks(case)
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks) if ranks else None


@metric(
    title="Ranking quality (nDCG)",
    meaning="gold passages found, those ranked higher counting more",
    needs=("gold text", "passages"),
    at=(5, "k"),
)
def ndcg(case: Case, options: Options, k: int) -> float | None:
    if options.parity == "seed":
        return score_seed_ndcg(case, k)
    ranking = ranking_of(case)
    ideal = _sum_gains(sorted(ranking.grades.values(), reverse=True)[:k]) if ranking else 0.0
    return (
        _sum_gains([ranking.grades.get(item, 0) for item in ranking.order[:k]]) / ideal if ranking and ideal else None
    )


def _sum_gains(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


@metric(
    title="First gold's rank (MRR)",
    meaning="one over the rank of the first gold",
    needs=("gold text", "passages"),
    at=(10,),
)
def mrr(case: Case, k: int) -> float | None:
    ranking = ranking_of(case)
    if ranking is None or not ranking.golds:
        return None
    first = next(iter(ranking.gold_ranks), k + 1)
    return 1 / first if first <= k else 0.0


@metric(
    title="Average precision (MAP)",
    meaning="precision at the rank of each gold, averaged over all golds",
    needs=("gold text", "passages"),
)
def map_(case: Case) -> float | None:
    ranking = ranking_of(case)
    if ranking is None or not ranking.golds:
        return None
    return sum(number / rank for number, rank in enumerate(ranking.gold_ranks, 1)) / ranking.golds


def _register_stars(stars: int) -> None:
    @metric(
        name=f"precision_{stars}star",
        title=f"Files with {stars} stars or more",
        meaning="share of the first five files",
        needs=("grades", "passages"),
        at=(5,),
    )
    def precision(case: Case, k: int) -> float:
        ranking = ranking_of(case)
        return sum(case.grades.get(file, 0) + 1 >= stars for file in (ranking.order[:k] if ranking else ())) / k


for _stars in (3, 4, 5):  # as in ACORD's paper
    _register_stars(_stars)


# ---------------------------------------------------------------- the first passage


@metric(
    title="Top passage is the gold",
    meaning="the first passage's words equal a gold passage's",
    needs=("gold text", "passages"),
    short=False,
)
def exact_match(case: Case, options: Options) -> float | None:
    golds = list_gold_texts(case)
    pairs = [(top.text, gold) for top in case.reply.passages[:1] for gold in golds]
    if options.parity == "seed":
        hit = any(text.strip().lower() == gold.strip().lower() for text, gold in pairs)
    else:
        hit = any(compare_words(text, gold) for text, gold in pairs)
    return float(hit) if golds else None


@metric(
    title="Top passage overlap (F1)",
    meaning="words that the first passage shares with gold",
    needs=("gold text", "passages"),
    short=False,
)
def span_f1(case: Case, options: Options) -> float | None:
    cut = split_seed_words if options.parity == "seed" else split_words
    golds, tops = list_gold_texts(case), case.reply.passages[:1]
    return max((set_f1(top.text, gold, cut) for top in tops for gold in golds), default=0.0) if golds else None


# ---------------------------------------------------------------- chunk economy

NEAR_CHARS = 500
"""A passage within this many characters of gold, the size of a chunk, is its neighbour; it is neither essential, which
overlaps gold, nor unnecessary."""


def _register_economy(name: str, title: str, is_kind: Callable[[float], bool], *, better: bool) -> None:
    @metric(
        name=f"chunk_{name}",
        title=f"Passages {title}",
        meaning="share of the first k passages",
        higher_is_better=better,
        needs=("gold spans", "passages"),
        at=("k",),
        short=False,
    )
    def share(case: Case, k: int) -> float | None:
        known = [passage for passage in case.reply.passages[:k] if passage.tells]
        return sum(is_kind(_measure_gap(passage, case)) for passage in known) / len(known) if known else None


def _measure_gap(passage: Passage, case: Case) -> float:
    """Return the characters between a passage and the nearest gold in its file; negative where they overlap."""
    golds = [gold for gold in case.gold if gold.filename == passage.source and gold.filename is not None]
    spans = [span for gold in golds for place in gold.places for span in place]
    gaps = (max(own.start, span.start) - min(own.end, span.end) for own in passage.spans for span in spans)
    return min(gaps, default=math.inf)


_register_economy("essential", "that hold gold", lambda gap: gap < 0, better=True)
_register_economy("neither", "far from gold", lambda gap: gap > NEAR_CHARS, better=False)


# ---------------------------------------------------------------- versions of laws


@metric(
    title="Right law and paragraph first",
    meaning="questions on laws whose first passage is of the right paragraph, in whatever version",
    needs=("gold spans", "passages"),
)
def provision_first(case: Case) -> float | None:
    if "paragraph" not in case.labels:
        return None
    return float(bool(case.reply.passages) and has_right_version(case.reply.passages[0], case) is not None)


@metric(
    title="Right version",
    meaning="of those, the share in the version that was in force on the question's day",
    needs=("gold spans", "passages"),
)
def version_accuracy(case: Case) -> float | None:
    if "paragraph" not in case.labels or not case.reply.passages:
        return None
    right = has_right_version(case.reply.passages[0], case)
    return None if right is None else float(right)


_SPAN = re.compile(r"#(\d+)-(\d+)(?: |$)")


def find_near_misses(case: Case) -> Iterator[tuple[str, Span]]:
    """Yield the file and the span of the provision in each version that is not in force on the question's date.

    The label `other_versions` has these spans.
    """
    parts = _SPAN.split(str(case.labels.get("other_versions") or ""))
    for name, start, end in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        yield name.lstrip(), Span(int(start), int(end))


def has_right_version(passage: Passage, case: Case) -> bool | None:
    """Return True if a passage overlaps gold, False if it overlaps the same provision in another version, else None."""
    spans = passage.spans
    if any(passage.source == gold.filename and touches(span, gold) for gold in case.gold for span in spans):
        return True
    near = [span for name, span in find_near_misses(case) if name == passage.source]
    return False if any(own.start < span.end and span.start < own.end for own in spans for span in near) else None
