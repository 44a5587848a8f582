"""Boundaries of metrics: depths, lengths, defaults, cases that do not apply, judges that need not be asked."""

from __future__ import annotations

import pytest

from exhibit.evaluation.answer_words import find_cited_files, find_cited_names, without_named
from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.metrics import (
    Options,
    answer_correctness,
    answer_f1,
    characters,
    chunk_economy,
    citations_matched,
    describe_metric,
    exact_match,
    find_needing,
    groundedness,
    measure,
    precedent_matching,
    references_official,
    relevance,
)  # fmt: skip
from exhibit.evaluation.metrics.legal_terminology_accuracy import find_us_terms
from exhibit.evaluation.ranking import find_gold_ranks, ranking_of
from exhibit.evidence import Span
from exhibit.law.references import Reference
from exhibit.models.llms import Completion
from tests.evaluation.metrics.build import apply, at, case, gold, quote

GOLD = "abcdefghijklmnopqrstuvwxyz0123456789"  # 36 characters: 16 of them are looked for


class Silent:
    """A judge that must not be asked."""

    name = "silent"

    def complete(self, prompts, *, max_tokens, temperature):
        raise AssertionError(f"asked {len(prompts)} times")


# ---------------------------------------------------------------- who is asked, and what is read


def test_only_the_metrics_that_are_named_are_measured():
    rows = [case(passages=["The rent is £900."], answer="£900 [1].", truth="£900", seconds=0.5)]
    assert measure(rows, Options(judge=Silent()), names=["latency"]) == {"latency": [0.5]}
    with pytest.raises(AssertionError, match="asked 1 times"):
        measure(rows, Options(judge=Silent()), names=["relevance"])


@pytest.mark.parametrize("metric", [answer_correctness, groundedness, relevance])
def test_a_judge_is_not_called_where_there_is_nothing_to_judge(metric):
    rows = [case(answer=None, truth="x"), case(answer="y", truth="x", error="down")]
    for cases in (rows, []):
        assert apply(metric, cases, Options(judge=Silent())) == {name: [None] * len(cases) for name in metric.NAMES}


def test_the_judge_of_groundedness_reads_24_000_characters_of_sources():
    asked = []

    class Reader(Silent):
        def complete(self, prompts, *, max_tokens, temperature):
            asked.extend(prompts)
            return [Completion("5") for _ in prompts]

    text = "x" * (24_000 - len("[1] "))
    row = case(passages=[f"{text}yz"], answer="So it is.")
    assert apply(groundedness, [row], Options(judge=Reader()))["groundedness"] == [5.0]
    assert text in asked[0].user and f"{text}y" not in asked[0].user


def test_two_votes_are_two_readers_with_some_chance():
    asked = []

    class Panel(Silent):
        def complete(self, prompts, *, max_tokens, temperature):
            asked.extend((prompt.user.rpartition("\n\n")[2], temperature) for prompt in prompts)
            return [Completion("5"), Completion("3")]

    found = apply(answer_correctness, [case(answer="A.", truth="B.")], Options(judge=Panel(), votes=2))
    assert list(found.values()) == [[4.0], [0.0], [1.0], [0.0]]
    assert asked == [("You are reader 1 of 2.", 0.7), ("You are reader 2 of 2.", 0.7)]


def test_those_metrics_are_told_that_need_something():
    assert find_needing(["latency", "recall@10", "relevance", "nobodys"], "judge") == ["relevance"]
    assert find_needing(["latency", "recall@10"], "gold text") == ["recall@10"]


def test_units_stand_behind_figures_but_not_behind_shares():
    signs = {
        name: describe_metric(name).sign for name in ("latency", "relevance", "tokens_in", "answer_length", "recall")
    }
    assert signs == {"latency": "s", "relevance": "/5", "tokens_in": "tokens", "answer_length": "chars", "recall": ""}


# ---------------------------------------------------------------- answers as SQuAD reads them


@pytest.mark.parametrize(
    ("answer", "fields", "exact", "f1"),
    [
        ("The Rent!", {"golds": [quote("a rent")]}, 1.0, 1.0),
        ("The rent [1].", {"truth": "rent"}, 1.0, 1.0),
        ("rent due", {"truth": "rent"}, 0.0, 2 / 3),
        ("Not found in provided documents.", {"is_impossible": True}, 1.0, 1.0),
        ("The rent is £900.", {"is_impossible": True}, 0.0, 0.0),
        (None, {"truth": "rent"}, None, None),
        ("rent", {"truth": "rent", "error": "down"}, None, None),
    ],
)
def test_parity_with_squad(answer, fields, exact, f1):
    row, options = case(answer=answer, **fields), Options(parity="squad")
    assert apply(exact_match, [row], options)["answer_exact_match"] == [exact]
    assert apply(answer_f1, [row], options) == {"answer_f1": [f1 if f1 is None else pytest.approx(f1)]}


