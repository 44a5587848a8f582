"""The MTEB format: the chunks and relevance scores of `beir_passages`, and a task that `mteb` loads and runs."""

import json
import re
from pathlib import Path

from exhibit.hub.exports import Export, beir_passages
from exhibit.hub.tables import LICENCES

_TASK = Path(__file__).parent.parent / "mteb_task.txt"
_ALWAYS = _TASK.with_name("mteb_task.json")
"""The metadata that all such tasks share."""
_DESCRIPTION = "Questions on legal documents with gold passages located in the extracted text."


def write(export: Export, folder: Path) -> None:
    """Write a retrieval task for the benchmark library MTEB.

    The data files are those of the export format `beir_passages`. `task.json` has the metadata of the task,
    and `task.py` has its code.
    """
    beir_passages.write(export, folder)
    info = export.bundle.info
    licence = info.licence.id if info and info.licence.id in LICENCES - {"other", "unknown"} else None
    task = {
        "name": f"Exhibit{re.sub(r'[^A-Za-z0-9]', '', export.name.title())}Retrieval",
        "description": info.summary if info and info.summary else _DESCRIPTION,
        "dataset": {"path": export.name, "revision": info.source.version if info else "1"},
        **json.loads(_ALWAYS.read_text(encoding="utf-8")),
        "reference": info.source.url or None if info else None,
        "license": licence,
    }
    (folder / "task.json").write_text(json.dumps(task, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (folder / "task.py").write_bytes(_TASK.read_bytes())
