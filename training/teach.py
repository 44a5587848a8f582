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

import numpy as np
import torch
from torch import Tensor, nn

from exhibit.runtime.command import guarded
from training.base import FILES, read_base
from training.grades import (
    Graded,
    Losses,
    Question,
    Weights,
    add_candidates,
    grade,
    list_questions,
    make_batches,
    teach_embedder,
    teach_judge,
)
from training.hints import PLAIN, RIDGE, fit_curve, learn, spot
from training.measure import Ground, measure_embedder, measure_judge
from training.network import (
    Array,
    Encoder,
    Judge,
    Reader,
    Teacher,
    Texts,
    export_difference,
    export_heads,
    export_lowrank,
    make_steps,
    merge,
    read_tensors,
    write_tensors,
)
from training.pack import Random, load_pack
from training.verdicts import list_asked, measure_verdicts, teach_verdicts
from training.windows import teach_reader

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
    "verdicts": Recipe(rate=6e-5, rank=48, batch=48, steps=1619),
    "careful": Recipe(rate=1e-3, rank=20, passages=8, gold=1.0, steps=600),
}
"""The recipes of the package's weights; the numbers of steps were chosen to take ten minutes."""


@dataclass
class Run:
    """A run of the program: its data for training and measuring, and its output."""

    ground: Ground
    base: Mapping[str, Mapping[str, Array]]
    models: Path
    out: Path
    steps: int | None
    """The most steps of a training, to try the program."""

    def train(self, name: str, module: nn.Module, losses: Losses) -> None:
        """Train a network by its recipe, and print the mean loss of each quarter."""
        recipe = RECIPES[name]
        steps = min(self.steps or recipe.steps, recipe.steps)
        seen: list[Tensor] = []
        begun, part = time.monotonic(), max(1, steps // 4)
        for loss in make_steps(module, losses, rate=recipe.rate, average=recipe.average, steps=steps):
            seen.append(loss)
            if len(seen) % part == 0:
                recent, taken = torch.stack(seen[-part:]).mean(), time.monotonic() - begun
                print(f"{name}: step {len(seen)} of {steps}, loss {recent:.4f}, {taken:.0f} s", flush=True)
        self.ground.record[name] = asdict(recipe) | {"steps": steps}

    def train_judge(self, name: str, judge: Judge, losses: Losses) -> list[tuple[bool, float]]:
        """Train a teacher, reranker or reader; measure it before and after, and return the questions' best scores."""
        measure_judge(self.ground, f"{name} before", judge)
        self.train(name, judge, losses)
        return measure_judge(self.ground, name, judge)

    def batches(self, name: str, questions: Sequence[Question], random: Random) -> Iterator[Graded]:
        """Yield batches of graded questions in the sizes of a recipe."""
        recipe, device = RECIPES[name], self.ground.device
        return make_batches(questions, random, size=recipe.batch, count=recipe.passages, device=device)

    def write(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Write weights, and the record of all trainings so far."""
        path = self.out / f"{name}.safetensors"
        write_tensors(arrays, path)
        self.ground.record.setdefault("files", {})[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)
        (self.out / "record.json").write_text(json.dumps(self.ground.record, indent=1) + "\n", encoding="utf-8")


def embed_pack(encoder: Encoder, ground: Ground) -> tuple[Tensor, Tensor]:
    """Return the vectors of all passages and all queries."""
    merged, device = encoder.merged(), ground.device
    with torch.no_grad():
        passages = encoder.embed(ground.texts, torch.arange(len(ground.pack.passages), device=device), merged=merged)
        texts = torch.from_numpy(ground.pack.queries[:, 0]).to(device)
        return passages, encoder.embed(ground.texts, texts, merged=merged)


def train_teacher(task: Run, name: str, questions: Sequence[Question], random: Random) -> Teacher:
    """Return a teacher that was trained on the questions whose answer is known, and record its calibration."""
    ground, recipe = task.ground, RECIPES[name]
    teacher: Teacher = Teacher(task.base["teacher"], rank=recipe.rank, seed=recipe.seed).to(ground.device)
    known = [question for question in questions if question.row >= 0 or len(question.gold)]
    for question in known:
        question.scores = np.full(len(question.passages), UNKNOWN, np.float32)
    losses = teach_judge(teacher, ground, task.batches(name, known, random), SELF_TAUGHT)
    lacks, best = np.array(task.train_judge(name, teacher, losses)).T
    slope, offset = fit_curve(best, 1 - lacks, PLAIN, RIDGE).round(4).tolist()
    ground.record["calibration"] = {"slope": slope, "offset": offset, "questions": len(best)}
    return teacher


def train_verdicts(task: Run, random: Random) -> None:
    """Train the model for yes-no questions with two teachers; the written weights have rank 48."""
    asked, tuning = (list_asked(task.ground.pack, split) for split in ("train", "dev"))
    device, base, teachers = task.ground.device, task.base, []
    for seed in (1, 2):
        teachers.append(Teacher(base["teacher"], rank=0, seed=seed).to(device))
        losses = teach_verdicts(teachers[-1], asked, random, RECIPES["verdict teacher"].batch)
        task.train("verdict teacher", teachers[-1], losses)
    model, recipe = Judge(base["minilm"], rank=0, seed=1).to(device), RECIPES["verdicts"]
    for weight in model.encoder.parameters():
        weight.requires_grad_(weight.ndim == 2)  # only the differences of matrices are written
    task.train("verdicts", model, teach_verdicts(model, asked, random, recipe.batch, teachers))
    for name, network in {"verdict teachers": teachers[0], "verdicts": model}.items():
        task.ground.record.setdefault("figures", {})[name] = share = measure_verdicts(network, tuning)
        print(f"{name}: {share:.3f} of {len(tuning)} tuning questions are answered correctly", flush=True)
    task.write("verdicts", export_difference(model.encoder, base["minilm"], recipe.rank) | export_heads(model, "head"))


def run(task: Run, random: Random, *, careful: bool) -> None:
    """Train the teacher, then train and write its students; with `careful`, train and write only the teacher."""
    ground, device, pack, minilm = task.ground, task.ground.device, task.ground.pack, task.base["minilm"]
    starts = {name: merge(minilm, read_tensors(task.models / f"{file}.safetensors")) for name, file in FILES.items()}
    encoder = Encoder(starts["embedder"], rank=RECIPES["embedder"].rank, seed=1).to(device)
    vectors = embed_pack(encoder, ground)
    questions = list_questions(pack, random, others=0.35, headings=0.15)
    add_candidates(questions, pack, *vectors, random)
    print(f"{len(questions)} questions, {sum(len(q.passages) for q in questions)} pairs", flush=True)
    measure_embedder(ground, "embedder before", vectors)

    teacher = train_teacher(task, "careful" if careful else "teacher", questions, random)
    if careful:
        task.write("teacher", export_lowrank(teacher.encoder) | export_heads(teacher, "head"))
        return
    grade(teacher, ground.texts, questions, pack)

    recipe = RECIPES["embedder"]
    task.train("embedder", encoder, teach_embedder(encoder, ground, questions, recipe.batch, recipe.gold, random))
    for factor, title in ((0.5, "embedder x 0.5"), (2.0, "embedder x 1")):
        encoder.scale(factor)
        vectors = embed_pack(encoder, ground)
        measure_embedder(ground, title, vectors)
    task.write("embedder", export_lowrank(encoder))
    hints = learn(pack, vectors[1])
    spots = spot(pack, vectors[0].clone())
    arrays = {"weight": hints.weight, "bias": hints.bias}
    task.write("kinds", arrays | {f"spots.{name}": array for name, array in spots.items()})

    reader = Reader(starts["reader"], rank=RECIPES["reader"].rank, seed=1).to(device)
    asked = [question for question in questions if question.row >= 0]
    losses = teach_reader(reader, ground, task.batches("reader", asked, random), hints, random)
    task.train_judge("reader", reader, losses)
    task.write("reader", export_lowrank(reader.encoder) | export_heads(reader, "head", "says", "spans"))

    judge = Judge(starts["reranker"], rank=RECIPES["reranker"].rank, seed=1).to(device)
    losses = teach_judge(judge, ground, task.batches("reranker", questions, random), Weights())
    task.train_judge("reranker", judge, losses)
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
    parser.add_argument("--only", choices=["careful", "verdicts"], help="train `teacher` or `verdicts` alone")
    parser.add_argument("--sample", type=int, default=400, help="questions of a benchmark that are measured on")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    torch.backends.cuda.enable_cudnn_sdp(False)  # cuDNN plans each batch shape separately, which takes longer
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(1)
    pack = load_pack(options.pack)
    options.out.mkdir(parents=True, exist_ok=True)
    record = {"torch": torch.__version__, "pack": hashlib.sha256(options.pack.read_bytes()).hexdigest()}
    texts = Texts(pack.tokens, pack.ends, torch.device(options.device))
    ground = Ground(pack, texts, record, options.sample)
    task = Run(ground, read_base(options.base), options.models, options.out, options.steps)
    random = np.random.default_rng(1)
    if options.only == "verdicts":
        train_verdicts(task, random)
    else:
        run(task, random, careful=options.only == "careful")
    return 0


if __name__ == "__main__":
    sys.exit(main())
