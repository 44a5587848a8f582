"""Citation metrics: the scenarios of the original framework, and cases that it scored wrongly."""

from typing import Any

import pytest

from exhibit.evaluation.cases import Case, GoldPassage, Passage
from exhibit.evaluation.metrics import Options
from exhibit.law.references import ReferenceCorpus
from tests.evaluation.metrics.build import apply, at, case, gold


def row(
    truth: str, answer: str | None, *, files: tuple[str, ...] = (), gold: tuple[str, ...] = (), **fields: Any
) -> Case:
    """Return a case whose reply has a passage from each of `files`, cited as `[1]`, `[2]` …, and these gold files."""
    golds, passages = [GoldPassage(file, None) for file in gold], [Passage("text", file) for file in files]
    return case(golds, passages, truth=truth, answer=answer, **fields)


def score(metric: str, truth: str, answer: str | None, **fields: Any) -> float | None:
    """Return the value of a metric for one case."""
    return apply(metric, [row(truth, answer, **fields)])[metric][0]


STATUTES, CASES, TERMS = "statute_citation_accuracy", "case_law_citation_accuracy", "legal_terminology_accuracy"
FORMAT, PRECEDENT = "citation_format_compliance", "precedent_matching"
OFFER = "An offer may be made. [Part 36#page=Offers to Settle]"


@pytest.mark.parametrize(
    ("metric", "truth", "answer", "value"),
    [
        (STATUTES, "By section 33 of the Limitation Act 1980 it may.", "Section 33 of the Limitation Act 1980.", 1.0),
        (STATUTES, "See Part 26 and rule 28.2.", "Part 26 applies.", 0.5),
        (STATUTES, "See Part 36.", "An offer may be made.", 0.0),
        (STATUTES, "See Part 36.", None, None),
        (STATUTES, "An offer may be made.", "See Part 36.", None),
        (STATUTES, "Under rule 28.2 and CPR 28.3; disclosure under Part 31.", "CPR 28.2 and 28.3; rule 31.5 [1].", 1.0),
        (STATUTES, "Part 24 and Practice Direction 24 paragraph 2.", "See Part 24 and PD 24.", 0.75),
        (STATUTES, "Sections 2 and 33 of the Limitation Act 1980.",
         "See Limitation Act 1980, s 2, and s.33 Limitation Act 1980", 1.0),
        (STATUTES, "According to Commercial Court Guide section O.5.1 it is.",
         "See section O.5.1 of the Commercial Court Guide.", 1.0),
        (STATUTES, "According to TCC Guide section 6.1.1 it is.",
         "Technology and Construction Court Guide, paragraph 6.1.1.", 1.0),
        (STATUTES, "See Practice Direction 28 and Part 36.", "See practice direction  28 and PART\n36.", 1.0),
        (STATUTES, "Part 36, Part 36 and Part 44.", "Part 36", 0.5),
        (STATUTES, "for 28 days", "rule 28", None),
        (STATUTES, "Under rule 3.4 it is.", "within Part 3", 0.5),
        (STATUTES, "Under rule 3.4(2) it is.", "under rule 3.4(6)", 0.0),
        (STATUTES, "Under Part 36 it is.", "under CPR 36.5", 1.0),
        (STATUTES, "Under Part 1 of the Act it is.", "Part 1", None),
        (STATUTES, "Parts 44 to 47 apply.", "Parts 44 and 45 apply.", 0.5),
        (STATUTES, "It is. [Practice Direction 34 A - Depositions]", "PD 34A", None),  # a source, not a reference
        (STATUTES, "Annex E provides it.", "See Annex E to the Patents Court Guide.", 1.0),
        (CASES, "[2024] EWHC 789 (Ch)", "[2024] EWHC 789 (Admin)", 0.0),
        (CASES, "[2024] EWHC 789 (Ch)", "[2024] EWHC\n789 (Ch) at [3]", 1.0),
        (CASES, "As held in [2023] EWCA Civ 456.", "The court in [2023] EWCA Civ 456 established it.", 1.0),
        (CASES, "As held in [2023] EWCA Civ 456.", "See [2023] EWCA Civ 457.", 0.0),
        (CASES, "See [2024] EWCA Civ 1, [2023] EWCA Crim 2 and [2019] UKSC 5.",
         "See [2024] EWCA Civ 1, [2023] EWCA Civ 2 and [2019] UKSC 5.", 2 / 3),
        (TERMS, "The claimant must serve disclosure.", "The claimant should provide disclosure under Part 31.", 1.0),
        (TERMS, "The claimant must serve disclosure.", "The plaintiff must provide discovery.", 0.0),
        (TERMS, "The claimant's solicitor gives disclosure before judgment.",
         "The claimant's attorney gives disclosure before judgment.", 0.75 * 0.5),
        (TERMS, "The claimant applied ex parte.", "The claimant applied ex parte.", 1.0),
        (TERMS, "It depends.", "The plaintiff wins.", None),
        (TERMS, "QOCS protects the claimant.", "Qualified one-way costs shifting protects a claimant.", 1.0),
        (TERMS, "Allocated to the small claims track, the fast track or the multi-track.",
         "There is a fast track and a multi-track.", 2 / 3),
        (FORMAT, "", "It is so [1][2][3]. See [Part 36#page=Offers].", 1.0),
        (FORMAT, "", "It is so [1]. And so [2, 3].", 0.5),
        (FORMAT, "", "First [1]. Second [2-4]. Third. 5, 6, 7", 1 / 3),
        *((FORMAT, "", f"It is so {bad}.", 0.0) for bad in ("[1,2,3]", "[1-3]", "[1]-[3]", "[1; 2]", "[1 and 2]")),
        (PRECEDENT, OFFER, "Under Part 36 [Part 36#page=Offers to Settle], a party may make an offer.", 1.0),
        (PRECEDENT, OFFER, "Under Part 36, a party may make an offer.", 0.0),
        (PRECEDENT, "It was held in [2019] UKSC 5 [1].", "[Part 36]", None),
        (PRECEDENT, "The term is five years […] and [***] may be renewed [•].", "Five years [1].", None),
    ],
)  # fmt: skip
def test_citation_metrics_equal_expected_values(
    metric: str, truth: str, answer: str | None, value: float | None
) -> None:
    assert score(metric, truth, answer) == (value if value is None else pytest.approx(value))


