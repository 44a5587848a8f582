"""all-MiniLM-L6-v2 with onnxruntime: `minilm` in 8-bit integers, `minilm:fp32` as the reference."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from exhibit.models import network
from exhibit.models.embedders import to_unit
from exhibit.models.protocols import Role, Vectors

LOCAL = True
# Texts of equal length run together, with at most this many tokens: 8 texts of 12 tokens take 0.54 of the time they
# take one by one, 4 of 25 take 0.76, and 2 of 45 take 0.89. The states of more tokens do not fit into a core's cache.
_INT8_TOKENS = 128


def open(argument: str | None) -> "MiniLM":
    return MiniLM(network.choose_variant("embedder", "minilm", argument))


class MiniLM:
    """An embedder that runs texts without padding, so that a vector never depends on the other texts of a batch."""

    dimensions = network.WIDTH
    languages = frozenset({"en"})

    def __init__(self, variant: str = "int8", *, model: network.Network = network.OFFICIAL) -> None:
        self.name = f"{model.name}-{variant}-{network.VERSION}"
        self.threads = network.count_processors()
        self._tokens = _INT8_TOKENS if variant == "int8" else 0
        self._tokenizer = network.load_tokenizer(max_tokens=network.MAX_TOKENS)
        self._session = network.open_session(variant, model)

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - trained without prompts
        vectors = np.empty((len(texts), network.WIDTH), np.float32)
        encodings = self._tokenizer.encode_batch_fast(list(map(network.clean_text, texts)))
        ids = [np.array([encoding.ids], np.int64) for encoding in encodings]
        batches = network.group_by_length(ids, self._tokens)
        with ThreadPoolExecutor(self.threads) as pool:
            joined = (np.concatenate([ids[row] for row in rows]) for rows in batches)
            for rows, batch_vectors in zip(batches, pool.map(self.run, joined), strict=True):
                vectors[rows] = batch_vectors
        return to_unit(vectors, texts, name=self.name)

    def run(self, ids: network.Ids) -> Vectors:
        vectors: Vectors = self._session.run(None, {"ids": ids})[0]
        return vectors
