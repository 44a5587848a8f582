"""Runs on LegalBench-RAG: under which conditions, by which recipe, and what came of each."""

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
from exhibit.rag.config import Config, Search, setting_help
from exhibit.schemas import __version__
from exhibit.schemas.bundle import INFO, TRAIN, load_json, read_info, read_lines
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run import BREAKDOWN, CONFIG, RESULTS, SUMMARY
from exhibit.storage.bundle import sha256_of

BUNDLES, RUNS = "bundles", "runs"
SEED = 20240819
"""Draws the questions of a quick look; any number does."""
METRICS = "characters,drm,document_hit"

Size = Literal["mini", "full"]
Wording = Literal["original", "reworded", "free", "unnamed"]
SIZES: dict[Size, tuple[int, int]] = {"mini": (4 * legalbenchrag.MINI, 72), "full": (6889, 714)}
"""How many questions and files the published sets have."""
WORDINGS: dict[Wording, Callable[[str], str | None]] = {"original": lambda question: question}
WORDINGS |= {"reworded": reword, "free": free, "unnamed": unname}


class Condition(NamedTuple):
    """On what presets are run: presets are compared only under the same one."""

    size: Size = "mini"
    file_type: Literal["txt", "pdf"] = "txt"
    wording: Wording = "original"
    filenames: bool = True
    limit: int | None = None

    @property
    def dataset(self) -> str:
        """The bundle's folder name: the same for every wording, so that they share an index."""
        return f"legalbenchrag-{self.size}-{self.file_type}"

    @property
    def variant(self) -> str:
        """How the bundle differs from the converter's."""
        return self.wording if self.filenames else f"{self.wording}-nameless"

    @property
    def name(self) -> str:
        """The folder of its runs."""
        return f"{self.size}-{self.file_type}-{self.variant}" + (f"-limit{self.limit}" if self.limit else "")


def all_conditions(limit: int | None) -> list[Condition]:
    """Return every condition there can be, the plain ones first."""
    made = product(("mini", "full"), ("txt", "pdf"), (True, False), WORDINGS)
    return [Condition(size, kind, wording, names, limit) for size, kind, names, wording in made]  # type: ignore[arg-type]


class Recipe(NamedTuple):
    """A preset with single settings overruled, as `--presets` names it: `routed:filenames=false`."""

    preset: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Its name in tables, and its run's folder."""
        name = self.preset.rpartition("/")[2].removesuffix(".toml")
        return ":".join([name, *(f"{key}={value.replace('/', '_')}" for key, value in self.settings)])


def parse_recipe(text: str, *, shared: Mapping[str, str] | None = None) -> Recipe:
    """Read `PRESET[:NAME=VALUE…]`; `shared` settings come on top, where they are not the preset's own."""
    preset, *pairs = text.split(":")
    told: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or name not in setting_help():
            raise ToolkitError(f"{text}: {pair!r} is not a setting such as depth=64; see evaluate_rag.py --help")
        told[name] = value
    config = Config.preset(preset, **told)
    told |= {name: value for name, value in (shared or {}).items() if str(config.single(name)) != value}
    return Recipe(preset, tuple(told.items()))


# ---------------------------------------------------------------- bundles


def make_bundle(
    source: Path, out: Path, condition: Condition, *, engine: str, jobs: int | None, anew: bool = False
) -> Path:
    """Return the bundle of a condition, converted and reworded where it is not there yet."""
    plain = out / BUNDLES / "original" / condition.dataset
    if anew or not _is_current(plain, source):
        _convert(source, plain, condition, engine=engine, jobs=jobs)
    if condition.variant == "original":
        return plain
    folder = out / BUNDLES / condition.variant / condition.dataset
    # quick beside a run, and so never out of date
    rewrite(plain, folder, word=WORDINGS[condition.wording], nameless=not condition.filenames, force=True)
    return folder


def _is_current(bundle: Path, source: Path) -> bool:
    """Return whether a bundle is of this source and version; texts that were edited are not noticed (--anew)."""
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
        raise BundleError(f"{source}: was not converted; expected {legalbenchrag.INFO.expects}")


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
    """Return the folder of a recipe's run, made or gone on with where it is not finished.

    `workers` (engine, jobs) say what does the work; they change no figure.
    """
    settings = _settings(recipe, bundle, out, condition, workers)
    folder = settings.output_dir / recipe.label
    if (folder / CONFIG).is_file():
        if not anew and is_finished(folder, settings, bundle):
            return folder
        if anew or not _is_same(folder, settings, bundle):
            say(f"{folder}: measured anew" + ("" if anew else ", as settings, questions or version have changed"))
            shutil.rmtree(folder)
    evaluate(settings, warn=say)
    return folder


