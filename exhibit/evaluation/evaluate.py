"""Run a whole evaluation: settings, datasets, target, journal, cases, scores, folder, report.

run = evaluate(parse_settings({"dataset_paths": ["datasets_out/cuad"]}))
print(run.means["char_recall@64"].mean)
"""

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from exhibit.engine import apply_limits, check_engine, track
from exhibit.evaluation.datasets import Dataset, list_names, load_datasets
from exhibit.evaluation.journal import Journal, text_of, to_probe
from exhibit.evaluation.metrics import KS, Options, choose_figures, find_needing, import_metrics
from exhibit.evaluation.registers import Register, write_account
from exhibit.evaluation.runs import RunResults, make_summary_json
from exhibit.evaluation.scoring import Scored, write_direct_results, write_evaltools, write_json
from exhibit.evaluation.settings import Settings
from exhibit.evaluation.stages import Say, open_prepared_files, open_target_documents
from exhibit.evaluation.statistics import summarise_run
from exhibit.evaluation.targets import Target, open_target
from exhibit.evaluation.targets.predictions import Predictions
from exhibit.law.references import Reference, ReferenceCorpus
from exhibit.models.llms import LLM
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas import __version__
from exhibit.schemas.bundle import TRAIN, load_json
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run import CONFIG, FORMAT, INGESTION, PROVENANCE, REPORT, SUMMARY, Provenance
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import lock_folder, refuse_links
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import origin_of
from exhibit.storage.programs import count_changes, is_git_repository, open_repository

Draw = Callable[..., Path]  # the function that writes the report of a finished run: `exhibit.viewer.write_report`


def evaluate(
    settings: Settings, *, parts: Mapping[str, Any] | None = None, judge: LLM | None = None,
    warn: Say = lambda _: None, draw: Draw | None = None,
) -> RunResults:  # fmt: skip
    """Run an evaluation; `judge` marks answers, `warn` gets each note, `draw` writes the report.

    `parts` may have ready-made objects `cache`, `embedder`, `llm` and `function` instead of those of the settings.
    """
    with apply_limits(settings.limits):
        run = _Evaluation(settings, dict(parts or {}), judge, warn)
        folder = run.choose_folder()
        folder.mkdir(parents=True, exist_ok=True)
        refuse_links(folder)
        with lock_folder(folder, busy=f"{folder}: another run writes to this folder; wait, or give another --run-name"):
            run.check_folder(folder)
            run.probe(folder)
            (folder / SUMMARY).unlink(missing_ok=True)  # a summary marks a finished run
            write_json(folder / CONFIG, run.config)
            started = RunFolder(folder).provenance.started  # a resumed run keeps the time of its first start
            write_json(folder / PROVENANCE, describe_run(run.datasets, run.inputs, started))
            scored = [run.evaluate_dataset(folder, dataset) for dataset in run.datasets]
            tables = [part.table(warn) for part in scored]
            if not settings.metrics:  # leave out the metrics that apply to no question
                columns = [pair for table in tables for pair in table.values.items()]
                known = {name for name, column in columns if any(value is not None for value in column)}
                tables = [table.with_metrics(known) for table in tables]
            for table, part in zip(tables, scored, strict=True):
                part.write(table, failed=-1.0 if settings.legacy_minus_one else None)
            run.write_extras(folder)
            write_json(folder / SUMMARY, make_summary_json(summarise_run(tables)))
            if draw is not None:
                roots = {dataset.name: dataset.root for dataset in run.datasets}
                how = {"cases": settings.report_cases, "jobs": settings.jobs, "limits": settings.limits}
                draw(folder, datasets=roots, **how, say=warn)
    results = RunResults(folder)
    results.judge_faults = run.options.judge_faults
    return results


