"""Trains the reader, the model that extracts the exact words of an answer or finds that there is no answer.

python -m training.reader --pack pack.npz --adapter models/embedders/weights/legal.safetensors \\
    --reranker models/rerankers/weights/legal.safetensors --out models/weights/reader

Low-rank weights and heads are trained. The reader starts from the reranker's weights, and is trained on the
same questions. Beside a score for each window, it predicts for each token whether the token is in the
answer, begins it or ends it. `training.reading` measures the reader.
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
import torch.nn.functional as f
from torch import Tensor

from exhibit.runtime.command import guarded
from training import _cli, reranker
from training.ground import Ground
from training.hints import learn
from training.loop import Loop
from training.network import Reader, export_lowrank, start_from
from training.pack import Pack
from training.reading import Models, report_all, stack_weights, with_hints
from training.reranker import Group, Groups, compute_scores_loss
from training.tensors import Array
from training.windows import OUTSIDE, Batch, Tokens, Window, Windows

_EDGE = 0.2
"""The weight of the loss at an answer's start and end, beside each of its tokens; the two are summed."""
_WITHOUT = 0.5
"""The weight of tokens in windows without an answer, beside those in windows with one."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Recipe(reranker.Recipe):
    """The hyperparameters for training a reader, the model that extracts answers.

    They are the hyperparameters of a reranker, and those of the loss on tokens.
    """

    rank: int = 64
    epochs: int = 10
    batch: int = 32
    first: int = 12
    impossible: float = 1.0
    headings: float = 0.0
    library: float = 0.0
    sure: float = 1.0
    exists: float = 1.0
    own: float = 0.3
    rate: float = 8e-4
    average: float = 0.995
    spans: float = 3.0
    """The weight of the loss on tokens, beside the loss on scores."""
    short: float = 1.0
    """The weight of short answers' tokens, beside those of quotes."""
    says: float = 1.5
    """The weight of the loss on yes or no, beside the loss on scores."""
    hints: float = 0.7
    """The share of questions that are shown together with the wording of their predicted kind."""


