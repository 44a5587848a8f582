"""The definition of a bundle: its models and JSON Schema, its reader, writer and validator, and the errors."""

from importlib import import_module
from typing import TYPE_CHECKING

from exhibit.schemas.errors import BundleError, DocumentError, ServiceError, SourceError, ToolkitError

if TYPE_CHECKING:
    from exhibit.schemas.models import IMPOSSIBLE_ANSWER, BundleInfo, Context, Gold, How, Row
else:

    def __getattr__(name: str) -> object:
        """Return a model; the models are built on first access, because workers and most commands never need them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("exhibit.schemas.models"), name)


__version__ = "1.1.0"

__all__ = [
    "IMPOSSIBLE_ANSWER",
    "BundleError",
    "BundleInfo",
    "Context",
    "DocumentError",
    "Gold",
    "How",
    "Row",
    "ServiceError",
    "SourceError",
    "ToolkitError",
    "__version__",
]
