"""Config files and ground truth of other evaluators run unchanged; results include sampling and cost."""

from __future__ import annotations

import json

import pytest

import evaluate_rag
from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import write_testdata
from exhibit.schemas.errors import SourceError
from tests.evaluation.loopback import imitating
from tests.models.openai_server import KEY, serve_openai
from tests.rag.bundles import rows_of, write_bundle

TRUTH = [
    {"question": "What is an offer under Part 36?", "source_type": "CPR", "category": "Costs",
     "truth": "An offer to settle made under CPR Part 36, rule 36.5. [Part 36#page=Offers to Settle]"},
    {"question": "How is a costs budget filed?", "source_type": "PD", "category": "Costs",
     "truth": "With Precedent H, under Practice Direction 3D. [Practice Direction 3D#page=Budgets]"},
    {"question": "When is a reading list due?", "source_type": "Court Guide", "category": "Commercial Court",
     "truth": "Two days before, Commercial Court Guide section F.8. [Commercial Court Guide#page=Reading List]"},
]  # fmt: skip
REPLIES = {
    TRUTH[0]["question"]: "An offer to settle under CPR 36.5 [Part 36#page=Offers to Settle].",
    TRUTH[1]["question"]: "With Precedent H, see PD 3E [Practice Direction 3E].",
    TRUTH[2]["question"]: "Two days before [1].",
}
JUDGED = ["gpt_groundedness", "gpt_relevance"]
MEASURED = ["answer_length", "latency", "citations_matched", "any_citation"]
LEGAL = ["statute_citation_accuracy", "legal_terminology_accuracy", "citation_format_compliance", "precedent_matching"]
CONFIGS = {
    "evaluate_config.json": [*JUDGED, *MEASURED],
    "evaluate_config_legal.json": [*JUDGED, *MEASURED, *LEGAL, "case_law_citation_accuracy"],
    "evaluate_config_pd.json": [*MEASURED, *LEGAL],
}


def answer(system, asked):
    """Reply like the chat demo for which these config files were written."""
    question = asked.body["messages"][-1]["content"] if "messages" in asked.body else asked.body["question"]
    texts = ["Commercial Court Guide#page=Reading List: two days before the hearing"]
    return {"message": {"content": REPLIES[question], "role": "assistant"}, "context": {"data_points": {"text": texts}}}


