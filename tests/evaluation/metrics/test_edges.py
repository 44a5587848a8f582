"""Every threshold in a metric, tested at its exact value."""

from __future__ import annotations

from collections import defaultdict
from math import log2

import pytest

from exhibit.evaluation.answer_words import (
    compare_sources,
    list_squad_golds,
    make_squad_prediction,
    score_squad_exact,
    score_squad_f1,
)
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.judge import fence_text, make_judged_metric, read_mark
from exhibit.evaluation.metrics import (
    Options,
    answer_correctness,
    characters,
    citations_matched,
    describe_metric,
    flagged,
    list_gold_files,
    list_gold_texts,
    list_metrics,
    ndcg,
    shorten_metrics,
)  # fmt: skip
from exhibit.evaluation.metrics.legal_terminology_accuracy import find_us_terms
from exhibit.evaluation.metrics.page_accuracy import find_cited_passages
from exhibit.evaluation.ranking import Ranking, find_gold_ranks, ranking_of
from exhibit.evidence import Span, subtract_spans
from exhibit.models.llms import Completion, Prompt
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.metrics.build import apply, at, case, gold, quote


def test_the_depths_that_are_measured():
    depths = defaultdict(list)
    for name in list_metrics():
        depths[name.partition("@")[0]].append(name.partition("@")[2])
    assert {family: "".join(found) for family, found in depths.items() if any(found)} == {
        **dict.fromkeys(("char_precision", "char_recall", "document_hit", "drm", "page_hit"), "1248163264"),
        **dict.fromkeys(("chunk_essential", "chunk_complementary", "chunk_neither", "mrr", "recall"), "10"),
        "ndcg": "510",
        **dict.fromkeys(("precision_3star", "precision_4star", "precision_5star"), "5"),
    }


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("recall", 9.9994, "9.999"), ("recall", 10, "10"), ("recall", -10, "-10"), ("cost", 0.0099, "0.009900"),
        ("cost", 0.01, "0.0100"), ("cost", -0.02, "-0.0200"), ("tokens_in", 1234.5, "1,234"), ("latency", 2, "2.00"),
    ],
)  # fmt: skip
def test_figures_change_their_places_at(name, value, shown):
    assert describe_metric(name).figure(value) == shown


def test_the_nearest_depth_is_shown_the_smaller_of_two_that_are_as_near():
    assert shorten_metrics(["drm@4", "drm@12"]) == ["drm@4"]
    assert shorten_metrics(["drm@6", "drm@10", "drm@2"]) == ["drm@2", "drm@6"]


def test_options_are_sound():
    for wrong in ({"ks": ()}, {"ks": (0, 1)}, {"ks": (2, 2)}, {"ks": (4, 2)}, {"k": 0}):
        with pytest.raises(ToolkitError, match="must be"):
            Options(**wrong)
    assert Options(ks=(1,), k=1)


# ---------------------------------------------------------------- passages

GOLD = "abcdefghijklmnopqrstuvwxyz0123456789"  # 36 characters: 16 of them are looked for


@pytest.mark.parametrize(
    ("passage", "rank"),
    [
        (f"++{GOLD[:18]}", 1),
        (f"++{GOLD[:17]}", None),
        (f"{GOLD[18:]}++", 1),
        (f"{GOLD[19:]}++", None),
        (f"++{GOLD[:16]}+{GOLD[:18]}", 1),  # its beginning stands twice, and the later one goes further
        (f"{GOLD[18:]}+{GOLD[20:]}++", 1),
        (GOLD[5:24], 1),
        (f"++{GOLD[5:24]}++", None),  # the middle of it between other words
        (f"{GOLD[:2]}++{GOLD[2:18]}", None),
    ],
)
def test_a_chunk_that_ends_or_begins_within_the_gold_holds_that_piece(passage, rank):
    assert find_gold_ranks(case([quote(GOLD)], [passage])) == [rank]


def test_a_beginning_that_repeats_itself_is_looked_for_at_every_place():
    assert find_gold_ranks(case([quote("a" * 16 + "b" * 20)], ["a" * 17 + "bb"])) == [1]
    assert find_gold_ranks(case([quote("b" * 20 + "a" * 16)], ["bb" + "a" * 17])) == [1]


def test_short_golds_are_looked_for_by_half_of_them():
    assert find_gold_ranks(case([quote("abcdefgh")], ["++abcd"])) == [1]
    assert find_gold_ranks(case([quote("abcdefghi")], ["++abcd"])) == [None]


