"""A system under test as a TOML file describes it: what it is asked, where its answer is, how it takes documents."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.parsing import faults_in, parse_pair, parse_toml, read_regular

FOLDER = Path(__file__).parents[1] / "targets" / "systems"
_LONGEST_PATH = 2000
"""Characters of a JMESPath: the longest of ours has 250."""
_DEEPEST_PATH = 200
"""Steps of a JMESPath: each is a call within a call, of which Python allows a thousand."""
_OWN_VARIABLE = re.compile(r"EXHIBIT_TARGET_[A-Z0-9_]+")
"""Variables that a file may name: those that a user has made for servers under test, never another service's key."""


_SETTING = re.compile(r"\{\w+\}")
"""A path that a setting gives."""


def check_path(path: str) -> str:
    """Return a JMESPath; raise ValueError for one that cannot be read, or is nested too deep to be followed."""
    try:
        if len(path) > _LONGEST_PATH:
            raise ValueError(f"a JMESPath of {len(path)} characters, more than {_LONGEST_PATH}")
        if sum(map(path.count, ".[({|&!")) > _DEEPEST_PATH:
            raise RecursionError
        if path and not _SETTING.fullmatch(path):
            jmespath.compile(path).search({})
    except RecursionError:
        raise ValueError("a JMESPath that is nested too deep") from None
    except JMESPathTypeError:  # a function that does not take nothing is fine
        pass
    except JMESPathError as error:
        raise ValueError(f"{path!r} is not JMESPath: {str(error).partition(', for expression')[0]}") from error
    return path


def read_template(value: Any) -> Any:
    """Return JSON that is given as such, or as the name of a file with it; `{question}` alone is a template, too."""
    if not isinstance(value, str) or value.strip() in ("", "{question}"):
        return value
    text = value
    if not value.lstrip().startswith(("{", "[")):
        try:
            text = read_regular(Path(value)).decode("utf-8")
        except OSError as error:
            raise ValueError(f"{value}: cannot be read: {error.strerror}; give JSON, or a file with it") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error


