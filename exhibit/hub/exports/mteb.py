"""The MTEB format: corpus, queries and relevance in JSON Lines with a card, and a task that `mteb` runs."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from exhibit.hub.exports import Export, write_lines
from exhibit.hub.exports.beir_passages import Chunks, make_corpus, score_chunks
from exhibit.hub.tables import LICENCES, read_languages
from exhibit.schemas.bundle import CARD

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
_LANGUAGES = {"en": "eng-Latn", "de": "deu-Latn", "cs": "ces-Latn", "pt": "por-Latn", "es": "spa-Latn"}
_DESCRIPTION = "Questions on legal documents with gold passages located in the extracted text."
_CONFIGS = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "default": "qrels.jsonl"}
"""The configs that MTEB loads, with their files; `default` has the relevance of passages."""


def write(export: Export, folder: Path) -> None:
    """Write a retrieval task; the folder is loaded as it is, or as a dataset repository of the same files."""
    chunks: Chunks = {}
    passages = make_corpus(export, chunks)
    write_lines(
        folder / _CONFIGS["corpus"],
        ({"id": one["_id"], "title": one["title"], "text": one["text"]} for one in passages),
    )
    asked = [question for question in export.bundle.questions if not question.is_impossible]
    write_lines(folder / _CONFIGS["queries"], ({"id": str(one.id), "text": one.question} for one in asked))
    relevant = {str(one.id): score_chunks(export.gold[one.id], chunks) for one in asked}
    for query, scores in relevant.items():
        if not scores:
            export.note("query without a relevant text", query)
    rows = (
        {"query-id": query, "corpus-id": name, "score": score}
        for query, scores in relevant.items()
        for name, score in scores.items()
    )
    write_lines(folder / _CONFIGS["default"], rows)
    task = _describe_task(export)
    (folder / TASK).write_text(json.dumps(task, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / "task.py").write_bytes(_PROGRAM.read_bytes())
    (folder / CARD).write_text(_make_card(export, task), encoding="utf-8")


def _describe_task(export: Export) -> dict[str, Any]:
    info = export.bundle.info
    return {
        "name": f"Exhibit{re.sub(r'[^A-Za-z0-9]', '', export.name.title())}Retrieval",
        "description": info.summary if info and info.summary else _DESCRIPTION,
        "dataset": {"path": export.name, "revision": info.source.version if info else "1"},
        "eval_langs": [_LANGUAGES.get(code, f"{code}-Latn") for code in read_languages(export.bundle.root)],
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
