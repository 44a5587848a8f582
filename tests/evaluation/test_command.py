"""The command: its table, exit codes and messages, analyses of a run, and config files of other evaluators."""

import json
import re
from functools import partial

import pytest

import evaluate_rag
from exhibit.evaluation import command as command_module
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import write_testdata
from exhibit.evaluation.metrics import Options, describe_metric, measure
from exhibit.evaluation.statistics import summarise_confidences
from exhibit.schemas.errors import SourceError
from exhibit.viewer.results import main as results
from tests.evaluation.loopback import SECRET, chat, imitating
from tests.models.openai_server import KEY, serve_openai
from tests.rag.bundles import gold_line, row, rows_of, write_bundle, write_files


def test_evaluate_rag_prints_metric_table_and_report_path(run_command, tmp_path, capsys):
    write_bundle(tmp_path / "data" / "a")
    write_bundle(tmp_path / "data" / "b")
    (tmp_path / "data" / "README.md").touch()
    paths = sorted((tmp_path / "data").iterdir())
    assert run_command("--dataset-paths", *paths, "--file-type", "txt") == 0
    out, err = capsys.readouterr()
    headline, first_blank, *rows, blank, _, report = out.splitlines()
    assert headline == "6 to 12 of 12 answered correctly, 50 to 100%" and first_blank == blank == ""
    assert [row for row in rows if not row.startswith(" ")][:3] == ["a", "b", "ALL (mean of 2 datasets)"]
    shown = [row.split()[0] for row in rows if row.startswith("  ")]
    assert shown[:6] * 3 == shown and {"answered_rightly", "recall@10", "char_recall@8"} <= set(shown)
    assert report == f"report:  {tmp_path / 'results' / 'r' / 'report.html'}"
    assert "README.md: not a dataset folder" in err
    assert json.loads((tmp_path / "results" / "r" / "config.json").read_text())["file_type"] == ["txt"]


def test_evaluate_rag_flags_override_config_file(run_command, tmp_path, capsys):
    folder = write_bundle(tmp_path / "leases")
    settings = {"dataset_paths": [str(folder)], "limit": 5, "preset": "naive", "chunk_size": 200, "metrics": ["drm@1"]}
    (tmp_path / "c.json").write_text(json.dumps(settings))
    assert (
        run_command("--config", tmp_path / "c.json", "--limit", "2", "--chunk-size", "150", "--where", "clause=law")
        == 0
    )
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
    assert (config["limit"], config["preset"], config["config"]["chunk_size"]) == (2, "naive", 150)
    assert config["datasets"]["leases"]["questions"] == 2 and config["where"] == {"clause": ["law"]}
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:4]] == ["drm@1"]


def test_evaluate_rag_prints_each_error_on_stderr_for_bad_arguments(run_command, tmp_path, capsys):
    assert run_command("--dataset-paths", tmp_path / "x*", tmp_path / "y", "--metrics", "bleu") == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("error: ") == 3 and "no file or folder matches" in err and "no such folder" in err
    assert run_command() == 1
    assert "name a folder, such as datasets_out/cuad" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        run_command("--limit", "ten")
    assert ended.value.code == 2


def test_evaluate_rag_suggests_resume_after_keyboard_interrupt(run_command, tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_module, "evaluate", stop)
    assert run_command("--dataset-paths", tmp_path) == 130
    assert "--resume" in capsys.readouterr().err


@pytest.fixture
def start(run_command, dataset, tmp_path, capsys):
    """A function that runs the command and returns its exit code, stdout, stderr and the run's folder."""

    def run(*flags, name="run"):
        code = run_command(dataset.root, *flags, name=name)
        return code, *capsys.readouterr(), tmp_path / "results" / name

    return run


def summary(folder):
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def test_evaluate_exits_with_code_3_when_more_questions_fail_than_allowed(start, server, dataset):
    bad = {case.question for case in dataset.cases[1::2]}
    server.reply = lambda question: chat(f"About {question}", ["x"])
    assert start("--target-url", server.url, name="good")[0] == 0
    server.reply = lambda question: (
        (500, {"error": f"disk full, key {SECRET}"}) if question in bad else chat("a", ["x"])
    )
    code, out, err, folder = start("--target-url", server.url, "--retries", "0", name="flaky")
    assert code == 3
    assert "4 of 9 questions failed" in err and "HTTP 500 Internal Server Error: disk full, key ***" in err
    assert "44.4%, and --max-failures is 5%" in err and "--resume --run-name flaky" in err
    assert "(n 5, 4 failed)" in out and "and are excluded from every other mean: leases: 4" in out
    assert summary(folder)["answer_f1"]["errors"] == 4
    assert "4 failed" in (folder / "report.html").read_text(encoding="utf-8")
    assert start("--target-url", server.url, "--retries", "0", "--max-failures", "0.5", name="lenient")[0] == 0
    assert results(["diff", str(folder.parent / "good"), str(folder), "--fail-on-regression"]) == 1


