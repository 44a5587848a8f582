"""Turn a reply into a ranking of graded items, from which nDCG, MRR and average precision are computed.

If a case has grades (`Case.grades`), the items are files. A file's rank is that of its first passage,
counting each file once. If irrelevant files have grades too (grade 0, as in ACORD), ungraded files are left
out of the ranking, because many of them may be relevant.

Otherwise the items are gold passages, each at the rank of the retrieved passage that finds it. If a
retrieved passage finds several gold passages, the first gold passage gets this rank, and the other gold
passages get the next free ranks, so that nDCG does not exceed 1. Gold that names a file but quotes no text
is not an item; only the document metrics count it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import NamedTuple
from urllib.parse import quote

from exhibit.evaluation.answer_words import without_citations, without_named
from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics import (
    K,
    Options,
    describe_metric,
    is_wrong_file,
    limit_gold,
    list_gold_files,
    list_gold_texts,
)
from exhibit.evidence import Span, fold, subtract_spans
from exhibit.law.figures import stands_in
from exhibit.schemas.layout import quote_parts

GOLD_GRADE = 3
"""A file with at least this grade is gold; grades are 0 to 4, for one to five stars."""


@dataclass(frozen=True)
class Ranking:
    """A list of item names, best first, with the grades of the judged items."""

    order: Sequence[str]
    grades: Mapping[str, int]
    least: int
    """The lowest grade of a gold item."""

    def find_gold_ranks(self) -> list[int]:
        """Return the ranks, from 1, of the retrieved gold items."""
        return [rank for rank, unit in enumerate(self.order, 1) if self.grades.get(unit, 0) >= self.least]

    def count_golds(self) -> int:
        """Return the number of gold items."""
        return sum(grade >= self.least for grade in self.grades.values())

    def compute_ndcg(self, k: int) -> float | None:
        """Return nDCG at k: the discounted gain divided by the gain of the best possible order.

        None if no item has a gain.
        """
        ideal = _compute_gain(sorted(self.grades.values(), reverse=True)[:k])
        return _compute_gain([self.grades.get(unit, 0) for unit in self.order[:k]]) / ideal if ideal else None


def _compute_gain(grades: Sequence[int]) -> float:
    return sum(grade / log2(rank + 1) for rank, grade in enumerate(grades, 1))


def ranking_of(case: Case) -> Ranking | None:
    """Return the ranked items of a case with their grades: files if the case has grades, else gold passages.

    None if the case has neither grades nor a gold passage with a position or a text to compare.
    """
    if case.grades:
        return Ranking(_keep_judged(rank_files(case), case.grades), case.grades, GOLD_GRADE)
    ranks = find_gold_ranks(case)
    if not ranks:
        return None
    return Ranking(
        _arrange_golds(ranks, len(case.reply.passages)), dict.fromkeys(map(name_gold, range(len(ranks))), 1), 1
    )


def rank_files(case: Case) -> list[str]:
    """Return the files of a reply, each once, in the order of their first passage.

    A passage without a known file counts as a file of its own.
    """
    names = [passage.source or f"passage-{rank}" for rank, passage in enumerate(case.reply.passages, 1)]
    return list(dict.fromkeys(names))


def _keep_judged(files: Sequence[str], grades: Mapping[str, int]) -> Sequence[str]:
    """Return the files that count in the ranking.

    If some file has grade 0, the source also grades files that are not relevant. A file without a grade was
    then not judged, and is left out. Otherwise all files are returned.
    """
    return [file for file in files if file in grades] if 0 in grades.values() else files


def name_gold(number: int) -> str:
    """Return the name of gold passage `number` in a ranking: `gold-0`."""
    return f"gold-{number}"


def _arrange_golds(ranks: Sequence[int | None], passages: int) -> list[str]:
    """Return the names of the items of a ranking, in order, such as `gold-0`, `passage-2` and `gold-1`.

    `ranks` has the rank at which each gold passage is found, or None. A found gold passage takes its rank or,
    if another gold passage has that rank, the next free rank. Every other rank has the item `passage-RANK`.
    """
    places: dict[int, str] = {}
    free = 1
    for rank, number in sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None):
        free = max(rank, free)
        places[free] = name_gold(number)
        free += 1
    return [places.get(rank, f"passage-{rank}") for rank in range(1, max(passages + 1, free))]


_ANCHOR = 16
"""A cut passage is recognised by at least this many characters at its end; fewer would match by accident."""

Held = tuple[int, Span]
"""A rank, and the characters that the passage at this rank has."""


def golds_of(case: Case) -> list[GoldPassage]:
    """Return the golds that have a position or a text to compare; the same text in the same file counts once."""
    distinct: dict[tuple[object, ...], GoldPassage] = {}
    for gold in case.gold:
        if not gold.located and not _fold_cached(gold.text or ""):
            continue  # nothing to compare is left of a gap or a mark
        distinct.setdefault(_make_identity(gold), gold)
    return list(distinct.values())


def _make_identity(gold: GoldPassage) -> tuple[object, ...]:
    return gold.filename, (_fold_cached(gold.text) if gold.text else "") or gold.places


def find_gold_ranks(case: Case) -> list[int | None]:
    """Return the rank, from 1, at which each gold passage of a case is found; None for one that is not found.

    The ranks are in the order of the gold passages in `golds_of(case)`.
    """
    return [rank_found(gold, case.reply.passages) for gold in golds_of(case)]


def find_first_gold(case: Case, numbers: Sequence[int]) -> int | None:
    """Return the lowest passage number at which a gold passage is found; None if no gold passage is found.

    The passages with these `numbers` are read in order. A gold passage is found as soon as the passages read so
    far contain at least half of its characters, as in recall.
    """
    passages = [case.reply.passages[number - 1] for number in numbers]
    ranks = (rank_found(gold, passages) for gold in golds_of(case) if gold.worded)
    return min((numbers[rank - 1] for rank in ranks if rank is not None), default=None)


def rank_found(gold: GoldPassage, passages: Sequence[Passage]) -> int | None:
    """Return the lowest k for which the first k passages contain at least half of a gold passage's characters.

    Passages with a known position are compared by position, and other passages by text. None if there is no
    such k. Recall, verdicts and the report all use this rule.
    """
    placed: list[Held] = []
    worded: list[tuple[int, str]] = []
    for rank, passage in enumerate(passages, 1):
        if gold.filename is not None and not _may_be_from(passage, gold.filename):
            continue
        if gold.places and passage.span is not None and passage.source is not None:
            placed += [(rank, span) for span in passage.spans]
        else:
            worded.append((rank, passage.text))
    ranks = [_find_half(place, placed) for place in gold.places] if placed else []
    if worded and gold.text:
        line, held = _match_words(gold.text, worded)
        ranks.append(_find_half(line, held))
    return min((rank for rank in ranks if rank is not None), default=None)


def _may_be_from(passage: Passage, filename: str) -> bool:
    if passage.span is not None and passage.source is not None:
        return passage.source == filename
    return filename in passage.also_in if passage.also_in else passage.filename in (None, filename)


def _find_half(place: Sequence[Span], held: Iterable[Held]) -> int | None:
    """Return the first rank at which the passages up to this rank cover half of a gold passage.

    `place` has the spans of one occurrence of the gold passage. `held` has the rank and the span of each
    retrieved passage. None if there is no such rank.
    """
    left = [span for span in place if span.start < span.end]
    whole = missing = sum(span.end - span.start for span in left)
    if not whole:
        return None
    for rank, span in held:
        left = subtract_spans(left, [span])
        missing = sum(gap.end - gap.start for gap in left)
        if 2 * missing <= whole:
            return rank
    return None


# ---------------------------------------------------------------- by words


def _match_words(gold: str, passages: Sequence[tuple[int, str]]) -> tuple[list[Span], list[Held]]:
    """Find the parts of a gold quote in passages; `passages` has the rank and the text of each passage.

    Return two lists. The first has the span of each part of the quote; parts are separated by omission marks.
    The second has `(rank, span)` for each text that a part shares with a passage. Offsets count in the joined
    parts after folding, which removes spaces and typographic differences.
    """
    line: list[Span] = []
    held: list[Held] = []
    start = 0
    texts = [(rank, _fold_cached(text)) for rank, text in passages]
    for part in filter(None, map(_fold_cached, quote_parts(gold))):
        line.append(Span(start, start + len(part)))
        held += [
            (rank, Span(start + s, start + e)) for rank, text in texts if text for s, e in _find_shared(part, text)
        ]
        start += len(part)
    return line, sorted(held, key=lambda pair: pair[0])


def _find_shared(part: str, text: str) -> Iterator[Span]:
    """Yield the spans of a gold part that a text contains.

    The text may contain the whole part, lie inside the part, end with the start of the part, or begin with the
    end of the part.
    """
    if part in text:
        yield Span(0, len(part))
        return
    place = part.find(text)
    if place >= 0:
        yield Span(place, place + len(text))
        return
    anchor = min(_ANCHOR, (len(part) + 1) // 2)
    place = text.find(part[:anchor])
    while place >= 0:
        if part.startswith(text[place:]):
            yield Span(0, len(text) - place)
            break
        place = text.find(part[:anchor], place + 1)
    place = text.rfind(part[-anchor:])
    while place >= 0:
        if part.endswith(text[: place + anchor]):
            yield Span(len(part) - place - anchor, len(part))
            break
        place = text.rfind(part[-anchor:], 0, place + anchor - 1)


@lru_cache(maxsize=16384)
def _fold_cached(text: str) -> str:
    return fold(text, loose=True)


# ---------------------------------------------------------------- the seed project's definition


def match_seed(case: Case, k: int) -> tuple[list[list[int]], int]:
    """Return, for each of the first k passages, the indexes of the gold passages that match it.

    The second value is the number of gold passages. Two texts match if one contains the other, ignoring case.
    """
    golds = list_gold_texts(case)
    passages = [passage.text for passage in case.reply.passages[:k]]
    return [[i for i, gold in enumerate(golds) if matches_seed(passage, gold)] for passage in passages], len(golds)


def matches_seed(passage: str, gold: str) -> bool:
    """Return whether one of two texts contains the other, ignoring case.

    With `--set parity=seed`, which reproduces the scores of another project, a passage finds gold by this rule.
    A single word is enough for a match, and an empty text matches every text.
    """
    one, other = passage.strip().lower(), gold.strip().lower()
    return one in other or other in one


RUN = "run.trec"
QRELS = "qrels.trec"


class TrecLines(NamedTuple):
    """The lines for one question in TREC's two files: the run file and the qrels file."""

    run: str
    qrels: str


