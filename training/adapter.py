"""Trains the embedder's adapter: low-rank weights for all-MiniLM-L6-v2, with a contrastive loss.

python -m training.adapter --pack pack.npz --out models/embedders/weights/legal
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from exhibit.runtime.command import guarded
from training import _cli
from training.ground import Ground
from training.library import compute_library_loss
from training.loop import Loop
from training.mining import mine
from training.network import Encoder, Texts, export_lowrank, start_from
from training.pack import Ints
from training.sampling import Examples, Random
from training.scoring import embed_all
from training.tensors import Array

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe:
    """The hyperparameters of an adapter's training."""

    rank: int = 16
    epochs: int = 3
    batch: int = 128
    """The questions of a step."""
    headings: float = 1.0
    """The number of headings per question."""
    hard: int = 4
    """For each question: the number of wrong passages of the same document that rank high …"""
    easy: int = 2
    """… of any other wrong passages of the document …"""
    foreign: int = 1
    """… and of high-ranked passages of documents without an answer."""
    alone: int = 12
    """The number of wrong passages for a question without a kind, in place of the three numbers above. They come from
    its own document alone, since other documents may contain an answer.
    """
    library: int = 6
    """The number of library queries per step."""
    rate: float = 1e-3
    temperature: float = 0.05
    balance: float = 0.5
    """The exponent of a source's size in the draw of questions: 1 draws in proportion to size, 0 draws all sources
    equally often. CUAD has eight times as many questions as MAUD.
    """
    keep: float = 0.0
    """The weight of the penalty for moving a passage's vector away from its original one."""
    average: float = 0.0
    """The decay of the moving average of the weights, per step; 0 = no average."""
    seed: int = 1


