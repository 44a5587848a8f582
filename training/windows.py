"""Builds the input of the reader, the model that extracts answers.

The input consists of windows of a document of any length, and of labels for the tokens in the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as f
from torch import Tensor

from training.grades import Graded, Losses, Weights, compute_taught_loss
from training.hints import Hints
from training.measure import Ground
from training.network import ASKED, LABELS, MOST, Reader, Texts, Tokens
from training.pack import NOTHING, ROLES, Ints, Pack, Random, group_rows

OUTSIDE = -1  # the label of a token outside the passage, which has no loss
_WHOLE = 0.5
"""The probability that a passage is shown with the rest of its sentences, as in the pipeline."""
_ALONE = 0.15
"""The probability that a passage is shown without the rest of its sentences."""
_CUT = 0.1
"""The probability that a passage is cut to some of its sentences; otherwise other text before or after it is added."""
_ROOM = MOST - ASKED - 2  # the most tokens of a passage with other text before or after it
_STOPS = (1012, 1025)  # the tokens of a full stop and of a semicolon in BERT's vocabulary

Window = slice
"""A range of consecutive tokens of a document."""


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

    def make_window(self, passage: int, random: Random | None = None) -> Window:
        """Return the window of a passage: all sentences that contain a part of it.

        With `random`, the window may instead be the passage alone, a part of it, or the passage with text around it.
        """
        start, end = int(self.starts[passage]), int(self.ends[passage])
        document = self.tokens_of(int(self.pack.passages[passage, 0]))
        drawn = 0.0 if random is None else random.random()
        if random is None or drawn < _WHOLE:
            low, high = self.pack.sentences[passage].tolist()
            first = document.start + int(np.searchsorted(self.low[document], low))
            last = document.start + int(np.searchsorted(self.high[document], high, side="right"))
            return Window(min(first, start), max(last, end))
        if drawn < _WHOLE + _ALONE:
            return Window(start, end)
        if drawn < _WHOLE + _ALONE + _CUT:
            stops = start + 1 + np.flatnonzero(np.isin(self.pack.tokens[start:end], _STOPS))
            cuts = np.unique(np.concatenate([[start], stops, [end]]))
            first = int(random.integers(len(cuts) - 1))
            last = int(random.integers(first + 1, len(cuts)))
            return Window(int(cuts[first]), int(cuts[last]))
        before, behind = random.integers(0, _ROOM, size=2).tolist()
        low, high = document.start, document.stop
        spare = max(0, _ROOM - (end - start))
        taken = min(before, spare, start - low)
        return Window(start - taken, min(high, end + min(behind, spare - taken)))

    def draw_window(self, row: int, passage: int, gold: bool, random: Random) -> Window:
        """Return a window that is extended or cut at random; it contains gold if and only if the passage does."""
        window = self.make_window(passage, random)
        return window if self.mask_answers(row, window).any() == gold else self.make_window(passage)

    def tokens_of(self, document: int) -> slice:
        """Return the slice of a document's tokens among all tokens."""
        span = self.pack.passages_of(document)
        return slice(int(self.starts[span.start]), int(self.ends[span.stop - 1]))

    def verdict(self, row: int, query: int) -> int:
        """Return the training label of a yes-no question: 1 for yes, 0 for no, OUTSIDE if there is no label."""
        return self._says.get(row, OUTSIDE) if query in self._as_asked else OUTSIDE

    def mask_answers(self, row: int, window: Window) -> npt.NDArray[np.bool_]:
        """Return a mask of the tokens of a window that are part of a row's answers."""
        return self._mask_spans(self.gold.get(row, NOTHING), window)

    def _mask_spans(self, spans: Ints, window: Window) -> npt.NDArray[np.bool_]:
        low, high = self.low[window.start : window.stop], self.high[window.start : window.stop]
        inside = np.zeros(len(low), np.bool_)
        for start, end in spans.tolist():
            inside |= (low < end) & (high > start)
        return inside

    def make_batch(
        self, asked: Sequence[tuple[int, Tokens, Window]], device: torch.device
    ) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        """Return a batch of questions, each with a window of a document, and the labels of the tokens."""
        pairs = [(question, self.pack.tokens[window]) for _, question, window in asked]
        texts, questions, passages = Texts.make_token_pairs(pairs, device)
        made = texts.make_pairs(questions, passages)
        labels = np.full((*made[0].shape, LABELS), OUTSIDE, np.int64)
        for at, (row, question, window) in enumerate(asked):
            front = min(len(question), ASKED - 2) + 2
            read = Window(window.start, min(window.stop, window.start + MOST - 1 - front))
            behind = front + read.stop - read.start
            labels[at, front:behind, :3] = mark_edges(self.mask_answers(row, read))
            if row in self.short and (inside := self._mask_spans(self.short[row], read)).any():
                labels[at, front:behind, 3:] = mark_edges(inside)
        return made, torch.from_numpy(labels).to(device)


def mark_edges(inside: npt.NDArray[np.bool_]) -> Ints:
    """Return, for each token, whether it is inside an answer, at its start, and at its end."""
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
    """Return the weighted sum of the losses on the tokens of quotes and short answers, and on yes or no."""
    quotes, short = (compute_tokens_loss(tokens[..., part], labels[..., part]) for part in (slice(3), slice(3, None)))
    known = verdicts >= 0
    loss = _SPANS * (quotes + short)
    if known.any():
        loss = loss + _SAYS * f.binary_cross_entropy_with_logits(yes[known], verdicts[known].float())
    return loss


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


def teach_reader(reader: Reader, ground: Ground, batches: Iterator[Graded], words: Hints, random: Random) -> Losses:
    """Yield the losses of the reader on windows around the passages, on the windows' tokens, and on yes-no answers."""
    windows, weights = Windows(ground.pack), Weights(gold=0.5, truth=0.8, exists=1.0)
    for batch in batches:
        shown, verdicts = [], []
        texts = ground.pack.queries[[question.query for question in batch.questions], 0].tolist()
        rows = zip(batch.questions, texts, batch.passages.tolist(), batch.answers.tolist(), strict=True)
        for question, text, numbers, answers in rows:
            asked = words.draw(text, random)
            for number, held in zip(numbers, answers, strict=True):
                shown.append((question.row, asked, windows.draw_window(question.row, number, held, random)))
                verdicts.append(windows.verdict(question.row, text) if held else OUTSIDE)
        pairs, labels = windows.make_batch(shown, ground.device)
        scores, yes, tokens = reader(*pairs)
        order = compute_taught_loss(scores.view(batch.passages.shape), batch, weights)
        said = torch.tensor(verdicts, device=ground.device)
        yield order + compute_span_losses(yes, tokens, said, labels)
