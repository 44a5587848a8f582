"""Classify a mean as good, acceptable or poor, by bounds that a user can set."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from exhibit.evaluation.metrics import OTHER_NAMES
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_toml

Band = Literal["Good", "Acceptable", "Poor"]

DEFAULT = Path(__file__).with_name("bands.toml")
_DATASETS = "datasets"
_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Bound:
    """A condition such as `> 0.8`, by which the mean of a metric is rated good or poor."""

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
        """Return whether a value satisfies the bound."""
        return _SIGNS[self.sign](value, self.value)

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


@dataclass(frozen=True)
class Bands:
    """The bounds for a good and for a poor value of a metric; a value that satisfies neither is acceptable."""

    good: Bound
    poor: Bound

    def band(self, value: float) -> Band:
        """Return `Good`, `Acceptable` or `Poor` for a value."""
        if self.good.holds(value):
            return "Good"
        return "Poor" if self.poor.holds(value) else "Acceptable"


@dataclass(frozen=True)
class Scale:
    """The bands of each metric: the bounds of good, acceptable and poor values.

    `general` maps a metric to its bands. `own` maps a dataset to bands that replace them for this dataset.
    """

    general: Mapping[str, Bands]
    own: Mapping[str, Mapping[str, Bands]]

    def of(self, dataset: str, metric: str) -> Bands | None:
        """Return the bands of a metric for a dataset; None if none are set.

        The bands of `char_recall` also apply to `char_recall@8`, unless `char_recall@8` has bands of its own.
        """
        for bands in (self.own.get(dataset, {}), self.general):
            bands_of_metric = bands.get(metric) or bands.get(metric.partition("@")[0])
            if bands_of_metric:
                return bands_of_metric
        return None


def read_scale(path: Path | None = None) -> Scale:
    """Return the bounds by which a metric's mean is rated Good, Acceptable or Poor, read from a TOML file.

    Without a path, the default file is read. A path that is only a name, such as `seed`, selects a file that is
    shipped with Exhibit.
    """
    file = path or DEFAULT
    if not file.suffix and len(file.parts) == 1 and not file.exists():
        named = DEFAULT.with_name(f"{DEFAULT.stem}_{file}{DEFAULT.suffix}")
        if not named.is_file():
            names = sorted(one.stem.partition("_")[2] for one in DEFAULT.parent.glob(f"{DEFAULT.stem}_*.toml"))
            raise ToolkitError(f"{file}: no such file, and no bands are shipped under that name; shipped are {names}")
        file = named
    content = parse_toml(read_text(file).removeprefix("\ufeff"), where=file)
    own = content.pop(_DATASETS, {})
    if not isinstance(own, dict):
        raise ToolkitError(f"{file}: {_DATASETS}: must be tables, such as [datasets.cuad.answer_f1]")
    return Scale(
        _read(content, file, ""), {name: _read(table, file, f"{_DATASETS}.{name}.") for name, table in own.items()}
    )


def _read(content: Any, file: Path, under: str) -> dict[str, Bands]:
    bands: dict[str, Bands] = {}
    for name, bounds in dict(content).items() if isinstance(content, dict) else ():
        where = f"{file}: {under}{name}"
        if not isinstance(bounds, dict) or set(bounds) != {"good", "poor"}:
            raise ToolkitError(f'{where}: write good = "> 0.8" and poor = "< 0.5", and nothing else')
        good, poor = (Bound.parse(bounds[key], where=f"{where}.{key}") for key in ("good", "poor"))
        if good.sign[0] == poor.sign[0]:
            raise ToolkitError(
                f"{where}: good ({good}) and poor ({poor}) have the same direction; use > for one and < for the other"
            )
        bands[OTHER_NAMES.get(str(name), str(name))] = Bands(good, poor)
    return bands
