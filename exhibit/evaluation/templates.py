"""Request templates: placeholders such as `{question}`, and the body that a server's `openapi.json` describes."""

import json
import re
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jmespath

from exhibit.schemas.parsing import read_regular


def read_template(value: Any) -> Any:
    """Return a JSON template for a request, parsed from JSON or from the JSON file that `value` names."""
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


# ---------------------------------------------------------------- templates

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with its placeholders replaced by values.

    A text that is only a placeholder becomes the value itself, of any type; a field with the value None or {} is
    omitted. The fields of an object under the key `...` are merged.
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


# ---------------------------------------------------------------- the body that a server wants

MESSAGES = [{"role": "user", "content": "{question}"}]
_QUESTION_FIELDS = (
    "question", "query", "message", "q", "prompt", "input", "user_input", "user_query", "text", "search", "content",
)  # fmt: skip
# a description may refer to itself
_MAX_REFERENCES = 8  # followed for one field
_MAX_DEPTH = 4  # nested objects that are searched for the question


def make_body(openapi: Any, path: str) -> Any:
    """Return the request template that an OpenAPI description defines for a path; None if it has no question field."""
    steps = ("paths", path, "post", "requestBody", "content", "application/json", "schema")
    schema = jmespath.search(".".join(map(json.dumps, steps)), openapi)
    template = _make_template(schema, openapi) if schema else None
    return template if isinstance(template, Mapping) else None


def _make_template(schema: Any, root: Mapping[str, Any], depth: int = _MAX_DEPTH) -> Any:
    schema = _resolve(schema, root)
    fields = schema.get("properties")
    if not isinstance(fields, Mapping) or not depth:
        return "{question}" if _find_type(schema) == "string" else None
    inner = {name: _resolve(field, root) for name, field in fields.items()}
    needed = schema.get("required")
    required = {name: _choose_value(inner[name]) for name in inner if isinstance(needed, list) and name in needed}
    questions = ((name, _make_template(inner.get(name), root, depth - 1)) for name in _QUESTION_FIELDS)
    chat = [("messages", MESSAGES)] if _find_type(inner.get("messages")) == "array" else []
    name, body = next((pair for pair in chain(questions, chat) if pair[1] is not None), ("", None))
    template = {**required, name: body}
    return None if None in template.values() else template


def _choose_value(schema: Mapping[str, Any]) -> Any:
    """Return a value for a required field: its default, constant, first listed value or example, or an empty value."""
    stated = jmespath.search("not_null(default, const, enum[0], examples[0], example)", schema)
    empty: dict[str, Any] = {"array": [], "object": {}, "boolean": False}
    return empty.get(_find_type(schema)) if stated is None else stated


def _find_type(schema: Any) -> str:
    """Return the type of a schema, of several the first that is not null; empty if it states none."""
    kind = jmespath.search("not_null(type[?@!='null'] | [0], type)", schema)
    return kind if isinstance(kind, str) else ""


def _resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its references resolved; of several alternatives, the first that is not null."""
    for _ in range(_MAX_REFERENCES):
        reference = jmespath.search('"$ref"', schema)
        chosen = jmespath.search("not_null(anyOf, oneOf, allOf)[?type!='null'] | [0]", schema)
        if isinstance(reference, str):
            steps = reference.removeprefix("#/").split("/")
            schema = jmespath.search(".".join(map(json.dumps, steps)), root)
        elif chosen is not None:
            schema = chosen
        else:
            break
    return schema if isinstance(schema, Mapping) else {}
