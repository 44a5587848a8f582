"""Runs a map over documents or questions: one file per way of running it, named by `--engine`."""

from engine.choose import engine_names, open_engine
from engine.outcome import Engine, Outcome
from engine.progress import track

__all__ = ["Engine", "Outcome", "engine_names", "open_engine", "track"]
