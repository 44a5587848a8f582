"""Whole runs: their files, repeats, resuming after a kill, failing servers, memory, and single steps of a run."""

import gc
import json
import shutil
import statistics
import unicodedata
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit.evaluation import scoring
from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.datasets import Selection, find_datasets, load_datasets
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.journal import Journal, list_left_to_ask, to_probe
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.runs import RunResults, read_tables
from exhibit.evaluation.scoring import BATCH, Scored
from exhibit.evaluation.settings import main as settings_command
from exhibit.evaluation.settings import parse_set, parse_settings, read_config_file
from exhibit.evaluation.statistics import summarise_run
from exhibit.evaluation.targets import TargetOptions, ask_all
from exhibit.evaluation.text_tables import format_cell
from exhibit.evidence import Span
from exhibit.hub import pull
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.report import write_report
from tests.evaluation.loopback import SECRET, chat
from tests.rag.bundles import PARTIES, contents, row, rows_of, write_bundle

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bundle(tmp_path) -> Path:
    return write_bundle(tmp_path / "data" / "leases")


@pytest.fixture
def run(tmp_path, bundle):
    """A function that runs an evaluation with a small embedder; its keyword arguments are settings.

    Answers are generated only if `answers` is true.
    """

    def start(name="run", *, notes=None, judge=None, answers=False, draw=write_report, settings_judge=None, **told):
        fixed = {"judge": settings_judge, "dataset_paths": [str(bundle)], "output_dir": tmp_path / "results"}
        fixed |= {"run_name": name, "chunk_size": 120, "report_cases": 0, "threads": 1}
        settings = parse_settings({**fixed, **({} if answers else {"llm": "none"}), **told})
        parts = {"cache": tmp_path / "cache", "embedder": Hashing(256)}
        return evaluate(settings, parts=parts, judge=judge, warn=(notes if notes is not None else []).append, draw=draw)

    return start


def test_evaluate_writes_results_folder_files(run, tmp_path):
    done = run(answers=True)
    assert done.folder == tmp_path / "results" / "run" and done.report.is_file()
    names = {path.name for path in (done.folder / "leases").iterdir()}
    assert names == {
        "summary.json", "eval_results.jsonl", "ingestion.json", "breakdown.json", "journal.jsonl", "run.trec",
        "qrels.trec", "evidence.json", "predictions.json", "confidence.json",
    }  # fmt: skip
    assert len((done.folder / "leases" / "qrels.trec").read_text().splitlines()) == summary_n(done, "mrr@10") == 6
    summary = json.loads((done.folder / "summary.json").read_text())
    assert set(summary["char_recall@8"]) == {"mean", "n", "errors", "ci95", "std"}
    assert summary["char_recall@8"]["n"] == 6
    of_dataset = json.loads((done.folder / "leases" / "summary.json").read_text())
    assert of_dataset["drm@1"]["mean"] == summary["drm@1"]["mean"] and "pooled" in of_dataset["drm@1"]
    assert "groundedness" not in summary and "abstention_accuracy" in summary
    ingestion = json.loads((done.folder / "leases" / "ingestion.json").read_text())
    assert set(ingestion) == {"files", "pages", "pages_per_second", "chunks", "seconds", "set_aside"}
    rows = rows_of(done.folder / "leases" / "eval_results.jsonl")
    assert [row["id"] for row in rows] == list(range(9))
    first = rows[0]
    assert list(first) == ["id", "question", "truth", "is_impossible", "filename", "labels", "gold", "reply", "scores",
                           "outcome", "reason", "supported", "lost_at", "gold_stages", "notes"]  # fmt: skip
    assert first["gold"][0]["how"] == "exact" and len(first["gold"][0]["places"][0][0]) == 2
    assert list(first["reply"]) == ["answer", "refused", "citations", "passages", "selected", "context", "reranked",
                                    "seconds", "error", "usage", "confidence"]  # fmt: skip
    kinds = json.loads((done.folder / "leases" / "breakdown.json").read_text())
    assert set(kinds["clause"]) == {"law", "term", "none"} and kinds["clause"]["law"]["document_hit@1"]["n"] == 3


