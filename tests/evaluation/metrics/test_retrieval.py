"""Retrieval metrics equal hand-computed tables and the definitions of other projects."""

from dataclasses import replace
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.metrics.retrieval import count_wrong_files, match_seed, ranking_of
from exhibit.evaluation.placement import find_gold_ranks, rank_found
from exhibit.evidence import Span
from tests.evaluation.metrics.build import apply, at, case, gold, quote

CHARACTERS = ["char_precision", "char_recall"]
VERSIONS = ["provision_first", "version_accuracy"]


RANKING = [at(50, 150), at(100, 180), at(100, 200, "other.pdf"), at(180, 260)]


def score_characters(row, *, ks=(1, 2, 4), parity=""):
    values = apply(CHARACTERS, [row], Options(ks=ks, parity=parity))
    return [[values[f"char_{kind}@{k}"][0] for k in ks] for kind in ("precision", "recall")]


@pytest.mark.parametrize(
    ("golds", "passages", "precision", "recall"),
    [
        # 100 characters of gold; overlaps count once, and passages of the other file lower precision
        ([gold((100, 200))], RANKING, [50 / 100, 80 / 130, 100 / 310], [0.5, 0.8, 1.0]),
        # two golds, one of which is not retrieved
        ([gold((100, 200)), gold((900, 1200))], RANKING, [50 / 100, 80 / 130, 100 / 310], [50 / 400, 80 / 400, 0.25]),
        # overlapping golds: 50 of 100 characters of each are retrieved, and shared characters count once
        ([gold((0, 100)), gold((50, 150))], [at(50, 100)], [1, 1, 1], [0.5, 0.5, 0.5]),
        # the same gold twice
        ([gold((0, 100)), gold((0, 100))], [at(0, 200)], [0.5, 0.5, 0.5], [1, 1, 1]),
        # one gold in two spans
        ([gold([(0, 60), (100, 140)])], [at(50, 120)], [30 / 70] * 3, [30 / 100] * 3),
        # two locations: the first counts until the second is better; never both
        ([gold((0, 100), (1000, 1100))], [at(0, 40), at(1000, 1090)], [1, 90 / 130, 90 / 130], [0.4, 0.9, 0.9]),
        # equal shares: the first location counts
        ([gold((0, 100), (1000, 1100))], [at(1000, 1100), at(0, 100)], [1, 0.5, 0.5], [1, 1, 1]),
        # locations of different lengths: the share counts, weighted by the longer
        ([gold((0, 100), (1000, 1050)), gold((500, 600))], [at(0, 60), at(1000, 1050)], [1, 50 / 110, 50 / 110],
         [60 / 200, 100 / 200, 100 / 200]),
        # gold without a location is not counted; passages without a location lower precision
        ([gold((0, 100)), gold(text="lost")], [Passage("y" * 25), at(0, 75)], [0, 0.75, 0.75], [0, 0.75, 0.75]),
        ([gold((0, 100))], [Passage("y" * 25, "lease.pdf"), Passage("y" * 75, None, Span(0, 75))], [0] * 3, [0] * 3),
        # nothing retrieved
        ([gold((0, 100))], [], [0, 0, 0], [0, 0, 0]),
        ([gold((0, 100))], [at(20, 20)], [0, 0, 0], [0, 0, 0]),
        # no gold has a location
        ([gold(text="lost"), gold(file="a.pdf")], [at(0, 75)], [None] * 3, [None] * 3),
        ([gold((0, 9), file=None)], [at(0, 75)], [None] * 3, [None] * 3),
        ([], [at(0, 75)], [None] * 3, [None] * 3),
    ],
)  # fmt: skip
def test_char_precision_and_recall_equal_hand_computed_values(golds, passages, precision, recall):
    found = score_characters(case(golds, passages))
    assert found == [pytest.approx(precision), pytest.approx(recall)]


