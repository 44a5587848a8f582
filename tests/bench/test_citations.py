"""The benchmark of citations: the citations made from a folder's documents, and the counts of outcomes."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from bench.citations import Made, main, make, measure
from exhibit.converters import Tally
from exhibit.converters.civil_procedure.corpus import Corpus, RowEvidence
from exhibit.converters.civil_procedure.sources import load
from exhibit.converters.fetching.fetch import Policy


def test_outcomes_are_counted_by_kind(samples):
    sources, _ = load(samples / "cpr", Policy(), Tally())
    guide, part = "03.2_AT_Harbour_Chamber_Guide_v2.pdf", "Part 4 – Service of Documents.pdf"
    made = [
        Made("So. [C.1 How cases are listed (p. 3)]", "heading", RowEvidence(), guide, 3),
        Made("So. [C.1 How cases are listed (p. 3)]", "heading", RowEvidence(), guide, 2),
        Made("So. [Part 4]", "name", RowEvidence(), part),
        Made("So. [Part 4]", "name", RowEvidence(), guide),
        Made("So. [Part 99]", "none", RowEvidence()),
    ]
    counts = measure(Corpus(sources), made)
    assert counts["heading"] == Counter({"all": 2, "resolved": 2, "located": 2, "wrong page": 1})
    assert counts["name"] == Counter({"all": 2, "resolved": 2, "located": 2, "wrong document": 1})
    assert counts["none"] == Counter({"all": 1})


def test_the_samples_citations_are_all_resolved(samples, capsys):
    main([str(samples / "cpr")])
    rows = [line.rsplit(maxsplit=5) for line in capsys.readouterr().out.splitlines()[4:] if line.strip()]
    assert {name: (int(count) > 0, count == found) for name, count, found, *_ in rows if "'s n" in name} == {
        "document's number": (True, True),
        "document's name": (True, True),
        "rule's number": (True, True),
    }
    assert all(wrong == "0" for *_, wrong, _ in rows)


@pytest.mark.data
@pytest.mark.slow
def test_made_citations_of_the_real_documents_are_resolved_and_none_wrongly(data):
    sources, _ = load(data / "cpr", Policy(), Tally())
    made = list(make(sources, count=100, chance=random.Random(1)))
    total: Counter[str] = Counter()
    for counts in measure(Corpus(sources), [one for one in made if one.filename]).values():
        total += counts
    assert total["resolved"] >= 0.95 * total["all"]
    assert total["located"] >= 0.9 * total["resolved"]
    assert total["wrong document"] == 0
