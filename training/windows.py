"""Builds the input of the reader, the model that extracts answers.

The input consists of windows of a document of any length, and of labels for the tokens in the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as f
from torch import Tensor

from training.network import ASKED, CLS, LABELS, MOST, SEP, pad_length
from training.pack import ROLES, Ints, Pack, Random, group_rows

OUTSIDE = -1  # the label of a token outside the passage, which has no loss
_WHOLE = 0.5
"""The probability that a passage is shown with the rest of its sentences, as in the pipeline."""
_ALONE = 0.15
"""The probability that a passage is shown without the rest of its sentences."""
_CUT = 0.1
"""The probability that a passage is cut to some of its sentences; otherwise other text before or after it is added."""
_STOPS = (1012, 1025)  # the tokens of a full stop and of a semicolon in BERT's vocabulary

_NOWHERE: Ints = np.zeros((0, 2), np.int64)

Labels = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.uint16]
Window = slice
"""A range of consecutive tokens of a document."""


@dataclass(frozen=True)
class Batch:
    """A batch of questions, each with a window of a document, as tensors on the device."""

    ids: Tensor
    mask: Tensor
    types: Tensor
    labels: Tensor


class Windows:
    """The tokens of all passages of a pack in one sequence, with their offsets in the documents."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        count = len(pack.passages)
        self.ends = pack.ends[:count]
        self.starts = np.concatenate([[0], self.ends[:-1]])
        origin = np.repeat(pack.passages[:, 1], self.ends - self.starts)
        self.low, self.high = pack.places[:, 0] + origin, pack.places[:, 1] + origin
        self.gold, self.short = group_rows(pack.gold), group_rows(pack.short)
        self._says: dict[int, int] = dict(pack.says.tolist())
        roles = (ROLES.index("own"), ROLES.index("asked"))
        self._as_asked = {text for text, _, role in pack.queries.tolist() if role in roles}

    def make_window(self, passage: int, random: Random | None = None, *, room: int = MOST - ASKED - 2) -> Window:
        """Return the window of a passage: the range of its tokens and of the rest of its sentences."""
        start, end = int(self.starts[passage]), int(self.ends[passage])
        document = int(self.pack.passages[passage, 0])
        drawn = 0.0 if random is None else random.random()
        if random is None or drawn < _WHOLE:
            return self._extend(passage, Window(start, end))
        if drawn < _WHOLE + _ALONE:
            return Window(start, end)
        if drawn < _WHOLE + _ALONE + _CUT:
            stops = start + 1 + np.flatnonzero(np.isin(self.pack.tokens[start:end], _STOPS))
            cuts = np.unique(np.concatenate([[start], stops, [end]]))
            first = int(random.integers(len(cuts) - 1))
            last = int(random.integers(first + 1, len(cuts)))
            return Window(int(cuts[first]), int(cuts[last]))
        span = self.pack.passages_of(document)
        before, behind = random.integers(0, room, size=2).tolist()
        low, high = int(self.starts[span.start]), int(self.ends[span.stop - 1])
        spare = max(0, room - (end - start))
        taken = min(before, spare, start - low)
        return Window(start - taken, min(high, end + min(behind, spare - taken)))

    def draw_window(self, row: int, passage: int, gold: bool, random: Random) -> Window:
        """Return a window that is extended or cut at random; it contains gold if and only if the passage does."""
        window = self.make_window(passage, random)
        return window if self.mask_answers(row, window).any() == gold else self.make_window(passage)

    def _extend(self, passage: int, window: Window) -> Window:
        """Return the window of a passage extended to whole sentences."""
        low, high = self.pack.sentences[passage].tolist()
        here = self.tokens_of(int(self.pack.passages[passage, 0]))
        start = here.start + int(np.searchsorted(self.low[here], low))
        end = here.start + int(np.searchsorted(self.high[here], high, side="right"))
        return Window(min(start, window.start), max(end, window.stop))

    def tokens_of(self, document: int) -> slice:
        """Return the slice of a document's tokens among all tokens."""
        span = self.pack.passages_of(document)
        return slice(int(self.starts[span.start]), int(self.ends[span.stop - 1]))

    def verdict(self, row: int, query: int) -> int:
        """Return the training label of a yes-or-no question: 1 for yes, 0 for no, OUTSIDE if there is no label."""
        return self._says.get(row, OUTSIDE) if query in self._as_asked else OUTSIDE

    def mask_answers(self, row: int, window: Window) -> npt.NDArray[np.bool_]:
        """Return a mask of the tokens of a window that are part of a row's answers."""
        return self._mask_spans(self.gold.get(row, _NOWHERE), window)

    def _mask_spans(self, spans: Ints, window: Window) -> npt.NDArray[np.bool_]:
        low, high = self.low[window.start : window.stop], self.high[window.start : window.stop]
        inside = np.zeros(len(low), np.bool_)
        for start, end in spans.tolist():
            inside |= (low < end) & (high > start)
        return inside

    def make_batch(self, asked: Sequence[tuple[int, Tokens, Window]], device: torch.device) -> Batch:
        """Return a batch for training: each item is a question with a window of a document, and labels for its
        tokens.
        """
        questions = [tokens[: ASKED - 2] for _, tokens, _ in asked]
        sizes = [
            len(q) + 3 + min(w.stop - w.start, MOST - len(q) - 3) for q, (_, _, w) in zip(questions, asked, strict=True)
        ]
        width = pad_length(max(sizes))
        ids, types = (np.zeros((len(asked), width), np.int64) for _ in range(2))
        labels = np.full((len(asked), width, LABELS), OUTSIDE, np.int64)
        for at, (question, size, (row, _, window)) in enumerate(zip(questions, sizes, asked, strict=True)):
            front = len(question) + 2
            ids[at, 0], ids[at, 1 : front - 1], ids[at, front - 1], ids[at, size - 1] = CLS, question, SEP, SEP
            read = Window(window.start, window.start + size - 1 - front)
            ids[at, front : size - 1] = self.pack.tokens[read]
            types[at, front:size] = 1
            labels[at, front : size - 1, :3] = mark_edges(self.mask_answers(row, read))
            if row in self.short and (inside := self._mask_spans(self.short[row], read)).any():
                labels[at, front : size - 1, 3:] = mark_edges(inside)
        mask = np.arange(width)[None, :] < np.array(sizes)[:, None]
        return Batch(*(torch.from_numpy(array).to(device) for array in (ids, mask, types, labels)))