@pytest.mark.parametrize(
    ("golds", "passages", "precision", "recall"),
    [
        # the overlaps of all snippets are added: recall exceeds 1
        ([gold((100, 200))], RANKING, [50 / 100, 130 / 180, 150 / 360], [0.5, 1.3, 1.5]),
        # the overlaps of all gold snippets are added: precision exceeds 1
        ([gold((0, 100)), gold((0, 100))], [at(0, 50)], [2, 2, 2], [0.5, 0.5, 0.5]),
        # only the first location of a gold counts
        ([gold((0, 100), (1000, 1100))], [at(1000, 1100)], [0, 0, 0], [0, 0, 0]),
        ([gold([(0, 60), (100, 140)])], [at(50, 120)], [30 / 70] * 3, [30 / 100] * 3),
        ([gold((0, 100))], [], [0, 0, 0], [0, 0, 0]),
        ([gold(text="lost")], [at(0, 75)], [None] * 3, [None] * 3),
    ],
)
def test_char_precision_and_recall_with_legalbenchrag_parity_equal_hand_computed_values(
    golds, passages, precision, recall
):
    assert score_characters(case(golds, passages), parity="legalbenchrag") == [precision, recall]


spans = st.builds(lambda start, length: Span(start, start + length), st.integers(0, 30), st.integers(1, 12))
files = st.sampled_from(["a", "b"])
rankings = st.lists(st.builds(Passage, st.just("zz"), files, st.one_of(spans, st.none())), max_size=9)
places = st.lists(spans, min_size=1, max_size=2).map(tuple)
golds = st.lists(st.builds(GoldPassage, files, st.none(), st.lists(places, max_size=3).map(tuple)), max_size=4)
KS = (1, 2, 3, 5, 8)


def compute_from_sets(row, k):
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
def test_char_precision_and_recall_equal_computation_with_character_sets(rows):
    rows = [case(*row) for row in rows]
    values = apply(CHARACTERS, rows, Options(ks=KS))
    for number, row in enumerate(rows):
        for k in KS:
            found = values[f"char_precision@{k}"][number], values[f"char_recall@{k}"][number]
            assert found == pytest.approx(compute_from_sets(row, k))


RENT = "The tenant shall pay a rent of £900 a month, in advance, on the first working day of each month."
NOTICE = "Either party may end this lease by two months' notice in writing."


@pytest.mark.parametrize(
    ("passage", "gold", "mended", "seed"),
    [
        (RENT, RENT, True, True),
        (f"1. Rent. {RENT} 2. Repairs.", RENT, True, True),
        (RENT.upper(), RENT, True, True),
        # text of a PDF: line breaks, curly quotes, a soft hyphen
        ("Either party may end\nthis lease by two months’ no\u00adtice in writing.", NOTICE, True, False),
        # pieces of the gold: at least half is needed
        (RENT[:50], RENT, True, True),
        (RENT[:40], RENT, False, True),
        (f"1. Rent. {RENT[:80]}", RENT, True, False),
        ("two months' notice in writing", "by two months' notice in writing", True, True),
        ("rent", RENT, False, True),
        ("", RENT, False, True),
        (" \n", RENT, False, True),
        ("The landlord shall insure the premises.", RENT, False, False),
        # gold with an omission
        (f"{NOTICE} {RENT}", f"{RENT} <omitted> {NOTICE}", True, False),
        (NOTICE, f"{RENT} <omitted> {NOTICE}", False, True),
        (RENT, f"{RENT} <omitted> {NOTICE}", True, True),
        ("notice in writing", f"{RENT} <omitted> {NOTICE}", False, True),
    ],
)
def test_rank_found_finds_gold_only_if_passage_contains_half_of_the_gold(passage, gold, mended, seed):
    assert (rank_found(GoldPassage(None, gold), [Passage(passage)]) is not None) is mended
    assert (match_seed(case([quote(gold)], [passage]), 1)[0] == [[0]]) is seed


