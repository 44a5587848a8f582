"""Measures a Milvus server on this machine from outside: the memory of its processes, and the size of its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exhibit.schemas.errors import ToolkitError

_MB = 1e6
_NOT_DATA = frozenset({"bin", "logs", "configs"})
"""Folders of the program itself, which has 450 MB; the other folders are data."""


@dataclass(frozen=True)
class Server:
    """A Milvus server: its address, and the folder that it was started with (`milvus-server --data`)."""

    uri: str
    folder: Path

    def memory(self, *, proc: Path = Path("/proc")) -> float:
        """Return the memory in MB of all processes whose program is in the server's folder; raise if there are none."""
        inside = self.folder.resolve()
        held = [_measure_resident(entry) for entry in proc.glob("[0-9]*") if inside in _find_program(entry).parents]
        if not held:
            raise ToolkitError(f"{self.folder}: no server runs from this folder; start one with milvus-server --data")
        return sum(held) / _MB

    def disk(self) -> float:
        """Return the size in MB of the server's data on disk, without its program, logs and configuration."""
        parts = [part for part in self.folder.iterdir() if part.name not in _NOT_DATA]
        return sum(_measure_size(file) for part in parts for file in (part, *part.rglob("*"))) / _MB


def _find_program(process: Path) -> Path:
    try:
        return (process / "exe").readlink()
    except OSError:  # the process has ended, or belongs to the system
        return Path()


def _measure_resident(process: Path) -> int:
    told = (process / "status").read_text(encoding="utf-8").partition("VmRSS:")[2].split()
    return 1024 * int(told[0]) if told else 0


def _measure_size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except FileNotFoundError:  # the server has just moved the file
        return 0
