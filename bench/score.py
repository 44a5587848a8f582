"""Compares the speed of this project's span scoring with a simple double loop over retrieved and gold spans.

    python -m bench.score [--queries 6000] [--depth 64]

The double loop reads the file again for each snippet. Both methods score the same rankings over the same
files in one run, and their scores must agree to the last digit.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, computed_field

from bench._table import print_table
from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.metrics import KS, Options, characters
from exhibit.evidence import Span
from exhibit.runtime.command import guarded

FILES = 72
CHARACTERS = 120_000
"""The number and length of files, as in LegalBench-RAG-mini."""
CHUNK = 500


class Snippet(BaseModel):
    """A span of a file; its text is read on demand."""

    path: Path
    start: int
    end: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def answer(self) -> str:
        """The text of the span."""
        return self.path.read_text(encoding="utf-8")[self.start : self.end]


class ScoredQuestion(BaseModel):
    """A question's gold and its retrieved spans."""

    gold: list[Snippet]
    retrieved: list[Snippet]

    def compute_precision_recall(self, k: int) -> tuple[float, float]:
        """Return the character precision and recall of the first k retrieved spans."""
        shared = retrieved = 0
        for snippet in self.retrieved[:k]:
            retrieved += snippet.end - snippet.start
            for gold in self.gold:
                if snippet.path == gold.path:
                    shared += max(0, min(snippet.end, gold.end) - max(snippet.start, gold.start))
        relevant = sum(gold.end - gold.start for gold in self.gold)
        return (shared / retrieved if retrieved else 0.0), (shared / relevant if relevant else 0.0)


Result = TypeVar("Result")
Row = tuple[float, ...]
"""A query's precision at each k, then its recall at each k."""


def time_work(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a function, and the seconds that it takes."""
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def time_median(work: Callable[[], Result]) -> tuple[Result, float]:
    """Run a function three times; return the result and the seconds of the run with the median time."""
    runs = sorted((time_work(work) for _ in range(3)), key=lambda run: run[1])
    return runs[1]


def write_corpus(folder: Path) -> list[Path]:
    """Write text files that are as long as contracts; return their paths."""
    chance = random.Random(5)
    vocabulary = "agreement party shall notice term licence fee without prior written consent of the other".split()
    paths = [folder / f"contract_{number}.txt" for number in range(FILES)]
    for path in paths:
        text = " ".join(chance.choices(vocabulary, k=CHARACTERS // 5))
        path.write_text(text[:CHARACTERS].ljust(CHARACTERS), encoding="utf-8")
    return paths


def make_cases(files: list[Path], queries: int, depth: int) -> list[Case]:
    """Return random cases for a speed test.

    The gold of a case is in one file. About half of the retrieved passages are from the same file.
    """
    chance = random.Random(7)

    def make_passage(file: Path) -> Passage:
        start = chance.randrange(0, CHARACTERS - CHUNK, CHUNK)
        return Passage("", str(file), Span(start, start + CHUNK))

    cases = []
    for number in range(queries):
        file = chance.choice(files)
        golds = []
        for _ in range(chance.randint(1, 5)):
            start = chance.randrange(CHARACTERS - 2000)
            golds.append(GoldPassage(str(file), None, ((Span(start, start + chance.randint(20, 2000)),),)))
        ranking = tuple(make_passage(chance.choice([file, chance.choice(files)])) for _ in range(depth))
        cases.append(Case(number, "", "", tuple(golds), reply=Reply(passages=ranking)))
    return cases


def score_simply(cases: list[Case], ks: tuple[int, ...], *, read: bool) -> list[Row]:
    """Return each question's precision and recall at every k, computed by the simple method for comparison.

    The simple method compares every gold span with every retrieved span. If `read` is true, the text of each
    span is also read from its file.
    """
    rows = []
    for case in cases:
        query = ScoredQuestion(
            gold=[
                Snippet(path=Path(gold.filename or ""), start=span.start, end=span.end)
                for gold in case.gold
                for span in gold.places[0]
            ],
            retrieved=[
                Snippet(path=Path(passage.filename or ""), start=passage.span.start, end=passage.span.end)
                for passage in case.reply.passages
                if passage.span is not None
            ],
        )
        figures = [query.compute_precision_recall(k) for k in ks]
        if read:
            query.model_dump()
        rows.append((*(precision for precision, _ in figures), *(recall for _, recall in figures)))
    return rows


def score_ours(cases: list[Case], options: Options) -> list[Row]:
    """Return each question's precision and recall at every k, computed by this project's metric."""
    columns = characters.measure(cases, options).values()
    return [tuple(value or 0.0 for value in row) for row in zip(*columns, strict=True)]


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Time two ways to score the same rankings, and print a table of the times.

    One is a simple loop over retrieved and gold spans; the other is this project's metric.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.score", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--queries", type=int, default=6000, metavar="N", help="the number of questions (default: 6,000)"
    )
    parser.add_argument("--depth", type=int, default=64, metavar="N", help="spans retrieved for each (default: 64)")
    options = parser.parse_args(argv)
    published = Options(parity="legalbenchrag")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        cases = make_cases(write_corpus(Path(folder)), options.queries, options.depth)
        reading, read_time = time_work(lambda: score_simply(cases, published.ks, read=True))
        loop, loop_time = time_work(lambda: score_simply(cases, published.ks, read=False))
    same, our_time = time_median(lambda: score_ours(cases, published))
    _, united_time = time_median(lambda: score_ours(cases, Options()))
    equal = {True: "identical", False: "DIFFERENT"}
    print_table(
        f"{options.queries} queries x {options.depth} spans, precision and recall at k = {', '.join(map(str, KS))}",
        ["", "seconds", "ratio", "numbers"],
        [
            ["double loop, a file read per snippet", f"{read_time:.2f}", "1.0", ""],
            [
                "double loop, no file read",
                f"{loop_time:.2f}",
                f"{read_time / loop_time:.1f} x",
                equal[loop == reading],
            ],
            ["ours, parity legalbenchrag", f"{our_time:.2f}", f"{read_time / our_time:.0f} x", equal[same == reading]],
            ["ours, passages united", f"{united_time:.2f}", f"{read_time / united_time:.0f} x", ""],
        ],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
