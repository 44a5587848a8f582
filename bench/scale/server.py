"""A Milvus server on this machine as it is seen from outside: what its processes hold, and what its folder takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exhibit.schemas.errors import ToolkitError

_MB = 1e6
_NOT_DATA = frozenset({"bin", "logs", "configs"})
"""Folders of the program itself, which has 450 MB: what is left is the data."""


@dataclass(frozen=True)
class Server:
    """A server by its address and the folder that it was started with (`milvus-server --data`)."""

    uri: str
    folder: Path

    def memory(self, *, proc: Path = Path("/proc")) -> float:
        """Return the MB that the processes hold whose program lies in the folder; raise where there are none."""
        inside = self.folder.resolve()
        held = [_resident(entry) for entry in proc.glob("[0-9]*") if inside in _program(entry).parents]
        if not held:
            raise ToolkitError(f"{self.folder}: no server runs from there; start one with milvus-server --data")
        return sum(held) / _MB

    def disk(self) -> float:
        """Return the MB of the data."""
        parts = [part for part in self.folder.iterdir() if part.name not in _NOT_DATA]
        return sum(_size(file) for part in parts for file in (part, *part.rglob("*"))) / _MB


def _program(process: Path) -> Path:
    try:
        return (process / "exe").readlink()
    except OSError:  # it has ended, or belongs to the system
        return Path()


def _resident(process: Path) -> int:
    told = (process / "status").read_text(encoding="utf-8").partition("VmRSS:")[2].split()
    return 1024 * int(told[0]) if told else 0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except FileNotFoundError:  # the server has just put it elsewhere
        return 0
