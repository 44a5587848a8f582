"""all-MiniLM-L6-v2 in PyTorch, frozen, with trainable low-rank weights beside each linear layer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as f
from safetensors.numpy import load as parse_safetensors
from safetensors.numpy import save as serialise_safetensors
from torch import Tensor, nn

_READ = (np.int8, np.float16, np.float32)
_SCALE = ".scale"
"""The suffix of the array that contains the scale of each row of an array of 8-bit numbers."""

Array = npt.NDArray[Any]
Tokens = npt.NDArray[np.uint16]


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file by name, in single precision.

    Arrays of 8-bit numbers are multiplied by their scales. Arrays of other integers are skipped.
    """
    stored = parse_safetensors(path.read_bytes())
    arrays = {name: array.astype(np.float32) for name, array in stored.items() if array.dtype in _READ}
    scales = {name.removesuffix(_SCALE): arrays.pop(name) for name in list(arrays) if name.endswith(_SCALE)}
    return {name: array * scales[name] if name in scales else array for name, array in arrays.items()}


def write_tensors(arrays: Mapping[str, Array], path: Path, *, eight: Collection[str] = ()) -> None:
    """Write arrays as a safetensors file: arrays in `eight` in 8 bits with a scale for each row, others in 16 bits."""
    stored: dict[str, Array] = {}
    for name, array in arrays.items():
        if name in eight:
            scale = np.maximum(np.abs(array).max(axis=1, keepdims=True) / 127, 1e-12).astype(np.float32)
            stored |= {name: np.ascontiguousarray(np.rint(array / scale), np.int8), name + _SCALE: scale}
        else:
            stored[name] = np.ascontiguousarray(array, np.float16)
    path.write_bytes(serialise_safetensors(stored))


_HEAD = 32
"""The dimensions of an attention head."""
CLS, SEP = 101, 102  # token ids of BERT's vocabulary
_EPSILON = 1e-12  # from the model's own config.json
_PRODUCTS = (
    "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
    "intermediate.dense", "output.dense",
)  # fmt: skip
_HEAD_PARTS = ("weight", "bias")
_ROOM = 98_304  # the most tokens in one batch, padding included
MOST = 256  # the most tokens of a text, or of a pair, with special tokens
_STEP = 16  # the length of a batch is padded to a multiple of this number of tokens
LABELS = 6  # for each token of a window: inside, start and end of the quote, then the same of the short answer
LEAST_INSIDE = 1e-3  # the least divisor of a mean: in a window without a quote the sum of weights is nearly 0
ASKED = 64  # the most tokens of a question in a pair


def list_products(weights: Mapping[str, object]) -> list[str]:
    """Return the names of the linear layers that get low-rank weights, from the first encoder layer to the last."""
    layers = len({name.split(".")[2] for name in weights if name.startswith("encoder.layer.")})
    return [f"encoder.layer.{layer}.{name}" for layer in range(layers) for name in _PRODUCTS]


