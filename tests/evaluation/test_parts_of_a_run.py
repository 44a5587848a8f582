"""Parts of a run: the questions left to ask, the probe of a server, parallel questions, settings, rows."""

from __future__ import annotations

import json
import sys
import threading
import unicodedata
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply, Turn
from exhibit.evaluation.catalogue import list_settings, parse_set, translate_flags
from exhibit.evaluation.catalogue import main as settings_command
from exhibit.evaluation.datasets import Selection, find_datasets, load_datasets, read_history
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.interop import ragas_dataset
from exhibit.evaluation.journal import Journal
from exhibit.evaluation.metrics import Options
from exhibit.evaluation.ranking import find_gold_ranks
from exhibit.evaluation.records import format_reply, list_passages_read, read_tables, with_drm_means
from exhibit.evaluation.registers import find_page_elements, write_account
from exhibit.evaluation.registers.client import RegisterPage
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.scoring import (
    Failures,
    Scoring,
    batches_of,
    list_left_to_ask,
    measure_rounds,
    text_of,
    to_probe,
)
from exhibit.evaluation.servers.probing import Probe
from exhibit.evaluation.servers.reading import NoAnswerError, Read
from exhibit.evaluation.settings import Settings, compare_reply_settings, parse_settings, read_config_file
from exhibit.evaluation.statistics import Estimate
from exhibit.evaluation.targets import TargetOptions, ask_all, count_only, is_system, open_target
from exhibit.evidence import Span
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.run import RunPassage, RunQuestion, RunReply
from exhibit.storage.http_policy import HttpError, UnreachableError
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
def test_what_has_no_reply_is_asked_first_then_what_failed_and_conversations_whole(failed, left, tried):
    some = SimpleNamespace(cases=CASES, refused={})
    assert [one.id for one in list_left_to_ask(some, failed)] == left
    assert [one.id for one in to_probe(some, failed)] == tried


def test_a_question_that_no_system_can_answer_is_neither_asked_nor_a_probe():
    some = SimpleNamespace(cases=CASES, refused={1: "its file is lost", 4: "its file is lost"})
    assert [one.id for one in to_probe(some, {})] == [one.id for one in list_left_to_ask(some, {})] == [2, 3, 5, 6]
    complete = dict.fromkeys([2, 3, 5, 6], False)
    assert to_probe(some, complete) == [] and list_left_to_ask(some, complete) == [], "nor its conversation again"


def test_failures_add_up_and_the_first_is_told():
    both = Failures(4, 1, "") + Failures(6, 2, "down")
    assert both == Failures(10, 3, "down") and both.share == 0.3 and Failures(0, 0).share == 0.0
    assert (Failures(1, 1, "a") + Failures(1, 1, "b")).first == "a"


def test_cases_are_scored_a_few_at_a_time_with_all_their_rounds():
    assert list(batches_of([[1, 2, 3], [4, 5, 6]], size=2)) == [((1, 2), (4, 5)), ((3,), (6,))]
    assert list(batches_of([[]], size=2)) == []


def test_a_journal_keeps_words_or_the_places_of_words(tmp_path):
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


def test_a_document_s_text_comes_from_the_target_or_from_the_corpus(dataset):
    assert text_of(dataset, SimpleNamespace(text=str.upper))("a") == "A"
    read = text_of(dataset, SimpleNamespace())
    assert "Norway" in read("alder.txt") and read("none.txt") is None


def test_a_dataset_whose_replies_have_no_passages_is_not_measured_for_retrieval(dataset, tmp_path):
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


# ---------------------------------------------------------------- the probe


class Asked(SimpleNamespace):
    """A stub server for the probe that returns the given replies, or raises the given errors, in turn."""

    def exchange(self, case, deadline, collection=""):
        self.count += 1
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def fetch(self, path, body=None, **given):
        self.fetched.append(path)
        if self.described is None:
            raise HttpError("none")
        return self.described


