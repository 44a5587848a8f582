"""Whether a run's files are what this project writes: a command that fails over one that is not says which, and where.

Runs travel, and are edited. They are not checked before they are read, which would take as long as reading them. When
a command fails over a run, this tells a damaged file, which is one line, from a fault of ours, which is a traceback.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from exhibit.evaluation.records import CONFIG, RESULTS
from exhibit.schemas.bundle import read_lines, read_text
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.parsing import parse_json

_Span = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Estimate(_Part):
    mean: FiniteFloat | None
    n: int
    errors: int
    ci95: Annotated[list[FiniteFloat | None], Field(min_length=2, max_length=2)]


class _Gold(_Part):
    filename: str | None = None
    text: str | None = None
    places: list[list[_Span]] = []
    pages: list[int] = []


class _PassageRecord(_Part):
    filename: str | None = None
    span: _Span | None = None
    page: int | None = None
    score: FiniteFloat | None = None
    text: str | None = None


class _Reply(_Part):
    answer: str | None = None
    citations: list[int] = []
    passages: list[_PassageRecord] = []
    seconds: FiniteFloat | None = None
    error: str
    usage: dict[str, FiniteFloat | None] = {}
    confidence: FiniteFloat | None = None


class _Repeat(_Part):
    error: str
    scores: dict[str, FiniteFloat | None]


class _Row(_Part):
    id: int | str
    question: str
    truth: str
    filename: str | None
    labels: dict[str, Any]
    gold: list[_Gold]
    reply: _Reply
    scores: dict[str, FiniteFloat | None]
    repeats: list[_Repeat] | None = None
    verdict: str | None = None


class _Config(_Part):
    datasets: dict[str, dict[str, Any]]
    config: dict[str, Any] = {}


class _Machine(_Part):
    system: str
    processor: str
    cores: int | None
    python: str


class _Provenance(_Part):
    started: str
    version: str
    commit: str | None = None
    machine: _Machine
    data: dict[str, dict[str, str | None]]


class _Ingestion(_Part):
    files: int
    pages: int
    chunks: int
    pages_per_second: FiniteFloat | None = None
    seconds: FiniteFloat | None = None
    set_aside: list[str]


_WHOLE: dict[str, TypeAdapter[Any]] = {
    CONFIG: TypeAdapter(_Config),
    "provenance.json": TypeAdapter(_Provenance),
    "summary.json": TypeAdapter(dict[str, _Estimate]),
    "breakdown.json": TypeAdapter(dict[str, dict[str, dict[str, _Estimate]]]),
    "ingestion.json": TypeAdapter(_Ingestion),
}
_ROW = TypeAdapter(_Row)


@contextmanager
def explained(folders: Iterable[Path]) -> Iterator[None]:
    """Raise BundleError where a file of these runs explains what fails in the block; any other error as it is."""
    try:
        yield
    except (ToolkitError, OSError):
        raise
    except Exception as error:
        fault = next((fault for folder in folders for fault in faults(folder)), None)
        if fault is None:
            raise
        raise BundleError(fault) from error


def folders_in(options: Namespace) -> list[Path]:
    """Return the folders that a command was given."""
    given = (one for value in vars(options).values() for one in (value if isinstance(value, list) else [value]))
    return [one for one in given if isinstance(one, Path) and one.is_dir()]


def faults(folder: Path) -> Iterator[str]:
    """Yield what is wrong with the files of a run, or of a folder of runs."""
    runs = [folder] if (folder / CONFIG).is_file() else sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
    for run in runs:
        for path in sorted([*run.glob("*.json"), *run.glob("*/*.json")]):
            if path.name in _WHOLE:
                yield from _faults(str(path), _WHOLE[path.name], read_text(path))
        for path in sorted(run.glob(f"*/{RESULTS}")):
            for number, line in enumerate(read_lines(path), 1):
                yield from _faults(f"{path}: line {number}", _ROW, line)


def _faults(where: str, expected: TypeAdapter[Any], text: str) -> Iterator[str]:
    try:
        expected.validate_python(parse_json(text, where=where))
    except ToolkitError as error:
        yield str(error)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "all of it"
        yield f"{where}: not as evaluate_rag.py writes it: {field}: {first['msg']}; run the evaluation again"