def test_evaluate_omits_retrieval_metrics_when_replies_have_no_passages(start, server):
    server.reply = lambda question: {"answer": "It is governed by the law of Norway."}
    code, out, err, folder = start("--target-url", server.url)
    assert code == 0 and "the reply has no passages ({answer: text})" in err
    assert "leases: no reply has passages, so retrieval is not measured" in err
    means = summary(folder)
    assert "answer_f1" in means and not {"recall@10", "char_recall@8", "document_hit@1"} & means.keys()
    assert "recall@10" not in out


def test_evaluate_measures_only_retrieval_when_replies_have_no_answers(start, server, dataset):
    server.reply = lambda question: {"passages": ["governed by the law of Norway"]}
    code, _, err, folder = start("--target-url", server.url)
    assert code == 0 and "the replies have passages but no answer: only retrieval is measured" in err
    assert "answer_f1" not in summary(folder) and summary(folder)["recall@10"]["n"] == 6


def test_report_counts_outcomes_when_gold_has_no_quotes(run_command, server, tmp_path):
    rows = [row(n, f"Which part governs offer {n}?", "Part 36", {"filename": "alder.txt"}) for n in (0, 1)]
    bundle = write_bundle(tmp_path / "cpr", rows=rows, gold=False)
    words = {"Which part governs offer 0?": "alder.txt: governed by the law of Norway"}
    server.reply = lambda question: chat("Part 36 [1].", [words.get(question, "birch.txt: the law of Ohio")])
    assert run_command(bundle, "--target-url", server.url) == 0
    found = rows_of(tmp_path / "results" / "r" / "cpr" / "eval_results.jsonl")
    assert [r["outcome"] for r in found] == ["right", "right"]
    report = (tmp_path / "results" / "r" / "report.html").read_text(encoding="utf-8")
    assert dict(re.findall(r'data-pick="([^"]+)".*?<b>(\d+)</b>', report)) == {"right": "2"}


KINDS = ["CPR", "CPR", "PD", "PD", "Court Guide", "Court Guide"]
ANSWERS = [
    ("Rule 3.4 applies.", 0.9),
    ("Rule 3.4 applies.", 0.2),
    ("PD 28 applies.", 0.5),
    ("PD 29 applies.", 0.1),
    ("Commercial Court Guide section O.5.1.", None),
    ("Nothing applies.", 0.7),
]
TRUTHS = ["Rule 3.4.", "Rule 3.5.", "PD 28.", "PD 28.", "Commercial Court Guide section O.5.1.", "Annex E."]


@pytest.fixture
def command(run_command, tmp_path):
    rows, gold, replies = [], [], []
    for number, (kind, truth, (answer, sure)) in enumerate(zip(KINDS, TRUTHS, ANSWERS, strict=True)):
        rows.append({"id": number, "question": f"Which law is question {number} about?", "answer": truth,
                     "is_impossible": False, "contexts": [{"filename": "rules.txt"}]})  # fmt: skip
        labels = {"source_type": kind, "category": "Costs" if number % 2 else "Trial", "reference": f"r{number}"}
        gold.append(gold_line(number, 0, "rules.txt", [], labels))
        replies.append({"id": number, "answer": answer} | ({} if sure is None else {"confidence": sure}))
    folder = write_files(tmp_path / "procedure", {"rules.txt": "Rule 3.4 is about statements of case."}, rows, gold)
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in replies), encoding="utf-8")
    return partial(run_command, folder, "--target", f"predictions:{tmp_path / 'replies.jsonl'}")


def test_summarise_confidences_weights_means_by_confidence():
    answerable = [True, False, True, True]
    values = {"answered_rightly": [1.0, 0.0, None, 1.0], "map": [None, None, 0.5, 0.5]}
    described = summarise_confidences([0.9, 0.3, 0.5, None], answerable, values)
    assert described["weighted"] == {"answered_rightly": pytest.approx(0.75), "map": 0.5}
    assert (described["questions"], described["answerable"]) == (3, 2)
    assert summarise_confidences([None] * 4, answerable, values) == {}


def test_flagged_metric_marks_answers_with_confidence_below_threshold():
    def case(**reply):
        return Case(0, "?", "", reply=Reply("x", **reply))

    cases = [case(confidence=0.29), case(confidence=0.3), case(), case(confidence=0.1, error="away")]
    assert measure(cases, Options(flag_below=0.3), names=["flagged"]) == {"flagged": [1.0, 0.0, None, None]}
    assert measure(cases, names=["flagged"]) == {"flagged": [None] * 4}
    assert describe_metric("flagged").improves(1.0) is None