METRICS = [STATUTES, CASES, TERMS, FORMAT, PRECEDENT, "citations_matched", "references_exist"]
RICH = "The claimant cites CPR 3.4 and [2019] UKSC 5. [Part 3#page=Strike out]"


@pytest.mark.parametrize("metric", METRICS)
def test_citation_metrics_are_none_for_missing_replies_and_errors(metric: str) -> None:
    rows = [row(RICH, None), row(RICH, RICH, error="timed out")]
    for values in apply(metric, rows, Options(in_corpus=ReferenceCorpus.of([RICH]).contains)).values():
        assert values == [None, None]
    assert score(metric, "", "") is None
    assert score(metric, RICH, "") == (None if metric in (FORMAT, "references_exist") else 0.0)


@pytest.mark.parametrize(("answer", "faults"), [
    ("The Attorney General intervened.", 0), ("An attorney may sign.", 1),
    ("A lasting power of attorney, or a patent attorney.", 0), ('The form says "plaintiff" and “discovery”.', 0),
    ("The old word was 'plaintiff'; the claimant's word is new.", 0),
    ("It was decided in Discovery Land Co v Axis, on appeal.", 0), ("Discovery must be given.", 1),
    ("The Plaintiff must give Discovery.", 2), ("Plaintiff Smith appealed.", 1),
    ("Time runs from the discovery of the fraud.", 0), ("The judgement was entered; a value judgement was not.", 1),
    ("R v Bow Street Magistrates, ex parte Pinochet was cited.", 0),
    ("An ex parte application by the plaintiff, the plaintiffs and their attorneys.", 3),
    ("They filed a motion to dismiss.", 1), ("A deposition may be taken under Part 34.", 0),
])  # fmt: skip
def test_legal_terminology_accuracy_halves_score_for_each_us_term(answer: str, faults: int) -> None:
    value = score(TERMS, "The claimant appeals.", f"{answer} The claimant appeals.")
    assert value == 0.5**faults


def test_seed_parity_penalises_the_terms_lawyer_and_settlement_offer() -> None:
    rows = [row("The claimant appeals.", "The claimant's lawyer made a settlement offer.")]
    for parity, value in (("", 1.0), ("seed", 0.25)):
        values = apply("legal_terminology_accuracy", rows, Options(parity=parity))
        assert values["legal_terminology_accuracy"] == [value]


@pytest.mark.parametrize(("answer", "value"), [
    ("The sum is £10,000,000.", None), ("Rules 3, 4 and 5 apply.", None),
    ("See [2024] EWCA Civ 123 at [45]-[48], and at para [3].", None), ("1. First\n2. Second", None),
    ("The rule is met. 1, 2, 3", 0.0), ("The rule is met. 1, 2 The next one is not.", 0.0),
    ("The rule is met. 14 days later it was not.", None), ("The years were bad. 1, 200 people left.", None),
    ("Met [1]. See [Part 36#page=Offers].", 1.0), ("See [guide.pdf] and [1, 2].", 0.5),
    ("It was held in [2019] UKSC 5 that it is [1].", 1.0), ("The [claimant] wins.", None),
])  # fmt: skip
def test_citation_format_compliance_distinguishes_citations_from_other_text(answer: str, value: float | None) -> None:
    assert score(FORMAT, "", answer) == value


