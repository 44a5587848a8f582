"""`recheck` reads files that other tools have written, and other tools read the files that `publish` writes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from exhibit.evaluation.targets.predictions import read_finished_run
from exhibit.hub import publish
from exhibit.hub.exports import export
from tests.hub.conftest import connected, hub, hub_env  # noqa: F401
from tests.rag.bundles import write_bundle

pytestmark = pytest.mark.interop
REPO = "me/charters"
INSPECT = f"""
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

outputs = [ModelOutput.from_content("mockllm/model", "Ohio") for _ in range(4)]
for output in outputs:  # without a usage, Inspect downloads a vocabulary to count tokens
    output.usage = ModelUsage()
model = get_model("mockllm/model", custom_outputs=outputs)
for log in eval("hf/{REPO}", model=model, limit=2, display="none", max_connections=1, max_samples=1):
    print(log.eval.task, log.status, len(log.samples), [score.name for score in log.results.scores])
"""


@pytest.fixture
def rows(tmp_path):
    """Four questions of a bundle, of which an imitated system answers two as expected."""
    bundle = write_bundle(tmp_path / "leases")
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))[:4]
    for number, row in enumerate(rows):
        row["reply"] = row["answer"] if number % 2 else "I would have to guess."
        row["texts"] = [context["text"] for context in row["contexts"] if context["text"]]
    return rows


def check(path, tool, rows, *, score, passages=True):
    """Check that the tool's own file is read: every question with its reply, and the mean that the tool reports."""
    found, read = read_finished_run(path)
    assert found == tool and len(read) == len(rows)
    by_question = {row["question"]: row for row in read}
    for row in rows:
        given = next(case for question, case in by_question.items() if row["question"] in question)
        assert given["answer"] == row["reply"]
        assert not passages or list(given["passages"] or ()) == row["texts"]
    marks = [row["scores"][score] for row in read]
    assert sum(marks) / len(marks) == 0.5


def test_recheck_reads_ragas_csv_json_and_parquet(rows, tmp_path):
    from ragas import EvaluationDataset, evaluate
    from ragas.metrics import ExactMatch

    fields = {"user_input": "question", "retrieved_contexts": "texts", "response": "reply", "reference": "answer"}
    samples = [{name: row[field] for name, field in fields.items()} for row in rows]
    table = evaluate(EvaluationDataset.from_list(samples), metrics=[ExactMatch()]).to_pandas()
    table.to_csv(tmp_path / "r.csv", index=False)
    table.to_json(tmp_path / "r.json")
    table.to_parquet(tmp_path / "r.parquet")
    for name in ("r.csv", "r.json", "r.parquet"):
        check(tmp_path / name, "ragas", rows, score="exact_match")


def test_recheck_reads_deepeval_results(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # DeepEval writes a cache into the current folder
    monkeypatch.setenv("DEEPEVAL_RESULTS_FOLDER", str(tmp_path / "results"))
    from deepeval import evaluate
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    class Agreement(BaseMetric):
        threshold, async_mode = 0.5, False

        def measure(self, test_case, *_args, **_kwargs):
            self.score = float(test_case.actual_output == test_case.expected_output)
            self.success = self.score >= self.threshold
            return self.score

        async def a_measure(self, test_case, *_args, **_kwargs):
            return self.measure(test_case)

        def is_successful(self):
            return self.success

        @property
        def __name__(self):
            return "Agreement"

    fields = {"input": "question", "actual_output": "reply", "expected_output": "answer", "retrieval_context": "texts"}
    cases = [LLMTestCase(**{name: row[field] for name, field in fields.items()}) for row in rows]
    evaluate(cases, metrics=[Agreement()])
    [path] = [path for path in (tmp_path / "results").rglob("*") if path.is_file() and path.suffix in (".json", "")]
    check(path.rename(path.with_suffix(".json")), "DeepEval", rows, score="Agreement")


@pytest.mark.parametrize("form", ["eval", "json"])
def test_recheck_reads_inspect_logs(rows, tmp_path, form):
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import exact
    from inspect_ai.solver import generate

    outputs = [ModelOutput.from_content("mockllm/model", row["reply"]) for row in rows]
    for output in outputs:  # without a usage, Inspect downloads a vocabulary to count tokens
        output.usage = ModelUsage()
    samples = [Sample(input=row["question"], target=row["answer"], metadata={"contexts": row["texts"]}) for row in rows]
    model = get_model("mockllm/model", custom_outputs=outputs)
    task = Task(dataset=samples, solver=generate(), scorer=exact())
    eval(task, model=model, log_dir=str(tmp_path), log_format=form, display="none", max_connections=1, max_samples=1)
    [path] = tmp_path.glob(f"*.{form}")
    check(path, "Inspect", rows, score="exact")


def test_recheck_reads_promptfoo_results(rows, tmp_path):
    program = Path(sys.prefix) / "node" / "node_modules" / ".bin" / "promptfoo"
    tests = [
        {
            "vars": {"question": row["question"], "reply": row["reply"], "contexts": json.dumps(row["texts"])},
            "assert": [{"type": "equals", "value": row["answer"]}],
        }
        for row in rows
    ]
    config = {"prompts": ["{{reply}}"], "providers": ["echo"], "tests": tests}
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    quiet |= {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "c")}
    words = [program, "eval", "-c", "promptfooconfig.json", "-o", "out.json", "--no-cache", "--no-progress-bar"]
    subprocess.run(words, cwd=tmp_path, env=os.environ | quiet, check=False, capture_output=True, timeout=300)
    check(tmp_path / "out.json", "promptfoo", rows, score="score", passages=False)


def test_inspect_runs_a_published_bundle(connected, hub_env, converted, tmp_path):  # noqa: F811
    assert publish.main([str(converted("cuad")), "--repo-id", REPO]) == 0
    done = subprocess.run(
        [sys.executable, "-c", INSPECT],
        env=hub_env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    runs = [line for line in done.stdout.splitlines() if line.startswith(f"hf/{REPO}/")]
    assert done.returncode == 0 and len(runs) == 2, done.stdout[-2000:] + done.stderr[-2000:]
    assert all("success 2" in run and "includes" in run for run in runs), runs


def test_mteb_runs_an_export(converted, tmp_path, monkeypatch):
    import mteb

    folder = tmp_path / "mteb"
    export(converted("cuad"), "mteb", folder)
    monkeypatch.syspath_prepend(folder)
    sys.modules.pop("task", None)
    task = __import__("task").load()
    results = mteb.evaluate(mteb.get_model("mteb/baseline-random-encoder"), [task], cache=None)
    assert 0 <= results[0].scores["test"][0]["ndcg_at_10"] <= 1


def test_pdffolder_reads_the_published_files(connected, converted, tmp_path):  # noqa: F811
    from datasets import load_dataset

    assert publish.main([str(converted("cuad")), "--repo-id", REPO]) == 0
    folder = tmp_path / "files"
    for name, content in connected.files(REPO).items():
        if name == "metadata.jsonl" or name.startswith("corpus/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    rows = load_dataset("pdffolder", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert {"title", "pages"} <= set(rows.column_names) and len(rows) == len(list((folder / "corpus").iterdir()))
    shutil.rmtree(folder)
