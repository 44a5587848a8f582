"""Citations: found in any form, assigned to their claims, and checked against the sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Span
from exhibit.law.citations import Claim, claims_of, find_citations, normalise, verify
from exhibit.law.figures import find_figures, has_missing_figures
from exhibit.law.language import list_content_words, stem
from exhibit.law.refusals import is_refusal
from exhibit.law.sentences import split_sentences
from exhibit.rag.protocols import Chunk, Hit, Source
from exhibit.schemas import IMPOSSIBLE_ANSWER


@pytest.mark.parametrize(
    ("text", "numbers", "well_formed"),
    [
        ("It ends [1].", [(1,)], [True]),
        ("It ends [1][2].", [(1,), (2,)], [True, True]),
        ("It ends [1, 2].", [(1, 2)], [False]),
        ("It ends [1-3] or [4–5].", [(1, 2, 3), (4, 5)], [False, False]),
        ("It ends [3-1].", [(1, 2, 3)], [False]),
        ("It ends [1; 2 and 3].", [(1, 2, 3)], [False]),
        ("It ends [ 2 ].", [(2,)], [False]),
        ("It ends [1, 1].", [(1,)], [False]),
        ("It ends [1-400].", [(1, 400)], [False]),
        ("See [2024] EWCA Civ 123 at [45], followed in [1998] 1 WLR 896 [2].", [(2,)], [True]),
        ("The fee is [***] for Rules 3, 4 and 5, or [amount].", [], []),
        ("", [], []),
    ],
)
def test_citations_are_found(text, numbers, well_formed):
    found = find_citations(text)
    assert [citation.numbers for citation in found] == numbers
    assert [citation.well_formed for citation in found] == well_formed


def test_malformed_citations_are_put_right():
    assert normalise("A [1, 2]. B [2-4]. C [5].") == "A [1][2]. B [2][3][4]. C [5]."


@given(st.text(alphabet="ab [],-123.\n", max_size=60))
def test_putting_right_is_done_once(text):
    once = normalise(text)
    assert normalise(once) == once
    assert all(citation.well_formed for citation in find_citations(once))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The term is two years. The fee is fixed.", ["The term is two years.", "The fee is fixed."]),
        ("Acme Inc. signed it. Bolt Ltd. did not.", ["Acme Inc. signed it.", "Bolt Ltd. did not."]),
        ("It binds Acme Inc. The fee is fixed.", ["It binds Acme Inc.", "The fee is fixed."]),
        ("Under s. 33 of the Act it fails. See No. 5.", ["Under s. 33 of the Act it fails.", "See No. 5."]),
        ("No. The licence is not exclusive.", ["No.", "The licence is not exclusive."]),
        ("Mr. Hale v. Dr. Stone was settled.", ["Mr. Hale v. Dr. Stone was settled."]),
        ("The rate is 3.5 per cent. It rises.", ["The rate is 3.5 per cent.", "It rises."]),
        ("Goods made in the U.S. Army base are out.", ["Goods made in the U.S. Army base are out."]),
        ("It is due on Jan. 5. Payment is by wire.", ["It is due on Jan. 5.", "Payment is by wire."]),
        ("3. Term. The term is a year.", ["3. Term.", "The term is a year."]),
        (
            "Goods, e.g. Widgets, are sold.\nThey wrap\nover lines.",
            ["Goods, e.g. Widgets, are sold.", "They wrap\nover lines."],
        ),
        ("Either party may:\n- end it\n- renew it", ["Either party may:", "- end it", "- renew it"]),
        ("Duties:\n(a) pay\n(b) deliver", ["Duties:", "(a) pay", "(b) deliver"]),
        ("TERM\n\nTwo years", ["TERM", "Two years"]),
        ("It ends. [1] The fee is fixed. [2]", ["It ends. [1]", "The fee is fixed. [2]"]),
        ("It ends.[1] The fee is fixed.[2]", ["It ends.[1]", "The fee is fixed.[2]"]),
        ("It ends in May. [2] says June.", ["It ends in May.", "[2] says June."]),
        ("It binds Acme Inc. [1] The fee is fixed [2].", ["It binds Acme Inc. [1]", "The fee is fixed [2]."]),
        ("It binds Acme Inc. [1] and its heirs.", ["It binds Acme Inc. [1] and its heirs."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        (
            "Podle § 8 odst. 1 zákona č. 89/2012 Sb. tu neplatí. Konec.",
            ["Podle § 8 odst. 1 zákona č. 89/2012 Sb. tu neplatí.", "Konec."],
        ),
        ("Das folgt aus Abs. 2 Nr. 3. Es gilt.", ["Das folgt aus Abs. 2 Nr. 3.", "Es gilt."]),
        ("Richard N. Smith signed.", ["Richard N. Smith signed."]),
        (" \n ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, expected):
    assert [text[span.start : span.end] for span in split_sentences(text)] == expected


@given(st.text(alphabet="aA .!?\n[1]()-’No,;", max_size=80))
def test_sentences_cover_all_but_white_space_in_order(text):
    end = 0
    for span in split_sentences(text):
        assert span.start >= end and not text[end : span.start].strip()
        assert text[span.start : span.end] == text[span.start : span.end].strip() != ""
        end = span.end
    assert not text[end:].strip()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The term [1] is two years.", [("The term is two years.", (1,))]),
        ("The term is two years [1].", [("The term is two years.", (1,))]),
        ("The term is two years. [1]", [("The term is two years.", (1,))]),
        ("The term is two years.[1][3]", [("The term is two years.", (1, 3))]),
        ("Yes. The licence is exclusive [2].", [("The licence is exclusive.", (2,))]),
        ("Yes [2].", [("Yes.", (2,))]),
        ("Yes.", []),
        (
            "Acme Inc. pays 5% [1]. Under s. 33 it stops [2].",
            [("Acme Inc. pays 5%.", (1,)), ("Under s. 33 it stops.", (2,))],
        ),
        ("The duties are:\n- to pay rent [1]\n- to **insure** [2]", [("to pay rent", (1,)), ("to insure", (2,))]),
        (
            "1. Rent is due monthly [1]\n2. Deposit is due at once [1, 2]",
            [("Rent is due monthly", (1,)), ("Deposit is due at once", (1, 2))],
        ),
        ("# Term\n\nThe term is two years.\n\n[1]", [("The term is two years.", (1,))]),
        ("The term is two years. The fee is fixed [1].", [("The term is two years.", ()), ("The fee is fixed.", (1,))]),
    ],
)
def test_claims_carry_their_citations(answer, expected):
    assert [(claim.text, claim.citations) for claim in claims_of(answer)] == expected


def test_malformed_citations_are_reported_with_their_claim():
    assert claims_of("It ends in May [1, 2].")[0].malformed == ("[1, 2]",)


# ---------------------------------------------------------------- checking


def source(
    number: int, text: str, *, document: str = "lease.pdf", section: str = "", page: int | None = None
) -> Source:
    return Source(number, Hit(Chunk(document, Span(0, len(text)), section, page), 0.5, text))


SOURCES = (
    source(1, "The initial term of this Lease shall commence on March 14, 2019 and continue for two (2) years."),
    source(2, "Tenant shall pay a late charge of five percent (5%) of any instalment overdue by more than ten days."),
    source(
        3, "Landlord may terminate this Lease upon thirty days' written notice.", section="9 > 9.2 Termination", page=7
    ),
    source(4, "The aggregate liability of either party shall not exceed $10,000,000."),
)


@pytest.mark.parametrize(
    ("claim", "cited", "holds"),
    [
        ("The initial term begins on 14 March 2019 and lasts 2 years.", (1,), True),
        ("The initial term continues for two years.", (1,), True),
        ("The initial term continues for three years.", (1,), False),
        ("The initial term commences on 15 March 2019.", (1,), False),
        ("The term commences in March 2019.", (1,), True),
        ("The initial term commences on 3/14/2019.", (1,), True),
        ("A late charge of 5% applies to overdue instalments.", (2,), True),
        ("A late charge of 6% applies to overdue instalments.", (2,), False),
        ("Section 9.2 lets the landlord terminate on 30 days' notice (page 7).", (3,), True),
        ("Liability is capped at $10 million in the aggregate for either party.", (4,), True),
        ("Liability of either party is capped at $1 million in the aggregate.", (4,), False),
        ("The initial term continues for two years.", (2,), False),
        ("The initial term continues for two years.", (9,), False),
        ("The initial term continues for two years.", (), False),
        ("The initial term continues for two years.", (9, 1), True),
        ("After the two year term, a late charge of 5% is due on overdue instalments.", (1, 2), True),
        ("Arbitration takes place in Geneva before three arbitrators.", (1, 2, 3, 4), False),
        ("Yes.", (1,), True),
    ],
)
def test_a_claim_holds_by_its_words_and_figures(claim, cited, holds):
    verdict = verify([Claim(claim, cited)], SOURCES)
    assert verdict.unsupported == (() if holds else (claim,))
    assert bool(verdict.citations) is holds
    assert set(verdict.citations) <= set(cited) & {1, 2, 3, 4}


def test_only_the_citations_that_bear_a_claim_out_are_valid():
    verdict = verify([Claim("The initial term of the Lease commences on March 14, 2019.", (1, 2))], SOURCES)
    assert verdict.citations == (1,) and not verdict.unsupported


def test_two_sources_with_the_same_few_words_do_not_add_up():
    few = (source(1, "Landlord paints the walls."), source(2, "Landlord sweeps the floor."))
    assert verify([Claim("Landlord stores hazardous chemicals.", (1, 2))], few) == (
        (),
        ("Landlord stores hazardous chemicals.",),
    )


def test_a_quote_that_ends_in_the_next_source_is_borne_out_by_both():
    cut = (
        source(1, "4.5 The Seller bears all costs:"),
        source(2, "(i) of a recall after delivery; (ii) of repairs; or (iii) of labels that break local law, up to"),
        source(3, "EUR 900. Nothing else is due."),
        source(4, "Dogs are kept on a lead."),
    )
    quote = " ".join([cut[0].text, cut[1].text, "EUR 900."])
    assert verify([Claim(quote, (1, 2, 3))], cut) == ((1, 2, 3), ())
    assert verify([Claim(quote, (1, 2, 4))], cut) == ((), (quote,)), "no cited source has the amount"
    assert verify([Claim(quote, (1, 2, 3, 4))], cut).citations == (1, 2, 3), "the fourth has nothing of it"


def test_what_the_question_says_is_neither_for_nor_against_a_claim():
    claim = Claim("The Harrow and Bright Supply Agreement of 2017 continues for two years.", (1,))
    assert verify([claim], SOURCES).unsupported
    question = "Consider the Harrow and Bright Supply Agreement of 2017; how long does it last?"
    assert not verify([claim], SOURCES, given=question).unsupported


@pytest.mark.parametrize(
    ("claim", "evidence", "agrees"),
    [
        ("30 days", "thirty (30) days", True),
        ("thirty days", "30 days", True),
        ("one party", "the parties", True),  # a pronoun
        ("1 year", "one year", True),
        ("twenty-five units", "25 units", True),
        ("180 days", "one hundred eighty days", True),
        ("clauses two and three", "clauses 2 and 3", True),
        ("five", "clauses two and three", False),
        ("£1,500", "1500 pounds", True),
        ("2.5 million", "2,500,000", True),
        ("5.00", "5", True),
        ("section 5.10", "section 5.1", False),
        ("1 May 2020", "the 1st day of May, 2020", True),
        ("2020-05-01", "May 1, 2020", True),
        ("01/02/2020", "2 January 2020", True),  # the American reading
        ("01/02/2020", "3 January 2020", False),
        ("in 2020", "May 1, 2020", True),
        ("May 1, 2020", "May 2020", False),
        ("the parties may 5 times", "five times", True),
        ("no figures", "", True),
    ],
)
def test_figures_agree_however_they_are_written(claim, evidence, agrees):
    assert has_missing_figures(find_figures(claim), find_figures(evidence)) is not agrees


@given(st.text(alphabet="0123456789 ,./-amyn", max_size=40))
def test_a_text_agrees_with_itself(text):
    assert not has_missing_figures(find_figures(text), find_figures(text))


@pytest.mark.parametrize(
    "family",
    [
        "terminate terminated terminates terminating termination",
        "expire expires expired expiration expiry",
        "renew renews renewal renewed",
        "assign assigned assignment assigns",
        "indemnify indemnification indemnity indemnified",
        "disclose disclosure disclosing disclosed",
        "agree agreed agreement agreements",
        "exclusive exclusivity exclusively",
        "date dates dated",
        "party parties party's",
    ],
)
def test_words_of_one_family_have_one_stem(family):
    assert len({stem(word) for word in family.split()}) == 1


def test_small_words_and_numbers_carry_no_content():
    assert list(list_content_words("Shall the Parties, pursuant to 5.2 hereof, pay the Company’s fee?")) == [
        "part",
        "pay",
        "compan",
        "fee",
    ]


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (IMPOSSIBLE_ANSWER, True),
        (IMPOSSIBLE_ANSWER + ".", True),
        ('"not found in provided documents"', True),
        ("**Not found in the provided documents.**", True),
        ("The answer is not found in the provided sources.", True),
        ("The information was not found in the documents provided. They concern rent only [1].", True),
        ("Not found in provided documents [1].", True),
        ("I am sorry. Not found in provided documents.", True),
        ("The term is two years [1]. The fee was not found in the provided documents.", False),
        ("Goods not found in the documents of title are excluded from the sale [1].", False),
        ("The term is two years [1].", False),
        ("", False),
    ],
)
def test_refusals_are_recognised(text, refused):
    assert is_refusal(text) is refused


# ---------------------------------------------------------------- edges


def test_a_range_of_thirty_sources_is_its_ends():
    assert len(find_citations("[1-30]")[0].numbers) == 30
    assert find_citations("[1-31]")[0].numbers == (1, 31)


@pytest.mark.parametrize(("length", "count"), [(40, 0), (41, 1)])
def test_a_paragraph_of_a_judgment_is_no_citation_near_its_year(length, count):
    assert len(find_citations(f"[2024]{'x' * length} at [45]")) == count
    assert len(find_citations(f"{'y' * 60}[2024] EWCA Civ 1 at [45]")) == 0


def test_citations_alone_go_to_the_last_claim():
    first, second = claims_of("Rent is due [1]. Fees are due [2, 3].\n\n[4, 5]\n\n[5][2].")
    assert (first.citations, first.malformed) == ((1,), ())
    assert (second.citations, second.malformed) == ((2, 3, 4, 5), ("[2, 3]", "[4, 5]"))
    assert claims_of("[1]") == [] and claims_of("5 [1].")[0].text == "5."
    assert claims_of("Terms [1]:")[0].text == "Terms:" and claims_of("Terms due:") == [] and claims_of("# Terms") == []


def test_words_that_the_question_gives_do_not_count_unless_hardly_any_is_left():
    words = (source(1, "Alder mills flour."),)
    assert verify([Claim("Alder mills flour, oats, barley.", (1,))], words, given="flour alder mills?").unsupported
    assert not verify([Claim("Alder mills flour, oats.", (1,))], words, given="flour alder mills?").unsupported


def test_two_fifths_of_the_words_are_enough():
    words = (source(1, "alder birch"),)
    assert not verify([Claim("alder birch cedar dogwood elm.", (1,))], words).unsupported
    assert verify([Claim("alder birch cedar dogwood elm fir.", (1,))], words).unsupported


def test_what_an_evidence_says_includes_its_section_and_the_name_of_its_file_is_neutral():
    given = (source(1, "Rent is due.", document="harrow lease.pdf", section="9 Harbour"), source(2, "x", page=3))
    assert verify([Claim("Rent Harbour.", (1,))], given).citations == (1,)
    assert verify([Claim("Harrow lease: rent is due.", (1,))], given).citations == (1,)
    assert verify([Claim("Harrow lease kiln.", (1,))], given).citations == ()
    assert verify([Claim("See page 3.", (2,))], given).unsupported, "its words are not there, though its page is"


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("tree", "tre"), ("fee", "fee"), ("agree", "agr"), ("use", "use"), ("uses", "use"), ("bus", "bus"),
        ("pass", "pass"), ("passes", "pass"), ("party's", "part"), ("ion", "ion"), ("action", "action"),
        ("motion", "motion"), ("notion", "notion"), ("actions", "action"), ("ties", "tie"), ("parties", "part"),
        ("ages", "age"), ("Law", "law"), ("laws", "law"), ("as", "as"), ("is", "is"), ("ably", "ably"),
    ],
)  # fmt: skip
def test_a_stem_keeps_three_letters_or_four(word, root):
    assert stem(word) == root


def test_single_letters_and_apostrophes():
    assert not list_content_words("a B x y") and list(list_content_words("Alder’s o'clock")) == [
        stem("alder's"),
        stem("o'clock"),
    ]
    assert list(list_content_words("ﬁle")) == [stem("file")], "a ligature is its letters"


def test_a_sentence_glued_to_the_citation_before_it_is_a_claim_of_its_own():
    first, second = claims_of("The term is two years.[1]The rent is £900.[2]")
    assert (first.text, first.citations) == ("The term is two years.", (1,))
    assert (second.text, second.citations) == ("The rent is £900.", (2,))


def test_which_version_of_a_law_an_answer_stands_on_is_no_claim_of_it():
    answer = "Poplatek je splatný do 15 dnů. [1]\n(Znění účinné od 1. 1. 2020)"
    assert [(claim.text, claim.citations) for claim in claims_of(answer)] == [("Poplatek je splatný do 15 dnů.", (1,))]
