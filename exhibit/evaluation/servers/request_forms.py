"""Find the form of request that a server needs.

The form comes from the server's OpenAPI description or schema; without one, the usual forms are tried.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from exhibit.evaluation.cases import Case
from exhibit.evaluation.servers.reading import Read, ReplyReader
from exhibit.evaluation.servers.shapes import NAMES
from exhibit.evaluation.servers.system import PollRequest, System
from exhibit.storage.http_policy import Deadline, HttpError


class Probed(Protocol):
    """The attributes and methods of a server that are used to find out which form of request it accepts."""

    name: str
    url: str
    system: System
    values: dict[str, Any]
    template: Any
    reader: ReplyReader
    poll: PollRequest | None

    def exchange(self, case: Case, deadline: Deadline, collection: str = "") -> Read: ...

    def fetch(self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST", **given: Any) -> Any: ...


_SECONDS = 10.0
"""Seconds for one description; a server that is slower is asked without it."""
_DEEPEST = 8
"""The number of nested references that are followed: a description may refer to itself."""


class MadeRequest(NamedTuple):
    """A request template and its origin: the path of the server's API description, or a note in words."""

    template: Any
    where: str


def find_missing_fields(error: HttpError) -> list[str]:
    """Return the fields that a server reports as missing: `loc` in the errors of FastAPI and pydantic."""
    try:
        faults = json.loads(error.body)["detail"]
        places = [fault["loc"] for fault in faults if "missing" in str(fault.get("type", "missing"))]
        names = [".".join(str(part) for part in place if part != "body") for place in places]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    return [name for name in dict.fromkeys(names) if name]


def list_served_paths(server: Probed) -> list[str]:
    """Return the first ten POST paths in a server's OpenAPI description; an empty list without a description."""
    paths = _fetch_description(server, "/openapi.json", origin=True).get("paths")
    paths = paths if isinstance(paths, Mapping) else {}
    return [str(path) for path, methods in paths.items() if isinstance(methods, Mapping) and "post" in methods][:10]


def list_requests(server: Probed) -> Iterator[MadeRequest]:
    """Yield the requests to try: the request that the server's own description defines.

    If there is no description, yield a few simple requests, such as `{"question": …}` and `{"query": …}`.
    """
    made = make_request(server)
    if made is not None:
        yield made._replace(where=f"as its {made.where} says")
    elif not server.system.ask.described and "request" in server.values and not server.values["request"]:
        for name in NAMES["asked"][:_USUAL]:
            yield MadeRequest({name: "{question}"}, f"with `{name}`, as many servers expect it")


_USUAL = 6
"""The number of usual names of the question that are tried where a server has no description."""


def make_request(server: Probed) -> MadeRequest | None:
    """Return a request that is built from the server's OpenAPI description or JSON schema.

    None if the server has no such description, or if the user has configured a request.
    """
    paths = server.system.ask.described
    if paths:
        schema = _fetch_description(server, paths["path"])
        inner = _make_template(schema, schema)
        own = server.values[paths["setting"]] == server.system.settings[paths["setting"]].default
        body = server.system.ask.body
        setting = f"{{{paths['setting']}}}"
        filled = {key: inner if value == setting else value for key, value in body.items()}
        return MadeRequest({**filled, "config": {}}, paths["path"]) if inner is not None and own else None
    if "request" not in server.values or server.values["request"]:
        return None
    for where, origin in (("/openapi.json", True), ("/input_schema", False), ("/schema", False), ("/schema", True)):
        schema = _fetch_description(server, where, origin=origin)
        wanted = _find_schema(schema, urlsplit(server.url).path) if "paths" in schema else schema
        template = _make_template(wanted, schema) if wanted else None
        if isinstance(template, Mapping):
            return MadeRequest({"input": template} if where == "/input_schema" else template, where)
    return None


def _fetch_description(server: Probed, path: str, *, origin: bool = False) -> Mapping[str, Any]:
    """Return the JSON object at a path of the server, such as its OpenAPI description or a schema.

    The path is below the server's address or, with `origin`, below the root of its host. Return an empty
    mapping if the request fails or the reply is not an object.
    """
    parts = urlsplit(server.url)
    base = f"{parts.scheme}://{parts.netloc}" if origin else server.url.removesuffix("/invoke")
    try:
        reply = server.fetch(path, deadline=Deadline(_SECONDS), method="GET", url=base)
    except HttpError:
        return {}
    return reply if isinstance(reply, Mapping) else {}


def _find_schema(openapi: Mapping[str, Any], path: str) -> Any:
    """Return the schema of the JSON body that a path accepts by POST; None if it is not described."""
    paths = openapi.get("paths")
    held: Any = paths.get(path) or paths.get(path.rstrip("/")) if isinstance(paths, Mapping) else None
    for key in ("post", "requestBody", "content", "application/json", "schema"):
        held = held.get(key) if isinstance(held, Mapping) else None
    return held


def _make_template(schema: Any, root: Mapping[str, Any], depth: int = _DEEPEST) -> Any:
    """Return a request template that a schema allows, with `{question}` in the field for the question.

    None if the schema has no field for a question.
    """
    schema = _resolve(schema, root, depth)
    fields = schema.get("properties")
    if not isinstance(fields, Mapping) or not depth:
        return "{question}" if schema.get("type") == "string" else None
    template: dict[str, Any] = {}
    asked = False
    names = NAMES["asked"]
    for name in sorted(fields, key=lambda name: names.index(name) if name in names else len(names)):
        one = _resolve(fields[name], root, depth)
        if name in NAMES["history"] and one.get("type") == "array":
            turn = [{"role": "user", "content": "{question}"}] if name == "messages" and not asked else []
            template[name] = ["{history}", *turn]
            asked = asked or bool(turn)
        elif name in names and not asked and (inner := _make_template(one, root, depth - 1)) is not None:
            template[name], asked = inner, True
        elif name in (schema.get("required") or ()):
            template[name] = _find_usual(one)
    return template if asked and None not in template.values() else None


def _find_usual(schema: Mapping[str, Any]) -> Any:
    """Return a value for a field of a request, from the field's JSON schema.

    The value is the first of these that the schema has: the default, the constant, a listed value or an
    example. If the schema has none of them, the value depends on the type: [] for an array, {} for an object,
    False for a boolean, and None for any other type.
    """
    listed = [*(schema.get("enum") or ()), *(schema.get("examples") or ())]
    choices = [schema.get("default"), schema.get("const"), *listed, schema.get("example")]
    empty: dict[Any, Any] = {"array": [], "object": {}, "boolean": False}
    given = next((value for value in choices if value is not None), None)
    return empty.get(schema.get("type")) if given is None else given


def _resolve(schema: Any, root: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    """Return a schema with its references resolved.

    If the schema has several alternatives, the first alternative that is not null is used. The result is empty
    if the references are nested too deeply.
    """
    for _ in range(depth):
        if not isinstance(schema, Mapping):
            return {}
        several = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if isinstance(schema.get("$ref"), str):
            held: Any = root
            for part in schema["$ref"].removeprefix("#/").split("/"):
                held = held.get(part) if isinstance(held, Mapping) else None
            schema = held
        elif isinstance(several, list) and several:
            chosen = [one for one in several if not (isinstance(one, Mapping) and one.get("type") == "null")]
            schema = chosen[0] if chosen else {}
        else:
            return schema
    return {}
