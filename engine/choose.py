"""Finds a runner by the name of its file."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import cast

from engine import runners
from engine.outcome import Engine
from schemas.errors import ToolkitError


def open_engine(name: str = "local", *, jobs: int) -> Engine:
    """Return the runner of that name; one job, or a single item, never pays for processes."""
    names = engine_names()
    if name not in names:
        raise ToolkitError(f"no engine {name!r}; there are {', '.join(names)}")
    module = import_module(f"{runners.__name__}.{'serial' if jobs == 1 and name == 'local' else name}")
    return cast(Engine, module.Runner(jobs=jobs))


def engine_names() -> list[str]:
    """Return the names that `--engine` takes."""
    return sorted(module.name for module in pkgutil.iter_modules(runners.__path__))