def probe(dataset, *replies, passages=None, answer=None, values=None, described=None, retries=0, template="{question}"):
    reply = SimpleNamespace(passages=passages, answer=answer)
    system = SimpleNamespace(reply=reply, ask=SimpleNamespace(described=None))
    server = Asked(
        name="srv", url="http://x/ask", system=system, template=template, reader=SimpleNamespace(answers=None),
        values={"response_context_jmespath": None} if values is None else values, replies=list(replies), count=0,
        described=described, fetched=[],
    )  # fmt: skip
    options = TargetOptions(retries=retries, backoff=0.0)
    return server, lambda cases=dataset.cases: Probe(server, dataset, "c", options).run(cases)


def read(**fields):
    return Read({"answer": "x"}, **fields)


WITH = [{"text": "the law of Norway", "filename": "alder.txt"}]


def test_a_probe_asks_one_question_or_two_where_the_first_has_no_passages(dataset):
    server, run = probe(dataset, read(answer="a", passages=WITH))
    assert run() == [] and server.count == 1 and server.reader.answers is True
    server, run = probe(dataset, read(answer="a"), read(answer="a", passages=WITH))
    assert run() == [] and server.count == 2
    server, run = probe(dataset, read(answer="a"))
    [note] = run()
    assert server.count == 2 and note.startswith("srv: the reply has no passages ({answer: text})")
    server, run = probe(dataset, read(answer="a"), passages=("",))
    assert run() == [] and server.count == 1, "it is known to have none"
    server, run = probe(dataset, HttpError("filtered"), read(answer="a", passages=WITH, shape="a thing"))
    assert run() == ["srv: the replies are read in the format of a thing"] and server.count == 2
    server, run = probe(dataset, read(passages=WITH))
    assert run() == ["srv: the replies have passages but no answer: only retrieval is measured"]
    assert server.reader.answers is False
    server, run = probe(dataset, read(passages=WITH), answer=("said",))
    assert run() == ["srv: only retrieval is measured"]


def test_who_is_not_there_is_not_waited_for_and_who_is_busy_is_waited_for_once(dataset):
    server, run = probe(dataset, UnreachableError("gone", transient=True), retries=3)
    with pytest.raises(ToolkitError, match="gone. Is the server running, and is --target-url right?"):
        run()
    assert server.count == 1
    server, run = probe(dataset, HttpError("busy", transient=True, status=503), retries=2)
    with pytest.raises(
        ToolkitError, match="srv: none of 5 questions from all parts of the dataset was answered. The first"
    ):
        run()
    assert server.count == 3 + 4, "the first question three times, the others once"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        *(
            (HttpError("no", status=code), "the server does not accept the key: no. Set one")
            for code in (401, 403, 407)
        ),
        *(
            (HttpError("no", status=code), "no endpoint for questions at this address: no. Check")
            for code in (404, 410)
        ),
        (HttpError("no", status=405), "no endpoint for questions"),
        (HttpError("no", status=418), "none of 5 questions"),
        (
            NoAnswerError("no answer", {"said": "two words"}, blank=False),
            "Try --set target_response_answer",
        ),
        (NoAnswerError("no answer", {"n": 3}, blank=False), "No text in the reply looks like an answer"),
        (NoAnswerError("no answer", {"n": 3}, blank=True), "none of 5 questions"),
    ],
)
def test_a_server_that_answers_nothing_is_explained(dataset, error, words):
    _, run = probe(dataset, error)
    with pytest.raises(ToolkitError, match=words):
        run()


def test_a_server_of_a_known_kind_is_asked_whether_it_is_the_right_one(dataset):
    _, run = probe(dataset, NoAnswerError("no answer", {"n": 3}, blank=False), values={})
    with pytest.raises(ToolkitError, match="no answer. Is this the right kind of server?"):
        run()