def test_without_parity_an_impossible_row_has_no_expected_answer():
    row = case(answer="Not found in provided documents.", is_impossible=True)
    assert apply(exact_match, [row], Options())["answer_exact_match"] == [None]


# ---------------------------------------------------------------- references that registers know


class Register:
    """A register that knows section 33, does not have section 99, and is unavailable for anything else."""

    def outcome(self, reference: Reference) -> str:
        return next((word for end, word in (("33", "found"), ("99", "absent")) if str(reference).endswith(end)), "away")


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("See section 33 of the Limitation Act 1980.", 1.0),
        ("See sections 33 and 99 of the Limitation Act 1980.", 0.5),
        ("See section 33 of the Limitation Act 1980, again section 33 of the Limitation Act 1980 and section 99.", 0.5),
        ("See section 99 of the Limitation Act 1980.", 0.0),
        ("See section 33 of the Limitation Act 1980 and rule 3.4.", 1.0),
        ("See rule 3.4.", None),
        ("It is so.", None),
        (None, None),
    ],
)
def test_references_that_a_register_decides(answer, share):
    found = apply(references_official, [case(answer=answer)], Options(officials=Register()))
    assert found == {"references_official": [share]}


def test_references_without_a_register():
    rows = [case(answer="See rule 3.4."), case()]
    assert apply(references_official, rows, Options()) == {"references_official": [None, None]}
    failed = case(answer="See section 33 of the Limitation Act 1980.", error="down")
    assert apply(references_official, [failed], Options(officials=Register())) == {"references_official": [None]}


# ---------------------------------------------------------------- sources


def test_several_numbers_in_brackets_are_no_name():
    assert without_named("It is so [1 and 2], see [3] and [Part 36].") == "It is so [1 and 2], see [3] and  ."
    assert find_cited_names("[ ] [1] [1 and 2] [Part  36] [Part 36] [_]") == ["Part 36"]


def test_files_are_cited_by_the_numbers_that_there_are():
    passages = [Passage("x", "a.pdf"), Passage("y", "b.pdf"), Passage("z")]
    for answer, files in (("[0]", []), ("[1]", ["a.pdf"]), ("[2][1][2]", ["b.pdf", "a.pdf"]), ("[3][4]", [])):
        assert find_cited_files(case([], passages, answer=answer)) == files
    assert find_cited_files(case([], passages)) == []


@pytest.mark.parametrize(
    ("truth", "answer", "share"),
    [
        ("As in [Offers to Settle#page=Rules].", "See [Offers to Settle].", 1.0),
        ("As in [Offers to Settle].", "See [Offers to Settle#page=Rules].", 1.0),
        ("As in [Offers to Settle#page=Rules].", "See [Rules].", 0.0),
        ("As in [Offers] and [Costs].", "See [Costs].", 0.5),
        ("As in [Offers] and [Costs].", "See [Fees].", 0.0),
    ],
)
def test_a_source_is_cited_with_its_page_or_without(truth, answer, share):
    assert apply(citations_matched, [case(truth=truth, answer=answer)], Options()) == {"citations_matched": [share]}


def test_the_sources_of_a_truth_count_alike():
    row = case(truth="As in [Part 36] and [Costs].", answer="See [Part 36] and [Costs Rules].")
    assert apply(precedent_matching, [row], Options()) == {
        "precedent_matching": [pytest.approx((1 + 0.95) / 2)],
        "precedent_matching_strict": [0.5],
    }


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        (f"the Royal{' ' * 34}Discovery sued", set()),  # forty characters before a word tell whether it is a name
        (f"the Royal{' ' * 35}Discovery sued", {"discovery"}),
        ("(Royal Discovery sued)", set()),
        ("Royal Discovery sued", {"discovery"}),  # the first word of a text has a capital in any case
    ],
)
def test_how_far_a_name_is_looked_for(text, terms):
    assert find_us_terms(text) == terms


# ---------------------------------------------------------------- gold and its rank


@pytest.mark.parametrize(
    ("words", "passages", "rank"),
    [
        ("abcdefghi", ["++abcde"], 1),
        ("abcdefghi", ["++abcd", "fghi++"], None),  # five of nine are looked for, the half rounded up
        ("abcdefgh", ["++abc", "fgh++"], None),  # four of eight
        ("abcdefgh", ["abc", "fgh"], 2),  # a chunk that is nothing but a piece may be shorter
        (GOLD, [f"{GOLD[:16]}+{GOLD[:18]}"], 1),  # what the text begins with goes on otherwise
        (GOLD, [f"{GOLD[20:]}+{GOLD[20:]}++", f"++{GOLD[:16]}"], 2),
        (f"zzz<omitted>{GOLD[:33]}", [f"++{GOLD[:17]}"], None),  # 17 of 36, and nothing of the part before
        (f"zzz<omitted>{GOLD[:33]}", [f"++{GOLD[:18]}"], 1),
    ],
)
def test_pieces_of_a_gold_at_its_ends(words, passages, rank):
    assert find_gold_ranks(case([quote(words)], passages)) == [rank]