def test_a_gold_without_words_is_in_no_passage():
    assert (
        find_gold_ranks(case([quote(" <omitted> ")], ["words"]))
        == find_gold_ranks(case([quote("words")], [" "]))
        == [None]
    )


def test_parts_of_a_gold_lie_one_after_another():
    text = f"{GOLD}<omitted>{'z' * 10}{GOLD[::-1]}"
    assert find_gold_ranks(case([quote(text)], [GOLD])) == [None]
    assert find_gold_ranks(case([quote(text)], [GOLD, "z" * 10])) == [2]
    assert find_gold_ranks(case([quote(text)], ["z" * 10, GOLD])) == [2]


def test_the_two_ends_of_a_gold_are_looked_for_by_sixteen_characters():
    long = "abcdefghijklmnopqrstuvwxyz0123456789αβγδεζηθικλμνξοπρστυφχψω"
    assert len(long) == 60
    for shared, ranks in ((15, [None]), (16, [2]), (20, [2])):
        assert find_gold_ranks(case([quote(long)], [f"++{long[:shared]}", f"{long[-shared:]}++"])) == ranks


def test_a_part_that_is_held_counts_for_its_own_characters():
    assert find_gold_ranks(case([quote("ab<omitted>cd")], ["ab"])) == [1]
    assert find_gold_ranks(case([quote("abc<omitted>de")], ["++de++"])) == [None]
    assert find_gold_ranks(case([quote("abc<omitted>def")], ["++def++"])) == [1]


def test_a_reply_with_less_confidence_than_asked_for_is_flagged():
    cases = [case(confidence=sure) for sure in (0.2, 0.3, 0.4, None)] + [case(error="down", confidence=0.1)]
    assert apply(flagged, cases, Options(flag_below=0.3)) == {"flagged": [1.0, 0.0, 0.0, None, None]}
    assert apply(flagged, cases, Options()) == {"flagged": [None] * 5}


def test_what_a_span_leaves_of_a_place():
    whole = Span(10, 20)
    for taken, left in (
        (Span(0, 10), [whole]),
        (Span(20, 30), [whole]),
        (Span(0, 12), [(12, 20)]),
        (Span(18, 30), [(10, 18)]),
        (Span(12, 18), [(10, 12), (18, 20)]),
        (Span(10, 20), []),
    ):
        assert subtract_spans([whole], [taken]) == left


def test_a_gold_without_words_is_not_looked_for_by_them():
    assert find_gold_ranks(case([gold((0, 10))], ["words", Passage("rent", "lease.pdf")])) == [None]
    assert find_gold_ranks(case([gold((0, 10), text="rent is due")], ["x", "rent is due"])) == [2]
    assert find_gold_ranks(case([gold((0, 10), text="rent is due")], [at(0, 4), at(4, 6), "rent is due"])) == [2]


def test_a_judge_has_three_hundred_tokens_and_no_chance():
    asked = []

    class Judge:
        name = "judge"

        def complete(self, prompts, *, max_tokens, temperature):
            asked.append((len(prompts), max_tokens, temperature))
            return [Completion('{"score": 4}') for _ in prompts]

    cases = [
        case([], ["rent is due"], answer="It is due."),
        case([], answer=None),
        case([], ["x"], answer="y", error="!"),
    ]

    def prompt(one):
        return Prompt("?") if one.reply.answer else None

    _, measure_marks = make_judged_metric("m", prompt)
    told = measure_marks(cases, Options(judge=Judge()))
    assert told == {"m": [4.0, None, None], "m_unjudged": [0.0, None, None]} and asked == [(1, 300, 0.0)]
    assert len(asked) == 1


def test_blank_gold_has_no_words():
    golds = [quote("rent"), quote(" \n"), GoldPassage("b.pdf", None), GoldPassage(None, "due")]
    assert list_gold_texts(case(golds)) == ["rent", "due"] and list_gold_files(case(golds)) == {"lease.pdf", "b.pdf"}
    assert (
        list_gold_texts(case(golds, is_impossible=True)) == []
        and list_gold_files(case(golds, is_impossible=True)) == set()
    )


def test_no_half_of_an_empty_place():
    assert find_gold_ranks(case([gold((5, 5), (0, 10))], [at(0, 5)])) == [1]
    assert find_gold_ranks(case([gold((5, 5))], [at(0, 9)])) == []


