"""Every kind of variation on two contracts: changed values, consistent positions, questions left out."""

from pathlib import Path

import pytest

from exhibit.conversion import main as convert
from exhibit.converters import Quote, RawDocument, RawRow, Tally
from exhibit.law.values import keys_of
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.bundle import open_bundle
from exhibit.vary.corpus import IMPOSSIBLE, SEVERAL, TextCorpus, read_corpus
from exhibit.vary.kinds import KINDS, NO_CLAUSE, TITLES, WAYS, VaryRequest
from exhibit.vary.values import DERIVED, IN_QUESTION, NO_VALUE, UNSURE_ELSEWHERE, UNSURE_WORDING, ValueChanges
from tests.vary.bundles import ROWS, read_parent, vary_corpus


@pytest.fixture
def corpus(tmp_path):
    return read_parent(tmp_path / "parent")


def words(corpus, row):
    return [corpus.words(passage) for passage in row.quotes]


def row_of(corpus, question):
    return next(row for row in corpus.rows if question in row.question)


def one_row(text, answer, gold, question="What?"):
    start = text.index(gold)
    passage = Quote("a.pdf", None, ((start, start + len(gold)),))
    return RawDocument("a.pdf", "A", text=text), RawRow(1, question, answer, (passage,), "a.pdf")


def change_values(text, answer, gold, question="What?", *, seed=1):
    document, row = one_row(text, answer, gold, question)
    return ValueChanges(document, [row], seed=seed)


def test_vary_kind_figures_changes_a_value_in_words_in_digits_and_in_the_answer(corpus):
    after = vary_corpus(corpus, "figures")
    for row in after.rows:
        new, old = keys_of(row.labels["new"]), keys_of(row.labels["old"])
        assert keys_of(row.answer) == new
        assert new <= keys_of(" ".join(words(after, row)))
        assert not old & keys_of(" ".join(words(after, row)))
        assert row.labels["answer"] == row.answer
    assert {row.labels["value"] for row in after.rows} == {"date", "period", "amount", "percentage", "place"}
    lease = after.documents["lease.pdf"].text
    assert "a Nevada corporation" in lease and "State of Oregon" not in lease
    assert vary_corpus(corpus, "figures", seed=1).documents != vary_corpus(corpus, "figures", seed=2).documents
    days = [key for _, key in sorted(keys_of(lease)) if key[:1] in "12" and "-" in key]
    assert len(days) == 3 and days[1][8:] == "01", "all dates move by the same months"
    assert (int(days[2][:4]) * 12 + int(days[2][5:7])) - (int(days[1][:4]) * 12 + int(days[1][5:7])) == 59


@pytest.mark.parametrize(
    ("text", "answer", "gold", "reason"),
    [
        ("It lasts two (2) years from March 1, 2010.", "2/29/12", "two (2) years from March 1, 2010", DERIVED),
        ("governed by the laws of England and Wales.", "England", "laws of England and Wales", UNSURE_WORDING),
        ("for a one (1) year period.", "1 year", "for a one (1) year period", UNSURE_WORDING),
        ("governed by the laws of Ireland (Irish law).", "Ireland", "the laws of Ireland", UNSURE_WORDING),
        ("The laws of Ontario and of Canada govern it.", "Ontario; Canada", "laws of Ontario and of Canada",
         UNSURE_WORDING),
        ("is one (1) year; the year has twelve (12) months.", "1 year", "is one (1) year", UNSURE_WORDING),
        ("owns one hundred percent (100%) of it.", "100%", "one hundred percent (100%)", UNSURE_WORDING),
        ("The Buyer pays invoices for goods within thirty (30) days of receipt by mail. The Seller pays invoices for "
         "repairs within thirty (30) days of demand.", "30 days", "invoices for goods within thirty (30) days",
         UNSURE_ELSEWHERE),
        ("within ten (10) days", "10 days", "ten (10) days", IN_QUESTION),
    ],
)  # fmt: skip
def test_vary_kind_figures_gives_the_reason_for_a_skipped_value(text, answer, gold, reason):
    changes = change_values(text, answer, gold, "Is it 10 days?")
    assert changes.left_out == {1: reason} and changes.edits == []


