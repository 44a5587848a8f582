"""Caps on what a run may ask of a service: counted before a request goes out, so that they are never passed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from exhibit.schemas.errors import ServiceError

_MILLION = 1_000_000  # tokens that a price is for
_ROUNDING = 1e-9  # of money: sums of many small prices err by less


class CapError(ServiceError):
    """A cap on requests or money is reached."""


@dataclass(frozen=True)
class Prices:
    """What a million tokens cost, in any one currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """Return what a request costs."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / _MILLION


@dataclass
class Receipt:
    """One request's share of the budget: its worst case, until what it took is known."""

    cost: float


class Budget:
    """Counts requests and money for all threads of a run."""

    def __init__(self, *, max_requests: int | None, max_cost: float | None, prices: Prices) -> None:
        self.prices = prices
        self.requests = 0
        self.spent = 0.0
        self._flying: list[float] = []
        self._max_requests = max_requests
        self._max_cost = max_cost
        self._changed = threading.Condition()

    @contextmanager
    def request(self, *, tokens_in: int, tokens_out: int) -> Iterator[Receipt]:
        """Hold the worst case of one request while it runs, then book its receipt; raise CapError when none is left."""
        worst = self.prices.cost(tokens_in, tokens_out)
        receipt = Receipt(worst)
        with self._changed:
            self._admit(worst)
            self.requests += 1
            self._flying.append(worst)
        try:
            yield receipt
        finally:
            with self._changed:
                self._flying.remove(worst)
                self.spent += receipt.cost
                self._changed.notify_all()

    def _admit(self, worst: float) -> None:
        # what is in flight may turn out cheaper than its worst case: wait for it before giving up
        self._changed.wait_for(lambda: not self._flying or self._fits(worst))
        if self._max_requests is not None and self.requests >= self._max_requests:
            raise CapError(f"the cap of {self._max_requests} requests is reached; raise max_requests to go on")
        if not self._fits(worst):
            raise CapError(
                f"the cap on cost of {self._max_cost:g} is reached: {self.spent:.6f} spent, and one more request"
                f" may cost {worst:.6f}; raise max_cost to go on"
            )

    def _fits(self, worst: float) -> bool:
        return self._max_cost is None or self.spent + sum(self._flying) + worst <= self._max_cost + _ROUNDING
