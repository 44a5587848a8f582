"""Rankings and judgements in TREC's formats, for ir_measures, ranx and trec_eval.

What is ranked is what nDCG, MRR and MAP are read from (`evaluation.metrics._ranking`): files where the question's
files are graded, else gold passages (`gold-0` is the first of the question), each at the rank at which it is found.
Questions that those metrics do not apply to are in neither file, so that means are over the same questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import Options, about, ranking_of, scoped
from exhibit.storage.place import whole

RUN = "run.trec"
QRELS = "qrels.trec"


class Lines(NamedTuple):
    """A question's lines in both files."""

    run: str
    qrels: str


def trec_lines(case: Case, *, tag: str) -> Lines:
    """Return a question's lines: columns parted by a space, names percent-encoded; none where it failed."""
    known = scoped(case, about("ndcg").needs, Options())
    ranking = ranking_of(known) if known else None
    if ranking is None:
        return Lines("", "")
    query, name = _name(str(case.id)), _name(tag)
    units = len(ranking.order)
    # scores only say the order, which the system's own may leave open
    run = (f"{query} Q0 {_name(u)} {rank} {units - rank + 1} {name}\n" for rank, u in enumerate(ranking.order, 1))
    judged = (f"{query} 0 {_name(unit)} {grade}\n" for unit, grade in ranking.grades.items())
    return Lines("".join(run), "".join(judged))


class TrecFiles:
    """Both files, as questions are added."""

    def __init__(self, run: IO[bytes], qrels: IO[bytes]) -> None:
        self._run, self._qrels = run, qrels

    def add(self, lines: Lines) -> None:
        """Write a question's lines."""
        self._run.write(lines.run.encode("utf-8", "replace"))
        self._qrels.write(lines.qrels.encode("utf-8", "replace"))


@contextmanager
def trec_files(folder: Path) -> Iterator[TrecFiles]:
    """Yield what writes `run.trec` and `qrels.trec`; they appear whole when the block ends."""
    with (
        whole(folder / RUN) as run_path,
        whole(folder / QRELS) as qrels_path,
        run_path.open("wb") as run,
        qrels_path.open("wb") as qrels,
    ):
        yield TrecFiles(run, qrels)


@lru_cache(maxsize=1 << 12)
def _name(text: str) -> str:
    """Return a name without spaces, which would part it into columns."""
    return quote(text, safe="")
