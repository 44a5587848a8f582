"""The settings of a run: flags overrule a config file, which overrules the defaults."""

import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from exhibit.engine import Limits, make_limits
from exhibit.evaluation.datasets import Selection
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.other_tools import OTHER_NAMES
from exhibit.evaluation.registers import CASE_LAW, LEGISLATION
from exhibit.evaluation.servers.server import hide
from exhibit.evaluation.targets import TargetOptions, read_target_settings
from exhibit.rag.config import DEFAULT, Config, choose_given_settings, describe_settings
from exhibit.schemas.bundle import CORPUS, GOLD, TRAIN, read_text
from exhibit.schemas.errors import SourceError, ToolkitError
from exhibit.schemas.parsing import LazyLines, format_faults, parse_json, parse_pair, parse_toml
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder

Positive = Annotated[int, Field(ge=1)]

TARGET = "target_"
"""The prefix of the keys of a target's own settings."""
_DECIDING = frozenset(
    {"file_type", "ask_label", "where", "limit", "sample_seed", "allow_changed_corpus", "preset", "llm", "target"}
)
"""The settings that determine the replies, besides those of the pipeline and the target.

A resumed run needs the same.
"""


class Settings(BaseModel):
    """The settings of a run: the system, the datasets, and the folder for the results."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    dataset_paths: tuple[str, ...] = ()
    """the bundles: folders, hf://OWNER/NAME@REVISION, s3://, gs://"""
    origins: dict[str, str] = {}
    """the addresses `hf://owner/name@commit` of downloaded folders, which name the datasets"""
    file_type: tuple[str, ...] = ()
    """ingest only files with these extensions, and count their pages: pdf, or txt,html"""
    ask_label: str = ""
    """the label that questions ask for, besides their answer"""
    where: dict[str, tuple[str, ...]] = {}
    """only questions with this label, as LABEL=VALUE"""
    limit: Positive | None = None
    """ask at most this many questions of each dataset"""
    sample_seed: int | None = None
    """draw the questions at random with this seed; without it, the first ones are asked"""
    allow_changed_corpus: bool = False
    """score questions although their documents differ from bundle.json"""
    preset: str = DEFAULT
    """the recipe of the built-in pipeline: a name or a .toml file"""
    pipeline: dict[str, Any] = {}
    """single settings of the pipeline, which overrule the preset's"""
    llm: str | None = None
    """the model that writes answers, as NAME:MODEL; none: retrieval only; not given: sentences of the documents"""
    target: str = "builtin"
    """the system under test: a name, NAME:ARGUMENT or a .toml file"""
    target_settings: dict[str, Any] = {}
    """the target's own settings: `target_url` is its `url`"""
    threads: Positive = 4
    """the number of requests at the same time"""
    engine: str = "local"
    """the runner of parallel work: a name, or ray:ADDRESS for a cluster"""
    jobs: Positive | None = None
    """the number of workers; none = all processors"""
    item_timeout: Annotated[float, Field(ge=0)] = 120.0
    """the time limit for one document, in seconds; 0 = no limit"""
    item_memory: Annotated[int, Field(ge=0)] = 2048
    """the memory limit for one document, in MiB; 0 = no limit"""
    timeout: Annotated[float, Field(gt=0)] = 60.0
    """the time limit for one question with its retries, in seconds"""
    retries: Annotated[int, Field(ge=0)] = 5
    """how many times a failing server is asked again"""
    max_failures: Annotated[float, Field(ge=0, le=1)] = 0.05
    """the share of failed questions above which the run ends with exit code 3"""
    ingest: Literal["auto", "never", "fresh"] | None = None
    """auto: upload the documents that the system lacks; never: use the documents it has.

    Fresh: delete and upload all
    """
    delete_collection: bool = False
    """delete a server's documents after the run"""
    metrics: tuple[str, ...] = ()
    """the metrics, as NAME, NAME@K or NAME(parameter=value); none = all that apply"""
    parity: Literal["", "legalbenchrag", "seed", "squad"] = ""
    """use the published definition of another project where it differs from ours"""
    count_added: bool = False
    """count words that passages add to the documents' own against precision"""
    judge: str | None = None
    """the model that marks groundedness, relevance and correctness, as NAME:MODEL"""
    judge_votes: Positive = 1
    """the number of votes on the correctness of an answer"""
    parsed: Path | None = None
    """a folder with the system's text of each document: shows the gold that its parser lost"""
    chunks: Path | None = None
    """a file with the system's chunks, one per row: shows the gold that its chunker cut"""
    repeat: Positive = 1
    """how many times every question is asked, to measure the variation of a system that samples"""
    legacy_minus_one: bool = False
    """write -1 as the score of a failed question, as some tools expect"""
    flag_below: Annotated[float, Field(ge=0, le=1)] | None = None
    """the confidence below which an answer is flagged for review"""
    check_references: bool = False
    """check the answers' references in the public registers"""
    legislation_url: str = LEGISLATION
    """the address of legislation.gov.uk, or of a mirror"""
    case_law_url: str = CASE_LAW
    """the address of Find Case Law, or of a mirror"""
    output_dir: Path = Path("results")
    """the folder of all runs"""
    run_name: Annotated[str, Field(pattern=r"^\w[^/]*$")] | None = None
    """the name of the run's folder; none = preset and time"""
    resume: bool = False
    """continue a run that was stopped"""
    report_cases: Annotated[int, Field(ge=0)] | None = None
    """the number of questions shown with page images; none = all, up to 2,000 pages"""

    @field_validator("dataset_paths", mode="before")
    @classmethod
    def _accept_one_path(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("ingest", mode="before")
    @classmethod
    def _accept_ingest(cls, value: Any) -> Any:
        return {True: "auto", False: None, "true": "auto"}.get(value, value)

    @field_validator("file_type", "metrics", mode="before")
    @classmethod
    def _split_commas(cls, value: Any) -> Any:
        parts = [value] if isinstance(value, str) else value
        if isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts):
            return [name for part in parts for name in split_requests(part)]
        return parts

    @field_validator("file_type")
    @classmethod
    def _normalise_endings(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ending.lower().lstrip(".") for ending in value))

    @field_validator("metrics")
    @classmethod
    def _use_our_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(OTHER_NAMES["metrics"].get(name, name) for name in value))

    @field_validator("where", mode="before")
    @classmethod
    def _parse_labels(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: [str(one) for one in v] if isinstance(v, list | tuple) else [str(v)] for k, v in value.items()}
        pairs: dict[str, list[str]] = {}
        for given in [value] if isinstance(value, str) else value:
            name, wanted = parse_pair(given, example="source_type=PD")
            pairs.setdefault(name, []).append(wanted)
        return pairs

    # ---------------------------------------------------------------- derived values

    @property
    def config(self) -> Config:
        """The configuration of the built-in pipeline: the preset, with the run's own settings and language model."""
        model = {} if self.llm in (None, "none", "extractive") else {"llm": self.llm}
        return Config.preset(self.preset, **self.pipeline, **model)

    @property
    def selection(self) -> Selection:
        """Which documents and questions are used."""
        return Selection(
            self.file_type,
            self.where,
            self.limit,
            self.sample_seed,
            self.allow_changed_corpus,
            label=self.ask_label,
            needs_documents=self.target_name == "builtin" or self.ingest in ("auto", "fresh"),
        )

    @property
    def limits(self) -> Limits:
        """The limits of time and memory for one document."""
        return make_limits(self.item_timeout, self.item_memory)

    @property
    def target_name(self) -> str:
        """The system under test; `http` where only an address is given."""
        return "http" if self.target_settings.get("url") and self.target == "builtin" else self.target

    def make_target_options(self, **parts: Any) -> TargetOptions:
        """Return the options for the target; `parts` are ready-made objects such as the cache or the embedder."""
        same = ("config", "threads", "engine", "jobs", "limits", "timeout", "retries", "ingest", "delete_collection")
        shared = {name: getattr(self, name) for name in same}
        return TargetOptions(**shared, answers=self.llm != "none", count_pages=bool(self.file_type), **parts)

    def asked(self) -> dict[str, Any]:
        """Return the settings that determine the replies, without secrets, for the file config.json."""
        deciding = {**self.model_dump(mode="json", include=set(_DECIDING)), "target": self.target_name}
        if not self.allow_changed_corpus:
            del deciding["allow_changed_corpus"]
        if self.target_name == "builtin":
            return {**deciding, "config": self.config.model_dump()}
        settings = read_target_settings(self.target_name, self.target_settings)
        own = hide(settings.model_dump(mode="json")) if settings is not None else {}
        deciding |= {f"target_{name}": value for name, value in own.items()}
        by_model = self.llm not in (None, "none", "extractive")  # it also answers from a search server's passages
        left_out = {"preset"} if by_model else {"preset", "llm"}
        return {name: value for name, value in deciding.items() if name not in left_out}


