"""Targets for particular systems, each tested against an imitation that answers from the gold."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

import evaluate_rag
from exhibit.evaluation.cases import Turn
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.scoring import ask
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http_policy import Deadline
from tests.evaluation import systems
from tests.evaluation.loopback import SSE, imitating
from tests.rag.bundles import rows_of, write_bundle

ANSWERS = ("answer_f1", "abstention_accuracy")
PASSAGES = ("char_recall@8", "document_hit@1", "recall@10")
RAGFLOW = {"key": "RAGFLOW_KEY"}
SYSTEMS = {
    "nvidia": (systems.nvidia, "nvidia", {}, "both"),
    "azure chat": (systems.azure, "azure", {}, "both"),
    "azure ask": (systems.azure, "azure", {"route": "ask"}, "both"),
    "azure index": (systems.azure, "azure", {"index": "contracts"}, "passages"),
    "openai responses": (systems.openai, "openai", {"model": "m", "collection": "vs_1"}, "both"),
    "openai chat": (systems.openai, "openai", {"model": "m", "api": "chat"}, "both"),
    "langserve": (systems.langserve, "langserve", {}, "both"),
    "llamaindex": (systems.llamaindex, "llamaindex", {}, "both"),
    "haystack": (systems.haystack, "haystack", {"pipeline": "rag"}, "both"),
    "haystack chat": (systems.haystack, "haystack", {"pipeline": "rag", "chat": True}, "answers"),
    "ragflow": (systems.ragflow, "ragflow", {"assistant": "c1", **RAGFLOW}, "both"),
    "ragflow search": (systems.ragflow, "ragflow", RAGFLOW, "passages"),
}
STREAMED = {
    "nvidia": {},
    "azure chat": {"stream": True},
    "openai responses": {"stream": True},
    "openai chat": {"stream": True},
    "langserve": {"stream": True},
    "llamaindex": {},
    "haystack": {},
    "haystack chat": {"stream": True},
    "ragflow": {"stream": True},
}
UNMARKED = ("azure chat", "haystack")
"""Whose streams have no mark of their end: what is cut off cleanly cannot be told from what is whole."""
KINDS = [(name, False) for name in SYSTEMS] + [(name, True) for name in STREAMED]
EVERY_FIFTH = (None, None, None, None, 503)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("RAGFLOW_KEY", "ragflow-planted")


@pytest.fixture
def dataset(tmp_path):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "leases")], Selection())
    return dataset


def opened(name, url, *, stream=False, told=None, **options):
    _, target, settings, _ = SYSTEMS[name]
    if target == "langserve":
        url = f"{url}/rag"
    settings = {**settings, **({"whole": True} if target == "llamaindex" and not stream else {}), "url": url}
    if target == "nvidia":
        settings["ingestor"] = url
    options = {"threads": 16, "backoff": 0.01, **options}
    return open_target(
        target, TargetOptions(**options), {**settings, **(STREAMED[name] if stream else {}), **(told or {})}
    )


@pytest.fixture
def imitation(dataset):
    """A function that returns a context in which an imitation of a system runs."""

    def start(name, stream=False):
        return partial(imitating, SYSTEMS[name][0], dataset.cases, stream=stream)()

    return start


# ---------------------------------------------------------------- answers from the gold


@pytest.mark.parametrize(("name", "stream"), KINDS, ids=[f"{n}{', streamed' if s else ''}" for n, s in KINDS])
def test_answers_from_the_gold_score_one_though_requests_fail(imitation, dataset, tmp_path, name, stream):
    half = "half" if stream and name not in UNMARKED else "break"
    with imitation(name, stream) as system:
        system.exists = True
        target = opened(name, system.url, stream=stream)
        notes = target.probe(dataset, dataset.cases)
        system.faults = (None, 503, None, None, None, None, half, None, None, None, None, "break", None, None, 429)
        cases = list(ask(tmp_path / "run", dataset, target))
    assert len(cases) == 9 and not [case.reply.error for case in cases if case.reply.error]
    assert system.answers > 10, "some were asked again"
    delivers = "answers" if (name, stream) == ("haystack", True) else SYSTEMS[name][3]
    wanted = [*(ANSWERS if delivers != "passages" else ()), *(PASSAGES if delivers != "answers" else ())]
    for metric, values in measure(cases, Options(), names=wanted).items():
        known = [value for value in values if value is not None]
        assert known and set(known) == {1.0}, metric
    assert any("has no passages" in note for note in notes) is (delivers == "answers")
    assert any("only retrieval" in note for note in notes) is (delivers == "passages")
    if (
        delivers != "passages"
        and name not in ("langserve",)
        and (name, stream) not in (("llamaindex", False), ("haystack", True))
    ):
        assert {tuple(sorted(case.reply.usage.items())) for case in cases} == {
            (("tokens_in", 20.0), ("tokens_out", 10.0))
        }
    assert all((case.reply.first_token is not None) is stream for case in cases)


def test_the_citations_come_first_and_the_ranking_behind_them(imitation, dataset):
    with imitation("nvidia", True) as system:
        [(_, reply)] = opened("nvidia", system.url).ask(dataset, dataset.cases[:1])
        assert reply.selected == 1 and [one.filename for one in reply.passages] == ["alder.txt", "alder.txt"]
        assert reply.passages[1].text == "Payment. The price" and reply.passages[0].told_page == 1
        [(_, alone)] = opened("nvidia", system.url, told={"depth": 0}).ask(dataset, dataset.cases[:1])
        assert len(alone.passages) == 1 and system.asked[-1].path == "/v1/generate"


def test_a_table_has_the_words_of_its_description(imitation, dataset):
    with imitation("nvidia") as system:
        [(_, reply)] = opened("nvidia", system.url).ask(dataset, dataset.cases[1:2])
    assert reply.passages[0].text == "The term of this Agreement is five years"


def test_citations_of_an_assistant_become_ranks(dataset):
    def reply(system, asked):
        message = {
            "content": "Norway [ID:7], or so ##3$$ [ID:9].",
            "reference": {"chunks": {"3": {"content": "a"}, "7": {"content": "b"}}},
        }
        return {"choices": [{"message": message}]}

    with imitating(reply, dataset.cases) as system:
        [(_, told)] = opened("ragflow", system.url).ask(dataset, dataset.cases[:1])
    assert told.answer == "Norway [2], or so [1] [ID:9]."


# ---------------------------------------------------------------- conversations


@pytest.mark.parametrize(
    "name",
    ["nvidia", "azure chat", "openai responses", "openai chat", "langserve", "llamaindex", "haystack chat", "ragflow"],
)
def test_what_was_said_before_is_sent_as_each_wants_it(imitation, dataset, name):
    said = (Turn("user", "Who are you?"), Turn("assistant", "A contract's reader."))
    with imitation(name) as system:
        system.exists = True
        target = opened(name, system.url)
        [(_, reply)] = target.ask(dataset, [replace(dataset.cases[0], history=said)])
        assert not reply.error
        bodies = [asked.body for asked in system.asked if asked.method == "POST" and "query" not in asked.body]
    body = bodies[-1]
    if name == "langserve":
        assert body["input"]["chat_history"] == [
            {"type": "human", "content": "Who are you?"},
            {"type": "ai", "content": "A contract's reader."},
        ]
        return
    if name == "llamaindex":
        assert body["id"] == "leases-0"
    turns = body["input"] if name == "openai responses" else body["messages"]
    assert [(turn["role"], turn["content"]) for turn in turns] == [*said, ("user", dataset.cases[0].question)]


def test_a_pipeline_without_a_place_for_a_conversation_says_so(imitation, dataset):
    cases = [replace(dataset.cases[0], history=(Turn("user", "Hello."),))]
    with imitation("haystack") as system:
        [note] = opened("haystack", system.url).probe(dataset, cases)
        assert "part of a conversation" in note and "asked without the earlier turns" in note
        assert opened("haystack", system.url, told={"input": {"query": "{history}: {question}"}}).template


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_error_is_told_in_the_system_s_own_words(imitation, dataset, name):
    with imitation(name) as system:
        system.exists = True
        system.faults = (400,)
        [(_, reply)] = opened(name, system.url).ask(dataset, dataset.cases[:1])
        assert reply.error.endswith("HTTP 400 Bad Request: not now") and reply.error.startswith("/"), reply.error
        system.faults = (401,)
        with pytest.raises(ToolkitError, match=r"the server does not accept the key: .*HTTP 401 Unauthorized: not now"):
            opened(name, system.url).probe(dataset, dataset.cases)
    with pytest.raises(ToolkitError, match="no server answers at .* Is the server running"):
        opened(name, "http://127.0.0.1:9").probe(dataset, dataset.cases)


FAILED = {"message": {"content": "Error from rag-server. Please check rag-server logs for more details."}}
STREAM_ERRORS = {
    "nvidia": systems.events({"choices": [FAILED]}),
    "azure chat": ['{"delta": {"content": "Nor"}}\n', '{"error": "flagged by the content filter"}\n'],
    "openai responses": ['data: {"type": "response.failed", "response": {"error": {"message": "too much"}}}\n\n'],
    "openai chat": ['data: {"error": {"message": "too much"}}\n\n'],
    "langserve": ['event: error\r\ndata: {"status_code": 500, "message": "Internal Server Error"}\r\n\r\n'],
    "llamaindex": ['0:"Nor"\n', '3:"out of memory"\n'],
    "ragflow": ['data: {"code": 102, "message": "The last content is not from user."}\n\n'],
}


@pytest.mark.parametrize("name", STREAM_ERRORS)
def test_an_error_inside_a_stream_is_no_answer(dataset, name):
    kind = {"azure chat": systems.LINES, "llamaindex": systems.PLAIN}.get(name, SSE)
    with imitating(lambda system, asked: systems.Stream(STREAM_ERRORS[name], kind), dataset.cases) as system:
        target = opened(name, system.url, stream=True, retries=1)
        [(_, reply)] = target.ask(dataset, dataset.cases[:1])
    assert reply.answer is None and "the server reports an error: " in reply.error


@pytest.mark.parametrize("name", SYSTEMS)
def test_another_kind_of_server_is_recognised_as_such(dataset, name):
    with imitating(lambda system, asked: {"weather": "fine today"}, dataset.cases) as system:
        if SYSTEMS[name][3] == "passages":
            target = opened(name, system.url)
            if name == "ragflow search":
                with pytest.raises(ToolkitError, match="none of 5 questions.* was answered.*no dataset of RAGFlow"):
                    target.probe(dataset, dataset.cases)
            else:
                assert "the reply has no passages ({weather: text})" in target.probe(dataset, dataset.cases)[0]
            return
        with pytest.raises(
            ToolkitError, match=r"no answer in the reply.*; its form is .*Is this the right kind of server"
        ) as caught:
            opened(name, system.url).probe(dataset, dataset.cases)
        assert "jmespath" not in str(caught.value)


def test_a_stream_that_is_no_chat_server_s(dataset):
    with imitating(lambda system, asked: systems.Stream(["<html>\n"], systems.PLAIN), dataset.cases) as system:
        [(_, reply)] = opened("llamaindex", system.url, stream=True).ask(dataset, dataset.cases[:1])
    assert (
        reply.error == "a line of the stream is does not have the form LETTER:JSON: <html>"
        or "does not have the form LETTER:JSON" in reply.error
    )


# ---------------------------------------------------------------- documents

TAKES = {
    "nvidia": {},
    "azure chat": {},
    "openai responses": {"collection": ""},
    "ragflow search": {},
    "haystack": {"ingest_pipeline": "files"},
}


@pytest.mark.parametrize("name", TAKES)
def test_the_corpus_is_given_waited_for_and_checked(imitation, dataset, name):
    with imitation(name) as system:
        target = opened(name, system.url, told=TAKES[name], ingest="auto")
        assert target.probe(dataset, dataset.cases) == [] and not system.files
        told = target.ingest(dataset)
        assert (told.files, told.set_aside) == (3, []) and told.seconds > 0
        assert set(system.files.values()) == {"read"} and set(system.files) == set(dataset.files)
        forms = [asked.body for asked in system.asked if isinstance(asked.body, dict) and "fields" in asked.body]
        assert {form["name"]: form["text"] for form in forms} == {
            file: path.read_text(encoding="utf-8").strip() for file, path in dataset.files.items()
        }
        [(_, reply)] = target.ask(dataset, dataset.cases[:1])
        assert reply.passages and not reply.error


@pytest.mark.parametrize("name", [name for name in TAKES if name != "haystack"])
def test_only_what_is_missing_is_sent_and_force_begins_anew(imitation, dataset, name):
    def sent(system):
        return [asked.body["name"] for asked in system.asked if isinstance(asked.body, dict) and "fields" in asked.body]

    with imitation(name) as system:
        system.exists, system.files = True, {"alder.txt": "read", "other.txt": "read"}
        opened(name, system.url, told=TAKES[name], ingest="auto").ingest(dataset)
        assert sent(system) == ["birch.txt", "cedar.txt"]
        again = opened(name, system.url, told=TAKES[name], ingest="auto").ingest(dataset)
        assert len(sent(system)) == 2 and again.seconds is None
        opened(name, system.url, told=TAKES[name], ingest="fresh").ingest(dataset)
        assert sent(system)[2:] == ["alder.txt", "birch.txt", "cedar.txt"]
        target = opened(name, system.url, told=TAKES[name], delete_collection=True)
        target.forget(dataset)
        assert not set(system.files) & set(dataset.files)


@pytest.mark.parametrize("name", TAKES)
def test_a_file_that_the_system_cannot_read_is_named(imitation, dataset, name):
    with imitation(name) as system:
        system.unreadable = ("birch.txt",)
        told = opened(name, system.url, told=TAKES[name], ingest="auto", retries=1).ingest(dataset)
        assert told.files == 2 and len(told.set_aside) == 1 and told.set_aside[0].startswith("birch.txt: ")
        system.unreadable = tuple(dataset.files)
        system.files, system.exists = {}, False
        with pytest.raises(
            ToolkitError,
            match=r"none of the 3 files is ready in the system. The first file and the reason: alder.txt: ",
        ):
            opened(name, system.url, told=TAKES[name], ingest="auto", retries=1).ingest(dataset)


def test_skipping_says_what_is_missing(imitation, dataset):
    with imitation("nvidia") as system:
        system.exists, system.files = True, {"alder.txt": "read"}
        told = opened("nvidia", system.url, ingest="never").ingest(dataset)
        assert told.files == 1 and told.set_aside == [
            "birch.txt: not among the system's documents",
            "cedar.txt: not among the system's documents",
        ]


def test_a_file_that_never_gets_ready_is_named_in_time(imitation, dataset, monkeypatch):
    with imitation("ragflow search") as system:
        system.reply = lambda system, asked: (
            systems.ragflow(system, asked) if not asked.path.endswith("/chunks") else {"code": 0}
        )
        target = opened("ragflow search", system.url, told={"ingest_timeout": 0.05}, ingest="auto")
        with pytest.raises(ToolkitError, match=r"alder.txt: uploaded, but not ready in time \(target_ingest_timeout\)"):
            target.ingest(dataset)


@pytest.mark.parametrize("name", ["azure index", "openai chat", "langserve", "llamaindex", "haystack"])
def test_a_system_without_an_interface_for_documents_says_so(imitation, dataset, name):
    with imitation(name) as system:
        for flags in ({"ingest": "auto"}, {"ingest": "fresh"}, {"delete_collection": True}):
            with pytest.raises(ToolkitError, match="it has no interface for documents; remove --ingest"):
                opened(name, system.url, **flags).probe(dataset, dataset.cases)
        assert not system.asked


# ---------------------------------------------------------------- the command


def test_the_command_ingests_asks_and_deletes(imitation, dataset, tmp_path, capsys):
    with imitation("nvidia", True) as system:
        flags = ["--target", "nvidia", "--target-url", system.url, "--target-ingestor", system.url]
        common = ["--dataset-paths", str(dataset.root), "--output-dir", str(tmp_path / "out"), "--run-name", "run"]
        code = evaluate_rag.main([*common, *flags, "--ingest", "auto", "--delete-collection", "--report-cases", "0"])
        err = capsys.readouterr().err
        assert code == 0, err
        assert not system.exists and system.answers == 2 + 18, "one question and its search before the run"
    rows = rows_of(tmp_path / "out" / "run" / "leases" / "eval_results.jsonl")
    assert all(row["scores"]["answer_f1"] in (1.0, None) and row["reply"]["selected"] == 1 for row in rows)
    assert evaluate_rag.main([*common, "--delete-collection"]) == 1
    assert "delete_collection: the target builtin" in capsys.readouterr().err


def test_the_ingestor_is_beside_the_server_unless_another_is_named(dataset, monkeypatch):
    monkeypatch.setenv("NVIDIA_KEY", "nvapi-planted")
    target = open_target("nvidia", TargetOptions(), {"url": "http://127.0.0.2:8081/v1", "key": "NVIDIA_KEY"})
    seen = []
    monkeypatch.setattr(target, "fetch", lambda path, body=None, *, url, **told: seen.append(f"{url} {path}"))
    target.documents("x").listed(Deadline(1))
    assert seen == ["http://127.0.0.2:8082/ /v1/collections"]


def test_what_the_probe_finds_after_ingestion_is_said(imitation, dataset):
    def without(system, asked):
        told = systems.nvidia(system, asked)
        return {**told, "citations": {}} if asked.path == "/v1/generate" else told

    with imitation("nvidia") as system:
        system.reply = without
        told = opened("nvidia", system.url, told={"depth": 0}, ingest="auto").ingest(dataset)
    [note] = told.notes
    assert "the reply has no passages" in note and "notes" not in told.model_dump()


def test_what_a_target_must_be_told():
    with pytest.raises(ToolkitError, match="the demo streams /chat alone"):
        open_target("azure", TargetOptions(), {"route": "ask", "stream": True})
    with pytest.raises(ToolkitError, match="target_input"):
        open_target("haystack", TargetOptions(), {"pipeline": "rag", "input": "[1]"})
    with pytest.raises(ToolkitError, match="target_pipeline"):
        open_target("haystack", TargetOptions(), {})
    with pytest.raises(ToolkitError, match="target_model"):
        open_target("openai", TargetOptions(), {})
    with pytest.raises(ToolkitError, match="'' is not an address; an example is http://localhost:8000/rag"):
        open_target("langserve", TargetOptions(), {})
    assert open_target("nvidia", TargetOptions(), {}).name == "nvidia:http://localhost:8081"
    for wrong in ({"depth": 26}, {"depth": -1}, {"ingest_timeout": 0}):
        with pytest.raises(ToolkitError, match=f"target_{next(iter(wrong))}"):
            open_target("nvidia", TargetOptions(), wrong)
