"""The settings of a run, given as --set NAME=VALUE or as a key of a --config file; flags overrule the file.

examples:
    exhibit evaluate --settings           all settings
    exhibit evaluate --settings chunk     the settings with this word in their name or meaning
"""

import difflib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, field_validator, model_validator

from exhibit.engine import Limits, read_limits
from exhibit.evaluation.datasets import Selection, write_testdata
from exhibit.evaluation.metrics import OTHER_NAMES, split_requests
from exhibit.evaluation.server_files import ServerSettings, hide_secrets
from exhibit.evaluation.targets import TargetOptions, find_target, list_targets, read_target_settings
from exhibit.rag.config import DEFAULT, PLUGINS, Config, choose_given_settings, describe_settings
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.plugins import list_plugins
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import Positive
from exhibit.schemas.parsing import format_faults, parse_json, parse_pair, parse_toml, read_text

TARGET = "target_"  # the prefix of the keys of a target's own settings
_DECIDING = {"file_type", "ask_label", "where", "limit", "sample_seed", "allow_changed_corpus", "preset", "llm"}
"""Settings that, like those of pipeline and target, determine the replies; a resumed run must not change them."""
OTHER_SETTINGS = {  # keys of evaltools' config files and of the seeds' commands, with our names
    "requested_metrics": "metrics", "results_dir": "output_dir", "num_questions": "limit", "top_k": "k",
}  # fmt: skip