def parse_settings(given: Mapping[str, Any], *, where: str = "settings") -> Settings:
    """Return the settings of a run, its pipeline and its target; raise one error that lists every invalid setting."""
    values: dict[str, Any] = {}
    pipeline = dict(given.get("pipeline") or {})
    target = dict(given.get("target_settings") or {})
    for key, value in given.items():
        name = OTHER_NAMES["settings"].get(key, key)
        if name in OTHER_NAMES["ingest"]:
            values |= {"ingest": OTHER_NAMES["ingest"][name]} if value in (True, "true") else {}
        elif name.startswith(TARGET) and name != "target_settings":
            target[name.removeprefix(TARGET)] = value
        elif name in describe_settings() and name not in Settings.model_fields:
            pipeline |= choose_given_settings({name: value})
        else:
            values[name] = value
    try:
        settings = Settings.model_validate({**values, "pipeline": pipeline, "target_settings": target})
    except ValidationError as error:
        raise ToolkitError(f"{where}: {format_faults(error)}") from error
    if settings.target_name != "builtin":
        try:
            read_target_settings(settings.target_name, settings.target_settings)
        except ToolkitError as error:
            raise ToolkitError(f"{where}: {error}") from error
    return settings


def read_config_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the settings in a JSON or TOML file, and notes on the settings that are ignored.

    Names that other tools use for a setting are replaced by Exhibit's names.
    """
    text = read_text(path).removeprefix("\ufeff")
    toml = path.suffix.lower() == ".toml"
    content = parse_toml(text, where=path) if toml else parse_json(text, where=path, error=ToolkitError)
    if not isinstance(content, dict):
        raise ToolkitError(f"{path}: must be a JSON or TOML object of settings")
    notes = []
    truth = content.pop("testdata_path", None)
    if truth is not None and "dataset_paths" not in content:
        # other tools resolve paths relative to the config file
        places = [path.parent / str(truth), Path(str(truth))]
        place_there = next((place for place in places if place.exists()), None)
        if place_there is not None and place_there.is_dir():
            content["dataset_paths"] = [str(place_there)]
        elif place_there is not None and place_there.suffix.lower() == ".jsonl":
            content["dataset_paths"] = [str(bundle_of(place_there))]
        else:
            notes.append(
                f"{path}: testdata_path {truth!r} is not a bundle; convert it with exhibit convert cpr or exhibit "
                "convert table"
            )
    return {OTHER_NAMES["settings"].get(key, key): value for key, value in content.items()}, notes


def compare_reply_settings(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the names of the settings that determine the replies and differ between two config.json files."""
    keys = [key for key in {**one, **other} if key not in ("format", "version", "measured")]
    return [key for key in keys if one.get(key) != other.get(key)]


