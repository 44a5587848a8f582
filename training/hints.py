"""Trains two linear classifiers of vectors: the kind of a question, and the kinds that a passage answers.

python -m training.hints --pack pack.npz --adapter models/embedders/weights/legal.safetensors --out models/weights/kinds

The first classifier gives the reader model hints. A hint is the benchmark's own wording of the predicted
kind; with it, the reader model understands questions in new wordings better. For training the reader model,
each wording is classified by a classifier that was not trained on it, so that the reader model learns how
reliable hints are. The second classifier is used for drafting, where the passages already have vectors, so
that it costs almost no time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as f
from torch import Tensor

from exhibit.models.reader import FEW
from exhibit.runtime.command import guarded
from training import _cli
from training.network import Encoder, Texts, merge
from training.pack import ROLES, Ints, Pack, Role
from training.tensors import Array, read_tensors
from training.windows import Tokens

LEAST = 0.4
"""The least probability at which a question is assigned to a kind, whose wording the reader model then gets."""
BETWEEN = 1064
"""The token between a question and its hint: a vertical bar in BERT's vocabulary."""
_FOLDS = 5
"""The number of classifiers that each leave out another part of the wordings: four fifths of them classify the rest
nearly as well as all.
"""
_PRINTED: tuple[Role, ...] = ("train", "test", "asked")
_DECAY = 3e-5
"""The weight decay: of values from 1e-3 to 1e-5, the least that is as good on test wordings (0.85 are classified
right).
"""

_SPOT_STEPS, _SPOT_RATE, _SPOT_DECAY = 400, 0.1, 0.3
"""Steps, rate and decay of the fit. Of the decays 0.1, 0.3 and 1 the second has the best AUROC on the documents for
tuning: 0.941 on CUAD and 0.934 on ContractNLI. It is 0.932 and 0.924 if the loss is on passages alone, and 0.902 and
0.928 if it is on documents alone.
"""
_TRUSTED = 5.0
"""The penalty that keeps a kind's calibration near that of all kinds; 2 and 10 are as good on the documents for
tuning.
"""


@dataclass(frozen=True)
class Kinds:
    """A linear classifier that predicts the kind of a question from its vector.

    `words` has, for each kind, the tokens of the benchmark's own wording.
    """

    weight: Array
    bias: Array
    words: list[Tokens]

    def of(self, vectors: Tensor) -> Ints:
        """Return the index of the most probable kind of each question, given the questions' vectors.

        The index is -1 if no kind has a probability of at least `LEAST`.
        """
        return _choose_likely(vectors, torch.from_numpy(self.weight), torch.from_numpy(self.bias))

    def add_hint(self, question: Tokens, kind: int) -> Tokens:
        """Return a question's tokens, followed by a separator and the tokens of its kind's wording (the hint).

        A question without a kind, or in exactly that wording, is returned without a hint.
        """
        if kind < 0 or np.array_equal(question, self.words[kind]):
            return question
        return np.concatenate([question, np.array([BETWEEN], np.uint16), self.words[kind]])


def learn(pack: Pack, queries: Tensor) -> tuple[Kinds, Ints]:
    """Train a classifier of questions by kind; return the classifier, and the predicted kind of each query.

    The predictions are cross-validated: each query is classified by a model that was trained on other queries.
    """
    vectors, kinds = queries.detach().float().cpu(), torch.from_numpy(pack.queries[:, 1])
    role = np.array(ROLES)[pack.queries[:, 2]]
    known = np.flatnonzero(np.isin(role, ("own", "train")) & (pack.queries[:, 1] >= 0))
    weight, bias = _fit(vectors[known], kinds[known], len(pack.kinds))
    taken = _choose_likely(vectors, weight, bias)
    folds = np.random.default_rng(0).permutation(len(known)) % _FOLDS
    for fold in range(_FOLDS):
        seen, unseen = known[folds != fold], known[folds == fold]
        taken[unseen] = _choose_likely(vectors[unseen], *_fit(vectors[seen], kinds[seen], len(pack.kinds)))
    own = {int(kind): pack.text(int(text)) for text, kind, number in pack.queries if ROLES[number] == "own"}
    return Kinds(weight.numpy(), bias.numpy(), [own[kind] for kind in range(len(pack.kinds))]), taken


@dataclass(frozen=True)
class Spots:
    """A linear classifier that predicts from a passage's vector the kinds of questions that it answers.

    `slope` and `offset` are the calibration for each kind of question.
    """

    weight: Array
    bias: Array
    slope: Array
    offset: Array


