"""The reranker `legal`: MiniLM with low-rank weights and a head, which reads question and passage together.

The 2.7 MB of weights come with the package; they are added to the weights of the embedder `legal`. The
reranker's score is combined with the retrieval score, because each has information that the other lacks.
bench/results/models.md names the training data. `legal:int8` is for CPUs, `legal:fp16` for accelerators,
`legal:fp32` is the reference.
"""

import json
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from exhibit.models.embedders.minilm import (
    Ids,
    choose_variant,
    find_accelerator,
    group_by_length,
    load_graph,
    open_session,
)
from exhibit.models.network import (
    MAX_TOKENS,
    Network,
    adapt_weights,
    count_processors,
    load_tokenizer,
    merge,
    read_lowrank,
    read_record,
)

WEIGHTS = Path(__file__).parent / "weights" / "legal.safetensors"
CALIBRATION = WEIGHTS.with_name("confidence.json")
ASKED = 64
"""The most tokens of a question, special tokens included, as in training."""
_AT_ONCE = 64
"""The most pairs of one length that an accelerator runs together."""


def load_network() -> Network:
    """Return the reranker's network.

    Its weights are the sum of the official weights, the low-rank weights of the embedder `legal` at full
    strength, and the reranker's own low-rank weights.
    """
    name = f"legal-reranker-{read_record(WEIGHTS)['sha256'][:8]}"
    return Network(name, f"{name}-", _merge_weights)


def _merge_weights() -> dict[str, npt.NDArray[np.float32]]:
    low = read_lowrank(WEIGHTS)
    heads = {name: array for name, array in low.items() if name.startswith("head.")}
    return {**merge(adapt_weights(strength=1.0), low, strength=1.0), **heads}


LOCAL = True


def open(argument: str | None) -> "LegalReranker":
    """Return the reranker in the variant `argument`: `int8`, `fp16` or `fp32`.

    By default, it is the best variant for this machine. The ONNX graph is built on first use.
    """
    return LegalReranker(choose_variant("reranker", "legal", argument))


class Pair(NamedTuple):
    """A question and a passage in token ids: [CLS] question [SEP] passage [SEP]."""

    ids: Ids
    types: Ids
    """Marks the passage's tokens."""
    offsets: Sequence[tuple[int, int]]
    """The character range of each token of the passage, without the last special token."""


class PairModel:
    """A network that reads a question and a passage together; pairs run without padding, each independently."""

    def __init__(self, own: Network, variant: str, calibration: Path, *, threads: int | None = None) -> None:
        device = None if variant == "int8" else find_accelerator(onnxruntime.get_available_providers())
        self.name = f"{own.name}-{variant}"
        self._at_once = _AT_ONCE if device else 1
        self.threads = threads or count_processors()
        self._tokenizer = load_tokenizer()
        self._tokenizer.no_truncation()
        self._session = open_session(load_graph(variant, own), device)
        self._calibration = json.loads(calibration.read_text(encoding="utf-8"))

    def tokenise(self, question: str, passages: Sequence[str]) -> list[Pair]:
        """Return the tokens of the question and each passage as pairs; tokens of a pair beyond the 256th are cut
        off.
        """
        # the tokenizer rejects a lone surrogate, which damaged PDFs contain
        clean = [text.encode("utf-8", "replace").decode() for text in (question, *passages)]
        asked, *texts = self._tokenizer.encode_batch(clean)
        mark = asked.ids[-1]
        front = [*asked.ids[:-1][: ASKED - 1], mark]
        pairs = []
        for text in texts:
            inner = slice(1, min(len(text.ids) - 1, MAX_TOKENS - len(front)))
            ids = [*front, *text.ids[inner], mark]
            types = [0] * len(front) + [1] * (len(ids) - len(front))
            pairs.append(Pair(np.array([ids], np.int64), np.array([types], np.int64), text.offsets[inner]))
        return pairs


class LegalReranker(PairModel):
    """A reranker that reads a question and a passage together and returns a score.

    On a CPU, each pair of question and passage runs alone, and several pairs run at the same time in threads.
    On an accelerator, several pairs run in one batch.
    """

    retrieval_weight = 1.5
    """The weight of the retrieval score beside this reranker's, in standard deviations.

    On LegalBench-RAG-mini, through the whole pipeline and with earlier weights, 1.0, 1.5, 2.0 and 3.0 gave P@1 55.0,
    55.8, 56.0 and 55.8, and R@8 76.0, 76.0, 75.9 and 75.3. The value was chosen on these figures.
    """

    def __init__(self, variant: str = "int8", *, threads: int | None = None) -> None:
        super().__init__(load_network(), variant, CALIBRATION, threads=threads)

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return a score for each passage, in order: the log-odds of the network, not a probability."""
        pairs = self.tokenise(question, passages)
        scores = np.empty(len(pairs), np.float32)
        batches = group_by_length([pair.ids for pair in pairs], self._at_once)
        with ThreadPoolExecutor(self.threads) as pool:
            for rows, batch_scores in zip(batches, pool.map(lambda rows: self._run(rows, pairs), batches), strict=True):
                scores[rows] = batch_scores
        return [float(score) for score in scores]

    def confidence(self, scores: Sequence[float]) -> float:
        """Return the calibrated probability that one of the passages answers, a logistic function of the best score."""
        curve = self._calibration
        return 1 / (1 + math.exp(-curve["slope"] * max(scores) - curve["offset"]))

    def _run(self, rows: Sequence[int], pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        given = {name: np.concatenate([getattr(pairs[row], name) for row in rows]) for name in ("ids", "types")}
        scores: npt.NDArray[np.float32] = self._session.run(None, given)[0]
        return scores[:, 0]