class Settings(Selection):
    dataset_paths: tuple[str, ...] = ()
    """the bundles: folders, hf://OWNER/NAME@REVISION, s3://, gs://"""
    preset: str = DEFAULT
    """the recipe of the built-in pipeline: a name or a .toml file"""
    pipeline: dict[str, Any] = Field(default={})
    """single settings of the pipeline, which override those of the preset"""
    llm: str | None = None
    """the model that writes answers, as NAME:MODEL; none: retrieval only; default: quote sentences of the documents"""
    target: str = "builtin"
    """the system under test: a name, NAME:ARGUMENT or a .toml file"""
    target_settings: dict[str, Any] = Field(default={})
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
    ingest: Literal["auto", "fresh"] | None = None
    """auto: upload the documents that the system lacks; fresh: delete and upload all"""
    metrics: tuple[str, ...] = ()
    """the metrics, as NAME or NAME@K; none = all that apply"""
    parity: Literal["", "legalbenchrag", "seed"] = ""
    """use the published definition of another project where it differs from ours"""
    judge: str | None = None
    """the model that marks groundedness, relevance and correctness, as NAME:MODEL"""
    parsed: Path | None = None
    """a folder with the system's text of each document: shows the gold that its parser lost"""
    chunks: Path | None = None
    """a file with the system's chunks, one per row: shows the gold that its chunker cut"""
    repeat: Positive = 1
    """how many times every question is asked, to measure how much a system's answers vary"""
    legacy_minus_one: bool = False
    """write -1 as the score of a failed question, as some tools expect"""
    flag_below: Annotated[float, Field(ge=0, le=1)] | None = None
    """the confidence below which an answer is flagged for review"""
    check_references: bool = False
    """check the answers' references in the public registers"""
    registers_url: str = ""
    """the address of a mirror of the public registers"""
    output_dir: Path = Path("results")
    """the folder of all runs"""
    run_name: Annotated[str, Field(pattern=r"^\w[^/]*$")] | None = None
    """the name of the run's folder; none = preset and time"""
    resume: bool = False
    """continue a run that was stopped"""
    report_cases: Annotated[int, Field(ge=0)] | None = None
    """the number of questions shown with page images; none = all, up to 2,000 pages"""

    @field_validator("dataset_paths", "file_type", "metrics", mode="before")
    @classmethod
    def _split_commas(cls, value: Any, info: ValidationInfo) -> Any:
        parts = [value] if isinstance(value, str) else value
        if info.field_name == "dataset_paths" or not isinstance(parts, list | tuple):
            return parts
        names = [name for part in parts if isinstance(part, str) for name in split_requests(part)]
        if info.field_name == "metrics":
            return list(dict.fromkeys(OTHER_NAMES.get(name, name) for name in names))
        return list(dict.fromkeys(name.lower().lstrip(".") for name in names))

    @field_validator("where", mode="before")
    @classmethod
    def _parse_labels(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: [str(item) for item in v] if isinstance(v, list | tuple) else [str(v)] for k, v in value.items()}
        pairs: dict[str, list[str]] = {}
        for text in [value] if isinstance(value, str) else value:
            name, wanted = parse_pair(text, example="source_type=PD")
            pairs.setdefault(name, []).append(wanted)
        return pairs

    @model_validator(mode="after")
    def _check_effective(self) -> "Settings":
        for name, needed in {"sample_seed": "limit", "registers_url": "check_references"}.items():
            if getattr(self, name) and not getattr(self, needed):
                raise ToolkitError(f"{name} has no effect without {needed}; set {needed} too")
        if self.target_name == "builtin" and self.target_settings:
            given = ", ".join(f"{TARGET}{name}" for name in self.target_settings)
            raise ToolkitError(f"{given}: only for a server under test; give its address with --target-url")
        if self.ask_label and self.target_name == "builtin" and not self.writes_answers:
            raise ToolkitError("ask_label: only a language model can choose a label; name one with --llm")
        return self

    @property
    def writes_answers(self) -> bool:
        """Whether a language model writes the answers, in the pipeline or from the passages of a search server."""
        return self.llm not in (None, "none", "extractive")

    @property
    def config(self) -> Config:
        model = {"llm": self.llm} if self.writes_answers else {}
        return Config.preset(self.preset, **self.pipeline, **model)

    @property
    def needs_documents(self) -> bool:
        return self.target_name == "builtin" or self.ingest is not None

    @property
    def limits(self) -> Limits:
        return read_limits(self)

    @property
    def target_name(self) -> str:
        """The name of the system under test: `http` if only an address is given, `azure-search` for an Azure index."""
        if self.target == "azure" and self.target_settings.get("index"):
            return "azure-search"
        return "http" if self.target_settings.get("url") and self.target == "builtin" else self.target

    def make_target_options(self, **parts: Any) -> TargetOptions:
        """Return the options for the target; `parts` are ready-made objects such as the cache or the embedder."""
        shared = ("config", "threads", "engine", "jobs", "limits", "timeout", "retries", "ingest")
        parts |= {name: getattr(self, name) for name in shared}
        return TargetOptions(**parts, answers=self.llm != "none", count_pages=bool(self.file_type))

    def asked(self) -> dict[str, Any]:
        """Return the settings that affect the replies, without secrets, for the file config.json."""
        deciding = {**self.model_dump(mode="json", include=_DECIDING), "target": self.target_name}
        if not self.allow_changed_corpus:
            del deciding["allow_changed_corpus"]
        if self.target_name == "builtin":
            return {**deciding, "config": self.config.model_dump()}
        for name in ("preset",) if self.writes_answers else ("preset", "llm"):
            del deciding[name]
        settings = read_target_settings(self.target_name, self.target_settings)
        values = hide_secrets(settings.model_dump(mode="json")) if settings is not None else {}
        return deciding | {f"{TARGET}{name}": value for name, value in values.items()}


