"""Run a whole evaluation: datasets, target, replies, cases, metrics, results folder.

run = evaluate(parse_settings({"dataset_paths": ["datasets_out/cuad"]}))
print(run.summary["char_recall@64"].mean)
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import add
from pathlib import Path
from typing import Any

from exhibit.engine import apply_limits, check_engine, track
from exhibit.evaluation.answering import AnsweringTarget, with_answers, write_direct_results
from exhibit.evaluation.datasets import Dataset, load_datasets
from exhibit.evaluation.metrics import KS, Options, choose_figures, find_needing, import_metrics
from exhibit.evaluation.provenance import describe_run, find_changed_data, hash_inputs
from exhibit.evaluation.records import make_summary_json, write_evaltools, write_json
from exhibit.evaluation.registers import Register, write_account
from exhibit.evaluation.score_table import Table, Values
from exhibit.evaluation.scoring import (
    Failures,
    Scored,
    Scoring,
    ask,
    find_failures,
    journal_of,
    measure_rounds,
    text_of,
    to_probe,
)
from exhibit.evaluation.settings import Settings, compare_reply_settings
from exhibit.evaluation.stages import PreparedDocuments
from exhibit.evaluation.statistics import Estimate, summarise, summarise_run
from exhibit.evaluation.system_documents import FileDocuments, TargetDocuments
from exhibit.evaluation.targets import Target, TargetOptions, open_target
from exhibit.evaluation.targets.recheck import Recheck
from exhibit.law.references import Reference, ReferenceCorpus
from exhibit.models.llms import LLM
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas import __version__
from exhibit.schemas.bundle import INFO, TRAIN, load_json, read_info
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run import CONFIG, FORMAT, INGESTION, PROVENANCE, REPORT, RESULTS, SUMMARY
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import lock_folder, refuse_links
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import origin_of

Warn = Callable[[str], None]
Draw = Callable[..., Path]
"""The function that writes the report of a finished run: `exhibit.viewer.write_report`."""


@dataclass(frozen=True)
class EvaluatedRun:
    """The result of an evaluation: its folder, its scores, the mean of each metric, and the failed questions."""

    folder: Path
    tables: tuple[Table, ...]
    summary: dict[str, Estimate]
    failures: Failures
    judge_faults: Mapping[str, int] = field(default_factory=dict)
    """How often the judge failed or gave no readable mark, by the message."""
    notes: tuple[str, ...] = ()
    """The data that is missing for a full judgement of the system, in words."""

    @property
    def report(self) -> Path:
        """The path of the report; the file exists only if a report was written."""
        return self.folder / REPORT

    def compute_means_by_dataset(self) -> dict[str, dict[str, Estimate]]:
        """Return the mean of each metric in each dataset as `{dataset: {metric: mean}}`."""
        return {table.name: summarise(table) for table in self.tables}


def evaluate(
    settings: Settings,
    *,
    parts: Mapping[str, Any] | None = None,
    judge: LLM | None = None,
    warn: Warn | None = None,
    draw: Draw | None = None,
) -> EvaluatedRun:
    """Run an evaluation: settings, datasets, target, journal, cases, scores, folder, report.

    `parts` replaces the objects `cache`, `embedder`, `llm` and `function` that the settings name, `judge` is the model
    that marks answers, `warn` is called with each note, and `draw` writes the report.
    """
    with apply_limits(settings.limits):
        return _evaluate(settings, dict(parts or {}), judge, warn or (lambda _: None), draw)


def _evaluate(
    settings: Settings, parts: dict[str, Any], judge: LLM | None, say: Warn, draw: Draw | None
) -> EvaluatedRun:
    plan = _prepare(settings, parts, judge, say)
    folder = run_folder(settings, plan)
    folder.mkdir(parents=True, exist_ok=True)
    refuse_links(folder)
    with lock_folder(folder, busy=f"{folder}: another run is writing it; wait, or give another --run-name"):
        config = _open_run(folder, settings, plan)
        _probe(folder, settings, plan, say)
        (folder / SUMMARY).unlink(missing_ok=True)  # a summary marks a finished run
        write_json(folder / CONFIG, config)
        started = RunFolder(folder).provenance.started if (folder / PROVENANCE).is_file() else ""
        write_json(folder / PROVENANCE, describe_run(plan.datasets, hash_inputs(settings.target_name), started=started))
        measured = [_evaluate_dataset(folder, dataset, settings, plan, say) for dataset in plan.datasets]
        tables = _drop_empty([one.table(say) for one in measured], settings)
        for table, one in zip(tables, measured, strict=True):
            one.write(table, failed=-1.0 if settings.legacy_minus_one else None)
        summary = summarise_run(tables)
        write_evaltools(folder)
        if isinstance(plan.target, AnsweringTarget):
            write_direct_results(folder)
        if isinstance(plan.target, Recheck):
            plan.target.write_account(folder, plan.datasets)
        if isinstance(plan.options.officials, Register):
            write_account([folder / table.name / RESULTS for table in tables], plan.options.officials, say=say)
        write_json(folder / SUMMARY, make_summary_json(summary))
        if draw is not None:
            roots = {dataset.name: dataset.root for dataset in plan.datasets}
            cases, jobs, limits = settings.report_cases, settings.jobs, settings.limits
            draw(folder, datasets=roots, cases=cases, jobs=jobs, limits=limits, say=say)
    failures = reduce(add, (one.failures for one in measured), Failures(0, 0))
    notes = tuple(line for one in measured for line in one.evidence.lines(one.name))
    return EvaluatedRun(folder, tuple(tables), summary, failures, dict(plan.options.judge_faults), notes)


# ---------------------------------------------------------------- before any work


@dataclass(frozen=True)
class _Plan:
    """The checked inputs of a run."""

    datasets: list[Dataset]
    target: Target
    options: Options
    names: tuple[str, ...]
    prepared: Mapping[str, PreparedDocuments]
    """By dataset, the system's texts and chunks as far as files give them."""


