"""Boundaries of references: where each begins and ends in the text, and which parts belong together."""

from __future__ import annotations

import pytest

from exhibit.law.references import Reference, ReferenceCorpus, find_references
from exhibit.law.references.corpus import list_own_places


def told(text: str) -> list[str]:
    return list(map(str, find_references(text)))


def test_numbers_with_letters_make_no_range() -> None:
    assert told("rules 3.4A to 3.6") == ["CPR 3.4A", "CPR 3.6"] and told("rules 3.4 to 3.6A") == ["CPR 3.4", "CPR 3.6A"]


# ---------------------------------------------------------------- what a text is itself


def places(text: str) -> list[str]:
    return list(map(str, list_own_places(text)))


@pytest.mark.parametrize("line", ["Part 36 applies where", "Part 36.1 Offers", "PART 36 - " + "x" * 190, "Parts 36"])
def test_no_titles(line: str) -> None:
    assert places(line) == []


def test_a_corpus_counts_its_places_and_knows_no_half_of_a_case() -> None:
    corpus = ReferenceCorpus(find_references("rule 3.4(2) and [2019] UKSC 5"))
    assert len(corpus) == 5, "the rules, Part 3, rule 3.4, its paragraph, and the case"
    assert corpus.contains(Reference("rule", "CPR", ("3",))) and corpus.contains(Reference("rule", "CPR", ()))
    assert not corpus.contains(Reference("case", "UKSC", ("2019",)))
