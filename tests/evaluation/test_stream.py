"""Evaluation is streamed: its memory does not grow with the number of replies, and no reply is lost."""

from __future__ import annotations

import gc
import json
import sys

import pytest

from exhibit.evaluation import scoring, targets
from exhibit.evaluation.cases import Passage
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.runs import read_tables
from exhibit.evaluation.scoring import BATCH
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.statistics import summarise_run
from exhibit.schemas.run_folder import RunFolder
from tests.rag.bundles import rows_of, write_bundle

PASSAGES = 20

ORACLE = f'''
"""Answers from the gold, with as many passages as are worth counting."""

from exhibit.evaluation.cases import Passage, Reply
from exhibit.evaluation.targets import NumberedReply, count_only


def open(argument, options):
    return Oracle(options)


class Oracle:
    name, exact = "oracle", False

    def __init__(self, options):
        self.options = options

    def probe(self, dataset, cases):
        return []

    def ingest(self, dataset):
        return count_only(dataset, self.options)

    def ask(self, dataset, cases):
        for position, case in enumerate(cases):
            text = case.gold[0].text or "Nothing of the kind."
            passages = tuple(Passage(text, case.filename) for _ in range({PASSAGES}))
            yield NumberedReply(position, Reply(case.truth, passages))
'''


@pytest.fixture
def oracle(tmp_path, monkeypatch):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "oracle.py").write_text(ORACLE, encoding="utf-8")
    monkeypatch.setattr(targets, "__path__", [*targets.__path__, str(tmp_path / "more")])
    yield
    sys.modules.pop("exhibit.evaluation.targets.oracle", None)


def write_repeated_bundle(folder, times):
    """Write a small bundle whose questions are repeated with new ids, `times` times; return its folder."""
    write_bundle(folder)
    rows = json.loads((folder / "train.json").read_text(encoding="utf-8"))
    gold = rows_of(folder / "gold.jsonl")
    more = [[{**row, "id": row["id"] + 100 * time} for time in range(times) for row in lines] for lines in (rows, gold)]
    (folder / "train.json").write_text(json.dumps(more[0]), encoding="utf-8")
    (folder / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in more[1]), encoding="utf-8")
    return folder


def count_passages():
    return sum(type(one) is Passage for one in gc.get_objects())


@pytest.mark.parametrize(
    ("repeat", "many"), [(1, 30), *(pytest.param(repeat, 60, marks=pytest.mark.slow) for repeat in (1, 2))]
)
@pytest.mark.slow
def test_evaluate_memory_does_not_grow_with_number_of_questions(oracle, tmp_path, monkeypatch, repeat, many):
    most: dict[int, int] = {}
    for times in (15, many):
        counts = []

        def count_and_add(self, cases, counts=counts, add=scoring.Scored._add):
            counts.append(count_passages())
            return add(self, cases)

        with monkeypatch.context() as patched:
            patched.setattr(scoring.Scored, "_add", count_and_add)
            given = {
                "dataset_paths": [str(write_repeated_bundle(tmp_path / f"leases-{times}", times))],
                "target": "oracle",
            }
            given |= {"output_dir": tmp_path / "results", "run_name": f"run-{times}", "engine": "serial"}
            given |= {"report_cases": 0, "metrics": "document_hit@1,char_recall@8", "repeat": repeat}
            run = evaluate(parse_settings(given))
        assert (run.question_count, run.failed_count) == (9 * times, 0)
        assert run.means["document_hit@1"].mean == 1.0 and run.means["document_hit@1"].n == 6 * times
        most[times] = max(counts)
        assert summarise_run(read_tables(RunFolder(run.folder))) == run.means
    assert 0 < most[many] <= most[15] <= 2 * BATCH * PASSAGES
