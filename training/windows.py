"""Builds the input of the reader, the model that extracts answers.

The input consists of windows of a document of any length, and of labels for the tokens in the answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from exhibit.schemas.errors import ToolkitError
from training.network import ASKED, CLS, LABELS, MOST, SEP, pad_length
from training.pack import ROLES, Ints, Pack
from training.sampling import Random

OUTSIDE = -1
"""The label of a token outside the passage, which has no loss."""
_WHOLE = 0.5
"""The probability that a passage is shown with the rest of its sentences, as in the pipeline."""
_ALONE = 0.15
"""The probability that a passage is shown as it was split."""
_CUT = 0.1
"""The probability that it is cut to some of its sentences; else it is shown with any text before and after it."""
_STOPS = (1012, 1025)
"""The tokens of a full stop and of a semicolon in BERT's vocabulary."""

_NOWHERE: Ints = np.zeros((0, 2), np.int64)

Labels = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class Window:
    """A range of consecutive tokens of a document.

    `start` and `end` are positions among the tokens of all documents in a pack (a file of training data).
    """

    document: int
    start: int
    end: int


@dataclass(frozen=True)
class Batch:
    """A batch of questions, each with a window of a document, as tensors on the device.

    `labels` has six numbers for each token: whether the token is inside the quote, begins it and ends it, then
    the same three for the short answer. A number is OUTSIDE if the token has no such label.
    """

    ids: Tensor
    mask: Tensor
    types: Tensor
    labels: Tensor


