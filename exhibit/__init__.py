"""Exhibit in a notebook: bundles as tables and pictures, conversions and evaluations as objects that draw themselves.

    import exhibit

    bundle = exhibit.load("datasets_out/cuad")          # or hf://OWNER/NAME, s3://BUCKET/FOLDER
    bundle.questions, bundle.gold, bundle.documents     # pandas
    bundle.show(33)                                     # a question's gold, drawn on its page
    before = exhibit.evaluate("datasets_out/cuad", preset="naive")
    after = exhibit.evaluate("datasets_out/cuad")
    exhibit.compare(before, after)

Nothing is loaded before it is asked for, so that the import takes no time.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exhibit.bundles import LoadedBundle, load
    from exhibit.conversion import Conversion, convert
    from exhibit.runs import Comparison, Evaluation, compare, evaluate
    from schemas import ToolkitError, __version__

_PLACES = {
    "Comparison": "exhibit.runs",
    "Conversion": "exhibit.conversion",
    "Evaluation": "exhibit.runs",
    "LoadedBundle": "exhibit.bundles",
    "ToolkitError": "schemas",
    "__version__": "schemas",
    "compare": "exhibit.runs",
    "convert": "exhibit.conversion",
    "evaluate": "exhibit.runs",
    "load": "exhibit.bundles",
}

_ROOMS = ("schemas", "storage", "engine", "evidence", "law", "hub", "converters", "rag", "evaluation", "review")
"""The packages that this one stands on, from the ground up."""

__all__ = [
    "Comparison",
    "Conversion",
    "Evaluation",
    "LoadedBundle",
    "ToolkitError",
    "__version__",
    "compare",
    "convert",
    "evaluate",
    "load",
]


def _open_rooms() -> None:
    """Make the project's other packages importable, and say so where another package has the name of one.

    A wheel has them in a folder of its own, as their names are plain words which others use, too; docs/install.md.
    """
    here = Path(__file__).resolve().parent
    installed = here / "_rooms"
    folder = installed if installed.is_dir() else here.parent
    # first: a folder called schemas/ where a notebook is started would be imported instead
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    for room in _ROOMS:
        loaded = getattr(sys.modules.get(room), "__file__", None)
        if loaded is not None and not Path(loaded).resolve().is_relative_to(folder):
            raise ImportError(
                f"exhibit has a package called {room!r}, and another one is imported already: {loaded}; "
                "use exhibit in a process of its own",
                name=room,
                path=loaded,
            )


_open_rooms()


def __getattr__(name: str) -> object:
    """Return a name from the module that has it, which is imported now."""
    if name not in _PLACES:
        raise AttributeError(f"module 'exhibit' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
