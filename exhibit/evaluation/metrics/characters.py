"""Character precision and recall: how much of the retrieved text is gold, and how much gold is retrieved.

The first k passages are united, so that a character counts once. If a gold passage occurs at several
places, only its best place counts: the place with the largest retrieved share or, if several places have
the same share, the first of them.

    recall@k    = sum over golds of length x best share / sum of lengths     (length: of the longest place)
    precision@k = retrieved characters inside those best places / retrieved characters

If each gold has one place, recall is overlap / gold characters. Precision and recall cannot exceed 1, and
recall never falls as k grows. Only located gold counts, and a gold passage that is listed several times for
a question counts once.

The fragments of a passage that occur in its document count; its other text counts only with the option
`count_added`. A passage from a file that is not in the corpus counts with its whole text and overlaps
nothing. A passage whose position is unknown is ignored; if all of the first k passages are unknown, both
figures are None. If nothing was retrieved, both figures are 0.

Parity "legalbenchrag" is the published definition: passages are not united, the overlaps of each retrieved
snippet with each gold snippet are added up, and only the first place of a gold counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from exhibit.evaluation.metrics import KS, Case, Cutoff, Options, Values
from exhibit.evaluation.ranking import golds_of
from exhibit.evidence import Span, subtract_spans

NAMES = (*(f"char_precision@{k}" for k in KS), *(f"char_recall@{k}" for k in KS))
HEADLINE = "char_recall@8"


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return the metrics `char_precision@k` and `char_recall@k` for each k, with one value per case."""
    depths = (cutoff,) if cutoff else options.ks
    score = _score_as_published if options.parity == "legalbenchrag" else _score_union
    rows = [score(case, depths, options.count_added) for case in cases]
    return {
        f"{name}@{k}": [row[column][side] for row in rows]
        for side, name in enumerate(("char_precision", "char_recall"))
        for column, k in enumerate(depths)
    }


class _Piece(NamedTuple):
    """Retrieved characters, with the rank (from 0) of their passage."""

    span: Span
    rank: int


Pieces = dict[str | None, list[_Piece]]
"""The pieces by file; None = text of no document, which counts as retrieved and overlaps nothing."""
Scores = list[tuple[float | None, float | None]]
"""Precision and recall at each cutoff."""


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
    return [(None, None) if unknown and first >= k else row for k, row in zip(ks, scores, strict=True)]


def _unite(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Return the spans without the characters that an earlier span already covers."""
    united: list[_Piece] = []
    for span, rank in pieces:
        left = [span]
        for other, _ in united:
            if other.start < span.end and span.start < other.end:
                left = subtract_spans(left, [other])
        united += [_Piece(part, rank) for part in left]
    return united


def _list_golds(case: Case) -> Iterator[tuple[str, list[list[Span]]]]:
    """Yield, for each located gold passage, its file name and the list of its locations in the file.

    A location is a list of spans. A passage that occurs several times in the file has several locations.
    """
    for gold in golds_of(case):
        places = [spans for place in gold.places if (spans := [one for one in place if one.start < one.end])]
        if places and gold.filename is not None:
            yield gold.filename, places


def _count_held(spans: Iterable[Span], pieces: Iterable[_Piece], ks: Sequence[int]) -> list[int]:
    """Return, for each k, how many characters of the spans the first k passages contain."""
    brought = [0] * (ks[-1] + 1)
    for span in spans:
        for (start, end), rank in pieces:
            if start < span.end and span.start < end:
                brought[rank + 1] += min(end, span.end) - max(start, span.start)
    total = list(accumulate(brought))
    return [total[k] for k in ks]


def _count_characters(pieces: Pieces, ks: Sequence[int]) -> list[int]:
    """Return, at each k, how many characters the first k passages have."""
    every = [piece for some in pieces.values() for piece in some if piece.span.start < piece.span.end]
    return [sum(span.end - span.start for span, rank in every if rank < k) for k in ks]


def _measure_length(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


def _score_as_published(case: Case, ks: Sequence[int], count_added: bool) -> Scores:
    pieces = _collect_pieces(case, ks[-1], count_added)
    golds = [(gold.filename or "", gold.places[0]) for gold in case.gold if gold.located]
    held = [_count_held(place, pieces.get(file, ()), ks) for file, place in golds]
    gold = sum(_measure_length(place) for _, place in golds)
    shared = [sum(row[column] for row in held) for column in range(len(ks))]
    lengths = _count_characters(pieces, ks)
    return _hide_unknown(
        case,
        ks,
        [(_compute_share(one, of), _compute_share(one, gold)) for one, of in zip(shared, lengths, strict=True)],
    )


def _score_union(case: Case, ks: Sequence[int], count_added: bool) -> Scores:
    retrieved = _collect_pieces(case, ks[-1], count_added)
    pieces = {file: _unite(some) if file else some for file, some in retrieved.items()}
    golds = [
        (file, places, [_count_held(one, pieces.get(file, ()), ks) for one in places])
        for file, places in _list_golds(case)
    ]
    longest = [max(map(_measure_length, places)) for _, places, _ in golds]
    scores = []
    for column, retrieved_characters in enumerate(_count_characters(pieces, ks)):
        best: dict[str, list[_Piece]] = {}
        credit = 0.0
        for (file, places, held), length in zip(golds, longest, strict=True):
            shares = [row[column] / _measure_length(place) for row, place in zip(held, places, strict=True)]
            chosen = places[shares.index(max(shares))]
            credit += max(
                row[column] * length / _measure_length(place) for row, place in zip(held, places, strict=True)
            )
            # overlapping golds share characters, which precision must count once
            best.setdefault(file, []).extend(_Piece(span, 0) for span in chosen)
        inside = sum(
            _count_held([one.span for one in _unite(some)], pieces.get(file, ()), ks)[column]
            for file, some in best.items()
        )
        scores.append((_compute_share(inside, retrieved_characters), _compute_share(credit, sum(longest))))
    return _hide_unknown(case, ks, scores)


def _compute_share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