@pytest.mark.parametrize(
    ("golds", "passages", "ranks"),
    [
        # by location: half of the characters, in one passage or in several together
        ([gold((0, 100))], [at(0, 100)], [1]),
        ([gold((0, 100))], [at(0, 49), at(300, 400)], [None]),
        ([gold((0, 100))], [at(0, 50)], [1]),
        ([gold((0, 100))], [at(0, 30), at(500, 600), at(70, 100)], [3]),
        # overlapping characters count once
        ([gold((0, 100))], [at(0, 30), at(10, 40), at(20, 49), at(49, 50)], [4]),
        # the same offsets in another file do not count
        ([gold((0, 100))], [at(0, 100, "other.pdf"), at(0, 100)], [2]),
        # one of several locations is enough; a location in parts needs half of all its parts
        ([gold((0, 100), (500, 600))], [at(540, 600)], [1]),
        ([gold((0, 100), (500, 600))], [at(0, 30), at(500, 530)], [None]),
        ([gold([(0, 50), (200, 250)])], [at(0, 25), at(225, 250)], [2]),
        # one passage may find several
        ([gold((0, 50)), gold((60, 100))], [at(300, 400), at(0, 100)], [2, 2]),
        # by text
        ([RENT], ["x", RENT], [2]),
        ([RENT], [RENT[:40], RENT[40:]], [2]),
        ([RENT], ["rent", "month", "tenant"], [None]),
        # a chunk that ends inside the gold, and a chunk that begins there
        ([RENT], [f"1. Rent. {RENT[:30]}", f"{RENT[30:55]} …", f"{RENT[30:]} 2. Repairs."], [3]),
        ([RENT], [f"1. Rent. {RENT[:60]}"], [1]),
        ([RENT], [f"{RENT[40:]} 2. Repairs."], [1]),
        ([f"{RENT} <omitted> {NOTICE}"], [NOTICE, RENT], [2]),
        ([RENT, RENT.upper()], [RENT], [1]),
        ([RENT, "", "  "], [RENT], [1]),
    ],
)
def test_find_gold_ranks_matches_gold_by_location_or_by_text(golds, passages, ranks):
    golds = [quote(item) if isinstance(item, str) else item for item in golds]
    assert find_gold_ranks(case(golds, passages)) == ranks


def test_find_gold_ranks_requires_right_file():
    elsewhere, here = Passage(RENT, "other.pdf"), Passage(RENT, "lease.pdf")
    assert find_gold_ranks(case([quote(RENT)], [elsewhere])) == [None]
    assert find_gold_ranks(case([quote(RENT)], [elsewhere, here])) == [2]
    assert find_gold_ranks(case([quote(RENT)], [Passage(RENT)])) == [1]
    # located gold, and a passage without a known location
    assert find_gold_ranks(case([gold((0, len(RENT)), text=RENT)], [Passage(RENT)])) == [1]


def score_ranking(golds, passages, *, k=10, parity=""):
    row = case([quote(gold) for gold in golds], passages)
    options = Options(k=k, parity=parity)
    return apply("recall", [row], options)[f"recall@{k}"][0], apply("ndcg", [row], options)[f"ndcg@{k}"][0]


SECOND, THIRD, FOURTH = 1 / log2(3), 1 / log2(4), 1 / log2(5)


@pytest.mark.parametrize(
    ("golds", "passages", "found", "gain"),
    [
        ([RENT], [RENT], 1, 1),
        ([RENT], ["x", RENT], 1, SECOND),
        ([RENT], ["x", "y"], 0, 0),
        ([RENT], [], 0, 0),
        # the gold is split over two passages: found at the second
        ([RENT], [RENT[:40], RENT[40:]], 1, SECOND),
        # a gold counts once
        ([RENT], [RENT, RENT[:60], f"{RENT}!"], 1, 1),
        ([RENT, NOTICE], [RENT, RENT, NOTICE], 1, (1 + THIRD) / (1 + SECOND)),
        # golds with the same words count once
        ([RENT, RENT.upper()], [RENT], 1, 1),
        # one passage with two golds scores as two passages with one gold each
        ([RENT, NOTICE], [f"{RENT} {NOTICE}"], 1, 1),
        ([RENT, NOTICE], ["x", "y", f"{RENT} {NOTICE}"], 1, (THIRD + FOURTH) / (1 + SECOND)),
        ([RENT, NOTICE], [f"{RENT} {NOTICE}", RENT], 1, 1),
        # golds without words do not count
        ([RENT, "", "  "], [RENT], 1, 1),
    ],
)
def test_recall_and_ndcg_equal_hand_computed_values(golds, passages, found, gain):
    assert score_ranking(golds, passages) == (found, pytest.approx(gain))


