"""The steps of a training: a one-cycle learning rate, gradient clipping, and averaged weights."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

_LONGEST = 1.0
"""The greatest norm of a step's gradient: a single unusual batch must not change the weights much."""


class Pace(Protocol):
    """The hyperparameters that a training loop reads from a recipe."""

    @property
    def rate(self) -> float:
        """The highest learning rate."""

    @property
    def average(self) -> float:
        """The decay of the moving average of the weights, per step; 0 = the last weights are used."""


class Loop:
    """A training loop: it makes the steps, and finally replaces the weights by their moving averages."""

    def __init__(self, module: nn.Module, pace: Pace, *, steps: int) -> None:
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        self._keep = pace.average
        self._averages = [p.detach().clone() for p in self._parameters] if self._keep else []
        self._optimiser = torch.optim.AdamW(self._parameters, lr=pace.rate, weight_decay=0.01)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimiser, pace.rate, total_steps=steps + 1, pct_start=0.1
        )

    def step(self, loss: Tensor) -> float:
        """Make one step of gradient descent; return the loss as a number."""
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, _LONGEST)
        self._optimiser.step()
        self._schedule.step()
        with torch.no_grad():
            for average, parameter in zip(self._averages, self._parameters, strict=False):
                average.lerp_(parameter, 1 - self._keep)
        return float(loss.detach())

    def settle(self) -> None:
        """Replace the weights by their moving averages; do nothing if no average is kept."""
        with torch.no_grad():
            for average, parameter in zip(self._averages, self._parameters, strict=False):
                parameter.copy_(average)
