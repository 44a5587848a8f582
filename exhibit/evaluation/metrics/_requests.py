"""Parse metric requests: `ndcg`, `ndcg@20`, or with parameters, `ndcg(cutoff=20)`.

The parameters of a metric are the keyword-only arguments of its `measure`, with their types and defaults.
"""

import inspect
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, get_type_hints

from pydantic import TypeAdapter, ValidationError

from exhibit.schemas.errors import ToolkitError

_REQUEST = re.compile(r"([^()]+)(?:\(([^()]*)\))?")
_COMMA = re.compile(r",(?![^()]*\))")


class Request(NamedTuple):
    """A requested metric and the parameters in its brackets, such as `ndcg(cutoff=20)`."""

    name: str
    parameters: Mapping[str, Any]

    def __str__(self) -> str:
        parameters = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.name}({parameters})" if parameters else self.name


def split_requests(text: str) -> list[str]:
    """Return the metrics of a comma-separated list; `answer-f1`, as in the help text, becomes `answer_f1`."""
    # commas and hyphens inside brackets belong to the metric's parameters
    parts = (part.strip().partition("(") for part in _COMMA.split(text) if part.strip())
    return [name.replace("-", "_") + sign + rest for name, sign, rest in parts]


def parse_request(text: str) -> Request:
    """Return the request that a text such as `ndcg(cutoff=20)` describes."""
    parsed = _REQUEST.fullmatch(text.strip())
    if parsed is None:
        raise ToolkitError(f"--metrics {text}: write NAME, NAME@K or NAME(parameter=value), such as ndcg(cutoff=20)")
    parameters: dict[str, Any] = {}
    for pair in (pair for pair in (parsed[2] or "").split(",") if pair.strip()):
        name, sign, value = pair.partition("=")
        if not sign:
            raise ToolkitError(f"--metrics {text}: {pair.strip()!r} is not parameter=value, such as cutoff=20")
        parameters[name.strip()] = _parse_value(value.strip())
    return Request(parsed[1].strip().replace("-", "_"), parameters)


def name_request(text: str) -> str:
    """Return the name of a requested metric in the results: `ndcg@20` for `ndcg(cutoff=20)`."""
    name, parameters = parse_request(text)
    return f"{name}@{parameters['cutoff']}" if "cutoff" in parameters and "@" not in name else name


def parameters_of(module: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters that a metric declares, with their types and defaults."""
    types = get_type_hints(module.measure, include_extras=True)
    return {
        name: one.replace(annotation=types.get(name, Any))
        for name, one in inspect.signature(module.measure).parameters.items()
        if one.kind is inspect.Parameter.KEYWORD_ONLY
    }


def check_parameters(request: Request, module: Any) -> dict[str, Any]:
    """Return the validated parameters of a request; raise one error that lists every invalid one."""
    declared = parameters_of(module)
    faults, values = [], {}
    for name, value in request.parameters.items():
        if name not in declared:
            faults.append(f"no parameter {name!r}; the parameters are {', '.join(declared) or 'none'}")
            continue
        try:
            values[name] = TypeAdapter(declared[name].annotation).validate_python(value)
        except ValidationError as error:
            faults += [f"{name}: {one['msg']}" for one in error.errors()[:1]]
    if faults:
        raise ToolkitError(f"{request}: {'; '.join(faults)}")
    return values


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
