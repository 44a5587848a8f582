"""A bundle of one document with four clauses, one of them a table, and a system that answers its questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exhibit.evaluation.evaluate import EvaluatedRun, evaluate
from exhibit.evaluation.settings import parse_settings
from exhibit.models.embedders.hashing import Hashing
from tests.rag.bundles import row

FARES = "Fares in shillings\nFoot passenger 2\nHorse and rider 9\nCart of peat 14"
CLAUSES = (
    "The Ferryman crosses the Sound of Uist at every slack tide between sunrise and the lighting of the lamps, "
    "provided that no crossing is owed in fog.",
    FARES,
    "The Tacksman keeps two boats of not less than twenty feet in repair and shows them to the Factor each Lammas.",
    "A passenger who brings a beast aboard without a halter pays half a shilling to the poor box of the parish.",
)
TEXT = "\n\n".join(("FERRY TACK OF THE SOUND", *CLAUSES, "Set down at Lochmaddy.")) + "\n"
QUESTIONS = (
    "When does the Ferryman cross?", "What are the fares?", "What does the Tacksman keep?", "What of a beast aboard?",
)  # fmt: skip
ANSWERS = ("At every slack tide.", "Two to fourteen shillings.", "Two boats.", "Half a shilling.")


def span_of(words: str) -> list[int]:
    return [TEXT.index(words), TEXT.index(words) + len(words)]


def write_ferry(folder: Path) -> Path:
    """Write the bundle into a folder and return the folder."""
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "tack.txt").write_text(TEXT, encoding="utf-8")
    asked = zip(QUESTIONS, ANSWERS, CLAUSES, strict=True)
    rows = [
        row(id, question, answer, {"filename": "tack.txt", "text": clause}, is_impossible=False)
        for id, (question, answer, clause) in enumerate(asked)
    ]
    common = {"context": 0, "filename": "tack.txt", "pages": [], "alternatives": [], "how": "exact", "score": 1.0}
    gold = [{"id": id, "spans": [span_of(clause)], "labels": {}, **common} for id, clause in enumerate(CLAUSES)]
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in gold), encoding="utf-8")
    return folder


Reply = dict[str, Any]


def honest(question: str) -> Reply:
    """A system that retrieves all clauses and answers rightly from the one that is asked for."""
    number = QUESTIONS.index(question)
    return {"answer": f"{ANSWERS[number]} [{number + 1}]", "passages": [passage(clause) for clause in CLAUSES]}


def passage(clause: str) -> Reply:
    return {"filename": "tack.txt", "text": clause}


def run_ferry(
    place: Path, name: str = "run", function: Callable[[str], Reply] | None = honest, *, notes: Any = None, **told: Any
) -> EvaluatedRun:
    """Evaluate a function, or the built-in pipeline if it is None, on the bundle in `place`.

    The bundle is written first if it does not exist.
    """
    bundle = place / "ferry" if (place / "ferry").is_dir() else write_ferry(place / "ferry")
    target = {"target": "function"} if function else {"llm": "extractive", "chunk_size": 90}
    places = {"dataset_paths": [str(bundle)], "output_dir": place / "results", "run_name": name}
    settings = parse_settings({**places, "report_cases": 0, "threads": 1, **target, **told})
    parts = {"cache": place / "cache", "embedder": Hashing(256)} | ({"function": function} if function else {})
    return evaluate(settings, parts=parts, warn=(notes if notes is not None else []).append)


def write_chunks(path: Path, *texts: str) -> Path:
    """Write each text as a chunk on a line of a JSONL file; return its path."""
    path.write_text("".join(json.dumps(passage(text)) + "\n" for text in texts), encoding="utf-8")
    return path


def halves(text: str) -> tuple[str, str]:
    """Cut a text in two at a word."""
    middle = text.index(" ", len(text) // 2)
    return text[:middle], text[middle:]


def nothing_told(question: str) -> Reply:
    """Reply with the right answer only, without passages."""
    return {"answer": honest(question)["answer"]}
