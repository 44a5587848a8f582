"""The TOML file that describes a server under test (docs/targets.md), the server's settings, and its requests."""

import json
import os
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, create_model

from exhibit.runtime.secrets import HIDDEN, is_secret_name
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults, parse_pair, parse_toml, read_text
from exhibit.storage.http import strip_address

_FOLDER = Path(__file__).with_name("targets")


def list_systems() -> list[str]:
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders replaced; a text that is only a placeholder becomes the value itself.

    A field with the value None or {} is omitted. The fields of an object under the key `...` are merged.
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        if whole and whole[1] in values:
            return values[whole[1]]
        return _PLACEHOLDER.sub(lambda match: _format_value(values, match), template)
    if isinstance(template, Mapping):
        filled: dict[str, Any] = {}
        for key, value in template.items():
            inner = fill(value, values)
            if key == "...":
                filled |= inner if isinstance(inner, Mapping) else {}
            elif inner is not None and (inner != {} or value == {}):
                filled[key] = inner
        return filled
    if isinstance(template, list):
        return [fill(value, values) for value in template]
    return template


def fill_path(template: str, values: Mapping[str, Any]) -> str:
    """Return a path or an address with its placeholders replaced by percent-encoded values."""
    return _PLACEHOLDER.sub(lambda match: quote(_format_value(values, match), safe=""), template)


def _format_value(values: Mapping[str, Any], match: re.Match[str]) -> str:
    value = values.get(match[1], match[0])
    return "" if value is None else str(value)


def _check_path(path: str) -> str:
    try:
        jmespath.compile(path or "@")
    except (JMESPathError, RecursionError) as error:
        raise ValueError(f"{path!r:.200} is not JMESPath: {str(error).partition(', for expression')[0]}") from error
    return path


