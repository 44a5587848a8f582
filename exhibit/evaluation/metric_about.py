"""The description of a metric: its title, meaning, unit, direction, group and needs."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

K = 10
"""The cutoff of recall@K, nDCG@K and the chunk economy."""

Unit = Literal["share", "count", "seconds", "tokens", "characters", "currency", "mark", "number"]
"""`share`: from 0 to 1, shown in per cent by the report; `mark`: from 1 to 5; `number`: without a unit."""
Better = Literal["more", "less", "neither"]
Group = Literal["Retrieval", "Stages", "Answers", "Citations", "Cost", "Other"]
GROUPS: tuple[Group, ...] = get_args(Group)
Need = Literal[
    "gold spans", "gold text", "gold files", "grades", "truth", "expected", "label", "answer", "impossible",
    "answerable", "passages", "passage files", "judge", "corpus", "pages", "usage", "clock", "registers", "confidence",
]  # fmt: skip
"""What a question, its reply or the run must have for the metric to apply; `limit_gold` enforces it."""

_UNITS = {"seconds": "s", "mark": "/5", "tokens": "tokens", "characters": "chars"}


@dataclass(frozen=True)
class About:
    """The description of a metric, in words for readers who are not engineers."""

    title: str
    meaning: str
    group: Group = "Other"
    unit: Unit = "share"
    better: Better = "more"
    needs: tuple[Need, ...] = ()
    depths: tuple[int, ...] = (K,)
    """The cutoffs that a short table shows, for a metric with several (`drm@8`)."""
    short: bool = True
    """Whether a short table shows the metric; the files and the long table always do."""
    gate: bool = True
    """Whether a change for the worse fails `--fail-on-regression`; False for figures that depend on the machine."""

    @property
    def sign(self) -> str:
        """The unit sign that is shown after a value; empty for shares, counts and metrics without a description."""
        return _UNITS.get(self.unit, "")

    def improves(self, change: float) -> bool | None:
        """Return whether a change is an improvement; None where neither direction is better."""
        if self.better == "neither":
            return None
        return change < 0 if self.better == "less" else change > 0

    def figure(self, value: float | None, *, signed: bool = False) -> str:
        """Return a metric's value as text for the terminal, without its unit: a share of 12.3% as "0.123".

        A missing value is "–".
        """
        if value is None or not math.isfinite(value):
            return "–"
        return f"{value:{'+' if signed else ''}{self._format_places(value)}}"

    def in_words(self, value: float | None) -> str:
        """Return a value as the report shows it, without a unit sign: a share of 0.123 becomes `12.3`."""
        if self.unit != "share" or value is None or not math.isfinite(value):
            return self.figure(value)
        return f"{100 * value:.1f}"

    @property
    def unit_behind(self) -> str:
        """The unit that the report shows after a value: `%` for a share."""
        return "%" if self.unit == "share" else f" {self.sign}" if self.sign else ""

    def change_in_words(self, change: float) -> str:
        """Return a change as the report shows it, with plus or minus; for a share, in percentage points."""
        return f"{'+' if change > 0 else '−' if change < 0 else '±'}{self.in_words(abs(change))}"

    def _format_places(self, value: float) -> str:
        if self.unit in ("share", "number"):
            return ".3f" if abs(value) < 10 else ",.0f"
        if self.unit in ("tokens", "characters"):
            return ",.0f"
        if self.unit == "currency":
            return ",.6f" if abs(value) < 0.01 else ",.4f"
        return ".2f"
