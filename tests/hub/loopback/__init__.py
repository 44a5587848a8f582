"""A Hub on this machine that speaks the Hub's HTTP API to the real clients, with every fault on demand."""

from .faults import Fault
from .hub import LoopbackHub
from .store import Commit
from .wire import Request

__all__ = ["Commit", "Fault", "LoopbackHub", "Request"]
