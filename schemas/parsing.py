"""JSON and TOML from outside: what cannot be read is one error that says where, never a traceback."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from exhibit.schemas.errors import BundleError, ToolkitError


def parse_json(text: str | bytes, *, where: object, error: type[ToolkitError] = BundleError) -> Any:
    """Return parsed JSON; raise `error` where it is none, nested too deep, or has a number too long to read."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as fault:
        raise error(f"{where}: not JSON: {fault.msg} at line {fault.lineno}") from fault
    except UnicodeDecodeError as fault:
        raise error(f"{where}: not UTF-8 (byte {fault.start})") from fault
    except RecursionError:
        raise error(f"{where}: JSON that is nested too deep") from None
    except ValueError as fault:  # Python reads no number of more than 4,300 digits
        raise error(f"{where}: JSON with a number that is too long") from fault


_LARGEST_TOML = 256 << 10
"""Characters: the largest of ours has 8,000, and a file of this size takes Python about a second."""
_DEEPEST_KEY = 100
"""Parts of a dotted key: each is looked up from the top, so that time grows with their square."""


def parse_toml(text: str, *, where: object) -> dict[str, Any]:
    """Return parsed TOML; raise ToolkitError where it is none, too large, nested too deep, or has too long a number."""
    if len(text) > _LARGEST_TOML:
        raise ToolkitError(f"{where}: {len(text)} characters, more than any settings file has ({_LARGEST_TOML})")
    if any(line.partition("=")[0].count(".") > _DEEPEST_KEY for line in text.split("\n")):
        raise ToolkitError(f"{where}: TOML that is nested too deep")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ToolkitError(f"{where}: TOML that is nested too deep") from None
    except ValueError as fault:
        raise ToolkitError(f"{where}: not TOML: {fault}") from fault
