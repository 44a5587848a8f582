"""Quotes are located through markup and through the cells of tables; absent text is not matched.

Very short fragments are ignored.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Document, Page, Span, locate
from exhibit.evidence.check import faults_of
from exhibit.evidence.locate import is_ambiguous, place_text
from exhibit.evidence.place import cells_of, letters_of, place_pieces
from exhibit.schemas.bundle import LooseContext, Question
from exhibit.schemas.models import Gold

FEE = "The Licensee shall pay 95 % of the Net Receipts, being at least $1,250.50, within thirty (30) days (the “Fee”)."
MARKS = """SCHEDULE 2 Marks
Country Mark Status Number
CA HERON BROOK Registered 2738695
CA OTTER LAKE Pending 2738701
US HERON BROOK Registered 5190337
US PIKE & PERCH Opposed 5190412"""
COLUMNS = """SCHEDULE 3 Tariff
Service
Salvage tow
Berth, per night
Fresh water
Price
£1,900
£37.20
£4 a tonne"""
TEXT = "\n\n".join(
    ["LICENCE OF MARKS", f"1. {FEE}", "2. The Licensor keeps the Marks in force.", MARKS, COLUMNS, "Signed at Leith."]
)
DOCUMENT = Document("licence.txt", TEXT)


def words(match) -> str:
    return " ".join(TEXT[slice(*span)] for span in match.spans)


RENDERINGS = {
    "Markdown": "The **Licensee** shall pay 95 % of the [Net Receipts](https://x.example/a_b), being at least"
    " \\$1,250.50, within thirty (30) days[^3] (the *“Fee”*).",
    "heading": f"### {FEE}",
    "LaTeX": "The Licensee shall pay $95 \\%$ of the \\underline{Net Receipts}, being at least $\\$ 1,250.50$, within"
    " thirty $(30)$ days (the ``Fee'').",
    "HTML": "<p>The Licensee shall pay 95&nbsp;% of the <u>Net Receipts</u>, being at least $1,250.50, within"
    " thirty (30) days (the &ldquo;Fee&rdquo;).</p>",
    "Docling": f"<!-- image -->\n\n## {FEE}",
    "Marker": f'![](_page_3_Picture_2.jpeg)\n\n<span id="page-3-1"></span>{FEE}',
    "OCR": FEE.replace("Licensee", "Llcensee").replace("thirty", "thirly"),
}


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_locate_finds_a_clause_in_the_markup_of_each_parser(rendering):
    [match] = locate(RENDERINGS[rendering], DOCUMENT)
    assert words(match).startswith("The Licensee shall pay") and words(match).rstrip(").”").endswith("Fee")
    assert len(words(match)) >= len(FEE) - 3


TABLES = {
    "a row of LaTeX": ("CA & HERON BROOK & Registered & 2738695", "CA HERON BROOK Registered 2738695"),
    "a row of Markdown": ("| US | PIKE & PERCH | Opposed | 5190412 |", "US PIKE & PERCH Opposed 5190412"),
    "LaTeX": (
        "\\begin{tabular}{llll} CA & OTTER LAKE & Pending & 2738701 \\\\ US & HERON BROOK & Registered & 5190337 \\\\"
        " \\end{tabular}",
        "CA OTTER LAKE Pending 2738701\nUS HERON BROOK Registered 5190337",
    ),
    "HTML with spans": (
        "<table><tr><td rowspan='2'>CA</td><td>HERON BROOK</td><td>Registered</td><td>2738695</td></tr></table>",
        "CA HERON BROOK Registered 2738695",
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_locate_finds_a_table_row_in_markup_by_the_text_of_the_cells(table):
    quote, row = TABLES[table]
    [match, *_] = locate(quote, DOCUMENT)
    assert words(match).split() == row.split()


def test_locate_finds_a_table_that_the_page_prints_by_columns():
    quote = "| Service | Price |\n|---|---|\n| Salvage tow | £1,900 |\n| Berth, per night | £37.20 |"
    [match] = locate(quote, DOCUMENT)
    assert set(words(match).split()) >= {"Salvage", "Berth,", "1,900", "37.20"} or "£1,900" in words(match)
    assert "Leith" not in words(match) and "Fresh water" not in words(match)


def test_locate_finds_no_table_row_whose_number_differs_from_the_quote():
    placement = place_pieces("CA & HERON BROOK & Registered & 2738695 & renewed to 2031 in Ottawa", DOCUMENT)
    text = "CA & HERON BROOK & Registered & 2738695 & renewed to 2031 in Ottawa"
    assert [text[slice(*span)] for span in placement.added] == ["renewed to 2031 in Ottawa"]
    assert locate("DK & SWAN POND & Refused & 9912345", DOCUMENT) == []
    assert locate("CA & HERON BROOK & Registered & 5190999", DOCUMENT) == [], "a row with another number must not match"


@given(st.sampled_from(["**{}**", "<b>{}</b>", "$ {} $", "| {} |", "# {}"]), st.data())
def test_locate_finds_no_match_for_unknown_words_in_markup(frame, data):
    stranger = data.draw(st.permutations("barge ferry lighter tender cutter ketch yawl sloop smack hooker".split()))
    assert locate(frame.format(" ".join(stranger)), DOCUMENT) == []


@given(st.integers(0, len(FEE) - 30), st.integers(30, 90), st.sampled_from(["**", "_", "$", "`"]))
def test_markup_between_words_of_a_quote_moves_the_located_span_by_at_most_3_characters(start, length, sign):
    piece = FEE[start : start + length].strip()
    plain, marked = locate(piece, DOCUMENT), locate(piece.replace(" ", f" {sign} "), DOCUMENT)
    kept = [char for char in piece if char.isalnum()]
    if len(kept) >= 24 and marked:
        assert abs(marked[0].span.start - plain[0].span.start) <= 3 and abs(marked[0].span.end - plain[0].span.end) <= 3


def test_letters_of_drops_table_markup_and_cells_of_splits_a_row_into_cells():
    text = "A & \\multicolumn{2}{l}{B} \\\\ [C](u) &amp; D"
    assert letters_of(text).text == "abcd"
    assert next(text[slice(*cell)].strip() for cell in cells_of(text)) == "A" and cells_of("plain words") == []


def test_place_text_finds_the_lines_of_cells_that_the_page_prints_side_by_side():
    columns = Document(
        "a.txt", "Alder Mills Ltd Birch Foods plc\n12 Quay Street 9 Mill Lane\nLeith EH6 7AB Perth PH1 5QR"
    )
    cells = "<td>Alder Mills Ltd 12 Quay Street Leith EH6 7AB</td><td>Birch Foods plc 9 Mill Lane Perth PH1 5QR</td>"
    table = f"<table><tr>{cells}</tr></table>"
    assert place_text(table, columns).share == 1.0
    assert place_pieces(table, columns).share == 0.0, "no line contains a whole cell"


def test_place_text_does_not_join_distant_pieces():
    placement = place_text(TEXT[:40] + "\n" + TEXT[-40:], DOCUMENT)
    assert sum(span.end - span.start for piece in placement.pieces for span in piece.places[0]) <= 80
    everywhere = Document("a.txt", "The Licensee shall pay. " * 9)
    assert place_text("shall", everywhere).pieces == () and is_ambiguous("shall", 9) and not is_ambiguous("shall", 3)


def make_document(*bodies: str) -> Document:
    text, pages = "", []
    for number, body in enumerate(bodies, 1):
        start = len(text)
        text += f"Harbour Works plc Annual Statement\n{body}\n{number}\n"
        pages.append(Page(number, Span(start, len(text)), 595.0, 842.0))
    return Document("report.pdf", text, tuple(pages))


ROWS = [f"Quay {n} dues {n}{n},4{n}0 tonnage {n}7{n} berths {n}" for n in range(1, 9)]


def make_gold(document: Document, quote: str) -> Gold:
    match = locate(quote, document)[0]
    pages = sorted({page for span in match.spans for page in document.pages_of(span)})
    return Gold(id=0, context=0, filename="report.pdf", pages=pages, spans=list(match.spans), alternatives=[],
                how=match.how, score=match.score, labels={})  # fmt: skip


def test_check_accepts_a_quote_that_includes_a_running_head():
    document = make_document(
        "Letter of the chairman to all members.", "\n".join(ROWS), "Notes to the accounts of the year."
    )
    quote = "\n".join(
        ["Harbour Works plc Annual Statement", *ROWS[:3], ROWS[3].replace("tonnage", "tonage"), *ROWS[4:]]
    )
    question = Question(id=0, question="?", answer="!", contexts=(LooseContext("report.pdf", quote),))
    line = make_gold(document, quote)
    assert line.pages == [2] and list(faults_of(line, question, document)) == []
    moved = line.model_copy(update={"spans": [(0, 40)], "pages": [1]})
    assert list(faults_of(moved, question, document))
