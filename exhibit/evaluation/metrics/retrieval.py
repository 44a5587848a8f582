"""Retrieval: how much gold the passages contain, at which ranks, and from which documents the passages come.

Rankings have graded items. If a case has grades (`Case.grades`, as in ACORD), the items are files, each at the rank
of its first passage. Without grades the items are gold passages, each at the rank of the retrieved passage that finds
it (`placement.rank_found`). Gold that names a file but quotes no text is counted by the document metrics only.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from exhibit.evaluation import metrics
from exhibit.evaluation.metrics import Case, Options, Passage, cache_by_case, list_gold_files, list_gold_texts
from exhibit.evaluation.placement import find_gold_ranks, golds_of, touches
from exhibit.evidence import Span
from exhibit.evidence.document import unite_spans
from exhibit.law.language import list_word_runs

metric = partial(metrics.metric, group="Retrieval")
on_spans = partial(metric, needs=("gold spans", "passages"))
on_text = partial(metric, needs=("gold text", "passages"))
on_files = partial(metric, needs=("gold files", "passage files"), at=("ks",))


@on_spans(
    "Retrieved text that is gold", "share of the first k passages' characters that are gold", at=("ks",), depths=(1, 8)
)
def char_precision(case: Case, options: Options, k: int) -> float | None:
    return _score_characters(case, options, k)[0]


@on_spans("Gold text retrieved", "share of the gold characters among the first k passages", at=("ks",), depths=(8, 64))
def char_recall(case: Case, options: Options, k: int) -> float | None:
    return _score_characters(case, options, k)[1]


def _score_characters(case: Case, options: Options, k: int) -> tuple[float | None, float | None]:
    """Return character precision and recall at k; None if no content of the first k passages is known."""
    passages = case.reply.passages[:k]
    if passages and not any(passage.has_content for passage in passages):
        return None, None
    score = _score_as_published if options.parity == "legalbenchrag" else _score_union
    return score(case, len(passages))


@cache_by_case
def _score_union(case: Case, k: int) -> tuple[float, float]:
    """Return character precision and recall of the merged passages; of a gold's locations, the best found counts."""
    passages, unplaced = _collect_spans(case, k)
    retrieved = {file: unite_spans(spans) for file, spans in passages.items()}
    best = defaultdict[str, list[Span]](list)
    credit, total = 0.0, 0
    for gold in golds_of(case):
        places = [place for place in gold.places if _measure_length(place)]
        if places and gold.filename is not None:
            spans, longest = retrieved.get(gold.filename, ()), max(map(_measure_length, places))
            shares = [_count_overlap(place, spans) / _measure_length(place) for place in places]
            credit += max(_count_overlap(place, spans) * longest / _measure_length(place) for place in places)
            total += longest
            best[gold.filename] += places[shares.index(max(shares))]
    # overlapping gold passages share characters, which precision must count once
    inside = sum(_count_overlap(unite_spans(spans), retrieved.get(file, ())) for file, spans in best.items())
    characters = unplaced + sum(map(_measure_length, retrieved.values()))
    return inside / (characters or 1), credit / (total or 1)


@cache_by_case
def _score_as_published(case: Case, k: int) -> tuple[float, float]:
    """Return precision and recall as LegalBench-RAG publishes them: the overlaps of all pairs of spans are added up."""
    passages, unplaced = _collect_spans(case, k)
    golds = [(gold.filename or "", gold.places[0]) for gold in case.gold if gold.located]
    shared = sum(_count_overlap(place, passages.get(file, ())) for file, place in golds)
    characters = unplaced + sum(map(_measure_length, passages.values()))
    return shared / (characters or 1), shared / (sum(_measure_length(place) for _, place in golds) or 1)


def _collect_spans(case: Case, k: int) -> tuple[dict[str, list[Span]], int]:
    """Return the spans of the first k passages by file, and the total length of the texts that no document contains."""
    spans, unplaced = defaultdict[str, list[Span]](list), set[str]()
    for passage in case.reply.passages[:k]:
        if passage.span is not None and passage.source is not None:
            spans[passage.source] += passage.spans
        elif passage.has_content:  # a repeated passage counts once
            unplaced.add(passage.text)
    return spans, sum(map(len, unplaced))


def _count_overlap(spans: Iterable[Span], others: Iterable[Span]) -> int:
    pairs = ((*span, *other) for span in spans for other in others)
    return sum(min(end, last) - max(start, first) for start, end, first, last in pairs if start < last and first < end)


def _measure_length(spans: Iterable[Span]) -> int:
    return sum(span.end - span.start for span in spans)


@on_files("Right document found", "questions with a passage from a file with gold among the first k", depths=(1,))
def document_hit(case: Case, k: int) -> float | None:
    return _score_hit([_is_wrong_file(passage, list_gold_files(case)) for passage in case.reply.passages[:k]], False)


@on_files(
    "Passages from a wrong document", "share of the first k passages that are from a file without gold",
    higher_is_better=False, depths=(1, 8),
)  # fmt: skip
def drm(case: Case, k: int) -> float | None:
    wrong, known = count_wrong_files(case, k)
    return wrong / known if known else None


