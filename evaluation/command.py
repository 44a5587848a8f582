"""Tests a RAG system on bundles, and shows the evidence.

    python evaluate_rag.py --dataset-paths datasets_out/* --file-type pdf
    python evaluate_rag.py --dataset-paths datasets_out/cpr --config configs/practice_directions.json
    python evaluate_rag.py --dataset-paths datasets_out/cuad --target-url http://localhost:50505/ask --limit 50
    python evaluate_rag.py --dataset-paths hf://me/cuad-rag@v1
    python evaluate_rag.py --dataset-paths 's3://bucket/bundles/*' --file-type pdf
    python -m evaluation.results diff results/before results/after

Without --target-url the built-in pipeline is tested. It needs no key: answers are sentences of the documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_origin

from pydantic.fields import FieldInfo

from exhibit.engine import add_engine_arguments
from exhibit.evaluation.analysis import SOURCE_TYPE, analysis_lines, comparison_lines, distribution_lines, flag_lines
from exhibit.evaluation.confidence import CONFIDENCE, in_words
from exhibit.evaluation.datasets import load_datasets
from exhibit.evaluation.evaluate import Run, evaluate
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.records import read_json
from exhibit.evaluation.settings import Settings, parse_settings, read_config_file
from exhibit.evaluation.targets import target_names, target_settings
from exhibit.evaluation.terminal import ALL, shown_metrics, table_of
from exhibit.hub.pull import fetch, is_repository, parse_address
from exhibit.rag.config import DEFAULT, PLUGINS, add_setting_flags, preset_names
from exhibit.schemas.command import guarded, print_error, print_note, spelled
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.plugins import plugin_names

FAILED = 3
"""The exit code of a run in which too many questions failed."""
OWN = frozenset({"embedder", "llm", "k"})
"""Settings of the pipeline that have a flag of their own."""


@guarded("stopped; go on with the same command and --resume")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the evaluation; print one table and where the report is."""
    flags = vars(_parser().parse_args(argv))
    analysed, label = flags.pop("analyze", None), _compared(flags)
    bundles = [*flags.pop("bundles", []), *flags.pop("dataset_paths", [])]
    flags |= {"dataset_paths": bundles} if bundles else {}
    if analysed:
        print("\n".join(analysis_lines(Path(analysed), metrics=split_requests(flags.get("metrics") or ""))))
        return 0
    file = flags.pop("config", None)
    told, notes = read_config_file(file) if file else ({}, [])
    settings = parse_settings({**told, **flags}, where=str(file or "settings"))
    if not settings.dataset_paths:
        raise ToolkitError("\n".join(["no dataset: give --dataset-paths datasets_out/*", *notes]))
    if analysed is not None:
        datasets, _ = load_datasets(with_fetched(settings).dataset_paths, settings.selection)
        print("\n".join(distribution_lines([case.labels for one in datasets for case in one.cases])))
        return 0
    run = evaluate(with_fetched(settings), warn=print_note)
    means = run.by_dataset()
    means |= {ALL: run.summary} if len(means) > 1 else {}
    print(table_of(means, shown_metrics(run.summary, settings.metrics)))
    if label:
        print("", *comparison_lines(run.tables, label, metrics=settings.metrics), sep="\n")
    if settings.flag_below is not None:
        print("", *flag_lines(run.tables, settings.flag_below), sep="\n")
    for path in (run.folder / table.name / CONFIDENCE for table in run.tables):
        if path.is_file():
            print(in_words(path.parent.name, read_json(path)))
    for note in run.notes:
        print_note(note)
    print(f"\nresults: {run.folder}\nreport:  {run.report}")
    return _judge(run, settings)


def _compared(flags: dict[str, Any]) -> str:
    """Return the label that questions are compared by; `--source-type` becomes the `--where` that it is short for."""
    label = str(flags.pop("by", "") or (SOURCE_TYPE if flags.pop("all", False) else ""))
    flags.pop("all", None)
    types = flags.pop("source_type", [])
    if types:
        flags["where"] = [*flags.get("where", []), *(f"{SOURCE_TYPE}={one}" for one in types)]
    return label