def summary_n(done, name):
    return done.means[name].n


def test_ingestion_counts_pdf_pages(run, converted):
    bundle = converted("cuad")
    done = run(dataset_paths=[str(bundle)], limit=1, embedder="hashing")
    told = json.loads((done.folder / "cuad" / "ingestion.json").read_text())
    documents = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["documents"]
    assert told["pages"] == sum(document["pages"] for document in documents) > told["files"] == len(documents)


def test_ranking_contains_all_graded_files_even_if_depth_is_less_than_their_number(run, bundle):
    lines = rows_of(bundle / "gold.jsonl")
    grades = {"alder.txt": 4, "birch.txt": 0, "cedar.txt": 2}
    lines[0]["labels"] |= {"grade": 4, "grades": json.dumps(grades)}
    (bundle / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = run(metrics="ndcg,mrr", depth="1")
    first, *_ = rows_of(done.folder / "leases" / "eval_results.jsonl")
    assert set(first["labels"]) == {"clause", "party"}
    assert 0 < first["scores"]["ndcg@5"] <= 1
    # one passage is requested, but with graded files the ranking is longer, so that it contains the judged files
    assert {passage["filename"] for passage in first["reply"]["passages"]} == set(grades)
    judged = [line for line in (done.folder / "leases" / "qrels.trec").read_text().splitlines() if line[0] == "0"]
    assert judged == ["0 0 alder.txt 4", "0 0 birch.txt 0", "0 0 cedar.txt 2"]


def test_evaluate_without_llm_measures_only_retrieval(run):
    done = run(llm="none", depth="4", preset="naive", top_k=2)
    assert "answer_f1" not in done.means and "char_recall@4" in done.means and "char_recall@8" not in done.means
    config = json.loads((done.folder / "config.json").read_text())
    assert (config["config"]["depth"], config["config"]["k"], config["preset"]) == (4, 2, "naive")
    assert rows_of(done.folder / "leases" / "eval_results.jsonl")[0]["reply"]["answer"] is None


class StubJudge:
    """A stub judge that gives every answer the same mark."""

    name = "judge-1"

    def complete(self, prompts, *, max_tokens, temperature):
        return [Completion('{"reason": "so", "score": 4}') for _ in prompts]


def test_judged_metrics_require_a_judge_and_record_the_judge_prompt(run):
    done = run(metrics="relevance", judge=StubJudge(), answers=True)
    assert done.means["relevance"].mean == 4
    measured = json.loads((done.folder / "config.json").read_text())["measured"]
    assert measured["judge"] == "judge-1" and measured["prompts"]["relevance"].startswith("relevance-")
    with pytest.raises(ToolkitError, match="--metrics groundedness,relevance needs a judge"):
        run(name="alone", metrics="groundedness,relevance")
    notes: list[str] = []
    without = run(name="without", metrics="relevance,answer_f1", notes=notes)
    assert any("relevance: left out, because no judge is set" in note for note in notes)
    assert set(without.means) == {"answer_f1"}


def test_evaluate_reports_all_setting_errors_before_writing_files(run, tmp_path):
    with pytest.raises(ToolkitError) as caught:
        run(dataset_paths=[str(tmp_path / "none*"), str(tmp_path)], metrics="bleu", embedder="crystal", splitter="axe")
    for part in ("none*: no file or folder matches", "train.json: missing", "no metric 'bleu'", "no splitter 'axe'"):
        assert part in str(caught.value)
    with pytest.raises(ToolkitError, match="char_recall@64: .*only 8 passages are ranked"):
        run(metrics="char_recall@64", depth=8)
    assert not (tmp_path / "results").exists() and not (tmp_path / "cache").exists()


@pytest.mark.parametrize("judge", ["gpt-4", "openai"])
def test_evaluate_rejects_incomplete_judge_name_and_shows_expected_form(run, judge, monkeypatch):
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(ToolkitError, match=f"--judge {judge}: .*; write --judge NAME:MODEL, such as openai:gpt-4o"):
        run(settings_judge=judge)


def test_evaluate_refuses_to_overwrite_run_or_resume_with_changed_settings_or_without_run(run, bundle, tmp_path):
    run()
    with pytest.raises(BundleError, match="exists already; continue it with --resume"):
        run()
    with pytest.raises(BundleError, match=r"started with other settings \(limit, datasets\)"):
        run(resume=True, limit=2)
    (tmp_path / "results" / "mine").mkdir()
    (tmp_path / "results" / "mine" / "thesis.tex").touch()
    with pytest.raises(BundleError, match="contains files that do not belong to a run; choose another --run-name"):
        run("mine", resume=True)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_resume_after_kill_asks_only_unanswered_questions(run, server, tmp_path, every):
    server.reply = lambda question: chat(f"About {question} [1].", ["alder.txt: the law of Norway"])
    told = {"target_url": server.url, "metrics": "answer_f1,char_recall@8,citations_matched"}
    whole = run("whole", **told)
    asked = server.questions[1:]  # the first is the probe
    journal = (whole.folder / "leases" / "journal.jsonl").read_bytes()
    ends = [at for at, byte in enumerate(journal) if byte == 10]
    # stopped after each question, and while its line is written
    for cut in sorted({0, *(end + 1 for end in ends), *(end - 7 for end in ends)})[::every]:
        folder = tmp_path / "results" / "cut"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "leases").mkdir(parents=True)
        shutil.copy(whole.folder / "config.json", folder)
        (folder / "leases" / "journal.jsonl").write_bytes(journal[:cut])
        server.asked.clear()
        run("cut", **told, resume=True)
        kept = journal[:cut].count(b"\n")
        assert sorted(server.questions[1:]) == sorted(asked[kept:])
        assert bool(server.questions) == (kept < len(asked)), "a complete run sends no question"
        assert contents(folder) == contents(whole.folder)


