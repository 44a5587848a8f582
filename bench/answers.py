"""Measures answers of the built-in pipeline on questions that no model was trained on: OHR-Bench and CUAD.

    python -m bench.answers [ohr cuad] [--preset careful] [--set NAME=VALUE] [--contracts 20] [--page FILE]

OHR-Bench asks 621 questions about 24 contracts of CUAD, all of which have an answer. CUAD asks 41 questions about
each of its contracts, most of which have none; only contracts in NOT_FOR_TRAINING.tsv are used.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.table import Table, exhibit, find_data, publish, read_json
from exhibit.runtime.command import guarded

METRICS = (
    "answer_contained",
    "answer_f1",
    "abstention",
    "false_refusal",
    "char_precision@1",
    "char_recall@8",
    "page_hit@5",
)
"""The metrics in the table; a metric that a run lacks is left out."""


def make_ohr_source(folder: Path) -> Path:
    """Write OHR-Bench's questions and the contracts that they name into a folder; return the folder."""
    questions = find_data("ohr") / "questions.jsonl"
    names = {json.loads(line)["document"] for line in questions.read_text(encoding="utf-8").splitlines()}
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    shutil.copy(questions, folder)
    for path in find_data("cuad").rglob("*"):
        if path.name in names:
            shutil.copy(path, folder / "documents")
    return folder


def make_cuad_source(folder: Path, contracts: int) -> Path:
    """Write a CUAD release into a folder, with the first contracts that no model was trained on; return the folder."""
    root = find_data("cuad") / "CUAD_v1"
    held_out = read_held_out(root.parent.parent / "NOT_FOR_TRAINING.tsv")
    folder.mkdir(parents=True, exist_ok=True)
    for path in root.iterdir():
        if path.is_dir() and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path.resolve())
    with (root / "master_clauses.csv").open(encoding="utf-8-sig", newline="") as file:
        head, *rows = csv.reader(file)
    chosen = [row for row in rows if not held_out or make_key(row[0]) in held_out][:contracts]
    with (folder / "master_clauses.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *chosen])
    return folder


def read_held_out(path: Path) -> set[str]:
    """Return the keys of the documents that a list names; the samples have no list, so that the result is empty."""
    if not path.is_file():
        return set()
    with path.open(encoding="utf-8", newline="") as file:
        return {make_key(cell) for row in csv.reader(file, delimiter="\t") for cell in row}


def make_key(name: str) -> str:
    """Return a file name in lower case, without extension and punctuation, which differ between releases."""
    stem = name.rpartition(".")[0] if name[-4:].lower() in (".pdf", ".txt") else name
    return "".join(character for character in stem.lower() if character.isalnum())


def measure(name: str, out: Path, options: argparse.Namespace) -> list[Table]:
    """Convert a benchmark, run the pipeline on it, and return its tables: outcomes and metrics."""
    bundle = out / "bundles" / name
    if not bundle.is_dir():
        if name == "ohr":
            source = make_ohr_source(out / "ohr")
            exhibit("convert", "table", "--source", source, "--documents", source / "documents", "--out", bundle)
        else:
            source = make_cuad_source(out / "cuad", options.contracts)
            exhibit("convert", "cuad", "--source", source, "--out", bundle)
    label = "-".join([options.preset, *options.set]).replace("/", "_")
    flags = [word for setting in options.set for word in ("--set", setting)]
    limit = ["--limit", options.limit, "--sample-seed", 1] if options.limit else []
    runs = out / "runs" / name
    exhibit("evaluate", bundle, "--preset", options.preset, "--output-dir", runs, "--run-name", label, "--resume",
            *flags, *limit)  # fmt: skip
    return make_tables(name, runs / label)


def make_tables(name: str, run: Path) -> list[Table]:
    """Return two tables: the number of questions with each outcome, and the metrics' means with their intervals."""
    [results] = run.glob("*/eval_results.jsonl")
    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    outcomes = Counter(row["outcome"] for row in rows)
    counts = [[outcome, count, f"{count / len(rows):.3f}"] for outcome, count in outcomes.most_common()]
    summary = read_json(run / "summary.json")
    means = []
    for metric in METRICS:
        figure = summary.get(metric)
        if figure and figure["mean"] is not None:
            low, high = figure["ci95"]
            interval = f"[{low:.3f}, {high:.3f}]" if low is not None else ""
            means.append([metric, f"{figure['mean']:.3f}", interval, figure["n"]])
    return [
        Table(f"{name}, {run.name}: outcomes of {len(rows)} questions", ["outcome", "questions", "share"], counts),
        Table(f"{name}, {run.name}: metrics", ["metric", "mean", "95% interval", "questions"], means),
    ]


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the outcomes and the answer metrics of the pipeline on each benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench.answers", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=["ohr", "cuad", []], metavar="NAME", help="ohr, cuad (both)")
    parser.add_argument("--preset", default="routed")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting; repeat")
    parser.add_argument("--contracts", type=int, default=20, metavar="N", help="contracts of CUAD (20)")
    parser.add_argument("--limit", type=int, metavar="N", help="only N questions of each, drawn by a fixed seed")
    parser.add_argument("--out", type=Path, default=Path("results/answers"), metavar="DIR")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the tables to this Markdown file")
    options = parser.parse_args(argv)
    tables = [table for name in options.names or ["ohr", "cuad"] for table in measure(name, options.out, options)]
    publish(options.page, "Answers of the built-in pipeline", tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
