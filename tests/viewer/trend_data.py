"""Invented runs over time: forty questions about ten leases, and optionally a regression."""

import json
import random
from pathlib import Path
from typing import Any

from exhibit.evaluation.runs import read_tables
from exhibit.evaluation.statistics import summarise_run
from exhibit.schemas.run_folder import RunFolder

QUESTIONS = 40
DOCUMENTS = 10
WORDS = ("rent", "repairs", "notice", "deposit")


def make_runs(
    folder: Path, *, bad: int | None = 7, back: int | None = None, runs: int = 10, noise: float = 0.02
) -> Path:
    """Write runs from `run-01` on; from run `bad` to the run before `back`, some questions are worse.

    These questions are about repairs and notice.
    """
    for number in range(1, runs + 1):
        broken = bad is not None and number >= bad and (back is None or number < back)
        make_run(folder / f"run-{number:02}", number, broken=broken, noise=noise)
    return folder


def make_run(folder: Path, number: int, *, broken: bool, noise: float = 0.02, dataset: str = "leases") -> Path:
    """Write one run."""
    chance = random.Random(number)
    rows = [_row(id, broken, lambda: chance.gauss(0, noise)) for id in range(QUESTIONS)]
    write(folder / "config.json", _config(dataset, broken))
    write(folder / "provenance.json", _provenance(dataset, number, broken))
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / dataset).mkdir(parents=True)
    (folder / dataset / "eval_results.jsonl").write_text(lines, encoding="utf-8")
    write_sums_again(folder)
    (folder / "report.html").write_text("<!doctype html><title>report</title>", encoding="utf-8")
    return folder


def write_sums_again(run: Path) -> None:
    """Write the summary.json files of a run again, from its rows."""
    tables = read_tables(RunFolder(run))
    write(run / "summary.json", {name: one.as_json() for name, one in summarise_run(tables).items()})
    for table in tables:
        write(run / table.name / "summary.json", {name: one.as_json() for name, one in summarise_run([table]).items()})


def _row(id: int, broken: bool, wobble: Any) -> dict[str, Any]:
    word = WORDS[id % len(WORDS)]
    fell = broken and word in ("repairs", "notice")
    level = 0.55 + 0.05 * (id % DOCUMENTS % 5) - (0.45 if fell else 0.0)
    value = min(1.0, max(0.0, level + wobble()))
    return {
        "id": id,
        "question": f"Consider lease {id % DOCUMENTS}; who bears the {word} <b>&amp;</b> when?",
        "truth": "The tenant.",
        "is_impossible": False,
        "filename": f"lease-{id % DOCUMENTS}.pdf",
        "labels": {"clause": word},
        "gold": [],
        "reply": {"error": "", "answer": "The tenant."},
        "scores": {
            "char_recall@8": value,
            "answer_f1": min(1.0, value + 0.1),
            "statute_citation_accuracy": 0.3 if fell else 0.9,
            "drm@8": 1 - value,
            "latency": 1.0 + (5.0 if broken else 0.0),
        },
        "outcome": "wrong" if fell else "right",
        "reason": "",
    }


def _config(dataset: str, broken: bool) -> dict[str, Any]:
    return {
        "format": "exhibit-run/2",
        "version": "0.1.0",
        "target": "builtin",
        "preset": "sac",
        "config": {"embedder": "minilm", "k": 3 if broken else 6, "openai_api_key": "sk-never-shown"},
        "datasets": {dataset: {"groups": None, "questions": QUESTIONS, "train_sha256": "a" * 64}},
        "measured": {"parity": ""},
    }


def _provenance(dataset: str, number: int, broken: bool) -> dict[str, Any]:
    return {
        "started": f"2026-03-{number:02}T09:30:00+00:00",
        "version": "0.1.0",
        "commit": ("b" if broken else "a") * 40,
        "changed_files": 0,
        "machine": {"system": "Linux", "processor": "x86_64", "cores": 8, "python": "3.12.4"},
        "data": {dataset: {"bundle.json": "d" * 64, "train.json": "a" * 64}},
    }


def write(path: Path, value: object) -> None:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
