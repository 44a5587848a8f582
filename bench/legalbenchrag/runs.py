"""Runs on LegalBench-RAG: the data that they are measured on, their presets and settings, and their results."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench.legalbenchrag.papers import ALL
from bench.legalbenchrag.variants import rewrite
from bench.reword import free, reword, unname
from exhibit.converters import legalbenchrag
from exhibit.converters.steps.cli import main as convert
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.settings import Settings, parse_settings
from exhibit.rag.config import Config, Search, describe_settings
from exhibit.schemas import __version__
from exhibit.schemas.bundle import INFO, TRAIN, load_json, numbered_lines, read_info
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run import BREAKDOWN, CONFIG, RESULTS, SUMMARY
from exhibit.storage.bundle import sha256_of

BUNDLES, RUNS = "bundles", "runs"
SEED = 20240819
"""The seed for the questions of a quick look."""
METRICS = "characters,drm,document_hit"

Size = Literal["mini", "full"]
Wording = Literal["original", "reworded", "free", "unnamed"]
SIZES: dict[Size, tuple[int, int]] = {"mini": (4 * legalbenchrag.MINI, 72), "full": (6889, 714)}
"""The numbers of questions and files of the published sets."""
WORDINGS: dict[Wording, Callable[[str], str | None]] = {"original": lambda question: question}
WORDINGS |= {"reworded": reword, "free": free, "unnamed": unname}


class Condition(NamedTuple):
    """The data that a run is measured on; only runs on the same data are compared.

    It has the size (mini or full), the file type, the wording of the questions, whether files keep their names,
    and the highest number of questions.
    """

    size: Size = "mini"
    file_type: Literal["txt", "pdf"] = "txt"
    wording: Wording = "original"
    filenames: bool = True
    limit: int | None = None

    @property
    def dataset(self) -> str:
        """The name of the bundle's folder, such as `legalbenchrag-mini-txt`.

        The name does not contain the wording of the questions, so that all wordings share one index.
        """
        return f"legalbenchrag-{self.size}-{self.file_type}"

    @property
    def variant(self) -> str:
        """The name of the bundle's variant: its wording, with `-nameless` if its files are renamed to numbers."""
        return self.wording if self.filenames else f"{self.wording}-nameless"

    @property
    def name(self) -> str:
        """The folder of the runs under this condition."""
        return f"{self.size}-{self.file_type}-{self.variant}" + (f"-limit{self.limit}" if self.limit else "")


def list_conditions(limit: int | None) -> list[Condition]:
    """Return all combinations of size, file type, file names and wording, each with at most `limit` questions."""
    made = product(("mini", "full"), ("txt", "pdf"), (True, False), WORDINGS)
    return [Condition(size, kind, wording, names, limit) for size, kind, names, wording in made]  # type: ignore[arg-type]


