"""Exported search results to candidate ground truth: a question, words that may answer it, and their citation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from converters._cpr.documents import Record, body, document_key, full_name, kind_of, records, reference_of, string
from schemas.errors import SourceError

_CITED = 3
"""Documents cited per candidate, best first: more is a list to prune, not an answer."""
_LONGEST = 600


def candidates(exports: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Yield a line of ground truth per query of these files; a plain export gives one per document."""
    seen: set[str] = set()
    for path in exports:
        before = len(seen)
        for query, found in _searches(_load(path)):
            question = query or f"What does {_document(found[0])} provide?"
            if question not in seen and found:
                seen.add(question)
                yield _candidate(question, found)
        if len(seen) == before:
            raise SourceError(
                f"{path}: no search results in it; expected records with content and sourcepage, or "
                '{"query": …, "results": […]}'
            )


def _load(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path}: not JSON ({error}); expected an export of search results") from error


def _searches(data: object) -> Iterator[tuple[str, list[Record]]]:
    """Yield each query with its results, best first; records without a query come one document at a time."""
    if isinstance(data, dict) and string(data, "query", "question"):
        results = [record for name in ("results", "value", "documents") for record in records(data.get(name))]
        yield string(data, "query", "question"), results or list(records(data))
        return
    if isinstance(data, list) and any(isinstance(item, dict) and "results" in item for item in data):
        for item in data:
            yield from _searches(item)
        return
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in records(data):
        query = string(record, "query", "question")
        grouped.setdefault((query, "" if query else document_key(record)), []).append(record)
    for (query, _), found in grouped.items():
        yield query, found


def _candidate(question: str, found: list[Record]) -> dict[str, str]:
    cited = list(dict.fromkeys(_citation(record) for record in found))[:_CITED]
    return {
        "question": question,
        "truth": " ".join([_excerpt(body(_content(found[0]))), *cited]),
        "source_type": kind_of(_document(found[0])),
        "category": string(found[0], "category"),
    }


def _content(record: Record) -> str:
    return string(record, "content") or next((string(r, "content") for r in records(record.get("chunks"))), "")


def _document(record: Record) -> str:
    """Return the name that a citation should give: `Part 36`, or the whole name where it has no number."""
    name = full_name(document_key(record), string(record, "sourcepage"))
    return reference_of(name) or name


def _citation(record: Record) -> str:
    document, section = _document(record), string(record, "sourcepage")
    mark = document if section in {"", document} else f"{document}#page={section}"
    # brackets inside would end the citation early
    return "[" + mark.replace("[", "(").replace("]", ")") + "]"


def _excerpt(text: str) -> str:
    """Return the beginning of a text, whole sentences as far as they fit; its brackets must not read as citations."""
    flat = re.sub(r"\s+", " ", re.sub(r"^-+$", "", text, flags=re.MULTILINE)).strip()
    flat = flat.replace("[", "(").replace("]", ")")
    if len(flat) <= _LONGEST:
        return flat
    cut = flat[:_LONGEST]
    end = max(cut.rfind(mark) for mark in (". ", "; ", "? "))
    return cut[: end + 1] if end > _LONGEST // 3 else cut[: cut.rfind(" ")] + " …"
