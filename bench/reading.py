"""Measures the extractive answers of the whole pipeline: their span F1, and the decision to refuse.

    python -m bench.reading datasets_out/cuad --list NOT_FOR_TRAINING.tsv [--words test] [--preset careful]
    python -m bench.reading datasets_out/cuad --list NOT_FOR_TRAINING.tsv --tuning --fit models/weights/confidence.json
    python -m bench.reading                plain questions about the short documents of bench/short.jsonl

With --list only the listed documents are searched; no weights were trained on them. With --tuning the
documents are those that `training.gather` sets aside for tuning. This needs weights that were trained
without these documents: --weights names a folder with the files `adapter`, `reranker`, `reader` and `kinds`
(.safetensors). Questions have the benchmark's wording; with --words test they have wordings that are not in
the training data. Span F1 compares an answer with each gold quote and with all quotes together, and takes
the best value; it is 0 for a refusal.

With --fit, the reader model's confidence is calibrated on these questions, so that it is the probability
that a question has an answer. Figures on questions that were used for this do not measure quality.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench._table import print_table
from exhibit.evaluation.answer_words import compute_multiset_f1, without_citations
from exhibit.models import network, reader
from exhibit.models.rerankers import legal
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.runtime.command import guarded
from exhibit.schemas.models import Gold
from exhibit.storage.atomic import write_whole
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location
from training._reading import read_material
from training.exclusion import Excluded, read_names
from training.gather import DEV, draw_dev
from training.questions import LABELS, read_wordings

SHORT = Path(__file__).with_name("short.jsonl")
"""Short documents with plain questions, written by hand; no model was trained on them."""
FITTED = 4
"""The number of these documents that were used to calibrate the reader model's confidence on short documents."""
_CUTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
"""The thresholds of confidence: answers below a threshold are counted as refusals."""
_STEPS = 50
"""The number of Newton steps: three parameters converge in ten."""


@dataclass(frozen=True)
class Question:
    """A question about a document, and the quotes that answer it; none if the document has no answer."""

    text: str
    document: str
    gold: tuple[str, ...]


@dataclass(frozen=True)
class Seen:
    """A question that was asked, the models' confidence that it has an answer, and the F1 of the given answer."""

    question: Question
    found: float | None
    """The reranker's confidence; None without a reranker."""
    sure: float
    """The confidence of the answer; 1 if the answerer gives none."""
    f1: float


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Ask the questions of each bundle; print the span F1 and the shares of questions that are refused.

    There is one share for questions with an answer, and one for questions without. With --fit, calibrate the
    reader model's confidence on these questions, and write the parameters to a file.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__.partition("\n")[0])
    parser.add_argument("bundles", nargs="*", type=Path)
    parser.add_argument("--list", type=Path, metavar="TSV", help="the list of documents that no model was trained on")
    parser.add_argument("--tuning", action="store_true", help="use the documents for tuning instead")
    parser.add_argument(
        "--words", nargs="+", choices=("own", "test"), default=["own"], help="the role of the wordings (default: own)"
    )
    parser.add_argument("--preset", default="routed")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings that replace the preset's")
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help="weights to use instead of the shipped ones")
    parser.add_argument("--limit", type=int, metavar="N", help="the most documents of each bundle")
    parser.add_argument(
        "--fit",
        type=Path,
        metavar="FILE",
        help="calibrate the reader model's confidence on these questions, and write the parameters to FILE",
    )
    options = parser.parse_args(arguments)
    if options.weights:
        use_weights(options.weights)
    config = Config.preset(options.preset, refuse_below=None, **dict(pair.split("=", 1) for pair in options.set))
    told: list[Seen] = []
    if not options.bundles:
        _print_short(config)
    for root in options.bundles:
        documents = _choose_documents(root, options)
        with tempfile.TemporaryDirectory() as folder:
            pipeline = Pipeline(config, cache=find_cache_folder())
            pipeline.index(list(documents.values()), Path(folder) / "index")
            for words in options.words:
                began = time.process_time()
                seen = list(_ask(_read_questions(root, set(documents), words), pipeline))
                told += seen
                each = 1000 * (time.process_time() - began) / max(len(seen), 1)
                preset = " ".join([options.preset, *options.set])
                _report(f"{root.name}, {words} words, {preset}, {each:.0f} ms each", seen)
    if options.fit:
        _fit(told, options.fit)
    return 0


def _print_short(config: Config) -> None:
    """Print how well the reader model answers and refuses questions on short documents, for two groups.

    The first group has the documents on which the model's confidence was calibrated; the second has all other
    documents.
    """
    seen: dict[bool, list[Seen]] = {True: [], False: []}
    with SHORT.open(encoding="utf-8") as lines, tempfile.TemporaryDirectory() as folder:
        for number, line in enumerate(lines):
            given = json.loads(line)
            path = Path(folder) / f"{given['name']}.txt"
            path.write_text(given["text"], encoding="utf-8")
            pipeline = Pipeline(config, cache=find_cache_folder())
            pipeline.index([path], Path(folder) / given["name"])
            asked = [Question(text, path.name, ("",) if has else ()) for text, has in given["questions"]]
            seen[number < FITTED] += _ask(asked, pipeline)
    for is_fitted, some in seen.items():
        _report(f"short documents, {'fitted to' if is_fitted else 'not looked at'}", some)


def use_weights(folder: Path) -> None:
    """Use the weights of the embedder, the reranker, the reader and the question classifier in a folder.

    They replace the weights of the package. The files are `adapter`, `reranker`, `reader` and `kinds`
    (.safetensors).
    """
    network.ADAPTER, legal.WEIGHTS, reader.WEIGHTS, reader.KINDS = (
        folder / f"{name}.safetensors" for name in ("adapter", "reranker", "reader", "kinds")
    )


