"""File names that other systems cannot hold, or that nobody could download: said before, never changed."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PureWindowsPath

_RESERVED = frozenset('<>:"\\|?*')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"}
)
_LONGEST_NAME = 255  # of NTFS, in units of UTF-16
_LONGEST_PATH = 200
"""Windows stops at 260 with the folder in front, which is seldom shorter than 60."""


def warnings_for(paths: Iterable[str]) -> list[str]:
    """Return what is wrong with the paths on Windows, or where upper and lower case are one."""
    listed = sorted(paths)
    warnings = [f"{path}: {reason}" for path in listed for reason in _faults(path)]
    alike: dict[str, list[str]] = defaultdict(list)
    for path in listed:
        alike[unicodedata.normalize("NFC", path).casefold()].append(path)
    for same in alike.values():
        if len(same) > 1:
            warnings.append(f"{' and '.join(same)}: one file where upper and lower case are not told apart")
    return warnings


def refused_by_clients(paths: Iterable[str]) -> list[str]:
    """Return the paths that the Hub's clients do not download, on any system: they could lead out of a folder."""
    return sorted(path for path in paths if _leads_out(path))


def _leads_out(path: str) -> bool:
    parts = [PureWindowsPath(part) for part in path.split("/")]
    return ".." in path.replace("\\", "/").split("/") or any(part.drive or part.root for part in parts)


def _faults(path: str) -> Iterator[str]:
    for part in path.split("/"):
        held = sorted({c for c in part if c in _RESERVED or ord(c) < 32})
        if held:
            yield f"Windows allows no {' '.join(c if c.isprintable() else repr(c) for c in held)} in a name"
        if part.partition(".")[0].rstrip(" ").lower() in _DEVICES:
            yield f"{part.partition('.')[0]!r} is a device on Windows"
        if part.endswith((".", " ")):
            yield "Windows drops the dot or space at the end"
        if _units(part) > _LONGEST_NAME:
            yield f"longer than the {_LONGEST_NAME} characters that Windows holds"
    if _units(path) > _LONGEST_PATH:
        yield f"{_units(path)} characters: with a folder in front, more than the 260 that Windows takes by default"


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
