"""Makes batches of yes-no questions and of the clauses that answer them, for training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as f
from torch import Tensor

from training.network import ASKED, Judge, Texts, Tokens
from training.pack import Pack, Random
from training.windows import Windows

_NOT = 2025  # token ids of BERT's vocabulary
_VERBS = (4618, 2089, 2097, 2442, 2064)  # shall, may, will, must, can
_DENIALS = (_NOT, 2053, 4496, 4445, 2196, 3904, 2302, 4983, 3272)  # no, nor, neither, never, none, without, unless, ...
_ALONE = 0.3
"""The probability that a clause is shown without the text around it."""
_TURNED = 0.3
"""The probability that `not` is added to a clause, or removed from it, where this turns the answer round."""
_ROOM = 190  # the most tokens of a question and a clause together
_SURE = 0.98  # the target of a yes; the target of a no is 0.02


class Asked(NamedTuple):
    """A yes-no question, the tokens of its document, the range of its clause in them, and the answer."""

    question: Tokens
    text: Tokens
    clause: slice
    yes: bool


def list_asked(pack: Pack, split: str) -> list[Asked]:
    """Return people's yes-no questions about the documents of a split (`train` or `dev`)."""
    windows, asked = Windows(pack), []
    for row, yes in pack.says.tolist():
        document, _, query, _ = pack.rows[row].tolist()
        if pack.documents[document]["split"] != split or row not in windows.gold or query < 0:
            continue
        tokens, (start, end) = windows.tokens_of(document), windows.gold[row][0].tolist()
        first = int(np.searchsorted(windows.high[tokens], start, side="right"))
        last = int(np.searchsorted(windows.low[tokens], end))
        question = pack.text(pack.queries[query, 0])[: ASKED - 2]
        asked.append(Asked(question, pack.tokens[tokens], slice(first, max(last, first + 1)), bool(yes)))
    return asked


def turn(clause: Tokens) -> Tokens | None:
    """Negate a clause by adding or removing `not` after a modal verb; return None if it is unclear where."""
    denials, verbs = np.flatnonzero(np.isin(clause, _DENIALS)), np.flatnonzero(np.isin(clause, _VERBS))
    if len(denials) == 1 and clause[denials[0]] == _NOT and denials[0] - 1 in verbs:
        return np.delete(clause, denials[0])
    return np.insert(clause, verbs[0] + 1, _NOT) if len(verbs) == 1 and not len(denials) else None


def draw_pair(asked: Asked, random: Random | None) -> tuple[Tokens, Tokens, bool]:
    """Return a question, its clause and the answer; at random, negate the clause, or add the text around it."""
    question, text, clause, yes = asked
    words = text[clause]
    if random is not None and random.random() < _TURNED and (turned := turn(words)) is not None:
        words, yes = turned, not yes
    room = _ROOM - len(question) - len(words)
    if random is None or room <= 0 or random.random() < _ALONE:
        return question, words, yes
    before = int(random.integers(min(clause.start, room) + 1))
    behind = int(random.integers(max(0, room - before) + 1))
    shown = np.concatenate([text[clause.start - before : clause.start], words, text[clause.stop :][:behind]])
    return question, shown, yes


def judge(model: Judge, pairs: Sequence[tuple[Tokens, Tokens, bool]]) -> Tensor:
    """Return the log-odds of a yes for each pair of a question and a clause."""
    tokens = [(question, text) for question, text, _ in pairs]
    return model.score(*Texts.make_token_pairs(tokens, model.head.weight.device))


def teach_verdicts(
    model: Judge, asked: Sequence[Asked], random: Random, size: int, teachers: Sequence[Judge] = ()
) -> Iterator[Tensor]:
    """Yield the losses on batches of questions; with teachers, half of each target is their mean prediction."""
    while True:
        pairs = [draw_pair(asked[number], random) for number in random.integers(len(asked), size=size)]
        odds = judge(model, pairs)
        target = odds.new_tensor([_SURE if yes else 1 - _SURE for *_, yes in pairs])
        if teachers:
            with torch.no_grad():
                soft = torch.stack([torch.sigmoid(judge(teacher, pairs)) for teacher in teachers]).mean(0)
            target = (target + soft) / 2
        yield f.binary_cross_entropy_with_logits(odds, target)


def measure_verdicts(model: Judge, asked: Sequence[Asked]) -> float:
    """Return the share of the questions that the model answers correctly from the clause alone."""
    if not asked:
        return 0.0
    pairs = [draw_pair(question, None) for question in asked]
    with torch.no_grad():
        odds = judge(model, pairs).tolist()
    return float(np.mean([(number > 0) == yes for number, (*_, yes) in zip(odds, pairs, strict=True)]))
