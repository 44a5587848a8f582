"""Trains a teacher, and then the embedder, the reranker and the reader with the teacher's scores.

    python -m training.teach --pack pack.npz --base base.safetensors --models exhibit/models --out FOLDER

The teacher is a cross-encoder of twelve layers, published with weights for MS MARCO, and trained further here. It
grades passages of every document for training, also for questions whose answer is unknown. The students start from the
weights in --models; the program writes only the additions to these weights. No model is trained on the documents for
tuning; their figures are printed before and after each training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as f
from torch import Tensor, nn

from exhibit.runtime.command import guarded
from training.base import FILES, read_base
from training.grades import (
    Graded,
    Ground,
    Page,
    Question,
    Weights,
    add_candidates,
    compute_taught_loss,
    grade,
    list_questions,
    make_batches,
    make_pages,
)
from training.hints import PLAIN, RIDGE, Hints, fit_curve, learn, spot
from training.measure import Measured, measure_embedder, measure_judge
from training.network import (
    Array,
    Encoder,
    Judge,
    Loop,
    Reader,
    Teacher,
    export_difference,
    export_heads,
    export_lowrank,
    merge,
    read_tensors,
    write_tensors,
)
from training.pack import Random, load_pack
from training.verdicts import list_asked, measure_verdicts, teach_verdicts
from training.windows import OUTSIDE, Windows, compute_span_losses

TEMPERATURE = 0.05  # the temperature of the embedder's cosines
SELF_TAUGHT = Weights(gold=1.0, truth=1.0, doubtful=0.0)
"""The loss of the teacher, which learns from the known answers alone."""
UNKNOWN = -30.0  # without a teacher, the score of passages that are not known to answer: they count as wrong


@dataclass(frozen=True)
class Recipe:
    """The hyperparameters of a training."""

    rate: float
    rank: int = 0
    """The rank of the matrices that are added to the weights; 0 = all layers are trained."""
    batch: int = 32
    """The number of questions in a step."""
    passages: int = 12
    """The number of passages for each question."""
    gold: float = 0.3
    """The weight of the known answers in the order of passages; the teacher's scores have the remaining weight."""
    steps: int = 1000
    average: float = 0.99
    """The decay of the moving average of the weights, per step; 0 = no average."""
    seed: int = 1


RECIPES = {
    "teacher": Recipe(rate=4e-5, passages=8, gold=1.0, steps=1982),
    "embedder": Recipe(rate=5e-4, rank=32, batch=64, gold=0.4, steps=743),
    "reader": Recipe(rate=5e-4, rank=32, passages=8, steps=1757),
    "reranker": Recipe(rate=6e-4, rank=32, steps=1490),
    "verdict teacher": Recipe(rate=4e-5, steps=528),
    "verdicts": Recipe(rate=6e-5, rank=48, batch=48, steps=798),
    "careful": Recipe(rate=1e-3, rank=20, passages=8, gold=1.0, steps=600),
}
"""The recipes of the package's weights; the numbers of steps were chosen to take ten minutes."""

Losses = Iterator[Tensor]  # the loss of each step, computed when the iterator advances


# ---------------------------------------------------------------- the losses of a step


def teach_judge(judge: Judge, ground: Ground, batches: Iterator[Graded], weights: Weights) -> Losses:
    """Yield the losses of a network that reads pairs: the teacher, the reranker."""
    for batch in batches:
        asked = ground.pack.queries[[question.query for question in batch.questions], 0]
        questions = torch.from_numpy(np.repeat(asked, batch.passages.shape[1])).to(ground.device)
        passages = torch.from_numpy(batch.passages.reshape(-1)).to(ground.device)
        scores = judge.score(ground.texts, questions, passages).view(batch.passages.shape)
        yield compute_taught_loss(scores, batch, weights)


def teach_embedder(
    encoder: Encoder, ground: Ground, questions: Sequence[Question], recipe: Recipe, random: Random
) -> Losses:
    """Yield the losses of the embedder: all candidates of a document's questions, and the clauses of the library."""
    while True:
        some: list[Page] = []
        for page in make_pages(questions, random, size=16, gold=recipe.gold):
            some.append(page)
            if sum(len(page.questions) for page in some) >= recipe.batch:
                yield _compare(encoder, ground, some, random)
                some = []
        if some:
            yield _compare(encoder, ground, some, random)


def _compare(encoder: Encoder, ground: Ground, pages: Sequence[Page], random: Random) -> Tensor:
    pack, device, merged = ground.pack, ground.device, encoder.merged()
    numbers = np.concatenate([page.passages for page in pages])
    asked = pack.queries[[question.query for page in pages for question in page.questions], 0]
    vectors = encoder.embed(ground.texts, torch.from_numpy(numbers).to(device), merged=merged)
    queries = encoder.embed(ground.texts, torch.from_numpy(asked).to(device), merged=merged)
    losses, row, column = [], 0, 0
    for page in pages:
        near = queries[row : row + len(page.questions)] @ vectors[column : column + len(page.passages)].T / TEMPERATURE
        target = torch.from_numpy(page.target).to(device)
        losses.append(-(target * f.log_softmax(near, dim=1)).sum(1) * torch.from_numpy(page.worth).to(device))
        row, column = row + len(page.questions), column + len(page.passages)
    loss = torch.cat(losses).mean()
    if ground.library is not None:
        loss = loss + 0.5 * ground.library.compute_loss(encoder, ground.texts, 3, random, merged, TEMPERATURE)
    return loss