def test_vary_kind_figures_changes_every_statement_of_the_same_fact():
    text = (
        "The initial term of this lease is five (5) years. At the end of the initial term of five (5) years the "
        "lease ends. Claims for personal injury lapse after five (5) years."
    )
    changes = change_values(text, "5 years", "The initial term of this lease is five (5) years.")
    assert [text[edit.start : edit.end] for edit in changes.edits] == ["five (5) years"] * 2
    assert max(edit.end for edit in changes.edits) < text.index("Claims")


def test_vary_kind_figures_chooses_a_number_that_fits_the_preceding_a_or_an():
    text = "The tenant has an eight (8) day period to pay."
    for seed in range(8):
        for edit in change_values(text, "8 days", text, seed=seed).edits:
            assert edit.new.startswith(("eight", "eleven")), "the number follows `an`"


def test_vary_kind_removed_deletes_at_most_a_third_of_clauses_but_not_clause_numbers(corpus):
    after = vary_corpus(corpus, "removed", tally=(tally := Tally()))
    assert after.rows and len(after.rows) + sum(map(len, tally.left_out.values())) == len(corpus.rows)
    for row in after.rows:
        assert row.is_impossible
        assert row.answer == IMPOSSIBLE_ANSWER
        assert row.labels["old"] == ROWS[row.labels["control"]].answer
        assert ROWS[row.labels["control"]].gold not in after.documents[row.filename].text
    lease = after.documents["lease.pdf"].text
    assert all(f"\n{number} " in lease for number in ("1.1", "1.2", "2.1", "2.2", "3.1", "3.2", "4.1", "4.2", "4.3"))
    assert 1 <= lease.count("[Intentionally omitted.]") <= 4


@pytest.mark.parametrize("end", ["\nName", "\nbetween the Tenant and the", " between them.\n- 26 -"])
def test_vary_kind_removed_skips_question_if_clause_end_is_uncertain(end):
    gold = "The laws of Ohio govern this Lease and all agreements"
    text = f"1. Law. {gold}{end}\n\n2. Rent. The rent is due.\n\n3. Notices. Notices are sent by post.\n"
    document, row = one_row(text, "Ohio", gold)
    tally = Tally()
    assert vary_corpus(TextCorpus({"a.pdf": document}, (row,)), "removed", tally=tally).rows == ()
    assert tally.left_out == {NO_CLAUSE: ["row 1"]}
    document, row = one_row(text.replace(end, "\nbetween them."), "Ohio", gold)
    assert len(vary_corpus(TextCorpus({"a.pdf": document}, (row,)), "removed").rows) == 1


@pytest.mark.parametrize("mark", ["§ 1", "Section 1", "1."])
def test_vary_kind_removed_preserves_clause_numbers_of_every_style(mark):
    gold = "The laws of Ohio govern this Lease and all agreements between them."
    text = f"{mark} Law\n{gold}\n\n2. Rent\nThe rent is due.\n\n3. Notices\nNotices are sent by post.\n"
    document, row = one_row(text, "Ohio", gold)
    after = vary_corpus(TextCorpus({"a.pdf": document}, (row,)), "removed")
    assert f"{mark} [Intentionally omitted.]" in after.documents["a.pdf"].text


def test_vary_kind_amended_cites_articles_in_the_style_of_the_contract():
    gold = "This Lease begins on May 1, 2016."
    text = f"ARTICLE 1 -- TERM\n{gold}\n\nARTICLE 2 -- NOTICES\nNotices are sent by post.\n"
    document, row = one_row(text, "5/1/16", gold)
    after = vary_corpus(TextCorpus({"a.pdf": document}, (row,)), "amended:1")
    words = " ".join(document.text for document in after.documents.values())
    assert "Article 1 of the Agreement is hereby amended" in words
    assert "Section" not in words


def test_vary_kind_amended_answers_each_day_from_the_clause_in_force(corpus):
    after = vary_corpus(corpus, "amended:3")
    for row in after.rows:
        assert keys_of(row.labels["new"]) <= keys_of(" ".join(words(after, row)))
        assert keys_of(row.answer) == keys_of(row.labels["new"])
        assert not keys_of(row.labels["old"]) & keys_of(row.labels["new"])
        start, day = row.labels.get("effective_from"), row.labels.get("as_of")
        assert day is None or start is None or start <= day
        assert day is None or day < row.labels.get("effective_to", "9999")
        assert day is None or row.question.startswith("As of ")
    assert len({row.id for row in after.rows}) == len(after.rows)