def _choose_documents(root: Path, options: argparse.Namespace) -> dict[str, Location]:
    """Return the documents of the bundle to search, at most `--limit`.

    With `--tuning`, they are the documents that `training.gather` sets aside for tuning. Otherwise they are the
    documents that `--list` names or, without `--list`, all documents.
    """
    material = read_material(root)
    excluded = Excluded(read_names(options.list) if options.list else ())
    files = material.bundle.files
    if options.tuning:
        kept = draw_dev(material, excluded, DEV)
    else:
        kept = frozenset(name for name in files if not options.list or excluded.lists(name))
    return {name: files[name] for name in sorted(kept)[: options.limit]}


def _read_questions(root: Path, documents: set[str], words: str) -> Iterator[Question]:
    """Yield the questions about the given documents.

    With `words` = `test`, a question gets a wording that is not in the training data, if there is one for its
    kind. Otherwise it keeps the benchmark's wording.
    """
    bundle = read_material(root).bundle
    name = bundle.info.name if bundle.info else root.name
    wordings = read_wordings(name) if words == "test" and name in LABELS else {}
    lines: dict[int | str, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    for number, question in enumerate(bundle.questions):
        document = next((line.filename for line in lines[question.id] if line.filename), None)
        if document not in documents:
            continue
        text = question.question
        kind = lines[question.id][0].labels.get(LABELS.get(name, ""))
        if kind in wordings:
            others = wordings[str(kind)].test
            text = f"{text.partition(';')[0]}; {others[number * 7 % len(others)]}"
        gold = tuple(context.text for context in question.contexts if context.text)
        yield Question(text, str(document), () if question.is_impossible else gold)


def _ask(questions: Iterable[Question], pipeline: Pipeline) -> Iterator[Seen]:
    """Ask each question and yield its outcome.

    The pipeline answers at any confidence, so that refusals can be computed later for every threshold.
    """
    for question in questions:
        [answered] = pipeline.answer([question.text])
        answer = answered.answer
        said = " ".join(answer.quotes) or without_citations(answer.text)
        golds = [*question.gold, " ".join(question.gold)]
        f1 = max(compute_multiset_f1(said, gold) for gold in golds) if question.gold and not answer.refused else 0.0
        sure = (
            1.0 if answer.confidence is None else answer.confidence
        )  # answered by the extractive answerer, which does not refuse
        yield Seen(question, answered.retrieved.confidence, sure, f1)


def _report(title: str, seen: Sequence[Seen]) -> None:
    """Print span F1, right abstentions and false refusals at each threshold."""
    yes, no = ([one for one in seen if bool(one.question.gold) == kind] for kind in (True, False))
    rows = []
    for cut in _CUTS:
        kept = [one.f1 if one.sure >= cut else 0.0 for one in yes]
        answered = [one.f1 for one in yes if one.sure >= cut]
        right = np.mean([one.sure < cut for one in no]) if no else float("nan")
        false = np.mean([one.sure < cut for one in yes]) if yes else float("nan")
        rows.append([f"{cut:g}", f"{np.mean(kept):.3f}", f"{np.mean(answered):.3f}", f"{right:.3f}", f"{false:.3f}"])
    print_table(
        f"{title}: {len(yes)} answerable, {len(no)} not",
        ["refused below", "span F1", "of the answered", "right abstentions", "false refusals"],
        rows,
    )


def _fit(seen: Sequence[Seen], path: Path) -> None:
    """Calibrate the reader model's confidence that a question has an answer, and write the parameters to a file.

    A logistic regression is fitted. Its inputs are the reader model's score and, if a reranker was used, the
    reranker's confidence. The file has one set of parameters with a reranker (`together`) and one without
    (`alone`): only the set that was measured is replaced.
    """
    seen = [one for one in seen if 0.0 < one.sure < 1.0]
    told = json.loads(reader.CALIBRATION.read_text(encoding="utf-8"))
    together = seen[0].found is not None
    before = told["together" if together else "alone"]
    # the reader's own score, before calibration
    odds = [
        [_compute_odds(one.sure) - before["offset"], 0.0 if one.found is None else _compute_odds(one.found)]
        for one in seen
    ]
    table = np.array([[(sure - before.get("reranker", 0) * found) / before["reader"], found] for sure, found in odds])
    answerable = np.array([float(bool(one.question.gold)) for one in seen])
    fitted = fit_logistic(table if together else table[:, :1], answerable)
    names = ("reader", "reranker", "offset") if together else ("reader", "offset")
    told["together" if together else "alone"] = dict(zip(names, fitted, strict=True)) | {
        "documents": len({one.question.document for one in seen}),
        "questions": len(seen),
        "answerable": int(answerable.sum()),
    }
    write_whole(path, json.dumps(told, indent=1) + "\n")
    print(json.dumps(told))


def _compute_odds(share: float) -> float:
    return float(np.log(share / (1 - share)))


def fit_logistic(table: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> list[float]:
    """Fit a logistic regression by maximum likelihood; return its slopes and its offset."""
    table = np.concatenate([table, np.ones((len(table), 1))], axis=1)
    curve = np.zeros(table.shape[1])
    ridge = 1e-3 * np.eye(
        len(curve)
    )  # a small penalty, without which the fit does not converge if the two groups do not overlap
    for _ in range(_STEPS):
        likely = 1 / (1 + np.exp(-np.clip(table @ curve, -60, 60)))
        slope = table.T @ (wanted - likely) - ridge @ curve
        curve = curve + np.linalg.solve((table * (likely * (1 - likely))[:, None]).T @ table + ridge, slope)
    return [round(float(value), 4) for value in curve]


if __name__ == "__main__":
    sys.exit(main())