@pytest.mark.parametrize(
    ("source", "cited", "value", "seed"),
    [
        ("Part 36#page=Offers to Settle", "PART 36#page=Offers  to settle", 1.0, 1.0),
        ("Practice Direction 34 A - Depositions", "PD 34A – Depositions", 1.0, 1.0),
        ("J. Trial, J.5 Reading lists (p. 102)", "J. Trial, J.5 Reading lists", 1.0, 1.0),
        ("Part 36#page=Offers to Settle", "Part 36", 0.95, 0.95),
        ("Part 36", "Part 3", 0.9 / 3, 0.75 + 0.15 / 3),  # not contained: the numbers are words
        ("Hearings in private", "Open justice and the media", 0.0, 0.75),  # one topic, no word
        ("Trial bundles and lists", "Reading lists", 0.9 / 4, 0.75 + 0.15 / 4),
        ("Costs budgets", "Open justice", 0.0, 0.0),
    ],
)
def test_precedent_matching_compares_cited_source_with_truth(
    source: str, cited: str, value: float, seed: float
) -> None:
    rows = [row(f"So it is. [{source}]", f"It is [{cited}].")]
    assert apply(PRECEDENT, rows)[PRECEDENT] == [pytest.approx(value)]
    assert apply(PRECEDENT, rows, Options(parity="seed"))[PRECEDENT] == [pytest.approx(seed)]


@pytest.mark.parametrize(("answer", "value"), [("It is [2].", 1.0), ("It is [1].", 0.0), ("It is [9].", 0.0)])
def test_precedent_matching_resolves_citations_by_number(answer: str, value: float) -> None:
    files = ("Part 36.pdf", "Commercial_Court_Guide.pdf")
    case = row("So it is. [J. Trial, J.5 Reading lists (p. 102)]", answer, files=files, gold=files[1:])
    assert apply(PRECEDENT, [case])[PRECEDENT] == [value]


@pytest.mark.parametrize(("answer", "value"), [
    ("First [1]. Second [2].", 1.0), ("First [1].", 0.5), ("First [3].", 0.0),
    ("First [Part 36#page=Offers]. Second [part 44.pdf].", 1.0), ("First [Part 3].", 0.0),
    ("Part 36.pdf says so.", 0.0),
])  # fmt: skip
def test_citations_matched_is_share_of_gold_files_cited(answer: str, value: float) -> None:
    files = ("Part 36.pdf", "Part 44.pdf", "Part 3.pdf")
    assert score("citations_matched", "It is so.", answer, files=files, gold=("Part 36.pdf", "Part 44.pdf")) == value


def test_citations_matched_accepts_source_name_that_the_expected_answer_cites() -> None:
    truth = "It is so. [Offers to Settle]"
    assert score("citations_matched", truth, "So [Offers to settle].", gold=("Part 36.pdf",)) == 1.0
    assert score("citations_matched", truth, "So [1].", gold=("Part 36.pdf",), files=("Part 36.pdf",)) == 1.0
    assert score("citations_matched", truth, "So [Offers to settle].") == 1.0
    assert score("citations_matched", "Nothing", "So [1].", gold=("Part 36.pdf",), is_impossible=True) is None


def test_references_exist_is_share_of_references_in_corpus() -> None:
    corpus = ReferenceCorpus.of(["PART 36 - OFFERS\n\n36.5\n\n(1) An offer must be in writing.\n"])
    answers = ["See Part 36 and CPR 36.5(1).", "See rule 36.5 and rule 36.99.", "See rule 99.1.", "It is so.", None]
    values = apply("references_exist", [row("", answer) for answer in answers], Options(in_corpus=corpus.contains))
    assert values == {"references_exist": [1.0, 0.5, 0.0, None, None]}
    assert apply("references_exist", [row("", "Part 36")], Options()) == {"references_exist": [None]}, "without corpus"


@pytest.mark.parametrize(("answer", "expected"), [
    ("The rent is £900 [1].", 1), ("The rent is £900 [1][2].", 1), ("The rent is £900 [1, 2].", 1),
    ("Offers are made in writing [Part 36#page=Offers to Settle].", 1),
    ("The rent is £900 [Lease of Mill House.pdf].", 1), ("The rent is £900 [lease].", 1),
    ("The rent is £900 [LEASE.pdf].", 1), ("The term is set out there [nda].", 1),
    ("The rent is [amount] and the fee is [***].", 0), ("See [2024] EWCA Civ 123 at [45].", 0),
    ("The rent is £900.", 0), ("", 0), ("Not found in provided documents.", None), (None, None),
])  # fmt: skip
def test_any_citation_detects_numbers_and_file_names(answer, expected):
    row = case([gold((0, 9))], [at(0, 9, "nda.txt")], answer=answer)
    assert apply("any_citation", [row]) == {"any_citation": [expected]}


def test_answer_length_and_latency_are_none_for_missing_answers_and_errors():
    rows = [
        case(answer="£900 [1]", seconds=0.25),
        case(answer="", seconds=0.0),
        case(),
        case(answer="£900", seconds=0.25, error="no reply"),
    ]
    assert apply("answer_length", rows) == {"answer_length": [8, 0, None, None]}
    assert apply("latency", rows) == {"latency": [0.25, 0, None, None]}
    assert apply("any_citation", rows) == {"any_citation": [1, 0, None, None]}
