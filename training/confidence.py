"""Fits the reader's confidence to a run of the pipeline: the probability that a question has an answer.

    exhibit evaluate BUNDLE --set refuse-below=none --output-dir RUNS --run-name tuning
    python -m training.confidence RUNS/tuning/*/eval_results.jsonl --pack pack.npz --out confidence.json

Only questions on the documents for tuning are used, because the reader was not trained on these documents.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from exhibit.models.reader import CALIBRATION
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import write_whole
from training.gather import make_document_key
from training.hints import PLAIN, RIDGE, fit_curve
from training.measure import compute_auroc
from training.pack import load_pack

CUTS = (0.1, 0.2, 0.3, 0.4, 0.5)  # thresholds of refusal whose effect is printed


def read_rows(paths: Sequence[Path], documents: frozenset[str]) -> list[tuple[float, bool]]:
    """Return, for each reply about one of `documents`, its confidence and whether the question has an answer."""
    lines = (line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    rows = [row for row in map(json.loads, lines) if make_document_key(row["filename"] or "") in documents]
    pairs = [(row["reply"].get("confidence"), not row["is_impossible"]) for row in rows]
    return [(sure, answerable) for sure, answerable in pairs if sure is not None and 0 < sure < 1]


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the curve `alone`, the reader's confidence without a reranker, and print its refusals at some thresholds."""
    parser = argparse.ArgumentParser(prog="python -m training.confidence", description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="+", type=Path, metavar="eval_results.jsonl")
    parser.add_argument("--pack", type=Path, required=True, metavar="FILE", help="names the documents for tuning")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    documents = load_pack(options.pack).documents
    tuning = frozenset(make_document_key(d["name"]) for d in documents if d["split"] == "dev")
    rows = read_rows(options.results, tuning)
    sure, answerable = np.array(rows, np.float64).reshape(-1, 2).T
    if len(set(answerable.tolist())) < 2:
        raise ToolkitError("the fit needs questions with an answer and questions without one on documents for tuning")
    odds = np.log(sure / (1 - sure))
    slope, offset = fit_curve(odds, answerable, PLAIN, RIDGE).tolist()
    area = compute_auroc(odds[answerable > 0].tolist(), odds[answerable == 0].tolist())
    print(f"{len(rows)} questions, AUROC {area:.3f}")
    fitted = 1 / (1 + np.exp(-slope * odds - offset))
    for cut in CUTS:
        right, false = (float(np.mean(fitted[answerable == kind] < cut)) for kind in (0, 1))
        print(f"refused below {cut:g}: right abstentions {right:.3f}, false refusals {false:.3f}")
    calibration = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    before = calibration["alone"]
    calibration["alone"] = {
        "reader": round(slope * before["reader"], 4),
        "offset": round(slope * before["offset"] + offset, 4),
        "questions": len(rows),
        "answerable": int(answerable.sum()),
    }
    write_whole(options.out, json.dumps(calibration, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
