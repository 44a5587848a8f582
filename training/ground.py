"""Selects the documents and questions of the training data that a training run may use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from exhibit.schemas.errors import ToolkitError
from training.library import Library
from training.network import Texts
from training.pack import Pack
from training.sampling import Examples


@dataclass(frozen=True)
class Ground:
    """The part of the training data (`pack`) that a training run may use.

    The kinds of questions in `leave_out` are excluded. So are the queries in `kept_back`, which belong to the
    clause library ACORD.
    """

    pack: Pack
    device: torch.device
    split: tuple[str, ...] = ("train",)
    leave_out: frozenset[str] = frozenset()
    """The kinds of questions that are not trained on."""
    kept_back: frozenset[int] = frozenset()
    """The library queries that are not trained on."""

    def __post_init__(self) -> None:
        """Raise an error if the pack was gathered for measuring, because its documents must not be trained on."""
        if self.pack.purpose != "training":
            raise ToolkitError("this pack is for measuring, so it must not be trained on; gather one without --measure")

    @cached_property
    def texts(self) -> Texts:
        """All texts of the pack, on the device."""
        return Texts(self.pack.tokens, self.pack.ends, self.device)

    @cached_property
    def examples(self) -> Examples:
        """The questions from which training batches are drawn, without the kinds in `leave_out`."""
        return Examples(self.pack, split=self.split, leave_out=self.leave_out)

    @cached_property
    def library(self) -> Library | None:
        """The queries of the clause library ACORD, with the grades of its clauses and without held-out queries.

        None if the training data (`pack`) has no grades.
        """
        return Library(self.pack, without=self.kept_back) if len(self.pack.grades) else None
