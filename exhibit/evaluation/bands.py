"""Classify a mean as good, acceptable or poor, by bounds that a user can set."""

import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exhibit.evaluation.metrics import OTHER_NAMES
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_toml

Band = Literal["Good", "Acceptable", "Poor"]

_DEFAULT = Path(__file__).with_name("bands.toml")
_DATASETS = "datasets"
_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip


class Bound(NamedTuple):
    """A condition such as `> 0.8` that rates the mean of a metric as good or poor."""

    sign: str
    value: float

    @classmethod
    def parse(cls, text: object, *, where: str) -> "Bound":
        """Return the bound in a text such as `>= 0.8`; for an invalid text, raise an error with valid examples."""
        match = _BOUND.fullmatch(text) if isinstance(text, str) else None
        if not match:
            raise ToolkitError(f'{where}: {text!r} is not a bound; write "> 0.8", ">= 1.0" or "< 0.5"')
        return cls(match[1], float(match[2]))

    def holds(self, value: float) -> bool:
        return _SIGNS[self.sign](value, self.value)

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


class Bands(NamedTuple):
    """The bounds for a good and for a poor value of a metric; a value that satisfies neither is acceptable."""

    good: Bound
    poor: Bound

    def band(self, value: float) -> Band:
        """Return `Good`, `Acceptable` or `Poor` for a value."""
        if self.good.holds(value):
            return "Good"
        return "Poor" if self.poor.holds(value) else "Acceptable"


class Scale(NamedTuple):
    """The bands of each metric, and the bands that replace them for single datasets."""

    general: Mapping[str, Bands]
    own: Mapping[str, Mapping[str, Bands]]

    def of(self, dataset: str, metric: str) -> Bands | None:
        """Return a metric's bands for a dataset, or None; bands for `char_recall` also apply to `char_recall@8`."""
        tables = (self.own.get(dataset, {}), self.general)
        found = (table.get(name) for table in tables for name in (metric, metric.partition("@")[0]))
        return next((bands for bands in found if bands), None)


def read_scale(path: Path | None = None) -> Scale:
    """Return the bands in a TOML file; without a path, the shipped ones; for the path `seed`, the second seed's."""
    file = _DEFAULT.with_name("bands_seed.toml") if path == Path("seed") else path or _DEFAULT
    content = parse_toml(read_text(file).removeprefix("\ufeff"), where=file)
    by_dataset = content.pop(_DATASETS, {})
    if not isinstance(by_dataset, dict):
        raise ToolkitError(f"{file}: {_DATASETS}: must be tables, such as [datasets.cuad.answer_f1]")
    tables = {name: _read(table, f"{file}: {_DATASETS}.{name}") for name, table in by_dataset.items()}
    return Scale(_read(content, str(file)), tables)


def _read(content: Any, where: str) -> dict[str, Bands]:
    bands: dict[str, Bands] = {}
    for name, bounds in dict(content).items() if isinstance(content, dict) else ():
        if not isinstance(bounds, dict) or set(bounds) != {"good", "poor"}:
            raise ToolkitError(f'{where}: {name}: write good = "> 0.8" and poor = "< 0.5", and nothing else')
        good, poor = (Bound.parse(bounds[key], where=f"{where}: {name}.{key}") for key in ("good", "poor"))
        if good.sign[0] == poor.sign[0]:
            raise ToolkitError(
                f"{where}: {name}: good ({good}) and poor ({poor}) have the same direction; use > for one and < for "
                "the other"
            )
        bands[OTHER_NAMES.get(str(name), str(name))] = Bands(good, poor)
    return bands
