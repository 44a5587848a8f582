"""Any model of sentence-transformers: `sentence-transformers:BAAI/bge-m3`, or a folder."""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.models.embedders import to_unit
from exhibit.models.network import clean_text
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ToolkitError

try:
    from sentence_transformers import SentenceTransformer
except ImportError as error:
    raise ToolkitError(
        "the embedder sentence-transformers needs an extra: pip install 'exhibit-rag[st]' "
        "(the default embedder, legal, needs none)"
    ) from error

_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "passage": ("passage", "document", "corpus")}
"""The names that models use for their prompts."""


def open(argument: str | None) -> SentenceTransformers:
    if not argument:
        raise ToolkitError(
            "sentence-transformers: no model is named; give one, for instance sentence-transformers:BAAI/bge-m3"
        )
    return SentenceTransformers(argument)


class SentenceTransformers:
    """A sentence-transformers model; on an accelerator it runs in half precision and in large batches."""

    def __init__(self, model: str) -> None:
        try:
            self._model = SentenceTransformer(model)
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ToolkitError(f"sentence-transformers:{model}: cannot be loaded: {reason}; check its name") from error
        fast = self._model.device.type != "cpu"
        if fast:
            self._model.half()
        self._batch = 256 if fast else 32
        self.name = f"sentence-transformers:{model}" + ("-fp16" if fast else "")
        # older versions of the library have only the longer name
        width = getattr(self._model, "get_embedding_dimension", None) or self._model.get_sentence_embedding_dimension
        self.dimensions = int(width())

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        prompts = self._model.prompts or {}
        prompt = next((prompts[name] for name in _PROMPTS[role] if prompts.get(name)), None)
        clean = list(map(clean_text, texts))
        rows = self._model.encode(clean, prompt=prompt, batch_size=self._batch, show_progress_bar=False)
        return to_unit(rows, texts, name=self.name, dimensions=self.dimensions)
