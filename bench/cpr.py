"""Measures the citations in answers about court rules, and computes each mean in two ways.

    python -m bench.cpr BUNDLE [--preset routed] [--set answerer=reader]

The seed is the older system from which this project started. If the expected answer of a question cites
nothing, the seed scores the question as 1, and this project leaves the question out of the mean. The table
has a column for our mean, a column for the mean by the seed's rule, and a column with the figures that the
seed reports for its own system. A language model wrote the answers of that system.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench._table import print_table
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.law.refusals import is_refusal
from exhibit.rag.config import Config
from exhibit.runtime.command import guarded
from exhibit.storage.cache import find_cache_folder

REPORTED = {
    "precedent_matching": 0.960,
    "statute_citation_accuracy": 0.663,
    "legal_terminology_accuracy": 1.000,
    "citation_format_compliance": 0.968,
}
"""The figures that the seed reports for its own system, on 62 questions."""
ALSO = (
    "case_law_citation_accuracy",
    "references_exist",
    "any_citation",
    "answer_f1",
    "document_hit@1",
    "document_hit@8",
)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the pipeline all questions of the bundle; print its citation metrics, overall and by source type."""
    parser = argparse.ArgumentParser(prog="python -m bench.cpr", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--preset", default="routed")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings that replace the preset's")
    options = parser.parse_args(arguments)
    [dataset], _ = load_datasets([options.bundle], Selection())
    config = Config.preset(options.preset, **dict(pair.split("=", 1) for pair in options.set))
    target = open_target("builtin", TargetOptions(config=config, cache=find_cache_folder()))
    target.ingest(dataset)
    asked = target.ask(dataset, dataset.cases)
    cases = [replace(case, reply=reply) for case, (_, reply) in zip(dataset.cases, asked, strict=True)]
    values = measure(cases, names=[*REPORTED, *ALSO])
    rows = []
    for name in (*REPORTED, *ALSO):
        known = [value for value in values[name] if value is not None]
        seed = np.mean([1.0 if value is None else value for value in values[name]])
        told = f"{REPORTED[name]:.3f}" if name in REPORTED else "–"
        mean = f"{np.mean(known):.3f}" if known else "–"
        rows.append([name, mean, str(len(known)), f"{seed:.3f}" if name in REPORTED else "–", told])
    print_table(
        f"{dataset.name}: {len(cases)} questions, {options.preset} {' '.join(options.set)}",
        ["metric", "ours", "n", "as the seed counts", "the seed reports"],
        rows,
    )
    kinds = Counter(str(case.labels.get("source_type")) for case in cases)
    for kind in sorted(kinds):
        some = [
            value
            for case, value in zip(cases, values["statute_citation_accuracy"], strict=True)
            if value is not None and str(case.labels.get("source_type")) == kind
        ]
        print(f"rules cited, {kind}: {f'{np.mean(some):.3f}' if some else '–'} of {len(some)}")
    refused = sum(is_refusal(case.reply.answer or "") for case in cases)
    print(f"refused: {refused} of {len(cases)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
