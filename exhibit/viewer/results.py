"""Compare runs, and check the gold that they are scored on.

exhibit results summary results/naive results/sac
exhibit results diff results/before results/after --fail-on-regression
exhibit results report results/after
exhibit results compare results/naive results/sac results/routed
exhibit results card results/after --model me/my-rag
exhibit results gold datasets_out/cuad
exhibit results index results --fail-on regression
"""

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from exhibit.engine import parse_positive
from exhibit.engine.limits import add_limit_arguments, read_limits
from exhibit.evaluation import regression
from exhibit.evaluation.bands import read_scale
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.metrics import describe_metric, shorten_metrics, split_requests
from exhibit.evaluation.records import make_summary_json
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stage_losses import compare_stages, describe_moves, make_loss_tables
from exhibit.evaluation.statistics import Overlap, compare, count_overlap, summarise, summarise_run
from exhibit.evaluation.text_tables import ALL, choose_metrics, describe_not_compared, diff_lines, table_of
from exhibit.runtime.command import guarded, measure_text_width, parser_of, print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import HOWS
from exhibit.schemas.parsing import parse_pair, read_beside
from exhibit.storage.atomic import replace_file
from exhibit.viewer.drawing import PAGES, Record
from exhibit.viewer.funnel import make_funnel_rows
from exhibit.viewer.listing import fields_of, labels_of, make_brief
from exhibit.viewer.matching import CHANGES, Matching
from exhibit.viewer.page import GROUP_MEANINGS, list_languages, render
from exhibit.viewer.page_output import View, find_dataset_roots
from exhibit.viewer.plots import stack_shares
from exhibit.viewer.report import (
    MetricRow,
    compare_cell,
    format_start,
    group_rows,
    make_cell,
    with_ceiling,
    write_report,
)
from exhibit.viewer.trend.index import GATE, index
from exhibit.viewer.trend.index import NAME as INDEX
from exhibit.viewer.trend.summary import parse_gate

