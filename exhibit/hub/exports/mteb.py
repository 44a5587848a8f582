"""The MTEB format: corpus, queries and relevance in JSON Lines with a card, and a task that `mteb` runs.

The corpus is split into chunks of about 1,000 characters. A chunk with at least half of a gold passage has relevance
2, and a chunk with a smaller part has relevance 1.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from exhibit.hub.card import LICENCES, read_languages
from exhibit.hub.exports import Export, write_json, write_lines
from exhibit.schemas.bundle import CARD
from exhibit.schemas.models import Gold

CHUNK_CHARS = 1000
"""The most characters of a chunk: one or two clauses, about the length that passage retrievers are trained on."""
_BREAKS = ("\n\n", "\n", ". ", " ")  # the strings after which a chunk may end, the best first

Chunks = dict[str, list[tuple[int, int]]]

TASK = "task.json"
_PROGRAM = Path(__file__).parent.parent / "mteb_task.txt"
_SHARED = {
    "type": "Retrieval",
    "category": "t2t",
    "modalities": ["text"],
    "eval_splits": ["test"],
    "main_score": "ndcg_at_10",
    "domains": ["Legal", "Written"],
}
_LANGUAGES = {
    "bg": "bul-Cyrl", "cs": "ces-Latn", "da": "dan-Latn", "de": "deu-Latn", "el": "ell-Grek", "en": "eng-Latn",
    "es": "spa-Latn", "fi": "fin-Latn", "fr": "fra-Latn", "hr": "hrv-Latn", "hu": "hun-Latn", "it": "ita-Latn",
    "nl": "nld-Latn", "pl": "pol-Latn", "pt": "por-Latn", "ro": "ron-Latn", "ru": "rus-Cyrl", "sk": "slk-Latn",
    "sl": "slv-Latn", "sv": "swe-Latn", "uk": "ukr-Cyrl",
}  # fmt: skip
"""MTEB's codes of languages; MTEB refuses a task with any other code, so languages that are not here are left out."""
_DESCRIPTION = "Questions on legal documents with gold passages located in the extracted text."
_CONFIGS = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "default": "qrels.jsonl"}
"""The configs that MTEB loads, with their files; `default` has the relevance of passages."""


def write(export: Export, folder: Path) -> None:
    """Write a retrieval task; it can be loaded from the folder, or from a dataset repository with the same files."""
    chunks: Chunks = {}
    write_lines(folder / _CONFIGS["corpus"], _make_corpus(export, chunks))
    asked = [question for question in export.bundle.questions if not question.is_impossible]
    write_lines(folder / _CONFIGS["queries"], ({"id": str(row.id), "text": row.question} for row in asked))
    relevant = {str(row.id): score_chunks(export.gold[row.id], chunks) for row in asked}
    for query, scores in relevant.items():
        if not scores:
            export.noted["query without a relevant text"].append(query)
    rows = (
        {"query-id": query, "corpus-id": name, "score": score}
        for query, scores in relevant.items()
        for name, score in scores.items()
    )
    write_lines(folder / _CONFIGS["default"], rows)
    task = _describe_task(export)
    write_json(folder / TASK, task)
    (folder / "task.py").write_bytes(_PROGRAM.read_bytes())
    (folder / CARD).write_text(_make_card(export, task), encoding="utf-8")


def _make_corpus(export: Export, chunks: Chunks) -> Iterator[dict[str, Any]]:
    for filename, text in export.documents():
        chunks[filename] = list(tile(text))
        for start, end in chunks[filename]:
            name = f"{filename}#{start}-{end}"
            yield {"id": name, "title": export.title_of(filename), "text": text[start:end]}


def tile(text: str, size: int = CHUNK_CHARS) -> Iterator[tuple[int, int]]:
    """Yield the start and end of consecutive chunks that cover the text."""
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            breaks = ((text.rfind(mark, start + size // 2, end), mark) for mark in _BREAKS)
            end = next((at + len(mark) for at, mark in breaks if at >= 0), end)
        yield start, end
        start = end


def score_chunks(lines: list[Gold], chunks: Chunks) -> dict[str, int]:
    """Return the relevance of each chunk that overlaps the gold, by chunk name."""
    scores: dict[str, int] = {}
    for line in lines:
        whole = sum(end - start for start, end in line.spans)
        for start, end in chunks.get(line.filename or "", ()):
            shared = sum(max(0, min(end, b) - max(start, a)) for a, b in line.spans)
            if shared:
                name = f"{line.filename}#{start}-{end}"
                scores[name] = max(scores.get(name, 0), 2 if 2 * shared >= whole else 1)
    return scores


def _describe_task(export: Export) -> dict[str, Any]:
    info, languages = export.bundle.info, read_languages(export.bundle.root)
    return {
        "name": f"Exhibit{re.sub(r'[^A-Za-z0-9]', '', export.name.title())}Retrieval",
        "description": info.summary if info and info.summary else _DESCRIPTION,
        "dataset": {"path": export.name, "revision": info.source.version if info else "1"},
        "eval_langs": [_LANGUAGES[code] for code in languages if code in _LANGUAGES] or [_LANGUAGES["en"]],
        **_SHARED,
        "reference": info.source.url or None if info else None,
        "license": info.licence.id if info and info.licence.id in LICENCES - {"other", "unknown"} else None,
    }


def _make_card(export: Export, task: dict[str, Any]) -> str:
    head = {
        "license": task["license"] or "other",
        "language": read_languages(export.bundle.root),
        "task_categories": ["text-retrieval"],
        "tags": ["mteb", "legal"],
        "configs": [
            {"config_name": name, "data_files": [{"split": "test", "path": path}]} for name, path in _CONFIGS.items()
        ],
    }
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# {task['name']}\n\n{task['description']}\n\n"
        "Passages of about 1,000 characters; a passage with at least half of a gold passage has the score 2, one with "
        "a smaller part of it the score 1. Run it with `task.py`:\n\n"
        "    import mteb, task\n    mteb.evaluate(mteb.get_model(MODEL), [task.load()])\n"
    )
