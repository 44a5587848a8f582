"""Runs that must not be compared, drops that must be noticed, and summaries that do not match their rows."""

from __future__ import annotations

import json
import shutil

import pytest

import exhibit
from exhibit.evaluation.judgement import describe_expected
from exhibit.evaluation.runs import RunResults
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run import RunQuestion
from exhibit.storage.validate import main as validate
from exhibit.viewer.matching import Outcomes
from exhibit.viewer.report import choose_worth_looking_at, make_tiles, write_opening
from exhibit.viewer.results import main
from tests.viewer.trend_data import write, write_sums_again

PERMITS = "Who may enter the quarry under permit {}?"


def permits(folder, values, *, question=PERMITS, documents=12, start=0, sha256="a", verdict="answered", **config):
    """Write a run over permits of a quarry; ids count from `start`, and all documents have the hash `sha256`."""
    rows = []
    for at, value in enumerate(values):
        name = f"permit-{at % documents}.txt"
        told = {"id": start + at, "question": question.format(at), "truth": f"The holder of permit {at}."}
        gold = [{"filename": name, "text": f"Permit {at} admits its holder.", "places": [[[0, 30]]], "how": "exact"}]
        reply = {"error": "", "answer": told["truth"]}
        scores = {"recall@10": value, "answer_contained": value}
        rows.append({**told, "filename": name, "gold": gold, "reply": reply, "scores": scores, "verdict": verdict})
    (folder / "quarry").mkdir(parents=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "quarry" / "eval_results.jsonl").write_text(lines, encoding="utf-8")
    write(folder / "config.json", {"datasets": {"quarry": {"groups": None}}, **config})
    data = {f"corpus/permit-{at}.txt": sha256 * 64 for at in range(documents)}
    write(folder / "provenance.json", {"started": "2026-05-01T08:00:00+00:00", "data": {"quarry": data}})
    write_sums_again(folder)
    return folder


# ---------------------------------------------------------------- the same questions


@pytest.mark.parametrize("other", [{"question": "When does permit {} end?"}, {"sha256": "b"}])
def test_runs_on_other_questions_or_documents_of_the_same_name_are_not_comparable(tmp_path, capsys, other):
    one, two = permits(tmp_path / "one", [1.0] * 24), permits(tmp_path / "two", [0.0] * 24, **other)
    for words in (["diff"], ["compare", "--jobs", "1"]):
        assert main([*words, str(one), str(two)]) == 1
        assert "cannot be compared: both have a dataset named quarry" in capsys.readouterr().err
    with pytest.raises(ToolkitError, match="cannot be compared"):
        exhibit.compare(one, two)


def test_the_same_questions_with_other_ids_are_compared(tmp_path, capsys):
    one, two = permits(tmp_path / "one", [1.0] * 24), permits(tmp_path / "two", [0.5] * 24, start=700)
    assert main(["diff", str(one), str(two), "--fail-on-regression"]) == 1
    told = capsys.readouterr().out
    assert "-0.500 [-0.500, -0.500]" in told and "worse beyond chance: recall@10" in told