def train_adapter(
    ground: Ground,
    weights: Mapping[str, Array],
    recipe: Recipe,
    *,
    start: Mapping[str, Array] | None = None,
    say: Say = lambda _: None,
) -> Encoder:
    """Train low-rank weights for the network and return it; `start` has earlier low-rank weights to continue from."""
    pack, texts, examples = ground.pack, ground.texts, ground.examples
    library = ground.library if recipe.library else None
    random = np.random.default_rng(recipe.seed)
    encoder: Encoder = Encoder(weights, rank=recipe.rank, seed=recipe.seed).to(ground.device)
    start_from(encoder, start or {})
    steps = max(1, len(examples.answerable) // recipe.batch)
    loop = Loop(encoder, recipe, steps=recipe.epochs * steps)
    original = embed_all(encoder, texts, pack)[0] if recipe.keep else None
    for epoch in range(recipe.epochs):
        begun = time.monotonic()
        batches = _Batches(examples, encoder, texts, recipe, random)
        losses = []
        for step in range(steps):
            merged = encoder.merged()
            batch = batches.draw(step)
            loss = compute_contrast(encoder, texts, batch, examples, recipe, merged, original)
            if library is not None:
                loss = loss + compute_library_loss(
                    encoder, texts, library, recipe.library, random, merged, recipe.temperature
                )
            losses.append(loop.step(loss))
        say(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {steps} steps, {time.monotonic() - begun:.1f} s")
    loop.settle()
    return encoder


# ---------------------------------------------------------------- one step


@dataclass(frozen=True)
class Batch:
    """The queries of one training step, with the kind of each query and with passages.

    `answers` has a passage that answers each query. `others` has further passages to compare, most of them
    wrong.
    """

    queries: Ints
    """The numbers of the queries' texts."""
    kinds: Ints
    """The kind of each query; -1 for a heading or a question without a kind."""
    keys: Ints
    """The number of a heading's query; -1 for a question."""
    answers: Ints
    others: Ints
    alone: dict[int, Ints] = field(default_factory=dict)
    """The passages that are wrong for a question without a kind, by the question's position in the batch."""


class _Batches:
    """The batches of one epoch; hard negatives are mined once, with the weights at the start of the epoch."""

    def __init__(self, examples: Examples, encoder: Encoder, texts: Texts, recipe: Recipe, random: Random) -> None:
        self.examples, self.recipe, self.random = examples, recipe, random
        pack = examples.pack
        passages, queries = embed_all(encoder, texts, pack)
        self.hard = mine(examples, examples.answerable, passages, queries)
        rows = examples.answerable
        self.order = random.choice(len(rows), size=len(rows), p=examples.compute_shares(rows, recipe.balance))
        lacking = mine(examples, examples.impossible, passages, queries, first=5)
        self.foreign: dict[int, Ints] = {}
        for kind in {row.kind for row in examples.impossible} - {-1}:
            negatives = [hard for row, hard in zip(examples.impossible, lacking, strict=True) if row.kind == kind]
            self.foreign[kind] = np.concatenate(negatives)

    def draw(self, step: int) -> Batch:
        examples, recipe, random = self.examples, self.recipe, self.random
        pack = examples.pack
        queries, kinds, keys, answers, others = [], [], [], [], []
        alone: dict[int, Ints] = {}
        for at in self.order[step * recipe.batch : (step + 1) * recipe.batch]:
            row = examples.answerable[at]
            queries.append(int(pack.queries[examples.draw_wording(row, random), 0]))
            kinds.append(row.kind)
            keys.append(-1)
            answers.append(int(random.choice(row.answers, p=row.weights)))
            if row.kind < 0:
                alone[len(queries) - 1] = row.others
                others += _choose_some(self.hard[at], recipe.alone, random)
                continue
            others += _choose_some(self.hard[at], recipe.hard, random)
            others += _choose_some(row.others, recipe.easy, random)
            others += _choose_some(self.foreign.get(row.kind, row.others), recipe.foreign, random)
        count = int(recipe.headings * recipe.batch)
        if count and len(examples.headings):
            for key, passage in examples.headings[random.integers(len(examples.headings), size=count)].tolist():
                queries.append(int(pack.queries[key, 0]))
                kinds.append(-1)
                keys.append(key)
                answers.append(passage)
                span = pack.passages_of(int(pack.passages[passage, 0]))
                others.append(int(random.integers(span.start, span.stop)))
        return Batch(
            _make_ints(queries), _make_ints(kinds), _make_ints(keys), _make_ints(answers), _make_ints(others), alone
        )


def _make_ints(numbers: list[int]) -> Ints:
    return np.array(numbers, np.int64)


def _choose_some(numbers: Ints, count: int, random: Random) -> list[int]:
    if not len(numbers) or not count:
        return []
    return [int(number) for number in random.choice(numbers, size=min(count, len(numbers)), replace=False)]


def compute_contrast(
    encoder: Encoder,
    texts: Texts,
    batch: Batch,
    examples: Examples,
    recipe: Recipe,
    merged: Mapping[str, Tensor],
    original: Tensor | None = None,
) -> Tensor:
    """Return the contrastive loss: the cross-entropy of the right passage among all passages of the batch."""
    device = texts.ids.device
    passages, place = np.unique(np.concatenate([batch.answers, batch.others]), return_inverse=True)
    right = torch.from_numpy(place[: len(batch.answers)]).to(device)
    vectors = encoder.embed(texts, torch.from_numpy(passages).to(device), merged=merged)
    asked = encoder.embed(texts, torch.from_numpy(batch.queries).to(device), merged=merged)
    scores = asked @ vectors.T / recipe.temperature
    barred = torch.from_numpy(_mask_barred(batch, passages, examples)).to(device)
    barred[torch.arange(len(right), device=device), right] = False
    loss = torch.nn.functional.cross_entropy(scores.masked_fill(barred, -torch.inf), right)
    if original is not None:
        before = original[torch.from_numpy(passages).to(device)]
        loss = loss + recipe.keep * (1 - (before * vectors).sum(-1)).mean()
    return loss


def _mask_barred(batch: Batch, passages: Ints, examples: Examples) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return, for each query, a mask of the passages that must not serve as wrong passages: they may answer it.

    For a question with a kind, such as `Governing Law`, these are passages with gold of that kind, and passages
    of other benchmarks, which nobody labelled for that kind. For a question without a kind, these are all
    passages except the wrong passages of its own document. For a heading, these are the passages under it.
    """
    pack, owner, of_kind = examples.pack, examples.source_of_document, examples.source_of_kind
    gold = np.zeros((len(pack.kinds), len(passages)), np.bool_)
    for at, passage in enumerate(passages.tolist()):
        gold[list(examples.kinds_of.get(passage, ())), at] = True
    question = batch.kinds >= 0
    barred = np.zeros((len(batch.queries), len(passages)), np.bool_)
    kinds = batch.kinds[question]
    barred[question] = gold[kinds] | (owner[pack.passages[passages, 0]][None, :] != of_kind[kinds][:, None])
    heading = batch.keys >= 0
    barred[heading] = pack.passages[passages, 4][None, :] == batch.keys[heading][:, None]
    for at, wrong in batch.alone.items():
        barred[at] = ~np.isin(passages, wrong)
    return barred


# ---------------------------------------------------------------- the command


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Train the embedder's adapter, print its metrics, and write its weights."""
    parser = argparse.ArgumentParser(prog="python -m training.adapter", description=__doc__.partition("\n")[0])
    _cli.add_arguments(parser, Recipe())
    parser.add_argument("--strength", type=float, default=1.0, help="the factor of the adapter (default: 1)")
    options = parser.parse_args(arguments)
    _main(options)
    return 0


def _main(options: argparse.Namespace) -> None:
    pack, weights, device = _cli.prepare(options)
    recipe: Recipe = _cli.recipe_of(options, Recipe())
    ground = _cli.ground_of(pack, device, options)
    encoder = train_adapter(ground, weights, recipe, start=_cli.start_of(options), say=print)
    _cli.report_embedder(encoder, pack, options, strength=options.strength, leave_out=ground.leave_out)
    _cli.report_library(encoder, pack, ground, strength=options.strength)
    about = _cli.describe_weights(pack, recipe, ground, options, strength=options.strength)
    _cli.write(export_lowrank(encoder, options.strength), Path(options.out), about)


if __name__ == "__main__":
    sys.exit(main())
