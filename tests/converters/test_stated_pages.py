"""Stated page numbers: one chooses between equal matches, is gold if there is no quote, and is noted if wrong."""

from __future__ import annotations

from exhibit.converters.benchmark import Quote, RawDocument
from exhibit.converters.steps.materialise import Task, materialise


def test_a_stated_page_chooses_a_place_and_one_that_errs_is_noted(samples, tmp_path):
    path = next(path for path in sorted((samples / "cuad").rglob("*")) if path.suffix.lower() == ".pdf")
    raw = RawDocument(path.name, "A", path=path)

    def placed(**fields):
        quote = Quote(path.name, **fields)
        done = materialise(Task(raw, (quote,), path, tmp_path / path.name))
        return done.places[quote], done.notes

    word = placed(text="the")[0]
    assert word.pages == [1] and len(word.alternatives) > 3, "a word that stands on every page"
    chosen, notes = placed(text="the", page=2)
    assert chosen.pages == [2] and not any("is stated" in note for note in notes)
    first = placed(text="the", page=999)
    assert first[0].pages == [1] and any("page 999 is stated for words that stand on page 1" in n for n in first[1])
    alone = placed(text=None, page=2)[0]
    assert (alone.pages, alone.spans, alone.how) == ([2], [], "absent")
