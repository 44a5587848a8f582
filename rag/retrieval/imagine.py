"""A passage imagined by a language model (HyDE): it is nearer to the real one than a question is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exhibit.models.llms import LLM, Prompt
from exhibit.models.protocols import Embedder, Vectors

_SYSTEM = (
    "You draft legal texts. Write one short passage, as it would stand in the document itself, that would answer the "
    "question. Invent no names and no figures; write only the passage."
)
_MOST_TOKENS = 160
"""A passage of 500 characters, and room to end its sentence."""


def embed_imagined(
    questions: Sequence[str], vectors: Vectors, llm: LLM, embedder: Embedder, *, share: float
) -> tuple[Vectors, list[str]]:
    """Return the questions' vectors moved towards passages that a model imagines, and these passages.

    A question whose passage fails keeps its own vector, and has no passage: a model that is down makes retrieval
    no worse than it is without.
    """
    replies = llm.complete(
        [Prompt(question, _SYSTEM) for question in questions], max_tokens=_MOST_TOKENS, temperature=0.0
    )
    imagined = ["" if reply.error else reply.text.strip() for reply in replies]
    rows = [row for row, passage in enumerate(imagined) if passage]
    moved = vectors.copy()
    if rows:
        passages = embedder.embed([imagined[row] for row in rows], role="passage")
        mixed = (1 - share) * vectors[rows] + share * passages
        length = np.linalg.norm(mixed, axis=1, keepdims=True)
        # two opposite vectors have no middle: such a question keeps its own
        moved[rows] = np.where(length > 1e-6, mixed / np.maximum(length, 1e-6), vectors[rows])
    return moved, imagined
