"""Compatibility: other projects read our files and compute the same metrics; results in formats of the Hub."""

import json
from importlib import import_module

import jsonschema
import pytest
import yaml

from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.result_exports import export_results
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.viewer import results
from tests.evaluation import systems
from tests.evaluation.loopback import imitating
from tests.rag.bundles import rows_of, write_bundle


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with two runs: one answers from the gold, the other has wrong answers and a missing prediction."""
    tmp_path = tmp_path_factory.mktemp("runs")
    bundle = write_bundle(tmp_path / "leases")
    [dataset], _ = load_datasets([bundle], Selection())
    for name, truthful in (("good", True), ("poor", False)):
        rows = [_row(case, truthful or case.id > 3) for case in dataset.cases if truthful or case.id != 3]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
        settings = {"dataset_paths": [str(bundle)], "target": f"predictions:{tmp_path / f'{name}.json'}"}
        settings |= {"output_dir": str(tmp_path / "results"), "run_name": name, "report_cases": 0}
        evaluate(parse_settings(settings))
    return tmp_path / "results"


def _row(case, truthful):
    passages = [{"filename": gold.filename, "text": gold.text} for gold in case.gold if gold.text]
    answer = f"{case.truth} [1]" if truthful else "The five year's term, I think."
    return {"id": case.id, "answer": answer, "passages": passages}


def test_evaluate_writes_files_in_evaltools_format(runs):
    rows = rows_of(runs / "poor" / "eval_results.jsonl")
    assert len(rows) == 9 and rows[1]["answer"] == "The five year's term, I think." and rows[1]["dataset"] == "leases"
    assert rows[1]["truth"] == "The term of this Agreement is five years"
    assert rows[1]["context"] == "alder.txt: The term of this Agreement is five years"
    assert 0 < rows[1]["answer_f1"] < 1 and rows[1]["latency"] is None
    assert rows[3]["answer"] == rows[3]["context"] == "no prediction in poor.json" and rows[3]["latency"] == -1
    assert "answer_f1" not in rows[3], "a failed question has no score"
    parameters = json.loads((runs / "poor" / "evaluate_parameters.json").read_text(encoding="utf-8"))
    assert parameters["num_questions"] == 9 and parameters["target_url"].startswith("predictions:")


@pytest.mark.data
def test_evaltools_summary_and_diff_read_results_folder(runs, peers, monkeypatch):
    monkeypatch.syspath_prepend(peers / "evaltools" / "src")
    review = [import_module(f"evaltools.review.{name}") for name in ("summary_markdown", "diff_markdown", "utils")]
    summary, diff, utils = review
    rows, parameters = utils.summarize_results(runs)
    assert [row[0] for row in rows[2:]] == ["good", "poor"] == list(parameters)
    place = rows[0].index("answer_f1")
    means = {
        name: json.loads((runs / name / "summary.json").read_text(encoding="utf-8"))["answer_f1"]["mean"]
        for name in parameters
    }
    assert {row[0]: row[place] for row in rows[2:]} == means and means["good"] == 1.0 > means["poor"]
    assert [row[-1] for row in rows[2:]] == [9, 9], "the last column counts questions"
    table = summary.main(runs, highlight_run="good")
    assert "| answer_f1 | mean |" in table and "☞good☜" in table
    page = diff.main([runs / "good", runs / "poor"], "answer_f1")
    assert "no prediction in poor.json" not in page, "the diff lists only questions in both runs"
    assert "What is the term of the agreement of Alder Ltd?" in page and "⬇️" in page
    assert "no prediction in poor.json" in diff.main([runs / "good", runs / "poor"])


@pytest.mark.interop
def test_validator_of_every_eval_ever_accepts_exported_record_and_samples(runs, tmp_path, capsys):
    from every_eval_ever.validator.validate import main

    files = export_results(RunResults(runs / "poor"), "every-eval-ever", tmp_path / "out", model="my-firm/contract-rag")
    assert len(files) == 2 and main([*map(str, files)]) == 0, capsys.readouterr().out


@pytest.mark.data
def test_nvidia_target_requests_and_imitated_replies_match_openapi_schemas(tmp_path, peers):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "leases")], Selection())
    docs = peers / "nvidia-rag" / "docs" / "api_reference"
    rag, ingestor = (
        json.loads((docs / f"openapi_schema_{name}_server.json").read_text(encoding="utf-8"))
        for name in ("rag", "ingestor")
    )
    replies = []

    def reply(system, request):
        replies.append((request, systems.nvidia(system, request)))
        return replies[-1][1]

    with imitating(reply, dataset.cases, stream=True) as system:
        settings = {"url": system.url, "ingestor": system.url, "parameters": {"reranker_top_k": 5, "temperature": 0.2}}
        target = open_target("nvidia", TargetOptions(ingest="auto"), settings)
        target.probe(dataset, dataset.cases)
        target.ingest(dataset)
        assert all(not reply.error for _, reply in target.ask(dataset, dataset.cases))
        open_target("nvidia", TargetOptions(ingest="fresh"), settings).ingest(dataset)
    seen = set()
    for asked, answered in replies:
        spec = rag if asked.path in rag["paths"] else ingestor
        path = asked.path if spec is rag else asked.path.removeprefix("/v1")
        operation = spec["paths"][path][asked.method.lower()]
        seen.add((asked.method, path))
        assert set(asked.query) <= {item["name"] for item in operation.get("parameters", [])}
        if isinstance(asked.body, dict) and "fields" in asked.body:
            continue
        if asked.body is not None:
            _check(spec, operation["requestBody"]["content"]["application/json"]["schema"], asked.body)
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        pieces = answered.pieces if isinstance(answered, systems.StreamedReply) else []
        for item in [json.loads(piece.removeprefix("data: ")) for piece in pieces] or [answered]:
            _check(spec, schema, item)
    assert len(seen) == 6


def _check(spec, schema, value):
    """Check a value against a schema; a field that the schema does not define is an error too."""
    jsonschema.Draft202012Validator({**schema, "components": spec["components"]}).validate(value)
    name = schema.get("$ref", "").rpartition("/")[2]
    if name:
        unknown = set(value) - set(spec["components"]["schemas"][name]["properties"])
        assert not unknown, f"{name} has no {unknown}"


MODEL = "my-firm/contract-rag"


def export(run, form, out, *flags):
    return results.main(["export", str(run), "--to", form, "--model", MODEL, "--out", str(out), *flags])


def test_eval_results_export_divides_by_all_answerable_questions(runs, tmp_path):
    assert export(runs / "poor", "eval-results", tmp_path, "--dataset", "me/leases-rag") == 0
    [entry] = yaml.safe_load((tmp_path / ".eval_results" / "leases.yaml").read_text(encoding="utf-8"))
    assert entry["dataset"] == {"id": "me/leases-rag", "task_id": "questions"}
    summary = json.loads((runs / "poor" / "summary.json").read_text(encoding="utf-8"))
    assert entry["value"] == round(100 * summary["answered_rightly"]["mean"], 2) < 100
    assert set(entry) == {"dataset", "value", "date", "source", "notes"} and "answered correctly" in entry["notes"]


def test_eval_results_export_requires_dataset_and_model_names(runs, tmp_path, capsys):
    assert export(runs / "poor", "eval-results", tmp_path) == 1
    assert "--dataset OWNER/NAME" in capsys.readouterr().err
    assert results.main(["export", str(runs / "poor"), "--to", "eval-results", "--model", "nameless"]) == 1
    assert "OWNER/NAME" in capsys.readouterr().err


def test_export_to_every_eval_ever_contains_all_metrics_and_questions(runs, tmp_path):
    assert export(runs / "poor", "every-eval-ever", tmp_path) == 0
    folder = tmp_path / "data" / "exhibit-leases" / "my-firm" / "contract-rag"
    [record] = [path for path in folder.iterdir() if path.suffix == ".json"]
    content = json.loads(record.read_text(encoding="utf-8"))
    required = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "eval_library"}
    assert required < set(content) and content["model_info"]["id"] == MODEL
    summary = json.loads((runs / "poor" / "summary.json").read_text(encoding="utf-8"))
    scores = {e["metric_config"]["metric_id"]: e["score_details"]["score"] for e in content["evaluation_results"]}
    assert scores == {f"exhibit.{name}": e["mean"] for name, e in summary.items() if e["mean"] is not None}
    for e in content["evaluation_results"]:
        config = e["metric_config"]
        assert config.get("score_type") != "continuous" or {"min_score", "max_score"} < set(config)
    samples = [json.loads(line) for line in (folder / f"{record.stem}_samples.jsonl").read_text().splitlines()]
    assert len(samples) == 9 and {e["evaluation_id"] for e in samples} == {content["evaluation_id"]}
    correct = [e["evaluation"]["is_correct"] for e in samples]
    assert samples[3]["error"] and not any(correct[:4]) and all(correct[4:])
