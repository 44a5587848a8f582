"""all-MiniLM-L6-v2 in PyTorch, frozen, with trainable low-rank weights beside each linear layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as f
from torch import Tensor, nn

from training.tensors import Array

_HEAD = 32
"""The numbers of an attention head."""
CLS, SEP = 101, 102  # token ids of BERT's vocabulary
_EPSILON = 1e-12  # from the model's own config.json
_PRODUCTS = (
    "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
    "intermediate.dense", "output.dense",
)  # fmt: skip
_ROOM = 98_304
"""The most tokens in one batch, padding included."""
MOST = 256
"""The most tokens of a text, or of a pair, with special tokens."""
_STEP = 16
"""The length of a batch is padded to a multiple of this number of tokens."""
LABELS = 6
"""The numbers for each token of a window: inside, start and end of the quote, then the same of the short answer."""
LEAST_INSIDE = 1e-3
"""The least sum of weights that a mean is divided by: in a window without a quote the sum is nearly 0."""
ASKED = 64
"""The most tokens of a question in a pair."""


def list_products(weights: Mapping[str, object]) -> list[str]:
    """Return the names of the linear layers that get low-rank weights, from the first encoder layer to the last."""
    return [f"encoder.layer.{layer}.{name}" for layer in range(layers_of(weights)) for name in _PRODUCTS]


def layers_of(weights: Mapping[str, object]) -> int:
    """Return the number of encoder layers, counted by the names of the weights."""
    return len({name.split(".")[2] for name in weights if name.startswith("encoder.layer.")})


class Encoder(nn.Module):
    """The encoder, which computes token states from token ids.

    The low-rank weights `down` and `up` are trained; all other weights are frozen.
    """

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__()
        self.rank, self.layers, self.names = rank, layers_of(weights), list_products(weights)
        self.width = weights["embeddings.LayerNorm.weight"].shape[0]
        for name, array in weights.items():
            self.register_buffer(_flatten_name(name), torch.tensor(array, dtype=torch.float32))
        maker = torch.Generator().manual_seed(seed)
        self.down, self.up = nn.ParameterDict(), nn.ParameterDict()
        for name in self.names:
            rows, columns = weights[f"{name}.weight"].shape
            start = torch.randn(rank, columns, generator=maker) / columns**0.5
            self.down[_flatten_name(name)] = nn.Parameter(start)
            self.up[_flatten_name(name)] = nn.Parameter(torch.zeros(rows, rank))

    def get_weight(self, name: str) -> Tensor:
        """Return the frozen weight that has this name."""
        weight: Tensor = getattr(self, _flatten_name(name))
        return weight

    def merged(self, strength: float = 1.0) -> dict[str, Tensor]:
        """Return the weights of the linear layers, with the low-rank weights times `strength` added."""
        flat = {name: _flatten_name(name) for name in self.names}
        return {n: self.get_weight(f"{n}.weight") + strength * (self.up[k] @ self.down[k]) for n, k in flat.items()}

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None, merged: Mapping[str, Tensor]) -> Tensor:
        """Return the hidden states of the last layer for a padded batch.

        `merged` has the weights of the linear layers, with the adapter already added.
        """
        kinds = self.get_weight("embeddings.token_type_embeddings.weight")
        state = f.embedding(ids, self.get_weight("embeddings.word_embeddings.weight"))
        state = state + self.get_weight("embeddings.position_embeddings.weight")[: ids.shape[1]]
        state = self._normalise(
            state + (kinds[0] if types is None else f.embedding(types, kinds)), "embeddings.LayerNorm"
        )
        seen = mask[:, None, None, :]
        for number in range(self.layers):
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
        lengths, order = torch.sort(texts.lengths[numbers], descending=True)
        pieces = []
        for rows in _split_rooms(lengths.tolist()):
            ids, mask = texts.make_batch(numbers[order[rows]])
            with use_half(ids.device):
                state = self.forward(ids, mask, None, merged).float()
            pieces.append(f.normalize(_compute_mean(state, mask), dim=-1))
        return torch.cat(pieces)[torch.argsort(order)]


class Judge(nn.Module):
    """The reranker: it reads a question and a passage together, and gives a high score if the passage answers."""

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__()
        self.encoder = Encoder(weights, rank=rank, seed=seed)
        self.head = nn.Linear(2 * self.encoder.width, 1)
        nn.init.zeros_(self.head.bias)
        with torch.no_grad():
            maker = torch.Generator().manual_seed(seed + 1)
            self.head.weight.copy_(torch.randn(self.head.weight.shape, generator=maker) * 0.02)

    def score(
        self, texts: Texts, questions: Tensor, passages: Tensor, *, merged: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """Return the reranker's score of each pair of a question and a passage, in order.

        `questions` and `passages` have one index into `texts` for each pair. `merged` has the encoder's weights if
        they are already merged with the low-rank weights.
        """
        merged = merged or self.encoder.merged()
        lengths, order = torch.sort(texts.measure_pairs(questions, passages), descending=True)
        pieces = []
        for rows in _split_rooms(lengths.tolist()):
            ids, mask, types = texts.make_pairs(questions[order[rows]], passages[order[rows]])
            with use_half(ids.device):
                state = self.encoder(ids, mask, types, merged).float()
            both = torch.cat([state[:, 0], _compute_mean(state, mask)], dim=-1)
            pieces.append(self.head(both)[:, 0])
        return torch.cat(pieces)[torch.argsort(order)]


class Reader(nn.Module):
    """The extractive question-answering model: it reads a question together with a window of a document.

    It returns a score, which is high if the window answers the question, and the log-odds that the answer is
    yes. For each token it returns three numbers: whether the token is inside the quote that answers, begins it,
    or ends it. Three more numbers say the same of the short answer within the quote.
    """

    def __init__(self, weights: Mapping[str, Array], *, rank: int, seed: int) -> None:
        super().__init__()
        self.encoder = Encoder(weights, rank=rank, seed=seed)
        self.head = nn.Linear(2 * self.encoder.width, 1)
        self.says = nn.Linear(2 * self.encoder.width, 1)
        self.spans = nn.Linear(self.encoder.width, LABELS)
        with torch.no_grad():
            maker = torch.Generator().manual_seed(seed + 2)
            for layer in (self.head, self.says):
                layer.weight.copy_(torch.randn(layer.weight.shape, generator=maker) * 0.02)
                layer.bias.zero_()
            if "head.weight" in weights:  # the head starts with the weights of the reranker's head
                self.head.weight.copy_(torch.from_numpy(weights["head.weight"]))
                self.head.bias.copy_(torch.from_numpy(weights["head.bias"]))
            self.spans.weight.copy_(torch.randn(self.spans.weight.shape, generator=maker) * 0.02)
            self.spans.bias.fill_(-2.0)  # few tokens are part of an answer

    def forward(
        self, ids: Tensor, mask: Tensor, types: Tensor, merged: Mapping[str, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return, for each window, a score and the log-odds of a yes, and six numbers for each token (see LABELS).

        The score is high if the window answers the question. The log-odds are computed from the first token's
        state, and from the mean state of the tokens that are likely in the quote.
        """
        with use_half(ids.device):
            state = self.encoder(ids, mask, types, merged or self.encoder.merged()).float()
        both = torch.cat([state[:, 0], _compute_mean(state, mask)], dim=-1)
        tokens = self.spans(state)
        inside = torch.sigmoid(tokens[:, :, :1]) * types[:, :, None]
        quoted = (inside * state).sum(1) / inside.sum(1).clamp(min=LEAST_INSIDE)
        yes = self.says(torch.cat([state[:, 0], quoted], dim=-1))
        return self.head(both)[:, 0], yes[:, 0], tokens