def mark_edges(inside: npt.NDArray[np.bool_]) -> Labels:
    """Return, for each token, whether it is in an answer, begins an answer, and ends an answer."""
    before = np.concatenate([[False], inside[:-1]])
    behind = np.concatenate([inside[1:], [False]])
    return np.stack([inside, inside & ~before, inside & ~behind], axis=1).astype(np.int64)


# ---------------------------------------------------------------- losses

_EDGE = 0.2
"""The weight of the summed losses at an answer's start and end; the loss on tokens has weight 1."""
_WITHOUT = 0.5
"""The weight of tokens in windows without an answer; tokens in windows with an answer have weight 1."""
_SPANS, _SAYS = 3.0, 1.5
"""The weights of the losses on tokens and on yes or no; the loss on scores has weight 1."""


def compute_span_losses(yes: Tensor, tokens: Tensor, verdicts: Tensor, labels: Tensor) -> Tensor:
    """Return the weighted sum of two losses: on the tokens of quotes and short answers, and on yes or no."""
    quotes = compute_tokens_loss(tokens[..., :3], labels[..., :3])
    short = compute_tokens_loss(tokens[..., 3:], labels[..., 3:])
    return _SAYS * compute_yes_loss(yes, verdicts) + _SPANS * (quotes + short)


def compute_yes_loss(odds: Tensor, said: Tensor) -> Tensor:
    """Return the binary cross-entropy of the yes-or-no output, over the windows with a known right answer."""
    known = said >= 0
    if not known.any():
        return odds.sum() * 0
    return f.binary_cross_entropy_with_logits(odds[known], said[known].float())


def compute_tokens_loss(tokens: Tensor, labels: Tensor) -> Tensor:
    """Return the loss on token labels (inside, start, end), averaged over windows."""
    known = (labels >= 0).float()
    wrong = f.binary_cross_entropy_with_logits(tokens, labels.clamp(min=0).float(), reduction="none") * known
    inside = wrong[:, :, 0].sum(1) / known[:, :, 0].sum(1).clamp(min=1)
    each = inside + _EDGE * wrong[:, :, 1:].sum((1, 2))
    answered = (labels[:, :, 0] == 1).any(1)
    empty = (labels[:, :, 0] == 0).any(1) & ~answered
    losses = tokens.sum() * 0
    for some, share in ((answered, 1.0), (empty, _WITHOUT)):
        losses = losses + share * (each * some).sum() / some.sum().clamp(min=1)
    return losses
