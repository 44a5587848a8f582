"""Steps of a training: the rate rises and falls, long gradients are cut, and the weights of late steps are averaged."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

_LONGEST = 1.0
"""Norm of a step's gradient, at most: a single odd batch must not throw the weights about."""


class Pace(Protocol):
    """What a recipe says of its steps."""

    @property
    def rate(self) -> float:
        """The highest rate of learning."""

    @property
    def average(self) -> float:
        """How much of the averaged weights is kept at each step; 0: the last weights are taken as they are."""


class Loop:
    """Makes steps, then puts the averaged weights in place."""

    def __init__(self, module: nn.Module, pace: Pace, *, steps: int) -> None:
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        self._keep = pace.average
        self._averages = [p.detach().clone() for p in self._parameters] if self._keep else []
        self._optimiser = torch.optim.AdamW(self._parameters, lr=pace.rate, weight_decay=0.01)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimiser, pace.rate, total_steps=steps + 1, pct_start=0.1
        )

    def step(self, loss: Tensor) -> float:
        """Learn from a loss and return its size."""
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
        """Put the averages in the place of the last weights."""
        with torch.no_grad():
            for average, parameter in zip(self._averages, self._parameters, strict=False):
                parameter.copy_(average)
