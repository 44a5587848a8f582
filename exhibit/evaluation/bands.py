"""Classify a mean as good, acceptable or poor, by bounds that a user can set."""

import operator
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from exhibit.evaluation.metrics import OTHER_NAMES
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_toml

Band = Literal["Good", "Acceptable", "Poor"]

_DEFAULT = Path(__file__).with_name("bands.toml")
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


Scale = Mapping[str, Bands]
"""The bands of each metric that has bands."""


def find_bands(scale: Scale, metric: str) -> Bands | None:
    """Return a metric's bands, or None; bands for `char_recall` also apply to `char_recall@8`."""
    return scale.get(metric) or scale.get(metric.partition("@")[0])


def read_scale(path: Path | None = None) -> Scale:
    """Return the bands in a TOML file; without a path, the shipped ones; for the path `seed`, the second seed's."""
    file = _DEFAULT.with_name("bands_seed.toml") if path == Path("seed") else path or _DEFAULT
    scale: dict[str, Bands] = {}
    for name, bounds in parse_toml(read_text(file).removeprefix("\ufeff"), where=file).items():
        if not isinstance(bounds, dict) or set(bounds) != {"good", "poor"}:
            raise ToolkitError(f'{file}: {name}: write good = "> 0.8" and poor = "< 0.5", and nothing else')
        good, poor = (Bound.parse(bounds[key], where=f"{file}: {name}.{key}") for key in ("good", "poor"))
        if good.sign[0] == poor.sign[0]:
            fault = f"good ({good}) and poor ({poor}) have the same direction; use > for one and < for the other"
            raise ToolkitError(f"{file}: {name}: {fault}")
        scale[OTHER_NAMES.get(name, name)] = Bands(good, poor)
    return scale
