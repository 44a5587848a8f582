"""What a training stands on: the documents and questions of a pack that it may see."""

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
    """A pack for training, and what of it is left out."""

    pack: Pack
    device: torch.device
    split: tuple[str, ...] = ("train",)
    leave_out: frozenset[str] = frozenset()
    """Kinds that are not asked."""
    kept_back: frozenset[int] = frozenset()
    """Queries on a library of clauses that are not trained on."""

    def __post_init__(self) -> None:
        """Refuse a pack that is for measuring."""
        if self.pack.purpose != "training":
            raise ToolkitError("this pack is for measuring: nothing of it may be trained on")

    @cached_property
    def texts(self) -> Texts:
        """All texts, on the device."""
        return Texts(self.pack.tokens, self.pack.ends, self.device)

    @cached_property
    def examples(self) -> Examples:
        """The questions, ready to be drawn from."""
        return Examples(self.pack, split=self.split, leave_out=self.leave_out)

    @cached_property
    def library(self) -> Library | None:
        """The graded queries; None where there are none."""
        return Library(self.pack, without=self.kept_back) if len(self.pack.grades) else None