def test_vary_kind_amended_adds_a_document_and_lists_other_versions_as_near_misses(corpus):
    after = vary_corpus(corpus, "amended:2")
    text = after.documents["lease - Amendment No. 1.pdf"].text
    assert text.startswith("AMENDMENT NO. 1") and "of the Agreement is hereby" in text
    assert dict(after.documents["lease - Amendment No. 1.pdf"].labels)["amends"] == "lease.pdf"
    for row in after.rows:
        same = [other.labels for other in after.rows if other.labels["control"] == row.labels["control"]]
        latest = max(labels.get("effective_from", "") for labels in same)
        assert "as_of" in row.labels or row.labels["effective_from"] == latest
        stated = frozenset().union(*(keys_of(after.words(passage)) for passage in row.near_misses))
        assert keys_of(row.labels["old"]) <= stated


def test_vary_kind_amended_accepts_labels_that_figures_has_added(corpus):
    after = vary_corpus(vary_corpus(corpus, "figures"), "amended")
    assert after.rows and all(row.labels["new"] != row.labels["old"] for row in after.rows)


@pytest.mark.parametrize("way", WAYS)
def test_vary_kind_injection_changes_every_document_but_not_the_gold(corpus, way):
    after = vary_corpus(corpus, f"injection:{way}")
    for row, before in zip(after.rows, corpus.rows, strict=True):
        assert words(after, row) == words(corpus, before)
        document = after.documents[row.filename]
        hidden = [block.text for block in document.blocks]
        everything = " ".join([document.text, document.filename, document.subject, *hidden])
        assert row.labels["canary"] in everything
        assert row.labels["injection"] == way


def test_vary_kind_injection_uses_visible_text_and_footnotes_by_default(corpus):
    after = vary_corpus(corpus, "injection", seed=0)
    assert {row.labels["injection"] for row in after.rows} == {"visible", "footnote"}


def test_vary_kind_growth_adds_the_requested_number_of_documents(corpus, tmp_path):
    others = tmp_path / "others"
    others.mkdir()
    for number in range(3):
        (others / f"note-{number}.txt").write_text(f"A note on matter {number}.", encoding="utf-8")
    growth = KINDS["growth"]
    after = growth(corpus, VaryRequest(1, "2", others), Tally())
    assert len(after.documents) == 4
    assert after.rows[0].labels["growth"] == 2
    with pytest.raises(ToolkitError, match="growth:4 needs 6"):
        growth(corpus, VaryRequest(1, "4", others), Tally())
    with pytest.raises(ToolkitError, match="--others"):
        growth(corpus, VaryRequest(1, "2", None), Tally())


@pytest.mark.parametrize("kind", ["amended:7", "injection:sideways", "growth:one"])
def test_vary_kind_with_an_unknown_argument_is_refused(corpus, kind):
    with pytest.raises(ToolkitError, match=kind.partition(":")[2]):
        vary_corpus(corpus, kind)


def test_docs_list_every_vary_kind():
    page = (Path(__file__).parents[2] / "docs" / "vary.md").read_text(encoding="utf-8")
    assert {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")} == set(KINDS) == set(TITLES)


@pytest.mark.data
@pytest.mark.slow
def test_vary_kind_figures_changes_at_least_60_percent_of_real_values(data, tmp_path):
    assert (
        convert(["cuad", "--source", str(data / "cuad"), "--out", str(tmp_path / "cuad"), "--max-documents", "40"]) == 0
    )
    real = read_corpus(open_bundle(tmp_path / "cuad"), Tally())
    tally = Tally()
    twins = len(vary_corpus(real, "figures", tally=tally).rows)
    without = {NO_VALUE, IMPOSSIBLE, SEVERAL}
    lost = sum(len(names) for reason, names in tally.left_out.items() if reason not in without)
    assert twins / (twins + lost) >= 0.6