def train_reader(
    ground: Ground,
    adapted: Mapping[str, Array],
    judged: Mapping[str, Array],
    recipe: Recipe,
    *,
    start: Mapping[str, Array] | None = None,
    say: Say = lambda _: None,
) -> Reader:
    """Train the reader, the model that finds the words of an answer, and return it.

    `adapted` are the weights of the embedder that ranks the passages. `judged` are the weights of the reranker;
    the reader's training starts from them.
    """
    groups, windows = Groups(ground, adapted, recipe), Windows(ground.pack)
    hints = Hints(ground.pack, groups.queries, recipe.hints)
    random = np.random.default_rng(recipe.seed + 10)
    reader: Reader = Reader(judged, rank=recipe.rank, seed=recipe.seed).to(ground.device)
    start_from(reader, start or {})
    steps = max(1, groups.size // recipe.batch)
    loop = Loop(reader, recipe, steps=recipe.epochs * steps)
    for epoch in range(recipe.epochs):
        begun, losses = time.monotonic(), []
        for batch in groups.make_epoch(steps):
            shown = windows.make_batch(
                [one for group in batch for one in _show(group, windows, hints, random)], ground.device
            )
            losses.append(loop.step(read_loss(reader, shown, batch, windows, recipe)))
        say(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {steps} steps, {time.monotonic() - begun:.1f} s")
    loop.settle()
    return reader


class Hints:
    """Adds hints to tokenised training questions.

    A hint is the benchmark's wording for the predicted kind of the question. Only a random part (`share`) of
    the questions get a hint.
    """

    def __init__(self, pack: Pack, queries: Tensor, share: float) -> None:
        self.pack, self.share = pack, share
        self.kinds, taken = learn(pack, queries)
        self.taken = dict(zip(pack.queries[:, 0].tolist(), taken.tolist(), strict=True))

    def draw(self, text: int, random: np.random.Generator) -> Tokens:
        """Return the tokens of a question, sometimes followed by a hint.

        The hint is the benchmark's wording of the same kind of question. It is added at random, with the
        probability `self.share`.
        """
        kind = self.taken.get(text, -1) if random.random() < self.share else -1
        return self.kinds.add_hint(self.pack.text(text), kind)


def _show(
    group: Group, windows: Windows, hints: Hints, random: np.random.Generator
) -> list[tuple[int, Tokens, Window]]:
    """Return a question's passages as windows that are extended or cut at random.

    If that changes whether a window contains the answer, the unchanged passage is used instead.
    """
    shown, words = [], hints.draw(group.query, random)
    for passage, share in zip(group.passages, group.shares, strict=True):
        window = windows.make_window(passage, random)
        if windows.mask_answers(group.row, window).any() != (share > 0):
            window = windows.make_window(passage)
        shown.append((group.row, words, window))
    return shown


def read_loss(reader: Reader, shown: Batch, batch: Sequence[Group], windows: Windows, recipe: Recipe) -> Tensor:
    """Return the reader's training loss: a weighted sum of the losses of its three outputs.

    The outputs are the scores of passages, the answer yes or no, and the tokens of the quote and the short
    answer.
    """
    scores, yes, tokens = reader(shown.ids, shown.mask, shown.types)
    order = compute_scores_loss(scores, [group.shares for group in batch], sure=recipe.sure, exists=recipe.exists)
    said = [windows.verdict(group.row, group.query) if share else OUTSIDE for group in batch for share in group.shares]
    verdicts = compute_says_loss(yes, torch.tensor(said, device=scores.device))
    quotes = compute_tokens_loss(tokens[..., :3], shown.labels[..., :3])
    short = compute_tokens_loss(tokens[..., 3:], shown.labels[..., 3:])
    return order + recipe.says * verdicts + recipe.spans * (quotes + recipe.short * short)


def compute_says_loss(odds: Tensor, said: Tensor) -> Tensor:
    """Return the binary cross-entropy of the yes-or-no output, over the windows with a known right answer.

    The loss is 0 if no window has a known right answer.
    """
    known = said >= 0
    if not known.any():
        return odds.sum() * 0
    return f.binary_cross_entropy_with_logits(odds[known], said[known].float())


def compute_tokens_loss(tokens: Tensor, labels: Tensor) -> Tensor:
    """Return the loss on token labels (inside, start, end), averaged over windows.

    A window's loss is the mean loss of `inside` over its tokens, plus a weighted sum of the losses of starts
    and ends. Windows with an answer and windows without one are averaged separately; the latter have half the
    weight.
    """
    known = (labels >= 0).float()
    wrong = f.binary_cross_entropy_with_logits(tokens, labels.clamp(min=0).float(), reduction="none") * known
    inside = wrong[:, :, 0].sum(1) / known[:, :, 0].sum(1).clamp(min=1)
    each = inside + _EDGE * wrong[:, :, 1:].sum((1, 2))
    answered = (labels[:, :, 0] == 1).any(1)
    empty = (labels[:, :, 0] == 0).any(1) & ~answered
    parts = [share * each[some].mean() for some, share in ((answered, 1.0), (empty, _WITHOUT)) if some.any()]
    return torch.stack(parts).sum() if parts else tokens.sum() * 0


# ---------------------------------------------------------------- the command


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Train a reader and print all figures."""
    parser = argparse.ArgumentParser(prog="python -m training.reader", description=__doc__.partition("\n")[0])
    _cli.add_arguments(parser, Recipe())
    parser.add_argument("--adapter", type=Path, required=True, metavar="FILE", help="the embedder's low-rank weights")
    parser.add_argument(
        "--reranker",
        type=Path,
        required=True,
        metavar="FILE",
        help="the low-rank weights of the reranker on that embedder",
    )
    options = parser.parse_args(arguments)
    pack, weights, device = _cli.prepare(options)
    recipe: Recipe = _cli.recipe_of(options, Recipe())
    adapted, judged = stack_weights(weights, options.adapter, options.reranker)
    ground = _cli.ground_of(pack, device, options)
    reader = train_reader(ground, adapted, judged, recipe, start=_cli.start_of(options), say=print)
    below = {"adapter": _cli.digest(options.adapter), "reranker": _cli.digest(options.reranker)}
    told = _cli.describe_weights(pack, recipe, ground, options, **below)
    asked = {str(pack.documents[document]["source"]) for document in pack.rows[:, 0].tolist()}
    told["documents"] = {source: some for source, some in told["documents"].items() if source in asked}
    _cli.write(arrays_of(reader), Path(options.out), told, eight=True)
    models = Models(adapted, reader)
    report_all(pack, with_hints(pack, models) if recipe.hints else models, options)
    return 0


def arrays_of(reader: Reader) -> dict[str, Array]:
    """Return the trained weights by name."""
    arrays = export_lowrank(reader.encoder)
    for name, layer in (("head", reader.head), ("says", reader.says), ("spans", reader.spans)):
        arrays[f"{name}.weight"] = layer.weight.detach().cpu().numpy()
        arrays[f"{name}.bias"] = layer.bias.detach().cpu().numpy()
    return arrays


if __name__ == "__main__":
    sys.exit(main())
