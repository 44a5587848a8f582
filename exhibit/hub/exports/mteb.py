"""The MTEB format: the chunks and relevance scores of `beir_passages`, and a task that `mteb` loads and runs."""

import json
import re
from pathlib import Path

from exhibit.hub.exports import Export, beir_passages
from exhibit.hub.tables import LICENCES, read_languages

_TASK = Path(__file__).parent.parent / "mteb_task.txt"
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


def write(export: Export, folder: Path) -> None:
    """Write a retrieval task for the benchmark library MTEB."""
    beir_passages.write(export, folder)
    info = export.bundle.info
    licence = info.licence.id if info and info.licence.id in LICENCES - {"other", "unknown"} else None
    task = {
        "name": f"Exhibit{re.sub(r'[^A-Za-z0-9]', '', export.name.title())}Retrieval",
        "description": info.summary if info and info.summary else _DESCRIPTION,
        "dataset": {"path": export.name, "revision": info.source.version if info else "1"},
        "eval_langs": [_LANGUAGES.get(code, f"{code}-Latn") for code in read_languages(export.bundle.root)],
        **_SHARED,
        "reference": info.source.url or None if info else None,
        "license": licence,
    }
    (folder / "task.json").write_text(json.dumps(task, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / "task.py").write_bytes(_TASK.read_bytes())
