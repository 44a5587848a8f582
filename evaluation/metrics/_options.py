"""What a measurement can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from exhibit.models.llms import LLM
from exhibit.schemas.errors import ToolkitError

KS = (1, 2, 4, 8, 16, 32, 64)
"""The depths at which retrieval is read; each is a prefix of one ranking."""

K = 10
"""The depth of recall@K, nDCG@K and the chunk economy."""

Cutoff = Annotated[int, Field(ge=1)]
"""A metric's parameter: how many passages of a ranking are read."""
Votes = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]

Parity = Literal["", "legalbenchrag", "seed", "squad"]
"""Whose reading of a metric is kept where it differs from ours."""


@dataclass(frozen=True)
class Options:
    """Settings that all metrics share; each reads those it needs."""

    ks: tuple[int, ...] = KS
    k: int = K
    parity: Parity = ""
    corpus: object | None = None
    """Where `references_exist` looks references up."""
    officials: object | None = None
    """The public registers, which `references_official` asks."""
    judge: LLM | None = None
    """Who gives marks; without one the judged metrics do not apply."""
    votes: int = 1
    """How often the judge of correctness is asked about an answer."""
    flag_below: float | None = None
    """The confidence under which an answer is flagged for review."""
    prices: tuple[float, float] | None = None
    """What a million tokens cost, in and out."""

    def __post_init__(self) -> None:
        if not self.ks or any(low >= high for low, high in zip((0, *self.ks), self.ks, strict=False)):
            raise ToolkitError(f"ks = {self.ks}: must be positive and ascending, like {KS}")
        if self.k < 1:
            raise ToolkitError(f"k = {self.k}: must be at least 1")