class Recipe(NamedTuple):
    """A preset with some settings replaced, written as in `--presets`: `routed:filenames=false`."""

    preset: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The name of the recipe in tables, and of the folder of its run: `routed:filenames=false`."""
        name = self.preset.rpartition("/")[2].removesuffix(".toml")
        return ":".join([name, *(f"{key}={value.replace('/', '_')}" for key, value in self.settings)])


def parse_recipe(text: str, *, shared: Mapping[str, str] | None = None) -> Recipe:
    """Parse `PRESET[:NAME=VALUE…]` into a recipe, and add the `shared` settings to it.

    A shared setting is not added if the text sets the same name, or if the preset already has that value.
    """
    preset, *pairs = text.split(":")
    told: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or name not in describe_settings():
            raise ToolkitError(f"{text}: {pair!r} is not a setting such as depth=64; see evaluate_rag.py --help")
        told[name] = value
    config = Config.preset(preset, **told)
    others = {name: value for name, value in (shared or {}).items() if name not in told}
    told |= {name: value for name, value in others.items() if str(config.get_setting(name)) != value}
    return Recipe(preset, tuple(told.items()))


# ---------------------------------------------------------------- bundles


def make_bundle(
    source: Path, out: Path, condition: Condition, *, engine: str, jobs: int | None, anew: bool = False
) -> Path:
    """Return the folder of the bundle for a condition, after writing the bundle if necessary.

    The bundle with the original questions and file names is converted if it is missing or out of date, or if
    `anew` is true. If the condition changes the wording or the file names, a changed copy of that bundle is
    written each time.
    """
    plain = out / BUNDLES / "original" / condition.dataset
    if anew or not _is_current(plain, source):
        _convert(source, plain, condition, engine=engine, jobs=jobs)
    if condition.variant == "original":
        return plain
    folder = out / BUNDLES / condition.variant / condition.dataset
    # this is fast compared with a run, so it is done each time and never out of date
    rewrite(plain, folder, word=WORDINGS[condition.wording], nameless=not condition.filenames, force=True)
    return folder


def _is_current(bundle: Path, source: Path) -> bool:
    """Return whether a bundle was made from this source by the installed version of Exhibit.

    Only the benchmark files are compared: a change in the corpus is not detected (use --anew).
    """
    if not (bundle / INFO).is_file():
        return False
    info = read_info(bundle / INFO)
    files = {path.name: path for path in source.glob("**/benchmarks/*.json")}
    known = info.source.sha256
    same = set(files) == set(known) and all(sha256_of(path) == known[name] for name, path in files.items())
    return same and info.tool.version == __version__


def _convert(source: Path, out: Path, condition: Condition, *, engine: str, jobs: int | None) -> None:
    argv = ["--source", str(source), "--out", str(out), "--force", "--engine", engine]
    argv += ["--as", "pdf" if condition.file_type == "pdf" else "text"]
    argv += ["--mini"] * (condition.size == "mini") + (["--jobs", str(jobs)] if jobs else [])
    out.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for the results
        code = convert(sys.modules[legalbenchrag.__name__], argv)
    if code == 130:
        raise KeyboardInterrupt
    if code:
        raise BundleError(f"{source}: the conversion failed; expected {legalbenchrag.INFO.expects}")


# ---------------------------------------------------------------- runs


def run(
    recipe: Recipe,
    bundle: Path,
    out: Path,
    condition: Condition,
    *,
    anew: bool = False,
    say: Callable[[str], None],
    **workers: Any,
) -> Path:
    """Return the folder of a recipe's run; start or continue the run if it is not finished.

    With `anew`, or if settings, questions or Exhibit's version have changed since the run began, the run is
    deleted and measured again. `workers` (engine, jobs) are settings of the engine; they do not change results.
    """
    settings = _make_settings(recipe, bundle, out, condition, workers)
    folder = settings.output_dir / recipe.label
    if (folder / CONFIG).is_file():
        if not anew and is_finished(folder, settings, bundle):
            return folder
        if anew or not _is_same(folder, settings, bundle):
            say(f"{folder}: measured anew" + ("" if anew else ", as settings, questions or version have changed"))
            shutil.rmtree(folder)
    evaluate(settings, warn=say)
    return folder


def _make_settings(
    recipe: Recipe, bundle: Path, out: Path, condition: Condition, workers: Mapping[str, Any]
) -> Settings:
    told: dict[str, Any] = {
        "dataset_paths": [str(bundle)],
        "file_type": condition.file_type,
        "preset": recipe.preset,
        "llm": "none",
        "metrics": METRICS,
        "parity": "legalbenchrag",
        "output_dir": out / RUNS / condition.name,
        "run_name": recipe.label,
        "resume": True,
        "report_cases": 0,
        **workers,
        # file names are renamed to numbers here, so a preset must not use them
        **({"filenames": False} if not condition.filenames and "filenames" in Search.model_fields else {}),
        **dict(recipe.settings),
    }
    if condition.limit:
        told |= {"limit": condition.limit, "sample_seed": SEED}
    return parse_settings(told, where=recipe.label)


def is_finished(folder: Path, settings: Settings, bundle: Path) -> bool:
    """Return whether a run is complete, and used this version of Exhibit, these settings and these questions."""
    return (folder / SUMMARY).is_file() and _is_same(folder, settings, bundle)


def _is_same(folder: Path, settings: Settings, bundle: Path) -> bool:
    config = load_json(folder / CONFIG)
    questions = config.get("datasets", {}).get(bundle.name, {}).get("train_sha256")
    asked = all(config.get(name) == value for name, value in settings.asked().items())
    return bool(asked and config.get("version") == __version__ and questions == sha256_of(bundle / TRAIN))


# ---------------------------------------------------------------- figures of runs


@dataclass(frozen=True)
class Figure:
    """The mean of a metric and its 95% confidence interval, in percent."""

    mean: float
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True)
class Measured:
    """A finished run on LegalBench-RAG: the mean of each metric for each dataset, from its summary files."""

    label: str
    folder: Path
    condition: Condition
    config: Mapping[str, Any]
    means: Mapping[str, Mapping[str, Figure]]
    """The figure of each metric (`char_recall@8`) by dataset (ALL, privacy_qa …)."""

    @property
    def told(self) -> Mapping[str, Any]:
        """The settings and counts of the run's first dataset in config.json, such as `questions` and `files`."""
        told: Mapping[str, Any] = next(iter(self.config["datasets"].values()))
        return told

    @property
    def is_published_sample(self) -> bool:
        """Whether the run is on exactly LegalBench-RAG-mini: its number of questions and of files must match."""
        return self.condition.size == "mini" and (self.told["questions"], self.told["files"]) == SIZES["mini"]

    @property
    def is_whole(self) -> bool:
        """Whether the run has all questions and all files of LegalBench-RAG in the condition's size (mini or full)."""
        return (self.told["questions"], self.told["files"]) == SIZES[self.condition.size]

    def figure(self, metric: str, dataset: str, k: int) -> Figure | None:
        """Return the mean of a metric at k on a dataset, with its interval; None if the run has no such value."""
        name = metric if metric == "drm" else f"char_{metric}"
        return self.means.get(dataset, {}).get(f"{name}@{k}")


