"""After edits, a passage's span keeps its words and the insertions inside it."""

from hypothesis import given
from hypothesis import strategies as st

from exhibit.converters import Quote, RawDocument, RawRow
from exhibit.evidence import Span
from exhibit.vary.corpus import Edit, EditedText, TextCorpus, apply_edits


@st.composite
def texts_with_edits(draw):
    text = draw(st.text(alphabet="abc \n", min_size=1, max_size=60))
    bounds = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    pairs = list(zip(bounds[::2], bounds[1::2], strict=False))
    edits = [Edit(start, end, draw(st.text(alphabet="XY", max_size=4))) for start, end in pairs]
    start = draw(st.integers(0, len(text) - 1))
    return text, edits, Span(start, draw(st.integers(start + 1, len(text))))


@given(texts_with_edits())
def test_span_in_edited_text_contains_every_unedited_character_of_the_original_span(given_text):
    text, edits, span = given_text
    edited = EditedText(text, edits)
    moved = edited.span(span)
    kept = "".join(text[at] for at in range(*span) if not any(edit.start <= at < edit.end for edit in edits))
    now = edited.text[moved.start : moved.end] if moved else ""
    assert "".join(character for character in now if character not in "XY") == kept


def test_span_in_edited_text_excludes_text_inserted_beside_the_original_span():
    edited = EditedText("one two three", [Edit(4, 4, "new "), Edit(7, 7, " more")])
    assert edited.text == "one new two more three"
    span = edited.span(Span(4, 7))
    assert edited.text[span.start : span.end] == "two"


def test_apply_edits_drops_gold_passages_whose_text_is_changed_or_deleted():
    document = RawDocument("a.pdf", "A", text="ten days. ten days. end")
    both = Quote("a.pdf", None, ((0, 8),), alternatives=(((10, 18),),))
    gone = Quote("a.pdf", None, ((20, 23),))
    corpus = TextCorpus({"a.pdf": document}, (RawRow(1, "q", "a", (both, gone)),))
    [row] = apply_edits(corpus, {"a.pdf": [Edit(0, 3, "six"), Edit(20, 23, "")]}).rows
    assert len(row.quotes) == 1
    assert row.quotes[0].alternatives == ()