class Windows:
    """The tokens of all passages of a pack in one sequence, with their offsets in the documents."""

    def __init__(self, pack: Pack) -> None:
        if not len(pack.places):
            raise ToolkitError("this pack has no offsets of its tokens; gather it again with training.gather")
        self.pack = pack
        count = len(pack.passages)
        self.ends = pack.ends[:count]
        self.starts = np.concatenate([[0], self.ends[:-1]])
        origin = np.repeat(pack.passages[:, 1], self.ends - self.starts)
        self.low, self.high = pack.places[:, 0] + origin, pack.places[:, 1] + origin
        self.gold, self.short = _group_by_row(pack.gold), _group_by_row(pack.short)
        self._says: dict[int, int] = dict(pack.says.tolist())
        roles = (ROLES.index("own"), ROLES.index("asked"))
        self._as_asked = {text for text, _, role in pack.queries.tolist() if role in roles}

    def make_window(self, passage: int, random: Random | None = None, *, room: int = MOST - ASKED - 2) -> Window:
        """Return the window of a passage: the range of its tokens and of the rest of its sentences.

        With `random`, the window is sometimes the passage as it was split, sometimes cut to some of the passage's
        sentences, and sometimes extended by any text before and after the passage, to at most `room` tokens.
        """
        start, end = int(self.starts[passage]), int(self.ends[passage])
        document = int(self.pack.passages[passage, 0])
        drawn = 0.0 if random is None else random.random()
        if random is None or drawn < _WHOLE:
            return self._extend(passage, Window(document, start, end))
        if drawn < _WHOLE + _ALONE:
            return Window(document, start, end)
        if drawn < _WHOLE + _ALONE + _CUT:
            stops = start + 1 + np.flatnonzero(np.isin(self.pack.tokens[start:end], _STOPS))
            cuts = np.unique(np.concatenate([[start], stops, [end]]))
            first = int(random.integers(len(cuts) - 1))
            last = int(random.integers(first + 1, len(cuts)))
            return Window(document, int(cuts[first]), int(cuts[last]))
        span = self.pack.passages_of(document)
        before, behind = random.integers(0, room, size=2).tolist()
        low, high = int(self.starts[span.start]), int(self.ends[span.stop - 1])
        spare = max(0, room - (end - start))
        taken = min(before, spare, start - low)
        return Window(document, start - taken, min(high, end + min(behind, spare - taken)))

    def _extend(self, passage: int, window: Window) -> Window:
        """Return the window of a passage extended to whole sentences; older packs do not say where these are."""
        if not len(self.pack.sentences):
            return window
        low, high = self.pack.sentences[passage].tolist()
        here = self.tokens_of(window.document)
        start = here.start + int(np.searchsorted(self.low[here], low))
        end = here.start + int(np.searchsorted(self.high[here], high, side="right"))
        return Window(window.document, min(start, window.start), max(end, window.end))

    def tokens_of(self, document: int) -> slice:
        """Return the slice of a document's tokens among all tokens."""
        span = self.pack.passages_of(document)
        return slice(int(self.starts[span.start]), int(self.ends[span.stop - 1]))

    def verdict(self, row: int, query: int) -> int:
        """Return the training label of a yes-or-no question: 1 for yes, 0 for no, OUTSIDE if there is no label.

        `query` is the number of the question's wording. A new wording may ask the opposite of the benchmark's
        wording, so only the benchmark's wording has a label.
        """
        return self._says.get(row, OUTSIDE) if query in self._as_asked else OUTSIDE

    def mask_answers(self, row: int, window: Window) -> npt.NDArray[np.bool_]:
        """Return a mask of the tokens of a window that are part of a row's answers."""
        return self._mask_spans(self.gold.get(row, _NOWHERE), window)

    def _mask_spans(self, spans: Ints, window: Window) -> npt.NDArray[np.bool_]:
        low, high = self.low[window.start : window.end], self.high[window.start : window.end]
        inside = np.zeros(len(low), np.bool_)
        for start, end in spans.tolist():
            inside |= (low < end) & (high > start)
        return inside

    def make_batch(self, asked: Sequence[tuple[int, Tokens, Window]], device: torch.device) -> Batch:
        """Return a batch for training: each item is a question with a window of a document, and labels for its tokens.

        Each tuple of `asked` has the row of the question, the question's tokens, and the window. The row is -1 for
        a question without gold; no token of its window is then labelled as answer.
        """
        questions = [tokens[: ASKED - 2] for _, tokens, _ in asked]
        sizes = [
            len(q) + 3 + min(w.end - w.start, MOST - len(q) - 3) for q, (_, _, w) in zip(questions, asked, strict=True)
        ]
        width = pad_length(max(sizes))
        ids, types = (np.zeros((len(asked), width), np.int64) for _ in range(2))
        labels = np.full((len(asked), width, LABELS), OUTSIDE, np.int64)
        for at, (question, size, (row, _, window)) in enumerate(zip(questions, sizes, asked, strict=True)):
            front = len(question) + 2
            ids[at, 0], ids[at, 1 : front - 1], ids[at, front - 1], ids[at, size - 1] = CLS, question, SEP, SEP
            read = Window(window.document, window.start, window.start + size - 1 - front)
            ids[at, front : size - 1] = self.pack.tokens[read.start : read.end]
            types[at, front:size] = 1
            labels[at, front : size - 1, :3] = mark_edges(self.mask_answers(row, read))
            if row in self.short and (inside := self._mask_spans(self.short[row], read)).any():
                labels[at, front : size - 1, 3:] = mark_edges(inside)
        mask = np.arange(width)[None, :] < np.array(sizes)[:, None]
        return Batch(*(torch.from_numpy(array).to(device) for array in (ids, mask, types, labels)))


def _group_by_row(spans: Ints) -> dict[int, Ints]:
    """Return the spans of each question, by the question's row number in the pack, as lines (start, end).

    `spans` has one line (row number, start, end) for each span.
    """
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, start, end in spans.tolist():
        found[row].append((start, end))
    return {row: np.array(some, np.int64) for row, some in found.items()}


def mark_edges(inside: npt.NDArray[np.bool_]) -> Labels:
    """Return, for each token, whether it is in an answer, begins one, and ends one.

    An answer that the window cuts begins or ends at the cut.
    """
    before = np.concatenate([[False], inside[:-1]])
    behind = np.concatenate([inside[1:], [False]])
    return np.stack([inside, inside & ~before, inside & ~behind], axis=1).astype(np.int64)
