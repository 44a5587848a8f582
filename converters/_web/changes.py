"""What changed between two readings of a page: sentences that went and came, and the words in which they differ."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

from exhibit.law.sentences import sentences

_MOST_WORDS = 3000
"""Words of a passage that are compared one by one; of a longer one all count as changed."""


class Change(NamedTuple):
    """A passage that was replaced, or only removed or only added."""

    removed: str
    added: str
    words_removed: tuple[str, ...]
    words_added: tuple[str, ...]


def changes_between(old: str, new: str) -> list[Change]:
    """Return what is different in the words of two texts; how they are broken into lines does not count."""
    before, after = _sentences(old), _sentences(new)
    changes = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed, added = " ".join(before[a:b]), " ".join(after[c:d])
            if removed.split() != added.split():  # the same words in other sentences
                changes.append(Change(removed, added, *_words(removed.split(), added.split())))
    return changes


def _sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [plain[span.start : span.end] for span in sentences(plain)]


def _words(removed: list[str], added: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words that only one of two passages has at its place."""
    if max(len(removed), len(added)) > _MOST_WORDS:
        return tuple(removed), tuple(added)
    gone: list[str] = []
    come: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, removed, added, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += removed[a:b]
            come += added[c:d]
    return tuple(gone), tuple(come)
