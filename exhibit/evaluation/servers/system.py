"""The description of a system under test in a TOML file.

It says which requests to send, at which paths of a reply the answer and the passages are, and how documents
are uploaded and listed.
"""

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
from exhibit.schemas.parsing import format_faults, parse_pair, parse_toml, read_regular

FOLDER = Path(__file__).parents[1] / "targets" / "systems"
_LONGEST_PATH = 2000
"""The longest JMESPath that is accepted, in characters; the longest of ours has 250."""
_DEEPEST_PATH = 200
"""The most steps of a JMESPath: each is a nested call, and Python allows a thousand."""
_OWN_VARIABLE = re.compile(r"EXHIBIT_TARGET_[A-Z0-9_]+")
"""Environment variables that a file may name: only those made for servers under test, never another service's key."""


_SETTING = re.compile(r"\{\w+\}")
"""A path that comes from a setting."""


def check_path(path: str) -> str:
    """Return a JMESPath unchanged; raise ValueError if it is invalid, too long or nested too deeply."""
    try:
        if len(path) > _LONGEST_PATH:
            raise ValueError(f"a JMESPath of {len(path)} characters, more than {_LONGEST_PATH}")
        if sum(map(path.count, ".[({|&!")) > _DEEPEST_PATH:
            raise RecursionError
        if path and not _SETTING.fullmatch(path):
            jmespath.compile(path).search({})
    except RecursionError:
        raise ValueError("a JMESPath with too many nested steps") from None
    except JMESPathTypeError:  # a function that does not accept null is valid
        pass
    except JMESPathError as error:
        raise ValueError(f"{path!r} is not JMESPath: {str(error).partition(', for expression')[0]}") from error
    return path


def read_template(value: Any) -> Any:
    """Return a JSON template for a request, parsed from JSON or from the JSON file that `value` names.

    The text `{question}` alone is also a template, and is returned unchanged.
    """
    if not isinstance(value, str) or value.strip() in ("", "{question}"):
        return value
    text = value
    if not value.lstrip().startswith(("{", "[")):
        try:
            text = read_regular(Path(value)).decode("utf-8")
        except OSError as error:
            raise ValueError(f"{value}: cannot be read: {error.strerror}; give JSON, or a JSON file's name") from error
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the value, or the file that it names, is not JSON: {error}; correct it") from error