JmesPath = Annotated[str, AfterValidator(_check_path)]
Paths = Annotated[tuple[JmesPath, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
"""The first path with a value counts; an empty path means that there is no such value."""
UrlPath = Annotated[str, Field(pattern=r"^(/|\?|$)")]  # the leading slash prevents a change of the host


class TargetSetting(BaseModel, extra="forbid", frozen=True):
    default: Any = ""
    help: str = ""
    required: bool = False


class ReplyPaths(BaseModel, extra="forbid", frozen=True):
    """The paths of the parts of a reply or of a stream's event; a part without a path is read by known keys."""

    answer: Paths | None = None
    passages: Paths | None = None
    # the passages before the reranker, after it, and in the context, if a reply has several lists
    retrieved: Paths = ()
    reranked: Paths = ()
    context: Paths = ()
    fields: dict[str, JmesPath] = {}  # a passage's `text`, `filename`, `page`, `score` … under unusual names
    usage: dict[str, JmesPath] = {}
    pages_from: int = 1
    selected: bool = False  # whether the answer was made from exactly the passages of the reply
    error: JmesPath = ""
    end: JmesPath = ""  # the field that only the last event of a stream has


class Step(BaseModel, extra="forbid", frozen=True):
    """A request that asks a question, or that uploads, lists or deletes documents; settings are filled in."""

    path: UrlPath = ""
    method: str = ""  # if empty: GET for a request without a body, else POST; questions are posted
    body: Any = None
    file: str = ""  # the form field for the file
    form: dict[str, Any] = {}
    items: JmesPath = ""
    name: JmesPath = "name"
    error: JmesPath = ""  # the path of the reason for a failed upload in a reply with a good status


class DocumentInterface(BaseModel, extra="forbid", frozen=True):
    """The requests to upload, list and delete a server's documents; only `add` is required."""

    setting: str = ""  # the setting with the address of a separate server for documents; empty = the same server
    find: Step | None = None  # lists the collections, if a server has several
    create: Step | None = None
    list: Step | None = None
    add: Step
    delete: Step | None = None  # deletes the collection, or one file if it has `{name}`


def _check_variable(name: str) -> str:
    if name and not re.fullmatch(r"EXHIBIT_TARGET_[A-Z0-9_]+", name):
        raise ValueError("name the variable EXHIBIT_TARGET_…, or pass another variable with --set target_key=NAME")
    return name


class System(BaseModel, extra="forbid", frozen=True):
    url: str = ""
    key: Annotated[str, AfterValidator(_check_variable)] = ""  # the variable with the key; `target_key` overrides it
    key_header: str = "Authorization: Bearer {key}"
    settings: dict[str, TargetSetting] = {}
    ask: Step = Step()
    reply: ReplyPaths = ReplyPaths()
    ingest: DocumentInterface | None = None


def read_system(wanted: str) -> System:
    if wanted == "http":
        return System()
    path = _FOLDER / f"{wanted}.toml" if wanted in list_systems() else Path(wanted)
    try:
        return System.model_validate(parse_toml(read_text(path), where=path))
    except ValidationError as error:
        raise ToolkitError(f"{path}: {format_faults(error, most=5)}") from error


def _read_template(value: Any) -> Any:
    if not isinstance(value, str) or value.strip() in ("", "{question}"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the value is not valid JSON: {error}; correct it") from error


def _parse_pairs(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    return dict(parse_pair(pair, example="X-Key=MY_KEY") for pair in ([value] if isinstance(value, str) else value))


class ServerSettings(BaseModel, extra="forbid", frozen=True, use_attribute_docstrings=True):
    url: str = ""
    """the server's address; for http, the address to which questions are posted"""
    key: str | None = None
    """VARIABLE of the environment that holds the server's API key"""
    header: Annotated[dict[str, str], BeforeValidator(_parse_pairs)] = {}
    """NAME=VARIABLE: an HTTP header with its value from the environment"""
    parameters: Annotated[dict[str, Any], BeforeValidator(_read_template)] = {}
    """JSON for the system's own settings, sent with every question"""
    request: Annotated[Any, BeforeValidator(_read_template)] = ""
    """the request body as JSON, with {question}, {as_of}, {parameters}"""
    response_answer_jmespath: JmesPath | None = None
    """the JMESPath of the answer; '' = no answer"""
    response_context_jmespath: JmesPath | None = None
    """the JMESPath of passages; '' = no passages"""


def settings_of(wanted: str) -> type[ServerSettings]:
    """Return the model of a target's settings: those of every server, and those that its file defines."""
    fields: dict[str, Any] = {
        name: (type(setting.default), Field(... if setting.required else setting.default, description=setting.help))
        for name, setting in read_system(wanted).settings.items()
    }
    return create_model(f"{Path(wanted).stem.title()}Settings", __base__=ServerSettings, **fields)


def describe_system(wanted: str, settings: ServerSettings) -> System:
    """Return the description of a server; the request and the paths of the settings replace those of its file."""
    system = read_system(wanted)
    paths = {"answer": settings.response_answer_jmespath, "passages": settings.response_context_jmespath}
    given = {part: (path,) for part, path in paths.items() if path is not None}
    ask = system.ask.model_copy(update={"body": settings.request} if settings.request else {})
    return system.model_copy(update={"ask": ask, "reply": system.reply.model_copy(update=given)})


MESSAGES = [{"role": "user", "content": "{question}"}]
_QUESTION_FIELDS = (
    "question", "query", "message", "q", "prompt", "input", "user_input", "user_query", "text", "search", "content",
)  # fmt: skip
_MAX_DEPTH = 4  # levels of nested objects that are searched for the question


def make_body(openapi: Any, path: str) -> Any:
    """Return the request template that an OpenAPI description defines for a path; None if it has no question field."""
    steps = ("paths", path, "post", "requestBody", "content", "application/json", "schema")
    template = _make_template(jmespath.search(".".join(map(json.dumps, steps)), openapi), openapi)
    return template if isinstance(template, Mapping) else None


def _make_template(schema: Any, root: Any, depth: int = _MAX_DEPTH) -> Any:
    schema = _resolve(schema, root)
    fields = schema.get("properties")
    if not isinstance(fields, Mapping) or not depth:
        return "{question}" if schema["type"] == "string" else None
    inner = {name: _resolve(field, root) for name, field in fields.items()}
    questions = ((name, _make_template(inner.get(name), root, depth - 1)) for name in _QUESTION_FIELDS)
    chat = [("messages", MESSAGES)] if "messages" in inner and inner["messages"]["type"] == "array" else []
    name, body = next((pair for pair in chain(questions, chat) if pair[1] is not None), ("", None))
    needed = schema.get("required")
    required = [key for key in inner if isinstance(needed, list) and key in needed]
    template = {**{key: _choose_value(inner[key]) for key in required}, name: body}
    return None if None in template.values() else template


def _choose_value(schema: Mapping[str, Any]) -> Any:
    stated = jmespath.search("not_null(default, const, enum[0], examples[0], example)", schema)
    empty: dict[str, Any] = {"array": [], "object": {}, "boolean": False}
    return empty.get(schema["type"]) if stated is None else stated


def _resolve(schema: Any, root: Any) -> dict[str, Any]:
    """Return a schema with its references resolved; of alternatives and of types, the first that is not null."""
    for _ in range(8):  # a description may refer to itself
        reference = jmespath.search('"$ref"', schema)
        chosen = jmespath.search("not_null(anyOf, oneOf, allOf)[?type!='null'] | [0]", schema)
        if isinstance(reference, str):
            steps = reference.removeprefix("#/").split("/")
            schema = jmespath.search(".".join(map(json.dumps, steps)), root)
        elif chosen is not None:
            schema = chosen
        else:
            break
    kind = jmespath.search("not_null(type[?@!='null'] | [0], type)", schema)
    return {**(schema if isinstance(schema, Mapping) else {}), "type": kind if isinstance(kind, str) else ""}


def read_headers(system: System, settings: ServerSettings) -> dict[str, str]:
    headers = {name: _read_variable(variable) for name, variable in settings.header.items()}
    if variable := settings.key or system.key:
        name, _, form = system.key_header.partition(":")
        headers = {name: form.strip().format(key=_read_variable(variable)), **headers}
    return headers


def _read_variable(variable: str) -> str:
    """Return the value of an environment variable; an error never shows the value."""
    value = os.environ.get(variable, "")
    if not value:
        raise ToolkitError(f"target_header: the environment has no variable {variable}; set it")
    if not (value.isprintable() and value.isascii()):
        raise ToolkitError(f"target_header: {variable} must have only printable ASCII characters")
    return value


def hide_secrets(value: Any, name: str = "", hidden: list[str] | None = None) -> Any:
    """Return settings without secrets, and addresses without password and query; add the secrets to `hidden`."""
    hidden = [] if hidden is None else hidden
    if name == "header":  # it is stored as the name of the variable that holds its value
        return value
    if isinstance(value, Mapping):
        return {key: hide_secrets(inner, str(key), hidden) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [hide_secrets(inner, name, hidden) for inner in value]
    if isinstance(value, str) and is_secret_name(name):
        hidden.append(value)
        return HIDDEN
    return strip_address(value) if isinstance(value, str) and re.match(r"https?://", value) else value