_SINGLE_PAGES = 300
"""The default limit of drawn pages for a single file: about as many as fit."""


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand of `exhibit results` and return its exit code.

    The code is 1 for an error or, with --fail-on-regression, for a regression, and 4 for a failed check of
    `index`.
    """
    options = _make_parser().parse_args(argv)
    commands: dict[str, Callable[[Any], int]] = {"summary": _print_summary, "diff": _print_diff, "gold": _print_gold}
    commands |= {"card": _print_card, "report": _write_pages, "compare": _write_pages, "index": index}
    return commands[options.command](options)


def _print_summary(options: Any) -> int:
    runs = {run.name: list(RunResults(run).tables.values()) for run in options.runs}
    if len(runs) == 1:  # the datasets of one run side by side
        [tables] = runs.values()
        columns = {table.name: summarise(table) for table in tables}
        columns |= {ALL: summarise_run(tables)} if len(tables) > 1 else {}
    else:
        columns = {name: summarise_run(tables) for name, tables in runs.items()}
    names = {name: estimate for means in columns.values() for name, estimate in means.items()}
    chosen = list(names) if options.all else choose_metrics(names, options.metrics)
    table = table_of(columns, chosen, width=measure_text_width())
    print_results({name: make_summary_json(means) for name, means in columns.items()}, table, as_json=options.json)
    return 0


def _print_diff(options: Any) -> int:
    runs = [RunResults(run) for run in options.runs]
    before, after = (list(run.tables.values()) for run in runs)
    differences, shared = compare(before, after), count_overlap(before, after)
    regression.check_comparable(options.runs, differences, shared)
    names = list(differences) if options.all else choose_metrics(differences, options.metrics)
    better = regression.describe_better([run.name for run in options.runs], differences)
    lines = [better, "", *diff_lines(differences, names, shared)]
    stages = compare_stages(*map(make_loss_tables, runs))
    lines += ["", "which stage moved", *(f"  {line}" for line in describe_moves(stages))] if stages else []
    worse = regression.find_regressions(differences, options.metrics, max_fall=options.max_fall)
    worse = [name for name in worse if not options.metrics or name in names]
    if worse:
        lines += ["", *regression.describe_regressions(differences, worse, max_fall=options.max_fall)]
    more = shared.failed_after - shared.failed_before
    if more > 0:
        lines += ["", f"worse: {shared.failed_after} of {shared.asked} questions failed, {more} more than before"]
    metrics = {name: {**asdict(one), "change": one.mean} for name, one in differences.items()}
    moved = {stage: {**asdict(one), "change": one.mean} for stage, one in stages.items()}
    record = {"metrics": metrics, "questions": asdict(shared), "worse": worse, "better": better, "lost_at": moved}
    print_results(record, "\n".join(lines), as_json=options.json)
    return 1 if (worse or more > 0) and options.fail_on_regression else 0


def _write_pages(options: Any) -> int:
    """Write the report of one run or the comparison of several; with --export, write their questions as a table."""
    if options.export:
        return _write_export(options)
    how: dict[str, Any] = {"single_file": options.single_file, "jobs": options.jobs, "say": print_note}
    usual = _SINGLE_PAGES if options.single_file else PAGES
    how |= {"pages": {None: usual, "all": None, "none": 0}.get(options.pages, options.pages)}
    how |= {"limits": read_limits(options)}
    how |= {"language": options.language}
    if options.dataset_paths:
        how["datasets"] = find_dataset_roots(
            list(map(RunResults, options.runs)), given=options.dataset_paths, say=print_note
        )
    if options.command == "report":
        page = write_report(options.runs[0], **how)
    else:
        if len(options.runs) < 2:
            raise ToolkitError(f"compare {options.runs[0]}: a comparison needs at least two runs; name another one")
        page = write_comparison(options.runs, out=options.out, **how)
    print_results({"page": page}, str(page), as_json=options.json)
    return 0


def _write_export(options: Any) -> int:
    try:
        wanted = dict(parse_pair(given, example="verdict=failed") for given in options.only)
    except ValueError as error:
        raise ToolkitError(f"--only: {error}") from error
    rows = make_records([RunResults(run) for run in options.runs])
    count = write_table(filter_records(rows, wanted), options.export)
    if options.json:
        print_results({"file": options.export, "questions": count}, "", as_json=True)
    print_note(f"{options.export}: {count:,} questions")
    return 0


def _print_card(options: Any) -> int:
    """Print a run's means as the YAML header of a model card or Space card, from which the Hub reads results."""
    from huggingface_hub import EvalResult, ModelCardData  # takes half a second to import

    run = RunResults(options.runs[0])
    results = []
    for table in run.tables.values():
        means = run.means_of(table.name)
        for metric in choose_metrics(means, options.metrics):
            one = means[metric]
            given = {"n": one.n, "failed": one.errors, **({"ci95": list(one.ci95)} if one.ci95 else {})}
            result = EvalResult(
                task_type="question-answering",
                dataset_type=(run.config.datasets[table.name].origin or table.name).removeprefix("hf://"),
                dataset_name=table.name,
                metric_type=metric,
                metric_name=describe_metric(metric).title,
                metric_value=round(one.mean or 0.0, 4),
                metric_args=given,
            )
            results += [result] if one.mean is not None else []
    card = ModelCardData(model_name=options.model or run.name, eval_results=results)
    print(f"---\n{card.to_yaml()}\n---")
    return 0


def _print_gold(options: Any) -> int:
    datasets, warnings = load_datasets(options.datasets, Selection())
    for warning in warnings:
        print_note(warning)
    lines = [line for dataset in datasets for line in format_gold(dataset, listed=options.list)]
    hows = {one.name: Counter(gold.how or "no words" for case in one.cases for gold in case.gold) for one in datasets}
    print_results(hows, "\n".join(lines), as_json=options.json)
    return 0


def format_gold(dataset: Dataset, *, listed: int) -> list[str]:
    """Return lines about a dataset's gold passages.

    They state the share of passages that were located, how many were located by each method, and up to `listed`
    passages that were not located.
    """
    worded = [(case, gold) for case in dataset.cases for gold in case.gold if gold.text and gold.text.strip()]
    counts = Counter(gold.how for _, gold in worded)
    located = len(worded) - counts["absent"]
    share = f" ({100 * located / len(worded):.2f}%)" if worded else ""
    lines = [f"{dataset.name}: {located} of {len(worded)} gold passages located{share}"]
    lines += [f"  {how:<7} {counts[how]}" for how in HOWS if counts[how]]
    names = sum(len(case.gold) for case in dataset.cases) - len(worded)
    lines += [f"  {names} name a file but quote no words"] if names else []
    ambiguous = sum(gold.ambiguous for _, gold in worded)
    lines += [f"  {ambiguous} have few words that occur at many places: in no passage metric"] if ambiguous else []
    absent = [(case, gold) for case, gold in worded if gold.how == "absent"]
    for case, gold in absent[:listed]:
        words = " ".join((gold.text or "").split())
        lines.append(f"  not located: {case.id}, {gold.filename}: {words if len(words) <= 100 else words[:99] + '…'}")
    return lines + ([f"  … and {len(absent) - listed} more (--list)"] if len(absent) > listed else [])