def test_files_and_places_that_are_not_known():
    words = "The rent is £900 a month."
    assert find_gold_ranks(case([quote(words, None)], [Passage(words, "any.pdf")])) == [1]
    assert find_gold_ranks(case([quote(words)], [Passage(words, "lease.pdf", Span(0, 5))])) == [1]
    placed = gold((0, 100), text=words)
    assert find_gold_ranks(case([placed], [Passage("other words", None, Span(0, 100))])) == [None]
    assert find_gold_ranks(case([placed], [Passage(words, None, Span(500, 600))])) == [1]


def test_a_ranking_leaves_out_what_nobody_judged_only_where_irrelevant_files_were():
    passages = [Passage("w", file) for file in "xba"]
    for grades, order in (({"a": 4, "b": 1}, ["x", "b", "a"]), ({"a": 4, "b": 0}, ["b", "a"])):
        assert list(ranking_of(case([], passages, grades=grades)).order) == order


def test_golds_have_grade_1_where_nobody_graded_them():
    found = ranking_of(case([gold((0, 10)), gold((20, 30))], [at(0, 10)]))
    assert found.grades == {"gold-0": 1, "gold-1": 1} and found.least == 1
    assert ranking_of(case([GoldPassage("a.pdf", None)], [at(0, 10, "b.pdf"), at(0, 10, "a.pdf")])) is None
    assert ranking_of(case([gold((0, 10))], [])).order == []


def test_the_tenth_rank_is_the_last_that_counts():
    grades = {f"{n}": 0 for n in range(12)} | {"gold": 4}
    names = ["recall@10", "mrr@10"]
    for before, recall, mrr in ((9, 1.0, 0.1), (10, 0.0, 0.0)):
        files = [*(f"{n}" for n in range(before)), "gold"]
        row = case([], [Passage("w", file) for file in files], grades=grades)
        assert measure([row], names=names) == {"recall@10": [recall], "mrr@10": [mrr]}
        placed = case([gold((0, 10))], [*[at(90, 99)] * before, at(0, 10)])
        assert measure([placed], names=names) == {"recall@10": [recall], "mrr@10": [mrr]}


# ---------------------------------------------------------------- characters


@pytest.mark.parametrize(
    ("golds", "passages", "precision", "recall"),
    [
        ([gold((5, 5))], [at(0, 9)], None, None),  # an empty place is none
        ([gold([(0, 10), (5, 5)])], [at(0, 5)], 1.0, 0.5),
        ([gold((0, 2))], [at(0, 1)], 1.0, 0.5),  # one character is enough for a share
        ([gold((0, 1))], [at(0, 2)], 0.5, 1.0),
        ([gold((0, 10))], [at(10, 20)], 0.0, 0.0),
        ([gold((0, 10))], [at(3, 3), at(0, 10)], 1.0, 1.0),
    ],
)
@pytest.mark.parametrize("parity", ["", "legalbenchrag"])
def test_characters_by_hand(golds, passages, precision, recall, parity):
    found = apply(characters, [case(golds, passages)], Options(ks=(2,), parity=parity))
    assert found == {"char_precision@2": [precision], "char_recall@2": [recall]}


def test_files_whose_ends_meet_on_the_line_do_not_touch():
    golds = [gold((90, 100), file="a.pdf"), gold((0, 10), file="b.pdf")]
    found = apply(characters, [case(golds, [at(95, 100, "a.pdf"), at(0, 5, "b.pdf")])] * 2, Options(ks=(1, 2)))
    assert found["char_recall@1"] == [0.25, 0.25] and found["char_recall@2"] == [0.5, 0.5]
    assert found["char_precision@2"] == [1.0, 1.0]


def test_a_passage_and_a_gold_of_no_file_are_not_the_same_file():
    row = case([gold((0, 10), file=None)])
    assert chunk_economy.kind_of(at(0, 10, None), row) == "chunk_neither"
    assert chunk_economy.kind_of(at(0, 10), case([])) == "chunk_neither"


def test_depths_and_votes_unless_others_are_asked_for():
    options = Options()
    assert (options.k, options.votes, options.ks) == (10, 1, (1, 2, 4, 8, 16, 32, 64))
