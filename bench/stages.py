"""Measures the stages at which gold is lost: by preset of the built-in pipeline, and by parser and chunker.

    python -m bench.stages [--data FOLDER] [--work FOLDER] [--questions N] [--page FILE]

The samples and the first documents of the shared benchmarks (`DOCUMENTS` says how many) are converted once
into the work folder. Each preset is evaluated on these bundles; a finished run is not repeated. With
--page, the tables are also written to this Markdown file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench._table import ROOT, find_data_folder, print_table
from exhibit.conversion import convert
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table, compute_mean
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.stage_losses import make_loss_tables
from exhibit.evaluation.stages import GOLD_STAGES
from exhibit.runtime.command import guarded, print_note
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import SUMMARY
from exhibit.storage.atomic import write_whole
from exhibit.viewer.ceiling import measure_dataset

PRESETS = ("naive", "sac", "routed", "careful")
SAMPLES = ("cuad", "maud", "privacyqa", "cpr", "statutes")
DOCUMENTS = {"cuad": 8, "contractnli": 12, "maud": 2, "privacyqa": 3, "legalbenchrag": 8}
"""The documents of each shared benchmark whose questions are asked: some 5,000 chunks, ten minutes per preset on one
core.
"""
PARSED = {"cuad": 12, "contractnli": 20, "maud": 2}
"""The documents of each shared benchmark that are given to the parsers."""
PARSERS = ("pypdfium2", "pypdf", "pdfplumber")
SPLITTERS = ("naive:500", "rcts:500", "sections:500", "rcts:1000", "sections:1000")

Rows = list[list[object]]


def convert_one(name: str, source: Path, out: Path, documents: int | None) -> Path:
    """Return the folder of a benchmark's bundle; convert the benchmark if the bundle is missing."""
    if not (out / "bundle.json").is_file():
        print_note(f"converting {name} from {source}")
        convert(name, source=source, out=out, max_documents=documents, force=True)
    return out


def bundles_of(work: Path, data: Path | None) -> dict[str, Path]:
    """Return the folder of each bundle to evaluate, by the bundle's name in the results table.

    A bundle that does not exist yet is first made from its benchmark. Without `data`, only the samples are
    used.
    """
    found = {
        f"sample: {name}": convert_one(name, ROOT / "samples" / name, work / f"sample-{name}", None) for name in SAMPLES
    }
    for name, documents in DOCUMENTS.items() if data else ():
        found[name] = convert_one(name, _find_source(data, name), work / name, documents)
    return found


def _find_source(data: Path | None, name: str) -> Path:
    if data is None:
        raise ToolkitError(f"no folder with {name}; set EXHIBIT_DATA to the folder of the benchmarks")
    return data / name


def run_preset(preset: str, name: str, bundle: Path, work: Path, questions: int) -> RunResults:
    """Return the results of a preset on a bundle; start or continue the run if it is not finished."""
    folder = work / "results" / f"{preset}-{bundle.name}"
    if not (folder / SUMMARY).is_file():
        print_note(f"{preset}: {name}")
        asked = {"dataset_paths": [str(bundle)], "preset": preset, "limit": questions, "sample_seed": 1}
        evaluate(
            parse_settings(
                {**asked, "output_dir": work / "results", "run_name": folder.name, "resume": folder.is_dir()}
            )
        )
    return RunResults(folder)


def compute_lost_shares(tables: Sequence[Table]) -> tuple[int, dict[str, float | None]]:
    """Return the number of questions with gold, and for each stage the share of gold passages that it loses.

    A share is computed for each question; then the mean over a dataset's questions, and the mean over datasets,
    are taken. It is None if no dataset reports the stage.
    """
    counted = sum(
        any(column[row] is not None for column in t.values.values()) for t in tables for row in range(len(t.ids))
    )
    shares: dict[str, float | None] = {
        stage: compute_mean(compute_mean(table.values[stage]) for table in tables) for stage in GOLD_STAGES
    }
    return counted, shares


def make_preset_rows(runs: Mapping[str, Mapping[str, RunResults]]) -> Iterator[list[object]]:
    """Yield the table rows with the percentage of gold that each stage of a preset loses.

    The first rows are for each preset on all samples together, and on all benchmarks together. The next rows
    are for each preset on each single sample or benchmark.
    """
    for title, is_sample in (("all samples", True), ("all benchmarks", False)):
        for preset, by_name in runs.items():
            chosen = [run for name, run in by_name.items() if name.startswith("sample: ") == is_sample]
            if chosen:
                yield _make_row(preset, title, [table for run in chosen for table in make_loss_tables(run)])
    for preset, by_name in runs.items():
        for name, run in by_name.items():
            yield _make_row(preset, name, make_loss_tables(run))