class Texts:
    """All texts of a pack on the device, each with special tokens, padded to one length."""

    def __init__(self, tokens: npt.NDArray[np.uint16], ends: npt.NDArray[np.int64], device: torch.device) -> None:
        starts = np.concatenate([[0], ends[:-1]])
        lengths = np.minimum(ends - starts, MOST - 2)
        ids = np.zeros((len(ends), MOST), np.int32)
        ids[:, 0] = CLS
        for row, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            ids[row, 1 : length + 1] = tokens[start : start + length]
            ids[row, length + 1] = SEP
        self.ids = torch.from_numpy(ids).to(device)
        self.lengths = torch.from_numpy(lengths + 2).to(device)

    def make_batch(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return the token ids of some texts, one row per text, and the mask of the tokens that are not padding.

        `numbers` are the row numbers of the texts.
        """
        lengths = self.lengths[numbers]
        longest = pad_length(int(lengths.max()))
        mask = torch.arange(longest, device=lengths.device) < lengths[:, None]
        return self.ids[numbers, :longest].long(), mask

    def measure_pairs(self, questions: Tensor, passages: Tensor) -> Tensor:
        """Return the number of tokens of each pair, `[CLS] question [SEP] passage [SEP]`, after long texts are cut."""
        asked = self.lengths[questions].clamp(max=ASKED)
        return (asked + self.lengths[passages] - 1).clamp(max=MOST)

    def make_pairs(self, questions: Tensor, passages: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the token ids of pairs of a question and a passage, and two masks.

        The first mask marks the tokens that are not padding, the second the tokens of the passage. `questions`
        and `passages` are row numbers of texts.
        """
        asked = self.lengths[questions].clamp(max=ASKED)[:, None]
        total = self.measure_pairs(questions, passages)[:, None]
        at = torch.arange(pad_length(int(total.max())), device=asked.device)[None, :]
        first = self.ids[questions].gather(1, at.clamp(max=MOST - 1).expand(len(questions), -1))
        second = self.ids[passages].gather(1, (at - asked + 1).clamp(0, MOST - 1))
        ids = torch.where(at < asked, first, second)
        ids = torch.where((at == asked - 1) | (at == total - 1), torch.full_like(ids, SEP), ids)
        mask = at < total
        return ids.long() * mask, mask, ((at >= asked) & mask).long()


def pad_length(length: int) -> int:
    """Return a number of tokens rounded up to a multiple of 16, at most 256.

    With this rounding, batches have few different shapes on an accelerator.
    """
    return min(MOST, -(-length // _STEP) * _STEP)


def _compute_mean(state: Tensor, mask: Tensor) -> Tensor:
    return (state * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)


def use_half(device: torch.device) -> torch.autocast:
    """Return a context manager in which a GPU computes in bfloat16; on a CPU it changes nothing."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def _split_rooms(lengths: Sequence[int]) -> list[slice]:
    """Return slices that divide texts into batches of at most `_ROOM` tokens, including padding.

    `lengths` has the number of tokens of each text, longest first. All texts of a batch are padded to the
    length of the longest text.
    """
    rooms, at = [], 0
    while at < len(lengths):
        count = max(1, _ROOM // lengths[at])
        rooms.append(slice(at, at + count))
        at += count
    return rooms


def export_lowrank(encoder: Encoder, strength: float = 1.0) -> dict[str, Array]:
    """Return the low-rank weights by name; the product `up @ down` is to be added to a layer's weight."""
    arrays: dict[str, Array] = {}
    for name in encoder.names:
        key = _flatten_name(name)
        arrays[f"{name}.down"] = encoder.down[key].detach().cpu().numpy()
        arrays[f"{name}.up"] = strength * encoder.up[key].detach().cpu().numpy()
    return arrays


def load(encoder: Encoder, low: Mapping[str, Array]) -> None:
    """Replace the low-rank weights of an encoder by others of the same rank."""
    with torch.no_grad():
        for name in encoder.names:
            encoder.down[_flatten_name(name)].copy_(torch.from_numpy(low[f"{name}.down"]))
            encoder.up[_flatten_name(name)].copy_(torch.from_numpy(low[f"{name}.up"]))


def start_from(module: Encoder | Judge | Reader, arrays: Mapping[str, Array]) -> None:
    """Replace the low-rank weights and heads of a network by trained ones; an empty mapping changes nothing."""
    if not arrays:
        return
    load(module if isinstance(module, Encoder) else module.encoder, arrays)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name in arrays:
                parameter.copy_(torch.from_numpy(arrays[name]))


def merge(weights: Mapping[str, Array], low: Mapping[str, Array], strength: float = 1.0) -> dict[str, Array]:
    """Return a network's weights, with low-rank weights times `strength` added to the linear layers."""
    merged = dict(weights)
    for name in list_products(weights):
        merged[f"{name}.weight"] = weights[f"{name}.weight"] + strength * low[f"{name}.up"] @ low[f"{name}.down"]
    return merged


def _flatten_name(name: str) -> str:
    return name.replace(".", "_")
