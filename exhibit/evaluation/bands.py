"""Classify a mean as good, acceptable or poor, by bounds that a user can set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from exhibit.evaluation.metrics import OTHER_NAMES
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults, parse_toml

_DEFAULT = Path(__file__).with_name("bands.toml")
Bound = Annotated[str, Field(pattern=r"^(>=|<=|>|<)\s*-?[0-9]+(\.[0-9]+)?$")]
"""A condition for the mean of a metric, such as `> 0.8`."""


class Bands(BaseModel):
    """The bounds for a good and for a poor value of a metric; a value that satisfies neither is acceptable."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    good: Bound
    poor: Bound

    @model_validator(mode="after")
    def _check_directions(self) -> "Bands":
        if self.good[0] == self.poor[0]:
            raise ValueError("good and poor have the same direction; use > for one and < for the other")
        return self

    def band(self, value: float) -> Literal["Good", "Acceptable", "Poor"]:
        if _holds(self.good, value):
            return "Good"
        return "Poor" if _holds(self.poor, value) else "Acceptable"


def _holds(bound: str, value: float) -> bool:
    number = float(bound.lstrip("<=> "))
    if value == number:
        return "=" in bound
    return value > number if bound.startswith(">") else value < number


Scale = Mapping[str, Bands]
"""The bands of each metric that has bands."""
_SCALE = TypeAdapter(dict[str, Bands])


def find_bands(scale: Scale, metric: str) -> Bands | None:
    """Return a metric's bands, or None; bands for `char_recall` also apply to `char_recall@8`."""
    return scale.get(metric) or scale.get(metric.partition("@")[0])


def read_scale(path: Path | None = None) -> Scale:
    """Return the bands in a TOML file; without a path, the shipped ones; for the path `seed`, the second seed's."""
    file = _DEFAULT.with_name("bands_seed.toml") if path == Path("seed") else path or _DEFAULT
    try:
        scale = _SCALE.validate_python(parse_toml(read_text(file).removeprefix("\ufeff"), where=file))
    except ValidationError as error:
        advice = 'write good = "> 0.8" and poor = "< 0.5", and nothing else'
        raise ToolkitError(f"{file}: {format_faults(error)}; {advice}") from error
    return {OTHER_NAMES.get(name, name): bands for name, bands in scale.items()}