def format_trec(case: Case, *, tag: str) -> TrecLines:
    """Return a question's lines for TREC's run and qrels files, with percent-encoded names.

    Both are empty if the question failed or has no gold that can be ranked.
    """
    known = limit_gold(case, describe_metric("ndcg").needs, Options())
    ranking = ranking_of(known) if known else None
    if ranking is None:
        return TrecLines("", "")
    query, name = _name(str(case.id)), _name(tag)
    units = len(ranking.order)
    # derived from the rank, because the system's own scores may have ties
    run = (f"{query} Q0 {_name(u)} {rank} {units - rank + 1} {name}\n" for rank, u in enumerate(ranking.order, 1))
    judged = (f"{query} 0 {_name(unit)} {grade}\n" for unit, grade in ranking.grades.items())
    return TrecLines("".join(run), "".join(judged))


@lru_cache(maxsize=1 << 12)
def _name(text: str) -> str:
    """Return a percent-encoded name, which has no spaces: spaces separate the columns of TREC's files."""
    return quote(text, safe="")


# ---------------------------------------------------------------- passages with the answer, or from other files


def says_expected(case: Case, text: str) -> bool | None:
    """Return whether a text states the expected answer of a case; None if that cannot be decided.

    Citations in the expected answer are ignored.
    """
    return stands_in(without_named(without_citations(case.truth)), text)