class Encoder(nn.Module):
    """The encoder, which computes token states from token ids.

    With a rank, its weights are frozen and low-rank additions are trained. With rank 0, all layers are trained, and
    only the embeddings are frozen.
    """

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__()
        self.rank, self.names = rank, list_products(weights)
        self.width = weights["embeddings.LayerNorm.weight"].shape[0]
        for name, array in weights.items():
            tensor = torch.tensor(array, dtype=torch.float32)
            if not rank and name.startswith("encoder.layer."):
                self.register_parameter(_flatten_name(name), nn.Parameter(tensor))
            else:
                self.register_buffer(_flatten_name(name), tensor)
        maker = torch.Generator().manual_seed(seed)
        self.down, self.up = nn.ParameterDict(), nn.ParameterDict()
        for name in self.names if rank else ():
            rows, columns = weights[f"{name}.weight"].shape
            start = torch.randn(rank, columns, generator=maker) / columns**0.5
            self.down[_flatten_name(name)] = nn.Parameter(start)
            self.up[_flatten_name(name)] = nn.Parameter(torch.zeros(rows, rank))

    def get_weight(self, name: str) -> Tensor:
        """Return the frozen weight that has this name."""
        weight: Tensor = getattr(self, _flatten_name(name))
        return weight

    def merged(self) -> dict[str, Tensor]:
        """Return the weights of the linear layers, with the low-rank weights added."""
        if not self.rank:
            return {name: self.get_weight(f"{name}.weight") for name in self.names}
        flat = {name: _flatten_name(name) for name in self.names}
        return {n: self.get_weight(f"{n}.weight") + self.up[k] @ self.down[k] for n, k in flat.items()}

    def scale(self, strength: float) -> None:
        """Multiply the low-rank weights by a number."""
        with torch.no_grad():
            for up in self.up.values():
                up.mul_(strength)

    def forward(
        self, ids: Tensor, mask: Tensor, types: Tensor | None = None, *, merged: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """Return the hidden states of the last layer for a padded batch; a GPU computes them in bfloat16."""
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
            return self._compute_states(ids, mask, types, merged or self.merged()).float()

    def _compute_states(self, ids: Tensor, mask: Tensor, types: Tensor | None, merged: Mapping[str, Tensor]) -> Tensor:
        kinds = self.get_weight("embeddings.token_type_embeddings.weight")
        state = f.embedding(ids, self.get_weight("embeddings.word_embeddings.weight"))
        state = state + self.get_weight("embeddings.position_embeddings.weight")[: ids.shape[1]]
        state = self._normalise(
            state + (kinds[0] if types is None else f.embedding(types, kinds)), "embeddings.LayerNorm"
        )
        seen = mask[:, None, None, :]
        for number in range(len(self.names) // len(_PRODUCTS)):
            layer = f"encoder.layer.{number}"
            attended = self._attend(state, seen, f"{layer}.attention", merged)
            state = self._normalise(state + attended, f"{layer}.attention.output.LayerNorm")
            wide = f.gelu(self._multiply(state, f"{layer}.intermediate.dense", merged))
            narrow = self._multiply(wide, f"{layer}.output.dense", merged)
            state = self._normalise(state + narrow, f"{layer}.output.LayerNorm")
        return state

    def _attend(self, state: Tensor, seen: Tensor, prefix: str, merged: Mapping[str, Tensor]) -> Tensor:
        texts, length, _ = state.shape
        query, key, value = (
            self._multiply(state, f"{prefix}.self.{part}", merged).view(texts, length, -1, _HEAD).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = f.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        joined = mixed.transpose(1, 2).reshape(texts, length, self.width)
        return self._multiply(joined, f"{prefix}.output.dense", merged)

    def _multiply(self, state: Tensor, name: str, merged: Mapping[str, Tensor]) -> Tensor:
        return f.linear(state, merged[name], self.get_weight(f"{name}.bias"))

    def _normalise(self, state: Tensor, name: str) -> Tensor:
        return f.layer_norm(
            state, (self.width,), self.get_weight(f"{name}.weight"), self.get_weight(f"{name}.bias"), _EPSILON
        )

    # ---------------------------------------------------------------- embeddings

    def embed(self, texts: Texts, numbers: Tensor, *, merged: Mapping[str, Tensor] | None = None) -> Tensor:
        """Return a unit vector for each text, in order."""
        merged = merged or self.merged()

        def embed_rows(rows: Tensor) -> Tensor:
            ids, mask = texts.make_batch(numbers[rows])
            return f.normalize(_compute_mean(self.forward(ids, mask, merged=merged), mask), dim=-1)

        return _compute_by_length(texts.lengths[numbers], embed_rows)


class Judge(nn.Module):
    """The reranker: it reads a question and a passage together, and gives a high score if the passage answers."""

    states = 2
    """The states that the head reads: that of the first token, and the mean."""

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__()
        self.encoder = Encoder(weights, rank=rank, seed=seed)
        self.head = _make_head(self.states * self.encoder.width, 1, weights, "head", seed + 1)

    def decide(self, state: Tensor, mask: Tensor) -> Tensor:
        """Return the score of each pair from the states of its tokens."""
        scores: Tensor = self.head(torch.cat([state[:, 0], _compute_mean(state, mask)], dim=-1))[:, 0]
        return scores

    def score(self, texts: Texts, questions: Tensor, passages: Tensor) -> Tensor:
        """Return the reranker's score of each pair of a question and a passage, in order."""
        merged = self.encoder.merged()

        def score_rows(rows: Tensor) -> Tensor:
            ids, mask, types = texts.make_pairs(questions[rows], passages[rows])
            return self.decide(self.encoder(ids, mask, types, merged=merged), mask)

        return _compute_by_length(texts.measure_pairs(questions, passages), score_rows)


class Teacher(Judge):
    """A cross-encoder with BERT's original head, which computes a score from the first token's state."""

    states = 1

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__(weights, rank=rank, seed=seed)
        self.pooler = _make_head(self.encoder.width, self.encoder.width, weights, "pooler.dense", seed)
        self.pooler.requires_grad_(not rank)

    def decide(self, state: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG002
        """Return the score of each pair from the state of its first token."""
        scores: Tensor = self.head(torch.tanh(self.pooler(state[:, 0])))[:, 0]
        return scores


class Reader(Judge):
    """The extractive question-answering model: it reads a question together with a window of a document."""

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__(weights, rank=rank, seed=seed)
        # a low initial value, because few tokens answer
        self.says = _make_head(2 * self.encoder.width, 1, weights, "says", seed + 2)
        self.spans = _make_head(self.encoder.width, LABELS, weights, "spans", seed + 3, bias=-2.0)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return, for each window, a score and the log-odds of a yes, and six numbers for each token (see LABELS)."""
        state = self.encoder(ids, mask, types)
        tokens = self.spans(state)
        inside = torch.sigmoid(tokens[:, :, :1]) * types[:, :, None]
        quoted = (inside * state).sum(1) / inside.sum(1).clamp(min=LEAST_INSIDE)
        yes = self.says(torch.cat([state[:, 0], quoted], dim=-1))
        return self.decide(state, mask), yes[:, 0], tokens


def _make_head(
    columns: int, rows: int, weights: Mapping[str, Array], name: str, seed: int, *, bias: float = 0.0
) -> nn.Linear:
    """Return an output layer with the weights of this name or, if there are none, with small random weights."""
    layer = nn.Linear(columns, rows)
    with torch.no_grad():
        if f"{name}.weight" in weights:
            layer.weight.copy_(torch.from_numpy(weights[f"{name}.weight"]).reshape(rows, columns))
            layer.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]).reshape(rows))
        else:
            layer.weight.copy_(torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 0.02)
            layer.bias.fill_(bias)
    return layer


class Texts:
    """All texts of a pack on the device, each with special tokens, padded to one length."""

    def __init__(self, tokens: Tokens, ends: npt.NDArray[np.int64], device: torch.device) -> None:
        starts = np.concatenate([[0], ends[:-1]])
        lengths = np.minimum(ends - starts, MOST - 2)
        ids = np.zeros((len(ends), MOST), np.int32)
        ids[:, 0] = CLS
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            ids[row, 1 : length + 1] = tokens[start : start + length]
            ids[row, length + 1] = SEP
        self.ids = torch.from_numpy(ids).to(device)
        self.lengths = torch.from_numpy(lengths + 2).to(device)

    @classmethod
    def make_token_pairs(
        cls, pairs: Sequence[tuple[Tokens, Tokens]], device: torch.device
    ) -> tuple[Texts, Tensor, Tensor]:
        """Return the texts of pairs from outside a pack, and which of the texts are the questions and the passages."""
        tokens = [*(question for question, _ in pairs), *(text for _, text in pairs)]
        texts = cls(np.concatenate(tokens), np.cumsum([len(some) for some in tokens]), device)
        questions, passages = torch.arange(len(tokens), device=device).view(2, -1)
        return texts, questions, passages

    def make_batch(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return the token ids of some texts, one row per text, and the mask of the tokens that are not padding."""
        lengths = self.lengths[numbers]
        longest = _pad_length(lengths)
        mask = torch.arange(longest, device=lengths.device) < lengths[:, None]
        return self.ids[numbers, :longest].long(), mask

    def measure_pairs(self, questions: Tensor, passages: Tensor) -> Tensor:
        """Return the number of tokens of each pair, `[CLS] question [SEP] passage [SEP]`, after long texts are cut."""
        asked = self.lengths[questions].clamp(max=ASKED)
        return (asked + self.lengths[passages] - 1).clamp(max=MOST)

    def make_pairs(self, questions: Tensor, passages: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the token ids of pairs of a question and a passage, and two masks."""
        asked = self.lengths[questions].clamp(max=ASKED)[:, None]
        total = self.measure_pairs(questions, passages)[:, None]
        at = torch.arange(_pad_length(total), device=asked.device)[None, :]
        first = self.ids[questions].gather(1, at.clamp(max=MOST - 1).expand(len(questions), -1))
        second = self.ids[passages].gather(1, (at - asked + 1).clamp(0, MOST - 1))
        ids = torch.where(at < asked, first, second)
        ids = torch.where((at == asked - 1) | (at == total - 1), torch.full_like(ids, SEP), ids)
        mask = at < total
        return ids.long() * mask, mask, ((at >= asked) & mask).long()


def _pad_length(lengths: Tensor) -> int:
    """Return the greatest length rounded up to a multiple of 16, at most 256."""
    return min(MOST, -(-int(lengths.max()) // _STEP) * _STEP)


def _compute_mean(state: Tensor, mask: Tensor) -> Tensor:
    return (state * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


def _compute_by_length(lengths: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what `compute` returns for batches of row numbers, with at most `_ROOM` tokens and similar lengths."""
    lengths, order = torch.sort(lengths, descending=True)
    pieces, at = [], 0
    while at < len(lengths):
        rows = order[at : at + max(1, _ROOM // int(lengths[at]))]
        pieces.append(compute(rows))
        at += len(rows)
    return torch.cat(pieces)[torch.argsort(order)]


def export_lowrank(encoder: Encoder) -> dict[str, Array]:
    """Return the low-rank weights by name; the product `up @ down` is to be added to a layer's weight."""
    parts = {"down": encoder.down, "up": encoder.up}
    return {
        f"{name}.{part}": matrices[_flatten_name(name)].detach().cpu().numpy()
        for name in encoder.names
        for part, matrices in parts.items()
    }


def export_difference(encoder: Encoder, base: Mapping[str, Array], rank: int) -> dict[str, Array]:
    """Return low-rank weights that approximate the difference between a network's weights and the trained weights."""
    arrays: dict[str, Array] = {}
    for name, weight in encoder.merged().items():
        added = weight.detach() - torch.tensor(base[f"{name}.weight"], device=weight.device)
        left, sizes, right = torch.linalg.svd(added, full_matrices=False)
        roots = sizes[:rank].sqrt()
        arrays[f"{name}.up"] = (left[:, :rank] * roots).cpu().numpy()
        arrays[f"{name}.down"] = (roots[:, None] * right[:rank]).cpu().numpy()
    return arrays


def export_heads(module: nn.Module, *names: str) -> dict[str, Array]:
    """Return the weights of output layers by name."""
    layers = {name: getattr(module, name) for name in names}
    return {f"{n}.{k}": getattr(layer, k).detach().cpu().numpy() for n, layer in layers.items() for k in _HEAD_PARTS}


def merge(weights: Mapping[str, Array], low: Mapping[str, Array]) -> dict[str, Array]:
    """Return a network's weights with low-rank weights added to the linear layers, and with the heads of `low`."""
    merged = dict(weights)
    for name in list_products(weights):
        merged[f"{name}.weight"] = weights[f"{name}.weight"] + low[f"{name}.up"] @ low[f"{name}.down"]
    return merged | {name: array for name, array in low.items() if not name.endswith((".up", ".down"))}


def _flatten_name(name: str) -> str:
    return name.replace(".", "_")


_MAX_NORM = 1.0
"""The greatest norm of a step's gradient: a single unusual batch must not change the weights much."""


def make_steps(
    module: nn.Module, losses: Iterator[Tensor], *, rate: float, average: float, steps: int
) -> Iterator[Tensor]:
    """Make steps of gradient descent, and yield each loss; finally replace the weights by their moving averages."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    averages = [p.detach().clone() for p in parameters]
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps + 1, pct_start=0.1)
    for loss in islice(losses, steps):
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, _MAX_NORM)
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - average)
        yield loss.detach()
    with torch.no_grad():
        for mean, parameter in zip(averages, parameters, strict=True):
            parameter.copy_(mean)