def test_resume_after_stop_during_report_asks_no_questions(run, server):
    told = {"target_url": server.url, "metrics": "answer_length"}

    def stop(folder, **_):
        (folder / "report").mkdir()
        raise KeyboardInterrupt

    run("done", **told)
    with pytest.raises(KeyboardInterrupt):
        run("half", **told, draw=stop)
    server.asked.clear()
    drawn = run(None, **told, resume=True)
    assert drawn.folder.name == "half" and drawn.report.is_file() and (drawn.folder / "summary.json").is_file()
    assert server.questions == []
    with pytest.raises(BundleError, match="no unfinished run with these settings"):
        run(None, **told, resume=True)


def test_interrupted_resume_of_a_finished_run_removes_the_summary(run, server):
    told = {"target_url": server.url, "metrics": "answer_length", "retries": 0}
    bad = "Which law governs the agreement of Alder Ltd?"
    server.reply = lambda question: (500, b"out of memory") if question == bad else chat("fine", [])
    done = run("again", **told)
    assert (done.folder / "summary.json").is_file()

    class Stopped(BaseException): ...

    def stop(*_, **__):
        raise Stopped

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("exhibit.evaluation.evaluate.describe_run", stop)
        run("again", **told, resume=True)
    assert not (done.folder / "summary.json").exists(), "an unfinished run must have no summary"
    assert run(None, **told, resume=True).folder == done.folder, "--resume finds the interrupted run"


