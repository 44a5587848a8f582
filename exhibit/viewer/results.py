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
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from exhibit.engine import parse_positive
from exhibit.engine.limits import add_limit_arguments, read_limits
from exhibit.evaluation import regression
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.metrics import describe_metric, split_requests
from exhibit.evaluation.records import make_summary_json
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.stage_losses import compare_stages, describe_moves, make_loss_tables
from exhibit.evaluation.statistics import compare, count_overlap, summarise, summarise_run
from exhibit.evaluation.text_tables import ALL, choose_metrics, diff_lines, table_of
from exhibit.runtime.command import guarded, measure_text_width, parser_of, print_note, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import HOWS
from exhibit.schemas.parsing import parse_pair, read_beside
from exhibit.viewer.comparison import NAME, write_comparison
from exhibit.viewer.drawing import PAGES
from exhibit.viewer.page import list_languages
from exhibit.viewer.page_output import find_dataset_roots
from exhibit.viewer.question_export import filter_records, make_records, write_table
from exhibit.viewer.report import write_report
from exhibit.viewer.trend.gates import parse_gate
from exhibit.viewer.trend.index import GATE, index
from exhibit.viewer.trend.index import NAME as INDEX

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


if __name__ == "__main__":
    sys.exit(main())
