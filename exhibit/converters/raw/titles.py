"""Finds the file that each row of a table names, and makes a unique title for each document.

File names may differ slightly from the names in the table.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exhibit.engine import run_in_worker, track
from exhibit.engine.limits import limit_reading
from exhibit.evidence.fold import edit_distance
from exhibit.evidence.readers import pdf
from exhibit.law.names import make_file_key
from exhibit.models.llms import LLM, Completion, Prompt
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import DocumentError, ServiceError, escape_surrogates
from exhibit.storage.cache import find_cache_folder

_MIN_LENGTH = 20
"""Fewest characters of a name that may be matched by a part of it."""
_LETTERS_A_SLIP = 10  # letters per allowed misspelling: two in a name of twenty letters


@dataclass
class Pairs:
    """The result of pairing rows with files: the pairs, the uncertain pairs, and the rows without a file."""

    files: dict[int, Path] = field(default_factory=dict)
    similar: list[tuple[str, str]] = field(default_factory=list)
    """Pairs that were matched only by a similar name, for the report."""
    doubled: list[int] = field(default_factory=list)
    """Rows that name a file that an earlier row already has."""
    missing: list[int] = field(default_factory=list)


def pair_files(names: Sequence[str], paths: Iterable[Path]) -> Pairs:
    """Assign each name to one file by four rules, from the most to the least certain.

    A rule is tried on all names before the next rule, and a file is assigned only once.
    """
    left = list(paths)
    pairs = Pairs()
    for rule in _RULES:
        for row, name in enumerate(names):
            path = rule(name, left) if row not in pairs.files else None
            if path is not None:
                pairs.files[row] = path
                left.remove(path)
                if rule is _find_similar:
                    pairs.similar.append((name, path.name))
    taken = list(pairs.files.values())
    for row, name in enumerate(names):
        if row not in pairs.files:
            again = any(rule(name, taken) for rule in (_equal, _find_alike))
            (pairs.doubled if again else pairs.missing).append(row)
    return pairs


def _equal(name: str, left: Iterable[Path]) -> Path | None:
    return _choose_only(path for path in left if path.name == name)


def _find_alike(name: str, left: Iterable[Path]) -> Path | None:
    """Return the only file whose name differs at most in case, spaces and punctuation; else None.

    Example: `A_B.pdf` for `A&B .PDF`.
    """
    key = make_file_key(name)
    return _choose_only(path for path in left if make_file_key(path.name) == key)


def _find_longer(name: str, left: Iterable[Path]) -> Path | None:
    """Return the only file whose name is a shorter or longer form of `name`; None if there is not exactly one.

    The longer name must begin with the shorter name. Case, spaces and punctuation are ignored.
    """
    key = make_file_key(name)
    keys = {path: make_file_key(path.name) for path in left}
    return _choose_only(
        path
        for path, other in keys.items()
        if min(len(key), len(other)) >= _MIN_LENGTH and (other.startswith(key) or key.startswith(other))
    )


def _find_similar(name: str, left: Iterable[Path]) -> Path | None:
    """Return the file with the most similar name if only a few letters differ, such as `_` for `É`.

    None if no name is similar enough, or if several are equally similar.
    """
    key = make_file_key(name)
    if len(key) < _MIN_LENGTH:
        return None
    distances = {path: edit_distance(key, make_file_key(path.name)) for path in left}
    close = [path for path, distance in distances.items() if distance * _LETTERS_A_SLIP <= len(key)]
    nearest = min((distances[path] for path in close), default=0)
    return _choose_only(path for path in close if distances[path] == nearest)


_RULES: tuple[Callable[[str, Iterable[Path]], Path | None], ...] = (_equal, _find_alike, _find_longer, _find_similar)


def _choose_only(paths: Iterable[Path]) -> Path | None:
    some = list(paths)
    return some[0] if len(some) == 1 else None


_SPACES = re.compile(r"\s+")

_PROMPT = """Here is the beginning of a legal document. Reply with a title for it and nothing else: the kind of \
document, then "between" and the names of the parties. At most 15 words, no quotation marks.