def spot(pack: Pack, vectors: Tensor, documents: Ints) -> Spots:
    """Return a classifier that predicts from a passage's vector the kinds of questions that the passage answers.

    For each kind of question, a calibration turns the classifier's scores into probabilities. It is fitted by
    cross-validation: each document is scored by a classifier that was trained on other documents. If a kind is
    hard to predict, the calibration keeps its probabilities away from 0 and 1.
    """
    owner = torch.from_numpy(pack.passages[:, 0]).to(vectors.device)
    asked, answers, gold = _tabulate_kinds(pack, vectors.device)
    unseen = torch.zeros_like(asked)
    folds = np.random.default_rng(0).permutation(len(documents)) % _FOLDS
    for fold in range(_FOLDS):
        weight, bias = _fit_spots(vectors, owner, _mask_documents(asked, documents[folds != fold]), answers, gold)
        odds = vectors @ weight.T + bias
        for document in documents[folds == fold]:
            few = odds[pack.passages_of(int(document))]
            unseen[document] = few.topk(min(FEW, len(few)), dim=0).values.logsumexp(0)
    weight, bias = _fit_spots(vectors, owner, _mask_documents(asked, documents), answers, gold)
    known = _mask_documents(asked, documents).cpu().numpy() > 0
    told, truth = unseen.cpu().numpy(), answers.cpu().numpy()
    usual = _fit_curve(told[known], truth[known], np.array([1.0, 0.0]), 1e-3)
    curves = [
        _fit_curve(told[known[:, kind], kind], truth[known[:, kind], kind], usual, _TRUSTED)
        for kind in range(len(pack.kinds))
    ]
    return Spots(weight.cpu().numpy(), bias.cpu().numpy(), *np.array(curves, np.float32).T)