def count_wrong_files(case: Case, k: int) -> tuple[int, int]:
    """Return how many of the first k passages come from a file without gold, and how many have a known file."""
    wrong = [_is_wrong_file(passage, list_gold_files(case)) for passage in case.reply.passages[:k]]
    return wrong.count(True), len(wrong) - wrong.count(None)


def _is_wrong_file(passage: Passage, files: Collection[str]) -> bool | None:
    """Return whether a passage is from a file other than `files`; None if its file is unknown."""
    if passage.filename is not None:
        return passage.filename not in files
    # a passage whose name and text the bundle lacks is from a wrong file
    return True if passage.told_filename and passage.text.strip() and not passage.also_in else None


@on_files(
    "Right page found", "questions with a passage from a page with gold among the first k", depths=(8,), short=False
)
def page_hit(case: Case, k: int) -> float | None:
    pages = {(gold.filename, page) for gold in case.gold for page in gold.pages}
    return _score_hit([_is_on_page(passage, pages) for passage in case.reply.passages[:k]], True) if pages else None


def _is_on_page(passage: Passage, pages: set[tuple[str | None, int]]) -> bool | None:
    """Return whether a passage is on one of the pages; the page that the system reports decides only without others."""
    located = passage.page if passage.span else None
    known = passage.pages or (located or (passage.told_page if passage.filename else None),)
    if not any(known):
        return False if _is_wrong_file(passage, {name for name, _ in pages if name}) else None
    return any((passage.source, page) in pages for page in known)


def _score_hit(known: Sequence[bool | None], wanted: bool) -> float | None:
    """Return 1 if any passage meets the condition, else None if it is unknown for any passage, else 0."""
    return 1.0 if wanted in known else None if None in known else 0.0


GOLD_GRADE = 3  # a file with at least this grade is gold; grades are 0 to 4, for one to five stars


class Ranking(NamedTuple):
    """Item names, best first, with the grades of the judged items; gold has at least the grade `least`."""

    order: Sequence[str]
    grades: Mapping[str, int]
    least: int

    def list_gold_ranks(self) -> list[int | None]:
        """Return the rank of each gold item; None for an item that was not retrieved."""
        ranks = {item: rank for rank, item in enumerate(self.order, 1)}
        return [ranks.get(item) for item, grade in self.grades.items() if grade >= self.least]


@cache_by_case
def ranking_of(case: Case) -> Ranking | None:
    """Return the ranked items of a case with their grades; None if it has neither grades nor gold to compare."""
    if case.grades:  # if irrelevant files are graded too (0), ungraded files are left out: many of them may be relevant
        files = [passage.source or f"passage-{rank}" for rank, passage in enumerate(case.reply.passages, 1)]
        judged = [file for file in dict.fromkeys(files) if file in case.grades or 0 not in case.grades.values()]
        return Ranking(judged, case.grades, GOLD_GRADE)
    ranks = find_gold_ranks(case)
    if not ranks:
        return None
    items: dict[int, str] = {}
    free = 1  # if a passage finds several golds, the others get the next free ranks, so that nDCG does not exceed 1
    for rank, number in sorted((rank, number) for number, rank in enumerate(ranks) if rank is not None):
        items[max(rank, free)] = f"gold-{number}"
        free = max(rank, free) + 1
    order = [items.get(rank, f"passage-{rank}") for rank in range(1, max(len(case.reply.passages) + 1, free))]
    return Ranking(order, {f"gold-{number}": 1 for number in range(len(ranks))}, 1)


@on_text("Gold passages found", "share of gold passages of which the first k passages contain at least half", at=("k",))
def recall(case: Case, options: Options, k: int) -> float | None:
    if options.parity == "seed":
        matched, golds = match_seed(case, k)
        return len({gold for golds_there in matched for gold in golds_there}) / golds if golds else None
    ranking = ranking_of(case) if case.grades else None
    ranks = ranking.list_gold_ranks() if ranking else find_gold_ranks(case)
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks) if ranks else None


@on_text("Ranking quality (nDCG)", "gold passages found; a passage counts more the earlier it is ranked", at=(5, "k"))
def ndcg(case: Case, options: Options, k: int) -> float | None:
    if options.parity == "seed":  # every passage that matches any gold adds gain, so that the value can exceed 1
        matched, golds = match_seed(case, k)
        return _sum_gains([int(bool(there)) for there in matched]) / _sum_gains([1] * min(golds, k)) if golds else None
    ranking = ranking_of(case)
    ideal = _sum_gains(sorted(ranking.grades.values(), reverse=True)[:k]) if ranking else 0.0
    if ranking is None or not ideal:
        return None
    return _sum_gains([ranking.grades.get(item, 0) for item in ranking.order[:k]]) / ideal


