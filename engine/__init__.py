"""Runs a map over documents or questions: one file per way of running it, named by `--engine`."""

from engine.choose import add_engine_arguments, check_engine, engine_names, open_engine, positive
from engine.outcome import Engine, Outcome
from engine.progress import track

__all__ = [
    "Engine",
    "Outcome",
    "add_engine_arguments",
    "check_engine",
    "engine_names",
    "open_engine",
    "positive",
    "track",
]
