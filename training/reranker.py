"""Trains the reranker: low-rank weights and a head that read question and passage together.

python -m training.reranker --pack pack.npz --adapter models/embedders/weights/legal.safetensors --out FILE

It is also trained on questions without an answer, so that the best passage's score shows whether the
document has an answer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from exhibit.runtime.command import guarded
from training import _cli
from training.ground import Ground
from training.library import Library
from training.loop import Loop
from training.mining import FIRST, mine
from training.network import Encoder, Judge, Texts, export_lowrank, merge, start_from
from training.pack import Ints
from training.sampling import Row
from training.scoring import embed_all
from training.tensors import Array, read_tensors

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """The hyperparameters of a reranker's training."""

    rank: int = 32
    epochs: int = 1
    batch: int = 64
    """The questions of a step, with and without an answer."""
    others: int = 7
    """The number of wrong passages per question."""
    first: int = FIRST
    """The number of the embedder's first wrong passages from which the wrong passages are drawn."""
    impossible: float = 0.5
    """The number of questions without an answer per question with one."""
    headings: float = 0.25
    """The number of headings, each with a passage under it, per question."""
    library: float = 0.1
    """The number of library queries per question."""
    sure: float = 0.5
    """The weight of the loss on each score as a yes or no, beside the loss on the order of passages."""
    exists: float = 0.0
    """The weight of the loss on a question's best score, which should show whether there is an answer at all."""
    own: float = 0.0
    """The share of questions in the wording of their benchmark; the others are in any of their wordings."""
    balance: float = 0.5
    """The exponent of a source's size in the draw of questions: 1 = in proportion to size, 0 = all sources equally
    often.
    """
    rate: float = 5e-4
    average: float = 0.0
    """The decay of the moving average of the weights, per step; 0 = no average."""
    seed: int = 1


@dataclass(frozen=True)
class Group:
    """A question with passages, and the target probability of each passage.

    If no passage answers the question, all probabilities are 0.
    """

    query: int
    passages: list[int]
    shares: list[float]
    row: int = -1
    """The row of the question in the pack; -1 if it has none."""


