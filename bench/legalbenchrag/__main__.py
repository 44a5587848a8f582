"""Measures the presets on LegalBench-RAG, and writes a page that compares them with published figures.

    python -m bench.legalbenchrag --source legalbenchrag/data
    python -m bench.legalbenchrag --source legalbenchrag/data --presets sac,routed --reworded --unnamed
    python -m bench.legalbenchrag --source legalbenchrag/data --presets routed --no-filenames
    python -m bench.legalbenchrag --source legalbenchrag/data --presets routed --full --file-type pdf
    python -m bench.legalbenchrag --source samples/legalbenchrag --embedder hashing --limit 10

The page has the figures at every k, their intervals, and curves. Bundles, runs and caches are stored below
--out. If a run was stopped, the command continues it. If a run is finished, the command only reads its
results: after a change to the code, measure again with --anew. The page shows every finished run below
--out, also those of earlier commands. With --no-filenames every file is renamed to a number, and presets
that use file names are set not to use them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from bench._table import ROOT, print_table
from bench.legalbenchrag.comparison import (
    format_number,
    format_signed,
    is_comparable,
    make_marks,
    measure_falls,
    score_of,
)
from bench.legalbenchrag.names import DATASETS, LOWER, METRICS
from bench.legalbenchrag.page import HEADLINE, write_page
from bench.legalbenchrag.papers import find_best, read_papers
from bench.legalbenchrag.runs import (
    ORDER,
    Condition,
    Measured,
    Recipe,
    Size,
    Wording,
    make_bundle,
    parse_recipe,
    read_finished_runs,
    read_measured,
    run,
)
from exhibit.engine import add_engine_arguments, check_engine, parse_positive
from exhibit.evaluation.metrics import KS
from exhibit.rag.config import list_presets
from exhibit.runtime.command import guarded

PAGE = ROOT / "bench" / "results" / "legalbenchrag.md"


@guarded("stopped; the same command continues the run")
def main(argv: Sequence[str] | None = None) -> int:
    """Measure each chosen preset whose run is not finished, print the tables, and write the results page."""
    options = _make_parser().parse_args(argv)
    check_engine(options.engine)
    groups = [(condition, _measure(condition, options)) for condition in _choose_conditions(options)]
    for condition, runs in groups:
        _print_condition(condition, runs)
    _print_falls(groups)
    page = options.page or (None if options.limit else PAGE)
    if page:
        everything = list(read_finished_runs(options.out, options.limit))
        write_page(everything, page)
        print(f"\npage: {page}")
    return 0


# ---------------------------------------------------------------- runs


def _choose_conditions(options: argparse.Namespace) -> list[Condition]:
    """Return the conditions to measure: the published questions, and the other wordings that the options name."""
    size: Size = "full" if options.full else "mini"
    asked = {"original": True, "reworded": options.reworded, "free": options.free, "unnamed": options.unnamed}
    wordings = [wording for wording in get_args(Wording) if asked[wording]]
    return [Condition(size, options.file_type, w, not options.no_filenames, options.limit) for w in wordings]


def _measure(condition: Condition, options: argparse.Namespace) -> list[Measured]:
    workers = {"engine": options.engine, "jobs": options.jobs}
    recipes = _choose_recipes(options)
    bundle = make_bundle(options.source, options.out, condition, anew=options.anew, **workers)
    folders = [
        run(recipe, bundle, options.out, condition, anew=options.anew, say=_print_note, **workers) for recipe in recipes
    ]
    return [read_measured(folder, condition) for folder in folders]


def _choose_recipes(options: argparse.Namespace) -> list[Recipe]:
    """Return the presets that `--presets` lists, each with the settings that replace its own.

    `routed:filenames=false` is one entry of the list. Raise an error for an unknown preset.
    """
    shared = {"embedder": options.embedder} if options.embedder else {}
    names = [name for name in options.presets.split(",") if name]
    return list(dict.fromkeys(parse_recipe(name, shared=shared) for name in names))


def _print_note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


# ---------------------------------------------------------------- tables


def _print_condition(condition: Condition, runs: Sequence[Measured]) -> None:
    told = runs[0].told
    print(
        f"\n{condition.name}: {told['questions']:,} questions, {told['files']:,} files; per cent, 95% intervals below"
    )
    for dataset, title in DATASETS.items():
        for metric, name in METRICS.items():
            rows = [*_make_published_rows(runs, metric, dataset), *_make_our_rows(runs, metric, dataset)]
            if rows:
                less = ", less is better" if metric in LOWER else ""
                print_table(f"{title}: {name}{less}", ["k", *map(str, KS)], rows)
    if is_comparable(runs):
        for one in runs:
            won, places, lost = score_of(one)
            where = f"; not {'; '.join(lost)}" if lost and 2 * won > places else ""
            print(f"\n{one.label}: above the best published value in {won} of {places} places{where}")


def _make_published_rows(runs: Sequence[Measured], metric: str, dataset: str) -> list[list[str]]:
    known = [(p.format_title(m), m.find_curve(metric, dataset)) for p in read_papers() for m in p.method]
    return [[name, *map(format_number, curve)] for name, curve in known if curve and is_comparable(runs)]


def _make_our_rows(runs: Sequence[Measured], metric: str, dataset: str) -> list[list[str]]:
    rows = []
    for one in runs:
        figures = [one.figure(metric, dataset, k) for k in KS]
        if not any(figures):
            continue
        signs = make_marks(one, metric, dataset, find_best(metric, dataset) if is_comparable(runs) else None)
        means = [f"{format_number(f.mean)} {s}".strip() if f else "–" for f, s in zip(figures, signs, strict=True)]
        rows.append([one.label, *means])
        if any(f and f.ci95 for f in figures):
            rows.append(
                [
                    "",
                    *(
                        f"{format_number(f.ci95[0])}–{format_number(f.ci95[1])}" if f and f.ci95 else ""
                        for f in figures
                    ),
                ]
            )
    return rows


def _print_falls(groups: Sequence[tuple[Condition, Sequence[Measured]]]) -> None:
    rows = []
    for condition, label, changes in measure_falls(groups):
        cells = []
        for metric, k in HEADLINE:
            difference = changes.get(f"{metric if metric == 'drm' else f'char_{metric}'}@{k}")
            if difference is None or difference.mean is None:
                cells.append("–")
            else:
                ends = (
                    f" [{format_signed(difference.ci95[0])}, {format_signed(difference.ci95[1])}]"
                    if difference.ci95
                    else ""
                )
                cells.append(f"{format_signed(difference.mean)}{ends}")
        rows.append([label, condition.wording, *cells])
    if rows:
        head = ["", "questions", *(f"{METRICS[metric]}@{k}" for metric, k in HEADLINE)]
        print_table("ALL: change in points from the questions as published", head, rows)


# ---------------------------------------------------------------- flags


def _list_default_presets() -> str:
    return ",".join(name for name in ORDER if name in list_presets())


def _make_parser() -> argparse.ArgumentParser:
    what, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.legalbenchrag",
        description=what,
        epilog=f"examples:\n{more}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--source", type=Path, required=True, metavar="DIR", help="benchmarks/*.json and corpus/, as published")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--mini", action="store_true", help="the published sample (default)")
    size.add_argument("--full", action="store_true", help="every question and file of the source")
    add("--file-type", choices=["txt", "pdf"], default="txt", help="texts as published, or printed (default: txt)")
    presets = _list_default_presets()
    add("--presets", default=presets, metavar="NAME,…", help=f"NAME[:SETTING=VALUE…] each (default: {presets})")
    add("--embedder", metavar="NAME", help="the embedder instead of the presets' own")
    add("--no-filenames", action="store_true", help="rename every file to a number, for every preset")
    add("--reworded", action="store_true", help="also measure reworded questions, and the difference")
    add("--free", action="store_true", help="also measure 200 of mini's questions in free words, and the difference")
    add(
        "--unnamed",
        action="store_true",
        help="also measure the questions without their document's name, and the difference",
    )
    add("--out", type=Path, default=Path("results/legalbenchrag"), metavar="DIR", help="default: results/legalbenchrag")
    add("--page", type=Path, metavar="FILE", help="default: bench/results/legalbenchrag.md; none with --limit")
    add("--limit", type=parse_positive, metavar="N", help="a quick look at N questions, drawn from all four datasets")
    add("--anew", action="store_true", help="convert and measure finished runs again")
    add_engine_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
