"""The default embedders on an NVIDIA device with PyTorch: `cuda` (the network of `legal`) and `cuda:minilm`.

`legal` and `minilm` use this module if PyTorch finds a device and onnxruntime does not. Vectors of `cuda`
equal those of `legal:fp16` up to rounding, and the index records the same embedder name for both. So an
index that was built here can be searched on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders import to_unit
from exhibit.models.network import (
    EPSILON,
    HEADS,
    LAYERS,
    OFFICIAL,
    VERSION,
    WIDTH,
    Feed,
    Network,
    Tokens,
    Weights,
    count_processors,
    open_legal_network,
    read_safetensors,
    with_adapter,
)
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ToolkitError

try:
    import torch
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    message = "the embedder cuda needs PyTorch, of the extra `train`: pip install 'exhibit-rag[train]'"
    raise ToolkitError(message) from error

_NETWORKS = {"legal": open_legal_network, "minilm": lambda: OFFICIAL}
_SLAB = 1 << 15
"""The number of texts whose tokens are on the device at a time: enough that texts of one length fill a batch."""
_TOKENS = 1 << 17
"""The number of tokens in one batch."""
_WORKERS = 12
"""The most processes that tokenise; each tokenises some 30,000 texts a second."""


LOCAL = True


def open(argument: str | None, *, weights: Path | None = None, device: str = "cuda", slab: int = _SLAB) -> Cuda:
    """Return the embedder; `weights` is a file of the official weights (None: find or download them)."""
    name = argument or "legal"
    if name not in _NETWORKS:
        raise ToolkitError(f"no embedder 'cuda:{name}'; there are {', '.join(f'cuda:{known}' for known in _NETWORKS)}")
    if device == "cuda" and not torch.cuda.is_available():
        raise ToolkitError("the embedder cuda: PyTorch finds no NVIDIA device on this machine; use `legal` or `minilm`")
    if weights is None:
        return Cuda(_NETWORKS[name](), device=device, slab=slab)
    official = read_safetensors(weights)
    merged = with_adapter(official) if name == "legal" else official
    return Cuda(_NETWORKS[name](), device=device, weights=merged, slab=slab)


class Cuda:
    """An embedder on a device: it runs batches of texts of equal length, without padding.

    Worker processes tokenise the next texts meanwhile. A vector does not depend on the other texts of its
    batch, except for rounding.
    """

    dimensions = WIDTH
    languages = frozenset({"en"})

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
        """The number of texts per call at which this embedder is fastest."""
        self.name = f"{network.name}-fp16-{VERSION}"
        self.device = torch.device(device)
        self._encoder = Encoder(weights or network.weights(), device=self.device)
        # two processors are reserved for launching work on the device and copying vectors back
        self.feed = Feed(workers=min(_WORKERS, count_processors() - 2) if workers is None else workers, slab=slab)

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - trained without prompts
        """Return one normalised row per text, in order; tokens after the first 256 are ignored."""
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for start, rows in self.slabs(texts):
            vectors[start : start + len(rows)] = rows
        return vectors

    def slabs(self, texts: Sequence[str]) -> Iterator[tuple[int, Vectors]]:
        """Yield the vectors of each slab (a range of the texts) in order, with the position of its first text."""
        with ThreadPoolExecutor(1) as finisher:
            waiting: list[tuple[int, Future[Vectors]]] = []
            for start, tokens in self.feed.slabs(texts):
                finish = partial(_finish, self.start(tokens), texts[start : start + len(tokens.lengths)])
                waiting.append((start, finisher.submit(finish, name=self.name)))
                if len(waiting) > 1:  # one slab runs while the one before is copied: at most two are on the device
                    first, rows = waiting.pop(0)
                    yield first, rows.result()
            for first, rows in waiting:
                yield first, rows.result()

    def start(self, tokens: Tokens) -> Callable[[], Vectors]:
        """Start to compute the vectors of tokenised texts.

        Return a function that waits for the vectors and returns them in the order of the texts.
        """
        order, copied = self._encoder.start(tokens, most=_TOKENS)

        def wait() -> Vectors:
            vectors = np.empty((len(order), WIDTH), np.float32)
            vectors[order] = copied()
            return vectors

        return wait


def _finish(copied: Callable[[], Vectors], texts: Sequence[str], *, name: str) -> Vectors:
    """Wait until the vectors of a slab are copied from the device, and return them scaled to length one."""
    return to_unit(copied(), texts, name=name)


_PARTS = ("query", "key", "value")
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""All backends except cuDNN's, which makes a new plan for each batch shape: with it an H200 was busy 5% of the time."""