_TRUTHS = ("truth", "ground_truth", "answer")


def bundle_of(path: Path) -> Path:
    """Write a bundle from a JSONL file of questions and expected answers; return the bundle's folder.

    The bundle has no documents. The folder is in the cache; a file with the same content and name always gives
    the same folder.
    """
    folder = find_cache_folder() / "testdata" / sha256_of(path)[:16] / path.stem
    rows, gold = [], []
    for id, line in enumerate(LazyLines(path, _parse_line)):
        truth = next((line[name] for name in _TRUTHS if isinstance(line.get(name), str)), "")
        if not isinstance(line.get("question"), str) or not line["question"].strip() or not truth.strip():
            raise SourceError(f"{path}: line {id + 1}: 'question' and 'truth' must be texts that are not empty")
        rows.append({"id": id, "question": line["question"], "answer": truth, "is_impossible": False, "contexts": []})
        gold.append(_make_gold_line(id, line))
    if not rows:
        raise SourceError(f'{path}: has no questions; a line must be {{"question": …, "truth": …}}')
    (folder / CORPUS).mkdir(parents=True, exist_ok=True)
    write_whole(folder / GOLD, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold))
    write_whole(folder / TRAIN, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return folder


def _parse_line(line: bytes, where: str) -> Mapping[str, Any]:
    content = parse_json(line.removeprefix(BOM_UTF8), where=where)
    if not isinstance(content, dict):
        raise SourceError(f"{where}: must be a JSON object")
    return content


def _make_gold_line(id: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of gold.jsonl that stores the labels of a question but no gold passage.

    The labels are all fields of `line` whose value is a string, a number or a boolean, except the question and
    the expected answer.
    """
    labels = {
        name: value
        for name, value in line.items()
        if name not in ("question", *_TRUTHS) and isinstance(value, str | int | float | bool)
    }
    nowhere: dict[str, Any] = {"pages": [], "spans": [], "alternatives": [], "how": "absent", "score": None}
    return {"id": id, "context": None, "filename": None, **nowhere, "labels": labels}
