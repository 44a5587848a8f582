"""Exhibit from Python: bundles as tables and pictures, conversions and evaluations as objects that a notebook displays.

    import exhibit

    bundle = exhibit.load("cuad")                       # or a folder, hf://OWNER/NAME, s3://BUCKET/FOLDER
    bundle.questions, bundle.gold, bundle.documents     # pandas
    bundle.show(33)                                     # a question's gold, drawn on its page
    before = exhibit.evaluate(bundle, preset="naive")
    after = exhibit.evaluate(bundle, target=my_function)
    exhibit.compare(before, after)

Modules are imported at the first use of a name, so that the import takes no time. docs/tutorial.md has every name.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exhibit.bundles import Bundle, load
    from exhibit.conversion import Conversion, convert, draft
    from exhibit.evidence.locate import locate
    from exhibit.evidence.read import read_document
    from exhibit.hub.publish import Published, publish
    from exhibit.runs import Run, compare, evaluate
    from exhibit.schemas import __version__
    from exhibit.schemas.errors import ToolkitError
    from exhibit.viewer.compare import Comparison

_PLACES = {
    "exhibit.bundles": ("Bundle", "load"),
    "exhibit.conversion": ("Conversion", "convert", "draft"),
    "exhibit.evidence.locate": ("locate",),
    "exhibit.evidence.read": ("read_document",),
    "exhibit.hub.publish": ("Published", "publish"),
    "exhibit.runs": ("Run", "compare", "evaluate"),
    "exhibit.schemas": ("__version__",),
    "exhibit.schemas.errors": ("ToolkitError",),
    "exhibit.viewer.compare": ("Comparison",),
}

__all__ = [
    "Bundle", "Comparison", "Conversion", "Published", "Run", "ToolkitError", "__version__", "compare", "convert",
    "draft", "evaluate", "load", "locate", "publish", "read_document",
]  # fmt: skip

# ONNX Runtime reports every opened model, and huggingface_hub the calling program, unless this is set before the import
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def __getattr__(name: str) -> object:
    place = next((place for place, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module 'exhibit' has no attribute {name!r}; the names are {', '.join(__all__)}")
    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted(__all__)