def test_recall_and_ndcg_are_none_without_gold_text_or_after_error():
    assert score_ranking([], [RENT]) == (None, None)
    assert score_ranking([""], [RENT], parity="seed") == (None, None)
    row = case([quote(RENT)], [RENT], error="no reply")
    assert apply("recall", [row], Options()) == {"recall@10": [None]}
    assert apply("ndcg", [row], Options()) == {"ndcg@5": [None], "ndcg@10": [None]}


def test_document_hit_equals_hand_computed_values():
    rows = [
        case([gold((0, 9))], [at(0, 9, "nda.pdf"), at(50, 60), at(0, 9)]),
        case([gold((0, 9)), quote("rent", "nda.pdf")], [at(0, 9, "nda.pdf")]),
        case([quote("", "lease.pdf")], [at(0, 9, "nda.pdf")] * 4),
        case([gold((0, 9))], []),
        case([quote("rent", None)], [at(0, 9)]),
        case([gold((0, 9))], [at(0, 9)], error="no reply"),
    ]
    assert apply("document_hit", rows, Options(ks=(1, 2))) == {
        "document_hit@1": [0, 1, 0, 0, None, None],
        "document_hit@2": [1, 1, 0, 0, None, None],
    }


DRM_OPTIONS = Options(ks=(1, 2, 4))
LEASE = gold((0, 9))


def ranking(files):
    return [at(0, 9, f"{file}.pdf") for file in files.split()]


DRM_ROWS = [
    case([LEASE], ranking("lease nda nda lease")),
    case([LEASE], ranking("nda lease")),
    case([LEASE, quote("rent", "nda.pdf")], ranking("lease nda will will")),
    case([quote("", "lease.pdf")], [at(0, 9), "words from nowhere"]),
    case([LEASE], []),
    case([quote("rent", None)], ranking("lease")),
    case([LEASE], ranking("lease"), error="no reply"),
]


def test_drm_equals_hand_computed_values():
    assert apply("drm", DRM_ROWS, DRM_OPTIONS) == {
        "drm@1": [0, 1, 0, 0, None, None, None],
        "drm@2": [0.5, 0.5, 0, 0, None, None, None],
        "drm@4": [0.5, 0.5, 0.5, 0, None, None, None],
    }


def test_count_wrong_files_returns_numbers_of_passages_from_wrong_files_and_known_files():
    assert [count_wrong_files(row, 4) for row in DRM_ROWS[:5]] == [(2, 4), (1, 2), (2, 4), (0, 1), (0, 0)]


def hit(page: GoldPassage, *passages: Passage, k: int = 2) -> float | None:
    return apply(f"page_hit@{k}", [case([page], passages)])[f"page_hit@{k}"][0]


PAGE = GoldPassage("a.pdf", None, pages=(7,))


@pytest.mark.parametrize(
    ("passages", "value"),
    [
        ([Passage("x", "a.pdf", Span(0, 9), pages=(7,))], 1.0),
        ([Passage("x", "a.pdf", Span(0, 9), pages=(6, 7))], 1.0),
        # the located words decide, not the page that the system reports
        ([Passage("x", "a.pdf", Span(0, 9), pages=(6,), told_page=7)], 0.0),
        ([Passage("x", "a.pdf", told_page=7)], 1.0),  # only its reported page is known
        ([Passage("x", "b.pdf", Span(0, 9), pages=(7,))], 0.0),
        ([Passage("x", "a.pdf")], None),
        ([Passage("x", "b.pdf")], 0.0),
        ([Passage("x", "b.pdf"), Passage("x", "b.pdf"), Passage("x", "a.pdf", Span(0, 9), pages=(7,))], 0.0),
        ([], 0.0),
    ],
)
def test_page_hit_equals_hand_computed_values(passages, value):
    assert hit(PAGE, *passages) == value
    assert hit(GoldPassage("a.pdf", "words"), *passages) is None, "the page of the gold is unknown"


GRADED = ["ndcg@5", "ndcg@10", "recall@10", "mrr@10"]
GRADES = {"a": 4, "b": 3, "c": 2, "d": 1, "e": 0, "f": 0}
IDEAL = 4 + 3 * SECOND + 2 * THIRD + FOURTH


