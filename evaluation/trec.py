"""Rankings and judgements in TREC's formats, for ir_measures, ranx and trec_eval.

What is ranked is what nDCG, MRR and MAP are read from (`evaluation.metrics._ranking`): files where the question's
files are graded or its gold names files only, else gold passages (`gold-0` is the first of the question), each
at the rank at which it is found. Failed and impossible questions are in neither file, so that means are over the
same questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from evaluation.cases import Case
from evaluation.metrics import ranking_of
from storage.whole import write_whole

RUN = "run.trec"
QRELS = "qrels.trec"


def write_trec(folder: Path, cases: Sequence[Case], *, tag: str) -> None:
    """Write `run.trec` and `qrels.trec`: UTF-8, a line a unit, columns parted by a space, names percent-encoded."""
    run: list[str] = []
    qrels: list[str] = []
    for case in cases:
        run += run_lines(case, tag=_name(tag))
        qrels += qrels_lines(case)
    write_whole(folder / RUN, "".join(f"{line}\n" for line in run))
    write_whole(folder / QRELS, "".join(f"{line}\n" for line in qrels))


def run_lines(case: Case, *, tag: str) -> Iterator[str]:
    """Yield `query Q0 unit rank score tag`; scores only say the order, which the system's own may leave open."""
    ranking = None if case.reply.error else ranking_of(case)
    if ranking is None:
        return
    units = len(ranking.order)
    for rank, unit in enumerate(ranking.order, 1):
        yield f"{_name(str(case.id))} Q0 {_name(unit)} {rank} {units - rank + 1} {tag}"


def qrels_lines(case: Case) -> Iterator[str]:
    """Yield `query 0 unit grade` for every unit that was judged."""
    ranking = None if case.reply.error else ranking_of(case)
    for unit, grade in ranking.grades.items() if ranking else ():
        yield f"{_name(str(case.id))} 0 {_name(unit)} {grade}"


def _name(text: str) -> str:
    """Return a name without spaces, which would part it into columns."""
    return quote(text, safe="")
