"""Tokens made ready by processes of their own: one alone is slower than the device that waits for them."""

from __future__ import annotations

import atexit
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from exhibit.models.embedders._network import MAX_TOKENS
from exhibit.models.embedders._tokens import Tokens, WordTokenizer, ready_tokenizer

PART = 1 << 11
"""Texts that a worker tokenises at a time, in some 60 ms."""
FEW = 1 << 13
"""Fewer texts than this are tokenised here: processes would take longer to start."""

_here: list[WordTokenizer] = []
"""A worker's own tokenizer."""


class Feed:
    """Texts to slabs of tokens, in order; the next ones are made while the last are used."""

    def __init__(self, *, workers: int, slab: int) -> None:
        self._workers, self._slab = workers, slab
        self._tokenizer = WordTokenizer(ready_tokenizer(), longest=MAX_TOKENS)
        self._pool: ProcessPoolExecutor | None = None

    def slabs(self, texts: Sequence[str]) -> Iterator[tuple[int, Tokens]]:
        """Yield where a slab of texts starts, and its tokens."""
        if self._workers < 1 or len(texts) < FEW:
            starts = range(0, len(texts), self._slab)
            yield from ((start, self._tokenizer.flat(texts[start : start + self._slab])) for start in starts)
            return
        parts = [texts[at : at + PART] for at in range(0, len(texts), PART)]
        start, made = 0, list[Tokens]()
        for number, tokens in enumerate(self._started().map(_tokenise, parts), 1):
            made.append(tokens)
            if len(made) * PART >= self._slab or number == len(parts):
                slab = Tokens(*(np.concatenate(columns) for columns in zip(*made, strict=True)))
                yield start, slab
                start, made = start + len(slab.lengths), []

    def close(self) -> None:
        """Let go of the workers."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # spawned, not forked: a process that has used a device cannot be
            self._pool = ProcessPoolExecutor(self._workers, multiprocessing.get_context("spawn"), _make_ready)
            atexit.register(self.close)
        return self._pool


def _make_ready() -> None:
    # the workers share the processors already: a thread for each of them in every worker would only be in the way
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _here.append(WordTokenizer(ready_tokenizer(), longest=MAX_TOKENS))


def _tokenise(texts: Sequence[str]) -> Tokens:
    return _here[0].flat(texts)
