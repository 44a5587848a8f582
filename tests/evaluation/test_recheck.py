"""Finished runs of other tools are scored on a bundle: formats, matching of questions, denominators."""

import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evaluate_rag
from exhibit.evaluation.targets.predictions import ACCOUNT, match_rows, read_finished_run
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder
from tests.evaluation.metrics.build import case
from tests.evaluation.systems import write_content
from tests.rag.bundles import write_bundle

RENT = "What is the yearly rent of the lease of Birch Ltd?"
GOLD = "The yearly rent is GBP 12,000."


RAGAS = {"user_input": RENT, "retrieved_contexts": [GOLD], "response": "GBP 12,000", "faithfulness": 0.75}


def write_ragas_csv(folder):
    return write_content(folder / "ragas.csv", [{**RAGAS, "reference": "GBP 12,000", "answer_relevancy": ""}])


def write_ragas_json(folder):
    """Write a table as JSON in the form of pandas: each column has its values by row number."""
    return write_content(folder / "ragas.json", {name: {"0": value} for name, value in RAGAS.items()})


def write_ragas_parquet(folder):
    rows = [RAGAS, {**RAGAS, "user_input": "Else?", "faithfulness": float("nan")}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "r")
    return (folder / "r").rename(folder / "ragas.parquet")


def write_deepeval(folder):
    metrics = [{"name": "Faithfulness", "score": 0.75, "success": True}, {"name": "Broken", "error": "no key"}]
    case = {"name": "test_case_0", "input": RENT, "actualOutput": "GBP 12,000", "retrievalContext": [GOLD]}
    return write_content(folder / "deepeval.json", {"testCases": [{**case, "metricsData": metrics}], "testPassed": 1})


def write_promptfoo(folder):
    result = {"vars": {"question": RENT}, "prompt": {"raw": f"Answer: {RENT}"}, "success": True, "score": 0.75}
    result["response"] = {"output": "GBP 12,000", "metadata": {"contexts": [GOLD]}}
    return write_content(folder / "promptfoo.json", {"evalId": "x", "results": {"version": 3, "results": [result]}})


SAMPLE = {
    "id": 1,
    "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Please answer.\n{RENT}"}],
    "target": "GBP 12,000",
    "output": {"choices": [{"message": {"content": "GBP 12,000"}}]},
    "metadata": {"contexts": [GOLD]},
    "scores": {"f1": {"value": 0.75}, "includes": {"value": "C"}},
}


def write_inspect_json(folder):
    return write_content(folder / "log.json", {"status": "success", "samples": [SAMPLE]})


