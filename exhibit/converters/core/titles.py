"""Pairs the rows of a table with files of slightly different names, and makes a unique title for each document."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from exhibit.evidence.fold import align
from exhibit.evidence.readers import pdf
from exhibit.law.names import make_file_key
from exhibit.models.llms import LLM, Prompt
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import DocumentError, ServiceError, escape_surrogates
from exhibit.storage.cache import find_cache_folder

MIN_NAME_CHARS = 20  # fewest characters of a name that may match as a part of a longer name

_PROMPT = """Here is the beginning of a legal document. Reply with a title for it and nothing else: the kind of \
document, then "between" and the names of the parties. At most 15 words, no quotation marks.

File name: {filename}

{text}"""


def pair_files(names: Sequence[str], paths: Iterable[Path]) -> tuple[dict[int, Path], list[int]]:
    """Return the file of each name, by the name's index, and the indexes of names whose file has only a similar name.

    Each rule (the same name, a shorter or longer form, a similar name) is tried on all names before the next rule.
    """
    left = {path: make_file_key(path.name) for path in paths}
    keys = [make_file_key(name) for name in names]
    files: dict[int, Path] = {}
    similar: list[int] = []
    for find in (_find_same_key, _find_longer, _find_similar):
        for row, key in enumerate(keys):
            matches = find(key, left) if row not in files else []
            if len(matches) == 1:
                files[row] = matches[0]
                del left[matches[0]]
                similar += [row] if find is _find_similar else []
    return files, similar


def _find_same_key(key: str, left: Mapping[Path, str]) -> list[Path]:
    return [path for path, other in left.items() if other == key]


def _find_longer(key: str, left: Mapping[Path, str]) -> list[Path]:
    return [
        path
        for path, other in left.items()
        if min(len(key), len(other)) >= MIN_NAME_CHARS and (other.startswith(key) or key.startswith(other))
    ]


def _find_similar(key: str, left: Mapping[Path, str]) -> list[Path]:
    """Return the files with the most similar name if only a few letters differ, such as `_` for `É`."""
    if len(key) < MIN_NAME_CHARS:
        return []
    most = len(key) // 10  # one misspelling is allowed for each ten letters
    # count letters first, which excludes most pairs: the edit distances of a thousand names would take minutes
    letters, others = Counter(key), {path: Counter(other) for path, other in left.items()}
    near = [p for p, other in others.items() if max((letters - other).total(), (other - letters).total()) <= most]
    distances = {}
    for path in near:
        if part := align(key, left[path], most=most):
            # the letters outside the best alignment are edits, too
            distances[path] = part.distance + len(left[path]) - (part.end - part.start)
    least = min(distances.values(), default=0)
    return [path for path, distance in distances.items() if distance == least <= most]


def join_names(names: Sequence[str], *, most: int = 3) -> str:
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - (most - 1)} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else ""


def list_titles(title: str, *, date: str, stem: str) -> list[str]:
    dated = [f"{title} dated {date}"] if date else []
    return [title, *dated, f"{[title, *dated][-1]} ({stem})"]


def choose_unique_titles(candidates: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Choose for each document the first of its candidate titles that is unique."""
    level = dict.fromkeys(candidates, 0)
    while True:
        chosen = {name: titles[level[name]] for name, titles in candidates.items()}
        counts = Counter(title.casefold() for title in chosen.values())
        clashing = {name for name, title in chosen.items() if counts[title.casefold()] > 1}
        vague = [name for name in clashing if level[name] < len(candidates[name]) - 1]
        if not vague:
            # file names with equal stems differ only in the suffix
            return {name: f"{title} ({name})" if name in clashing else title for name, title in chosen.items()}
        for name in vague:
            level[name] += 1


def read_own_title(path: Path) -> str:
    """Return the title in a PDF's metadata; empty if it has none or is damaged."""
    try:
        return escape_surrogates(pdf.read_title(path)).replace("\0", "").strip()
    except (DocumentError, OSError, ValueError):
        return ""  # the conversion reads the file next, and reports the error


def ask_titles(texts: Mapping[str, str]) -> dict[str, str]:
    """Return a title for each file name from an OpenAI-compatible server; replies are cached."""
    model = os.environ.get("OPENAI_MODEL") or "gpt-4o-mini"
    module, _ = load_plugin("exhibit.models.llms", "openai")
    llm: LLM = module.open(model, {"cache": find_cache_folder() / "titles"})
    prompts = [Prompt(_PROMPT.format(filename=name, text=text[:4000])) for name, text in texts.items()]
    titles = {}
    for name, reply in zip(texts, llm.complete(prompts, max_tokens=100, temperature=0.0), strict=True):
        titles[name] = " ".join(reply.text.split()).strip(" \"'“”.")[:200]
        if not titles[name]:
            reason = reply.error or f"{model} gave an empty title"
            raise ServiceError(f"no title for {name}: {reason}; run the command again: finished titles are stored")
    return titles