def _judge(run: Run, settings: Settings) -> int:
    """Return 3, after saying why, when so many questions failed that the means say little."""
    failures = run.failures
    if not failures.failed:
        return 0
    told = f"{failures.failed} of {failures.asked} questions failed and are in no mean. The first: {failures.first}"
    if failures.share <= settings.max_failures:
        print_note(told)
        return 0
    limit = f"that is {100 * failures.share:.1f}%, and --max-failures is {100 * settings.max_failures:g}%"
    print_error(ToolkitError(f"{told}\n{limit}; ask the failed ones again with --resume --run-name {run.folder.name}"))
    return FAILED


def with_fetched(settings: Settings) -> Settings:
    """Return the settings with a folder of the Hub's cache for each dataset that is given by its address there."""
    paths, origins = [], {}
    for path in settings.dataset_paths:
        if is_repository(path):
            repo_id, revision = parse_address(path)
            fetched = fetch(repo_id, revision=revision, say=print_note)
            path = str(fetched.folder)
            origins[path] = fetched.address
        paths.append(path)
    return settings.model_copy(update={"dataset_paths": tuple(paths), "origins": origins})


def _parser() -> argparse.ArgumentParser:
    what, _, examples = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog=spelled("python evaluate_rag.py"),
        description=what,
        epilog=spelled(f"examples:\n{examples}"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as JSON or TOML; flags overrule them")
    _add_data(parser.add_argument_group("what is asked"))
    _add_system(parser.add_argument_group("what is tested"))
    _add_targets(parser)
    _add_results(parser.add_argument_group("what comes out"))
    _add_pipeline(parser.add_argument_group("single settings of the built-in pipeline, over the preset's"))
    return parser


def _add_data(group: Any) -> None:
    group.add_argument("bundles", nargs="*", metavar="BUNDLE", help="what --dataset-paths takes, without the flag")
    group.add_argument(
        "--dataset-paths",
        nargs="+",
        metavar="DIR",
        help="bundles; also 'datasets_out/*', hf://OWNER/NAME@REVISION, s3://, gs://",
    )
    group.add_argument("--file-type", metavar="pdf|txt|txt,html", help="ingest only such files, and count their pages")
    group.add_argument("--where", action="append", metavar="LABEL=VALUE", help="only questions with this label; repeat")
    group.add_argument(
        "--source-type", action="append", metavar="NAME", help="short for --where source_type=NAME: CPR, PD; repeat"
    )
    group.add_argument("--limit", "--numquestions", type=int, metavar="N", help="only N questions of each dataset")
    group.add_argument("--repeat", type=int, metavar="N", help="ask every question N times, and show the spread")
    group.add_argument(
        "--allow-changed-corpus",
        action="store_true",
        help="score questions whose documents are not those of bundle.json",
    )
    group.add_argument("--sample-seed", type=int, metavar="N", help="draw them at random; else they are the first")


def _listed(package: str) -> list[str]:
    return [name.replace("_", "-") for name in plugin_names(package)]


def _add_system(group: Any) -> None:
    names = ", ".join(preset_names())
    targets = ", ".join(name.replace("_", "-") for name in target_names())
    group.add_argument("--target", metavar="NAME", help=f"{targets} (default: builtin; predictions:FILE; FILE.toml)")
    group.add_argument("--preset", metavar="NAME", help=f"{names} or a .toml file (default: {DEFAULT})")
    embedders, llms = (", ".join(_listed(PLUGINS[kind])) for kind in ("embedder", "llm"))
    group.add_argument("--embedder", metavar="NAME", help=f"{embedders}, or NAME:MODEL (default: the preset's)")
    group.add_argument(
        "--llm", metavar="NAME", help=f"{llms}, as NAME:MODEL; none: retrieval alone; default: extractive answers"
    )
    group.add_argument("--top-k", type=int, metavar="K", help="passages that an answer is made from")
    group.add_argument("--ingest", action="store_true", help="give a server the documents that it does not have")
    group.add_argument("--skip-ingestion", action="store_true", help="use the index there is, or stop")
    group.add_argument(
        "--force-ingestion", action="store_true", help="build the index anew; a server's: delete, ingest"
    )
    group.add_argument("--delete-collection", action="store_true", help="delete a server's documents after the run")
    group.add_argument("--threads", type=int, metavar="N", help="requests at once (default: 4)")
    group.add_argument(
        "--timeout", type=float, metavar="S", help="seconds for one question, retries included (default: 60)"
    )
    group.add_argument("--retries", type=int, metavar="N", help="times a failing server is asked again (default: 5)")
    add_engine_arguments(group, default=argparse.SUPPRESS)


def _add_targets(parser: argparse.ArgumentParser) -> None:
    """Add the settings that each target says it has; a flag that two targets have is one flag."""
    owners: dict[str, list[str]] = {}
    fields: dict[str, FieldInfo] = {}
    for target, model in target_settings().items():
        for name, told in model.model_fields.items():
            owners.setdefault(name, []).append(target)
            fields.setdefault(name, told)
    for targets in dict.fromkeys(map(tuple, owners.values())):
        group = parser.add_argument_group(f"settings of --target {', '.join(targets)}")
        for name in (name for name, its_targets in owners.items() if tuple(its_targets) == targets):
            _add_setting(group, name, fields[name])


def _add_setting(group: Any, name: str, told: FieldInfo) -> None:
    flags = [f"--target-{name.replace('_', '-')}", *(["--targeturl"] if name == "url" else [])]
    if told.annotation is bool:
        group.add_argument(*flags, action="store_true", help=told.description)
    elif get_origin(told.annotation) in (dict, list, tuple) and "repeat" in (told.description or ""):
        group.add_argument(*flags, action="append", metavar="X", help=told.description)
    else:
        group.add_argument(*flags, metavar="X", help=told.description)


def _add_results(group: Any) -> None:
    files = ", ".join(_listed("exhibit.evaluation.metrics"))
    group.add_argument("--metrics", metavar="NAME,…", help=f"{files} (default: all that apply)")
    group.add_argument("--judge", metavar="NAME", help="the model that marks groundedness, relevance and correctness")
    group.add_argument(
        "--judge-votes", type=int, metavar="N", help="votes on the correctness of an answer (default: 1)"
    )
    group.add_argument("--parity", choices=["legalbenchrag", "seed", "squad"], help="count as published elsewhere")
    group.add_argument(
        "--max-failures", type=float, metavar="SHARE", help="exit 3 when more questions failed (default: 0.05)"
    )
    group.add_argument("--all", action="store_true", help="one table more: the source types side by side")
    group.add_argument("--by", metavar="LABEL", help="as --all, by another label of the questions, such as category")
    group.add_argument(
        "--analyze",
        nargs="?",
        const="",
        metavar="RUN",
        help="take a finished run's folder apart and run nothing; without RUN: what the datasets ask, by kind",
    )
    group.add_argument(
        "--flag-below", type=float, metavar="SHARE", help="flag answers for review whose confidence is lower, 0 to 1"
    )
    group.add_argument(
        "--check-references",
        action="store_true",
        help="look the answers' references up at legislation.gov.uk and Find Case Law, politely and once",
    )
    group.add_argument("--legislation-url", metavar="URL", help="a mirror of legislation.gov.uk")
    group.add_argument("--case-law-url", metavar="URL", help="a mirror of caselaw.nationalarchives.gov.uk")
    group.add_argument("--legacy-minus-one", action="store_true", help="write -1 for failures, as some tools expect")
    group.add_argument("--output-dir", "--resultsdir", metavar="DIR", help="default: results")
    group.add_argument("--run-name", metavar="NAME", help="the run's folder there (default: preset and time)")
    group.add_argument("--resume", action="store_true", help="go on with a run that was stopped")
    group.add_argument(
        "--report-cases", type=int, metavar="N", help="questions shown with page images (default: all, to 2,000 pages)"
    )


def _add_pipeline(group: Any) -> None:
    add_setting_flags(group, but=OWN | set(Settings.model_fields))


if __name__ == "__main__":
    sys.exit(main())