File name: {filename}

{text}"""
_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
        "additionalProperties": False,
    }
)
"""A JSON Schema that keeps a model from adding words to the title; a server without schemas returns only the title."""
_PROMPT_CHARACTERS = 4000  # characters of the first page, which has the title
_LONGEST = 200  # characters of a title: a model may add more text


def join_names(names: Sequence[str], *, most: int = 3) -> str:
    """Return names joined as `A, B and C`; a long list ends with a count: `A, B and 5 others`."""
    if len(names) > most:
        rest = len(names) - (most - 1)
        names = [*names[: most - 1], f"{rest} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else ""


def choose_unique_titles(candidates: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Choose for each document the shortest of its candidate titles that no other document has.

    Candidates go from short to precise: name and parties, then the date, then the file's stem.
    """
    level = dict.fromkeys(candidates, 0)
    while True:
        chosen = {name: titles[min(level[name], len(titles) - 1)] for name, titles in candidates.items()}
        counts = Counter(title.casefold() for title in chosen.values())
        clashing = [name for name, title in chosen.items() if counts[title.casefold()] > 1]
        if not any(level[name] < len(candidates[name]) - 1 for name in clashing):
            break
        for name in clashing:
            level[name] += 1
    # stems may differ only in the suffix
    return {name: f"{title} ({name})" if name in clashing else title for name, title in chosen.items()}


def read_own_title(path: Path) -> str:
    """Return the title in a PDF's metadata; empty if it has none, is damaged, or takes too long to read."""
    try:
        return run_in_worker(read_title, path)
    except DocumentError:
        return ""  # the conversion reads the file next, and reports the error


def read_title(path: Path) -> str:
    """Return the title in a PDF's metadata; empty if the file cannot be opened or the title is not valid text.

    This function runs in a worker. Raise DocumentError if the PDF is damaged.
    """
    try:
        with limit_reading(str(path), path.stat().st_size, pdf.MEMORY):
            return escape_surrogates(pdf.read_title(path)).replace("\0", "").strip()
    except (OSError, ValueError):  # a lone surrogate is not a title
        return ""


# ---------------------------------------------------------------- by an LLM


def ask_titles(texts: Mapping[str, Callable[[], str]]) -> dict[str, str]:
    """Return a title for each file name, requested from an OpenAI-compatible server.

    Each value of `texts` is a function that returns a document's text. Replies are cached, so that each title
    is requested once.
    """
    model = os.environ.get("OPENAI_MODEL") or "gpt-4o-mini"
    module, _ = load_plugin("exhibit.models.llms", "openai")
    llm: LLM = module.open(model, {"retries": 1, "cache": find_cache_folder() / "titles"})
    titles = {}
    for name, text in track(texts.items(), total=len(texts), label="titles"):
        prompt = Prompt(_PROMPT.format(filename=name, text=text()[:_PROMPT_CHARACTERS]), schema=_SCHEMA)
        [reply] = llm.complete([prompt], max_tokens=100, temperature=0.0)
        titles[name] = _read_title(reply, model)
    return titles


def _read_title(reply: Completion, model: str) -> str:
    if reply.error:
        raise ServiceError(f"the model gave no title: {reply.error}; run the command again: finished titles are kept")
    title = _SPACES.sub(" ", _find_title(reply.text)).strip(" \"'“”.")[:_LONGEST]
    if not title:
        raise ServiceError(f"model {model} gave an empty title; run the command again: finished titles are kept")
    return title


def _find_title(text: str) -> str:
    """Return the field `title` of a reply that is a JSON object; return the whole reply if it has no such field."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return text
    title = held.get("title") if isinstance(held, dict) else None
    return title if isinstance(title, str) else text
