"""all-MiniLM-L6-v2 in PyTorch, in half precision on a device: token ids in, unit vectors out.

The texts of a batch have the same number of tokens, so there is no padding, and no mask to pay for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from exhibit.models.embedders._network import EPSILON, HEADS, LAYERS, WIDTH, Weights
from exhibit.models.embedders._tokens import Tokens
from exhibit.models.protocols import Vectors

_PARTS = ("query", "key", "value")
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""All but cuDNN's, which plans anew for each number of tokens and texts: with it an H200 was busy 5% of the time."""

Rows = npt.NDArray[np.int64]


class Encoder:
    """The network on a device; on a processor, where it is for tests, in single precision."""

    def __init__(self, weights: Weights, *, device: Any) -> None:
        self._device = torch.device(device)
        self._on_device = self._device.type == "cuda"
        kind = torch.float16 if self._on_device else torch.float32
        joint = dict(weights)
        for number in range(LAYERS):  # query, key and value come from one product, which is faster
            prefix = f"encoder.layer.{number}.attention.self"
            for part in ("weight", "bias"):
                joint[f"{prefix}.{part}"] = np.concatenate([joint.pop(f"{prefix}.{name}.{part}") for name in _PARTS])
        places = joint["embeddings.position_embeddings.weight"] + joint["embeddings.token_type_embeddings.weight"][0]
        joint["embeddings.position_embeddings.weight"] = places
        self._weights = {name: torch.tensor(array).to(self._device, kind) for name, array in joint.items()}
        self._copies = torch.cuda.Stream(self._device) if self._on_device else None

    def start(self, tokens: Tokens, *, most: int) -> tuple[Rows, Callable[[], Vectors]]:
        """Start on the texts' vectors; return their rows in the order they run, and what waits for the vectors."""
        batches = tokens.batches(most)
        order = np.concatenate([rows for rows, _ in batches]) if batches else np.zeros(0, np.int64)
        with torch.inference_mode(), sdpa_kernel(_ATTENTION):
            parts = [self._run(self._put(ids)) for _, ids in batches]
            vectors = torch.cat(parts) if parts else torch.zeros((0, WIDTH))
            return order, self._copy(vectors)

    def _put(self, ids: npt.NDArray[np.uint16]) -> Any:
        given = torch.from_numpy(ids.astype(np.int16))  # 30,522 tokens fit; half of the bytes to be copied
        if self._on_device:
            given = given.pin_memory()
        return given.to(self._device, non_blocking=True).int()

    def _copy(self, vectors: Any) -> Callable[[], Vectors]:
        """Copy vectors off the device behind its work; return what waits for them."""
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
            attended = self._linear(self._attend(state, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
            state = self._normalise(attended + state, f"{layer}.attention.output.LayerNorm")
            wide = functional.gelu(self._linear(state, f"{layer}.intermediate.dense"))
            state = self._normalise(self._linear(wide, f"{layer}.output.dense") + state, f"{layer}.output.LayerNorm")
        return functional.normalize(state.float().mean(dim=1), dim=1)

    def _attend(self, state: Any, name: str) -> Any:
        texts, tokens, _ = state.shape
        joint = self._linear(state, name).view(texts, tokens, 3, HEADS, WIDTH // HEADS)
        query, key, value = joint.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return mixed.transpose(1, 2).reshape(texts, tokens, WIDTH)

    def _linear(self, state: Any, name: str) -> Any:
        return functional.linear(state, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normalise(self, state: Any, name: str) -> Any:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(state, (WIDTH,), weight, bias, EPSILON)