class _Evaluation:
    def __init__(self, settings: Settings, parts: dict[str, Any], judge: LLM | None, say: Say) -> None:
        """Open datasets, target and metrics; raise one error that lists every problem."""
        self.settings, self._say = settings, say
        problems: list[str] = []
        with _collect(problems):
            check_engine(settings.engine)
            self.options = _make_options(settings, judge, parts)
            choose_figures(settings.metrics, self.options)
            self.names = _choose_names(settings, self.options.judge, say)
        with _collect(problems):
            options = settings.make_target_options(**parts)
            self.target = open_target(settings.target_name, options, settings.target_settings)
        with _collect(problems):
            self.datasets, warnings = load_datasets(settings.dataset_paths, settings, limits=settings.limits)
            parsed, chunks = settings.parsed, settings.chunks
            prepared = self.datasets if parsed or chunks else []
            self._prepared = {dataset.name: open_prepared_files(dataset, parsed, chunks, say) for dataset in prepared}
        if problems:
            raise ToolkitError("\n".join(dict.fromkeys(problems)))
        idle = [name for name in settings.pipeline if not name.startswith("price_")]
        if idle and settings.target_name != "builtin" and not settings.writes_answers:
            warnings.append(f"{', '.join(idle)}: ignored, because the built-in pipeline is not the system under test")
        for warning in warnings:
            say(warning)
        # the file that the target names, if any: predictions or a server's description
        named = filter(None, {settings.target_name, settings.target_name.partition(":")[2]})
        self.inputs = {path.name: sha256_of(path) for path in map(Path, named) if path.is_file()}

    @cached_property
    def config(self) -> dict[str, Any]:
        settings, options = self.settings, self.options
        prompts = {name: metric.prompt_version for name, metric in import_metrics().items() if metric.prompt_version}
        measured: dict[str, Any] = {"metrics": list(self.names), "ks": list(options.ks), "k": options.k}
        measured |= {"parity": settings.parity, "prompts": prompts if options.judge else {}}
        measured |= {"judge": options.judge.name} if options.judge else {}
        measured |= {name: path.name for name in ("parsed", "chunks") if (path := getattr(settings, name))}
        described = {"datasets": {dataset.name: _describe_dataset(dataset) for dataset in self.datasets}}
        return {"format": FORMAT, "version": __version__, **settings.asked(), **described, "measured": measured}

    def choose_folder(self) -> Path:
        """Return the named folder, the newest folder to resume, or a new folder with the time in its name."""
        settings = self.settings
        if settings.run_name:
            return settings.output_dir / settings.run_name
        if settings.resume:
            paths = (path for path in settings.output_dir.glob(f"*/{CONFIG}") if not self._list_other_settings(path))
            # the report, which is written last, marks a finished run
            stopped = [path for path in paths if not all(path.with_name(name).exists() for name in (SUMMARY, REPORT))]
            if not stopped:
                advice = "no unfinished run with these settings; name the run to resume with --run-name"
                raise BundleError(f"{settings.output_dir}: {advice}")
            return max(stopped, key=lambda path: path.stat().st_mtime).parent
        name = settings.target_name.partition(":")[0]
        name = settings.preset.rpartition("/")[2].removesuffix(".toml") if name == "builtin" else name
        return settings.output_dir / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"

    def check_folder(self, folder: Path) -> None:
        """Raise an error if the folder contains other files, or a run that this run cannot continue."""
        if not any(folder.iterdir()):
            return
        fault = ""
        if not (folder / CONFIG).is_file():
            fault = "contains files that do not belong to a run;"
        elif not self.settings.resume:
            fault = "exists already; continue it with --resume, or"
        elif stale := find_changed_data(RunFolder(folder).provenance, self.datasets, self.inputs):
            fault = f"was started with other files ({list_names(stale)}), so its replies are out of date;"
        elif differing := self._list_other_settings(folder / CONFIG):
            fault = f"was started with other settings ({', '.join(differing)});"
        if fault:
            raise BundleError(f"{folder}: {fault} choose another --run-name")

    def _list_other_settings(self, path: Path) -> list[str]:
        """Return the names of the settings that affect the replies and differ from those of another run."""
        other = load_json(path)
        keys = [key for key in {**other, **self.config} if key not in ("format", "version", "measured")]
        return [key for key in keys if other.get(key) != self.config.get(key)]

    def probe(self, folder: Path) -> None:
        """Check, before any other work, that the target answers a few questions of each unfinished dataset."""
        for dataset in self.datasets:
            probes = (to_probe(dataset, journal.failed) for journal in self._open_journals(folder, dataset))
            if cases := next(filter(None, probes), None):
                for note in self.target.probe(dataset, cases):
                    self._say(note)

    def _open_journals(self, folder: Path, dataset: Dataset) -> Iterator[Journal]:
        numbers = range(1, self.settings.repeat + 1)
        return (Journal(folder / dataset.name, dataset, self.target, number) for number in numbers)

    def evaluate_dataset(self, folder: Path, dataset: Dataset) -> Scored:
        place, target = folder / dataset.name, self.target
        ingestion = target.ingest(dataset)
        write_json(place / INGESTION, ingestion.model_dump())
        for note in [*(f"{dataset.name}: set aside: {reason}" for reason in ingestion.set_aside), *ingestion.notes]:
            self._say(note)
        journals = [journal.ask() for journal in self._open_journals(folder, dataset)]
        find_prepared = self._prepared.get(dataset.name)
        text, chunks = getattr(target, "text", None), getattr(target, "chunks", None)
        if find_prepared is None and target.exact and text and chunks:
            find_prepared = open_target_documents(text, chunks)
        score = partial(
            Scored, place, dataset, options=replace(self.options, in_corpus=_look_up_references(dataset, target)),
            names=self.names, answers=any(journal.has_answers() for journal in journals), find_prepared=find_prepared,
        )  # fmt: skip
        return score(journals[0], repeats=[score(journal) for journal in journals[1:]])

    def write_extras(self, folder: Path) -> None:
        write_evaltools(folder)
        if getattr(self.target, "add_answer", None):  # a search server that gives no answers
            write_direct_results(folder)
        if isinstance(self.target, Predictions) and self.target.tool:
            self.target.write_account(folder, self.datasets)
        if isinstance(self.options.officials, Register):
            write_account(RunFolder(folder), self.options.officials, say=self._say)