def _prepare(settings: Settings, parts: dict[str, Any], judge: LLM | None, say: Warn) -> _Plan:
    """Return the checked inputs of a run (datasets, target, metrics …); raise one error that lists every problem."""
    problems: list[str] = []

    def attempt(step: Callable[[], Any]) -> Any:
        try:
            return step()
        except ToolkitError as error:
            problems.append(str(error))

    attempt(lambda: check_engine(settings.engine))
    options = attempt(lambda: _make_options(settings, judge, parts))
    names: tuple[str, ...] = ()
    if options is not None:
        attempt(lambda: choose_figures(settings.metrics, options))
        names = attempt(lambda: _choose_names(settings, options.judge, say))
    target_options: TargetOptions | None = attempt(lambda: settings.make_target_options(**parts))
    target = None
    if target_options is not None:
        opened = attempt(lambda: open_target(settings.target_name, target_options, settings.target_settings))
        target = attempt(lambda: with_answers(opened, target_options)) if opened is not None else None
    if settings.delete_collection and target is not None and not hasattr(target, "forget"):
        problems.append(f"delete_collection: the target {target.name} keeps no documents; remove this setting")
    loaded = attempt(
        lambda: load_datasets(
            settings.dataset_paths, settings.selection, origins=settings.origins, limits=settings.limits
        )
    )
    prepared: dict[str, PreparedDocuments] = {}
    for dataset in loaded[0] if loaded and (settings.parsed or settings.chunks) else ():
        files = attempt(partial(FileDocuments.read, dataset, settings.parsed, settings.chunks, say))
        prepared |= {dataset.name: files} if files is not None else {}
    if problems or target is None:
        raise ToolkitError("\n".join(dict.fromkeys(problems)))
    datasets, warnings = loaded
    idle = [name for name in settings.pipeline if not name.startswith("price_")]
    if idle and settings.target_name != "builtin" and not settings.writes_answers:
        warnings.append(f"{', '.join(idle)}: without effect, because the built-in pipeline is not tested")
    for warning in warnings:
        say(warning)
    return _Plan(datasets, target, options, names, prepared)


