"""Test a RAG system on bundles, and show the evidence.

examples:
    exhibit evaluate datasets_out/cuad
    exhibit evaluate datasets_out/* --file-type pdf --set chunk_size=300 --set splitter=sections
    exhibit evaluate datasets_out/cuad --target-url http://localhost:50505/ask --limit 50
    exhibit results diff results/before results/after
    exhibit evaluate datasets_out/cuad --recheck ragas.csv    # without a bundle: --documents FOLDER

Without --target-url the built-in pipeline is tested. It needs no API key: its answers are sentences of the documents.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from exhibit.evaluation import text_tables
from exhibit.evaluation.datasets import load_datasets
from exhibit.evaluation.evaluate import Draw, evaluate
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults, make_summary_json
from exhibit.evaluation.settings import Settings, list_settings, parse_set, parse_settings, read_config_file
from exhibit.evaluation.targets import list_targets
from exhibit.evaluation.targets.predictions import describe_account, make_bundle
from exhibit.rag.config import DEFAULT, PLUGINS, list_presets
from exhibit.runtime import command
from exhibit.runtime.plugins import list_plugins
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import EVIDENCE

FAILED = 3  # the exit code of a run in which too many questions failed


@command.guarded("stopped; continue with the same command and --resume")
def main(argv: Sequence[str] | None = None, *, draw: Draw | None = None) -> int:
    """Run the evaluation, write the report with `draw`, and print the results; with `--analyze`, only an analysis."""
    flags = _parse_flags(list(sys.argv[1:] if argv is None else argv))
    set_flags = parse_set(flags.pop("set", []))
    analysed, label, as_json = flags.pop("analyze", None), flags.pop("by", ""), flags.pop("json")
    bundles = [*flags.pop("bundles", []), *flags.pop("dataset_paths", [])]
    if recheck := flags.pop("recheck", None):
        bundles = bundles or [str(make_bundle(recheck, flags.pop("documents", None)))]
        # missing data is reported, but is not a failure
        flags = {"target": f"recheck:{recheck}", "max_failures": 1.0, **flags}
    flags |= {"dataset_paths": bundles} if bundles else {}
    if analysed:
        metrics, width = split_requests(flags.get("metrics") or ""), command.measure_text_width()
        print("\n".join(text_tables.format_analysis(Path(analysed), metrics=metrics, width=width)))
        return 0
    file = flags.pop("config", None)
    given = {**(read_config_file(file) if file else {}), **flags, **set_flags}
    settings = parse_settings(given, where=str(file or "settings"), flags=set_flags)
    if not settings.dataset_paths:
        raise ToolkitError("no dataset given; name a folder, such as datasets_out/cuad")
    if analysed is not None:
        datasets, _ = load_datasets(settings.dataset_paths, settings)
        labels = [case.labels for dataset in datasets for case in dataset.cases]
        print("\n".join(text_tables.format_distribution(labels)))
        return 0
    run = evaluate(settings, warn=command.print_note, draw=draw)
    command.print_results(_make_record(run), "\n".join(_format_run(run, settings, label)), as_json=as_json)
    for name in run.datasets:
        for note in run.read_file(EVIDENCE, name).lines:
            command.print_note(note)
    return _report_failures(run, settings)


def _format_run(run: RunResults, settings: Settings, label: str) -> Iterator[str]:
    width, tables = command.measure_text_width(), list(run.tables.values())
    yield from describe_account(run.folder)
    yield f"{describe_result(tables)}\n"
    yield text_tables.table_of(run.columns, text_tables.choose_metrics(run.means, settings.metrics), width=width)
    if label:
        yield from ("", *text_tables.format_comparison(tables, label, metrics=settings.metrics, width=width))
    if settings.flag_below is not None:
        flags = [value for table in tables for value in table.values.get("flagged", ()) if value is not None]
        yield f"\nflagged for review: {sum(map(bool, flags))} of {len(flags)} answers that have a confidence"
    yield f"\nresults: {run.folder}" + (f"\nreport:  {run.report}" if run.report.is_file() else "")


def _make_record(run: RunResults) -> dict[str, Any]:
    means = {name: make_summary_json(run.means_of(name)) for name in run.datasets}
    failures = {"asked": run.question_count, "failed": run.failed_count, "first": run.first_error or None}
    record = {"results": str(run.folder), "report": str(run.report), "datasets": means}
    record |= {"summary": make_summary_json(run.means), "failures": failures}
    return record | {"judge_failures": dict(run.judge_faults)}


def _report_failures(run: RunResults, settings: Settings) -> int:
    """Return exit code 3 and print why if the judge failed or more replies failed than --max-failures allows."""
    errors = []
    if run.judge_faults:
        count, first = sum(run.judge_faults.values()), max(run.judge_faults, key=lambda fault: run.judge_faults[fault])
        message = f"the judge gave no mark for {count} answers, so rules judge them. The commonest reason: {first}"
        errors.append(f"{message}\nrepair the judge (--judge), then continue with --resume")
    total, failed = run.question_count, run.failed_count
    if failed:
        times = "" if settings.repeat == 1 else f" in at least one of {settings.repeat} rounds"
        message = f"{failed} of {total} questions failed{times}; they count as not right; no other mean includes them"
        message = f"{message}. The first: {run.first_error}"
        if failed / total > settings.max_failures:
            limit = f"that is {100 * failed / total:.1f}%, and --max-failures is {100 * settings.max_failures:g}%"
            again = f"ask the failed questions again with --resume --run-name {run.folder.name}"
            errors.append(f"{message}\n{limit}; {again}")
        else:
            command.print_note(message)
    for error in errors:
        command.print_error(ToolkitError(error))
    return FAILED if errors else 0


def _parse_flags(words: list[str]) -> dict[str, Any]:
    """Return the flags of a command line by name; `--chunk-size 300` is another form of `--set chunk_size=300`."""
    parser = _make_parser()
    known = {flag for action in parser._actions for flag in action.option_strings}
    parser.words = tuple(flag for name in list_settings() if (flag := f"--{name.replace('_', '-')}") not in known)
    for flag in parser.words:
        pair = f"{flag[2:]}={{}}".format  # without a value, the flag is a switch and means `true`
        value: dict[str, Any] = {"nargs": "?", "type": pair, "const": "true"}
        parser.add_argument(flag, dest="set", action="append", help=argparse.SUPPRESS, **value)
    return vars(parser.parse_intermixed_args(words))


def _make_parser() -> command.Parser:
    how: dict[str, Any] = {"argument_default": argparse.SUPPRESS, "allow_abbrev": False}
    parser = command.build_parser("exhibit evaluate", __doc__, usage="%(prog)s BUNDLE … [flags]", **how)
    targets = ", ".join(name.replace("_", "-") for name in list_targets())
    embedders, llms = (", ".join(list_plugins(PLUGINS[part])).replace("_", "-") for part in ("embedder", "llm"))
    add = parser.add_argument_group("questions").add_argument
    add("bundles", nargs="*", metavar="BUNDLE", help="the bundles: folders, hf://OWNER/NAME@REVISION, s3://, gs://")
    add("--dataset-paths", nargs="+", metavar="BUNDLE", help=argparse.SUPPRESS)
    add("--limit", "--numquestions", type=int, metavar="N", help="ask only N questions of each dataset")
    add("--where", action="append", metavar="LABEL=VALUE", help="ask only questions with this label; repeatable")
    add("--ask-label", metavar="LABEL", help="also ask for this label's value and score the reply (ContractNLI: label)")
    files = "ingest only files of these types (default: pdf if the PDFs contain all gold)"
    add("--file-type", metavar="pdf|txt,html|all", help=files)
    add = parser.add_argument_group("system under test").add_argument
    add("--target", metavar="NAME", help=f"the system: {targets}, or a .toml file (default: builtin)")
    add("--target-url", "--targeturl", metavar="URL", help="the address of the server to test")
    add("--recheck", type=Path, metavar="FILE", help="score a finished run of ragas, DeepEval, promptfoo, Inspect …")
    add("--documents", type=Path, metavar="DIR", help=argparse.SUPPRESS)
    add("--preset", metavar="NAME", help=f"the preset: {', '.join(list_presets())}, or a .toml (default: {DEFAULT})")
    add("--embedder", metavar="NAME", help=f"the embedder: {embedders}, or NAME:MODEL")
    add("--llm", metavar="NAME", help=f"the answering model: {llms}, as NAME:MODEL; none: retrieval only")
    add("--top-k", dest="k", help=argparse.SUPPRESS)  # the flag's name in the first seed project
    add("--set", action="append", metavar="NAME=VALUE", help="any setting; exhibit evaluate --settings lists all")
    add("--config", type=Path, metavar="FILE", help="a JSON or TOML file of settings; flags override them")
    results = parser.add_argument_group("results")
    add = results.add_argument
    add("--metrics", metavar="NAME,…", help="the metrics, such as ndcg,drm@8 (default: all that apply)")
    add("--judge", metavar="NAME", help="the model that marks groundedness, relevance and correctness")
    add("--by", metavar="LABEL", help="add a table of the means for each value of this label, such as category")
    # flags of the third seed project
    add("--all", dest="by", action="store_const", const="source_type", help=argparse.SUPPRESS)
    kind: dict[str, Any] = {"dest": "where", "action": "append", "type": lambda value: f"source_type={value}"}
    add("--source-type", help=argparse.SUPPRESS, **kind)
    analysis = "print an analysis of a finished run; without RUN, count the questions of the bundles"
    add("--analyze", nargs="?", const="", metavar="RUN", help=analysis)
    add("--output-dir", "--resultsdir", metavar="DIR", help="the folder of all runs (default: results)")
    add("--run-name", metavar="NAME", help="the name of the run's folder (default: preset and time)")
    add("--resume", action="store_true", help="continue a run that was stopped")
    command.add_json(results)
    return parser