def _sum_gains(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


@on_text("First gold's rank (MRR)", "the reciprocal rank of the first gold passage", at=(10,))
def mrr(case: Case, k: int) -> float | None:
    ranking = ranking_of(case)
    ranks = ranking.list_gold_ranks() if ranking else []
    return max([1 / rank for rank in ranks if rank is not None and rank <= k] or [0.0]) if ranks else None


_APART = re.compile(
    r"[;@#$%&?!()\[\]{}<>\"“”‘’«»„`*]|--+|\.{3}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?=\s|$)|n't\b|\.(?=\s|$)"
)  # the punctuation that NLTK's word tokenizer separates from a word; a full stop counts as the end of a sentence


def split_seed_words(text: str) -> list[str]:
    return [word for word in _APART.sub(" ", text.lower()).split() if word.isalnum()]


def match_seed(case: Case, k: int) -> tuple[list[list[int]], int]:
    """Return the indexes of the golds that contain each of the first k passages or vice versa, and their number."""
    golds = [text.strip().lower() for text in list_gold_texts(case)]
    passages = [passage.text.strip().lower() for passage in case.reply.passages[:k]]
    return [[i for i, gold in enumerate(golds) if text in gold or gold in text] for text in passages], len(golds)


def split_words(text: str) -> list[str]:
    return list_word_runs(text.lower())


@on_text("Top passage is the gold", "questions whose first passage has the same words as a gold passage", short=False)
def exact_match(case: Case, options: Options) -> float | None:
    def compare_texts(text: str, gold: str) -> float:
        seed = options.parity == "seed"
        first, second = (each.strip().lower() if seed else split_words(each) for each in (text, gold))
        return float(bool(first) and first == second)

    return _score_top(case, compare_texts)


@on_text("Top passage overlap (F1)", "overlap between the words of the first passage and of the gold", short=False)
def span_f1(case: Case, options: Options) -> float | None:
    split = split_seed_words if options.parity == "seed" else split_words

    def compare_sets(text: str, gold: str) -> float:
        words, other = set(split(text)), set(split(gold))
        return 2 * len(words & other) / ((len(words) + len(other)) or 1)

    return _score_top(case, compare_sets)


def _score_top(case: Case, score: Callable[[str, str], float]) -> float | None:
    golds, tops = list_gold_texts(case), case.reply.passages[:1]
    return max((score(top.text, gold) for top in tops for gold in golds), default=0.0) if golds else None


NEAR_CHARS = 500  # a passage at a larger distance from gold, the size of a chunk, is not even its neighbour
economy = partial(on_spans, at=("k",))


@economy("Passages with gold", "share of the first k passages that overlap gold", short=False)
def chunk_essential(case: Case, k: int) -> float | None:
    gaps = _measure_gaps(case, k)
    return sum(gap < 0 for gap in gaps) / len(gaps) if gaps else None


@economy("Passages far from gold", "share of the first k passages far from gold", higher_is_better=False, short=False)
def chunk_neither(case: Case, k: int) -> float | None:
    gaps = _measure_gaps(case, k)
    return sum(gap > NEAR_CHARS for gap in gaps) / len(gaps) if gaps else None


def _measure_gaps(case: Case, k: int) -> list[float]:
    """Return the characters between each passage and the nearest gold in its file: negative if they overlap."""
    gaps = []
    for passage in (passage for passage in case.reply.passages[:k] if passage.has_content):
        golds = [gold for gold in case.gold if gold.filename == passage.source and gold.filename is not None]
        pairs = product(passage.spans, (span for gold in golds for place in gold.places for span in place))
        near = (max(piece.start, span.start) - min(piece.end, span.end) for piece, span in pairs)
        gaps.append(min(near, default=math.inf))
    return gaps


@on_spans(
    "Right law and paragraph first", "questions whose first passage is from the right law and paragraph, in any version"
)
def provision_first(case: Case) -> float | None:
    first = [has_right_version(passage, case) for passage in case.reply.passages[:1]]
    return float(first not in ([], [None])) if "paragraph" in case.labels else None


@on_spans("Right version", "share of first passages from the right paragraph that have its right version")
def version_accuracy(case: Case) -> float | None:
    first = [has_right_version(passage, case) for passage in case.reply.passages[:1]]
    return next((float(right) for right in first if right is not None and "paragraph" in case.labels), None)


_VERSION_SPAN = re.compile(r"#(\d+)-(\d+)(?= |$)")


def has_right_version(passage: Passage, case: Case) -> bool | None:
    """Return True if a passage overlaps gold, False if it overlaps another version of the provision, otherwise None."""
    spans = passage.spans
    if any(passage.source == gold.filename and touches(span, gold) for gold in case.gold for span in spans):
        return True
    # the spans of the other versions: `FILE#START-END FILE#START-END`; a file's name may contain spaces
    others = _VERSION_SPAN.split(str(case.labels.get("other_versions") or ""))
    named = zip(others[::3], others[1::3], others[2::3], strict=False)
    near = [Span(int(start), int(end)) for name, start, end in named if name.strip() == passage.source]
    return False if any(span.overlaps(other) for span in spans for other in near) else None
