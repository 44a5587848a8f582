"""Quotes are located at their real position in any rendering, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Document, Page, Span, fold, locate
from exhibit.evidence.document import find_furniture
from exhibit.evidence.locate import prefer_whole_words

ODD = "ﬁﬂ\u00ad\u00a0\u037e“”’–—é\u0301\u0316\u200f\u200b𝒳😀ßabc. \n-"


def document(text: str, *pages: str) -> Document:
    if not pages:
        return Document("a.txt", text)
    spans = []
    start = 0
    for number, page in enumerate(pages, 1):
        spans.append(Page(number, Span(start, start + len(page)), 612, 792))
        start += len(page) + 1
    return Document("a.pdf", "\n".join(pages), tuple(spans))


def words(match, doc) -> list[str]:
    return [doc.text[slice(*span)] for span in match.spans]


@given(st.text(alphabet=st.sampled_from(ODD), min_size=1, max_size=60), st.data())
def test_locate_finds_any_slice_of_a_document_at_the_offsets_of_the_slice(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = text[start:end]
    if quote.strip():
        found = [match for match in locate(quote, document(text)) if match.how == "exact"]
        assert any(match.span == (start, end) for match in found), (quote, found)


@given(st.text(alphabet=st.sampled_from(ODD), min_size=1, max_size=60), st.data())
def test_folded_text_of_located_spans_equals_folded_quote(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    # the quote in other renderings
    quote = text[start:end].replace("ﬁ", "fi").replace("“", '"').replace("\u00ad", "").replace("\u00a0", " \n")
    for match in locate(quote, document(text)):
        if match.how in {"exact", "folded"}:
            found = fold(text[slice(*match.span)], loose=True)
            assert found == fold(quote, loose=True)


def test_locate_marks_a_match_as_fuzzy_if_only_its_letters_agree():
    marked = "The **Buyer** pays the price within thirty days of the invoice."
    [match] = locate(marked, document(f"1. {marked.replace('**', '')} 2. Title passes then."))
    assert (match.span, match.how, match.score) == ((3, 62), "fuzzy", 1.0)


def test_locate_returns_exact_and_folded_matches_together():
    doc = document("The term is five years. Again: the\nterm is five  years. And the term is five years.")
    found = locate("the term is five years", doc)
    assert [match.how for match in found] == ["exact", "folded"]
    assert [match.span.start for match in found] == [60, 31]


def test_locate_ranks_a_match_inside_a_longer_word_last():
    doc = document("MAY 8: the affiliate (MA) may. MA signs. 1MA")
    found = locate("MA", doc)
    assert [match.whole for match in found] == [True, True, True, False]
    assert [match.span.start for match in prefer_whole_words(found)] == [22, 31, 42]
    assert [match.span.start for match in prefer_whole_words(locate("AY", doc))] == [1]


@pytest.mark.parametrize("quote", ["", "  \n", "\u00a0"])
def test_locate_finds_no_match_for_a_blank_quote(quote):
    assert locate(quote, document("some text")) == []


def test_locate_ignores_hyphens_and_case_if_no_stricter_match_exists():
    doc = document("A NON-\nEXCLUSIVE license. A non-exclusive licence.")
    assert [m.span.start for m in locate("non-exclusive licen", doc)] == [28]
    assert locate("nonexclusive license", doc)[0].how == "folded"
    assert words(locate("nonexclusive license", doc)[0], doc) == ["NON-\nEXCLUSIVE license"]


def test_locate_finds_the_parts_of_a_quote_around_omissions():
    doc = document("Notice. Either party may end it. Notice. On 30 days' notice, for cause, either party may end it.")
    [match] = locate("On 30 days' notice<omitted>either party may end it", doc)
    assert match.how == "parts" and match.score == 1.0
    assert words(match, doc) == ["On 30 days' notice", "either party may end it"]
    # the first piece occurs twice: the occurrence nearest to the second piece is right
    [match] = locate("Notice. <omitted> for cause", doc)
    assert match.spans[0].start == 33


def test_locate_finds_parts_of_a_quote_that_the_document_has_in_another_order():
    doc = document("November 24, 2009. This Agreement takes effect on signature.")
    [match] = locate("This Agreement takes effect on signature.<omitted>November 24, 2009", doc)
    assert words(match, doc) == ["November 24, 2009", "This Agreement takes effect on signature."]


def test_locate_finds_no_match_when_a_part_of_the_quote_is_missing():
    assert locate("takes effect<omitted>on a Tuesday", document("It takes effect at once.")) == []


def test_locate_finds_a_quote_across_a_page_break():
    pages = [
        "ACME - CONFIDENTIAL\nThe Supplier shall keep all\nPage 1 of 3\nSource: ACME, 10-K, 2/3/2011",
        "ACME - CONFIDENTIAL\nrecords for five years.\nPage 2 of 3\nSource: ACME, 10-K, 2/3/2011",
        "ACME - CONFIDENTIAL\nEnd.\nPage 3 of 3\nSource: ACME, 10-K, 2/3/2011",
    ]
    doc = document("", *pages)
    [match] = locate("The Supplier shall keep all records for five years.", doc)
    assert match.how == "parts"
    assert words(match, doc) == ["The Supplier shall keep all", "records for five years."]
    assert [doc.pages_of(span) for span in match.spans] == [[1], [2]]


def test_locate_finds_a_quote_that_is_a_repeated_page_header():
    doc = document("", "Head\nbody one\n1", "Head\nbody two\n2")
    assert [match.how for match in locate("Head", doc)] == ["exact", "exact"]


def test_locate_finds_a_quote_with_a_typo_and_returns_a_similarity_score():
    text = "Distributor shall not, and shall cause its Affiliates not to, sell any Competing Product in the Territory."
    doc = document(f"Preamble. {text} Afterwords.")
    [match] = locate(text.replace("Affiliates", "Afiliates").replace("sell any", "sell  an"), doc)
    assert match.how == "fuzzy" and match.score == pytest.approx(1 - 2 / 89, abs=2e-3)
    assert match.span == (10, 10 + len(text) - 1) or match.span == (10, 10 + len(text))


@pytest.mark.parametrize(
    "quote",
    [
        "Distributor shall not sell",  # too short for a fuzzy match
        "Distributor will never ever, under any circumstances at all, purchase a single Competing Product anywhere.",
    ],
)
def test_locate_finds_no_match_for_a_quote_that_differs_too_much_from_the_document(quote):
    text = "Distributor shall not, and shall cause its Affiliates not to, sell any Competing Product in the Territory."
    assert locate(quote, document(text)) == []


def test_locate_finds_paragraphs_of_a_quote_that_other_text_separates():
    doc = document("This Agreement may be ended as follows:\n7.3 Effect of the end.\n(a) by either party, at any time.")
    [match] = locate("This Agreement may be ended as follows:\n\n(a) by either party, at any time.", doc)
    assert match.how == "parts"
    assert words(match, doc) == ["This Agreement may be ended as follows:", "(a) by either party, at any time."]


def test_locate_refuses_a_match_that_ends_inside_a_ligature():
    assert locate("of", document("an oﬃce and a staﬀ")) == []


def test_locate_ignores_a_missing_paragraph_if_the_paragraph_has_under_20_characters():
    clauses = [f"The tenant shall repair the {part} of the house at its own cost and in good time." for part in PARTS]
    doc = document("\nFIGURE 7\n".join(clauses))
    quote = "\n".join([*clauses[:5], "{}", *clauses[5:]])
    [match] = locate(quote.format("a" * 19), doc)
    assert words(match, doc) == clauses
    assert locate(quote.format("a" * 20), doc) == []


PARTS = ("roof", "porch", "floor", "stairs", "fence", "gutter", "chimney", "cellar", "windows", "doors")


def test_locate_allows_2_differences_in_40_characters_and_none_in_39():
    sentence = "abcdefghij" * 4
    wrong = sentence[:10] + "X" + sentence[11:30] + "Y" + sentence[31:]
    [match] = locate(wrong, document(f"so {sentence} it ends"))
    assert match.how == "fuzzy" and match.score == 0.95
    assert locate(wrong[:20] + "Z" + wrong[21:], document(f"so {sentence} it ends")) == []
    assert locate(sentence[:10] + "X" + sentence[11:39], document(f"so {sentence} it ends")) == []
    letters = "abcdefghijklmnopqrstuvwxyz0123456789QRST"
    several = locate(letters[:20] + "!" + letters[21:], document(f"{letters} and {letters[:30]}?{letters[31:]}"))
    assert [(match.span, match.score) for match in several] == [((0, 40), 0.975), ((45, 85), 0.95)], "in order of score"


HEADED = [f"ACME Inc. / Supply\nbody text {word}\n- {n} -" for n, word in enumerate(("aa", "bb", "cc"), 1)]
SHEETS = [f"words {word}\nAnnex B, sheet {number} of 60" for number, word in ((41, "a"), (42, "b"), (43, "c"))]
ARTICLES = ["ARTICLE 4\nterm one\nx a", "more words here\nx b", "ARTICLE 5\nterm two\nx c", "ARTICLE 6\nend\nx d"]
SIGNED = ["first\nsecond\nthird\nfourth\nBy: ____\nfifth\nsixth\nseventh\neighth", "a\nb\nc\nd\nBy: ____\ne\nf\ng\nh"]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (HEADED, [line for n in (1, 2, 3) for line in ("ACME Inc. / Supply", f"- {n} -")]),
        (SHEETS, [f"Annex B, sheet {number} of 60" for number in (41, 42, 43)]),  # numbers that start above 1
        (ARTICLES, []),  # headings that differ in their number
        (SIGNED, []),  # a recurring line inside the page
        (["text one\nNotice", "text two\nNotice", "intro\nNotice\ntext three"], ["Notice", "Notice"]),  # text below it
        (["Title\nbody\n1"], []),  # a single page
        *(
            ([f"one\n{number}", "two\nand a sentence here"], [number])
            for number in ("3", "- 3 -", "Page 3", "Page 3 of 9", "3/9", "iv", "[3]", "A-3", "xii")
        ),
    ],
)
def test_page_furniture_consists_of_repeated_edge_lines_and_page_numbers(pages, expected):
    text, spans = "\n".join(pages), []
    for page in pages:
        start = spans[-1][1] + 1 if spans else 0
        spans.append((start, start + len(page)))
    assert [text[slice(*line)].strip() for line in find_furniture(text, spans)] == expected
