"""What a metric says about itself: tables, the report and `diff` know it from here and from nowhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from exhibit.evaluation.metrics._options import K

Unit = Literal["share", "count", "seconds", "tokens", "characters", "currency", "mark", "number"]
"""`share`: from 0 to 1, shown in per cent by the report; `mark`: from 1 to 5; `number`: of no unit."""
Better = Literal["more", "less", "neither"]
Group = Literal["Retrieval", "Answers", "Citations", "Cost", "Other"]
GROUPS: tuple[Group, ...] = get_args(Group)
Need = Literal[
    "gold spans",
    "gold text",
    "gold files",
    "grades",
    "truth",
    "expected",
    "label",
    "answer",
    "impossible",
    "answerable",
    "passages",
    "passage files",
    "judge",
    "corpus",
    "pages",
    "usage",
    "clock",
    "registers",
    "confidence",
]
"""What a question, its reply or the run must have for the metric to apply: `_scope` holds every metric to it."""

_UNITS = {"seconds": "s", "mark": "/5", "tokens": "tokens", "characters": "chars"}


@dataclass(frozen=True)
class About:
    """A metric in words a reader who is no engineer can follow."""

    title: str
    meaning: str
    group: Group = "Other"
    unit: Unit = "share"
    better: Better = "more"
    needs: tuple[Need, ...] = ()
    depths: tuple[int, ...] = (K,)
    """Of a metric that is read at several depths (`drm@8`): those that a short table shows."""
    short: bool = True
    """Whether a short table shows it at all; the files and the long table have everything."""
    gate: bool = True
    """Whether a change for the worse fails `--fail-on-regression`; not for what depends on the machine."""

    @property
    def sign(self) -> str:
        """The unit as it stands behind a figure; nothing for a share, a count and what nobody has described."""
        return _UNITS.get(self.unit, "")

    def improves(self, change: float) -> bool | None:
        """Return whether a change is for the better, None where neither way is."""
        if self.better == "neither":
            return None
        return change < 0 if self.better == "less" else change > 0

    def figure(self, value: float | None, *, signed: bool = False) -> str:
        """Return a value as a terminal shows it, without its unit: shares as 0.123."""
        if value is None or not math.isfinite(value):
            return "–"
        return f"{value:{'+' if signed else ''}{self._places(value)}}"

    def in_words(self, value: float | None) -> str:
        """Return a value as the report shows it, without its unit: shares in per cent."""
        if self.unit != "share" or value is None or not math.isfinite(value):
            return self.figure(value)
        return f"{100 * value:.1f}"

    def _places(self, value: float) -> str:
        if self.unit in ("share", "number"):
            return ".3f" if abs(value) < 10 else ",.0f"
        if self.unit in ("tokens", "characters"):
            return ",.0f"
        if self.unit == "currency":
            return ",.6f" if abs(value) < 0.01 else ",.4f"
        return ".2f"


def undescribed(name: str) -> About:
    """Return what is known of a metric that no file here yields: its name, and that no change of it is a judgment."""
    family = name.partition("@")[0]
    return About(family.replace("_", " "), name, unit="number", better="neither")
