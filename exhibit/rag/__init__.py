"""The RAG pipeline, which turns documents into cited answers; docs/rag.md has an example."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exhibit.rag.config import Config
    from exhibit.rag.pipeline import Answered, Pipeline

__all__ = ["Answered", "Config", "Pipeline"]


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that `import exhibit.rag` loads no model library."""
    if name in __all__:
        return getattr(import_module(f"exhibit.rag.{'config' if name == 'Config' else 'pipeline'}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
