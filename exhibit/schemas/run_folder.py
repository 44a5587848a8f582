"""Reads a run's folder lazily; `evaluation.runs.RunResults` computes the means from its rows."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from exhibit.schemas import run as files
from exhibit.schemas.bundle import CORPUS, read_text
from exhibit.schemas.errors import BundleError
from exhibit.schemas.parsing import format_faults

_ROUNDING = 1e-9  # tolerance for the rounding error when the same sum is computed in another order
_SECRET = re.compile(r"(?:^|[_.-])(?:api_?key|token|secret|password|authorization)$", re.IGNORECASE)


def _validate(content: str | bytes, where: object, expected: TypeAdapter[Any]) -> Any:
    try:
        return expected.validate_json(content, strict=True)
    except ValidationError as error:
        fault = f"{format_faults(error, most=1)}; run the evaluation again"
        raise BundleError(f"{where}: not in the format that evaluate_rag.py writes: {fault}") from error


def _read(path: Path) -> Any:
    return _validate(read_text(path), path, files.FILES[path.name])


class RunRows:
    """The questions of a run by their numbers from 0; each is read from disk when it is accessed."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self.names = list(names)
        self._lines: list[tuple[str, Path, int, int]] = []
        for name in self.names:
            path, start = folder / name / files.RESULTS, 0
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():  # a blank line is not a row, but counts as a line
                        self._lines.append((name, path, number, start))
                    start += len(line)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, at: int) -> files.RunQuestion:
        name, path, number, start = self._lines[at]
        with path.open("rb") as file:
            file.seek(start)
            row: files.RunQuestion = _validate(file.readline(), f"{path}: line {number}", files.QUESTION)
        return row if row.dataset == name else row.model_copy(update={"dataset": name})

    def __iter__(self) -> Iterator[files.RunQuestion]:
        """Yield every question in the order of the files; only one question is in memory at a time."""
        return map(self.__getitem__, range(len(self)))


class RunFolder:
    """A finished run; each file is read on first access and validated against its model."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise BundleError(f"{folder}: no such run; give the folder of a run, such as results/RUN")

    @cached_property
    def name(self) -> str:
        return self.folder.resolve().name

    @cached_property
    def config(self) -> files.RunConfig:
        """The requested configuration; raise if the folder is not a run, or a run of another format version."""
        path = self.folder / files.CONFIG
        if not path.is_file():
            raise BundleError(f"{path}: missing; {self.folder} is not a run of evaluate_rag.py")
        config: files.RunConfig = _read(path)
        return config

    @cached_property
    def provenance(self) -> files.Provenance:
        """The run's provenance; without `provenance.json`, only the time at which `config.json` was written."""
        known: files.Provenance = self.read_file(files.PROVENANCE)
        if known.started:
            return known
        began = datetime.fromtimestamp((self.folder / files.CONFIG).stat().st_mtime, UTC)
        return known.model_copy(update={"started": began.isoformat(timespec="seconds")})

    @property
    def datasets(self) -> list[str]:
        return list(self.config.datasets)

    @cached_property
    def rows(self) -> RunRows:
        """Every question with its reply; raise if the run stopped before all questions were answered."""
        missing = [name for name in self.datasets if not (self.folder / name / files.RESULTS).is_file()]
        if missing or not self.datasets:
            what = f"no results of {', '.join(missing)}" if missing else "it has no results"
            advice = f"the run was stopped: continue it with --resume --run-name {self.folder.name}"
            raise BundleError(f"{self.folder}: {what}; {advice}")
        return RunRows(self.folder, self.datasets)

    def rows_of(self, dataset: str) -> RunRows:
        return RunRows(self.folder, [dataset])

    def content_of(self, row: files.RunQuestion) -> str:
        """Return a digest of question, answer, gold and documents; in two runs, equal digests are the same question."""
        gold = sorted((passage.filename or "", passage.text or "", repr(passage.places)) for passage in row.gold)
        names = sorted({name for name in (row.filename, *(passage.filename for passage in row.gold)) if name})
        documents = [(name, self._checksums.get((row.dataset, name))) for name in names]
        content = json.dumps([row.question, row.truth, row.is_impossible, gold, documents])
        return hashlib.sha256(content.encode()).hexdigest()[:32]  # 128 bits

    @cached_property
    def _checksums(self) -> dict[tuple[str, str], str | None]:
        """The sha256 of each dataset's documents by file name, which is unique in a bundle."""
        return {
            (dataset, path.rpartition("/")[2]): sha256
            for dataset, known in self.provenance.data.items()
            for path, sha256 in known.items()
            if path.startswith(f"{CORPUS}/")
        }

    def read_file(self, name: str, dataset: str = "") -> Any:
        """Return the content of a file of the run or of a dataset; an empty model if the file is missing."""
        path = self.folder / dataset / name
        return _read(path) if path.is_file() else files.FILES[name].validate_python({})

    @cached_property
    def settings(self) -> dict[str, str]:
        """The configuration without secrets and empty values; nested names are joined by dots."""
        return dict(_flatten_settings(self.config.model_dump(exclude_unset=True)))


def find_difference(stored: files.Means, given: files.Means) -> str:
    """Return the first difference between the stored means and those of the rows, without intervals; "" if none."""
    for name, estimate in stored.items():
        other = given.get(name, files.Estimate(None, 0, estimate.errors))
        for field in ("mean", "n", "errors"):
            a, b = getattr(estimate, field), getattr(other, field)
            if a != b and (None in (a, b) or not math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=_ROUNDING)):
                return f"{name}: {field} is {a}, but the rows give {b}"
    return next((f"{name}: is in the rows, but not in the summary" for name in given if name not in stored), "")


def is_secret_setting(name: str) -> bool:
    """Return whether a setting holds a secret: `judge.api_key` does, `max_tokens` and `key_field` do not."""
    return _SECRET.search(name) is not None


def _flatten_settings(config: dict[str, Any], under: str = "") -> Iterator[tuple[str, str]]:
    for key, value in config.items():
        name = f"{under}{key}"
        if is_secret_setting(name) or value is None or value in ("", [], {}):
            continue
        if isinstance(value, dict):
            yield from _flatten_settings(value, f"{name}.")
        else:
            parts = value if isinstance(value, list | tuple) else [value]
            yield name, ", ".join(part if isinstance(part, str) else json.dumps(part) for part in parts)