def train_reranker(
    ground: Ground,
    weights: Mapping[str, Array],
    recipe: Recipe,
    *,
    start: Mapping[str, Array] | None = None,
    say: Say = lambda _: None,
) -> Judge:
    """Train a reranker and return it; the training starts from `weights`, the weights of an embedder.

    The wrong passages for training are passages that the embedder ranks high although they do not answer.
    `start` has the low-rank weights of an earlier training, to continue from.
    """
    texts = ground.texts
    groups = Groups(ground, weights, recipe)
    judge: Judge = Judge(weights, rank=recipe.rank, seed=recipe.seed).to(ground.device)
    start_from(judge, start or {})
    steps = max(1, groups.size // recipe.batch)
    loop = Loop(judge, recipe, steps=recipe.epochs * steps)
    for epoch in range(recipe.epochs):
        begun, losses = time.monotonic(), []
        for batch in groups.make_epoch(steps):
            losses.append(loop.step(compute_judged_loss(judge, texts, batch, recipe)))
        say(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {steps} steps, {time.monotonic() - begun:.1f} s")
    loop.settle()
    return judge


def compute_judged_loss(judge: Judge, texts: Texts, batch: Sequence[Group], recipe: Recipe) -> Tensor:
    """Return the reranker's loss on a batch of questions, each with right and wrong passages.

    The reranker scores every passage; `compute_scores_loss` compares the scores with the target probabilities.
    """
    device = texts.ids.device
    questions = torch.tensor([group.query for group in batch for _ in group.passages], device=device)
    passages = torch.tensor([passage for group in batch for passage in group.passages], device=device)
    shares = [group.shares for group in batch]
    return compute_scores_loss(judge.score(texts, questions, passages), shares, sure=recipe.sure, exists=recipe.exists)


def compute_scores_loss(scores: Tensor, shares: Sequence[Sequence[float]], *, sure: float, exists: float) -> Tensor:
    """Return the sum of three losses: on the order of passages, on each score, and on each question's best score.

    `shares` has, for each question, the target probability of each of its passages; all are 0 if no passage
    answers. `sure` is the weight of the second loss, and `exists` is the weight of the third.
    """
    device = scores.device
    wanted = torch.tensor([share for some in shares for share in some], device=device)
    single = torch.nn.functional.binary_cross_entropy_with_logits(scores, (wanted > 0).float())
    orders, best, at = [], [], 0
    for some in shares:
        part = slice(at, at + len(some))
        at = part.stop
        best.append(torch.logsumexp(scores[part], dim=0))
        if any(some):
            orders.append(-(wanted[part] * torch.log_softmax(scores[part], dim=0)).sum())
    order = torch.stack(orders).mean() if orders else scores.sum() * 0
    answered = torch.tensor([float(any(some)) for some in shares], device=device)
    whether = torch.nn.functional.binary_cross_entropy_with_logits(torch.stack(best), answered)
    return order + sure * single + exists * whether


class Groups:
    """A source of questions with right and wrong passages, for training."""

    def __init__(self, ground: Ground, weights: Mapping[str, Array], recipe: Recipe) -> None:
        self.pack, self.examples, self.recipe = ground.pack, ground.examples, recipe
        self.random = np.random.default_rng(recipe.seed)
        examples = self.examples
        encoder = Encoder(weights, rank=1, seed=0).to(ground.device)
        passages, queries = embed_all(encoder, ground.texts, ground.pack)
        self.queries = queries
        self.hard = mine(examples, examples.answerable, passages, queries, first=recipe.first)
        self.lacking = mine(examples, examples.impossible, passages, queries, first=recipe.first)
        self.library = ground.library if recipe.library else None
        rows = len(examples.answerable)
        self.counts = {
            "answerable": rows,
            "impossible": min(int(recipe.impossible * rows), len(examples.impossible)) if examples.impossible else 0,
            "headings": int(recipe.headings * rows) if len(examples.headings) else 0,
            "library": int(recipe.library * rows) if self.library else 0,
        }
        self.size = sum(self.counts.values())

    def make_epoch(self, steps: int) -> list[list[Group]]:
        """Return at most `steps` batches for an epoch, with all kinds of training questions in random order."""
        todo = [(name, turn) for name, count in self.counts.items() for turn in range(count)]
        order = self.random.permutation(len(todo))
        rows = {name: self._order(getattr(self.examples, name)) for name in ("answerable", "impossible")}
        groups = [self._draw(name, turn, rows) for name, turn in (todo[at] for at in order)]
        kept = [group for group in groups if len(group.passages) > 1]
        size = self.recipe.batch
        return [batch for step in range(steps) if (batch := kept[step * size : (step + 1) * size])]

    def _order(self, rows: list[Row]) -> Ints:
        if not rows:
            return np.zeros(0, np.int64)
        shares = self.examples.compute_shares(rows, self.recipe.balance)
        return np.asarray(self.random.choice(len(rows), size=len(rows), p=shares), np.int64)

    def _draw(self, name: str, turn: int, rows: Mapping[str, Ints]) -> Group:
        random, pack, recipe = self.random, self.pack, self.recipe
        if name == "headings":
            key, passage = self.examples.headings[random.integers(len(self.examples.headings))].tolist()
            span = pack.passages_of(int(pack.passages[passage, 0]))
            drawn = random.integers(span.start, span.stop, size=recipe.others).tolist()
            wrong = [at for at in drawn if pack.passages[at, 4] != key]
            return Group(int(pack.queries[key, 0]), [passage, *wrong], [1.0] + [0.0] * len(wrong))
        if name == "library" and self.library is not None:
            return self._draw_clauses(self.library)
        at = int(rows[name][turn % len(rows[name])])
        answerable = name == "answerable"
        row = (self.examples.answerable if answerable else self.examples.impossible)[at]
        hard = (self.hard if answerable else self.lacking)[at]
        query = int(pack.queries[self.examples.draw_wording(row, random, own=recipe.own), 0])
        count = recipe.others + (0 if answerable else 1)
        wrong = random.choice(hard, size=min(count, len(hard)), replace=False).tolist() if len(hard) else []
        if not answerable:
            return Group(query, wrong, [0.0] * len(wrong), row.number)
        right = int(random.choice(row.answers, p=row.weights))
        return Group(query, [right, *wrong], [1.0] + [0.0] * len(wrong), row.number)

    def _draw_clauses(self, library: Library) -> Group:
        drawn = library.draw(1, self.random)
        chosen = self.random.permutation(len(drawn.clauses[0]))[: 2 * self.recipe.others]
        passages = [int(self.random.choice(list(library.passages(int(drawn.clauses[0][at]))))) for at in chosen]
        shares = drawn.shares[0][chosen]
        total = float(shares.sum())
        return Group(int(drawn.queries[0]), passages, [float(s) / total if total else 0.0 for s in shares])


# ---------------------------------------------------------------- the command


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: train a reranker, save its weights, and print its measurements."""
    parser = argparse.ArgumentParser(prog="python -m training.reranker", description=__doc__.partition("\n")[0])
    _cli.add_arguments(parser, Recipe())
    parser.add_argument("--adapter", type=Path, required=True, metavar="FILE", help="the embedder's low-rank weights")
    options = parser.parse_args(arguments)
    _main(options)
    return 0


def _main(options: argparse.Namespace) -> None:
    pack, weights, device = _cli.prepare(options)
    recipe: Recipe = _cli.recipe_of(options, Recipe())
    adapted = merge(weights, read_tensors(options.adapter))
    ground = _cli.ground_of(pack, device, options)
    judge = train_reranker(ground, adapted, recipe, start=_cli.start_of(options), say=print)
    _cli.report_reranker(judge, adapted, pack, options, leave_out=ground.leave_out)
    arrays = export_lowrank(judge.encoder)
    arrays["head.weight"] = judge.head.weight.detach().cpu().numpy()
    arrays["head.bias"] = judge.head.bias.detach().cpu().numpy()
    about = _cli.describe_weights(pack, recipe, ground, options, adapter=_cli.digest(options.adapter))
    _cli.write(arrays, Path(options.out), about)


if __name__ == "__main__":
    sys.exit(main())