@pytest.mark.parametrize(
    ("golds", "passages", "order"),
    [
        ([(0, 10), (50, 60)], [at(0, 60)], ["gold-0", "gold-1"]),
        ([(0, 10)], [at(90, 99), at(0, 10), at(80, 89)], ["passage-1", "gold-0", "passage-3"]),
        ([(50, 60), (0, 10)], [at(0, 10), at(50, 60)], ["gold-1", "gold-0"]),
        ([(0, 10), (20, 30), (50, 60)], [at(0, 30), at(50, 60)], ["gold-0", "gold-1", "gold-2"]),
        ([(0, 10)], [at(90, 99)], ["passage-1"]),
    ],
)
def test_golds_take_the_ranks_at_which_they_are_found_or_the_next_free_ones(golds, passages, order):
    found = ranking_of(case([gold(place) for place in golds], passages))
    assert found is not None and list(found.order) == order


def test_a_ranking_by_hand():
    ranking = Ranking(["a", "b", "c"], {"a": 1, "c": 4, "d": 3}, 3)
    assert ranking.find_gold_ranks() == [3] and ranking.count_golds() == 2
    assert ranking.compute_ndcg(3) == pytest.approx((1 + 4 / log2(4)) / (4 + 3 / log2(3) + 1 / log2(4)))
    assert ranking.compute_ndcg(1) == pytest.approx(1 / 4) and Ranking(["a"], {"a": 0}, 1).compute_ndcg(5) is None


def test_parity_with_the_seed_stops_at_k():
    rows = [case([quote("rent"), quote("term")], ["x", "rent", "term", "rent"])]
    found = apply(ndcg, rows, Options(k=2, parity="seed"))["ndcg@2"]
    assert found == [pytest.approx((1 / log2(3)) / (1 + 1 / log2(3)))]
    many = [case([quote("rent"), quote("term"), quote("fee")], ["rent"])]
    assert apply(ndcg, many, Options(k=2, parity="seed"))["ndcg@2"] == [pytest.approx(1 / (1 + 1 / log2(3)))]


def test_characters_of_the_first_place_or_of_any():
    rows = [case([gold((0, 10), (50, 60))], [at(50, 60)])]
    assert apply(characters, rows, Options(ks=(1,)))["char_recall@1"] == [1.0]
    assert apply(characters, rows, Options(ks=(1,), parity="legalbenchrag"))["char_recall@1"] == [0.0]


# ---------------------------------------------------------------- sources, words and marks


@pytest.mark.parametrize(
    ("expected", "given", "near"),
    [
        ("Part 36", "part 36.pdf", 1.0),
        ("Part 36 Offers", "Part 36", 0.95),
        ("Costs", "Part 44 Costs", 0.95),
        ("Part 44 Costs", "44 Costs", 0.95),
        ("Rules of Costs", "Costs Rules", 0.9),
        ("Costs Budgets Now", "Budgets Then Costs", 0.9 * 2 / 4),
        ("Costs", "Offers", 0.0),
        ("of the", "the of", 0.9),
        ("", "Offers", 0.0),
        ("Offers", "…", 0.0),
    ],
)
def test_how_near_two_names_are(expected, given, near):
    assert compare_sources(expected, given) == pytest.approx(near)


def test_a_file_and_the_name_that_the_truth_gives_it_are_one_source():
    row = case([quote("x", "part36.pdf")], [], answer="See [Part 36].", truth="As in [Part 36#page=Offers].")
    assert apply(citations_matched, [row], Options()) == {"citations_matched": [1.0]}
    by_file = case([quote("x", "part36.pdf")], [], answer="See [part36.pdf].", truth="As in [Part 36#page=Offers].")
    assert apply(citations_matched, [by_file], Options()) == {"citations_matched": [1.0]}
    two = case([quote("x", "a.pdf"), quote("y", "b.pdf")], [], answer="See [a].", truth="As in [Part 36].")
    assert apply(citations_matched, [two], Options()) == {"citations_matched": [0.5]}


def test_cited_passages_are_those_that_there_are_each_once():
    passages = [Passage("one"), Passage("two")]
    assert [p.text for p in find_cited_passages(case([], passages, answer="[2][2][0][3]"))] == ["two"]
    assert [p.text for p in find_cited_passages(case([], passages, answer="none"))] == ["one", "two"]