def teach_reader(reader: Reader, ground: Ground, batches: Iterator[Graded], words: Hints, random: Random) -> Losses:
    """Yield the losses of the reader: on windows around the passages, their tokens, and yes or no."""
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
        made = windows.make_batch(shown, ground.device)
        scores, yes, tokens = reader(made.ids, made.mask, made.types)
        order = compute_taught_loss(scores.view(batch.passages.shape), batch, weights)
        said = torch.tensor(verdicts, device=ground.device)
        yield order + compute_span_losses(yes, tokens, said, made.labels)


# ---------------------------------------------------------------- the run


@dataclass
class Run:
    """A run of the program: its data for training and measuring, and its output."""

    ground: Ground
    minilm: dict[str, Array]
    models: Path
    out: Path
    steps: int | None
    """The most steps of a training, to try the program."""
    record: dict[str, Any]
    only: str = ""

    def train(self, name: str, module: nn.Module, losses: Losses) -> None:
        """Train a network by its recipe, and print the mean loss of each quarter."""
        recipe = RECIPES[name]
        steps = min(self.steps or recipe.steps, recipe.steps)
        loop, seen = Loop(module, rate=recipe.rate, average=recipe.average, steps=steps), []
        begun, part = time.monotonic(), max(1, steps // 4)
        for step in range(1, steps + 1):
            seen.append(loop.step(next(losses)))
            if step % part == 0:
                recent, taken = torch.stack(seen[-part:]).mean(), time.monotonic() - begun
                print(f"{name}: step {step} of {steps}, loss {recent:.4f}, {taken:.0f} s", flush=True)
        loop.settle()
        self.record[name] = asdict(recipe) | {"steps": steps}

    def write(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Write weights, and the record of all trainings so far."""
        path = self.out / f"{name}.safetensors"
        write_tensors(arrays, path)
        self.record.setdefault("files", {})[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        self.write_record()
        print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)

    def write_record(self) -> None:
        """Write the record of all trainings so far, with their figures."""
        (self.out / "record.json").write_text(json.dumps(self.record, indent=1) + "\n", encoding="utf-8")


def embed_pack(encoder: Encoder, ground: Ground) -> tuple[Tensor, Tensor]:
    """Return the vectors of all passages and all queries."""
    merged, device = encoder.merged(), ground.device
    with torch.no_grad():
        passages = encoder.embed(ground.texts, torch.arange(len(ground.pack.passages), device=device), merged=merged)
        texts = torch.from_numpy(ground.pack.queries[:, 0]).to(device)
        return passages, encoder.embed(ground.texts, texts, merged=merged)


def train_teacher(
    task: Run,
    name: str,
    weights: Mapping[str, Array],
    questions: Sequence[Question],
    measured: Measured,
    random: Random,
) -> Teacher:
    """Return a teacher that was trained on the questions whose answer is known, and record its calibration."""
    ground, recipe = task.ground, RECIPES[name]
    teacher: Teacher = Teacher(weights, rank=recipe.rank, seed=recipe.seed).to(ground.device)
    measure_judge(measured, f"{name} before", teacher)
    known = [question for question in questions if question.row >= 0 or len(question.gold)]
    for question in known:
        question.scores = np.full(len(question.passages), UNKNOWN, np.float32)
    batches = make_batches(known, random, size=recipe.batch, count=recipe.passages, device=ground.device)
    task.train(name, teacher, teach_judge(teacher, ground, batches, SELF_TAUGHT))
    lacks, best = np.array(measure_judge(measured, name, teacher)).T
    slope, offset = fit_curve(best, 1 - lacks, PLAIN, RIDGE).round(4).tolist()
    task.record["calibration"] = {"slope": slope, "offset": offset, "questions": len(best)}
    return teacher


def train_verdicts(task: Run, base: Mapping[str, Mapping[str, Array]], random: Random) -> None:
    """Train the model for yes-no questions with two teachers; the written weights have rank 48."""
    asked, tuning = (list_asked(task.ground.pack, split) for split in ("train", "dev"))
    device, teachers = task.ground.device, []
    for seed in (1, 2):
        teachers.append(Teacher(base["teacher"], rank=0, seed=seed).to(device))
        losses = teach_verdicts(teachers[-1], asked, random, RECIPES["verdict teacher"].batch, device)
        task.train("verdict teacher", teachers[-1], losses)
    model, recipe = Judge(base["minilm"], rank=0, seed=1).to(device), RECIPES["verdicts"]
    task.train("verdicts", model, teach_verdicts(model, asked, random, recipe.batch, device, teachers))
    for name, network in {"verdict teachers": teachers[0], "verdicts": model}.items():
        task.record.setdefault("figures", {})[name] = share = measure_verdicts(network, tuning, device)
        print(f"{name}: {share:.3f} of {len(tuning)} tuning questions are answered correctly", flush=True)
    task.write("verdicts", export_difference(model.encoder, base["minilm"], recipe.rank) | export_heads(model, "head"))


def run(task: Run, weights: Mapping[str, Array], measured: Measured) -> None:
    """Train the teacher and then its students, and write each as soon as it is trained."""
    ground, device, random = task.ground, task.ground.device, np.random.default_rng(1)
    pack, models = ground.pack, task.models
    starts = {name: merge(task.minilm, read_tensors(models / f"{file}.safetensors")) for name, file in FILES.items()}
    encoder = Encoder(starts["embedder"], rank=RECIPES["embedder"].rank, seed=1).to(device)
    vectors = embed_pack(encoder, ground)
    questions = list_questions(pack, random, others=0.35, headings=0.15)
    add_candidates(questions, pack, *vectors, random)
    print(f"{len(questions)} questions, {sum(len(q.passages) for q in questions)} pairs", flush=True)
    measure_embedder(measured, "embedder before", vectors)

    if task.only == "careful":
        judge: Judge = train_teacher(task, "careful", weights, questions, measured, random)
        task.write("teacher", export_lowrank(judge.encoder) | export_heads(judge, "head"))
        return
    teacher = train_teacher(task, "teacher", weights, questions, measured, random)
    grade(teacher, ground.texts, questions, pack)

    recipe = RECIPES["embedder"]
    task.train("embedder", encoder, teach_embedder(encoder, ground, questions, recipe, random))
    for strength in (0.5, 1.0):
        encoder.scale(strength / (1.0 if strength < 1 else 0.5))
        vectors = embed_pack(encoder, ground)
        measure_embedder(measured, f"embedder x {strength:g}", vectors)
    task.write("embedder", export_lowrank(encoder))
    kinds, taken = learn(pack, vectors[1])
    spots = spot(pack, vectors[0].clone())
    arrays = {"weight": kinds.weight, "bias": kinds.bias}
    task.write("kinds", arrays | {f"spots.{name}": array for name, array in spots.items()})

    recipe = RECIPES["reader"]
    reader = Reader(starts["reader"], rank=recipe.rank, seed=1).to(device)
    measure_judge(measured, "reader before", reader)
    asked = [question for question in questions if question.row >= 0]
    batches = make_batches(asked, random, size=recipe.batch, count=recipe.passages, device=device)
    losses = teach_reader(reader, ground, batches, Hints(pack, kinds, taken, 0.7), random)
    task.train("reader", reader, losses)
    task.write("reader", export_lowrank(reader.encoder) | export_heads(reader, "head", "says", "spans"))
    measure_judge(measured, "reader", reader)

    recipe = RECIPES["reranker"]
    judge = Judge(starts["reranker"], rank=recipe.rank, seed=1).to(device)
    measure_judge(measured, "reranker before", judge)
    batches = make_batches(questions, random, size=recipe.batch, count=recipe.passages, device=device)
    losses = teach_judge(judge, ground, batches, Weights())
    task.train("reranker", judge, losses)
    measure_judge(measured, "reranker", judge)
    task.write("reranker", export_lowrank(judge.encoder) | export_heads(judge, "head"))


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Train a teacher and its students, and print their figures on the documents for tuning."""
    parser = argparse.ArgumentParser(prog="python -m training.teach", description=__doc__.partition("\n")[0])
    parser.add_argument("--pack", type=Path, required=True, metavar="FILE", help="from python -m training.gather")
    parser.add_argument("--base", type=Path, required=True, metavar="FILE", help="from python -m training.base")
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="the weights to start from")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--steps", type=int, metavar="N", help="the largest number of steps, to try the program")
    parser.add_argument(
        "--only", choices=["careful", "verdicts"], default="", help="train `teacher` or `verdicts` alone"
    )
    parser.add_argument("--sample", type=int, default=400, help="questions of a benchmark that are measured on")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN plans each batch shape separately, which takes longer
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(1)
    pack = load_pack(options.pack)
    base = read_base(options.base)
    ground = Ground(pack, torch.device(options.device))
    options.out.mkdir(parents=True, exist_ok=True)
    record = {"torch": torch.__version__, "pack": hashlib.sha256(options.pack.read_bytes()).hexdigest()}
    task = Run(ground, base["minilm"], options.models, options.out, options.steps, record, options.only)
    measured = Measured(pack, ground.texts, sample=options.sample, figures=record)
    if options.only == "verdicts":
        train_verdicts(task, base, np.random.default_rng(1))
    else:
        run(task, base["teacher"], measured)
    task.write_record()
    return 0


if __name__ == "__main__":
    sys.exit(main())