def _settings(recipe: Recipe, bundle: Path, out: Path, condition: Condition, workers: Mapping[str, Any]) -> Settings:
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
        # a preset that looks at file names is told that these say nothing
        **({"filenames": False} if not condition.filenames and "filenames" in Search.model_fields else {}),
        **dict(recipe.settings),
    }
    if condition.limit:
        told |= {"limit": condition.limit, "sample_seed": SEED}
    return parse_settings(told, where=recipe.label)


def is_finished(folder: Path, settings: Settings, bundle: Path) -> bool:
    """Return whether a run ended, with these settings and questions."""
    return (folder / SUMMARY).is_file() and _is_same(folder, settings, bundle)


def _is_same(folder: Path, settings: Settings, bundle: Path) -> bool:
    config = load_json(folder / CONFIG)
    questions = config.get("datasets", {}).get(bundle.name, {}).get("train_sha256")
    asked = all(config.get(name) == value for name, value in settings.asked().items())
    return bool(asked and config.get("version") == __version__ and questions == sha256_of(bundle / TRAIN))


# ---------------------------------------------------------------- what came of them


@dataclass(frozen=True)
class Figure:
    """A mean and its interval, in per cent."""

    mean: float
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True)
class Measured:
    """A finished run: its means by dataset, as its summary files have them."""

    label: str
    folder: Path
    condition: Condition
    config: Mapping[str, Any]
    means: Mapping[str, Mapping[str, Figure]]
    """Dataset (ALL, privacy_qa …) to metric (`char_recall@8`) to figure."""

    @property
    def told(self) -> Mapping[str, Any]:
        """What its config says of the dataset: questions, files."""
        told: Mapping[str, Any] = next(iter(self.config["datasets"].values()))
        return told

    @property
    def is_published_sample(self) -> bool:
        """Whether it is LegalBench-RAG-mini that was asked, and not a part of it or another source."""
        return self.condition.size == "mini" and (self.told["questions"], self.told["files"]) == SIZES["mini"]

    @property
    def is_whole(self) -> bool:
        """Whether everything that the set should have was there."""
        return (self.told["questions"], self.told["files"]) == SIZES[self.condition.size]

    def figure(self, metric: str, dataset: str, k: int) -> Figure | None:
        """Return a value; None where there is none."""
        name = metric if metric == "drm" else f"char_{metric}"
        return self.means.get(dataset, {}).get(f"{name}@{k}")


def read_measured(folder: Path, condition: Condition) -> Measured:
    """Return a run from its summary files."""
    config = load_json(folder / CONFIG)
    [dataset] = config["datasets"]
    groups = load_json(folder / dataset / BREAKDOWN).get(config["datasets"][dataset]["groups"], {})
    means = {ALL: load_json(folder / SUMMARY), **groups}
    figures = {
        name: {metric: one for metric, told in every.items() if (one := _figure(told))} for name, every in means.items()
    }
    return Measured(folder.name, folder, condition, config, figures)


def longest_passage(run: Measured) -> int:
    """Return the length of the longest passage that a run retrieved, in characters: what k is a count of."""
    [dataset] = run.config["datasets"]
    rows = map(json.loads, read_lines(run.folder / dataset / RESULTS))
    spans = (passage["span"] for row in rows for passage in row["reply"]["passages"])
    return max((end - start for start, end in filter(None, spans)), default=0)


def _figure(told: Mapping[str, Any]) -> Figure | None:
    if told["mean"] is None:
        return None
    low, high = told["ci95"]
    return Figure(100 * told["mean"], None if low is None or high is None else (100 * low, 100 * high))


def finished_runs(out: Path, limit: int | None = None) -> Iterator[tuple[Condition, list[Measured]]]:
    """Yield each condition that has finished runs, with them in the order of `ORDER`, then of their names."""
    for condition in all_conditions(limit):
        folder = out / RUNS / condition.name
        ended = sorted((path.parent for path in folder.glob(f"*/{SUMMARY}")), key=_rank)
        if ended:
            yield condition, [read_measured(path, condition) for path in ended]


ORDER: Sequence[str] = ("naive", "rcts", "sac", "sac-multilayer", "fast", "routed", "careful")


def _rank(folder: Path) -> tuple[int, str]:
    preset = folder.name.partition(":")[0]
    return (ORDER.index(preset) if preset in ORDER else len(ORDER), folder.name)
