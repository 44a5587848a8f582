"""A reader of our own: from a question and passages to the exact words that answer, or to nothing.

MiniLM with low-rank weights of 1.8 MB on those of the reranker `legal`, and two heads: whether a passage answers, and
of each token whether it is in the answer, begins it or ends it. docs/models.md says what it was trained on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from exhibit.models.embedders._network import MAX_TOKENS, Network, merge, processors, read_lowrank, read_record
from exhibit.models.embedders._tokens import ready_tokenizer
from exhibit.models.embedders.minilm import accelerator, chosen_variant, open_session, ready_graph
from exhibit.models.rerankers.legal import ASKED
from exhibit.models.rerankers.legal import network as reranker
from exhibit.models.spans import decode

WEIGHTS = Path(__file__).parent / "weights" / "reader.safetensors"
CALIBRATION = WEIGHTS.with_name("confidence.json")
LEAN = 1.0
"""What speaks for each token beside what the network says, in log-odds.

On CUAD's 20 documents for tuning, by weights that had not seen them, -1, 0, 1 and 2 give span F1 0.63, 0.70, 0.70 and
0.70 in CUAD's words, and 0.49, 0.56, 0.59 and 0.57 in others; refusals aside.
"""


class Found(NamedTuple):
    """Characters of a passage that answer, half-open, and how sure their tokens are, in log-odds."""

    start: int
    end: int
    sure: float


class Reading(NamedTuple):
    """What a passage is to a question."""

    score: float
    """The log-odds that it answers, before calibration."""
    spans: tuple[Found, ...]


def network() -> Network:
    """Return the network: the reranker's with the reader's own weights on top, as in training."""
    name = f"legal-reader-{read_record(WEIGHTS)['sha256'][:8]}"

    def merged() -> dict[str, npt.NDArray[np.float32]]:
        low = read_lowrank(WEIGHTS)
        heads = {name: array for name, array in low.items() if name.startswith(("head.", "spans."))}
        return {**merge(reranker().weights(), low, strength=1.0), **heads}

    return Network(name, f"{name}-", merged)


@lru_cache(maxsize=1)
def shared_reader() -> Reader:
    """Return the reader of this process, opened when it is first needed."""
    return Reader()


class Reader:
    """Passages run unpadded, each on a thread of its own: what is read in one never depends on the others."""

    def __init__(self, variant: str | None = None) -> None:
        own, variant = network(), chosen_variant("reader", "legal", variant)
        device = None if variant == "int8" else accelerator(onnxruntime.get_available_providers())
        self.name = f"{own.name}-{variant}"
        self._tokenizer = ready_tokenizer()
        self._tokenizer.no_truncation()
        self._session = open_session(ready_graph(variant, own), device)
        self._calibration = json.loads(CALIBRATION.read_text(encoding="utf-8"))

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        """Return what each passage is to the question, in order; beyond 256 tokens with the question it is not read."""
        [asked] = self._encode([question])
        front = [*asked.ids[:-1][: ASKED - 1], asked.ids[-1]]
        encoded = self._encode(passages)
        if len(encoded) < 2:
            return [self._read(front, one) for one in encoded]
        with ThreadPoolExecutor(processors()) as pool:
            return list(pool.map(lambda one: self._read(front, one), encoded))

    def confidence(self, scores: Sequence[float], found: float | None = None, *, short: bool = False) -> float:
        """Return how likely one of the passages with these scores answers: logistic in the best, as calibrated.

        `found` is what a reranker holds of the same question, where there is one: then the two decide together.
        `short` says that the passages are the whole document: there the same score means more.
        """
        told = self._calibration["alone" if found is None else "together"]
        odds = told["reader"] * max(scores) + told["offset"] + (self._calibration["short"]["offset"] if short else 0.0)
        if found is not None:
            sure = min(max(found, 1e-6), 1 - 1e-6)
            odds += told["reranker"] * math.log(sure / (1 - sure))
        return 1 / (1 + math.exp(-odds))

    def _encode(self, texts: Sequence[str]) -> list[_Encoded]:
        # half a surrogate pair, which damaged PDFs hold, is not text to the tokenizer
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        return [_Encoded(one.ids, one.offsets) for one in self._tokenizer.encode_batch(clean)]

    def _read(self, front: list[int], passage: _Encoded) -> Reading:
        inner = slice(1, min(len(passage.ids) - 1, MAX_TOKENS - len(front)))
        ids = [*front, *passage.ids[inner], passage.ids[-1]]
        types = [0] * len(front) + [1] * (len(ids) - len(front))
        given = {"ids": np.array([ids], np.int64), "types": np.array([types], np.int64)}
        scores, tokens = self._session.run(None, given)
        places = passage.offsets[inner]
        read = tokens[0, len(front) : -1]
        spans = tuple(
            Found(places[first][0], places[last - 1][1], float(read[first:last, 0].mean()))
            for first, last in decode(read, lean=LEAN)
        )
        return Reading(float(scores[0, 0]), spans)


class _Encoded(NamedTuple):
    """The token ids of a text between two marks, and where each stands in it."""

    ids: list[int]
    offsets: list[tuple[int, int]]