def score_files(files, grades=None, **fields):
    passages = [Passage(f"words of {file}", file) for file in files]
    row = case([], passages, grades=GRADES if grades is None else grades, **fields)
    return {name: values[0] for name, values in measure([row], names=GRADED).items()}


@pytest.mark.parametrize(
    ("files", "gain", "found", "first"),
    [
        ("abcdef", 1, 1, 1),
        ("ba", (3 + 4 * SECOND) / IDEAL, 1, 1),
        ("cdb", (2 + SECOND + 3 * THIRD) / IDEAL, 1 / 2, 1 / 3),
        ("efd", THIRD / IDEAL, 0, 0),
        ("", 0, 0, 0),
        # several passages of a file count as one file, at the rank of the first
        ("bbba", (3 + 4 * SECOND) / IDEAL, 1, 1),
        # x, y and z were not judged: they are left out of the ranking
        ("xybza", (3 + 4 * SECOND) / IDEAL, 1, 1),
    ],
)
def test_graded_metrics_equal_hand_computed_values(files, gain, found, first):
    expected = {"ndcg@5": gain, "ndcg@10": gain, "recall@10": found, "mrr@10": first}
    assert score_files(files) == pytest.approx(expected)


def test_graded_metrics_are_none_when_no_graded_file_is_relevant():
    assert score_files("ab", {"a": 2, "b": 0})["mrr@10"] is None
    assert score_files("ab", {"a": 2, "b": 0})["ndcg@5"] == 1
    assert set(score_files("ab", {"a": 0, "b": 0}).values()) == {None}
    assert score_files("ab", {"a": 0})["ndcg@5"] is None
    assert set(score_files("ab", is_impossible=True).values()) == {None}
    assert set(score_files("ab", error="timed out").values()) == {None}


def test_graded_metrics_rank_passages_instead_of_files_when_gold_has_no_grades():
    row = case([gold((0, 100)), gold((200, 300))], [at(400, 500), at(200, 300), at(0, 30), at(30, 60)])
    found = {name: values[0] for name, values in measure([row], Options(), names=GRADED).items()}
    assert found["mrr@10"] == 1 / 2
    assert ranking_of(row).order == ["passage-1", "gold-1", "passage-3", "gold-0"]


def test_gold_without_text_counts_only_in_document_metrics():
    row = case([quote("", "a.pdf"), quote("", "b.pdf")], [at(0, 9, "c.pdf"), at(0, 9, "b.pdf"), at(0, 9, "a.pdf")])
    found = {name: values[0] for name, values in measure([row], Options(), names=GRADED).items()}
    assert set(found.values()) == {None}
    assert measure([row], names=["document_hit@2"]) == {"document_hit@2": [1.0]}


@pytest.mark.parametrize(
    ("passages", "golds", "mended", "seed"),
    [
        (["The rent is £900."], ["The rent is £900."], 1, 1),
        (["  the RENT is £900.\n"], ["The rent is £900."], 1, 1),
        (["The rent is £900"], ["The  rent is “£900”."], 1, 0),
        (["The rent is £900."], ["The fee", "The rent is £900."], 1, 1),
        (["x", "The rent is £900."], ["The rent is £900."], 0, 0),
        (["The rent is £900 a month."], ["The rent is £900."], 0, 0),
        (["***"], ["---"], 0, 0),
        ([], ["The rent is £900."], 0, 0),
        (["The rent is £900."], [""], None, None),
    ],
)
def test_exact_match_compares_top_passage_with_gold(passages, golds, mended, seed):
    row = case(map(quote, golds), passages)
    assert apply("exact_match", [row], Options())["exact_match"] == [mended]
    assert apply("exact_match", [row], Options(parity="seed"))["exact_match"] == [seed]