def test_a_difference_says_how_many_questions_are_the_same(tmp_path, capsys):
    one, two = permits(tmp_path / "one", [1.0] * 24), permits(tmp_path / "two", [1.0] * 24)
    path = two / "quarry" / "eval_results.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[:5]:
        row["truth"] = "Nobody."
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["diff", str(one), str(two)]) == 0
    told = capsys.readouterr().out
    assert "5 questions have the same id in both runs but differ" in told
    assert main(["diff", str(one), str(two), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["questions"]
    assert (told["asked"], told["changed"], told["only_before"], told["only_after"]) == (19, 5, 5, 5)


# ---------------------------------------------------------------- falls without an interval


def test_a_fall_to_nothing_on_one_document_fails_the_gate(tmp_path, capsys):
    one, two = (permits(tmp_path / name, [value] * 8, documents=1) for name, value in (("one", 1.0), ("two", 0.0)))
    assert main(["diff", str(one), str(two), "--fail-on-regression"]) == 1
    told = capsys.readouterr().out
    assert "worse by more than 0.1, with too few documents for an interval: recall@10" in told
    assert "within chance" not in told and "▼ no interval" in told
    assert main(["diff", str(one), str(two), "--fail-on-regression", "--max-fall", "1"]) == 0
    small = permits(tmp_path / "small", [1.0] * 7 + [0.5], documents=1)
    assert main(["diff", str(one), str(small), "--fail-on-regression"]) == 0, "one sixteenth"
    compared = exhibit.compare(one, two)
    assert "recall@10" in compared.regressions and compared.differences["recall@10"].ci95 is None
    assert exhibit.compare(one, two, max_fall=1.0).regressions == []


# ---------------------------------------------------------------- sums and rows


@pytest.fixture
def embellished(tmp_path):
    """A run whose summary.json was edited by hand, beside one that is sound."""
    sound = permits(tmp_path / "runs" / "sound", [0.5] * 24)
    run = shutil.copytree(sound, tmp_path / "runs" / "embellished")
    means = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    means["recall@10"]["mean"] = 0.999
    write(run / "summary.json", means)
    return run


@pytest.mark.parametrize("words", [["report", "--jobs", "1"], ["summary"], ["card"]])
def test_a_run_whose_sums_are_not_those_of_its_rows_is_not_shown(embellished, capsys, words):
    assert main([words[0], str(embellished), *words[1:]]) == 1
    told = capsys.readouterr()
    assert (
        "summary.json: does not match the rows of the run: recall@10: mean is 0.999, but the rows give 0.5" in told.err
    )
    assert "99.9" not in told.out and not (embellished / "report.html").exists()


def test_a_run_in_python_and_the_page_over_time_do_not_show_it_either(embellished, tmp_path, capsys):
    with pytest.raises(BundleError, match="the rows give 0.5"):
        repr(exhibit.Run(embellished))
    assert main(["index", str(embellished.parent)]) == 0
    told = capsys.readouterr()
    assert "embellished" in told.err and "passed over" in told.err
    page = (embellished.parent / "index.html").read_text(encoding="utf-8")
    assert "sound" in page and "embellished" not in page and "99.9" not in page


def test_validate_names_the_sums_that_the_rows_do_not_give(embellished, capsys):
    assert validate([str(embellished.parent / "sound")]) == 0
    capsys.readouterr()
    assert validate([str(embellished)]) == 1
    assert "summary.json: differs from the means of the rows: recall@10: mean is 0.999" in capsys.readouterr().out


# ---------------------------------------------------------------- who is better, and what a system is


@pytest.mark.parametrize(
    ("before", "after", "documents", "sentence"),
    [
        (0.0, 1.0, 12, "two is better than one: Answered rightly"),
        (1.0, 0.0, 12, "one is better than two: "),
        (1.0, 1.0, 12, "two and one are equally good: "),
        (0.0, 1.0, 1, "There are too few documents to say whether two is better than one: "),
    ],
)
def test_a_comparison_says_in_a_sentence_who_is_better(tmp_path, capsys, before, after, documents, sentence):
    one, two = (
        permits(tmp_path / name, [value] * 24, documents=documents) for name, value in (("one", before), ("two", after))
    )
    sentence = sentence.replace("Answered rightly", "Gold passages found")  # these rows say nothing of right answers
    assert main(["diff", str(one), str(two)]) == 0
    assert capsys.readouterr().out.startswith(sentence)
    assert repr(exhibit.compare(one, two)).startswith(sentence)
    assert main(["compare", str(one), str(two), "--jobs", "1"]) == 0
    assert f'<p class="headline">{sentence}' in (two / "compare.html").read_text(encoding="utf-8")


def test_the_trend_compares_runs_of_one_system_only(tmp_path, capsys):
    for number, (preset, value) in enumerate((("sac", 0.9), ("naive", 0.2), ("sac", 0.9))):
        permits(tmp_path / f"run-{number}", [value] * 24, preset=preset, target="builtin")
    assert main(["index", str(tmp_path), "--fail-on", "regression"]) == 0
    assert "none is worse than the one before it" in capsys.readouterr().out


def test_a_server_is_the_same_system_at_another_port(tmp_path):
    addresses = ("http://127.0.0.1:8001/ask", "http://127.0.0.1:9123/ask", "http://127.0.0.1:8001/v2/ask")
    runs = [permits(tmp_path / str(at), [1.0], target="http", target_url=url) for at, url in enumerate(addresses)]
    assert [RunResults(run).system for run in runs] == [
        "http 127.0.0.1/ask", "http 127.0.0.1/ask", "http 127.0.0.1/v2/ask",
    ]  # fmt: skip


# ---------------------------------------------------------------- on a terminal


@pytest.mark.parametrize("columns", [80, 100, 240])
def test_a_table_fits_the_terminal(tmp_path, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    runs = [permits(tmp_path / f"a-run-with-a-rather-long-name-{at}", [0.25 * at] * 24) for at in range(5)]
    assert main(["summary", *map(str, runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    figures = [line for line in lines if line.strip().startswith("recall@10")]
    assert len(figures) == (1 if columns == 240 else 5), "beside each other where there is room"
    assert len({line.index("0.") for line in figures[:4]}) == 1


# ---------------------------------------------------------------- what a page features


def asked(id, verdict, **told):
    fields = {"dataset": "quarry", "id": id, "question": "Who?", "truth": "The holder of permit 7."}
    fields |= {"verdict": verdict, "reply": {"error": "", "answer": told.pop("answer", "Somebody.")}, **told}
    return RunQuestion.model_validate(fields)


def test_an_answer_that_equals_the_expected_one_is_never_featured_as_a_fault():
    tally = Outcomes()
    tally.add(asked(1, "wrong document", answer="the holder of permit 7"))
    tally.add(asked(2, "right document, wrong passage", scores={"answered_rightly": 1.0}))
    assert choose_worth_looking_at(tally) == [] and tally.count_total()["right answer, another passage"] == 1
    tally.add(asked(3, "wrong document"))
    assert [look.key for look in choose_worth_looking_at(tally)] == ["quarry/3"]


def test_refusals_on_the_first_screen_are_those_of_the_metric():
    tally = Outcomes()
    for id, verdict in enumerate(("wrong document", "refused though answerable", "retrieved but not used", "answered")):
        scores = {"false_refusal_rate": float(id < 3), "answered_rightly": float(id == 3)}
        tally.add(asked(id, verdict, scores=scores))
    [right, refused] = make_tiles(tally)
    assert (right.words, right.number, right.of, right.among) == ("answered rightly", 1, 4, "judged answers")
    assert (refused.words, refused.number, refused.of) == ("wrongly refused", 3, 4)
    assert tally.count_total() == {"wrongly refused": 3, "answered rightly": 1}
    assert write_opening(tally)[0].startswith("Answered rightly: 1 of 4 judged answers, 25.0%")
    assert write_opening(Outcomes())[0] == "No answer could be judged."


@pytest.mark.parametrize(
    ("truth", "golds", "impossible", "kind"),
    [
        ("Yes.", ["The holder may enter."], False, "yes or no"),
        ("No, the holder may not.", [], False, "yes or no"),
        ("The holder may enter.", ["The holder may enter."], False, "quote"),
        ("30 days", ["The permit ends after 30 days."], False, "short answer"),
        ("word " * 30, [], False, "text"),
        ("Not found in provided documents", [], True, "none in the documents"),
    ],
)
def test_expected_answers_are_of_kinds_that_can_be_compared(truth, golds, impossible, kind):
    assert describe_expected(truth, golds, impossible=impossible) == kind


def test_the_report_shows_answers_by_the_kind_of_what_is_expected(tmp_path):
    run = permits(tmp_path / "one", [1.0, 0.0] * 12)
    path = run / "quarry" / "eval_results.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows[:8]:
        row["truth"] = "Yes."
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    by_kind = RunResults(run).means_by_label("quarry")["expected_answer"]
    assert {kind: means["answer_contained"].n for kind, means in by_kind.items()} == {
        "yes or no": 8,
        "short answer": 16,
    }
    assert main(["report", str(run), "--pages", "none"]) == 0
    assert "quarry by expected answer" in (run / "report.html").read_text(encoding="utf-8")