def _make_options(settings: Settings, judge: LLM | None, parts: Mapping[str, Any]) -> Options:
    """Return the options of the metrics; the judge is opened by its name in the settings if none is given."""
    depth = settings.config.depth if settings.target_name == "builtin" else max(KS)
    timeout = {} if settings.timeout == Settings.model_fields["timeout"].default else {"timeout": settings.timeout}
    if judge is None and settings.judge:
        try:
            module, argument = load_plugin("exhibit.models.llms", settings.judge)
            judge = module.open(argument, {"cache": (parts.get("cache") or find_cache_folder()) / "llm", **timeout})
        except ToolkitError as error:
            example = "--judge NAME:MODEL, such as openai:gpt-4o-mini"
            raise ToolkitError(f"--judge {settings.judge}: {error}; write {example}") from error
    given = (settings.config.price_in, settings.config.price_out)
    register = None
    if settings.check_references:
        register = Register(find_cache_folder() / "officials", settings.registers_url)
    return Options(
        # a cutoff beyond the depth of the ranking would only repeat the last figure
        ks=tuple(k for k in KS if k <= depth) or (depth,),
        parity=settings.parity,
        count_added=settings.count_added,
        judge=judge,
        votes=settings.judge_votes,
        prices=None if given == (None, None) else (given[0] or 0.0, given[1] or 0.0),
        officials=register,
        flag_below=settings.flag_below,
    )


def _choose_names(settings: Settings, judge: LLM | None, say: Warn) -> tuple[str, ...]:
    """Return the requested metrics without those that need a judge where there is none; raise if no other is left."""
    judged = find_needing(settings.metrics, "judge") if judge is None else []
    left = tuple(name for name in settings.metrics if name not in judged)
    if judged and not left:
        raise ToolkitError(f"--metrics {','.join(judged)} needs a judge; name a model with --judge NAME:MODEL")
    if judged:
        say(f"{', '.join(judged)}: left out, because no judge is set; name a model with --judge NAME:MODEL")
    return left


# ---------------------------------------------------------------- the folder


def run_folder(settings: Settings, plan: _Plan) -> Path:
    """Return the folder of the run: the named one, the newest one to resume, or a new one with the time in its name."""
    if settings.run_name:
        return settings.output_dir / settings.run_name
    if settings.resume:
        asked = _make_config(settings, plan)
        folders = [path.parent for path in settings.output_dir.glob(f"*/{CONFIG}")]
        # the report is written last
        stopped = [path for path in folders if not ((path / SUMMARY).exists() and (path / REPORT).exists())]
        alike = [folder for folder in stopped if not compare_reply_settings(load_json(folder / CONFIG), asked)]
        if not alike:
            raise BundleError(
                f"{settings.output_dir}: no unfinished run with these settings; name the run to resume with --run-name"
            )
        return max(alike, key=lambda folder: (folder / CONFIG).stat().st_mtime)
    name = settings.target_name.partition(":")[0]
    name = settings.preset.rpartition("/")[2].removesuffix(".toml") if name == "builtin" else name
    return settings.output_dir / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _open_run(folder: Path, settings: Settings, plan: _Plan) -> dict[str, Any]:
    """Return the config of a run, after checking its folder.

    Raise an error if the folder has files that are not a run, or a run that cannot be resumed: `--resume` is
    not set, or the run was started with other input files or settings.
    """
    config = _make_config(settings, plan)
    if not any(folder.iterdir()):
        return config
    if not (folder / CONFIG).is_file():
        raise BundleError(f"{folder}: contains files that are not a run; choose another --run-name")
    if not settings.resume:
        raise BundleError(f"{folder}: exists already; continue it with --resume, or choose another --run-name")
    stale = find_changed_data(RunFolder(folder).provenance, plan.datasets, hash_inputs(settings.target_name))
    if stale:
        listed = ", ".join(stale[:3]) + (f" and {len(stale) - 3} more" if len(stale) > 3 else "")
        raise BundleError(
            f"{folder}: was started with other files ({listed}), so its replies are out of date; choose another "
            "--run-name"
        )
    differing = compare_reply_settings(load_json(folder / CONFIG), config)
    if differing:
        raise BundleError(
            f"{folder}: was started with other settings ({', '.join(differing)}); choose another --run-name"
        )
    return config


def _make_config(settings: Settings, plan: _Plan) -> dict[str, Any]:
    options = plan.options
    measured: dict[str, Any] = {"metrics": list(plan.names), "ks": list(options.ks), "k": options.k}
    measured |= {"parity": settings.parity, "prompts": {}}
    if options.judge:
        prompts = {name: own.prompt_version for name, own in import_metrics().items() if own.prompt_version}
        measured |= {"judge": options.judge.name, "prompts": prompts}
    measured |= {"count_added": True} if settings.count_added else {}
    measured |= {name: path.name for name in ("parsed", "chunks") if (path := getattr(settings, name))}
    datasets = {dataset.name: _describe_dataset(dataset, settings) for dataset in plan.datasets}
    return {"format": FORMAT, "version": __version__, **settings.asked(), "datasets": datasets, "measured": measured}