def test_squad_by_hand():
    assert list_squad_golds(case([quote("rent"), quote("fee")], truth="x")) == ["rent", "fee"]
    assert (
        list_squad_golds(case(truth="x")) == ["x"] and list_squad_golds(case([quote("rent")], is_impossible=True)) == []
    )
    assert (
        make_squad_prediction("Not found in the provided documents.") == ""
        and make_squad_prediction("Rent [1].") == "Rent ."
    )
    assert score_squad_f1("The rent is 900.", ["a rent of 900", "due monthly"]) == pytest.approx(2 * 2 / (3 + 3))
    assert score_squad_f1("", ["rent"]) == 0.0 and score_squad_f1("", []) == 1.0 and score_squad_f1("rent", []) == 0.0
    assert score_squad_exact("The Rent!", ["rent"]) == 1.0 and score_squad_exact("rents", ["rent"]) == 0.0
    assert score_squad_f1("the", ["an"]) == 1.0, "articles are no words"


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ('{"score": 4}', 4.0), ('{"score": "4"}', 4.0), ('{"score": " 4 "}', 4.0), ('{"score": 6}', None),
        ('{"score": 0}', None), ('{"score": true}', None), ('{"score": 4.5}', None), ('{"reason": "x"}', None),
        ('{"score": "' + " " * 18 + '4"}', 4.0), ('{"score": "' + " " * 19 + '4"}', None), ("5", 5.0), ("5/5", 5.0),
        ("Score: 3", 3.0), ("score of 3, mark 4", None), ("mark is 3; score 3", 3.0), ("score 45", None), ("", None),
        ('{broken} {"score": 2}', 2.0),
    ],
)  # fmt: skip
def test_marks_are_read(reply, mark):
    assert read_mark(reply) == mark


def test_a_fence_is_longer_than_any_in_the_text():
    assert fence_text("T", "x") == "T\n~~~\nx\n~~~"
    assert fence_text("T", " ~~ ") == "T\n~~~\n~~\n~~~" and fence_text("T", "~~~") == "T\n~~~~\n~~~\n~~~~"


class Judge:
    """A stub judge that returns the given replies and records its prompts."""

    name = "told"

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked = list(replies), []

    def complete(self, prompts, *, max_tokens, temperature):
        self.asked.append((list(prompts), max_tokens, temperature))
        return [Completion(self.replies.pop(0)) for _ in prompts]


def test_votes_agree_vary_and_are_counted():
    judge = Judge("3", "3", "5", "no", "4", "4")
    rows = [case(answer="A.", truth="B."), case(answer="C.", truth="D."), case(answer=None, truth="x")]
    found = apply(answer_correctness, rows, Options(judge=judge, votes=3))
    assert list(found.values()) == [
        [pytest.approx(11 / 3), 4.0, None],
        [pytest.approx(1 / 3), 1.0, None],
        [pytest.approx(8 / 9), 0.0, None],
        [0.0, pytest.approx(1 / 3), None],
    ]
    [(prompts, tokens, temperature)] = judge.asked
    assert (tokens, temperature, len(prompts)) == (300, 0.7, 6)
    assert [prompt.user.rpartition("\n\n")[2] for prompt in prompts[:3]] == [
        f"You are reader {number} of 3." for number in (1, 2, 3)
    ]
    expert = [prompt.user.index("EXPERT'S") < prompt.user.index("TO JUDGE") for prompt in prompts[:3]]
    assert expert == [True, False, True]


def test_one_vote_is_asked_at_zero_and_has_no_agreement():
    judge = Judge("3")
    found = apply(answer_correctness, [case(answer="A.", truth="B.")], Options(judge=judge))
    assert list(found.values()) == [[3.0], [None], [None], [0.0]]
    assert judge.asked[0][2] == 0.0 and "reader" not in judge.asked[0][0][0].user
    assert apply(answer_correctness, [case(answer="A.", truth="B.")], Options()) == {
        name: [None] for name in answer_correctness.NAMES
    }


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The plaintiff sued.", {"plaintiffs?"}),
        ("Plaintiff Smith sued.", {"plaintiffs?"}),
        ("The Discovery Channel sued.", set()),
        ("Any Discovery must be made.", {"discovery"}),
        ("the Royal Discovery sued", set()),
        (f"the Royal{' ' * 30}Discovery sued", set()),
        (f"the Royal{' ' * 40}Discovery sued", {"discovery"}),
        ("“plaintiff” is a word", set()),
        ("a power of attorney", set()),
    ],
)
def test_terms_of_american_law_but_for_names_and_quotations(text, terms):
    assert find_us_terms(text) == terms
