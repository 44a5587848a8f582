"""Titles that tell the documents of a bundle apart."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tqdm import tqdm

from exhibit.engine import track
from exhibit.models.llms import LLM, Completion, Prompt
from exhibit.schemas.errors import ServiceError, SourceError
from exhibit.schemas.parsing import parse_json
from exhibit.schemas.plugins import load_plugin
from exhibit.storage.cache import cache_folder
from exhibit.storage.place import write_whole

_SPACES = re.compile(r"\s+")

PROMPT_VERSION = 2  # raised when the wording changes: titles made with another are not used
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
"""Held to this a model cannot wrap the title in talk; a server that knows no schemas replies with the title alone."""
_PROMPT_CHARACTERS = 4000  # the first page, which has the title
_LONGEST = 200  # characters: a title, where a model goes on talking


def join_names(names: Sequence[str], *, most: int = 3) -> str:
    """Return `A, B and C`; of long lists the first ones and how many more."""
    if len(names) > most:
        rest = len(names) - (most - 1)
        names = [*names[: most - 1], f"{rest} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else ""


def unique_titles(candidates: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Choose for each document the plainest of its candidate titles that no other document has.

    Candidates go from plain to precise (name and parties, then the date, then the file's stem).
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
    # stems can differ in the ending alone
    return {name: f"{title} ({name})" if name in clashing else title for name, title in chosen.items()}


# ---------------------------------------------------------------- by an LLM


def llm_titles(texts: Mapping[str, Callable[[], str]], *, store: Path, model: str | None) -> dict[str, str]:
    """Ask an OpenAI-compatible server for titles, once: answers are stored beside the source."""
    store = _writable(store)
    model = model or os.environ.get("OPENAI_MODEL") or "gpt-4o-mini"
    kept = _load(store, model)
    missing = [name for name in texts if name not in kept]
    if not missing:
        return {name: kept[name] for name in texts}
    module, _ = load_plugin("exhibit.models.llms", "openai")
    llm: LLM = module.open(model, {"retries": 1})
    for name in track(missing, total=len(missing), label="titles"):
        prompt = Prompt(_PROMPT.format(filename=name, text=texts[name]()[:_PROMPT_CHARACTERS]), schema=_SCHEMA)
        [reply] = llm.complete([prompt], max_tokens=100, temperature=0.0)
        kept[name] = _title(reply, model)
        _save(store, model, kept)
    tqdm.write(f"titles stored in {store}", file=sys.stderr)
    return {name: kept[name] for name in texts}


def _title(reply: Completion, model: str) -> str:
    if reply.error:
        raise ServiceError(f"no title: {reply.error}; titles so far are kept, run it again")
    title = _SPACES.sub(" ", _said(reply.text)).strip(" \"'“”.")[:_LONGEST]
    if not title:
        raise ServiceError(f"model {model} gave an empty title; titles so far are kept, run it again")
    return title


def _said(text: str) -> str:
    """Return the title in a reply that follows the schema, else the reply."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return text
    title = held.get("title") if isinstance(held, dict) else None
    return title if isinstance(title, str) else text


def _load(store: Path, model: str) -> dict[str, str]:
    if not store.is_file():
        return {}
    data = parse_json(store.read_bytes(), where=store, error=SourceError)
    same = data.get("model") == model and data.get("prompt_version") == PROMPT_VERSION
    return dict(data["titles"]) if same else {}


def _save(store: Path, model: str, titles: Mapping[str, str]) -> None:
    data = {"model": model, "prompt_version": PROMPT_VERSION, "titles": dict(sorted(titles.items()))}
    write_whole(store, json.dumps(data, ensure_ascii=False, indent=1) + "\n")


def _writable(store: Path) -> Path:
    """Return the store, or one in the cache when the source's folder cannot be written."""
    if store.is_file() or os.access(store.parent, os.W_OK):
        return store
    folder = cache_folder() / "titles"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{store.parent.name}-{store.name}"