def missing(*fields):
    detail = [{"loc": ["body", field], "type": "missing"} for field in fields]
    return HttpError("unfit", status=422, body=json.dumps({"detail": detail}).encode())


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        ({"request": "x"}, """--set target_request='{"q": "{question}", "k": "…"}'"""),
        ({"input": "x"}, """--set target_input='{"q": "{question}", "k": "…"}'"""),
        ({}, """--set target_parameters='{"q": "…", "k": "…"}'"""),
    ],
)
def test_fields_that_a_server_misses_are_asked_for(dataset, values, flag):
    _, run = probe(dataset, missing("q", "k"), values=values)
    with pytest.raises(ToolkitError) as caught:
        run()
    assert str(caught.value).startswith("srv: unfit. The server requires q, k: add ") and flag in str(caught.value)


def test_a_request_that_does_not_fit_is_made_anew_from_the_server_s_description(dataset):
    schema = {"properties": {"q": {"type": "string"}}}
    good = read(answer="a", passages=WITH)
    server, run = probe(dataset, missing("q"), good, values={"request": None}, described=schema)
    [note] = run()
    assert note == 'srv: asked as its /openapi.json says: {"q": "{question}"}' and server.count == 2
    assert server.template == {"q": "{question}"}
    server, run = probe(dataset, missing("q"), values={"request": None}, described=schema)
    with pytest.raises(ToolkitError, match="The server requires q"):
        run()
    assert server.template == "{question}", "as it was"
    server, run = probe(dataset, HttpError("no", status=500), values={"request": None}, described=schema)
    with pytest.raises(ToolkitError, match="none of 5"):
        run()
    assert server.fetched == [], "nothing says that the request is unfit"


def test_passages_without_words_or_at_another_place_are_told(dataset):
    names = [{"filename": "alder.txt"}]
    _, run = probe(dataset, read(answer="a", passages=names), values={})
    assert run() == [
        "srv: the passages have file names but no text ({filename: text}): only document metrics are measured"
    ]
    _, run = probe(dataset, read(answer="a", passages=[{"id": 3}]), values={})
    with pytest.raises(
        ToolkitError, match=r"have no text; the form of one is {id: number}. Name their fields in a target file"
    ):
        run()
    elsewhere = Read({"answer": "x", "hits": ["by the law of Norway"]}, answer="x", passages=names)
    _, run = probe(dataset, elsewhere)
    with pytest.raises(ToolkitError, match="Try --set target_response_context_jmespath='hits'"):
        run()
    _, run = probe(dataset, read(answer="a"), passages=("hits",))
    with pytest.raises(ToolkitError, match=r"no passages at hits in the reply: {answer: text}$"):
        run()
    _, run = probe(dataset, read(answer="a", passages=[3]))
    assert run() == [], "each question says so itself"


def test_questions_of_a_conversation_are_counted_where_the_request_has_no_place_for_it(dataset):
    some = [replace(dataset.cases[0], history=(Turn("user", "x"),)), case(2, "s"), case(3)]
    good = read(answer="a", passages=WITH)
    _, run = probe(dataset, good)
    [note] = run(some)
    assert note.startswith("2 questions are part of a conversation, but the request has neither")
    _, run = probe(dataset, good, template=["{history}"])
    assert run(some) == []
    _, run = probe(dataset, good)
    assert run([case(3)]) == []


# ---------------------------------------------------------------- questions asked at once


def test_turns_of_a_conversation_are_asked_in_order_with_what_was_said():
    seen = {}

    def ask(one, deadline):
        seen[one.id] = [tuple(turn) for turn in one.history]
        return Reply(None if one.id == 1 else f"a{one.id}")

    cases = [case(1, "s"), case(2), case(3, "s"), case(4, "s", history=(Turn("user", "own"),))]
    replies = dict(ask_all(cases, ask, TargetOptions(threads=2)))
    assert sorted(replies) == [0, 1, 2, 3] and all(reply.seconds is not None for reply in replies.values())
    assert seen == {1: [], 2: [], 3: [("user", "q1"), ("assistant", "")], 4: [("user", "own")]}
    assert list(ask_all([], ask, TargetOptions())) == []


def test_a_fault_of_the_code_is_raised_and_a_failure_is_a_reply():
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


