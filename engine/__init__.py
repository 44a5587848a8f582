"""Runs a map over documents or questions: one file per way of running it, named by `--engine`."""

from engine._worker import dismiss
from engine.choose import add_engine_arguments, check_engine, engine_names, guarded, open_engine, positive
from engine.desk import Desk
from engine.limits import Limits, add_limit_arguments, limits_from, limits_in_force, make_limits
from engine.outcome import Engine, Outcome
from engine.progress import track

__all__ = [
    "Desk",
    "Engine",
    "Limits",
    "Outcome",
    "add_engine_arguments",
    "add_limit_arguments",
    "check_engine",
    "dismiss",
    "engine_names",
    "guarded",
    "limits_from",
    "limits_in_force",
    "make_limits",
    "open_engine",
    "positive",
    "track",
]
