"""Parts of a run: the questions left to ask, the probe of a server, parallel questions, settings, rows."""

from __future__ import annotations

import json
import threading
import unicodedata
from dataclasses import replace
from types import SimpleNamespace

import pytest

from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.datasets import Selection, find_datasets, load_datasets, read_history
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.journal import Journal
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.records import format_reply, list_passages_read, read_tables
from exhibit.evaluation.scoring import (
    Failures,
    Scoring,
    list_left_to_ask,
    measure_rounds,
    to_probe,
)
from exhibit.evaluation.settings import main as settings_command
from exhibit.evaluation.settings import (
    parse_settings,
)
from exhibit.evaluation.targets import TargetOptions, ask_all
from exhibit.evidence import Span
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import Outcome, RunPassage, RunQuestion, RunReply
from exhibit.storage.http import HttpError
from tests.rag.bundles import row, rows_of, write_bundle


@pytest.fixture
def dataset(tmp_path):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "leases")], Selection())
    return dataset


# ---------------------------------------------------------------- what is left to ask


def case(id, session=None, **fields):
    return Case(id, f"q{id}", "", labels={"session": session} if session else {}, **fields)


CASES = (case(1), case(2), case(3, "s"), case(4, "s"), case(5, "t"), case(6))


@pytest.mark.parametrize(
    ("failed", "left", "tried"),
    [
        ({}, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
        (dict.fromkeys(range(1, 7), False), [], []),
        ({1: True, 2: False, 3: False, 4: False, 5: False}, [6, 1], [6]),
        ({1: False, 2: False, 3: False, 4: True, 5: False, 6: False}, [3, 4], [3]),
        ({1: False, 2: False, 3: False, 5: False, 6: False}, [3, 4], [3, 4]),
        ({1: True, 2: False, 3: False, 4: False, 5: False, 6: False}, [1], [2, 3, 4, 5, 6]),
        (dict.fromkeys(range(1, 7), True), [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]),
    ],
)
def test_list_left_to_ask_puts_unanswered_before_failed_and_repeats_whole_conversations(failed, left, tried):
    some = SimpleNamespace(cases=CASES, refused={})
    assert [one.id for one in list_left_to_ask(some, failed)] == left
    assert [one.id for one in to_probe(some, failed)] == tried


def test_list_left_to_ask_and_to_probe_skip_refused_questions():
    some = SimpleNamespace(cases=CASES, refused={1: "its file is lost", 4: "its file is lost"})
    assert [one.id for one in to_probe(some, {})] == [one.id for one in list_left_to_ask(some, {})] == [2, 3, 5, 6]
    complete = dict.fromkeys([2, 3, 5, 6], False)
    assert to_probe(some, complete) == [] and list_left_to_ask(some, complete) == [], "nor its conversation again"


def test_journal_reads_back_replies_and_rejects_changed_or_damaged_data(tmp_path):
    passages = (Passage("The rent", "a.txt", Span(0, 8)), Passage("no place", "a.txt"))
    question = case(1)
    for texts, kept in ((True, "The rent"), (False, "THE RENT")):
        path = tmp_path / f"{texts}.jsonl"
        journal = Journal(path, {"a.txt": "THE RENT IS DUE"}.get, texts=texts)
        assert list(journal.scan({})) == []
        assert journal.add(question, Reply("yes", passages)) == 0
        second = journal.add(case(2), Reply(error="down"))
        assert [one.text for one in journal.read(0).passages] == [kept, "no place"]
        assert [(one.id, one.at, one.failed) for one in journal.scan({1: "q1", 2: "q2"})] == [
            (1, 0, False), (2, second, True)
        ]  # fmt: skip
        with path.open("ab") as file:
            file.write(b'{"id": 3')
        assert len(list(journal.scan({1: "q1", 2: "q2"}))) == 2 and path.read_bytes().endswith(b"}\n"), "cut away"
        with pytest.raises(BundleError, match="has a reply to 2, but the dataset has changed"):
            list(journal.scan({1: "q1", 2: "other"}))
    gone = Journal(tmp_path / "False.jsonl", lambda name: None, texts=False)
    with pytest.raises(BundleError, match="a.txt is no longer in the corpus; start a new run"):
        gone.read(0)
    (tmp_path / "bad.jsonl").write_bytes(b"{\n")
    with pytest.raises(BundleError, match="damaged"):
        list(Journal(tmp_path / "bad.jsonl", lambda name: None, texts=True).scan({}))


def test_measure_rounds_skips_retrieval_when_no_reply_has_passages(dataset, tmp_path):
    def scored(*replies):
        few = replace(dataset, cases=dataset.cases[: len(replies)])
        told = [replace(one, reply=reply) for one, reply in zip(few.cases, replies, strict=True)]
        notes = []
        done = measure_rounds(tmp_path / "x", few, [told], Scoring(Options(), (), "t"))
        return done, done.table(notes.append), notes

    done, table, notes = scored(Reply("Norway."), Reply(error="down"))
    assert notes == ["leases: no reply has passages, so retrieval is not measured"] and done.name == "leases"
    assert list(table.values["document_hit@1"]) == [None, None] and table.values["answer_f1"][0] is not None
    assert done.failures == Failures(2, 1, "down")
    _, table, notes = scored(Reply("Norway.", (Passage("x", "cedar.txt"),)), Reply("x"))
    assert notes == [] and table.values["document_hit@1"][0] == 0.0
    _, table, notes = scored(Reply(error="a"), Reply(error="b"))
    assert notes == []


# ---------------------------------------------------------------- questions asked at once


def test_ask_all_raises_code_errors_and_returns_server_failures_as_replies():
    def broken(one, deadline):
        raise KeyError("bug")

    with pytest.raises(KeyError, match="bug"):
        list(ask_all([case(1)], broken, TargetOptions()))
    tries = []

    def busy(one, deadline):
        tries.append(threading.get_ident())
        raise HttpError("busy", transient=True)

    [(_, reply)] = ask_all([case(1)], busy, TargetOptions(retries=2, backoff=0.0))
    assert reply.error == "busy (asked 3 times)" and len(tries) == 3
    [(_, once)] = ask_all([case(1)], busy, TargetOptions(retries=0))
    assert once.error == "busy"


def test_settings_command_prints_matching_settings_by_group(capsys):
    assert settings_command(["chunk_size"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("pipeline:\n") or "\n\npipeline:\n" in told
    assert "the most characters of a chunk (a whole number; default 500)" in told
    assert settings_command(["nothing-like-that"]) == 1 and "no setting matches" in capsys.readouterr().err
    assert settings_command(["retries", "--json"]) == 0 and "retries" in {
        one["name"] for one in json.loads(capsys.readouterr().out)
    }


# ---------------------------------------------------------------- datasets


@pytest.mark.parametrize(
    ("label", "turns"),
    [
        (None, []),
        ("[not json", []),
        ('[{"content": "a"}, "b"]', [("user", "a")]),
        (
            [{"role": "assistant", "content": "x"}, {"content": "y"}, {"content": 3}, 7],
            [("assistant", "x"), ("user", "y")],
        ),
        (7, []),
    ],
)
def test_read_history_skips_invalid_turns(label, turns):
    assert [tuple(turn) for turn in read_history(label)] == turns


def test_find_datasets_names_fetched_folder_after_its_address(tmp_path):
    folder = tmp_path / "abc123"
    folder.mkdir()
    folders, notes, problems = find_datasets([folder], {str(folder): "hf://owner/leases@abc123"})
    assert (folders, notes, problems) == ({"leases": folder}, [], [])
    assert find_datasets([]) == (
        {},
        [],
        ["no dataset given; name a folder with train.json and corpus/, such as datasets_out/cuad"],
    )


# ---------------------------------------------------------------- rows and means


@pytest.mark.parametrize(
    ("texts", "reply", "read"),
    [
        (["a", None, "b", ""], {}, ["a", "b"]),
        (["a", "b", "c"], {"selected": 2}, ["a", "b"]),
        (["a", "b", "c"], {"selected": 0}, []),
        (["a", None, "c"], {"selected": 2}, ["a"]),
        (["a", "b", "c"], {"context": [3, 1], "selected": 2}, ["c", "a"]),
        (["a", "b", None], {"context": [3, 4, 0, 2]}, ["b"]),
        (["a", "b", "c"], {"context": []}, []),
    ],
)
def test_list_passages_read_uses_context_or_selected_count(texts, reply, read):
    recorded = RunReply(passages=[RunPassage(text=text) for text in texts], error="", **reply)
    row = RunQuestion(id=1, question="?", truth="", reply=recorded, outcome=Outcome.RIGHT)
    assert [one.text for one in list_passages_read(row)] == read


# ---------------------------------------------------------------- a run that is resumed, its options and its notes


def told(dataset, tmp_path, **more):
    given = {"dataset_paths": [str(dataset.root)], "target": "function", "output_dir": tmp_path / "out"}
    return parse_settings({**given, "run_name": "r", "report_cases": 0, "threads": 1, "limit": 2, **more})


def answered(question):
    return {"answer": "Norway.", "passages": [{"filename": "alder.txt", "text": "the law of Norway"}]}


# ---------------------------------------------------------------- what is written of a question


def test_eval_results_stores_text_of_first_ten_passages_and_given_file_and_page(dataset, tmp_path):
    many = [{"filename": "alder.txt", "text": f"words {n}"} for n in range(9)]
    odd = [{"filename": "Alder.TXT", "text": "the law of Norway", "page": 3, "box": [1, 2, 3, 4]}, *many, *many]

    def answer(question):
        return {"answer": "Not found in provided documents.", "passages": odd}

    done = evaluate(told(dataset, tmp_path, limit=1), parts={"function": answer})
    [row] = rows_of(done.folder / "leases" / "eval_results.jsonl")
    passages = row["reply"]["passages"]
    assert [("text" in one) for one in passages] == [True] * 10 + [False] * 9 and row["reply"]["refused"] is True
    assert passages[0]["told_filename"] == "Alder.TXT" and passages[0]["told_page"] == 3
    assert "told_filename" not in passages[1] and "told_page" not in passages[1] and "also_in" not in passages[1]
    [entry] = json.loads((done.folder / "leases" / "predictions.json").read_text(encoding="utf-8"))
    assert len(entry["retrieved_passages"]) == 10 and entry["query"] == dataset.cases[0].question
    assert "repeats" not in row and row["id"] == 0


def test_format_reply_stores_text_of_later_context_passages():
    passages = tuple(Passage(f"words {n}", "alder.txt") for n in range(14))
    fields = format_reply(Case(1, "?", "", reply=Reply(passages=passages, answer="words", context=(1, 13))))
    assert [("text" in one) for one in fields["passages"]] == [True] * 10 + [False, False, True, False]


def test_evaluate_writes_empty_predictions_and_minus_1_when_all_questions_fail(dataset, tmp_path):
    down = {"on": False}

    def answer(question):
        if down["on"]:
            raise RuntimeError("down")
        down["on"] = True
        return answered(question)

    done = evaluate(told(dataset, tmp_path, metrics="answer_length", legacy_minus_one=True), parts={"function": answer})
    rows = rows_of(done.folder / "leases" / "eval_results.jsonl")
    assert [row["scores"]["answer_length"] for row in rows] == [-1.0, -1.0] and done.failures == Failures(
        2, 2, "RuntimeError: down"
    )
    assert json.loads((done.folder / "leases" / "predictions.json").read_text(encoding="utf-8")) == []
    [table] = read_tables(done.folder)
    assert list(table.values["answer_length"]) == [None, None] and list(table.failed) == [1, 1]


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
    assert (
        list(made.refused) == ["c"]
        and "1 of 4 questions fail: the gold is in 1 files that are not in corpus/" in warnings[0]
    )
    assert made.cases[3].gold[0].absent is False and made.cases[2].gold[0].absent is False, "it was not looked for"
