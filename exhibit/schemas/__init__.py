"""The definition of a bundle: its models and JSON Schema, its reader, writer and validator, and the errors."""

from exhibit.schemas.layout import IMPOSSIBLE_ANSWER

__version__ = "1.1.0"

__all__ = ["IMPOSSIBLE_ANSWER", "__version__"]