def test_failed_questions_are_counted_and_excluded_from_means(run, server):
    faults = {
        "Which law governs the agreement of Alder Ltd?": 500,
        "What is the term of the agreement of Birch Inc.?": b"<",
    }
    faults["Consider Cedar SA; who won the cup final of 1998?"] = "cut"

    def reply(question):
        right = next(law for party, law in PARTIES.values() if party in question)
        return faults.get(question) or chat(f"The law of {right}.", [])

    server.reply = reply
    done = run(target_url=server.url, timeout=60, threads=3, retries=0)
    assert done.means["answer_length"].n == 6 and done.means["answer_length"].errors == 3
    rows = rows_of(done.folder / "leases" / "eval_results.jsonl")
    failed = [row for row in rows if row["outcome"] == "failed"]
    assert [row["id"] for row in failed] == [0, 4, 8] and all(row["reply"]["error"] for row in failed)
    kept = [{name for name, value in row["scores"].items() if value is not None} for row in failed]
    assert kept == [{"answered_rightly", "answered_rightly_at_most"}] * 2 + [set()], "the question failed"
    legacy = run("legacy", target_url=server.url, timeout=60, threads=3, retries=0, legacy_minus_one=True)
    rows = rows_of(legacy.folder / "leases" / "eval_results.jsonl")
    shares = {"answered_rightly": 0.0, "answered_rightly_at_most": 0.0}
    assert rows[0]["scores"] == {**dict.fromkeys(rows[0]["scores"], -1.0), **shares}
    assert legacy.means["answer_length"] == done.means["answer_length"]
    assert summarise_run(read_tables(RunFolder(legacy.folder)))["answer_length"] == done.means["answer_length"]


def test_resume_asks_only_failed_questions_again(run, server):
    bad = "Which law governs the agreement of Alder Ltd?"
    server.reply = lambda question: (500, b"out of memory") if question == bad else chat("fine", [])
    first = run("again", target_url=server.url, metrics="answer_length", retries=0)
    assert first.failed_count == 1 and first.first_error == "HTTP 500 Internal Server Error: out of memory"
    server.asked.clear()
    server.reply = lambda question: chat("mended", [])
    second = run("again", target_url=server.url, metrics="answer_length", retries=0, resume=True)
    assert server.questions[-1] == bad and server.questions.count(bad) == 1, "asked once, after the probe"
    assert second.failed_count == 0 and second.means["answer_length"].n == 9
    server.asked.clear()
    done = run("again", target_url=server.url, resume=True, metrics="answer_f1", retries=0)
    assert server.questions == [], "a new metric requires no new reply"
    assert "answer_f1" in done.means and "answer_length" not in done.means


def test_evaluate_writes_no_secrets_to_results_folder(run, server, monkeypatch, tmp_path):
    monkeypatch.setenv("THEIR_TOKEN", SECRET)
    url = server.url.replace("//", "//user:planted-4f9a1c77b2e64d50@") + "?code=planted-4f9a1c77b2e64d50"
    server.reply = lambda question: {"error": SECRET} if len(server.questions) > 1 else chat("fine", ["x"])
    parameters = {"api_key": SECRET, "top": 3}
    done = run(target_url=url, target_header=["Authorization=THEIR_TOKEN"], target_parameters=parameters)
    assert server.asked[-1].headers["Authorization"]
    written = b"".join(path.read_bytes() for path in done.folder.rglob("*") if path.is_file())
    assert b"planted-4f9a1c77b2e64d50" not in written and b"THEIR_TOKEN" in written


def test_eval_results_file_works_as_predictions_target(run):
    first = run("first")
    path = first.folder / "leases" / "eval_results.jsonl"
    second = run("second", target=f"predictions:{path}")
    same = [name for name in first.means if name.startswith(("char_", "drm", "document", "answer_f1", "recall"))]
    assert len(same) > 20 and all(first.means[name] == second.means[name] for name in same)


