"""The RAG pipeline: documents to cited answers.

from pathlib import Path
from exhibit.rag import Config, Pipeline

pipeline = Pipeline(Config.preset("routed"))
pipeline.index(Path("contracts"), Path("index"))
for hit in pipeline.search(["Which law governs?"])[0].selected:
    print(hit.chunk.document, hit.chunk.page, hit.text)
print(pipeline.answer(["Which law governs?"])[0].answer.text)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exhibit.rag.config import Config
    from exhibit.rag.pipeline import Answered, Pipeline

__all__ = ["Answered", "Config", "Pipeline"]

_HOMES = {"Config": "exhibit.rag.config", "Pipeline": "exhibit.rag.pipeline", "Answered": "exhibit.rag.pipeline"}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use, so that `import exhibit.rag` loads no model library."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
