"""Invisible text on a page is detected, and visible text is not reported."""

import json

import pytest

from exhibit.evidence import read_document
from exhibit.evidence.hidden import COVERED, CUT_OFF, NO_INK, TINY, blank_hidden, find_hidden_spans
from tests.evidence.files import drawn_pdf

SEEN = "BT 0 g /F 11 Tf 60 700 Td (The rent is due monthly.) Tj ET"
WORDS = "The cap is waived"
LINE = f"60 650 Td ({WORDS}) Tj ET"
SCAN = "q 612 0 0 792 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x40 EI Q"
PICTURE = "q 300 0 0 60 50 620 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x40 EI Q"


@pytest.fixture
def draw(write):
    """A function that returns the document of a PDF with this content."""
    return lambda content, form="": read_document(write("a.pdf", drawn_pdf(content, form)))


def list_hidden(document):
    return [(document.text[slice(*hidden.span)], hidden.why) for hidden in find_hidden_spans(document)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"{SEEN} BT 1 1 1 rg /F 11 Tf {LINE}", NO_INK),
        (f"{SEEN} BT 0.97 g /F 11 Tf {LINE}", NO_INK),
        (f"0.2 0.3 0.4 rg 50 640 200 30 re f {SEEN} BT 0.2 0.3 0.4 rg /F 11 Tf {LINE}", NO_INK),
        (f"{SEEN} BT 0 g /F 0.5 Tf {LINE}", TINY),
        (f"{SEEN} BT 0 g /F 100 Tf 0.005 0 0 0.005 60 650 Tm ({WORDS}) Tj ET", TINY),
        (f"{SEEN} BT 0 g /F 1 Tf 0 0.5 -0.5 0 60 500 Tm ({WORDS}) Tj ET", TINY),
        (f"{SEEN} BT 0 g /F 11 Tf 60 -400 Td ({WORDS}) Tj ET", CUT_OFF),
        (f"{SEEN} BT 0 g /F 11 Tf 3000 650 Td ({WORDS}) Tj ET", CUT_OFF),
        (f"{SEEN} BT 3 Tr /F 11 Tf {LINE}", NO_INK),
        (f"{SEEN} q /Faint gs BT 0 g /F 11 Tf {LINE} Q", NO_INK),
        (f"{SEEN} BT 0 g /F 11 Tf {LINE} 0 g 50 640 250 30 re f", COVERED),
        (f"{SEEN} BT 0 g /F 11 Tf {LINE} 1 g 50 640 250 30 re f", COVERED),
        # a redaction bar that barely covers the text
        (f"{SEEN} BT 0 g /F 11 Tf {LINE} 0 g 58 648 200 11 re f", COVERED),
        (f"{SEEN} BT 0 g /F 11 Tf {LINE} 0 g 50 640 m 300 640 l 50 690 l h f", COVERED),
        (f"{SEEN} q 0 0 50 50 re W n BT 0 g /F 11 Tf {LINE} Q", CUT_OFF),
        (f"{SEEN} BT 0 g /F 11 Tf {LINE} {PICTURE}", COVERED),
    ],
)
def test_find_hidden_spans_returns_invisible_words_and_why_they_are_invisible(draw, content, why):
    assert list_hidden(draw(content)) == [(WORDS, why)]


VISIBLE = {
    "black on white": f"{SEEN} BT 0 g /F 11 Tf {LINE}",
    "white on black": f"0 g 50 640 250 30 re f {SEEN} BT 1 g /F 11 Tf {LINE}",
    "small grey": f"{SEEN} BT 0.6 g /F 5 Tf {LINE}",
    "very small": f"{SEEN} BT 0.6 g /F 2.9 Tf {LINE}",
    "rotated left and very small": f"{SEEN} BT 0.6 g /F 2.9 Tf 0 1 -1 0 60 500 Tm ({WORDS}) Tj ET",
    "rotated right and very small": f"{SEEN} BT 0.6 g /F 2.9 Tf 0 -1 1 0 60 500 Tm ({WORDS}) Tj ET",
    "highlighted": f"{SEEN} BT 0 g /F 11 Tf {LINE} q /Marker gs 1 1 0 rg 50 640 250 30 re f Q",
    "framed": f"{SEEN} BT 0 g /F 11 Tf {LINE} 50 640 250 30 re S",
    "inside a clipping path": f"{SEEN} q 40 40 500 700 re W n BT 0 g /F 11 Tf {LINE} Q",
    "outlined letters": f"{SEEN} BT 1 g 0 G 1 w 2 Tr /F 11 Tf {LINE}",
    "OCR text layer": f"{PICTURE} {SEEN} BT 3 Tr /F 11 Tf {LINE}",
    "on a picture": f"{PICTURE} {SEEN} BT 1 g /F 11 Tf {LINE}",
    "rotated": f"{SEEN} BT 0 g /F 11 Tf 0 1 -1 0 60 300 Tm ({WORDS}) Tj ET",
    "text layer under a scan": f"{SEEN} BT 0 g /F 11 Tf {LINE} {SCAN}",
    "underlined": f"{SEEN} BT 0 g /F 11 Tf {LINE} 0 g 60 648 90 0.6 re f",
}


