"""Provisions in replies: a passage that names one gets its position, and citations are checked by position."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.documents import Documents
from exhibit.evaluation.metrics import Options, provision_citations
from exhibit.evaluation.provisions import ProvisionPlacer
from exhibit.evaluation.servers.shapes import read_passages
from exhibit.evidence import Span
from tests.converters.test_shapes import LAW, LEASE


@pytest.fixture
def placer(tmp_path: Path) -> ProvisionPlacer:
    """A locator of provisions for a contract and a statute."""
    for name, text in {"lease.txt": LEASE, "bootmg.txt": LAW.replace("#", "").replace("\n ", "\n")}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return ProvisionPlacer(Documents({path.name: path for path in sorted(tmp_path.iterdir())}))


@pytest.mark.parametrize(
    ("given", "file", "words"),
    [
        ({"source": "lease.txt", "section": "Section 2.01"}, "lease.txt", "EUR 1,200"),
        ({"norm_id": "bootmg-2a", "score": 0.5}, "bootmg.txt", "Kaution"),
        ({"document_title": "lease", "clause": "2.02(b)"}, "lease.txt", "insolvent"),
    ],
)
def test_a_passage_without_words_is_placed_by_the_provision_it_names(placer, given, file, words):
    names = {"lease.txt": "lease.txt", "lease": "lease.txt"}.get
    (passage,) = read_passages([given], names=names)
    placed = placer.place(passage)
    assert placed.filename == file and words in placed.text and placed.span is not None


def test_a_passage_with_words_or_of_a_law_that_is_not_there_stays_as_it_is(placer):
    for passage in (Passage("words", told_provision="§ 2 BootMG"), Passage(told_provision="§ 3 StGB"), Passage()):
        assert placer.place(passage) == passage


def gold(text: str, words: str, file: str) -> GoldPassage:
    at = text.index(words)
    return GoldPassage(file, words, ((Span(at, at + len(words)),),))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The rent is EUR 1,200 (Section 2.01).", (1.0, 1.0)),
        ("See Section 2.01 and Section 1.02.", (0.5, 1.0)),
        ("As § 2a BootMG says, no.", (0.0, 0.0)),
        ("Under § 3 StGB nobody pays.", (None, None)),
        ("It says “subject to Section 1.02”.", (None, None)),
        ("The rent is EUR 1,200.", (None, None)),
    ],
)
def test_provisions_that_an_answer_cites_are_right_where_they_hold_the_gold(placer, answer, expected):
    golds = (gold(LEASE, "a rent of EUR 1,200 a month", "lease.txt"),)
    reply = Reply(answer, provisions=placer.cited(answer, golds))
    scores = provision_citations.measure([Case(1, "q", "a", golds, reply=reply)], Options())
    assert (scores["citation_precision"][0], scores["citation_recall"][0]) == expected
