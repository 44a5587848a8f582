"""Faults on demand: an error status, a broken connection, a lost reply, a delay."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Fault:
    """A fault that affects the next requests that match it."""

    method: str | None = None
    path: str = ""
    """A regular expression, searched for in the path and query as they were sent."""
    status: int | None = None
    """Answer this, and do nothing; with `after_bytes`, as soon as so much of the body was read."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut: bool = False
    """Reset the connection: in the middle of the request's body, or of the reply's where the request has none."""
    after_bytes: int | None = None
    """Where the middle is; half of the body unless told."""
    lost_reply: bool = False
    """Do all that was asked, then reset the connection instead of answering."""
    delay: float = 0.0
    """Wait so many seconds first; the hub's end interrupts it."""
    times: int | None = 1
    """How often; None is for ever."""
    hits: int = 0
    """How often it has happened."""

    def fits(self, method: str, target: str) -> bool:
        """Return whether the fault applies to this request."""
        left = self.times is None or self.hits < self.times
        return left and self.method in (None, method) and re.search(self.path, target) is not None


class Faults:
    """The faults that tests have set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planted: list[Fault] = []

    def plant(self, fault: Fault) -> Fault:
        """Add a fault."""
        with self._lock:
            self._planted.append(fault)
        return fault

    def take(self, method: str, target: str) -> Fault | None:
        """Return the fault that a request meets, and count it."""
        with self._lock:
            fault = next((fault for fault in self._planted if fault.fits(method, target)), None)
            if fault:
                fault.hits += 1
            return fault

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._planted.clear()