def _describe_dataset(dataset: Dataset, settings: Settings) -> dict[str, Any]:
    info = read_info(dataset.root / INFO) if (dataset.root / INFO).is_file() else None
    fields = {
        "path": str(origin_of(dataset.root) or dataset.root),
        "questions": len(dataset.cases),
        "files": len(dataset.files),
        "groups": dataset.groups,
        "headline": dataset.headline,
        "draft": info.draft.words(info.counts.questions) if info and info.draft else "",
        "train_sha256": sha256_of(dataset.root / TRAIN),
    }
    fields |= {"changed_files": list(dataset.changed)} if dataset.changed else {}
    origin = settings.origins.get(str(dataset.root))
    return fields | ({"origin": origin} if origin else {})


# ---------------------------------------------------------------- one dataset


def _probe(folder: Path, settings: Settings, plan: _Plan, say: Warn) -> None:
    """Probe the target with questions of each dataset that has unanswered questions, before any other work.

    A probe checks that the target works, and returns notes for the user; `say` is called with each note.
    """
    for dataset in plan.datasets:
        journals = [journal_of(folder / dataset.name, dataset, plan.target, n) for n in range(settings.repeat)]
        cases = next((some for one in journals if (some := to_probe(dataset, find_failures(dataset, one)))), [])
        for note in plan.target.probe(dataset, cases) if cases else ():
            say(note)
    if settings.repeat > 1 and plan.target.exact:
        say(
            "--repeat: the built-in pipeline gives the same answer each time, and its model's replies are cached: no "
            "variation"
        )


def _evaluate_dataset(folder: Path, dataset: Dataset, settings: Settings, plan: _Plan, say: Warn) -> Scored:
    """Ask and score the questions of a dataset."""
    place = folder / dataset.name
    ingestion = plan.target.ingest(dataset)
    write_json(place / INGESTION, ingestion.model_dump())
    for reason in ingestion.set_aside:
        say(f"{dataset.name}: set aside: {reason}")
    for note in ingestion.notes:
        say(note)
    rounds = [ask(place, dataset, plan.target, number) for number in range(settings.repeat)]
    if settings.delete_collection:
        plan.target.forget(dataset)  # type: ignore[attr-defined]  # _prepare has checked that it can
    options = replace(plan.options, corpus=CitedLaw(dataset, plan.target))
    prepared = plan.prepared.get(dataset.name) or _get_prepared(plan.target)
    return measure_rounds(place, dataset, rounds, Scoring(options, plan.names, folder.name, prepared))


def _get_prepared(target: Target) -> PreparedDocuments | None:
    """Return the target's own texts and chunks if it has them, as the built-in pipeline does; else None."""
    text, chunks = getattr(target, "text", None), getattr(target, "chunks", None)
    return TargetDocuments(text, chunks) if target.exact and text and chunks else None


class CitedLaw:
    """The legal references in a dataset's documents; the documents are read at the first lookup."""

    def __init__(self, dataset: Dataset, target: Target) -> None:
        self._dataset, self._target = dataset, target

    @cached_property
    def _known(self) -> ReferenceCorpus:
        text, files = text_of(self._dataset, self._target), sorted(self._dataset.files)
        names = track(files, total=len(files), label=f"{self._dataset.name}: references")
        return ReferenceCorpus.of(words for name in names if (words := text(name)) is not None)

    def contains(self, reference: Reference) -> bool:
        """Return whether a legal reference, such as `section 5`, occurs in any document of the dataset."""
        return self._known.contains(reference)


def _drop_empty(tables: Sequence[Table], settings: Settings) -> list[Table]:
    """Return the tables without the metrics that apply to no question of the run, unless they were requested."""
    if settings.metrics:
        return list(tables)
    kept = {name for table in tables for name, column in table.values.items() if any(v is not None for v in column)}

    def choose_metrics(values: Mapping[str, Values]) -> Mapping[str, Values]:
        return {name: column for name, column in values.items() if name in kept}

    return [
        replace(t, values=choose_metrics(t.values), repeats=[choose_metrics(one) for one in t.repeats]) for t in tables
    ]