# ---------------------------------------------------------------- flags


def _make_parser() -> argparse.ArgumentParser:
    kinds: dict[str, Any] = {
        "metrics": split_requests,
        "positive": parse_positive,
        "pages": _parse_page_limit,
        "gate": parse_gate,
    }
    kinds |= {"languages": list_languages()}
    words = {"pages": PAGES, "compare": NAME, "index": INDEX, "gate": GATE, "max_fall": regression.MAX_FALL}
    parser, commands = parser_of("exhibit results", __doc__, read_beside(__file__), kinds, **words)
    for name in ("report", "compare"):
        add_limit_arguments(commands[name])
    return parser


def _parse_page_limit(text: str) -> int | str:
    return text if text in ("all", "none") else parse_positive(text)


_BATCH = 2000  # rows written at a time, to save memory
_FORMULA = tuple("=+-@\t\r")


def make_records(runs: Sequence[RunResults]) -> Iterator[Record]:
    """Yield a record for each question, with its values in each run, in the order of the report's question list."""
    matching = Matching(runs)
    for _ in matching.scan():
        pass  # the order is known after all are read
    facets = [{"error": "kind_of_error", "lost": "lost_at"}.get(one.name, one.name) for one in matching.make_facets()]
    for number, run in enumerate(runs, 1):
        facets = [f"verdict: {run.name}" if name == f"verdict-{number}" else name for name in facets]
    names = [*facets, *fields_of([run.name for run in runs])]
    for sides in matching:
        fields = dict(zip(names, [*matching.values(sides), *make_brief(sides)], strict=True))
        yield {**fields, "labels": labels_of(next(filter(None, sides)))}


def filter_records(rows: Iterable[Record], wanted: Mapping[str, str]) -> Iterator[Record]:
    """Yield the records whose fields or labels have the wanted values."""
    for row in rows:
        if all(str(row.get(name, row["labels"].get(name))) == value for name, value in wanted.items()):
            yield row


def write_table(rows: Iterable[Record], path: Path) -> int:
    """Write records as CSV, JSON Lines or Parquet, chosen by the file's extension; return the number of records."""
    writers: dict[str, Callable[[Iterable[Record], Path], None]] = {".csv": _write_csv, ".jsonl": _write_jsonl}
    writers |= {".parquet": _write_parquet}
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise ToolkitError(f"{path}: unknown format; use a name that ends in {', '.join(writers)}")
    number = count()
    with replace_file(path) as partial:
        writer((row for row, _ in zip(rows, number, strict=False)), partial)
    return next(number)


def _write_jsonl(rows: Iterable[Record], path: Path) -> None:
    with path.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_csv(rows: Iterable[Record], path: Path) -> None:
    # with a byte order mark, because spreadsheets otherwise assume another encoding
    with path.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.writer(file)
        for number, row in enumerate(rows):
            if not number:
                writer.writerow(row)
            writer.writerow(_protect_cell(value) for value in row.values())


