"""Texts to token ids as the model's own tokenizer makes them, but each word is looked at once.

The tokenizer never looks across a space, so the ids of a text are those of its words in a row. Words come again and
again: remembered, a text takes a fraction of the time, and a device need not wait for its tokens.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from exhibit.models.embedders._network import MAX_TOKENS, TOKENIZER, find_file, model_folder, put_in_cache
from exhibit.storage.bundle import sha256_of

_SPACES = re.compile(r"[ \t\n\r]+")
"""What is a space to the tokenizer wherever it stands; others, as those of Unicode, it may see itself inside a word."""
_REMEMBERED = 1 << 18
"""Words that are remembered: some 60 MB. A collection has fewer, unless it is mostly numbers."""

Ids = npt.NDArray[np.uint16]


def ready_tokenizer() -> Tokenizer:
    """Return the tokenizer, put into our cache if need be: the package may be gone tomorrow."""
    path = model_folder() / TOKENIZER.name
    if not path.is_file() or sha256_of(path) != TOKENIZER.sha256:
        put_in_cache(path, find_file(TOKENIZER).read_bytes())
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    return tokenizer


class Tokens(NamedTuple):
    """The ids of some texts, one text after another."""

    ids: Ids
    lengths: npt.NDArray[np.int64]

    def batches(self, most: int) -> list[tuple[npt.NDArray[np.int64], Ids]]:
        """Return rows of texts that are equally long with their ids, a line each; the longest first."""
        starts = np.cumsum(self.lengths) - self.lengths
        order = np.argsort(-self.lengths, kind="stable")
        edges = np.flatnonzero(np.diff(self.lengths[order])) + 1
        rows_and_ids = []
        for group in np.split(order, edges) if len(order) else []:
            length = int(self.lengths[group[0]])
            count = max(1, most // length)
            for at in range(0, len(group), count):
                rows = group[at : at + count]
                rows_and_ids.append((rows, self.ids[starts[rows][:, None] + np.arange(length)]))
        return rows_and_ids


class WordTokenizer:
    """A tokenizer that remembers words."""

    def __init__(self, tokenizer: Tokenizer, *, longest: int) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._first, self._last = tokenizer.encode("").ids
        self._inner = longest - 2
        self._known: dict[str, tuple[int, ...]] = {"": ()}

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Return each text's ids between the two marks, cut to the longest there may be."""
        split = [_SPACES.split(text) for text in texts]
        known = self._known
        missing = list({word for words in split for word in words if word not in known})
        if missing:
            if len(known) + len(missing) > _REMEMBERED:
                known = self._known = {"": ()}
                missing = list({word for words in split for word in words if word})
            # half a surrogate pair, which damaged PDFs hold, is not text to the tokenizer
            clean = [word.encode("utf-8", "replace").decode() for word in missing]
            encodings = self._tokenizer.encode_batch_fast(clean, add_special_tokens=False)
            known.update(zip(missing, (tuple(encoding.ids) for encoding in encodings), strict=True))
        first, last, inner, get = self._first, self._last, self._inner, known.__getitem__
        return [[first, *list(chain.from_iterable(map(get, words)))[:inner], last] for words in split]

    def flat(self, texts: Sequence[str]) -> Tokens:
        """Return the same as arrays."""
        ids = self(texts)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        return Tokens(np.fromiter(chain.from_iterable(ids), np.uint16, int(lengths.sum())), lengths)


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
