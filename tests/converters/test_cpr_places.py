"""Paragraphs cited by number, and courts named in several fields of a row, in invented and in real data."""

import json
import re
from pathlib import Path

import pytest

from exhibit.converters.benchmark import RawDocument, Tally
from exhibit.converters.civil_procedure.corpus import Corpus
from exhibit.converters.civil_procedure.names import find_citations, find_strange_courts, names_court, read_citation
from exhibit.converters.civil_procedure.parsing import blocks_of
from exhibit.converters.civil_procedure.resolution import Resolution, RowEvidence
from exhibit.converters.civil_procedure.sources import RulesFile, load, reference_of
from exhibit.converters.fetching.fetch import Policy

RULES = """PART 91 - FERRIES AND MOORINGS

Contents of this Part

Scope of this Part

91.1

This Part applies to claims about ferries.

Power to order a survey

---

91.2

(1) The court may order a survey of a ferry.

(2) It must name the surveyor.

Survey of a mooring

91.2 A

The court may order a survey of a mooring.

Survey by several persons

91.2 BWhere the parties agree, several persons may survey.

Omitted

91.3

Costs of a survey

91.7

The owner pays. See paragraph 4.2 of the direction.

91.5

A survey out of its order in the list is still rule 91.5."""

DIRECTION = """PRACTICE DIRECTION 91 A - FERRIES

This Practice Direction supplements Part 91

Contents of this Practice Direction

PART 91 - PAPERS

General matters

91.1

A claim form has a number and is

(a) on paper of size 3

(b) or, for a mooring, of size 4

(c) or, where the court says so, of size 5

91.4

Copies are filed within 7 days."""


def export(title: str, kind: str, text: str) -> RulesFile:
    """Return a document as it is read from the export of a search index."""
    blocks = tuple(blocks_of(title, text))
    raw = RawDocument(f"{title}.pdf", title, text="\n\n".join(block.text for block in blocks))
    return RulesFile(raw, (title, reference_of(title)), kind, title, blocks)


@pytest.fixture(scope="module")
def ferries() -> Corpus:
    return Corpus([export("Part 91", "CPR", RULES), export("Practice Direction 91A", "PD", DIRECTION)])


def resolve(corpus: Corpus, cited: str) -> Resolution:
    return corpus.resolve(read_citation(cited), RowEvidence())


@pytest.mark.parametrize(
    ("cited", "document", "begins", "holds"),
    [
        ("Part 91, paragraph 91.1", "Part 91", "Scope of this Part\n\n91.1", "claims about ferries"),
        ("CPR 91.2", "Part 91", "Power to order a survey", "name the surveyor"),
        ("rule 91.2(1)", "Part 91", "Power to order a survey", "survey of a ferry"),
        ("CPR 91.2A", "Part 91", "91.2 A", "survey of a mooring"),
        ("CPR 91.2B", "Part 91", "91.2 B", "several persons may survey"),
        ("CPR 91.3", "Part 91", "Omitted\n\n91.3", "Omitted"),
        ("CPR 91.5", "Part 91", "91.5", "out of its order"),
        ("PD 91A, paragraph 91.1", "Practice Direction 91A", "General matters\n\n91.1", "claim form has a number"),
        ("PD 91A, paragraph 91.4", "Practice Direction 91A", "91.4", "Copies are filed"),
    ],
)
def test_a_paragraph_whose_number_stands_alone_is_found_by_its_number(ferries, cited, document, begins, holds):
    resolution = resolve(ferries, cited)
    assert resolution.source is not None and resolution.source.raw.title == document
    assert resolution.place is not None and resolution.place.text.startswith(begins)
    assert holds in resolution.place.text


def test_the_title_above_a_number_still_finds_the_rule(ferries):
    place = resolve(ferries, "Part 91#page=Power to order a survey").place
    assert place is not None and place.text.startswith("Power to order a survey\n\n91.2\n\n(1)")


# ---------------------------------------------------------------- courts in the fields of a row


def guide(court: str) -> RulesFile:
    return export(f"The {court} Guide", "Court Guide", "Words of it.\n\n---\n\nReading lists\n\nA list is filed.")


@pytest.mark.parametrize(
    "row",
    [
        RowEvidence("Queen's Quay Division", ("Queen's Quay Division",)),
        RowEvidence("queen's quay division", ("guides",)),
        RowEvidence("QUEEN'S QUAY DIVISION"),
        RowEvidence("Harbour Guides", ("Lock Division Queen's Quay Division",)),
        RowEvidence("Queen's Quay", ("Circuit Mill Court",)),
        RowEvidence("Court Guide", prose="What does the Queen's Quay Division\nQueen's Quay Division Guide say?"),
    ],
)
def test_each_field_of_a_row_is_read_by_itself(row):
    corpus = Corpus([guide("Queen's Quay Division"), guide("Mill Court")])
    resolution = corpus.resolve(read_citation("Reading lists"), row)
    assert resolution.source is corpus.sources[0], resolution.reason


def test_a_court_whose_name_holds_another_court_s_name_is_not_that_court():
    mill = {"mill": {"mc"}}
    assert names_court("the mill court", mill) and names_court("Lock Division Mill Court", mill)
    assert not names_court("circuit mill court", mill) and not names_court("Mill ponds", mill)
    assert find_strange_courts("circuit mill court", mill, guides_only=False) == ["Circuit Mill Court"]


# ---------------------------------------------------------------- on real data


@pytest.fixture(scope="module")
def real(data: Path) -> Corpus:
    table = data / "cpr" / "ground_truth_cpr.jsonl"
    return Corpus(load(data / "cpr", Policy(), Tally(), table=table)[0])


@pytest.mark.data
@pytest.mark.slow
def test_the_court_in_both_fields_and_no_prose_resolves_as_many_citations_as_before(real, data):
    lines = (data / "cpr" / "ground_truth_cpr.jsonl").read_text(encoding="utf-8").splitlines()
    resolved = located = 0
    for row in map(json.loads, lines):
        court = row["category"] if row["source_type"] == "Court Guide" else row["source_type"]
        evidence = RowEvidence(court, (row["category"],))
        for citation in find_citations(row["truth"]):
            resolutions = [resolution for _, resolution in real.resolve_all(citation, evidence)]
            resolved += sum(resolution.source is not None for resolution in resolutions)
            located += sum(resolution.place is not None for resolution in resolutions)
    assert (resolved, located) == (56, 51), "the other six cite a guide that the folder has not"


@pytest.mark.data
@pytest.mark.slow
def test_real_paragraphs_whose_number_stands_alone_are_found(real):
    found = cited = 0
    for source in real.sources:
        name = reference_of(source.raw.title).replace("Practice Direction", "PD")
        alone = [block.text for block in source.blocks if re.fullmatch(r"\d+[A-Z]*(?:\.\d+[A-Z]?)+", block.text)]
        for number in dict.fromkeys(alone) if name else ():
            resolution = resolve(real, f"{name}, paragraph {number}")
            cited += 1
            place = resolution.place if resolution.source is source else None
            found += place is not None and bool(re.search(rf"^{re.escape(number)}", place.text[:300], re.MULTILINE))
    assert cited == 1640
    assert found >= 1600, "the export has no words for 38 paragraphs of one direction"
