"""Paths for a reply that is like none we know: found in it, tried on it, and told only where they yield something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from exhibit.evaluation.cases import Passage
from exhibit.evaluation.targets._passages import Names, PassagesError, read_passages
from exhibit.evaluation.targets._shapes import first_words, search

_NAMING = re.compile(r"file|doc|title|name|source|url|path", re.IGNORECASE)
_DEEPEST = 6
"""Levels of a reply that are looked at: the deepest known one has its passages at the fourth."""
_SENTENCE = 3
"""Words from which a text may be a passage or an answer."""


class Advice(NamedTuple):
    """Paths that fit a reply; empty where none was found."""

    answer: str = ""
    passages: str = ""

    @property
    def flags(self) -> str:
        """The paths as a user gives them."""
        answer = f"--target-response-answer-jmespath '{self.answer}'" if self.answer else ""
        passages = f"--target-response-context-jmespath '{self.passages}'" if self.passages else ""
        return " ".join(filter(None, (answer, passages)))


def advise(reply: Any, names: Names) -> Advice:
    """Return where a reply has its answer and its passages; each path was tried on it."""
    lists = [(path, value) for path, value in _walk(reply) if isinstance(value, list) and value and path]
    passages = next((fit for path, value in lists if (fit := _fitting(reply, path, value, names))), "")
    inside = passages.partition("[")[0] if passages else None
    texts = [(path, value) for path, value in _walk(reply) if isinstance(value, str) and " " in value.strip()]
    texts = [(path, value) for path, value in texts if not inside or not path.startswith(f"{inside}[")]
    answer = max(texts, key=lambda pair: len(pair[1]), default=("", ""))[0]
    return Advice(answer if answer and first_words([answer], reply) else "", passages)


def _fitting(reply: Any, path: str, items: list[Any], names: Names) -> str:
    """Return the path to passages with words and, where they have any, names; empty where these are no passages."""
    first = items[0]
    if isinstance(first, str):
        return path if len(first.split()) >= _SENTENCE else ""
    if not isinstance(first, Mapping):
        return ""
    texts = [(key, value) for key, value in _walk(first) if isinstance(value, str)]
    long = [(key, value) for key, value in texts if len(value.split()) >= _SENTENCE and not names(value)]
    if not long:
        return ""
    text = max(long, key=lambda pair: len(pair[1]))[0]
    known = [key for key, value in texts if names(value)] + [
        key for key, _ in texts if key != text and _NAMING.search(key.rpartition(".")[2])
    ]
    fields = f"text: {text}" + (f", filename: {known[0]}" if known else "")
    for fit in (path, f"{path}[].{{{fields}}}"):
        if _good(search(fit, reply), names, first, text, named=bool(known)):
            return fit
    return ""


def _good(given: Any, names: Names, first: Mapping[str, Any], text: str, *, named: bool) -> bool:
    try:
        read = read_passages(given, names=names)
    except PassagesError:
        return False
    return bool(read) and read[0].text == search(text, first) and (not named or read[0].filename is not None)


def without_words(given: Any, names: Names, pages_from: int) -> tuple[bool, bool]:
    """Return whether no passage has a text, and whether any has the name of a known document."""
    read: tuple[Passage, ...] = read_passages(given, names=names, pages_from=pages_from)
    wordless = bool(read) and not any(one.text.strip() or one.span for one in read)
    return wordless, any(one.filename and names(one.filename) for one in read)


def _walk(value: Any, path: str = "", depth: int = _DEEPEST) -> Iterator[tuple[str, Any]]:
    """Yield every value of a reply with its path; of a list, the first two."""
    if path:
        yield path, value
    if not depth:
        return
    if isinstance(value, Mapping):
        for key, held in value.items():
            name = str(key) if re.fullmatch(r"[A-Za-z_]\w*", str(key), re.ASCII) else '"' + str(key) + '"'
            yield from _walk(held, f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(value, list):
        for index, held in enumerate(value[:2]):
            yield from _walk(held, f"{path}[{index}]", depth - 1)