@pytest.fixture
def evals(tmp_path, monkeypatch):
    """A folder of config files and their ground truth, with the running system that they name."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "evals"
    folder.mkdir()
    (folder / "ground_truth_cpr.jsonl").write_text("".join(json.dumps(r) + "\n" for r in TRUTH), encoding="utf-8")
    with imitating(answer, [Case(0, question, "") for question in REPLIES]) as system:
        for name, metrics in CONFIGS.items():
            told = {
                "testdata_path": "ground_truth_cpr.jsonl",
                "results_dir": "results/legal-domain",
                "requested_metrics": metrics,
                "target_url": f"{system.url}/ask",
                "target_parameters": {
                    "overrides": {
                        "top": 5,
                        "results_merge_strategy": "interleaved",
                        "temperature": 0.3,
                        "minimum_reranker_score": 0.5,
                        "retrieval_mode": "hybrid",
                        "semantic_ranker": True,
                        "query_rewriting": True,
                        "reasoning_effort": "medium",
                        "seed": 1,
                    }
                },
                "target_response_answer_jmespath": "message.content",
                "target_response_context_jmespath": "context.data_points.text",
            }
            (folder / name).write_text(json.dumps(told, indent=4), encoding="utf-8")
        yield folder, system


@pytest.mark.parametrize("name", CONFIGS)
def test_evaltools_config_runs_unchanged(evals, tmp_path, capsys, name):
    folder, system = evals
    assert evaluate_rag.main(["--config", str(folder / name), "--run-name", "r"]) == 0
    err = capsys.readouterr().err
    place = tmp_path / "results" / "legal-domain" / "r" / "ground_truth_cpr"
    rows = rows_of(place / "eval_results.jsonl")
    assert [row["reply"]["answer"] for row in rows] == list(REPLIES.values())
    assert [row["labels"]["source_type"] for row in rows] == ["CPR", "PD", "Court Guide"]
    summary = json.loads((place / "summary.json").read_text(encoding="utf-8"))
    assert set(summary) >= {metric for metric in CONFIGS[name] if metric not in JUDGED and "case_law" not in metric}
    assert ("groundedness, relevance: left out" in err) == ("gpt_relevance" in CONFIGS[name])
    if "statute_citation_accuracy" in CONFIGS[name]:
        # the first truth names Part 36 and rule 36.5, and 36.5 counts for both; the second names another direction; the
        # third names none
        assert [row["scores"]["statute_citation_accuracy"] for row in rows] == [1.0, 0.0, 0.0]
        assert rows[0]["scores"]["precedent_matching"] == 1.0
    sent = [asked.body for asked in system.asked if asked.body]
    assert sent and all(body["context"]["overrides"]["semantic_ranker"] is True for body in sent)


def test_evaltools_command_line_options_are_accepted(evals, tmp_path):
    folder, system = evals
    config = str(folder / "evaluate_config_legal.json")
    flags = ["--targeturl", f"{system.url}/ask", "--numquestions", "2", "--resultsdir", str(tmp_path / "elsewhere")]
    assert evaluate_rag.main(["--config", config, *flags, "--run-name", "r"]) == 0
    assert len(rows_of(tmp_path / "elsewhere" / "r" / "ground_truth_cpr" / "eval_results.jsonl")) == 2


def test_builtin_target_rejects_testdata_without_documents(evals, capsys):
    folder, _ = evals
    (folder / "own.json").write_text('{"testdata_path": "ground_truth_cpr.jsonl"}', encoding="utf-8")
    assert evaluate_rag.main(["--config", str(folder / "own.json")]) == 1
    assert "no readable file in corpus/" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"question": "Why?"}\n', "line 1: 'question' and 'truth' must be"),
        ('{"question": "Why?", "truth": "So."}\n[1]\n', "line 2: 'question' and 'truth' must be"),
        ("\n", "has no questions"),
    ],
)
def test_write_testdata_names_line_without_question_or_truth(tmp_path, monkeypatch, content, told):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "t.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=told):
        write_testdata(tmp_path / "t.jsonl")


# ---------------------------------------------------------------- sampling and cost


def test_top_p_is_sent_and_recorded_and_each_question_has_cost(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    write_bundle(tmp_path / "leases")
    flags = ["--dataset-paths", tmp_path / "leases", "--output-dir", tmp_path / "results", "--report-cases", "0"]
    flags += ["--embedder", "hashing", "--llm", "openai:tiny", "--top-p", "0.95", "--limit", "2"]
    flags += ["--price-in", "10", "--price-out", "30"]
    with serve_openai() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert evaluate_rag.main([*map(str, flags), "--run-name", "a"]) == 0
        first = len(server.asked)
        assert first and all(body["top_p"] == 0.95 for body in server.asked)
        flags[flags.index("0.95")] = "0.5"
        assert evaluate_rag.main([*map(str, flags), "--run-name", "b"]) == 0
        assert len(server.asked) == 2 * first, "a reply to another top_p is another reply"
    config = json.loads((tmp_path / "results" / "a" / "config.json").read_text(encoding="utf-8"))
    assert config["config"]["top_p"] == 0.95
    rows = rows_of(tmp_path / "results" / "a" / "leases" / "eval_results.jsonl")
    for row in rows:
        usage = row["reply"]["usage"]
        assert row["scores"]["cost"] == pytest.approx((usage["tokens_in"] * 10 + usage["tokens_out"] * 30) / 1e6) != 0
    summary = json.loads((tmp_path / "results" / "a" / "summary.json").read_text(encoding="utf-8"))
    assert summary["cost"]["mean"] == pytest.approx(sum(row["scores"]["cost"] for row in rows) / len(rows))
