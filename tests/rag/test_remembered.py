"""The caches of retrieval are cleared when the collection changes."""

from __future__ import annotations

import numpy as np

from exhibit.law.profile import Profile
from exhibit.rag.lexicon import documents as documents_module
from exhibit.rag.lexicon.documents import DocumentNames
from exhibit.rag.questions import understand
from exhibit.rag.retrieval import extents as extents_module
from exhibit.rag.retrieval.extents import Extents

KENWAY = understand("Under the Kenway Supply Agreement, who pays?")


def add(library: DocumentNames, number: int, party: str) -> None:
    text = f"SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {party} Ltd and Dune plc."
    profile = Profile(title="Supply Agreement", parties=(f"{party} Ltd", "Dune plc"), kind="contract")
    library.add(number, filename=f"{party.lower()}.pdf", profile=profile, text=text)


def test_documents_that_come_and_go_are_seen_by_the_next_question():
    library = DocumentNames()
    add(library, 0, "Alder")
    add(library, 1, "Birch")
    before = library.score(KENWAY)
    assert library.score(KENWAY) is before, "the same names again are not weighed again"
    add(library, 2, "Kenway")
    after = library.score(KENWAY)
    assert len(after.numbers) == 3 and after.choose_best(1) == [2]
    library.remove(2)
    assert np.array_equal(library.score(KENWAY).log_weights, before.log_weights)


def test_choices_are_remembered_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(documents_module, "_REMEMBERED", 4)
    library = DocumentNames()
    add(library, 0, "Alder")
    add(library, 1, "Birch")
    for name in ("Alder", "Birch", "Cedar", "Dune", "Elm"):
        library.score(understand(f"Under the {name} Supply Agreement, who pays?"))
        assert len(library._choices) * len(library) <= 4


def test_pieces_of_chunks_are_shared_by_questions_and_passages_stay_the_same(monkeypatch):
    text = "The rent is due on the first day of each month. The term is five years from the date above. " * 4
    half = len(text) // 2
    table = np.array([[0, 0, 0, half, 0, 0], [1, 0, half, len(text), 0, 0]], dtype=np.int64)
    ranked = [(1, 2.0), (0, 1.0)]

    def formed(tiles):
        extents = Extents(table, lambda number: text, dict(ranked), limit=120, tiles=tiles)
        return extents.form(ranked, depth=8, weigh=lambda words: float("term" in words))

    tiles: dict[int, list] = {}
    first = formed(tiles)
    assert first and set(tiles) == {0, 1} and formed(tiles) == first == formed({})
    monkeypatch.setattr(extents_module, "_REMEMBERED", 1)
    assert formed({}) == first, "forgetting costs time and nothing else"
