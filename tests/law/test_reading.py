"""Regression tests on whole texts: the structure and all values are compared with golden files, line by line.

The golden files contain the present output, right or wrong; they change when a fault is fixed.

`pytest tests/law/test_reading.py --update-golden` rewrites tests/golden/law; read the diff.
"""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from exhibit.evidence import Document, Span
from exhibit.law.citations import claims_of, find_citations, normalise
from exhibit.law.language import list_content_words, search_terms
from exhibit.law.names import tidy, to_title_case
from exhibit.law.profile import date_of, kind_of, parties_of, read_profile
from exhibit.law.references import find_references, list_own_places
from exhibit.law.sentences import split_sentences, tile_clauses
from exhibit.law.structure import format_section_path, read_structure
from exhibit.law.structure.headings import find_headings, is_prose, is_shout, is_title, is_title_case
from exhibit.law.structure.lines import find_contents, is_entry, read_lines
from exhibit.law.values import read_statement

HERE = Path(__file__).parent
SAMPLES = HERE.parent.parent / "samples"
TEXTS = {
    **{path.stem: path for path in sorted((HERE / "texts").glob("*.txt"))},
    "distributor": SAMPLES / "cuad" / "contracts" / "02-distributor.md",
    "collaboration": SAMPLES / "cuad" / "contracts" / "05-collaboration.md",
    "merger": SAMPLES / "maud" / "maud-main" / "data" / "contracts" / "contract_7.txt",
    "short-merger": SAMPLES / "maud" / "maud-main" / "data" / "contracts" / "contract_12.txt",
    "nda": SAMPLES / "contractnli" / "contracts" / "01-robotics.txt",
    "standstill": SAMPLES / "contractnli" / "contracts" / "03-standstill.txt",
    "rulebook": SAMPLES / "cpr" / "rulebook.txt",
    "facility": SAMPLES / "scans" / "held-out" / "facility-letter.txt",
    "order": SAMPLES / "scans" / "held-out" / "consent-order.txt",
}


def format_span(start: int, end: int, text: str) -> str:
    """Return the offsets of a span and the first 60 characters of its text."""
    return f"{start}-{end} {text[start:end][:60]!r}"


def structure(document: Document) -> Iterator[str]:
    """Yield the sections as an indented list, the section path at every 700th character, and the headings."""
    yield "# sections"
    root = read_structure(document)
    for section in root.walk():
        yield f"{'  ' * section.level}{section.kind} {section.heading!r} {section.span.start}-{section.span.end}"
    for start in range(0, len(document.text), 700):
        yield f"above {start}: {format_section_path(root, Span(start, min(start + 90, len(document.text))), limit=70)}"
    yield "# headings"
    for heading in find_headings(document):
        fields = (heading.label, heading.title, heading.style, heading.value, heading.rank, heading.kind, heading.sure)
        yield f"{heading.start}-{heading.end} {fields} {to_title_case(heading.title)!r} {tidy(heading.title)!r}"


def lines_of(document: Document) -> Iterator[str]:
    """Yield the span of the table of contents, and each line with its properties: after a gap, a title, prose …"""
    yield f"contents {find_contents(document.text)}"
    for line in read_lines(document):
        known = [name for name, holds in (
            ("gap", line.gap), ("fresh", line.fresh), ("entry", is_entry(line.text)), ("title", is_title(line.text)),
            ("titlecase", is_title_case(line.text)), ("shout", is_shout(line.text)), ("prose", is_prose(line.text)),
        ) if holds]  # fmt: skip
        yield f"{format_span(line.start, line.end, document.text)} {' '.join(known)}"


def read(name: str) -> Iterator[str]:
    """Yield what is read from a text, line by line: its profile, sections, lines, references, sentences and clauses."""
    text = TEXTS[name].read_text(encoding="utf-8")
    document = Document(TEXTS[name].name, text)
    profile = read_profile(document)
    yield f"# profile\n{profile.title!r} {profile.kind!r} {profile.parties} {profile.date!r}"
    yield f"{kind_of(text)!r} {parties_of(text)} {date_of(text)!r}"
    yield from structure(document)
    yield "# lines"
    yield from lines_of(document)
    yield "# references"
    for reference in find_references(text):
        yield f"{reference.kind} {reference} {reference.path} {format_span(*reference.span, text)}"
    yield "# own places"
    yield from (f"{reference.kind} {reference}" for reference in list_own_places(text))
    yield "# sentences"
    yield from (format_span(*span, text) for span in split_sentences(text))
    yield "# clauses"
    yield from (format_span(*span, text) for span in tile_clauses(text, 0, len(text), least=40, limit=240))


@pytest.mark.parametrize("name", TEXTS)
def test_structure_and_profile_of_text_match_golden_file(name, golden):
    golden(f"law/{name}.txt", "\n".join(read(name)) + "\n")


def wrapped(text: str) -> str:
    """Return a text in the form of a narrow page: without blank lines, and with each paragraph wrapped."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n".join("\n".join(textwrap.wrap(part, 64)) for part in paragraphs)


def run_on(text: str) -> str:
    """Return a text in the form of some exports: each paragraph on one line, without blank lines."""
    return "\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def glued(text: str) -> str:
    """Return a text in the form of other exports: on a single line."""
    return "  ".join(text.split("\n"))


@pytest.mark.parametrize("change", [wrapped, run_on, glued], ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", ["agreement", "outline", "part", "letter", "guide", "distributor", "nda", "merger"])
def test_structure_of_reflowed_text_matches_golden_file(name, change, golden):
    document = Document(f"{name}.txt", change(TEXTS[name].read_text(encoding="utf-8")))
    golden(f"law/{name}-{change.__name__}.txt", "\n".join([*structure(document), *lines_of(document)]) + "\n")


def test_parsed_answers_match_golden_file(golden):
    text = TEXTS["answer"].read_text(encoding="utf-8")
    lines = [
        f"{citation.numbers} {citation.well_formed} {format_span(*citation.span, text)}"
        for citation in find_citations(text)
    ]
    lines += [f"{claim.text!r} {claim.citations}" for claim in claims_of(text)]
    for line in text.splitlines():
        said = read_statement(line)
        lines.append(f"{sorted(said.numbers)} {sorted(said.loose)} {[sorted(map(str, days)) for days in said.dates]}")
        lines.append(f"{list(list_content_words(line))} {search_terms(line)}")
    golden("law/answer-parts.txt", "\n".join([*lines, normalise(text)]) + "\n")
