"""The default embedders on an NVIDIA device by PyTorch: `cuda` (the network of `legal`), `cuda:minilm`.

`legal` and `minilm` come here by themselves where PyTorch sees a device and onnxruntime none. Vectors have the name of
`legal:fp16`, and are its vectors up to rounding: an index that was made here can be asked anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from exhibit.models.embedders._feed import Feed
from exhibit.models.embedders._network import (
    OFFICIAL,
    VERSION,
    WIDTH,
    Network,
    Weights,
    legal,
    processors,
    with_adapter,
)
from exhibit.models.embedders._tokens import Tokens
from exhibit.models.embedders._unit import to_unit
from exhibit.models.embedders._weights import read_safetensors
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ToolkitError

try:
    import torch

    from exhibit.models.embedders._minilm_torch import Encoder
except ImportError as error:
    told = "the embedder cuda needs PyTorch, of the extra `train`: pip install 'exhibit-rag[train]'"
    raise ToolkitError(told) from error

_NETWORKS = {"legal": legal, "minilm": lambda: OFFICIAL}
_SLAB = 1 << 15
"""Texts whose tokens are on the device at a time: enough that texts of one length fill a batch."""
_TOKENS = 1 << 17
"""Tokens that run together."""
_WORKERS = 12
"""Processes that tokenise, at most: each makes some 30,000 texts a second ready."""


LOCAL = True


def open(argument: str | None, *, weights: Path | None = None, device: str = "cuda", slab: int = _SLAB) -> Cuda:
    """Return the embedder; on the official weights in a file, where one is named."""
    name = argument or "legal"
    if name not in _NETWORKS:
        raise ToolkitError(f"no embedder 'cuda:{name}'; there are {', '.join(f'cuda:{known}' for known in _NETWORKS)}")
    if device == "cuda" and not torch.cuda.is_available():
        raise ToolkitError("the embedder cuda: PyTorch sees no NVIDIA device here; use `legal` or `minilm`")
    if weights is None:
        return Cuda(_NETWORKS[name](), device=device, slab=slab)
    official = read_safetensors(weights)
    merged = with_adapter(official) if name == "legal" else official
    return Cuda(_NETWORKS[name](), device=device, weights=merged, slab=slab)


class Cuda:
    """Workers tokenise ahead, the device runs texts of one length together, unpadded, and vectors are copied behind.

    A vector does not depend on its neighbours but for rounding.
    """

    dimensions = WIDTH

    def __init__(
        self,
        network: Network,
        *,
        device: str = "cuda",
        weights: Weights | None = None,
        workers: int | None = None,
        slab: int = _SLAB,
    ) -> None:
        self.many = slab
        """Texts that it likes to be given at once."""
        self.name = f"{network.name}-fp16-{VERSION}"
        self.device = torch.device(device)
        self._encoder = Encoder(weights or network.weights(), device=self.device)
        # two processors are left to what launches work on the device and takes vectors off it
        self.feed = Feed(workers=min(_WORKERS, processors() - 2) if workers is None else workers, slab=slab)

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - trained without prompts
        """Return one normalised row per text, in order; beyond 256 tokens a text is not read."""
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for start, rows in self.slabs(texts):
            vectors[start : start + len(rows)] = rows
        return vectors

    def slabs(self, texts: Sequence[str]) -> Iterator[tuple[int, Vectors]]:
        """Yield where a slab of texts starts, and its vectors, in order."""
        with ThreadPoolExecutor(1) as finisher:
            waiting: list[tuple[int, Future[Vectors]]] = []
            for start, tokens in self.feed.slabs(texts):
                finish = partial(_finish, self.start(tokens), texts[start : start + len(tokens.lengths)])
                waiting.append((start, finisher.submit(finish, name=self.name)))
                if len(waiting) > 1:  # one slab runs while the one before is copied: no more than two are on the device
                    first, rows = waiting.pop(0)
                    yield first, rows.result()
            for first, rows in waiting:
                yield first, rows.result()

    def start(self, tokens: Tokens) -> Callable[[], Vectors]:
        """Start on the vectors of some tokens; return what waits for them, in the tokens' order."""
        order, copied = self._encoder.start(tokens, most=_TOKENS)

        def wait() -> Vectors:
            vectors = np.empty((len(order), WIDTH), np.float32)
            vectors[order] = copied()
            return vectors

        return wait


def _finish(copied: Callable[[], Vectors], texts: Sequence[str], *, name: str) -> Vectors:
    """Wait for the rows of a slab."""
    return to_unit(copied(), texts, name=name)
