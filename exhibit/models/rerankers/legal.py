"""The reranker `legal`: MiniLM with our low-rank weights and a head. It reads a question and a passage together."""

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from exhibit.models.network import (
    MAX_TOKENS,
    Ids,
    Network,
    choose_variant,
    clean_text,
    count_processors,
    load_tokenizer,
    open_lowrank,
    open_session,
)

LOCAL = True
WEIGHTS = Path(__file__).parent / "weights" / "legal.safetensors"
CALIBRATION = WEIGHTS.with_name("confidence.json")
_QUESTION_TOKENS = 64  # most tokens of a question with special tokens, as in training


def open(argument: str | None) -> "LegalReranker":
    return LegalReranker(choose_variant("reranker", "legal", argument))


class Pair(NamedTuple):
    """A question and a passage in token ids: [CLS] question [SEP] passage [SEP]."""

    ids: Ids
    types: Ids  # marks the passage's tokens
    offsets: Sequence[tuple[int, int]]  # the span of each token of the passage, without the last special token


class PairModel:
    """A network that reads a question and a passage together; pairs run without padding, each independently."""

    def __init__(self, network: Network, variant: str, calibration: Path) -> None:
        self.name = f"{network.name}-{variant}"
        self.threads = count_processors()
        self._tokenizer = load_tokenizer()
        self._session = open_session(variant, network)
        self._calibration = json.loads(calibration.read_text(encoding="utf-8"))

    def tokenise(self, question: str, passages: Sequence[str]) -> list[Pair]:
        first, *texts = self._tokenizer.encode_batch(list(map(clean_text, (question, *passages))))
        mark = first.ids[-1]
        front = [*first.ids[:-1][: _QUESTION_TOKENS - 1], mark]
        pairs = []
        for text in texts:
            inner = slice(1, min(len(text.ids) - 1, MAX_TOKENS - len(front)))
            ids = [*front, *text.ids[inner], mark]
            types = [0] * len(front) + [1] * (len(ids) - len(front))
            pairs.append(Pair(np.array([ids], np.int64), np.array([types], np.int64), text.offsets[inner]))
        return pairs


class LegalReranker(PairModel):
    retrieval_weight = 1.5  # with 1, 1.5, 2 and 3, P@1 on mini is 55.0, 55.8, 56.0, 55.8; R@8 is 76.0, 76.0, 75.9, 75.3

    def __init__(self, variant: str = "int8", network: Network | None = None) -> None:
        super().__init__(network or open_lowrank("legal-reranker", WEIGHTS, "-1"), variant, CALIBRATION)

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        pairs = self.tokenise(question, passages)
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(self._score, pairs))

    def confidence(self, scores: Sequence[float]) -> float:
        """Return the calibrated probability that one of the passages answers, a logistic function of the best score."""
        curve = self._calibration
        return 1 / (1 + math.exp(-curve["slope"] * max(scores) - curve["offset"]))

    def _score(self, pair: Pair) -> float:
        return float(self._session.run(None, {"ids": pair.ids, "types": pair.types})[0][0, 0])