def _protect_cell(value: Any) -> Any:
    """Return a CSV cell; a text that a spreadsheet would run as a formula gets a leading apostrophe."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _write_parquet(rows: Iterable[Record], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    given = iter(rows)
    first = list(islice(given, 1))
    kinds = [(name, pa.float64() if name.startswith("found") else pa.string()) for row in first for name in row]
    given = chain(first, given)
    with pq.ParquetWriter(path, pa.schema(kinds)) as writer:
        while batch := list(islice(given, _BATCH)):
            columns = {name: [_format_cell(name, row[name]) for row in batch] for name, _ in kinds}
            writer.write_table(pa.table(columns, schema=pa.schema(kinds)))


def _format_cell(name: str, value: Any) -> Any:
    if name.startswith("found"):
        return value
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return text.encode("utf-8", "replace").decode("utf-8")


NAME = "compare.html"
_NOT_SETTINGS = ("run_name", "datasets", "version", "format", "output_dir", "resume")


def write_comparison(folders: Sequence[Path], *, out: Path | None = None, **how: Any) -> Path:
    """Write a page that compares the first results folder with each of the others, and return its path.

    Without `out`, the page is `compare.html` in the last folder; `how` sets the options of `View`.
    """
    runs = [RunResults(folder) for folder in folders]
    tables = [list(run.tables.values()) for run in runs]
    grids, overlaps = _make_grids(tables, folders), [count_overlap(tables[0], other) for other in tables[1:]]
    names = [run.name for run in runs]
    title = f"{', '.join(names[:-1])} and {names[-1]} – Exhibit comparison"
    better = [
        regression.describe_better([names[0], name], compare(tables[0], other))
        for name, other in zip(names[1:], tables[1:], strict=True)
    ]
    losses = [make_loss_tables(run) for run in runs]
    moved = [
        f"{name}: {line}"
        for name, other in zip(names[1:], losses[1:], strict=True)
        for line in describe_moves(compare_stages(losses[0], other))
    ]
    body = partial(_make_body, grids=grids, overlaps=overlaps, better=better, moved=moved)
    return View(**how).write(runs, out or Path(folders[-1]) / NAME, title, body)


def _make_grids(tables: Sequence[Sequence[Table]], folders: Sequence[Path]) -> list[tuple[str, list[MetricRow]]]:
    """Return tables of metrics with one column per run: first over all datasets, then for each dataset."""
    for folder, other in zip(folders[1:], tables[1:], strict=True):
        regression.check_comparable([folders[0], folder], compare(tables[0], other), count_overlap(tables[0], other))
    names = [table.name for table in tables[0]]
    grids = [("All benchmarks, each counting alike" if len(names) > 1 else names[0], _make_grid(tables))]
    if len(names) > 1:
        grids += [(name, _make_grid([[one for one in mine if one.name == name] for mine in tables])) for name in names]
    return [(title, rows) for title, rows in grids if rows]


def _make_grid(tables: Sequence[Sequence[Table]]) -> list[MetricRow]:
    scale, columns = read_scale(), [summarise_run(mine) for mine in tables]
    differences = [{}, *(compare(tables[0], other) for other in tables[1:])]
    names = dict.fromkeys(name for means in columns for name, one in means.items() if one.mean is not None)
    rows = []
    for metric in shorten_metrics(names, all_families=True):
        own = [with_ceiling(metric, make_cell(metric, means.get(metric), scale), means) for means in columns]
        cells = [compare_cell(metric, one, paired.get(metric)) for one, paired in zip(own, differences, strict=True)]
        rows.append(MetricRow(metric, describe_metric(metric), cells))
    return rows


def _make_body(
    matching: Matching,
    meta: Record,
    notes: list[str],
    *,
    grids: list[tuple[str, list[MetricRow]]],
    overlaps: Sequence[Overlap],
    better: Sequence[str],
    moved: Sequence[str],
) -> str:
    counts = dict(zip(meta["facets"][0]["values"], meta["facets"][0]["counts"], strict=True))
    names = [run.name for run in matching.runs]
    left_out = [
        f"{name}: {line}" for name, one in zip(names[1:], overlaps, strict=True) for line in describe_not_compared(one)
    ]
    return render(
        "compare.html.j2",
        language=meta["language"],
        runs=[
            (run.name, format_start(run, meta["language"]), tally)
            for run, tally in zip(matching.runs, matching.tallies, strict=True)
        ],
        meta=meta,
        notes=notes,
        grids=[(title, group_rows(rows)) for title, rows in grids],
        meanings=GROUP_MEANINGS,
        asked=min(one.asked for one in overlaps),
        answered=min(one.answered for one in overlaps),
        left_out=left_out,
        better=better,
        moved=moved,
        funnels=[
            (run.name, tally.stages, make_funnel_rows(tally.stages, run.means))
            for run, tally in zip(matching.runs, matching.tallies, strict=True)
        ],
        changes=[(name, change.meaning, counts[name]) for name, change in CHANGES.items() if counts.get(name)],
        shares=stack_shares({name: tally.count_total() for name, tally in zip(names, matching.tallies, strict=True)}),
        differing=_find_differing(matching.runs),
    )


def _find_differing(runs: Sequence[RunResults]) -> list[tuple[str, list[str]]]:
    """Return the settings that differ between the runs, each as its name and its value in every run."""
    settings = [run.settings for run in runs]
    names = dict.fromkeys(name for one in settings for name in one if name.partition(".")[0] not in _NOT_SETTINGS)
    values = {name: [one.get(name, "–") for one in settings] for name in names}
    return [(name, each) for name, each in values.items() if len(set(each)) > 1]


if __name__ == "__main__":
    sys.exit(main())
