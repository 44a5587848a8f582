"""The questions without their gold, for vendors whose systems are compared: see docs/bakeoff.md."""

from pathlib import Path

from exhibit.hub.exports import Export, write_json, write_lines
from exhibit.schemas.bundle import CORPUS, INFO
from exhibit.schemas.errors import BundleError
from exhibit.storage.bundle import sha256_of


def write(export: Export, folder: Path) -> None:
    """Write `questions.jsonl` and `sealed.json`: the hash of bundle.json, which fixes every file of the bundle."""
    info = export.bundle.info
    if info is None:
        raise BundleError(f"{export.bundle.root}: has no {INFO}, so the bundle cannot be sealed; convert it first")
    sealed = sha256_of(export.bundle.root / INFO)
    questions = export.bundle.questions
    write_lines(
        folder / "questions.jsonl", ({"id": row.id, "question": row.question, "sealed": sealed} for row in questions)
    )
    documents = {name: entry.sha256 for name, entry in info.files.items() if name.startswith(f"{CORPUS}/")}
    seal = {"bundle": export.name, "sealed": sealed, "questions": len(questions), "documents": documents}
    write_json(folder / "sealed.json", seal)