@pytest.mark.parametrize("name", VISIBLE)
def test_find_hidden_spans_ignores_visible_words(draw, name):
    assert list_hidden(draw(VISIBLE[name])) == []


def test_find_hidden_spans_checks_only_the_given_pages_of_a_pdf(draw, write):
    document = draw(f"{SEEN} BT 1 g /F 11 Tf {LINE}")
    assert find_hidden_spans(document, {2}) == [] and len(find_hidden_spans(document, {1})) == 1
    assert find_hidden_spans(read_document(write("a.txt", "words"))) == []


def test_convert_adds_a_label_and_a_note_for_gold_that_has_invisible_words(tmp_path, convert):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "lease.pdf").write_bytes(drawn_pdf(f"{SEEN} BT 1 g /F 11 Tf {LINE}"))
    answers = {"When is the rent due?": "due monthly", "Is there a cap?": WORDS}
    qas = [
        {"id": at, "question": question, "answers": [{"text": text, "answer_start": 0}]}
        for at, (question, text) in enumerate(answers.items())
    ]
    text = f"The rent is due monthly. {WORDS}"
    record = {"data": [{"title": "lease", "paragraphs": [{"context": text, "qas": qas}]}]}
    (tmp_path / "squad.json").write_text(json.dumps(record), encoding="utf-8")
    bundle = convert("squad", "--source", tmp_path / "squad.json", "--documents", folder, "--engine", "serial")
    gold = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["labels"].get("hidden") for line in gold] == [None, NO_INK]
    noted = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["noted"]
    assert noted["gold with words that are invisible on the page"] == [f"lease.pdf: question 1: {NO_INK}"]


def test_invisible_text_layer_of_a_scan_is_not_blanked(draw):
    layer = "BT 3 Tr /F 11 Tf 60 700 Td (The rent is due monthly.) Tj 0 -50 Td (The cap is waived.) Tj ET"
    for content in (f"{SCAN} {layer}", f"{layer} {SCAN}"):
        document = draw(content)
        assert "waived" in document.text
        assert blank_hidden(document) is document


def test_blank_hidden_adds_a_note_without_changing_offsets_of_visible_words(draw):
    document = draw(f"BT 1 g /F 11 Tf 60 750 Td (Say yes) Tj ET {SEEN} BT 1 g /F 11 Tf {LINE}")
    seen = blank_hidden(document)
    assert len(seen.text) == len(document.text)
    assert seen.text.split() == "The rent is due monthly.".split()
    assert seen.text.index("The rent") == document.text.index("The rent")
    assert seen.notes == (f"page 1 has 6 hidden words, {NO_INK}; these were left out",)


@pytest.mark.parametrize(
    ("drawn", "why"),
    [
        ("/Form Do", None),
        ("q 0.02 0 0 0.02 60 300 cm /Form Do Q", TINY),
        ("q 50 0 0 50 -2900 -32000 cm /Form Do Q", None),
        ("q 1 0 0 1 2000 0 cm /Form Do Q", CUT_OFF),
    ],
)
def test_find_hidden_spans_places_words_of_a_pdf_form_where_the_page_draws_the_form(draw, drawn, why):
    size = 0.5 if "50 0 0 50" in drawn else 11  # tiny letters are visible if the page enlarges them
    document = draw(f"{SEEN} {drawn}", f"BT 0 g /F {size} Tf {LINE}")
    found = {reason for words, reason in list_hidden(document) if "cap" in words}
    assert found == ({why} if why else set())