@contextmanager
def _collect(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except ToolkitError as error:
        problems.append(str(error))


def _make_options(settings: Settings, judge: LLM | None, parts: Mapping[str, Any]) -> Options:
    """Return the options of the metrics; without `judge`, open the judge that the settings name, if any."""
    cache_folder = find_cache_folder()
    depth = settings.config.depth if settings.target_name == "builtin" else max(KS)
    if judge is None and settings.judge:
        how: dict[str, Any] = {"cache": (parts.get("cache") or cache_folder) / "llm"}
        how |= {"timeout": settings.timeout} if "timeout" in settings.model_fields_set else {}
        try:
            module, argument = load_plugin("exhibit.models.llms", settings.judge)
            judge = module.open(argument, how)
        except ToolkitError as error:
            example = "--judge NAME:MODEL, such as openai:gpt-4o-mini"
            raise ToolkitError(f"--judge {settings.judge}: {error}; write {example}") from error
    price_in, price_out = settings.config.price_in, settings.config.price_out
    prices = None if price_in is None and price_out is None else (price_in or 0.0, price_out or 0.0)
    officials = Register(cache_folder / "officials", settings.registers_url) if settings.check_references else None
    # a cutoff beyond the ranking's depth would only repeat the last value
    ks, parity = tuple(k for k in KS if k <= depth) or (depth,), settings.parity
    return Options(ks, judge=judge, prices=prices, officials=officials, flag_below=settings.flag_below, parity=parity)


def _choose_names(settings: Settings, judge: LLM | None, say: Say) -> tuple[str, ...]:
    """Return the requested metrics; without a judge, omit metrics that need a judge; raise if no metric is left."""
    judged = find_needing(settings.metrics, "judge") if judge is None else []
    left = tuple(name for name in settings.metrics if name not in judged)
    if judged and not left:
        raise ToolkitError(f"--metrics {','.join(judged)} needs a judge; name a model with --judge NAME:MODEL")
    if judged:
        say(f"{', '.join(judged)}: left out, because no judge is set; name a model with --judge NAME:MODEL")
    return left


def _describe_dataset(dataset: Dataset) -> dict[str, Any]:
    info, path = dataset.info, origin_of(dataset.root) or dataset.root
    fields: dict[str, Any] = {"path": str(path), "questions": len(dataset.cases), "files": len(dataset.files)}
    fields |= {"groups": info.groups, "headline": info.headline} if info else {"groups": None, "headline": None}
    fields["draft"] = info.draft.words(info.counts.questions) if info and info.draft else ""
    fields["train_sha256"] = dataset.digests[TRAIN]
    fields |= {"changed_files": list(dataset.changed)} if dataset.changed else {}
    return fields | ({"origin": dataset.origin} if dataset.origin else {})


def _look_up_references(dataset: Dataset, target: Target) -> Callable[[Reference], bool]:
    """Return a function that tells whether the documents contain a legal reference; its first call reads them."""

    @cache
    def read_corpus() -> ReferenceCorpus:
        names = track(sorted(dataset.files), total=len(dataset.files), label=f"{dataset.name}: references")
        return ReferenceCorpus.of(words for words in map(text_of(dataset, target), names) if words is not None)

    return lambda reference: read_corpus().contains(reference)


# the variables in which a CI names the tested commit; set the first to test a server that is built elsewhere
_COMMITS = ("EXHIBIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")
_GIT_SECONDS = 10.0  # git answers in milliseconds, unless its disk is unavailable


def describe_run(datasets: Iterable[Dataset], inputs: Mapping[str, str], started: str) -> dict[str, Any]:
    # not the machine's name, because results are shared
    machine = {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
    machine |= {"python": platform.python_version()}
    run = {"started": started, "version": __version__, **commit_of(Path.cwd(), os.environ), "machine": machine}
    return run | {"data": {dataset.name: dict(dataset.digests) for dataset in datasets}, "inputs": dict(inputs)}


def find_changed_data(before: Provenance, datasets: Iterable[Dataset], inputs: Mapping[str, str]) -> list[str]:
    """Return the input files that have changed since a resumed run was started."""
    now = {f"{dataset.name}/{file}": sha256 for dataset in datasets for file, sha256 in dataset.digests.items()}
    then = {f"{name}/{file}": sha256 for name, files in before.data.items() for file, sha256 in files.items()}
    pairs = ((then, now), (before.inputs, inputs))
    return [name for old, new in pairs if old for name in {**old, **new} if old.get(name) != new.get(name)]


def commit_of(folder: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return `commit`, the commit of the code, and `changed_files`, the number of files that differ from it."""
    if named := next((environment[name] for name in _COMMITS if environment.get(name)), None):
        return {"commit": named, "changed_files": None}
    clone = next((parent for parent in (folder, *folder.parents) if is_git_repository(parent)), None)
    commit, changed = None, None
    with suppress(ToolkitError, OSError):
        if clone is not None:
            # not confined: a linked working tree has its commits outside its folder
            with open_repository(clone, confined=False) as repository:
                commit = repository.head
                changed = count_changes(repository, clone, seconds=_GIT_SECONDS)
    return {"commit": commit, "changed_files": changed}