@pytest.mark.parametrize(
    ("passages", "golds", "expected"),
    [
        (["The rent is £900."], ["the rent is £900"], 1),
        # sets: {the, rent, is, 900} and {rent, 900, rent…}: 2 of 4 and 2 of 2
        (["The rent is £900."], ["rent 900 rent rent"], 2 * 2 / (4 + 2)),
        (["non-exclusive licence"], ["exclusive licence"], 2 * 2 / (3 + 2)),
        (["The rent"], ["The fee", "The rent is due", "x"], 2 * 2 / (2 + 4)),
        (["x", "The rent"], ["The rent"], 0),
        (["***"], ["The rent"], 0),
        ([], ["The rent"], 0),
        (["The rent"], [], None),
    ],
)
def test_span_f1_compares_top_passage_with_gold(passages, golds, expected):
    row = case(map(quote, golds), passages)
    assert apply("span_f1", [row], Options())["span_f1"] == [expected if expected is None else pytest.approx(expected)]


@pytest.mark.parametrize(
    ("passage", "gold", "expected"),
    [
        # {a, licence}: the compound is not a word
        ("a non-exclusive licence", "an exclusive licence", 2 * 1 / (2 + 3)),
        ("the company's fee (net)", "the company fee, net.", 1),
        ("don't pay", "do pay", 1),
        # {rent, of, at}: tokens with a sign or a point are not words
        ("rent of £900 at 9.30", "rent 900", 2 * 1 / (3 + 2)),
    ],
)
def test_span_f1_with_seed_parity_splits_words_like_nltk(passage, gold, expected):
    row = case([quote(gold)], [passage])
    assert apply("span_f1", [row], Options(parity="seed"))["span_f1"] == [pytest.approx(expected)]


LABELS = {"paragraph": "§ 8", "law": "x", "other_versions": "x_2023-01-01.pdf#100-200 my law_2024-01-01.pdf#5-50"}


def make_case(file: str, start: int, end: int) -> Case:
    return replace(case([gold((40, 140), file="x_2019-07-01.pdf")], [at(start, end, file)]), labels=LABELS)


@pytest.mark.parametrize(("file", "start", "end", "provision", "version"), [
    ("x_2019-07-01.pdf", 40, 140, 1.0, 1.0), ("x_2023-01-01.pdf", 150, 300, 1.0, 0.0),
    ("my law_2024-01-01.pdf", 0, 20, 1.0, 0.0), ("x_2023-01-01.pdf", 200, 300, 0.0, None),
    ("x_2019-07-01.pdf", 140, 200, 0.0, None),
])  # fmt: skip
def test_provision_first_and_version_accuracy_equal_hand_computed_values(file, start, end, provision, version):
    row = make_case(file, start, end)
    assert apply(VERSIONS, [row]) == {"provision_first": [provision], "version_accuracy": [version]}


def test_provision_first_is_none_without_law_labels_or_for_impossible_question():
    plain = case([gold((0, 10), file="a.pdf")], [at(0, 10, "a.pdf")])
    impossible = replace(make_case("x_2019-07-01.pdf", 40, 140), is_impossible=True)
    assert apply(VERSIONS, [plain, impossible])["provision_first"] == [None, None]


CLAUSE = gold((1000, 1100), (9000, 9100))
ECONOMY = ["chunk_essential@10", "chunk_neither@10"]


@pytest.mark.parametrize(
    ("passage", "essential", "neither"),
    [
        (at(900, 1001), 1, 0),
        (at(9050, 9060), 1, 0),  # one of its locations
        (at(900, 1000), 0, 0),  # beside gold
        (at(1600, 1700), 0, 0),  # 500 characters later
        (at(1601, 1700), 0, 1),
        (at(1000, 1100, "other.pdf"), 0, 1),
        (at(1000, 1100, None), 0, 1),
    ],
)
def test_chunk_essential_and_chunk_neither_equal_hand_computed_values(passage, essential, neither):
    assert apply(ECONOMY, [case([CLAUSE], [passage])]) == {ECONOMY[0]: [essential], ECONOMY[1]: [neither]}


def test_chunk_essential_and_chunk_neither_use_only_the_first_k_passages():
    ranking = [at(1000, 1050), at(1100, 1200), at(5000, 5100), "from nowhere", at(1050, 1100), at(1000, 1050)]
    rows = [case([CLAUSE], ranking), case([CLAUSE], [])]
    found = apply(["chunk_essential@2", "chunk_essential"], rows)
    assert found == {"chunk_essential@2": [1 / 2, None], "chunk_essential@10": [3 / 6, None]}
