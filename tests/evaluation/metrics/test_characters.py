"""Character precision and recall: by hand, by sets of characters, and as published."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.metrics import Options, characters
from exhibit.evidence import Span
from tests.evaluation.metrics.build import apply, at, case, gold

RANKING = [at(50, 150), at(100, 180), at(100, 200, "other.pdf"), at(180, 260)]


def scores(row, *, ks=(1, 2, 4), parity=""):
    values = apply(characters, [row], Options(ks=ks, parity=parity))
    return [[values[f"char_{kind}@{k}"][0] for k in ks] for kind in ("precision", "recall")]


@pytest.mark.parametrize(
    ("golds", "passages", "precision", "recall"),
    [
        # 100 characters of gold; what overlaps is counted once, the other file is dead weight
        ([gold((100, 200))], RANKING, [50 / 100, 80 / 130, 100 / 310], [0.5, 0.8, 1.0]),
        # two golds, one untouched
        ([gold((100, 200)), gold((900, 1200))], RANKING, [50 / 100, 80 / 130, 100 / 310], [50 / 400, 80 / 400, 0.25]),
        # golds that overlap: each is 50 of 100, the characters they share are retrieved once
        ([gold((0, 100)), gold((50, 150))], [at(50, 100)], [1, 1, 1], [0.5, 0.5, 0.5]),
        # the same gold twice
        ([gold((0, 100)), gold((0, 100))], [at(0, 200)], [0.5, 0.5, 0.5], [1, 1, 1]),
        # one gold in two spans
        ([gold([(0, 60), (100, 140)])], [at(50, 120)], [30 / 70] * 3, [30 / 100] * 3),
        # two places: the first while it is the better one, then the second; never both
        ([gold((0, 100), (1000, 1100))], [at(0, 40), at(1000, 1090)], [1, 90 / 130, 90 / 130], [0.4, 0.9, 0.9]),
        # equal shares: the first place
        ([gold((0, 100), (1000, 1100))], [at(1000, 1100), at(0, 100)], [1, 0.5, 0.5], [1, 1, 1]),
        # places of different lengths: the share counts, weighed by the longer
        ([gold((0, 100), (1000, 1050)), gold((500, 600))], [at(0, 60), at(1000, 1050)], [1, 50 / 110, 50 / 110],
         [60 / 200, 100 / 200, 100 / 200]),
        # what could not be located counts neither way; what was retrieved from nowhere is dead weight
        ([gold((0, 100)), gold(text="lost")], [Passage("y" * 25), at(0, 75)], [0, 0.75, 0.75], [0, 0.75, 0.75]),
        ([gold((0, 100))], [Passage("y" * 25, "lease.pdf"), Passage("y" * 75, None, Span(0, 75))], [0] * 3, [0] * 3),
        # nothing retrieved
        ([gold((0, 100))], [], [0, 0, 0], [0, 0, 0]),
        ([gold((0, 100))], [at(20, 20)], [0, 0, 0], [0, 0, 0]),
        # no gold has a place
        ([gold(text="lost"), gold(file="a.pdf")], [at(0, 75)], [None] * 3, [None] * 3),
        ([gold((0, 9), file=None)], [at(0, 75)], [None] * 3, [None] * 3),
        ([], [at(0, 75)], [None] * 3, [None] * 3),
    ],
)  # fmt: skip
def test_by_hand(golds, passages, precision, recall):
    found = scores(case(golds, passages))
    assert found == [pytest.approx(precision), pytest.approx(recall)]


@pytest.mark.parametrize(
    ("golds", "passages", "precision", "recall"),
    [
        # each snippet's overlap is added: recall passes 1
        ([gold((100, 200))], RANKING, [50 / 100, 130 / 180, 150 / 360], [0.5, 1.3, 1.5]),
        # each gold snippet's, too: precision passes 1
        ([gold((0, 100)), gold((0, 100))], [at(0, 50)], [2, 2, 2], [0.5, 0.5, 0.5]),
        # a gold stands where it was first said to stand
        ([gold((0, 100), (1000, 1100))], [at(1000, 1100)], [0, 0, 0], [0, 0, 0]),
        ([gold([(0, 60), (100, 140)])], [at(50, 120)], [30 / 70] * 3, [30 / 100] * 3),
        ([gold((0, 100))], [], [0, 0, 0], [0, 0, 0]),
        ([gold(text="lost")], [at(0, 75)], [None] * 3, [None] * 3),
    ],
)
def test_as_published(golds, passages, precision, recall):
    assert scores(case(golds, passages), parity="legalbenchrag") == [precision, recall]


def test_cases_do_not_touch_each_other():
    rows = [
        case([gold((0, 100))], [at(0, 50)], id=0),
        case([gold((0, 100))], [at(0, 100)], id=1, error="no connection"),
        case([gold((0, 100))], [at(0, 100)], id=2, is_impossible=True),
        case([], [at(0, 100)], id=3),
        case([gold((40, 60), file="other.pdf"), gold((0, 10))], [at(0, 50), at(0, 50, "other.pdf")], id=4),
    ]
    for parity in ("", "legalbenchrag"):
        values = apply(characters, rows, Options(ks=(1, 2), parity=parity))
        assert values["char_recall@2"] == [0.5, None, None, None, pytest.approx(20 / 30)]
        assert values["char_precision@1"] == [1.0, None, None, None, 0.2]


# ---------------------------------------------------------------- laws

spans = st.builds(lambda start, length: Span(start, start + length), st.integers(0, 30), st.integers(1, 12))
files = st.sampled_from(["a", "b"])
rankings = st.lists(st.builds(Passage, st.just("zz"), files, st.one_of(spans, st.none())), max_size=9)
places = st.lists(spans, min_size=1, max_size=2).map(tuple)
golds = st.lists(st.builds(GoldPassage, files, st.none(), st.lists(places, max_size=3).map(tuple)), max_size=4)
KS = (1, 2, 3, 5, 8)


def by_sets(row, k):
    """Return precision and recall by their definition, character by character."""
    retrieved = {(p.filename, i) for p in row.reply.passages[:k] if p.span for i in range(*p.span)}
    unplaced = 2 if any(not p.span for p in row.reply.passages[:k]) else 0  # the same words, retrieved once
    located = list({(g.filename, g.places): g for g in row.gold if g.places}.values())
    if not located:
        return None, None
    credit = total = 0.0
    inside = set()
    for passage in located:
        shares = []
        for place in passage.places:
            held = [(passage.filename, i) for span in place for i in range(*span)]
            shares.append((sum(c in retrieved for c in held) / len(held), held))
        best = next(share for share in shares if share[0] == max(s for s, _ in shares))
        longest = max(len(held) for _, held in shares)
        credit, total = credit + best[0] * longest, total + longest
        inside |= retrieved.intersection(best[1])
    size = len(retrieved) + unplaced
    return (len(inside) / size if size else 0.0), credit / total


@given(st.lists(st.tuples(golds, rankings), max_size=4))
def test_it_is_what_sets_of_characters_say(rows):
    rows = [case(*row) for row in rows]
    values = apply(characters, rows, Options(ks=KS))
    for number, row in enumerate(rows):
        for k in KS:
            found = values[f"char_precision@{k}"][number], values[f"char_recall@{k}"][number]
            assert found == pytest.approx(by_sets(row, k))


@given(golds, rankings)
def test_shares_lie_between_0_and_1_and_recall_never_falls(golds, ranking):
    precision, recall = scores(case(golds, ranking), ks=KS)
    assert all(value is None or 0 <= value <= 1 for value in precision + recall)
    assert recall == sorted(recall, key=lambda value: value or 0)


@given(golds, rankings, st.randoms())
def test_the_order_of_the_golds_does_not_matter(golds, ranking, chance):
    mixed = chance.sample(golds, len(golds))
    assert scores(case(mixed, ranking)) == [pytest.approx(row) for row in scores(case(golds, ranking))]


@given(st.lists(st.integers(0, 20), unique=True, max_size=6), st.lists(spans, unique=True, max_size=1))
def test_chunks_that_tile_a_file_score_as_published(starts, where):
    row = case([gold(span) for span in where], [at(5 * start, 5 * start + 5) for start in starts])
    assert scores(row) == scores(row, parity="legalbenchrag")
