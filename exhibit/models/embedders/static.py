"""Vectors without a network: each token has one, made once from the network of `legal`, and a text has their mean.

`static` is for large collections on small machines: it takes no network to make a vector, and it finds less: a token
means the same in every sentence. The table is made the first time, in some ten seconds, and kept in the cache.
"""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders import to_unit
from exhibit.models.embedders.minilm import open_session, ready_graph
from exhibit.models.network import (
    MAX_TOKENS,
    VERSION,
    WIDTH,
    WordTokenizer,
    legal,
    model_folder,
    ready_tokenizer,
    sealed,
)
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ToolkitError

_WORDS = 30_522
"""Tokens that the model knows; frequent ones have low numbers."""
_FIRST, _LAST = 101, 102
"""The marks that a text stands between."""
_AT_ONCE = 256  # words embedded at a time: a matter of memory
_RARE = 1e-5
"""A token that makes up this share of all text counts half of the rarest.

SIF's constant; with 1e-3, 1e-4 and 1e-5 the cosines of 300 chunks correlate 0.25, 0.28 and 0.33 with those of `legal`.
"""
_SLAB = 1024
"""Texts whose tokens' vectors are added up at a time: some 100 MB."""


LOCAL = True


def open(argument: str | None) -> "Static":
    """Return the embedder; its table is made the first time."""
    if argument:
        raise ToolkitError(f"--embedder static:{argument}: it takes no argument")
    return Static(ready_table())


class Static:
    """The mean of a text's tokens, rare ones first."""

    dimensions = WIDTH

    def __init__(self, table: Vectors) -> None:
        self.name = _name()
        self._table = table
        self._tokenizer = WordTokenizer(ready_tokenizer(), longest=MAX_TOKENS)

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - the same for both roles
        """Return one unit row per text, in order; beyond 256 tokens a text is not read."""
        sums = np.empty((len(texts), WIDTH), np.float32)
        for start in range(0, len(texts), _SLAB):
            tokens = self._tokenizer.flat(texts[start : start + _SLAB])
            starts = np.cumsum(tokens.lengths) - tokens.lengths
            # the two marks are in every text, so that one without words has a vector as well
            np.add.reduceat(self._table[tokens.ids], starts, axis=0, out=sums[start : start + len(starts)])
        return to_unit(sums, texts, name=self.name)


def make_table(run: Callable[[npt.NDArray[np.int64]], Vectors]) -> Vectors:
    """Return a row for each token: what the network makes of it alone, without what all have in common, weighed."""
    rows = np.empty((_WORDS, WIDTH), np.float32)
    for start in range(0, _WORDS, _AT_ONCE):
        tokens = np.arange(start, min(start + _AT_ONCE, _WORDS))
        marks = (np.full_like(tokens, mark) for mark in (_FIRST, _LAST))
        rows[tokens] = run(np.stack([next(marks), tokens, next(marks)], axis=1))
    shares = 1 / np.arange(2, _WORDS + 2)  # as Zipf has it
    shares /= shares.sum()
    weighed: Vectors = ((rows - rows.mean(axis=0)) * (_RARE / (_RARE + shares))[:, None]).astype(np.float32)
    return weighed


# ---------------------------------------------------------------- what is kept between runs


def table_path() -> Path:
    """Return where the table is kept between runs."""
    return model_folder() / f"{_name()}.npy"


def _name() -> str:
    """Return the name of the vectors, which changes whenever they would."""
    return f"static-{legal().name}-{_RARE:g}-{VERSION}"


def ready_table() -> Vectors:
    """Return the table from the cache if it is what was written there, else make it."""

    def build() -> bytes:
        session = open_session(ready_graph("int8", legal()), None)
        buffer = io.BytesIO()
        np.save(buffer, make_table(lambda ids: session.run(None, {"ids": ids})[0]).astype(np.float16))  # half the bytes
        return buffer.getvalue()

    table: Vectors = np.load(io.BytesIO(sealed(table_path(), build))).astype(np.float32)
    return table