JmesPath = Annotated[str, AfterValidator(check_path)]
Paths = Annotated[tuple[JmesPath, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
"""The first that leads to something counts; the empty one says that there is nothing of the kind."""


UrlPath = Annotated[str, Field(pattern=r"^(/|$)")]
"""What stands behind an address; with the slash it cannot change the address's host."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TargetSetting(_Part):
    """What a user can say of a system: `--set target_NAME=VALUE`."""

    default: Any = None
    help: str = ""
    kind: Literal["", "template", "path"] = ""
    choices: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    above: float | None = None
    required: bool = False


class Ask(_Part):
    """A request for an answer."""

    method: str = "POST"
    path: tuple[UrlPath, ...] | UrlPath = ""
    """Behind the address; of several, the first that the server has."""
    query: dict[str, str] = {}
    body: Any = None
    history: dict[str, Any] = {}
    """How a turn is written, by role; default: `{"role", "content"}`."""
    described: dict[str, str] = {}
    """Where the server says what one setting of ours must look like: `path`, `setting`."""


class ReplyPart(_Part):
    """Where things are in a whole reply; what is not said is known by the reply's fields."""

    unwrap: bool = False
    """Whether what is looked for is inside `output`, `data`, `result`, or the parts of a pipeline."""
    answer: Paths | None = None
    passages: Paths | None = None
    retrieved: Paths = ()
    """Where the passages before the reranker are, where `passages` are what it made of them."""
    reranked: Paths = ()
    context: Paths = ()
    """Where the passages, or their numbers from 1, are that the reranker kept, and that the model was given."""
    fields: dict[str, JmesPath] = {}
    """Fields of a passage (`text`, `filename`, `page`, `score`, `span` …) that are called otherwise."""
    usage: dict[str, JmesPath] = {}
    pages_from: int = 1
    selected: bool = False
    """Whether the passages of the reply are those that the answer was made from."""
    error: JmesPath = ""
    refused: JmesPath = ""
    failed: str = ""
    """How an answer begins that is an error."""
    citations: tuple[str, ...] = ()
    """How an answer cites passages by their keys: `[ID:{n}]`; they become ranks."""


class StreamPart(_Part):
    """Where things are in an event of a stream; what is not said is where it is in a whole reply."""

    format: Literal["json", "text", "parts"] = "json"
    """Events or lines of JSON; the answer's words alone; lines of a letter and JSON, each read as `{letter: JSON}`."""
    events: tuple[str, ...] = ()
    """Events, by their `event:` or their `type`, that carry the answer; without it they are known by their names."""
    answer: Paths | None = None
    passages: Paths | None = None
    usage: JmesPath = "@"
    end: JmesPath = ""
    error: JmesPath = ""


class RankingRequest(_Part):
    """A second request, for passages behind those of the answer."""

    path: UrlPath
    body: Any
    passages: JmesPath
    parameters: tuple[str, ...] = ()


class PollRequest(_Part):
    """Requests for a reply that is not ready when the question is taken: a task's id, then its status."""

    task: JmesPath = "task_id"
    """Where the first reply has the task's id; `{task}` in the path is its value."""
    path: UrlPath = ""
    url: JmesPath = ""
    """Where the first reply has the address to ask, instead of a path."""
    done: JmesPath = ""
    """What is true of a reply that is ready; without it, whatever has an answer."""
    result: JmesPath = "@"
    """Where the reply is in the last one."""
    seconds: Annotated[float, Field(gt=0)] = 0.5
    """Between two requests."""


class RetrievalRequest(_Part):
    """A request for passages before the one for an answer, whose body may have `{ids}` and `{passages}`."""

    path: UrlPath
    body: Any
    passages: JmesPath
    ids: JmesPath = ""
    """Where the ids are that the answer is asked with; without it, the `id` of each passage."""


class Step(_Part):
    """A request of the interface for documents, and what is read in its reply."""

    path: UrlPath
    method: str = "GET"
    body: Any = None
    file: str = ""
    """The field of a form that takes a file."""
    form: dict[str, Any] = {}
    items: JmesPath = ""
    name: JmesPath = "name"
    id: JmesPath = ""
    ready: JmesPath = ""
    error: JmesPath = ""
    next: JmesPath = ""
    """What `after` is in the request for the next page; with `{page}` in the path pages are numbered."""


class DocumentInterface(_Part):
    """The interface for documents; `add` alone must be there."""

    url: str = ""
    port: int | None = None
    """Where it is, where it is another server than the one that answers: an address, or a port of the same host."""
    noun: str = "collection"
    id_prefix: str = ""
    check: Step | None = None
    find: Step | None = None
    create: Step | None = None
    list: Step | None = None
    name: Step | None = None
    add: Step
    attach: Step | None = None
    task: Step | None = None
    start: Step | None = None
    delete_each: Step | None = None
    delete: Step | None = None


class System(_Part):
    """A system under test."""

    url: str = ""
    example: str = ""
    key: str = ""
    """The variable that holds the server's key, where `target_key` names none."""
    key_header: str = "Authorization: Bearer {key}"
    strip: tuple[str, ...] = ()
    """Endings of an address that are left out: users copy them."""
    plain_collection: bool = False
    settings: dict[str, TargetSetting] = {}
    refuse: dict[str, str] = {}
    ask: Ask = Ask()
    reply: ReplyPart = ReplyPart()
    stream: StreamPart = StreamPart()
    ranking: RankingRequest | None = None
    poll: PollRequest | None = None
    retrieve: RetrievalRequest | None = None
    ingest: DocumentInterface | Literal[False] = False
    when: dict[str, Any] = {}
    """Further values, by the settings that they are for: `stream`, `!assistant`, `api=chat, stream`, `a | b`."""


# ---------------------------------------------------------------- files


def system_names() -> list[str]:
    """Return the systems that are described here."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_system(wanted: str) -> dict[str, Any]:
    """Return a system's file, one of ours by its name or a user's own; raise ToolkitError that says what is wrong."""
    ours = wanted in system_names()
    path = FOLDER / f"{wanted}.toml" if ours else Path(wanted)
    try:
        content = parse_toml(read_text(path).removeprefix("\ufeff"), where=path)
    except BundleError as error:
        raise ToolkitError(f"{error}; there are {', '.join(system_names())}") from error
    key = content.get("key")
    if isinstance(key, str) and key and not _OWN_VARIABLE.fullmatch(key):
        raise ToolkitError(
            f"{path}: key: a file may name variables EXHIBIT_TARGET_…; for {key} give --set target_key={key}"
        )
    _validated(content, path)
    return content


def _validated(content: Mapping[str, Any], where: object) -> System:
    try:
        return System.model_validate(dict(content))
    except ValidationError as error:
        raise ToolkitError(f"{where}: {faults_in(error, most=5)}") from error


def apply_settings(wanted: str, values: Mapping[str, Any]) -> System:
    """Return a system as the settings of a run make it; raise where they contradict each other."""
    content = read_system(wanted)
    for condition, message in content.get("refuse", {}).items():
        if holds(condition, values):
            raise ToolkitError(message)
    for condition, more in content.get("when", {}).items():
        if holds(condition, values):
            content = _merged(content, more)
    reply = {key: _value(value, values) for key, value in content.get("reply", {}).items()}
    return _validated({**content, "reply": {key: value for key, value in reply.items() if value is not None}}, wanted)


def _value(given: Any, values: Mapping[str, Any]) -> Any:
    return values.get(given[1:-1], given) if isinstance(given, str) and given.startswith("{") else given


def holds(condition: str, values: Mapping[str, Any]) -> bool:
    """Return whether settings are as `a, !b, c=d | e` says: `,` binds more than `|`."""

    def one(part: str) -> bool:
        name, equals, wanted = part.strip().removeprefix("!").partition("=")
        held = str(values.get(name)) == wanted if equals else bool(values.get(name))
        return held is not part.strip().startswith("!")

    return any(all(map(one, choice.split(","))) for choice in condition.split("|"))


def _merged(base: Any, more: Any) -> Any:
    """Return a table with another laid over it; `false` takes a field away."""
    if not isinstance(base, Mapping) or not isinstance(more, Mapping):
        return more
    laid = {**base, **{key: _merged(base.get(key), value) for key, value in more.items()}}
    return {key: value for key, value in laid.items() if not (key in more and more[key] is False)}


# ---------------------------------------------------------------- settings


def _pairs(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    given = [value] if isinstance(value, str) else value
    return dict(parse_pair(one, example="Authorization=TOKEN") for one in given)


class ServerSettings(BaseModel):
    """What every server can be told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("", description="the server's address")
    key: str | None = Field(None, description="VARIABLE of the environment that holds the server's API key")
    header: Annotated[dict[str, str], BeforeValidator(_pairs)] = Field(
        {}, description="NAME=VARIABLE: a header, from the environment; repeat"
    )
    parameters: Annotated[dict[str, Any], BeforeValidator(read_template)] = Field(
        {}, description="JSON for the system's own settings, sent with every question"
    )


def settings_of(wanted: str) -> type[ServerSettings]:
    """Return the model of what a system can be told."""
    fields: dict[str, Any] = {}
    for name, given in _validated(read_system(wanted), wanted).settings.items():
        default = "" if given.default is None and (given.required or name == "url") else given.default
        kind: Any = type(default)
        if given.kind == "path":
            kind = JmesPath | None
        elif given.kind == "template":
            kind = Annotated[Any, BeforeValidator(read_template)]
        elif kind is dict:
            kind = Annotated[dict[str, Any], BeforeValidator(read_template)]
        elif given.choices:
            kind = Literal[given.choices]
        fields[name] = (kind, Field(default, description=given.help, ge=given.min, le=given.max, gt=given.above))
    return create_model(f"{Path(wanted).stem.title()}Settings", __base__=ServerSettings, **fields)


def headers_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their values from the environment; raise an error that names the variables, never a value."""
    missing = [variable for variable in variables.values() if variable not in os.environ]
    if missing:
        raise ToolkitError(f"target_header: the environment has no {', '.join(sorted(missing))}")
    values = {name: os.environ[variable] for name, variable in variables.items()}
    odd = [variables[name] for name, value in values.items() if not (value.isprintable() and value.isascii())]
    if odd:
        raise ToolkitError(f"target_header: {', '.join(sorted(set(odd)))} cannot be sent: not printable ASCII")
    return values