def test_read_config_file_rejects_a_path_without_bundle(tmp_path, bundle):
    (tmp_path / "c.json").write_text('{"testdata_path": "ground_truth_cpr.csv"}')
    with pytest.raises(ToolkitError, match="testdata_path 'ground_truth_cpr.csv' is not a bundle's folder"):
        read_config_file(tmp_path / "c.json")
    (tmp_path / "c.toml").write_text(f'testdata_path = "{bundle}"\npreset = "naive"\nk = 3\n[where]\nparty = "a"\n')
    settings = parse_settings(read_config_file(tmp_path / "c.toml"))
    assert settings.dataset_paths == (str(bundle),) and settings.config.k == 3 and settings.where == {"party": ("a",)}


@pytest.mark.parametrize("name", ["legal", "cpr", "practice_directions", "court_guides"])
def test_shipped_configs_parse_without_notes(name):
    settings = parse_settings(read_config_file(ROOT / "configs" / f"{name}.json"))
    assert "statute_citation_accuracy" in settings.metrics
    assert bool(settings.where) == (name != "legal")


@pytest.mark.parametrize(
    ("told", "match"),
    [
        ({"colour": 1, "limit": 0}, "limit: .*colour: Extra|colour: Extra.*limit"),
        ({"where": ["clause"]}, "not NAME=VALUE"),
        ({"run_name": "../x"}, "run_name"),
        ({"target_url": "http://x", "target_request": "{"}, "target_request: .*not valid JSON"),
        (
            {"target_url": "http://x", "target_colour": "red"},
            "target_colour: not a setting of the target http; its settings",
        ),
        ({"sample_seed": 1}, "sample_seed has no effect without limit"),
        ({"target_key": "VARIABLE"}, "target_key: only for a server under test"),
        ({"chunk_size": "abc"}, "^settings: chunk_size: Input should be a valid integer[^;]*$"),
    ],
)
def test_parse_settings_names_each_invalid_setting(told, match):
    with pytest.raises(ToolkitError, match=match):
        assert parse_settings(told).config is None


def test_parse_set_collects_all_headers_and_uses_last_value_of_other_settings():
    given = parse_set(["target_header=A=B", "target_header=C=D", "chunk_size=1", "chunk_size=2"])
    assert given == {"target_header": ["A=B", "C=D"], "chunk_size": "2"}


def test_parse_settings_accepts_none_for_threshold_and_llm():
    assert parse_settings({"preset": "sac-multilayer"}).config.threshold == 0.25
    assert parse_settings({"preset": "sac-multilayer", "threshold": "none"}).config.threshold is None
    assert parse_settings({"llm": "none"}).make_target_options().answers is False
    assert parse_settings({}).make_target_options().answers is True


def test_repeat_reports_spread_of_means_over_rounds(run, server):
    asked: Counter[str] = Counter()
    lengths = {1: 10, 2: 20, 3: 30, 4: 60}  # the first question is the probe

    def reply(question):
        asked[question] += 1
        turn = asked[question] + (question != "Which law governs the agreement of Alder Ltd?")
        return chat("x" * lengths[turn], ["words"])

    server.reply = reply
    done = run(target_url=server.url, metrics="answer_length", repeat=3)
    found = done.means["answer_length"]
    # 20, 30 and 60 characters: their mean, and the standard deviation of the three rounds' means
    assert (found.mean, found.n, found.repeats) == (pytest.approx(110 / 3), 9, 3)
    assert found.spread == pytest.approx(statistics.stdev([20, 30, 60]))
    rows = rows_of(done.folder / "leases" / "eval_results.jsonl")
    assert [one["scores"]["answer_length"] for one in rows[0]["repeats"]] == [20, 30, 60]
    assert rows[0]["scores"]["answer_length"] == pytest.approx(110 / 3) and len(rows) == 9
    written = json.loads((done.folder / "summary.json").read_text())["answer_length"]
    assert written["repeats"] == 3 and written["spread"] == found.spread
    assert summarise_run(read_tables(RunFolder(done.folder))) == done.means
    assert "±21 over 3 rounds (n 9)" in format_cell("answer_length", found)
    assert "±21 over 3 rounds" in done.report.read_text(encoding="utf-8")
    again = run(target_url=server.url, metrics="answer_length", repeat=3, resume=True)
    assert again.means == done.means and sum(asked.values()) == 1 + 27