def find_answer_passage(case: Case) -> int | None:
    """Return the number (from 1) of the first context passage that states the expected answer; None if none does."""
    numbers = case.reply.list_numbers_read(K)
    return next((n for n in numbers if says_expected(case, case.reply.passages[n - 1].text)), None)


class Mismatch(NamedTuple):
    """The number of passages from a file without gold (`wrong`), and the number of all passages."""

    wrong: int
    passages: int


def count_mismatches(cases: Sequence[Case], options: Options) -> dict[str, list[Mismatch | None]]:
    """Return, for each metric `drm@k`, the counts of mismatched passages for each question.

    DRM is document-level retrieval mismatch, the share of the first k passages that are from a file without
    gold.
    """
    judged = [limit_gold(case, describe_metric("drm").needs, options) for case in cases]
    wrong = [
        [is_wrong_file(one, list_gold_files(case)) for one in case.reply.passages] if case else [] for case in judged
    ]
    return {f"drm@{k}": [_count_mismatch(row[:k]) for row in wrong] for k in options.ks}


def total_mismatches(cases: Sequence[Case], options: Options) -> dict[str, Mismatch]:
    """Return, for each metric `drm@k`, the number of passages from files without gold, and of all passages.

    Both numbers are over the first k passages of every question; passages from an unknown file are ignored.
    """
    return {
        name: Mismatch(sum(m.wrong for m in column if m), sum(m.passages for m in column if m))
        for name, column in count_mismatches(cases, options).items()
    }


def pool_mismatches(counts: Mapping[str, Mismatch]) -> dict[str, float | None]:
    """Return, for each `drm@k`, the share of the first k passages that come from a file without gold.

    The passages of all questions are counted together. The share is None if there are no passages.
    """
    return {name: count.wrong / count.passages if count.passages else None for name, count in counts.items()}


def _count_mismatch(wrong: Sequence[bool | None]) -> Mismatch | None:
    known = [one for one in wrong if one is not None]
    return Mismatch(sum(known), len(known)) if known else None