def test_flag_below_option_flags_answers_in_rows_summary_and_terminal_output(command, tmp_path, capsys):
    assert command("--flag-below", "0.3") == 0
    out = capsys.readouterr().out
    assert "flagged for review: 2 of 5 answers that have a confidence" in out
    place = tmp_path / "results" / "r" / "procedure"
    rows = [json.loads(line) for line in (place / "eval_results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["scores"]["flagged"] for row in rows] == [0.0, 1.0, 0.0, 1.0, None, 0.0]
    assert [row["reply"]["confidence"] for row in rows] == [0.9, 0.2, 0.5, 0.1, None, 0.7]
    flagged = json.loads((place / "summary.json").read_text(encoding="utf-8"))["flagged"]
    assert (flagged["mean"], flagged["n"]) == (0.4, 5)


def test_flag_below_option_prints_note_when_no_reply_has_confidence(command, tmp_path, capsys):
    path = tmp_path / "replies.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps({**line, "confidence": None}) + "\n" for line in lines), encoding="utf-8")
    assert command("--flag-below", "0.3") == 0
    assert "flagged for review: 0 of 0 answers that have a confidence" in capsys.readouterr().out


def test_all_flag_prints_metrics_for_each_source_type_and_for_all_questions(command, capsys):
    assert command("--all") == 0
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if line.endswith(" questions)")]
    assert heads == ["CPR (2 questions)", "Court Guide (2 questions)", "PD (2 questions)", "ALL (6 questions)"]
    compared = [line for line in out.splitlines() if line.startswith("  statute_citation_accuracy")]
    # CPR: one of two right; guides: one of two; directions: one of two; in all three of six
    assert [line.split()[1] for line in compared] == ["0.500"] * 4


def test_by_flag_compares_the_values_of_a_label(command, capsys):
    assert command("--by", "category") == 0
    assert "Costs (3 questions)" in capsys.readouterr().out
    assert command("--by", "colour", "--resume") == 1
    err = capsys.readouterr().err
    assert "no question has a label 'colour'" in err and "category" in err


def test_source_type_flag_is_shorthand_for_where(command, tmp_path):
    assert command("--source-type", "PD", "--source-type", "CPR") == 0
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text(encoding="utf-8"))
    assert config["where"] == {"source_type": ["PD", "CPR"]} and config["datasets"]["procedure"]["questions"] == 4


def test_analyze_prints_a_run_without_writing_files(command, tmp_path, capsys):
    assert command("--flag-below", "0.3") == 0
    capsys.readouterr()
    before = sorted((tmp_path / "results").rglob("*"))
    assert evaluate_rag.main(["--analyze", str(tmp_path / "results" / "r")]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0] == "questions: 6"
    assert [line for line in lines if line.startswith("BY ")] == ["BY SOURCE_TYPE", "BY CATEGORY"]
    assert "  Court Guide       2   33.3%" in lines
    assert sorted((tmp_path / "results").rglob("*")) == before, "an analysis must write no file"


def test_analyze_without_run_counts_dataset_questions(command, tmp_path, capsys):
    assert command("--analyze") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "questions: 6" and "  CPR               2   33.3%" in lines
    assert not (tmp_path / "results").exists(), "no run may be made"


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
OVERRIDES = {
    "top": 5, "results_merge_strategy": "interleaved", "temperature": 0.3, "minimum_reranker_score": 0.5, "seed": 1,
    "retrieval_mode": "hybrid", "semantic_ranker": True, "query_rewriting": True, "reasoning_effort": "medium",
}  # fmt: skip
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
            settings = {
                "testdata_path": "ground_truth_cpr.jsonl",
                "results_dir": "results/legal-domain",
                "requested_metrics": metrics,
                "target_url": f"{system.url}/ask",
                "target_parameters": {"overrides": OVERRIDES},
                "target_response_answer_jmespath": "message.content",
                "target_response_context_jmespath": "context.data_points.text",
            }
            (folder / name).write_text(json.dumps(settings, indent=4), encoding="utf-8")
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
    assert "corpus/ has no readable file; add documents to it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"question": "Why?"}\n', "line 1: 'question' and 'truth' must be"),
        ('{"question": "Why?", "truth": "So."}\n[1]\n', "line 2: 'question' and 'truth' must be"),
        ("\n", "has no questions"),
    ],
)
def test_write_testdata_names_line_without_question_or_truth(tmp_path, monkeypatch, content, message):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "t.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        write_testdata(tmp_path / "t.jsonl")


def test_evaluate_sends_and_records_top_p_and_computes_cost_per_question(run_command, tmp_path, monkeypatch):
    flags = [write_bundle(tmp_path / "leases"), "--llm", "openai:tiny", "--limit", "2", "--price-in", "10"]
    flags += ["--price-out", "30", "--top-p"]
    with serve_openai() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert run_command(*flags, "0.95", name="a") == 0
        first = len(server.asked)
        assert first and all(body["top_p"] == 0.95 for body in server.asked)
        assert run_command(*flags, "0.5", name="b") == 0
        assert len(server.asked) == 2 * first, "another top_p must not reuse cached replies"
    config = json.loads((tmp_path / "results" / "a" / "config.json").read_text(encoding="utf-8"))
    assert config["config"]["top_p"] == 0.95
    rows = rows_of(tmp_path / "results" / "a" / "leases" / "eval_results.jsonl")
    for line in rows:
        usage = line["reply"]["usage"]
        assert line["scores"]["cost"] == pytest.approx((usage["tokens_in"] * 10 + usage["tokens_out"] * 30) / 1e6) != 0
    summary = json.loads((tmp_path / "results" / "a" / "summary.json").read_text(encoding="utf-8"))
    assert summary["cost"]["mean"] == pytest.approx(sum(row["scores"]["cost"] for row in rows) / len(rows))
