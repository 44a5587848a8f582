"""Runs a map over documents or questions: one file per way of running it, named by `--engine`."""

from exhibit.engine._crew import OneWorker
from exhibit.engine._worker import dismiss
from exhibit.engine.choose import add_engine_arguments, check_engine, engine_names, guarded, open_engine, positive
from exhibit.engine.limits import Limits, add_limit_arguments, limits_from, limits_in_force, make_limits
from exhibit.engine.outcome import Engine, Outcome
from exhibit.engine.progress import track

__all__ = [
    "Engine",
    "Limits",
    "OneWorker",
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