def test_a_target_is_known_by_its_name_and_counts_pages_where_that_is_asked(dataset):
    assert (is_system("http:x"), is_system("my.toml"), is_system("builtin"), is_system("predictions:x")) == (
        "http", "my.toml", None, None
    )  # fmt: skip
    assert (count_only(dataset, TargetOptions()).pages, count_only(dataset, TargetOptions()).files) == (None, 3)
    assert count_only(dataset, TargetOptions(count_pages=True)).pages == 0
    with pytest.raises(
        ToolkitError, match="no target 'nobody'; the targets are azure, builtin, .*predictions.*FILE.toml"
    ):
        open_target("nobody:x", TargetOptions())
    with pytest.raises(
        ToolkitError, match="target_top_k: not a setting of the target predictions; its settings are none"
    ):
        open_target("predictions:x", TargetOptions(), {"top_k": 3})


# ---------------------------------------------------------------- settings


def test_a_run_that_is_told_nothing_asks_politely_and_forgives_one_failure_in_twenty():
    told = Settings().model_dump()
    expected = {
        "threads": 4, "timeout": 60.0, "retries": 5, "max_failures": 0.05, "item_timeout": 120.0, "item_memory": 2048,
        "judge_votes": 1, "repeat": 1, "resume": False, "delete_collection": False, "legacy_minus_one": False,
        "check_references": False, "allow_changed_corpus": False,
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    options = TargetOptions()
    assert (options.threads, options.timeout, options.retries, options.backoff) == (4, 60.0, 5, 0.5)
    assert options.answers and not options.count_pages and not options.delete_collection
    same = Settings().make_target_options()
    assert (same.threads, same.timeout, same.retries) == (4, 60.0, 5)


@pytest.mark.parametrize(
    ("name", "least", "below"),
    [
        ("threads", 1, 0), ("limit", 1, 0), ("repeat", 1, 0), ("judge_votes", 1, 0), ("retries", 0, -1),
        ("item_timeout", 0, -1), ("item_memory", 0, -1), ("timeout", 0.1, 0), ("report_cases", 0, -1),
        ("max_failures", 1, 1.1), ("max_failures", 0, -0.1), ("flag_below", 1, 1.1), ("flag_below", 0, -0.1),
    ],
)  # fmt: skip
def test_a_setting_has_its_bounds(name, least, below):
    assert getattr(parse_settings({name: least}), name) == least
    with pytest.raises(ToolkitError, match=name):
        parse_settings({name: below})


def test_settings_are_read_in_the_ways_they_are_written():
    told = parse_settings({"where": ["a=1", "a=2", "b=3"], "file_type": ".PDF,txt,.pdf", "dataset_paths": "x"})
    assert told.where == {"a": ("1", "2"), "b": ("3",)} and told.file_type == ("pdf", "txt")
    assert told.dataset_paths == ("x",) and parse_settings({"where": {"a": [1, 2], "b": 3}}).where == {
        "a": ("1", "2"), "b": ("3",)
    }  # fmt: skip
    assert [parse_settings({"ingest": way}).ingest for way in (True, False, "true", "never", None)] == [
        "auto", None, "auto", "never", None
    ]  # fmt: skip
    assert parse_settings({}).selection.needs_documents
    assert not parse_settings({"target": "predictions:x"}).selection.needs_documents
    assert parse_settings({"target": "predictions:x", "ingest": "fresh"}).selection.needs_documents
    assert not parse_settings({"target": "predictions:x", "ingest": "never"}).selection.needs_documents
    assert parse_settings({"target_url": "http://x"}).target_name == "http"
    assert not parse_settings({"file_type": ""}).make_target_options().count_pages
    assert parse_settings({"file_type": "pdf"}).make_target_options().count_pages


def test_two_configs_differ_in_what_decides_the_replies():
    one = {"format": 1, "version": "1", "measured": {}, "limit": 3, "preset": "a"}
    assert compare_reply_settings(one, {**one, "format": 2, "version": "2", "measured": {"k": 1}}) == []
    assert compare_reply_settings(one, {**one, "limit": 4, "more": 1}) == ["limit", "more"]


def test_a_config_file_says_where_its_questions_are(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    bundle = write_bundle(tmp_path / "leases")
    file = tmp_path / "c.json"

    def told(**content):
        file.write_text(json.dumps(content), encoding="utf-8")
        return read_config_file(file)

    assert told(testdata_path="leases") == ({"dataset_paths": [str(bundle)]}, [])
    assert told(testdata_path="leases", dataset_paths=["mine"]) == ({"dataset_paths": ["mine"]}, [])
    settings, [note] = told(testdata_path="nowhere.jsonl")
    assert settings == {} and "testdata_path 'nowhere.jsonl' is not a bundle" in note
    (tmp_path / "odd.txt").write_text("x", encoding="utf-8")
    assert "is not a bundle" in told(testdata_path="odd.txt")[1][0]
    (tmp_path / "t.toml").write_text("limit = 3\n", encoding="utf-8")
    assert read_config_file(tmp_path / "t.toml") == ({"limit": 3}, [])
    file.write_text("[1]", encoding="utf-8")
    with pytest.raises(ToolkitError, match="must be a JSON or TOML object of settings"):
        read_config_file(file)


def test_settings_by_name_and_flags_of_earlier_versions():
    assert (
        parse_set(["chunk_size=300", "top-k=3"] if "top_k" in list_settings() else ["chunk_size=300"])["chunk_size"]
        == "300"
    )
    assert parse_set(["target_colour=red"]) == {"target_colour": "red"}
    with pytest.raises(ToolkitError, match="write NAME=VALUE"):
        parse_set(["chunk_size"])
    with pytest.raises(
        ToolkitError, match="no setting 'chunk_sise' \\(did you mean chunk_size\\?\\); `exhibit settings` lists all"
    ):
        parse_set(["chunk_sise=3"])
    with pytest.raises(ToolkitError, match="no setting 'qqqqqq'; `exhibit settings` lists all"):
        parse_set(["qqqqqq=3"])
    said = []
    words = [
        "b",
        "--all",
        "--source-type",
        "PD",
        "--source-type=CPR",
        "--chunk-size",
        "300",
        "--chunk-size=200",
        "--known",
        "x",
    ]
    assert translate_flags([*words, "--", "--all"], ["--known"], said.append) == [
        "b", "--by", "source_type", "--where", "source_type=PD", "--where", "source_type=CPR", "--set",
        "chunk_size=300", "--set", "chunk_size=200", "--known", "x", "--", "--all",
    ]  # fmt: skip
    assert said[0] == "--all is now --by source_type" and len(said) == 5
    assert translate_flags(["--source-type"], [], said.append) == ["--where", "source_type="]
    assert translate_flags(["--chunk-size"], [], said.append) == ["--set", "chunk_size="] and translate_flags(
        ["--odd"], [], said.append
    ) == ["--odd"]
    switch = next(one.name for one in list_settings().values() if one.switch).replace("_", "-")
    own = switch.replace("-", "_")
    for given, made in (([], "true"), (["x"], "true"), (["No"], "No"), (["--odd"], "true")):
        done = translate_flags([f"--{switch}", *given], [], said.append)
        assert done == ["--set", f"{own}={made}", *(given if made == "true" else [])]


@pytest.mark.parametrize(
    ("name", "group", "default", "values", "many", "switch"),
    [
        ("threads", "run", "4", "a whole number, 1 or more", False, False),
        ("timeout", "run", "60.0", "a number, above 0", False, False),
        ("max_failures", "run", "0.05", "a number, 0 or more, at most 1", False, False),
        ("ingest", "run", "none", "auto|never|fresh", False, False),
        ("resume", "run", "false", "true|false", False, True),
        ("file_type", "run", "none", "may be repeated", True, False),
        ("chunk_size", "pipeline", "500", "a whole number, 1 or more", False, False),
        ("weight_lexical", "pipeline", "0.55", "a number, 0 or more", False, False),
        ("target_request", "target http", "none", "text", False, False),
    ],
)
def test_a_setting_is_listed_with_its_default_its_values_and_what_it_means(name, group, default, values, many, switch):
    one = list_settings()[name]
    assert (one.group, one.default, one.values, one.many, one.switch) == (group, default, values, many, switch)
    assert all(other.meaning for other in list_settings().values())
    assert not {"origins", "pipeline", "target_settings", "weights"} & set(list_settings())


def test_the_settings_about_a_word_are_printed_by_group(capsys):
    assert settings_command(["chunk_size"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("pipeline:\n") or "\n\npipeline:\n" in told
    assert "the most characters of a chunk (a whole number, 1 or more; default 500)" in told
    assert settings_command(["nothing-like-that"]) == 1 and "no setting matches" in capsys.readouterr().err
    assert settings_command(["retries", "--json"]) == 0 and "retries" in {
        one["name"] for one in json.loads(capsys.readouterr().out)
    }


# ---------------------------------------------------------------- datasets


@pytest.mark.parametrize(
    ("label", "turns"),
    [
        (None, []),
        ("hello", [("user", "hello")]),
        ('["a", "b", "c"]', [("user", "a"), ("assistant", "b"), ("user", "c")]),
        ("[not json", [("user", "[not json")]),
        (
            [{"role": "assistant", "content": "x"}, {"content": "y"}, {"content": 3}, 7],
            [("assistant", "x"), ("user", "y")],
        ),
        (7, []),
    ],
)
def test_what_was_said_before_is_read(label, turns):
    assert [tuple(turn) for turn in read_history(label)] == turns


def test_a_folder_that_was_fetched_is_called_as_its_address_says(tmp_path):
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
def test_the_passages_that_an_answer_was_made_from(texts, reply, read):
    recorded = RunReply(passages=[RunPassage(text=text) for text in texts], error="", **reply)
    row = RunQuestion(id=1, question="?", truth="", reply=recorded, verdict="answered")
    assert [one.text for one in list_passages_read(row)] == read


def test_other_means_of_mismatches_stand_beside_the_first():
    table = Table("d", [1, 2, 3], ["x", "x", "y"], {"drm@1": [1.0, 0.0, 0.0], "map": [1.0, 1.0, 1.0]})
    means = {"drm@1": Estimate(1 / 3, 3, 0), "map": Estimate(1.0, 3, 0)}
    both = with_drm_means(means, {"drm@1": 0.4}, table)
    assert (both["drm@1"].pooled, both["drm@1"].macro) == (0.4, 0.25) and both["map"] == means["map"]


@pytest.fixture
def run(dataset, tmp_path):
    """A run that asks each question twice; one question always fails."""
    turn = []

    def answer(asked):
        turn.append(asked)
        if asked == dataset.cases[1].question:
            raise RuntimeError("down")
        return {"answer": "Nörway." if len(turn) < 9 else None, "passages": [{"filename": "alder.txt", "text": "x"}]}

    told = {"dataset_paths": [str(dataset.root)], "target": "function", "output_dir": tmp_path / "out", "repeat": 2}
    told |= {"run_name": "r", "report_cases": 0, "threads": 1, "limit": 4, "metrics": "answer_length,document_hit"}
    return evaluate(parse_settings(told), parts={"function": answer})


def test_a_run_is_given_to_ragas_and_read_where_rows_have_fewer_times(run, monkeypatch):
    fake = ModuleType("ragas")
    fake.EvaluationDataset = SimpleNamespace(from_list=list)
    monkeypatch.setitem(sys.modules, "ragas", fake)
    samples = ragas_dataset(run.folder)
    assert len(samples) == 3 and samples[0]["response"] == "Nörway." and samples[0]["retrieved_contexts"] == ["x"]
    assert set(samples[0]) == {"user_input", "response", "retrieved_contexts", "reference", "reference_contexts"}
    path = run.folder / "leases" / "eval_results.jsonl"
    rows = rows_of(path)
    rows[0]["reply"]["answer"] = None
    assert "Nörway" in (run.folder / "eval_results.jsonl").read_text(encoding="utf-8"), "letters as they are"
    [table] = read_tables(run.folder)
    assert len(table.repeats) == 2 and list(table.failed) == [0, 2, 0, 0]
    for shorter in (0, 3):
        held = json.loads(json.dumps(rows))
        held[shorter]["repeats"] = held[shorter]["repeats"][:1]
        path.write_text("".join(json.dumps(row) + "\n" for row in held), encoding="utf-8")
        assert len(read_tables(run.folder)[0].repeats) == 1, "only the times that all questions have"
    assert ragas_dataset(run.folder)[0]["response"] == ""


# ---------------------------------------------------------------- the account of references


def test_references_are_written_beside_the_results_and_those_not_checked_are_counted(tmp_path):
    class Registered:
        def __init__(self):
            self.checked = {}

        def check(self, one):
            away = one.kind == "case"
            found = {"outcome": "unreachable" if away else "found", "url": "u", "detail": "away" if away else ""}
            self.checked[one] = SimpleNamespace(**found, _asdict=lambda: found)
            return self.checked[one]

    answer = "See [2024] EWCA Civ 12, section 3 of the Housing Act 1985, and [2024] EWCA Civ 12."
    rows = [
        {"id": 1, "question": "?", "reply": {"error": "", "answer": answer}},
        {"id": 2, "question": "?", "reply": {"error": "down", "answer": answer}},
        {"id": 3, "question": "?", "reply": {"error": "", "answer": None}},
    ]
    path = tmp_path / "eval_results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said = []
    write_account([path], Registered(), say=said.append)
    lines = rows_of(tmp_path / "references.jsonl")
    assert [(line["id"], line["kind"], line["outcome"]) for line in lines] == [
        (1, "case", "unreachable"), (1, "statute", "found")
    ]  # fmt: skip
    assert said == ["1 of 2 references not checked: away"]


def test_elements_are_read_from_what_is_xml():
    text = "<?xml version='1.0'?><f xmlns='u'><!-- a --><a>1</a><b/><a>2</a></f>"
    for status, found in ((200, ["1", "2"]), (300, ["1", "2"]), (404, [])):
        assert [one.text for one in find_page_elements(RegisterPage("u", status, text), "a")] == found
    assert list(find_page_elements(RegisterPage("u", 200, ""), "a")) == []
    assert list(find_page_elements(RegisterPage("u", 200, "no xml"), "a")) == []


# ---------------------------------------------------------------- a run that is resumed, its options and its notes


def told(dataset, tmp_path, **more):
    given = {"dataset_paths": [str(dataset.root)], "target": "function", "output_dir": tmp_path / "out"}
    return parse_settings({**given, "run_name": "r", "report_cases": 0, "threads": 1, "limit": 2, **more})


def answered(question):
    return {"answer": "Norway.", "passages": [{"filename": "alder.txt", "text": "the law of Norway"}]}


@pytest.mark.parametrize(("count", "listed"), [(3, "{0}, {1}, {2}"), (4, "{0}, {1}, {2} and 1 more")])
def test_files_that_changed_since_a_run_was_started_are_named_up_to_three(dataset, tmp_path, count, listed):
    for number in range(3):
        (dataset.root / "corpus" / f"more {number}.txt").write_text("x", encoding="utf-8")
    evaluate(told(dataset, tmp_path), parts={"function": answered})
    names = sorted(path.name for path in (dataset.root / "corpus").iterdir())[:count]
    for name in names:
        (dataset.root / "corpus" / name).write_text("changed", encoding="utf-8")
    words = listed.format(*(f"leases/corpus/{name}" for name in names))
    with pytest.raises(BundleError) as caught:
        evaluate(told(dataset, tmp_path, resume=True), parts={"function": answered})
    assert f"was started with other files ({words}), so its replies are out of date" in str(caught.value)


def test_a_run_says_what_it_was_told_and_leaves_out_what_applies_to_no_question(dataset, tmp_path):
    notes = []
    done = evaluate(told(dataset, tmp_path, price_in=2.0), parts={"function": answered}, warn=notes.append)
    config = json.loads((done.folder / "config.json").read_text(encoding="utf-8"))
    assert config["datasets"]["leases"]["questions"] == 2 and config["datasets"]["leases"]["files"] == 3
    assert config["measured"]["metrics"] == [] and "judge" not in config["measured"]
    assert "first_token" not in done.summary and "answer_f1" in done.summary, "no reply tells when it began"
    assert "relevance" not in done.summary and done.failures == Failures(2, 0)
    asked = evaluate(told(dataset, tmp_path, run_name="s", metrics="first_token"), parts={"function": answered})
    assert list(asked.summary) == ["first_token"] and asked.summary["first_token"].mean is None
    with pytest.raises(ToolkitError, match="delete_collection: the target function:answered keeps no documents"):
        evaluate(told(dataset, tmp_path, run_name="t", delete_collection=True), parts={"function": answered})


def test_labels_that_no_question_has_are_answered_with_twelve_that_there_are(tmp_path):
    bundle = write_bundle(tmp_path / "leases")
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    lines = rows_of(bundle / "gold.jsonl")
    more = [{**row, "id": row["id"] + 100 * n} for n in range(2) for row in rows]
    gold = [
        {**line, "id": line["id"] + 100 * n, "labels": {"court": f"c{line['id'] + 9 * n:02}"}}
        for n in range(2)
        for line in lines
    ]
    (bundle / "train.json").write_text(json.dumps(more), encoding="utf-8")
    (bundle / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in gold), encoding="utf-8")
    with pytest.raises(BundleError) as caught:
        load_datasets([bundle], Selection(where={"court": ("x",)}))
    assert str(caught.value).endswith("the values are court: " + ", ".join(f"c{n:02}" for n in range(12)))


# ---------------------------------------------------------------- words of gold in passages


GOLD = "The tenant shall pay the rent of five hundred crowns in advance on the first day of each month."


LONG = f"{GOLD} It is paid in coins, and no part of it is ever given back."


def ranks(gold: str, *texts: str) -> list[int | None]:
    reply = Reply("x", tuple(Passage(text, "a") for text in texts))
    return find_gold_ranks(Case(1, "?", "", gold=(GoldPassage("a", gold),), reply=reply))


@pytest.mark.parametrize(
    ("texts", "rank"),
    [
        (["x " + GOLD[:60]], 1),
        (["x " + GOLD[:30], GOLD[-70:] + " y"], 2),
        (["x " + GOLD[:24], "nothing", GOLD[-18:] + " y"], None),
        ([GOLD[20:40], GOLD[40:70]], 2),
        (["x " + GOLD[:10]], None),
        (["The tenant shall sleep. " + GOLD[:60]], 1),
        ([GOLD[-60:] + " on the first day of each month"], 1),
    ],
)
def test_a_gold_passage_is_found_where_half_of_its_words_are_held(texts, rank):
    assert ranks(GOLD, *texts) == [rank]


# ---------------------------------------------------------------- what is written of a question


def test_ten_passages_are_written_with_their_words_and_where_the_system_says_they_are(dataset, tmp_path):
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


def test_a_later_passage_that_the_answer_was_made_from_is_written_with_its_words():
    passages = tuple(Passage(f"words {n}", "alder.txt") for n in range(14))
    fields = format_reply(Case(1, "?", "", reply=Reply(passages=passages, answer="words", context=(1, 13))))
    assert [("text" in one) for one in fields["passages"]] == [True] * 10 + [False, False, True, False]


def test_a_run_in_which_all_failed_writes_empty_predictions_and_minus_one_where_asked(dataset, tmp_path):
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


def test_gold_names_its_file_in_any_spelling(tmp_path):
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
    assert list(made.refused) == ["c"] and "1 of 4 questions is in 1 files that are not in corpus/" in warnings[0]
    assert made.cases[3].gold[0].absent is False and made.cases[2].gold[0].absent is False, "it was not looked for"