def read_measured(folder: Path, condition: Condition) -> Measured:
    """Return the finished run in a folder: its config, and the mean of each metric for each group of questions.

    `condition` describes the data that the run was measured on.
    """
    config = load_json(folder / CONFIG)
    [dataset] = config["datasets"]
    groups = load_json(folder / dataset / BREAKDOWN).get(config["datasets"][dataset]["groups"], {})
    means = {ALL: load_json(folder / SUMMARY), **groups}
    figures = {
        name: {metric: one for metric, told in every.items() if (one := _make_figure(told))}
        for name, every in means.items()
    }
    return Measured(folder.name, folder, condition, config, figures)


def measure_longest_passage(run: Measured) -> int:
    """Return the length in characters of the longest passage that a run retrieved; 0 if no passage has a span."""
    [dataset] = run.config["datasets"]
    rows = (json.loads(line) for _, line in numbered_lines(run.folder / dataset / RESULTS))
    spans = (passage["span"] for row in rows for passage in row["reply"]["passages"])
    return max((end - start for start, end in filter(None, spans)), default=0)


def _make_figure(told: Mapping[str, Any]) -> Figure | None:
    if told["mean"] is None:
        return None
    low, high = told["ci95"]
    return Figure(100 * told["mean"], None if low is None or high is None else (100 * low, 100 * high))


def read_finished_runs(out: Path, limit: int | None = None) -> Iterator[tuple[Condition, list[Measured]]]:
    """Yield each condition with its finished runs; presets are in the order of `ORDER`, any others by name."""
    for condition in list_conditions(limit):
        folder = out / RUNS / condition.name
        ended = sorted((path.parent for path in folder.glob(f"*/{SUMMARY}")), key=_rank)
        if ended:
            yield condition, [read_measured(path, condition) for path in ended]


ORDER: Sequence[str] = ("naive", "rcts", "sac", "sac-multilayer", "fast", "routed", "careful")


def _rank(folder: Path) -> tuple[int, str]:
    preset = folder.name.partition(":")[0]
    return (ORDER.index(preset) if preset in ORDER else len(ORDER), folder.name)
