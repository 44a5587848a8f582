"""Parts of a run: unanswered questions, the probe of a server, parallel questions, settings, rows."""

from __future__ import annotations

import json
import threading
import unicodedata
from dataclasses import replace
from types import SimpleNamespace

import pytest

from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.datasets import Selection, find_datasets, load_datasets
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.journal import Journal, list_left_to_ask, to_probe
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.scoring import Scored, format_reply, list_passages_read
from exhibit.evaluation.settings import main as settings_command
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.targets import TargetOptions, ask_all
from exhibit.evidence import Span
from exhibit.hub import pull
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import Outcome, RunPassage, RunQuestion, RunReply
from exhibit.storage.http import HttpError
from tests.rag.bundles import row, rows_of, write_bundle

# ---------------------------------------------------------------- what is left to ask


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
    with pytest.raises(BundleError, match="damaged"):
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


# ---------------------------------------------------------------- questions asked at once


def test_ask_all_raises_bugs_but_not_server_failures():
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
    assert "the most characters of a chunk (integer; default 500)" in told
    assert settings_command(["nothing-like-that"]) == 1 and "no setting matches" in capsys.readouterr().err
    assert settings_command(["retries", "--json"]) == 0 and "retries" in {
        one["name"] for one in json.loads(capsys.readouterr().out)
    }


# ---------------------------------------------------------------- datasets


def test_fetched_dataset_is_named_after_its_address(tmp_path, monkeypatch):
    folder = tmp_path / "abc123"
    folder.mkdir()
    fetched = SimpleNamespace(folder=folder, address="hf://owner/leases@abc123")
    monkeypatch.setattr(pull, "fetch", lambda *_, **__: fetched)
    notes, problems = [], []
    assert find_datasets(["hf://owner/leases@v1"], notes, problems) == {"leases": (folder, fetched.address)}
    assert notes == problems == [] and find_datasets([], notes, problems) == {}
    assert problems == ["no dataset given; name a folder with train.json and corpus/, such as datasets_out/cuad"]


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
def test_list_passages_read_returns_context_or_selected_passages(texts, reply, read):
    recorded = RunReply(passages=[RunPassage(text=text) for text in texts], error="", **reply)
    row = RunQuestion(id=1, question="?", truth="", reply=recorded, outcome=Outcome.RIGHT)
    assert [one.text for one in list_passages_read(row)] == read


# ---------------------------------------------------------------- what is written of a question


def test_eval_results_row_has_first_ten_passages_with_file_and_page(dataset, tmp_path):
    many = [{"filename": "alder.txt", "text": f"words {n}"} for n in range(9)]
    odd = [{"filename": "Alder.TXT", "text": "the law of Norway", "page": 3, "box": [1, 2, 3, 4]}, *many, *many]

    def answer(question):
        return {"answer": "Not found in provided documents.", "passages": odd}

    given = {"dataset_paths": [str(dataset.root)], "target": "function", "output_dir": tmp_path / "out", "limit": 1}
    done = evaluate(parse_settings({**given, "run_name": "r", "report_cases": 0}), parts={"function": answer})
    [row] = rows_of(done.folder / "leases" / "eval_results.jsonl")
    passages = row["reply"]["passages"]
    assert [("text" in one) for one in passages] == [True] * 10 + [False] * 9 and row["reply"]["refused"] is True
    assert passages[0]["told_filename"] == "Alder.TXT" and passages[0]["told_page"] == 3
    assert "told_filename" not in passages[1] and "told_page" not in passages[1] and "also_in" not in passages[1]
    [entry] = json.loads((done.folder / "leases" / "predictions.json").read_text(encoding="utf-8"))
    assert len(entry["retrieved_passages"]) == 10 and entry["query"] == dataset.cases[0].question
    assert row["id"] == 0


def test_format_reply_stores_text_of_later_context_passages():
    passages = tuple(Passage(f"words {n}", "alder.txt") for n in range(14))
    fields = format_reply(Case(1, "?", "", reply=Reply(passages=passages, answer="words", context=(1, 13))))
    assert [("text" in one) for one in fields["passages"]] == [True] * 10 + [False, False, True, False]


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