JmesPath = Annotated[str, AfterValidator(check_path)]
Paths = Annotated[tuple[JmesPath, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
"""The first path with a value counts; an empty path means that there is no such value."""


UrlPath = Annotated[str, Field(pattern=r"^(/|$)")]
"""The path after the server's address; the leading slash prevents a change of the host."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TargetSetting(_Part):
    """A setting of a system: `--set target_NAME=VALUE`."""

    default: Any = None
    help: str = ""
    kind: Literal["", "template", "path"] = ""
    choices: tuple[str, ...] = ()
    min: float | None = None
    max: float | None = None
    above: float | None = None
    required: bool = False


class Ask(_Part):
    """The description of the request that asks a system a question: method, path, query and body."""

    method: str = "POST"
    path: tuple[UrlPath, ...] | UrlPath = ""
    """The path after the address; of several, the first that the server has."""
    query: dict[str, str] = {}
    body: Any = None
    history: dict[str, Any] = {}
    """The form of a turn for each role; default: `{"role", "content"}`."""
    described: dict[str, str] = {}
    """The address where the server describes a setting: `path`, `setting`."""


class ReplyPart(_Part):
    """The JMESPaths of the values in a server's reply that arrives in one piece, not as a stream.

    If no path is given for a value, the value is recognised by the names of the reply's fields.
    """

    unwrap: bool = False
    """Whether the values are inside `output`, `data`, `result`, or the components of a pipeline."""
    answer: Paths | None = None
    passages: Paths | None = None
    retrieved: Paths = ()
    """The path of the passages before the reranker, where `passages` are those after it."""
    reranked: Paths = ()
    context: Paths = ()
    """The paths of the passages, or their numbers from 1, that the reranker kept and that the model was given."""
    fields: dict[str, JmesPath] = {}
    """The paths of a passage's fields (`text`, `filename`, `page`, `score`, `span` …) that have other names."""
    usage: dict[str, JmesPath] = {}
    pages_from: int = 1
    selected: bool = False
    """Whether the passages of the reply are those that the answer was made from."""
    error: JmesPath = ""
    refused: JmesPath = ""
    failed: str = ""
    """The text that marks an answer as an error."""
    citations: tuple[str, ...] = ()
    """The form in which an answer cites passages by their keys: `[ID:{n}]`; it is replaced by the rank."""


class StreamPart(_Part):
    """The paths of values in an event of a streamed reply.

    If a path is not set here, the path for replies that are not streamed is used.
    """

    format: Literal["json", "text", "parts"] = "json"
    """`json`: events or lines of JSON; `text`: only the answer's text; `parts`: lines of a letter, a colon and JSON."""
    events: tuple[str, ...] = ()
    """The events that carry the answer, by `event:` or `type`; without it they are recognised by their names."""
    answer: Paths | None = None
    passages: Paths | None = None
    usage: JmesPath = "@"
    end: JmesPath = ""
    error: JmesPath = ""


class RankingRequest(_Part):
    """A second request, sent after the answer, for further passages."""

    path: UrlPath
    body: Any
    passages: JmesPath
    parameters: tuple[str, ...] = ()


class PollRequest(_Part):
    """How to poll for a reply that is not ready at once.

    The reply to the question has only a task. The task is then requested until it is done and its result can be
    read.
    """

    task: JmesPath = "task_id"
    """The path of the task's id in the first reply; it replaces `{task}` in the path."""
    path: UrlPath = ""
    url: JmesPath = ""
    """The path of the address to poll in the first reply, instead of `task` and `path`."""
    done: JmesPath = ""
    """A condition that is true of a finished reply; without it, a reply with an answer is finished."""
    result: JmesPath = "@"
    """The path of the reply in the last response."""
    seconds: Annotated[float, Field(gt=0)] = 0.5
    """Seconds between two requests."""


class RetrievalRequest(_Part):
    """A request for passages that is sent before the request for the answer.

    The request for the answer may then use the placeholders `{ids}` and `{passages}` for what was retrieved.
    """

    path: UrlPath
    body: Any
    passages: JmesPath
    ids: JmesPath = ""
    """The path of the ids for the request for the answer; without it, the `id` of each passage."""


class Step(_Part):
    """One request to a system's interface for documents, such as an upload, and where its reply has the results.

    The JMESPath fields find values in the reply: the list of documents, and each document's name, id, state
    and error.
    """

    path: UrlPath
    method: str = "GET"
    body: Any = None
    file: str = ""
    """The field of the form that takes the file."""
    form: dict[str, Any] = {}
    items: JmesPath = ""
    name: JmesPath = "name"
    id: JmesPath = ""
    ready: JmesPath = ""
    error: JmesPath = ""
    next: JmesPath = ""
    """The path of the value `after` for the next page; with `{page}` in the path, pages are numbered instead."""


class DocumentInterface(_Part):
    """A system's interface for documents: the requests to upload, list and delete them; only `add` is required."""

    url: str = ""
    port: int | None = None
    """The address of another server for documents, or its port on the same host; without both, the same server."""
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
    """The content of a system's TOML file."""

    url: str = ""
    example: str = ""
    key: str = ""
    """The environment variable with the server's key, where `target_key` names none."""
    key_header: str = "Authorization: Bearer {key}"
    strip: tuple[str, ...] = ()
    """Endings that are removed from an address, because users copy them with it."""
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
    """Further values under a condition on the settings: `stream`, `!assistant`, `api=chat, stream`, `a | b`."""


# ---------------------------------------------------------------- files


def list_systems() -> list[str]:
    """Return the names of the systems that are described in this package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_system(wanted: str) -> dict[str, Any]:
    """Return the content of a system's file, given by name or path; raise ToolkitError where it is invalid."""
    ours = wanted in list_systems()
    path = FOLDER / f"{wanted}.toml" if ours else Path(wanted)
    try:
        content = parse_toml(read_text(path).removeprefix("\ufeff"), where=path)
    except BundleError as error:
        raise ToolkitError(f"{error}; the systems are {', '.join(list_systems())}") from error
    key = content.get("key")
    if isinstance(key, str) and key and not _OWN_VARIABLE.fullmatch(key):
        raise ToolkitError(
            f"{path}: key = {key!r}: a target file may use only variables named EXHIBIT_TARGET_…; "
            f"to allow {key}, add --set target_key={key}"
        )
    _validate(content, path)
    return content


def _validate(content: Mapping[str, Any], where: object) -> System:
    try:
        return System.model_validate(dict(content))
    except ValidationError as error:
        raise ToolkitError(f"{where}: {format_faults(error, most=5)}") from error


def apply_settings(wanted: str, values: Mapping[str, Any]) -> System:
    """Return a system with the settings of a run applied; raise an error where they contradict each other."""
    content = read_system(wanted)
    for condition, message in content.get("refuse", {}).items():
        if holds(condition, values):
            raise ToolkitError(message)
    for condition, more in content.get("when", {}).items():
        if holds(condition, values):
            content = _merge(content, more)
    reply = {key: _fill_value(value, values) for key, value in content.get("reply", {}).items()}
    return _validate({**content, "reply": {key: value for key, value in reply.items() if value is not None}}, wanted)


def _fill_value(given: Any, values: Mapping[str, Any]) -> Any:
    return values.get(given[1:-1], given) if isinstance(given, str) and given.startswith("{") else given


def holds(condition: str, values: Mapping[str, Any]) -> bool:
    """Return whether settings satisfy a condition such as `a, !b, c=d | e`: `,` means and, `|` means or."""

    def holds_part(part: str) -> bool:
        name, equals, wanted = part.strip().removeprefix("!").partition("=")
        held = str(values.get(name)) == wanted if equals else bool(values.get(name))
        return held is not part.strip().startswith("!")

    return any(all(map(holds_part, choice.split(","))) for choice in condition.split("|"))


def _merge(base: Any, more: Any) -> Any:
    """Return the table `base` merged with `more`, whose values take precedence; `false` removes a field."""
    if not isinstance(base, Mapping) or not isinstance(more, Mapping):
        return more
    laid = {**base, **{key: _merge(base.get(key), value) for key, value in more.items()}}
    return {key: value for key, value in laid.items() if not (key in more and more[key] is False)}


# ---------------------------------------------------------------- settings


def _parse_pairs(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    given = [value] if isinstance(value, str) else value
    return dict(parse_pair(one, example="Authorization=TOKEN") for one in given)


class ServerSettings(BaseModel):
    """The settings of every evaluated server: its address, API key, HTTP headers and own parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("", description="the server's address")
    key: str | None = Field(None, description="VARIABLE of the environment that holds the server's API key")
    header: Annotated[dict[str, str], BeforeValidator(_parse_pairs)] = Field(
        {}, description="NAME=VARIABLE: an HTTP header with its value from the environment; repeat for several"
    )
    parameters: Annotated[dict[str, Any], BeforeValidator(read_template)] = Field(
        {}, description="JSON for the system's own settings, sent with every question"
    )


def settings_of(wanted: str) -> type[ServerSettings]:
    """Return a Pydantic model of the settings that a system's TOML file declares."""
    fields: dict[str, Any] = {}
    for name, given in _validate(read_system(wanted), wanted).settings.items():
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
    """Return HTTP headers with values from environment variables.

    An error names missing or invalid variables, but never their values.
    """
    missing = [variable for variable in variables.values() if variable not in os.environ]
    if missing:
        raise ToolkitError(
            f"target_header: the environment has no variable {', '.join(sorted(missing))}; set it before the run"
        )
    values = {name: os.environ[variable] for name, variable in variables.items()}
    odd = [variables[name] for name, value in values.items() if not (value.isprintable() and value.isascii())]
    if odd:
        raise ToolkitError(
            f"target_header: the value of {', '.join(sorted(set(odd)))} is not printable ASCII and "
            "cannot be sent; correct it"
        )
    return values
