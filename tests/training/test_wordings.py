"""Other wordings of questions: enough of each kind, no duplicates, and none for both training and testing."""

from __future__ import annotations

import re

import pytest

from training.questions import OWN, read_queries, read_wordings


def plain(words: str) -> str:
    return re.sub(r"\W+", " ", words.casefold()).strip()


@pytest.mark.parametrize(("source", "kinds"), [("cuad", 41), ("contractnli", 17), ("maud", 25)])
def test_each_kind_has_two_dozen_wordings_half_of_them_for_testing(source: str, kinds: int) -> None:
    wordings = read_wordings(source)
    assert list(wordings) == list(OWN[source])
    assert len(wordings) == kinds
    for kind, words in wordings.items():
        assert len(words.train) >= 12, kind
        assert len(words.test) >= 12, kind
        assert all(plain(one) and one == one.strip() for one in (*words.train, *words.test)), kind


def test_no_wording_comes_twice() -> None:
    every = [
        plain(one)
        for source in OWN
        for words in read_wordings(source).values()
        for one in (words.own, *words.train, *words.test)
    ]
    assert len(every) == len(set(every))


def test_wordings_differ_in_length_and_in_register() -> None:
    for source in OWN:
        for kind, words in read_wordings(source).items():
            for half in (words.train, words.test):
                lengths = [len(one.split()) for one in half]
                assert max(lengths) >= min(lengths) + 5, kind
                assert any(one.endswith("?") for one in half), kind
                assert any(not one.endswith("?") for one in half), kind


def test_queries_on_clauses_have_eight_other_wordings() -> None:
    queries = read_queries("acord")
    assert len(queries) == 57
    assert {len(words) for words in queries.values()} == {8}
    every = [plain(one) for query, words in queries.items() for one in (query, *words)]
    assert len(every) == len(set(every))
    assert read_queries("nobody wrote any") == {}
