"""Measures the effect of each constant of the preset `routed`, one at a time, on LegalBench-RAG-mini.

    python -m bench.sensitivity --source legalbenchrag/data
    python -m bench.sensitivity --source legalbenchrag/data --all
    python -m bench.sensitivity --source legalbenchrag/data --settings weight_lexical,_MENTION
    python -m bench.sensitivity --source samples/legalbenchrag --embedder hashing --settings trim_first

The collection is indexed once, in a temporary folder; cached vectors are used. By default every second
question is asked; with --all, every question. Most settings are measured twice: with file names in the
index and without. Two settings matter only for questions that name no document, so the document's name is
removed from the questions for them. Without --settings, the pictures and the table of
bench/results/notebook-retrieval.md are written again. With --settings, results are only printed, unless
--out (pictures) or --page (table) is given.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench._table import ROOT, print_table
from bench.legalbenchrag.runs import Condition, make_bundle
from bench.sensitivity.panels import WAYS, draw, write_page_block
from bench.sensitivity.trials import (
    METRICS,
    Curve,
    Setting,
    Trying,
    choose_settings,
    curves_of,
    trials_of,
    ways_of,
    word_question,
)
from exhibit.engine import add_engine_arguments, check_engine, open_engine, track
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.rag import Config, Pipeline
from exhibit.rag.questions import understand
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

RESULTS = ROOT / "bench" / "results"
IMAGES, PAGE = RESULTS / "images", RESULTS / "notebook-retrieval.md"
BEGIN, END = "<!-- sensitivity -->\n", "<!-- /sensitivity -->"


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    """Measure retrieval with every value of each setting, and print the figures.

    Without `--settings`, also draw the figures and write their table into the results page. With `--settings`,
    do so only if `--out` (drawings) or `--page` (table) is given.
    """
    options = _make_parser().parse_args(argv)
    check_engine(options.engine)
    settings = choose_settings([name for name in options.settings.split(",") if name])
    images = options.out or (None if options.settings else IMAGES)
    page = options.page or (None if options.settings else PAGE)
    if page:
        fill(page, "")  # a page without its markers is an error before any work
    curves, questions = _measure(settings, options)
    _print(curves)
    if images:
        _draw(curves, images)
    if page:
        page.write_text(fill(page, write_page_block(curves, questions=questions)), encoding="utf-8")
        print(f"\npage: {page}")
    return 0


def fill(page: Path, block: str) -> str:
    """Return the text of a Markdown page, with `block` in place of the text between its two marker comments.

    Raise ToolkitError if the page has no such comments.
    """
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ToolkitError(f"{page}: no lines {BEGIN.strip()} and {END}; add them where the table belongs")
    return f"{before}{begin}{block}{end}{after}"


# ---------------------------------------------------------------- measurement


def _measure(settings: Sequence[Setting], options: argparse.Namespace) -> tuple[list[Curve], int]:
    """Measure the preset `routed` with every value of each setting.

    Return a curve for each setting and condition, and the number of questions. A condition says whether the
    questions name their document, and whether the index has file names.
    """
    recipe = {"embedder": options.embedder} if options.embedder else {}
    workers = {"engine": options.engine, "jobs": options.jobs}
    with tempfile.TemporaryDirectory(prefix="sensitivity-") as name:
        folder = Path(name)
        bundle = make_bundle(options.source, folder, Condition(), **workers)
        [dataset], _ = load_datasets([bundle], Selection(("txt",)))
        cases = dataset.cases if options.all else dataset.cases[::2]
        pipeline = Pipeline(Config.preset("routed", **recipe), **workers)
        pipeline.index(dataset.files.values(), folder / "index")
        _embed(pipeline, settings, dataset)
        trials = trials_of(settings)
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for workers: more threads would wait for each other's cores
        outcomes = open_engine(options.engine, jobs=options.jobs).map(Trying(folder / "index", cases, recipe), trials)
        done = track(outcomes, total=len(trials), label="sensitivity", unit="trial")
        measured = {trial: outcome.unwrap() for trial, outcome in zip(trials, done, strict=True)}
    return curves_of(settings, measured, cases, dataset.groups), len(cases)


def _embed(pipeline: Pipeline, settings: Sequence[Setting], dataset: Dataset) -> None:
    """Embed all questions in advance and cache the vectors, so that the workers do not compute them."""
    ways = {way for setting in settings for way in ways_of(setting)}
    texts = {understand(word_question(case, way)).asks for way in ways for case in dataset.cases}
    pipeline.embedder.embed(sorted(texts), role="query")


# ---------------------------------------------------------------- output


def _print(curves: Sequence[Curve]) -> None:
    for curve in curves:
        rows = []
        for value, figures in curve.points:
            sign = "*" if value == curve.setting.default else ""
            cells = [f"{f.mean:.1f} ({f.worst:.1f}) {f.told}{'!' * f.beyond_chance}" for f in figures.values()]
            rows.append([f"{value:g}{sign}", *cells])
        print_table(f"{curve.setting.shown}, {curve.way.title}", ["", *METRICS.values()], rows)
    print("\nmean of the datasets (the worst of them) change from the default; * default, ! beyond chance; per cent")


def _draw(curves: Sequence[Curve], folder: Path) -> None:
    """Write one SVG picture for each way of asking.

    The ways are questions with or without the document's name, and an index with or without file names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, way in WAYS.items():
        some = [curve for curve in curves if curve.way == way]
        if some:
            path = folder / f"retrieval-{name}.svg"
            path.write_text(draw(some), encoding="utf-8")
            print(f"\npicture: {path}")


def _make_parser() -> argparse.ArgumentParser:
    what, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.sensitivity",
        description=what,
        epilog=f"examples:\n{more}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--source", type=Path, required=True, metavar="DIR", help="benchmarks/*.json and corpus/, as published")
    add("--settings", default="", metavar="NAME,…", help="only these settings (default: all)")
    add("--all", action="store_true", help="ask every question, and not every second one")
    add("--embedder", metavar="NAME", help="the embedder instead of the preset's own")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="default: bench/results/images; none with --settings",
    )
    add("--page", type=Path, metavar="FILE", help="default: bench/results/notebook-retrieval.md; none with --settings")
    add_engine_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