def _tabulate_kinds(pack: Pack, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return three tables of 0 and 1 with one column per kind of question.

    The first two have a row per document: whether the kind is asked about it, and whether the document answers
    it. The third has a row per passage: whether the passage has gold of the kind.
    """
    shape = len(pack.documents), len(pack.kinds)
    asked, answers = torch.zeros(shape, device=device), torch.zeros(shape, device=device)
    for document, kind, _, impossible in pack.rows[pack.rows[:, 1] >= 0]:
        asked[document, kind], answers[document, kind] = 1.0, float(not impossible)
    gold = torch.zeros(len(pack.passages), shape[1], device=device)
    rows = pack.rows[pack.positives[:, 0], 1]
    gold[pack.positives[rows >= 0, 1], rows[rows >= 0]] = 1.0
    return asked, answers, gold


def _mask_documents(asked: Tensor, documents: Ints) -> Tensor:
    kept = torch.zeros_like(asked)
    kept[documents] = asked[documents]
    return kept


def _fit_spots(vectors: Tensor, owner: Tensor, asked: Tensor, answers: Tensor, gold: Tensor) -> tuple[Tensor, Tensor]:
    """Fit a linear classifier that predicts from a passage's vector which kinds of questions the passage answers.

    Return its weight and its bias. The loss has two terms: on whether each passage has gold for a kind of
    question, and on whether each document answers this kind. A document's log-odds are the soft maximum over
    its passages.
    """
    classifier = torch.nn.Linear(vectors.shape[1], asked.shape[1], device=vectors.device)
    torch.nn.init.zeros_(classifier.weight)
    torch.nn.init.constant_(classifier.bias, -5.0)
    solver = torch.optim.AdamW(classifier.parameters(), lr=_SPOT_RATE, weight_decay=_SPOT_DECAY)
    rates = torch.optim.lr_scheduler.OneCycleLR(solver, max_lr=_SPOT_RATE, total_steps=_SPOT_STEPS)
    for _ in range(_SPOT_STEPS):
        odds = classifier(vectors)
        each = _compute_mean_loss(odds, gold, asked[owner])
        together = _compute_mean_loss(_pool_odds(odds, owner, len(asked)), answers, asked)
        solver.zero_grad()
        (50 * each + 1.5 * together).backward()
        solver.step()
        rates.step()
    return classifier.weight.detach(), classifier.bias.detach()


def _fit_curve(odds: Array, truth: Array, usual: Array, ridge: float) -> Array:
    """Fit the probability of an answer as a logistic function of log-odds; return its slope and its offset.

    `odds` are the predicted log-odds, and `truth` is 1 where there is an answer. `usual` is the slope and
    offset that the result is pulled to, with the strength `ridge`.
    """
    table, curve = np.stack([odds, np.ones(len(odds))], axis=1), usual.copy()
    for _ in range(30):
        likely = 1 / (1 + np.exp(-np.clip(table @ curve, -60, 60)))
        slope = table.T @ (likely - truth) + ridge * (curve - usual)
        curve -= np.linalg.solve((table * (likely * (1 - likely))[:, None]).T @ table + ridge * np.eye(2), slope)
    return curve


def _pool_odds(odds: Tensor, owner: Tensor, count: int) -> Tensor:
    """Return a table of log-odds that a document (row) answers a kind of question (column).

    A value is the log-sum-exp, a soft maximum, of the log-odds of the document's passages (`odds`). `owner` has
    the row of each passage's document.
    """
    best = torch.full((count, odds.shape[1]), -1e9, device=odds.device)
    best = best.scatter_reduce(0, owner[:, None].expand_as(odds), odds.detach(), "amax")
    sums = torch.zeros_like(best).index_add(0, owner, torch.exp(odds - best[owner]))
    return best + torch.log(sums.clamp(min=1e-9))


def _compute_mean_loss(odds: Tensor, truth: Tensor, counts: Tensor) -> Tensor:
    losses = f.binary_cross_entropy_with_logits(odds, truth, reduction="none")
    return (losses * counts).sum() / counts.sum()


def usual_of(pack: Pack) -> list[float]:
    """Return, for each kind of question, the log-odds that a training document answers it.

    The odds are (documents with an answer + 1) / (documents without an answer + 1).
    """
    rows = pack.rows[np.isin(pack.rows[:, 0], pack.documents_of("train"))]
    answers = [rows[rows[:, 1] == kind, 3] == 0 for kind in range(len(pack.kinds))]
    return [round(float(np.log((some.sum() + 1) / ((~some).sum() + 1))), 2) for some in answers]


def _choose_likely(vectors: Tensor, weight: Tensor, bias: Tensor) -> Ints:
    best = (f.normalize(vectors.float().cpu(), dim=1) @ weight.T + bias).softmax(1).max(1)
    return np.where(best.values.numpy() >= LEAST, best.indices.numpy(), -1)


def _fit(vectors: Tensor, kinds: Tensor, count: int) -> tuple[Tensor, Tensor]:
    weight, bias = torch.zeros(count, vectors.shape[1], requires_grad=True), torch.zeros(count, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=150, line_search_fn="strong_wolfe")
    near = f.normalize(vectors, dim=1)

    def compute_loss() -> Tensor:
        solver.zero_grad()
        wrong = f.cross_entropy(near @ weight.T + bias, kinds) + _DECAY * (weight**2).sum()
        wrong.backward()
        return wrong

    solver.step(compute_loss)
    return weight.detach(), bias.detach()


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Train the classifier of questions and the classifier of passages, and write both to a file.

    Print the share of wordings that the classifier of questions assigns to a kind, and the share of these that it
    assigns to the right kind.
    """
    parser = argparse.ArgumentParser(prog="python -m training.hints", description=(__doc__ or "").partition("\n")[0])
    _cli.add_inputs(parser)
    parser.add_argument("--adapter", type=Path, required=True, metavar="FILE", help="the embedder's low-rank weights")
    parser.add_argument("--out", type=Path, required=True, metavar="NAME", help="writes NAME.safetensors and NAME.json")
    options = parser.parse_args(arguments)
    pack, weights, device = _cli.prepare(options)
    encoder = Encoder(merge(weights, read_tensors(options.adapter)), rank=1, seed=0).to(device)
    asked = np.flatnonzero(np.isin(pack.queries[:, 2], [ROLES.index(role) for role in ("own", *_PRINTED)]))
    texts = torch.from_numpy(pack.queries[asked, 0]).to(device)
    queries = torch.zeros(len(pack.queries), encoder.width)
    every = Texts(pack.tokens, pack.ends, device)
    with torch.no_grad():
        merged = encoder.merged()
        queries[asked] = encoder.embed(every, texts, merged=merged).cpu()
        passages = encoder.embed(every, torch.arange(len(pack.passages), device=device), merged=merged)
    kinds, taken = learn(pack, queries)
    splits = ("train", "dev") if options.all else ("train",)
    spots = spot(pack, passages.clone(), np.concatenate([pack.documents_of(split) for split in splits]))
    for role in _PRINTED:
        some = pack.queries[:, 2] == ROLES.index(role)
        right, any_ = taken[some] == pack.queries[some, 1], taken[some] >= 0
        share, right = np.mean(any_), np.sum(right[any_]) / max(1, np.sum(any_))
        print(f"{role}: {some.sum()} wordings, {share:.2f} taken for a kind, {right:.2f} of them rightly")
    from training.questions import (
        read_wordings,
    )  # imported here, since it needs the converters, which a machine for training may lack

    wordings = {source: read_wordings(source) for source in {kind.partition("/")[0] for kind in pack.kinds}}
    asks = [wordings[kind.partition("/")[0]][kind.partition("/")[2]].own for kind in pack.kinds]
    usual = dict(zip(pack.kinds, usual_of(pack), strict=True))
    told = {
        "kinds": dict(zip(pack.kinds, asks, strict=True)),
        "usual": usual,
        "adapter": _cli.digest(options.adapter),
        "least": LEAST,
    }
    weights = {"weight": kinds.weight, "bias": kinds.bias}
    weights |= {f"spots.{name}": array for name, array in vars(spots).items()}
    _cli.write(weights, options.out, told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
