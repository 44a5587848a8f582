"""YAML for the card's head: blocks of quoted text, so that no title can break it."""

from __future__ import annotations

import json
import re
from typing import Any

# YAML forbids the first, and takes the second for the end of a line
_UNSAFE = re.compile("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029\ufeff]")
_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9_]*", re.IGNORECASE)


def dump(value: dict[str, Any]) -> str:
    """Return a mapping as YAML, in its own order."""
    return "\n".join(_block(value)) + "\n"


def quoted(text: str) -> str:
    """Return text as a YAML string, plain only where nothing can be guessed wrong."""
    if _PLAIN.fullmatch(text):
        return text
    return _UNSAFE.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return "\\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def _block(value: Any) -> list[str]:
    lines: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            nested = isinstance(item, dict | list) and bool(item)
            lines.append(f"{quoted(key)}:" if nested else f"{quoted(key)}: {_scalar(item)}")
            # a list may stand at its key's own indent, as the Hub's own cards write it
            lines += [line if isinstance(item, list) else f"  {line}" for line in _block(item)] if nested else []
        return lines
    for item in value:
        if isinstance(item, dict | list) and item:
            first, *rest = _block(item)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        else:
            lines.append(f"- {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else json.dumps(value)