def parse_settings(
    given: Mapping[str, Any], *, where: str = "settings", flags: Mapping[str, Any] | None = None
) -> Settings:
    """Return the settings of a run, its pipeline and its target; raise one error that lists every invalid setting.

    `flags` are the settings that `--set` gives; an error about one of them names that flag.
    """
    values: dict[str, Any] = {"pipeline": {}, "target_settings": {}}
    for key, value in given.items():
        name = OTHER_SETTINGS.get(key, key)
        if name.startswith(TARGET):
            values["target_settings"][name.removeprefix(TARGET)] = value
        elif name in describe_settings() and name not in Settings.model_fields:
            values["pipeline"] |= choose_given_settings({name: value})
        else:
            values[name] = value
    try:
        settings = Settings.model_validate(values)
        _ = settings.config  # validates the pipeline's settings
        if settings.target_name != "builtin":
            read_target_settings(settings.target_name, settings.target_settings)
    except (ValidationError, ToolkitError) as error:
        faults = format_faults(error) if isinstance(error, ValidationError) else str(error).removeprefix("settings: ")
        name = faults.partition(":")[0]
        if flags and name in flags:
            raise ToolkitError(f"--set {name}={flags[name]}{faults.removeprefix(name)}") from error
        if isinstance(error, ToolkitError):
            raise
        raise ToolkitError(f"{where}: {faults}; `exhibit evaluate --settings` lists all settings") from error
    return settings


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the settings in a JSON or TOML file; `testdata_path`, as in other tools, is relative to the file."""
    toml, text = path.suffix.lower() == ".toml", read_text(path)
    content = parse_toml(text, where=path) if toml else parse_json(text, where=path, error=ToolkitError)
    if not isinstance(content, dict):
        raise ToolkitError(f"{path}: must be a JSON or TOML object of settings")
    truth = content.pop("testdata_path", None)
    if truth is not None and "dataset_paths" not in content:
        data = next((file for file in (path.parent / str(truth), Path(str(truth))) if file.exists()), None)
        if data is None or not (data.is_dir() or data.suffix.lower() == ".jsonl"):
            advice = "a bundle's folder or a .jsonl file; see exhibit convert cpr and exhibit convert table"
            raise ToolkitError(f"{path}: testdata_path {truth!r} is not {advice}")
        content["dataset_paths"] = [str(data if data.is_dir() else write_testdata(data))]
    return {OTHER_SETTINGS.get(key, key): value for key, value in content.items()}


class Setting(NamedTuple):
    name: str
    group: str  # `run`, `pipeline`, `server`, or the target that has the setting
    default: str
    values: str
    meaning: str
    many: bool  # whether the setting can be given several times


@cache
def list_settings() -> dict[str, Setting]:
    """Return the settings of runs, of the built-in pipeline and of targets, by name, in the order of the help."""
    models: dict[str, type[BaseModel] | None] = {"run": Settings, "pipeline": Config, "server": ServerSettings}
    models |= {f"target {name}": find_target(name)[1] for name in list_targets()}
    settings: dict[str, Setting] = {}
    for group, model in models.items():
        prefix = "" if group in ("run", "pipeline") else TARGET
        for name, schema in model.model_json_schema()["properties"].items() if model else ():
            if name not in ("pipeline", "target_settings"):
                # a run's setting precedes the pipeline's of the same name
                settings.setdefault(prefix + name, _describe_setting(prefix, name, group, schema))
    return settings


def _describe_setting(prefix: str, name: str, group: str, schema: Mapping[str, Any]) -> Setting:
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    default = schema.get("default")
    shown = "none" if default in (None, "", [], {}) else str(default)
    shown = shown.lower() if isinstance(default, bool) else shown
    many = (group == "run" or name == "header") and any(kind.get("type") in ("array", "object") for kind in kinds)
    choices = [value for kind in kinds for value in kind.get("enum", [kind.get("type", "text")]) if value]
    if name in PLUGINS:
        choices = [part.replace("_", "-") for part in list_plugins(PLUGINS[name])]
    values = "may be repeated" if many else "|".join(map(str, dict.fromkeys(choices)))
    return Setting(prefix + name, group, shown, values, schema.get("description", ""), many)


def parse_set(pairs: Sequence[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not sign:
            raise ToolkitError(f"--set {pair}: write NAME=VALUE, such as --set chunk_size=300")
        known = list_settings().get(name)
        if known is None and not name.startswith(TARGET):  # a user's own target file may define more settings
            near = difflib.get_close_matches(name, list_settings(), n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            listed = "`exhibit evaluate --settings` lists all settings"
            raise ToolkitError(f"--set {pair}: no setting {name!r}{meant}; {listed}")
        if known and known.many:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    return given


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    parser = build_parser("exhibit evaluate --settings", __doc__)
    what = "list only settings with this word in their name or meaning"
    parser.add_argument("word", nargs="?", default="", metavar="WORD", help=what)
    add_json(parser)
    options = parser.parse_args(argv)
    word = options.word.lower().replace("-", "_")
    chosen = [setting for setting in list_settings().values() if word in " ".join(setting[:5]).lower()]
    if not chosen:
        raise ToolkitError(f"no setting matches {options.word!r}; without a word, all settings are listed")
    width, lines = max(len(setting.name) for setting in chosen), list[str]()
    for group, settings in groupby(chosen, key=lambda setting: setting.group):
        lines += ["", f"{group}:"]
        lines += [f"  {s.name:<{width}}  {s.meaning} ({s.values}; default {s.default})" for s in settings]
    print_results([setting._asdict() for setting in chosen], "\n".join(lines[1:]), as_json=options.json)
    return 0