def test_repeat_counts_a_question_with_several_failed_replies_once(run, server):
    bad = "Which law governs the agreement of Birch Inc.?"
    seen: list[str] = []

    def reply(question):
        seen.append(question)
        return 500 if question == bad and seen.count(bad) in (2, 3) else chat("four", ["words"])

    server.reply = reply
    done = run(target_url=server.url, metrics="answer_length", repeat=3, retries=0)
    found = done.means["answer_length"]
    assert (found.mean, found.n, found.errors) == (4.0, 9, 1)
    assert (done.question_count, done.failed_count) == (9, 1) and "500" in done.first_error
    assert summarise_run(read_tables(RunFolder(done.folder))) == done.means
    [row] = [row for row in rows_of(done.folder / "leases" / "eval_results.jsonl") if row["question"] == bad]
    assert [bool(one["error"]) for one in row["repeats"]] == [False, True, True] and row["reply"]["answer"] == "four"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("answer_length", 1e308, "scores.answer_length: Input should be less than or equal to"),
        ("answer_length", float("nan"), "scores.answer_length: Input should be a finite number"),
        ("recall@10", 0.5, "recall@10: is in the rows, but not in the summary"),
    ],
)
def test_run_is_rejected_when_rows_have_invalid_or_unknown_scores(run, name, value, message):
    folder = run(metrics="document_hit@1", limit=2).folder
    path = folder / "leases" / "eval_results.jsonl"
    rows = rows_of(path)
    for line in rows:
        line["scores"][name] = value
    path.write_text("".join(json.dumps(line) + "\n" for line in rows), encoding="utf-8")
    with pytest.raises(BundleError, match=message):
        _ = RunResults(folder).means


def case(id, **fields):
    return Case(id, f"q{id}", "", **fields)


CASES = tuple(map(case, range(1, 7)))


