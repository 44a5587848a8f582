"""Chunks tile the text, stay within the size, and equal those of a reference implementation."""

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exhibit.evidence import Span
from exhibit.rag import splitters
from exhibit.rag.splitters import naive, rcts, sections
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError

TEXTS = st.text(alphabet="ab .,;\n", max_size=200)
SIZES = st.integers(1, 40)
SEPARATORS = st.sampled_from([splitters.SEPARATORS, splitters.SENTENCES, ("\n\n\n", " "), (". ",), ("",), ()])
CLAUSE = (
    "9.1 Either party may terminate this Agreement upon thirty (30) days' written notice; provided, however, that "
    "Harrow Mill Ltd. may not terminate before 1 March 2027.\n\n9.2 Sections 4.2(a) and 7 survive termination."
)


def split_recursively(text: str, size: int, separators: tuple[str, ...], keep: str) -> list[str]:
    """Split at each first separator, join adjacent pieces up to the size, and split each piece over the size again."""
    if len(text) <= size:
        return [text] if text else []
    if not separators or not separators[0]:
        return [text[start : start + size] for start in range(0, len(text), size)]
    marks = [m.start() if keep == "start" else m.end() for m in re.finditer(re.escape(separators[0]), text)]
    edges = sorted({0, *marks, len(text)})
    chunks: list[str] = []
    joined = ""
    for start, end in pairwise(edges):
        piece = text[start:end]
        if len(joined) + len(piece) > size:
            chunks += [joined] if joined else []
            joined = ""
        if len(piece) > size:
            chunks += split_recursively(piece, size, separators[1:], keep)
        else:
            joined += piece
    return chunks + ([joined] if joined else [])


@given(TEXTS, SIZES, SEPARATORS, st.sampled_from(["start", "end"]))
@example("\n\n\n\n\nab", 2, splitters.SEPARATORS, "start")
@example("\n\n\nab\n\n\n", 3, splitters.SEPARATORS, "end")
@example(".. a.. b", 3, splitters.SENTENCES, "start")
def test_rcts_split_equals_reference_implementation(text, size, separators, keep):
    spans = splitters.split(text, size=size, separators=separators, keep=keep)
    assert [text[start:end] for start, end in spans] == split_recursively(text, size, separators, keep)


@given(st.text(max_size=300), SIZES, SEPARATORS)
def test_split_spans_tile_text_and_stay_within_size(text, size, separators):
    spans = splitters.split(text, size=size, separators=separators)
    assert all(isinstance(span, Span) and 0 < span.end - span.start <= size for span in spans)
    assert [0, *(end for _, end in spans)] == [*(start for start, _ in spans), len(text)]


@given(TEXTS, SIZES, st.data())
def test_split_with_overlap_covers_the_whole_text(text, size, data):
    overlap = data.draw(st.integers(0, size - 1))
    spans = splitters.split(text, size=size, overlap=overlap)
    assert all(0 < span.end - span.start <= size for span in spans)
    reached = 0
    for start, end in spans:
        assert reached - overlap <= start <= reached < end
        reached = end
    assert reached == len(text)


def test_rcts_overlap_begins_at_word_boundary():
    text = CLAUSE.replace("\n\n", " ")
    first, second, *_ = splitters.split(text, size=100, overlap=30, separators=[" "])
    assert first.start == 0 and first.end - 30 <= second.start < first.end
    assert text[second.start - 1] == " "


def test_rcts_sentences_variant_does_not_split_numbers():
    split = rcts.open("sentences")
    text = "Fees are $10,000.00 under Section 3.4(2). The Supplier, Corvid Ltd, pays them. It pays in euro."
    assert [text[a:b] for a, b in split(text, size=45)] == [
        "Fees are $10,000.00 under Section 3.4(2). ",
        "The Supplier, Corvid Ltd, pays them. ",
        "It pays in euro.",
    ]


@given(TEXTS, SIZES, st.lists(st.tuples(st.integers(-5, 210), st.integers(-5, 210)), max_size=6), st.integers(0, 9))
def test_split_crosses_no_section_boundary(text, size, edges, overlap):
    given_sections = [Span(min(pair), max(pair)) for pair in edges]
    spans = splitters.split(text, size=size, overlap=min(overlap, size - 1), sections=given_sections)
    for edge in (edge for section in given_sections for edge in section):
        assert not any(start < edge < end for start, end in spans)
    assert sum(end - start for start, end in spans) >= len(text) and (not text or spans[-1].end == len(text))


def test_naive_split_cuts_at_fixed_size_across_words_and_sections():
    split = naive.open(None)
    assert split("abcd. gh", size=3, sections=[Span(0, 4)]) == [Span(0, 3), Span(3, 6), Span(6, 8)]
    assert split("abc defgh", size=6, overlap=4) == [Span(0, 2), Span(0, 4), Span(0, 6), Span(4, 8), Span(4, 9)]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (-1, 0), (10, 10), (10, -1)])
def test_split_refuses_invalid_size_or_overlap(size, overlap):
    with pytest.raises(ToolkitError, match="choose"):
        splitters.split("text", size=size, overlap=overlap)


def test_splitters_are_opened_by_name():
    assert list_plugins("exhibit.rag.splitters") == ["naive", "rcts", "sections"]
    for name in list_plugins("exhibit.rag.splitters"):
        module, argument = load_plugin("exhibit.rag.splitters", name)
        assert module.open(argument)("ab", size=1) == [Span(0, 1), Span(1, 2)]
    assert sections.open("sentences")("Art. 3.4 a", size=6)[0] == Span(0, 5)
    assert len(rcts.open(None)("ab", sections=[Span(0, 1)])) < len(sections.open(None)("ab", sections=[Span(0, 1)]))
    for module, argument in ((rcts, "words"), (sections, "words"), (naive, "words")):
        with pytest.raises(ToolkitError, match="words"):
            module.open(argument)


@pytest.mark.data
@pytest.mark.slow
def test_rcts_split_of_legalbenchrag_corpus_gives_34180_chunks(data):
    texts = [path.read_text(encoding="utf-8") for path in (data / "legalbenchrag" / "corpus").rglob("*.txt")]
    assert sum(len(splitters.split(text)) for text in texts) == 34_180
