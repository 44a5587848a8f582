"""Question wordings: enough of each kind, no duplicates, and none used for both training and testing."""

import re

import pytest

from training.gather import OWN, read_wordings


def normalise(words: str) -> str:
    return re.sub(r"\W+", " ", words.casefold()).strip()


@pytest.mark.parametrize(("source", "kinds"), [("cuad", 41), ("contractnli", 17), ("maud", 25)])
def test_each_kind_has_at_least_12_training_and_12_test_wordings(source: str, kinds: int) -> None:
    wordings = read_wordings(source)
    assert list(wordings) == list(OWN[source])
    assert len(wordings) == kinds
    for kind, words in wordings.items():
        for role in ("train", "test"):
            assert len(words[role]) >= 12, kind
            assert all(normalise(wording) and wording == wording.strip() for wording in words[role]), kind


def test_wordings_are_unique_across_all_kinds() -> None:
    every = [
        normalise(wording)
        for source in OWN
        for words in read_wordings(source).values()
        for wordings in words.values()
        for wording in wordings
    ]
    assert len(every) == len(set(every))
