"""Edge cases of evaluation: the analysis of a run, locating passages, counting words, printing rankings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from exhibit.evaluation.analysis import (
    find_question_kinds,
    format_analysis,
    format_comparison,
    format_distribution,
    format_flags,
)
from exhibit.evaluation.answer_words import (
    compare_sources,
    compare_words,
    compute_multiset_f1,
    find_cited_files,
    find_cited_names,
    list_file_names,
    normalise_source,
    set_f1,
    split_seed_words,
    split_squad_words,
    without_citations,
    without_named,
)
from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.documents import Documents, touches
from exhibit.evaluation.evaluate import find_changed_data
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.ranking import (
    Mismatch,
    count_mismatches,
    format_trec,
    match_seed,
    matches_seed,
    pool_mismatches,
    total_mismatches,
)
from exhibit.evaluation.records import compute_breakdown
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import Difference, Estimate, Overlap
from exhibit.evaluation.text_tables import choose_metrics, diff_lines, make_mean_notes
from exhibit.evaluation.verdicts import examine
from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import Provenance
from tests.viewer.test_as_shown import a_run


def test_a_run_is_taken_apart_to_the_last_figure(tmp_path, golden):
    text = "\n".join([*format_analysis(a_run(tmp_path / "runs", 1)), ""])
    golden("evaluation/analysis.txt", text)
    assert "WEAKEST ANSWERS" in text and "BY CLAUSE" in text


def test_kinds_are_counted_by_the_source_type_first():
    clauses, types = ("rent", "keys", "rent"), ("rules", None, "act")
    labels = [{"clause": clauses[n % 3], "source_type": types[n % 3]} for n in range(6)]
    assert find_question_kinds(labels) == ["source_type", "clause"]
    assert format_distribution(labels) == [
        "questions: 6", "source_type:", "  act         2   33.3%", "  none        2   33.3%", "  rules       2   33.3%",
        "clause:", "  keys       2   33.3%", "  rent       4   66.7%",
    ]  # fmt: skip
    assert find_question_kinds([{"id": str(n)} for n in range(6)]) == find_question_kinds([{"same": 1}] * 6) == []


def table(name: str = "a", **fields) -> Table:
    given = {"labels": [{"clause": "rent"}, {"clause": "keys"}, {"clause": None}], **fields}
    return Table(name, [1, 2, 3], ["x", "y", "z"], {"answer_f1": [0.5, 1.0, 0.0]}, **given)


def test_a_table_by_a_label_has_a_column_for_each_value_and_one_for_all():
    head, row, *_ = format_comparison([table()], "clause", width=200)
    assert [part.strip() for part in head.split("  ") if part.strip()] == [
        "none (1 question)", "keys (1 question)", "rent (1 question)", "ALL (3 questions)"
    ]  # fmt: skip
    assert row.startswith("answer_f1") and "0.500" in row
    both = format_comparison([table(), table("b")], "clause", width=300)[0]
    assert "a: keys (1 question)" in both and "b: rent (1 question)" in both and "ALL" not in both
    with pytest.raises(ToolkitError, match="no question has a label 'court'; the labels are clause"):
        format_comparison([table()], "court")
    with pytest.raises(ToolkitError, match="the labels are none"):
        format_comparison([table(labels=[{}, {}, {}])], "court")


@pytest.mark.parametrize(("count", "more"), [(10, ""), (11, ", … and 1 more")])
def test_ten_flagged_answers_are_named(count, more):
    flagged = Table("a", list(range(count)), ["x"] * count, {"flagged": [1.0] * count})
    named = ", ".join(map(str, range(10))) + more
    assert format_flags([flagged], 0.3) == [
        f"{count} of {count} answers have a confidence below 0.3: flagged for review", f"  a: {named}"
    ]  # fmt: skip
    none = Table("a", [1, 2], ["x", "y"], {"flagged": [0.0, None]})
    assert format_flags([none], 0.3) == ["0 of 1 answers have a confidence below 0.3: flagged for review"]
    assert format_flags([table()], 0.25) == [
        "flag_below 0.25: no reply has a confidence, so nothing is flagged"
    ]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "told"), [(1, 1, "="), (1, 2, "▲ worse"), (2, 1, "▼ better")])
def test_two_runs_are_compared_with_what_failed_first(before, after, told):
    shared = Overlap(asked=9, answered=7, failed_before=before, failed_after=after, only_before=2, only_after=1)
    changes = {
        "answer_f1": Difference(0.5, 0.7, 7, (0.1, 0.3)),
        "latency": Difference(1.0, 2.0, 7, (-0.5, 2.5)),
        "drm@1": Difference(0.5, 0.4, 7, (-0.2, -0.05)),
        "char_recall@8": Difference(None, None, 0, None),
        "char_recall@1": Difference(0.5, 0.5, 7, None),
    }
    lines = diff_lines(changes, list(changes), shared)
    assert lines[1].split() == [
        "failed",
        "questions",
        "↓",
        str(before),
        str(after),
        f"{after - before:+d}",
        "9",
        *told.split(),
    ]
    assert lines[2].endswith("▲ better") and "+0.200 [+0.100, +0.300]" in lines[2]
    assert lines[3].endswith("▲ within chance") and lines[4].endswith("▼ better")
    assert lines[5].split() == ["char_recall@8", "–", "–", "–", "0"] and lines[6].endswith("=")
    assert lines[7:] == [
        "compared over the 7 of 9 questions that both runs answered",
        "2 questions are only in the first run and are left out",
        "1 questions are only in the second run and are left out",
    ]


def test_what_a_reader_of_means_must_know_is_said_where_it_is_so():
    one, two = Estimate(0.5, 4, 0), Estimate(0.5, 4, 3, datasets=2)
    assert make_mean_notes({"a": {"answer_f1": one}}) == []
    several, failed = make_mean_notes({"a": {"answer_f1": one}, "b": {"answer_f1": two, "latency": one}})
    assert several.startswith("The mean over several datasets") and failed.endswith("in no mean: b: 3")
    names = {"answer_f1": one, "char_recall@8": one, "char_recall@1": one}
    assert choose_metrics(names, ["char_recall"]) == ["char_recall@8", "char_recall@1"]
    assert choose_metrics(names, ["char_recall@1"]) == ["char_recall@1"] and choose_metrics(names, ["drm"]) == list(
        names
    )


# ---------------------------------------------------------------- places


@pytest.fixture
def documents(tmp_path) -> Documents:
    texts = {
        "a.txt": "The rent is due. The keys are kept. The rent is due. The mill stands at the ford of the river.",
        "b.txt": "The keys are kept. The fish is fresh.",
        "c.txt": "Nothing of it.",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Documents({name: tmp_path / name for name in texts} | {"gone.txt": tmp_path / "gone.txt"})


def gold(filename: str, *spans: tuple[int, int]) -> GoldPassage:
    return GoldPassage(filename, None, tuple((Span(*span),) for span in spans))


def test_a_passage_is_placed_by_its_span_its_name_or_its_words(documents):
    stands = documents.place(Passage("The rent is due.", "A.TXT", Span(36, 52)))
    assert (stands.filename, stands.span, stands.told_filename) == ("a.txt", Span(36, 52), "A.TXT")
    moved = documents.place(Passage("The rent is due.", "a.txt", Span(3, 19)))
    assert moved.span == Span(0, 16), "the words are not there: they are looked for"
    silent = documents.place(Passage("", "a.txt", Span(17, 35)))
    assert (silent.text, silent.span) == ("The keys are kept.", Span(17, 35))
    beyond = documents.place(Passage("", "a.txt", Span(90, 999)))
    assert (beyond.filename, beyond.span) == ("a.txt", None)
    unknown = documents.place(Passage("The fish is fresh.", "other name.txt"))
    assert (unknown.filename, unknown.span) == ("b.txt", Span(19, 37))
    nowhere = documents.place(Passage("Cheese is made of milk in the summer months.", None, Span(0, 4)))
    assert (nowhere.filename, nowhere.span) == (None, None)


def test_of_several_places_the_one_with_gold_counts(documents):
    words = Passage("The rent is due.", "a.txt")
    assert documents.place(words, [gold("a.txt", (40, 41))]).span == Span(36, 52)
    assert documents.place(words, [gold("a.txt", (16, 36))]).span == Span(0, 16), "none of them touches it"
    both = documents.place(Passage("The keys are kept."))
    assert (both.filename, both.also_in, both.span) == (None, ("a.txt", "b.txt"), Span(17, 35))
    there = documents.place(Passage("The keys are kept."), [gold("b.txt", (17, 18))])
    assert (there.also_in, there.span) == (("b.txt", "a.txt"), Span(0, 18))
    elsewhere = documents.place(Passage("The keys are kept."), [gold("b.txt", (30, 31)), gold("c.txt", (0, 9))])
    assert (elsewhere.also_in, elsewhere.span) == (("b.txt", "a.txt"), Span(0, 18)), "in a file with gold, at least"


@pytest.mark.parametrize(("number", "start"), [(63, 63 * 48), (64, 0)])
def test_sixty_four_places_of_a_passage_are_compared_with_gold(tmp_path, number, start):
    words = "The rent is due on the first day of each month."
    (tmp_path / "a.txt").write_text(f"{words} " * 70, encoding="utf-8")
    documents = Documents({"a.txt": tmp_path / "a.txt"})
    placed = documents.place(Passage(words), [gold("a.txt", (number * 48, number * 48 + 3))])
    assert placed.span == Span(start, start + 47)


def test_a_document_that_cannot_be_read_is_as_good_as_not_there(documents):
    assert documents.get("gone.txt") is None and "gone.txt" in documents.faults and documents.get(None) is None
    assert [document.filename for document in documents.all()] == ["a.txt", "b.txt", "c.txt"]
    assert documents.place(Passage("x", "gone.txt", Span(0, 1))).span is None


@pytest.mark.parametrize(("span", "met"), [((0, 5), False), ((0, 6), True), ((9, 12), True), ((10, 12), False)])
def test_a_span_touches_gold_by_a_character(span, met):
    assert touches(Span(*span), gold("a.txt", (50, 60), (5, 10))) is met


# ---------------------------------------------------------------- words


def test_words_are_counted_once_or_as_often_as_they_stand():
    assert set_f1("rent rent due", "rent is due") == pytest.approx(0.8)
    assert compute_multiset_f1("rent rent due", "rent is due") == pytest.approx(2 / 3)
    assert set_f1("rent", "keys") == compute_multiset_f1("", "") == 0.0
    assert (
        compare_words("Rent, due!", "rent due") == 1.0
        and compare_words("due rent", "rent due") == compare_words("", "") == 0
    )
    assert split_seed_words("It isn't non-exclusive: (a) $5,000 at 10:30 ... the tenant's.") == [
        "it", "is", "a", "at", "the"
    ]  # fmt: skip
    assert split_squad_words("The rent, a sum, is an Answer.") == ["rent", "sum", "is", "answer"]


def test_what_an_answer_cites_is_no_part_of_what_it_says():
    assert without_citations("Rent [1] is due [Part 3#page=Rent] here [2][3].") == "Rent  is due  here ."
    assert without_named("Rent [Part 3] is due [1] in [2024] and […].") == "Rent   is due [1] in [2024] and […]."
    assert find_cited_names("[Part  3] [1] [1, 2] [1 and 2] [2024] […] [Part 3] [PD 5A#page=2] []") == [
        "Part 3",
        "PD 5A#page=2",
    ]
    reply = Reply("It is so [2][1]. And so [2][4][3].", passages=(Passage("x", "a"), Passage("y", "b"), Passage("z")))
    assert find_cited_files(Case(0, "?", "", reply=reply)) == ["b", "a"]
    assert list(list_file_names("x/Part 3.pdf")) == ["x/Part 3.pdf", "Part 3"]


@pytest.mark.parametrize(
    ("one", "other", "near", "seed"),
    [
        ("Part 3.pdf", "part 3#page=12", 1.0, 1.0),
        ("Part 3 (pp. 3–4)", "PART 3", 1.0, 1.0),
        ("Part 3", "Part 3 Offers", 0.95, 0.95),
        ("3 Offers", "Part 3 Offers", 0.95, 0.95),
        ("Offers Part", "Part 3 Offers", 0.9 * 2 / 3, 0.75 + 0.15 * 2 / 3),
        ("Part Offers of Sale", "Sale Offers Part", 0.9, 0.9),
        ("Hearings in private", "The media and courts", 0.0, 0.75),
        ("Inspection of ships", "Disclosure lists", 0.0, 0.75),
        ("Inspection of ships", "The media", 0.0, 0.0),
        ("", "Part 3", 0.0, 0.0),
        ("PD 5#page=A Party", "PD 5", 0.95, 0.95),
    ],
)
def test_names_are_alike_by_the_words_they_share(one, other, near, seed):
    assert compare_sources(one, other) == compare_sources(other, one)
    assert compare_sources(one, other) == pytest.approx(near)
    assert compare_sources(one, other, seed=True) == pytest.approx(seed)


def test_a_source_is_compared_without_its_pages_and_its_ending():
    assert normalise_source(" Pärt 3.PDF#page=12") == normalise_source("part 3 (p. 4)") == "part 3"
    assert normalise_source("PD 5#page=A Party") != normalise_source("PD 5A Party"), (
        "its section is no part of its number"
    )


# ---------------------------------------------------------------- rankings


def test_a_ranking_is_written_as_trec_has_it():
    golds = (GoldPassage("a b.pdf", "the rent is due in advance"), GoldPassage("a b.pdf", "the keys are kept"))
    passages = (Passage("nothing", "a b.pdf"), Passage("the keys are kept", "a b.pdf"))
    lines = format_trec(Case("q 1", "?", "", gold=golds, reply=Reply("x", passages=passages)), tag="my run")
    assert lines.run == "q%201 Q0 passage-1 1 2 my%20run\nq%201 Q0 gold-1 2 1 my%20run\n"
    assert lines.qrels == "q%201 0 gold-0 1\nq%201 0 gold-1 1\n"
    assert format_trec(Case("q", "?", "", gold=golds, reply=Reply(None, error="lost")), tag="t") == ("", "")


def test_mismatched_passages_are_counted_and_pooled():
    golds = (GoldPassage("a", "x"),)
    cases = [
        Case(1, "?", "", gold=golds, reply=Reply("x", passages=(Passage("1", "a"), Passage("2", "b"), Passage("3")))),
        Case(2, "?", "", gold=golds, reply=Reply("x", passages=(Passage("1", "b"),))),
        Case(3, "?", "", gold=golds, reply=Reply(None, error="lost")),
    ]
    options = Options(ks=(1, 3))
    assert count_mismatches(cases, options) == {
        "drm@1": [Mismatch(0, 1), Mismatch(1, 1), None], "drm@3": [Mismatch(1, 2), Mismatch(1, 1), None]
    }  # fmt: skip
    counted = total_mismatches(cases, options)
    assert counted == {"drm@1": Mismatch(1, 2), "drm@3": Mismatch(2, 3)}
    assert pool_mismatches(counted) == {"drm@1": 0.5, "drm@3": pytest.approx(2 / 3)} and pool_mismatches(
        {"x": Mismatch(0, 0)}
    ) == {"x": None}


def test_the_seed_takes_a_text_within_the_other_for_a_match():
    assert (
        matches_seed(" Rent ", "the rent is due") and matches_seed("THE RENT IS DUE", "rent") and matches_seed("", "x")
    )
    assert not matches_seed("keys", "rent")
    case = Case(
        1, "?", "", gold=(GoldPassage("a", "rent"), GoldPassage("a", "keys")),
        reply=Reply("x", passages=(Passage("the keys and rent", "a"), Passage("rent", "a"), Passage("keys", "a"))),
    )  # fmt: skip
    assert match_seed(case, 2) == ([[0, 1], [0]], 2)


# ---------------------------------------------------------------- a run's files


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("It began on 3 May 2019 [1].", ""),
        ("It began on 4 May 2019 [1].", "a date"),
        ("The rent is £4,250 [2].", ""),
        ("The rent is £4,251 [2].", "4251"),
    ],
)
def test_a_date_or_a_number_that_a_passage_bears_out_is_not_made_up(answer, evidence):
    texts = ("This lease begins on 3 May 2019.", "The rent is £4,250.", "Nothing more is said.")
    reply = Reply(answer, tuple(Passage(text, "lease.pdf") for text in texts))
    told = examine(Case(1, "What is agreed?", "?", reply=reply))
    assert (told.verdict == "figures that no passage has") is bool(evidence)
    assert told.evidence.startswith(f"{evidence}: in none of the passages") or not evidence


def test_a_resumed_run_names_the_files_that_are_others_now():
    def changed(then: dict[str, str], now: dict[str, str]) -> list[str]:
        return find_changed_data(Provenance(data={"d": then}), [SimpleNamespace(name="d", digests=now)], {})

    assert changed({"train.json": "1"}, {"train.json": "2"}) == ["d/train.json"]
    whole = {"train.json": "1", "corpus/a.pdf": "1"}
    assert changed(whole, whole) == [] and changed({}, whole) == []
    assert changed({"train.json": "1"}, whole) == ["d/corpus/a.pdf"], "a document that was added"
    assert changed(whole, {**whole, "corpus/b.pdf": "1"}) == ["d/corpus/b.pdf"]


def test_means_are_broken_down_by_kinds_and_by_the_label_that_is_averaged_first():
    def labels_of(groups: str | None) -> list[str]:
        labels = [{"clause": clause, "source": "cuad"} for clause in ("law", "term", "law", "term")]
        made = Table("d", [1, 2, 3, 4], ["a"] * 4, {"map": [0.0, 1.0, 1.0, 1.0]}, (), labels, groups)
        return list(compute_breakdown(made))

    assert labels_of(None) == labels_of("clause") == labels_of("court") == ["clause"]
    assert labels_of("source") == ["clause", "source"]