def write_inspect_archive(folder):
    """Write an archive like Inspect's: its members are compressed with Zstandard, which `zipfile` cannot read."""
    path = folder / "log.eval"
    packed = pa.Codec("zstd").compress(json.dumps(SAMPLE).encode(), asbytes=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", packed)
    data = bytearray(path.read_bytes())
    for mark, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = data.rindex(mark)
        data[at + method : at + method + 2] = (93).to_bytes(2, "little")
    path.write_bytes(data)
    return path


def write_langsmith(folder):
    row = {"inputs.question": RENT, "outputs.answer": "GBP 12,000", "outputs.contexts": json.dumps([GOLD])}
    return write_content(folder / "langsmith.csv", [{**row, "feedback.correctness": "0.75", "status": "success"}])


def write_langfuse(folder):
    row = {"id": "t1", "input": json.dumps({"question": RENT})}
    row |= {"output": json.dumps({"answer": "GBP 12,000", "contexts": [GOLD]}), "scores": json.dumps({"quality": 0.75})}
    return write_content(folder / "langfuse.csv", [row])


WRITERS = [
    (write_ragas_csv, "ragas"),
    (write_ragas_json, "ragas"),
    (write_ragas_parquet, "ragas"),
    (write_deepeval, "DeepEval"),
    (write_promptfoo, "promptfoo"),
    (write_inspect_json, "Inspect"),
    (write_inspect_archive, "Inspect"),
    (write_langsmith, "Langfuse or LangSmith"),
    (write_langfuse, "Langfuse or LangSmith"),
]


@pytest.mark.parametrize(("write", "tool"), WRITERS, ids=lambda value: getattr(value, "__name__", ""))
def test_read_finished_run_finds_question_answer_passages_and_scores(tmp_path, write, tool):
    found, [row, *_] = read_finished_run(write(tmp_path))
    assert found == tool and RENT in row["question"]
    assert (row["answer"], list(row["passages"])) == ("GBP 12,000", [GOLD])
    assert 0.75 in row["scores"].values()


@pytest.mark.parametrize(
    "content",
    [
        {"samples": [{"input": RENT, "scores": [1]}]},
        {"results": {"results": [{"vars": {"question": RENT}, "namedScores": [1]}]}},
        {"testCases": [{"input": RENT, "metricsData": [{"name": [1], "score": "high"}]}]},
    ],
)
def test_read_finished_run_ignores_scores_in_an_unknown_format(tmp_path, content):
    _, [row] = read_finished_run(write_content(tmp_path / "run.json", content))
    assert row["question"] == RENT and row["scores"] == {}


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", "{"), ("b.json", '{"x": 1}'), ("c.csv", "a,b\n1,2\n"), ("d.eval", "no archive"), ("e.parquet", "PAR1")],
)
def test_read_finished_run_rejects_unrecognised_file(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ToolkitError, match=name):
        read_finished_run(tmp_path / name)


def test_match_rows_skips_repeated_questions(tmp_path):
    texts = ("which LAW  governs?", "Documents: … Question: Who pays the taxes of it?", "Which law?", "Twice?")
    rows = [{"user_input": text, "response": "x", "score": 1} for text in texts]
    path = write_content(tmp_path / "rows.json", rows)
    questions = ["Which law governs?", "Who pays the taxes of it?", "Twice?", "Twice?", "Who pays?"]
    cases = [case(id=number, question=question) for number, question in enumerate(questions)]
    assert match_rows(read_finished_run(path)[1], cases, "x", prompts=True) == {0: 0, 1: 1}


@pytest.fixture
def bundle(tmp_path):
    return write_bundle(tmp_path / "leases")


def recheck(bundle, path, tmp_path, *flags):
    words = [str(bundle), "--recheck", str(path), "--output-dir", str(tmp_path / "results"), "--run-name", "r"]
    assert evaluate_rag.main([*words, "--set", "report_cases=0", *flags]) == 0
    return RunFolder(tmp_path / "results" / "r")


def test_recheck_divides_scores_by_number_of_questions_in_the_bundle(tmp_path, bundle, capsys):
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    cases = [{"input": "What is love?", "actualOutput": "x"}]
    for row, answer in zip(rows, (rows[0]["answer"], "", rows[2]["answer"]), strict=False):
        gold = [context["text"] for context in row["contexts"]]
        cases.append({"input": row["question"], "actualOutput": answer, "retrievalContext": gold})
    for score, c in zip((1.0, 0.5, 1.0, 1.0), cases, strict=True):
        c["metricsData"] = [{"name": "Faithfulness", "score": score}]
    run = recheck(bundle, write_content(tmp_path / "run.json", {"testCases": cases}), tmp_path)
    # (0.5 + 1 + 1 + 1) / 4 is reported; the three matched rows have 2.5 of the bundle's 9 questions
    assert len(rows) == 9
    out = capsys.readouterr().out
    reported = "DeepEval reported Faithfulness 0.88 over 4 questions"
    assert out.startswith(f"{reported}; 6 of the bundle's 9 are not in the run; on all 9: 0.28")
    assert "1 row of the run matches no question: “What is love?”" in out
    outcomes = [row.outcome for row in run.rows]
    assert outcomes.count("failed") == 6 and outcomes[1] == "wrongly refused"
    account = json.loads((run.folder / ACCOUNT).read_text(encoding="utf-8"))
    assert account["reported"] == [{"name": "Faithfulness", "mean": 0.875, "rows": 4, "over_all": 2.5 / 9}]
    assert run.rows[0].scores["recall@10"] == 1.0, "passages are located in the documents"


def test_recheck_without_bundle_builds_bundle_from_reference_answers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").mkdir()
    lease = f"LEASE\n\n1. Rent. {GOLD}\n\n2. Law. Ohio law.\n"
    (tmp_path / "documents" / "lease.txt").write_text(lease, encoding="utf-8")
    (tmp_path / "documents" / "loan.txt").write_text("LOAN\n\n1. Interest. 5 percent.\n", encoding="utf-8")
    row = {"user_input": RENT, "response": "GBP 12,000", "retrieved_contexts": [GOLD], "reference": "GBP 12,000"}
    other = {**row, "user_input": "What is the interest?", "response": "5 percent", "reference": "Five in words"}
    # the file of the run is in the documents' folder, and is not a document
    scored = [{**row, "faithfulness": 1.0}, {**other, "faithfulness": 0.5}]
    path = write_content(tmp_path / "documents" / "mine.json", scored)
    words = ["--recheck", str(path), "--documents", "documents", "--run-name", "r", "--set", "report_cases=0"]
    assert evaluate_rag.main(words) == 0
    assert "reported faithfulness 0.75 over 2 questions; on all 2: 0.75" in capsys.readouterr().out
    made = tmp_path / "datasets_out" / "mine"
    rows = json.loads((made / "train.json").read_text(encoding="utf-8"))
    assert [row["contexts"] for row in rows] == [[{"filename": "lease.txt", "text": "GBP 12,000"}], []]
    assert sorted(path.name for path in (made / "corpus").iterdir()) == ["lease.txt", "loan.txt"]


def test_recheck_needs_a_bundle_or_documents(tmp_path, capsys):
    assert evaluate_rag.main(["--recheck", str(write_ragas_csv(tmp_path))]) == 1
    assert "--documents" in capsys.readouterr().err


def test_recheck_rejects_run_of_other_bundle(tmp_path, bundle, capsys):
    assert evaluate_rag.main([str(bundle), "--recheck", str(write_ragas_csv(tmp_path))]) == 1
    assert "no row answers a question of leases" in capsys.readouterr().err
