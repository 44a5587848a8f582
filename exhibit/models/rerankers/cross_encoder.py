"""A cross-encoder of sentence-transformers: `cross-encoder:MODEL`, a name on the Hub or a folder."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.models.network import clean_text
from exhibit.schemas.errors import ToolkitError

try:
    from sentence_transformers import CrossEncoder
except ImportError as error:
    raise ToolkitError("the reranker cross-encoder needs an extra: pip install 'exhibit-rag[st]'") from error


def open(argument: str | None) -> CrossEncoderReranker:
    model = argument or "cross-encoder/ms-marco-MiniLM-L6-v2"
    try:
        return CrossEncoderReranker(model)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ToolkitError(f"cross-encoder:{model}: cannot be loaded: {reason}; check its name") from error


class CrossEncoderReranker:
    def __init__(self, model: str) -> None:
        self._model = CrossEncoder(model)
        self.name = f"cross-encoder:{model}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        pairs = [(clean_text(question), clean_text(passage)) for passage in passages]
        return [float(score) for score in self._model.predict(pairs, show_progress_bar=False)] if pairs else []