Rows = npt.NDArray[np.int64]


class Encoder:
    """The network on a device; on a CPU, where only tests run it, it computes in single precision."""

    def __init__(self, weights: Weights, *, device: Any) -> None:
        self._device = torch.device(device)
        self._on_device = self._device.type == "cuda"
        kind = torch.float16 if self._on_device else torch.float32
        joint = dict(weights)
        for number in range(LAYERS):  # query, key and value in one matrix product, which is faster
            prefix = f"encoder.layer.{number}.attention.self"
            for part in ("weight", "bias"):
                joint[f"{prefix}.{part}"] = np.concatenate([joint.pop(f"{prefix}.{name}.{part}") for name in _PARTS])
        places = joint["embeddings.position_embeddings.weight"] + joint["embeddings.token_type_embeddings.weight"][0]
        joint["embeddings.position_embeddings.weight"] = places
        self._weights = {name: torch.tensor(array).to(self._device, kind) for name, array in joint.items()}
        self._copies = torch.cuda.Stream(self._device) if self._on_device else None

    def start(self, tokens: Tokens, *, most: int) -> tuple[Rows, Callable[[], Vectors]]:
        """Start to compute the vectors of tokenised texts.

        Return the texts' row numbers in the order of computation, and a function that waits for the vectors and
        returns them in that order.
        """
        batches = tokens.batches(most)
        order = np.concatenate([rows for rows, _ in batches]) if batches else np.zeros(0, np.int64)
        with torch.inference_mode(), sdpa_kernel(_ATTENTION):
            parts = [self._run(self._put(ids)) for _, ids in batches]
            vectors = torch.cat(parts) if parts else torch.zeros((0, WIDTH))
            return order, self._copy(vectors)

    def _put(self, ids: npt.NDArray[np.uint16]) -> Any:
        given = torch.from_numpy(ids.astype(np.int16))  # 30,522 token ids fit into 16 bits: half the bytes to copy
        if self._on_device:
            given = given.pin_memory()
        return given.to(self._device, non_blocking=True).int()

    def _copy(self, vectors: Any) -> Callable[[], Vectors]:
        """Start to copy vectors from the device once they are computed; return a function that waits for the copy."""
        if self._copies is None:
            return lambda: vectors.numpy()
        host = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
        self._copies.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._copies):
            host.copy_(vectors, non_blocking=True)
            vectors.record_stream(self._copies)
            done = torch.cuda.Event()
            done.record(self._copies)

        def wait() -> Vectors:
            done.synchronize()
            rows: Vectors = host.numpy()
            return rows

        return wait

    def _run(self, ids: Any) -> Any:
        state = functional.embedding(ids, self._weights["embeddings.word_embeddings.weight"])
        state = state + self._weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        state = self._normalise(state, "embeddings.LayerNorm")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            attended = self._apply_linear(
                self._attend(state, f"{layer}.attention.self"), f"{layer}.attention.output.dense"
            )
            state = self._normalise(attended + state, f"{layer}.attention.output.LayerNorm")
            wide = functional.gelu(self._apply_linear(state, f"{layer}.intermediate.dense"))
            state = self._normalise(
                self._apply_linear(wide, f"{layer}.output.dense") + state, f"{layer}.output.LayerNorm"
            )
        return functional.normalize(state.float().mean(dim=1), dim=1)

    def _attend(self, state: Any, name: str) -> Any:
        texts, tokens, _ = state.shape
        joint = self._apply_linear(state, name).view(texts, tokens, 3, HEADS, WIDTH // HEADS)
        query, key, value = joint.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return mixed.transpose(1, 2).reshape(texts, tokens, WIDTH)

    def _apply_linear(self, state: Any, name: str) -> Any:
        return functional.linear(state, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normalise(self, state: Any, name: str) -> Any:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(state, (WIDTH,), weight, bias, EPSILON)
