"""TREC files equal files written by hand, and other tools compute the same metrics from them."""

import platform
import random
from pathlib import Path

import pytest

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.outcomes import find_outcome
from exhibit.evaluation.scoring import QRELS, RUN, format_row, write_rows
from exhibit.evaluation.statistics import compute_mean
from tests.evaluation.metrics.build import at, case, gold, quote, table_of


def write_replies(folder: Path, questions: list[list[Case]]) -> None:
    rows = [[format_row(case, find_outcome(case), [], tag="my run") for case in replies] for replies in questions]
    write_rows(folder, rows, table_of([replies[0] for replies in questions], {}))


def write_trec(folder: Path, cases: list[Case]) -> tuple[list[str], list[str]]:
    write_replies(folder, [[case] for case in cases])
    return (folder / RUN).read_text(encoding="utf-8").splitlines(), (folder / QRELS).read_text().splitlines()


def test_trec_files_rank_graded_files_when_case_has_grades(tmp_path):
    passages = [Passage("x", name) for name in ("b c.pdf", "unjudged.pdf", "a.pdf", "b c.pdf")]
    run, qrels = write_trec(tmp_path, [case([], passages, id="q 1", grades={"a.pdf": 4, "b c.pdf": 1, "d.pdf": 0})])
    assert run == ["q%201 Q0 b%20c.pdf 1 2 my%20run", "q%201 Q0 a.pdf 2 1 my%20run"]
    assert qrels == ["q%201 0 a.pdf 4", "q%201 0 b%20c.pdf 1", "q%201 0 d.pdf 0"]


def test_trec_files_rank_gold_passages_when_case_has_no_grades(tmp_path):
    row = case([gold((0, 100)), gold((200, 300))], [at(0, 30), at(400, 500), at(30, 60)], id=7)
    run, qrels = write_trec(tmp_path, [row])
    assert [line.split()[2:5] for line in run] == [
        ["passage-1", "1", "3"],
        ["passage-2", "2", "2"],
        ["gold-0", "3", "1"],
    ]
    assert qrels == ["7 0 gold-0 1", "7 0 gold-1 1"]


def test_trec_files_omit_failed_questions_and_questions_without_quoted_gold(tmp_path):
    assert write_trec(tmp_path, [case([quote("", "a.pdf")], [at(0, 9, "b.pdf"), at(0, 9, "a.pdf")])]) == ([], [])
    failed = case([gold((0, 9))], [at(0, 9)], error="timed out")
    impossible = case([], [at(0, 9)], is_impossible=True)
    assert write_trec(tmp_path, [failed, impossible, case([], [at(0, 9)])]) == ([], [])


def test_trec_files_use_first_reply_that_is_not_an_error(tmp_path):
    write_replies(tmp_path, [[case([gold((0, 9))], [at(0, 9)], id=7, error=error) for error in ("timed out", "")]])
    assert (tmp_path / RUN).read_text(encoding="utf-8") == "7 Q0 gold-0 1 1 my%20run\n"
    assert (tmp_path / QRELS).read_text(encoding="utf-8") == "7 0 gold-0 1\n"


def make_graded_cases(chance: random.Random) -> list[Case]:
    """Return rankings of graded and ungraded files, several passages per file; each query has one gold file."""
    cases = []
    for number in range(40):
        files = [f"clause {n}.pdf" for n in range(60)]
        grades = {file: chance.choice([0, 0, 0, 1, 2, 3, 4]) for file in chance.sample(files, 30)} | {"best.pdf": 4}
        ranked = [Passage("x", chance.choice([*files, "best.pdf"])) for _ in range(chance.randint(0, 64))]
        cases.append(case([], ranked, id=number, grades={**grades, "worst.pdf": 0}))
    return cases


def make_span_cases(chance: random.Random) -> list[Case]:
    """Return rankings of passages; several may overlap one gold passage, and one may overlap several."""
    cases = []
    for number in range(40):
        starts = chance.sample(range(0, 3000, 60), chance.randint(1, 5))
        golds = [gold((start, start + chance.randint(5, 60))) for start in starts]
        chunks = chance.sample(range(0, 3000, 50), chance.randint(0, 40))
        cases.append(case(golds, [at(start, start + 50) for start in chunks], id=number))
    return cases


EACH = pytest.mark.parametrize(
    ("make", "least", "seed"), [(m, k, n) for m, k in ((make_graded_cases, 3), (make_span_cases, 1)) for n in range(5)]
)


def write_seeded(folder: Path, make, seed: int) -> tuple[dict[str, float | None], str, str]:
    """Write the TREC files of random cases; return our figures, and the paths of qrels and run."""
    cases = make(random.Random(seed))
    write_trec(folder, cases)
    values = {name: compute_mean(column) for name, column in measure(cases).items()}
    names = ["ndcg@5", "ndcg@10", "recall@10", "mrr@10"]
    if make is make_span_cases:
        # several golds in one passage are all found at the tenth rank, but a TREC run has one unit for each rank
        names.remove("recall@10")
    return {name: values[name] for name in names}, str(folder / QRELS), str(folder / RUN)


@pytest.mark.extra
@pytest.mark.skipif(platform.machine() != "x86_64", reason="ir-measures needs trec_eval, which has no wheel for ARM")
@EACH
def test_ir_measures_computes_same_metrics_from_trec_files(make, least, seed, tmp_path):
    import ir_measures

    ours, qrels, run = write_seeded(tmp_path, make, seed)
    measures = {
        "ndcg@5": ir_measures.nDCG @ 5,
        "ndcg@10": ir_measures.nDCG @ 10,
        "recall@10": ir_measures.R(rel=least) @ 10,
        "mrr@10": ir_measures.RR(rel=least) @ 10,
    }
    wanted = {name: measures[name] for name in ours}
    judged, ranked = list(ir_measures.read_trec_qrels(qrels)), list(ir_measures.read_trec_run(run))
    theirs = ir_measures.calc_aggregate(list(wanted.values()), judged, ranked)
    assert {name: theirs[measure] for name, measure in wanted.items()} == pytest.approx(ours, abs=1e-6)


@pytest.mark.extra
@EACH
def test_ranx_computes_same_metrics_from_trec_files(make, least, seed, tmp_path):
    import ranx

    ours, qrels, run = write_seeded(tmp_path, make, seed)
    graded_by = {"recall@10": f"recall@10-l{least}", "mrr@10": f"mrr@10-l{least}"}
    names = {name: graded_by.get(name, name) for name in ours}
    ranked, judged = ranx.Run.from_file(run, kind="trec"), ranx.Qrels.from_file(qrels, kind="trec")
    found = ranx.evaluate(judged, ranked, list(names.values()), make_comparable=True)
    assert {name: found[theirs] for name, theirs in names.items()} == pytest.approx(ours, abs=1e-6)
