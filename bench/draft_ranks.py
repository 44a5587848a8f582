"""Measures whether drafted questions rank systems in the same order as the experts' questions do.

    python -m bench.draft_ranks datasets_out/cuad --names NOT_FOR_TRAINING.tsv --skip 6 --limit 14 --work scratch

Both sets of questions are about the same documents. The drafts are those of `exhibit draft`, without a
review. For each metric it prints each system's two means, their difference with a bootstrap interval over
documents, and Kendall's tau.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench._table import print_table
from bench.draft import choose_files
from exhibit.draft.__main__ import main as draft
from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.rag.config import Config
from exhibit.runtime.command import guarded
from exhibit.storage.cache import find_cache_folder

SYSTEMS = "tfidf,bm25,fast:routing=false,fast,routed"
METRICS = ("char_recall@8", "char_precision@8", "document_hit@1", "mrr@10", "answer_f1", "false_refusal_rate")
DRAWS = 2000

ByDocument = Mapping[str, Sequence[float]]
"""A metric's values, by the document of the question."""


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print, for each metric, the mean of each system on the experts' questions and on the drafted questions.

    Also print Kendall's tau between the two rankings of the systems.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.draft_ranks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path, help="the experts'")
    parser.add_argument("--names", type=Path, help="only documents whose names are in this file")
    parser.add_argument("--limit", type=int, help="the most documents")
    parser.add_argument(
        "--skip", type=int, default=0, help="leave out this many documents at the start, which are for tuning"
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="the folder of the drafted bundle; created if it is missing"
    )
    parser.add_argument("--systems", default=SYSTEMS, help=f"presets, each with one setting (default: {SYSTEMS})")
    parser.set_defaults(tuning=False)
    options = parser.parse_args(argv)
    [experts], _ = load_datasets([options.bundle], Selection())
    names = choose_files(options.bundle, options)
    experts = choose_documents(experts, names)
    drafted = draft_questions(experts, options.work)
    print(f"{len(names)} documents, {len(experts.cases)} questions of experts, {len(drafted.cases)} drafted")
    systems = options.systems.split(",")
    replies = {system: (ask_system(system, experts), ask_system(system, drafted)) for system in systems}
    for kind in ("playbook", None):
        values = {
            system: (
                score_cases(own),
                score_cases([case for case in made if kind in {None, case.labels.get("drafted")}]),
            )
            for system, (own, made) in replies.items()
        }
        for metric in METRICS:
            rows = [[system, *describe_difference(both[0][metric], both[1][metric])] for system, both in values.items()]
            tau = compute_kendall(*([compute_mean(both[at][metric]) for both in values.values()] for at in (0, 1)))
            title = f"{metric}, drafts from {kind or 'everything'}: Kendall's tau {tau:.2f}"
            print_table(title, ["system", "experts", "drafted", "difference (95%)"], rows)
    return 0


def choose_documents(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """Return a dataset with some of its documents, and the questions about them."""
    cases = tuple(case for case in dataset.cases if case.document in names)
    return replace(dataset, cases=cases, files={name: dataset.files[name] for name in names})


def draft_questions(experts: Dataset, work: Path) -> Dataset:
    """Draft questions about the documents of the experts' dataset; return the drafts as a dataset.

    If the folder `work` already contains drafts, no new drafts are made.
    """
    folder, bundle = work / "documents", work / "drafted"
    if not bundle.is_dir():
        folder.mkdir(parents=True)
        for name, path in experts.files.items():
            shutil.copy(str(path), folder / name)
        if draft([str(folder), "--out", str(bundle)]):
            raise SystemExit(1)
    [dataset], _ = load_datasets([bundle], Selection())
    return dataset


def ask_system(system: str, dataset: Dataset) -> list[Case]:
    """Run a system (`PRESET` or `PRESET:NAME=VALUE`) on a dataset; return the cases with its replies."""
    preset, _, setting = system.partition(":")
    settings = dict([setting.split("=", 1)]) if setting else {}
    config = Config.preset(
        preset, answerer="extractive", **settings
    )  # the extractive answerer, since retrieval is compared, and not a reader
    target = open_target("builtin", TargetOptions(config=config, cache=find_cache_folder()))
    target.ingest(dataset)
    asked = target.ask(dataset, dataset.cases)
    return [replace(case, reply=reply) for case, (_, reply) in zip(dataset.cases, asked, strict=True)]


def score_cases(cases: Sequence[Case]) -> dict[str, ByDocument]:
    """Return, for each metric, its values grouped by document; cases without a value are left out."""
    values = measure(cases, names=METRICS)
    grouped: dict[str, dict[str, list[float]]] = {metric: {} for metric in METRICS}
    for metric in METRICS:
        for case, value in zip(cases, values[metric], strict=True):
            if value is not None:
                grouped[metric].setdefault(case.document, []).append(value)
    return {metric: grouped[metric] for metric in METRICS}


def compute_kendall(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Kendall's tau-b of two rankings: 1 if every pair is in the same order, -1 if no pair is."""
    one, other = (np.sign(np.subtract.outer(values, values)) for values in (first, second))
    return float((one * other).sum() / max(1.0, np.sqrt((one**2).sum() * (other**2).sum())))


def compute_mean(values: ByDocument) -> float:
    """Return the mean of a metric over all questions; `values` has its values, grouped by document."""
    return float(np.mean([value for some in values.values() for value in some]))


def describe_difference(first: ByDocument, second: ByDocument) -> list[str]:
    """Return as text the mean of a metric in the first group of values, in the second, and their difference.

    The difference has a 95% interval by a bootstrap over documents.
    """
    documents = sorted(first.keys() | second.keys())
    drawn = np.random.default_rng(0).integers(len(documents), size=(DRAWS, len(documents)))
    sums = [np.array([[sum(v.get(d, ())), len(v.get(d, ()))] for d in documents], dtype=float) for v in (first, second)]
    totals = [one[drawn].sum(axis=1) for one in sums]
    gaps = totals[1][:, 0] / totals[1][:, 1] - totals[0][:, 0] / totals[0][:, 1]
    low, high = np.quantile(gaps, (0.025, 0.975))
    gap = compute_mean(second) - compute_mean(first)
    return [f"{compute_mean(first):.3f}", f"{compute_mean(second):.3f}", f"{gap:+.3f} ({low:+.3f} to {high:+.3f})"]


if __name__ == "__main__":
    sys.exit(main())