def _make_row(preset: str, title: str, tables: Sequence[Table]) -> list[object]:
    questions, shares = compute_lost_shares(tables)
    return [preset, title, questions, *(_format_percent(shares[stage]) for stage in GOLD_STAGES)]


def _format_percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def make_parser_rows(work: Path, data: Path | None) -> Iterator[list[object]]:
    """Yield a table row for each parser and each chunker on each benchmark: the shares of gold that it keeps.

    A gold passage is kept whole, kept in part, or lost.
    """
    for name, documents in PARSED.items():
        bundle = convert_one(name, _find_source(data, name), work / f"parsed-{name}", documents)
        (dataset,), _ = load_datasets([str(bundle)], Selection())
        ceilings, _ = measure_dataset(dataset, parsers=PARSERS, folders=(), splitters=SPLITTERS, chunk_files=())
        for ceiling in ceilings:
            row = ceiling.rows[0]
            shares = [_format_percent(row.shares[one].mean) for one in ("whole", "part", "lost")]
            ends = row.shares["whole"].ci95
            interval = f"{_format_percent(ends[0])}–{_format_percent(ends[1])}" if ends else ""
            proviso = row.before_proviso if ceiling.is_chunker else ""
            seconds = "" if ceiling.seconds is None else f"{ceiling.seconds:.1f}"
            yield [name, ceiling.name, row.shares["whole"].n, shares[0], interval, *shares[1:], proviso, seconds]


_PRESET_HEAD = ["preset", "benchmark", "questions", *GOLD_STAGES]
_PARSER_HEAD = ["benchmark", "parser, chunker", "gold", "whole", "95%", "in part, cut", "lost", "proviso", "seconds"]


def page_of(presets: Rows, parsers: Rows, *, questions: int) -> str:
    """Return the results page in Markdown: a table by preset, and a table by parser and chunker."""
    documents = ", ".join(f"{name} {count}" for name, count in DOCUMENTS.items())
    parsed = ", ".join(f"{name} {count}" for name, count in PARSED.items())
    return "\n".join(
        [
            "# Where the gold is lost",
            "",
            "`python -m bench.stages --page bench/results/stages.md`. Stages and their rules: [ceiling.md]"
            "(../../docs/ceiling.md).",
            "",
            "## By preset",
            "",
            "Per cent of the gold that each stage is the first to lose; the rest is lost nowhere. – : the preset has "
            f"no such stage. At most {questions} questions of each benchmark (seed 1), of its first documents: "
            f"{documents}; of the samples all documents. Answers are sentences of the documents (no language model).",
            "",
            *_format_markdown(_PRESET_HEAD, presets),
            "",
            "## By parser and chunker",
            "",
            f"Per cent of the located gold that is whole, of the first documents: {parsed}. CUAD's contracts are PDFs "
            "as filed; the others were printed by us from text. *proviso*: passages cut before their proviso. Gold 0: "
            "the parser took longer than the two minutes that a document has.",
            "",
            *_format_markdown(_PARSER_HEAD, parsers),
            "",
        ]
    )


def _format_markdown(head: Sequence[object], rows: Rows) -> list[str]:
    return [f"| {' | '.join(map(str, cells))} |" for cells in [head, ["---"] * len(head), *rows]]


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Measure at which stage gold passages are lost, and print two tables: by preset, and by parser.

    With --page, also write the tables to a Markdown file.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.stages", description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=find_data_folder(), help="the shared benchmarks (EXHIBIT_DATA)")
    parser.add_argument("--work", type=Path, default=Path("stages-work"), help="the folder of bundles and runs")
    parser.add_argument("--questions", type=int, default=50, help="the most questions of each benchmark (default: 50)")
    parser.add_argument("--page", type=Path, help="write the tables to this Markdown file")
    options = parser.parse_args(argv)
    bundles = bundles_of(options.work, options.data)
    runs = {
        preset: {
            name: run_preset(preset, name, bundle, options.work, options.questions) for name, bundle in bundles.items()
        }
        for preset in PRESETS
    }
    presets = list(make_preset_rows(runs))
    print_table("Per cent of the gold that each stage loses", _PRESET_HEAD, presets)
    parsers = list(make_parser_rows(options.work, options.data)) if options.data else []
    print_table("Per cent of the gold that is whole", _PARSER_HEAD, parsers)
    if options.page:
        write_whole(options.page, page_of(presets, parsers, questions=options.questions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
