"""Exported search results to candidate ground truth: a question, words that may answer it, and their citation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from exhibit.converters._cpr.parsing import Record, body, document_key, load_json, records, string
from exhibit.converters._cpr.sources import full_name, kind_of, reference_of
from exhibit.engine import guarded
from exhibit.schemas.errors import DocumentError, SourceError

_CITED = 3
"""Documents cited per candidate, best first: more is a list to prune, not an answer."""
_LONGEST = 600  # characters of an excerpt: a paragraph


def candidates(exports: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Yield a line of ground truth per query of these files; a plain export gives one per document."""
    seen: set[str] = set()
    for path in exports:
        before = len(seen)
        try:
            rows = guarded(read_candidates, path)
        except DocumentError as error:
            raise SourceError(f"{error}; expected an export of search results") from error
        for candidate in rows:
            if candidate["question"] not in seen:
                seen.add(candidate["question"])
                yield candidate
        if len(seen) == before:
            raise SourceError(
                f"{path}: no search results in it; expected records with content and sourcepage, or "
                '{"query": …, "results": […]}'
            )


def read_candidates(path: Path) -> list[dict[str, str]]:
    """Return a line of ground truth per query of a file. Called in a worker."""
    data = load_json(path)
    searches = [(query, records) for query, records in _searches(data) if records]
    return [_candidate(query or f"What does {_document(records[0])} provide?", records) for query, records in searches]


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
    for (query, _), group in grouped.items():
        yield query, group


def _candidate(question: str, records: list[Record]) -> dict[str, str]:
    cited = list(dict.fromkeys(_citation(record) for record in records))[:_CITED]
    return {
        "question": question,
        "truth": " ".join([_excerpt(body(_content(records[0]))), *cited]),
        "source_type": kind_of(_document(records[0])),
        "category": string(records[0], "category"),
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
