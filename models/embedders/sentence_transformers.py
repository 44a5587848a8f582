"""Any model that sentence-transformers runs: `sentence-transformers:BAAI/bge-m3`, or a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders._unit import to_unit
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ToolkitError

try:
    import torch
    from sentence_transformers import SentenceTransformer
except ImportError as error:
    raise ToolkitError(
        "the embedder sentence-transformers needs an extra: pip install 'exhibit-rag[st]' "
        "(the default embedder, minilm, needs none)"
    ) from error

_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "passage": ("passage", "document", "corpus")}
"""What models call their prompts."""
_TOKENS = 1 << 17
"""Tokens an accelerator is given at once: 512 texts of 256, or fewer longer ones."""
_SLAB = 1 << 14
"""Texts whose tokens are held at a time; within a slab texts of about one length run together."""

Batch = tuple[list[int], dict[str, npt.NDArray[np.int64]]]


def open(argument: str | None) -> SentenceTransformers:
    """Return the model of that name or in that folder."""
    if not argument:
        raise ToolkitError("sentence-transformers: which model? For instance sentence-transformers:BAAI/bge-m3")
    return SentenceTransformers(argument)


class SentenceTransformers:
    """A model in full precision on the processor; in half, and with large batches, on an accelerator."""

    def __init__(self, model: str) -> None:
        try:
            self._model = SentenceTransformer(model)
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ToolkitError(f"sentence-transformers:{model}: cannot be loaded: {reason}") from error
        fast = self._model.device.type != "cpu"
        if fast:
            self._model.half()
        self._feed = _Feed.of(self._model) if fast else None
        self.name = f"sentence-transformers:{model}" + ("-fp16" if fast else "")
        # it has two names: the older versions know only the longer
        width = getattr(self._model, "get_embedding_dimension", None) or self._model.get_sentence_embedding_dimension
        self.dimensions = int(width())

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """Return one normalised row per text, in order, behind the prompt that the model has for the role."""
        prompts = self._model.prompts or {}
        prompt = next((prompts[name] for name in _PROMPTS[role] if prompts.get(name)), None)
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        if self._feed is not None and prompt is None:
            rows = self._run(self._feed, clean)
        else:
            rows = self._model.encode(clean, prompt=prompt, batch_size=32, show_progress_bar=False)
        return to_unit(rows, texts, name=self.name, dimensions=self.dimensions)

    def _run(self, feed: _Feed, texts: Sequence[str]) -> Vectors:
        """Return the vectors; the next tokens are made ready while the device works on the last ones."""
        rows = np.empty((len(texts), self.dimensions), np.float32)
        with torch.inference_mode():
            for places, features in feed.batches(texts):
                given = {name: torch.from_numpy(array).to(self._model.device) for name, array in features.items()}
                rows[places] = self._model(given)["sentence_embedding"].float().cpu().numpy()
        return rows


class _Feed:
    """Texts to batches of tokens by the model's own tokenizer, without the Python loop that starves a device.

    What the library does between its tokenizer and the device takes ten times as long as the device itself
    takes for a small model.
    """

    def __init__(self, tokenizer: Any, *, longest: int, padding: int, kinds: bool) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(longest)
        self._padding = padding
        self._kinds = kinds

    @classmethod
    def of(cls, model: Any) -> _Feed | None:
        """Return a model's feed; None for a tokenizer that is not of the fast kind, or when length has no limit."""
        outer: Any = getattr(model, "tokenizer", None)
        inner = getattr(outer, "backend_tokenizer", None)
        longest = getattr(model, "max_seq_length", None)
        if inner is None or not longest:
            return None
        own = type(inner).from_str(inner.to_str())  # the model's own one keeps its settings
        kinds = "token_type_ids" in getattr(outer, "model_input_names", ())
        return cls(own, longest=int(longest), padding=int(outer.pad_token_id or 0), kinds=kinds)

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Yield the rows of some texts and their tokens; one batch is made ready while another is used."""
        with ThreadPoolExecutor(1) as pool:
            ready = None
            for places, ids in self._groups(texts):
                following = pool.submit(self._padded, places, ids)
                if ready is not None:
                    yield ready.result()
                ready = following
            if ready is not None:
                yield ready.result()

    def _groups(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[list[int]]]]:
        for start in range(0, len(texts), _SLAB):
            ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts[start : start + _SLAB]))]
            order = sorted(range(len(ids)), key=lambda row: -len(ids[row]))
            while order:
                count = max(1, _TOKENS // max(1, len(ids[order[0]])))
                some, order = order[:count], order[count:]
                yield [start + row for row in some], [ids[row] for row in some]

    def _padded(self, places: list[int], ids: list[list[int]]) -> Batch:
        tokens = np.full((len(ids), max(map(len, ids))), self._padding, np.int64)
        mask = np.zeros_like(tokens)
        for row, line in enumerate(ids):
            tokens[row, : len(line)] = line
            mask[row, : len(line)] = 1
        features = {"input_ids": tokens, "attention_mask": mask}
        return places, features | ({"token_type_ids": np.zeros_like(tokens)} if self._kinds else {})