@pytest.mark.parametrize(
    ("failed", "refused", "left", "tried"),
    [
        ({}, [], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        (dict.fromkeys(range(1, 7), False), [], [], []),
        ({1: True, 2: False, 3: False, 4: False, 5: False}, [], [6, 1], [6]),
        ({1: False, 2: False, 3: False, 5: False, 6: False}, [], [4], [4]),
        ({1: True, 2: False, 3: False, 4: False, 5: False, 6: False}, [], [1], [2, 3, 4, 5, 6]),
        ({}, [1, 4], [2, 3, 5, 6], [2, 3, 5, 6]),
        (dict.fromkeys([2, 3, 5, 6], False), [1, 4], [], []),
    ],
)
def test_list_left_to_ask_puts_unanswered_before_failed_questions(failed, refused, left, tried):
    some = SimpleNamespace(cases=CASES, refused=dict.fromkeys(refused, "its file is lost"))
    assert [one.id for one in list_left_to_ask(some, failed)] == left
    assert [one.id for one in to_probe(some, failed)] == tried


def test_journal_restores_replies_and_rejects_damaged_data(tmp_path):
    passages = (Passage("The rent", "a.txt", Span(0, 8)), Passage("no place", "a.txt"))
    replies = (Reply("yes", passages), Reply(error="down"))
    texts = {"a.txt": "THE RENT IS DUE"}
    documents = SimpleNamespace(place=lambda passage, golds: passage, get=lambda name: None)
    some = SimpleNamespace(name="d", cases=(case(1), case(2)), refused={}, documents=documents)
    for exact, kept in ((False, "The rent"), (True, "THE RENT")):
        place, asked = tmp_path / str(exact), []

        def ask(dataset, cases, asked=asked):
            asked += [one.id for one in cases]
            return ((position, replies[one.id - 1]) for position, one in enumerate(cases))

        target = SimpleNamespace(exact=exact, ask=ask, text=texts.get)
        first, second = Journal(place, some, target).ask()
        assert [one.text for one in first.reply.passages] == [kept, "no place"] and second.reply.error == "down"
        path = place / "journal.jsonl"
        whole = path.read_bytes()
        for cut in range(len(whole), 0, -7):
            path.write_bytes(whole[:cut])
            assert list(Journal(place, some, target).failed) == [1, 2][: whole[:cut].count(b"\n")]
            assert path.read_bytes() == whole[: whole.rfind(b"\n", 0, cut) + 1]
        path.write_bytes(whole)
        Journal(place, some, target).ask()
        assert asked == [1, 2, 2], "the failed question is asked again"
        changed = SimpleNamespace(**{**vars(some), "cases": (case(1), replace(case(2), question="other"))})
        with pytest.raises(BundleError, match="has a reply to 2, but the dataset has changed"):
            Journal(place, changed, target)
    texts.clear()
    with pytest.raises(BundleError, match="a.txt is no longer in the corpus; start a new run"):
        list(Journal(place, some, target))
    path.write_bytes(b"{\n")
    with pytest.raises(BundleError, match="not JSON"):
        Journal(place, some, target)


def test_retrieval_is_not_scored_without_passages(dataset, tmp_path):
    def scored(*replies):
        few = replace(dataset, cases=dataset.cases[: len(replies)])
        told = [replace(one, reply=reply) for one, reply in zip(few.cases, replies, strict=True)]
        notes = []
        done = Scored(tmp_path / "x", few, told, Options())
        return done, done.table(notes.append), notes

    done, table, notes = scored(Reply("Norway."), Reply(error="down"))
    assert notes == ["leases: no reply has passages, so retrieval is not measured"] and done.name == "leases"
    assert list(table.values["document_hit@1"]) == [None, None] and table.values["answer_f1"][0] is not None
    assert list(table.failed) == [False, True]
    _, table, notes = scored(Reply("Norway.", (Passage("x", "cedar.txt"),)), Reply("x"))
    assert notes == [] and table.values["document_hit@1"][0] == 0.0
    _, table, notes = scored(Reply(error="a"), Reply(error="b"))
    assert notes == []


def test_ask_all_raises_bugs():
    def broken(one, deadline):
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        list(ask_all([case(1)], broken, TargetOptions()))


def test_settings_command_prints_matching_settings_by_group(capsys):
    assert settings_command(["chunk_size"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("pipeline:\n") or "\n\npipeline:\n" in told
    assert "the maximum size of a chunk, in characters (integer; default 500)" in told
    assert settings_command(["nothing-like-that"]) == 1 and "no setting matches" in capsys.readouterr().err
    assert settings_command(["retries", "--json"]) == 0 and "retries" in {
        one["name"] for one in json.loads(capsys.readouterr().out)
    }


def test_fetched_dataset_is_named_after_the_remote_address(tmp_path, monkeypatch):
    folder = tmp_path / "abc123"
    folder.mkdir()
    fetched = SimpleNamespace(folder=folder, address="hf://owner/leases@abc123")
    monkeypatch.setattr(pull, "fetch", lambda *_, **__: fetched)
    notes, problems = [], []
    assert find_datasets(["hf://owner/leases@v1"], notes, problems) == {"leases": (folder, fetched.address)}
    assert notes == problems == [] and find_datasets([], notes, problems) == {}
    assert problems == ["no dataset given; name a folder, such as datasets_out/cuad"]


def test_eval_results_row_has_text_of_first_ten_passages_and_of_context_passages(dataset, tmp_path):
    many = [{"filename": "alder.txt", "text": f"words {n}"} for n in range(9)]
    odd = [{"filename": "Alder.TXT", "text": "the law of Norway", "page": 3, "box": [1, 2, 3, 4]}, *many, *many]

    def answer(question):
        return {"answer": "Not found in provided documents.", "passages": odd, "context": [1, 13]}

    given = {"dataset_paths": [str(dataset.root)], "target": "function", "output_dir": tmp_path / "out", "limit": 1}
    done = evaluate(parse_settings({**given, "run_name": "r", "report_cases": 0}), parts={"function": answer})
    [row] = rows_of(done.folder / "leases" / "eval_results.jsonl")
    passages = row["reply"]["passages"]
    assert [("text" in one) for one in passages] == [True] * 10 + [False, False, True] + [False] * 6
    assert row["reply"]["refused"] is True
    assert passages[0]["told_filename"] == "Alder.TXT" and passages[0]["told_page"] == 3
    assert "told_filename" not in passages[1] and "told_page" not in passages[1] and "also_in" not in passages[1]
    [entry] = json.loads((done.folder / "leases" / "predictions.json").read_text(encoding="utf-8"))
    assert len(entry["retrieved_passages"]) == 10 and entry["query"] == dataset.cases[0].question
    assert row["id"] == 0


def test_load_datasets_matches_gold_file_names_in_other_spellings(tmp_path):
    rows = [
        row("a", "q", "a", {"filename": unicodedata.normalize("NFD", "Élan.txt"), "text": "the law of Chile."}),
        row("b", "q", "a", {"filename": "alder", "text": "is governed by the law of Norway."}),
        row("c", "q", "a", {"filename": "gone.txt", "text": "nothing"}),
        row("d", "q", "a", {"filename": "alder.txt", "text": " "}),
    ]
    bundle = write_bundle(tmp_path / "leases", rows=rows, gold=False)
    (bundle / "corpus" / "cedar.txt").rename(bundle / "corpus" / "Élan.txt")
    [made], warnings = load_datasets([bundle], Selection())
    assert [one.gold[0].filename for one in made.cases] == ["Élan.txt", "alder.txt", "gone.txt", "alder.txt"]
    assert [bool(one.gold[0].places) for one in made.cases] == [True, True, False, False]
    assert list(made.refused) == ["c"]
    assert "1 of 4 questions fail: the gold is in 1 files that are not in corpus/" in warnings[0]
    assert made.cases[3].gold[0].absent is False and made.cases[2].gold[0].absent is False, "the file is excluded"


PASSAGES = 20


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


@pytest.mark.parametrize(("repeat", "many"), [(1, 30), (1, 60), (2, 60)])
@pytest.mark.slow
def test_evaluate_memory_does_not_grow_with_number_of_questions(dataset, tmp_path, monkeypatch, repeat, many):
    gold = {case.question: case for case in dataset.cases}
    most: dict[int, int] = {}

    def answer(question):
        text = gold[question].gold[0].text or "Nothing of the kind."
        return Reply(gold[question].truth, tuple(Passage(text, gold[question].filename) for _ in range(PASSAGES)))

    for times in (15, many):
        counts = []

        def count_and_add(self, cases, counts=counts, add=scoring.Scored._add):
            counts.append(count_passages())
            return add(self, cases)

        with monkeypatch.context() as patched:
            patched.setattr(scoring.Scored, "_add", count_and_add)
            given = {"dataset_paths": [str(write_repeated_bundle(tmp_path / f"leases-{times}", times))], "threads": 1}
            given |= {"output_dir": tmp_path / "results", "run_name": f"run-{times}", "target": "function"}
            given |= {"report_cases": 0, "metrics": "document_hit@1,char_recall@8", "repeat": repeat}
            run = evaluate(parse_settings(given), parts={"function": answer})
        assert (run.question_count, run.failed_count) == (9 * times, 0)
        assert run.means["document_hit@1"].mean == 1.0 and run.means["document_hit@1"].n == 6 * times
        most[times] = max(counts)
        assert summarise_run(read_tables(RunFolder(run.folder))) == run.means
    assert 0 < most[many] <= most[15] <= 2 * BATCH * PASSAGES
