"""Targets for particular systems, each tested against an imitation that answers from the gold."""

import json
import re
from functools import partial

import pytest

import evaluate_rag
from exhibit.evaluation.journal import Journal
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.rag.config import Config
from exhibit.rag.inspect import main as inspect
from exhibit.schemas.errors import ToolkitError
from tests.evaluation import systems
from tests.evaluation.loopback import SSE, imitating
from tests.evaluation.systems import KEY, reply_as_azure
from tests.rag.bundles import PARTIES, rows_of, write_bundle

ANSWERS = ("answer_f1", "abstention_accuracy")
PASSAGES = ("char_recall@8", "document_hit@1", "recall@10")
SYSTEMS = {
    "nvidia": (systems.nvidia, "nvidia", {}),
    "azure chat": (systems.azure, "azure", {}),
    "azure ask": (systems.azure, "azure", {"route": "ask"}),
    "azure index": (systems.azure, "azure-search", {"index": "contracts"}),
    "openai responses": (systems.openai, "openai", {"model": "m", "collection": "vs_1"}),
}
KINDS = [*((name, False) for name in SYSTEMS), ("nvidia", True), ("openai responses", True)]


def open_system_target(name, url, *, more=None, **options):
    _, target, settings = SYSTEMS[name]
    settings = {**settings, "url": url, **({"ingestor": url} if target == "nvidia" else {}), **(more or {})}
    return open_target(target, TargetOptions(**{"threads": 16, "backoff": 0.01, **options}), settings)


@pytest.fixture
def imitation(dataset):
    """A function that returns a context in which an imitation of a system runs."""

    def start(name, stream=False):
        return partial(imitating, SYSTEMS[name][0], dataset.cases, stream=stream)()

    return start


@pytest.mark.parametrize(("name", "stream"), KINDS, ids=[f"{n}{', streamed' if s else ''}" for n, s in KINDS])
def test_system_targets_retry_failed_requests_and_score_1(imitation, dataset, tmp_path, name, stream):
    half = "half" if stream else "break"
    with imitation(name, stream) as system:
        system.exists = True
        streamed = {"parameters": {"stream": True}} if stream and name != "nvidia" else None
        target = open_system_target(name, system.url, more=streamed)
        notes = target.probe(dataset, dataset.cases)
        system.faults = (None, 503, None, None, None, None, half, None, None, None, None, "break", None, None, 429)
        cases = list(Journal(tmp_path / "run", dataset, target).ask())
    assert len(cases) == 9 and not [case.reply.error for case in cases if case.reply.error]
    assert system.answers > 10, "failed questions must be repeated"
    answers = name != "azure index"
    for metric, values in measure(cases, Options(), names=[*(ANSWERS if answers else ()), *PASSAGES]).items():
        known = [value for value in values if value is not None]
        assert known and set(known) == {1.0}, metric
    assert any("only retrieval" in note for note in notes) is not answers
    if answers:
        usage = {tuple(sorted(case.reply.usage.items())) for case in cases}
        assert usage == {(("tokens_in", 20.0), ("tokens_out", 10.0))}


def test_nvidia_target_uses_citations_as_context(imitation, dataset):
    with imitation("nvidia", True) as system:
        [(_, first), (_, table)] = sorted(open_system_target("nvidia", system.url).ask(dataset, dataset.cases[:2]))
    assert (first.selected, first.passages[0].filename, first.passages[0].told_page) == (1, "alder.txt", 1)
    assert table.passages[0].text == "The term of this Agreement is five years"


@pytest.mark.parametrize("name", SYSTEMS)
def test_system_target_error_includes_server_message(imitation, dataset, name):
    with imitation(name) as system:
        system.faults = (400,)
        [(_, reply)] = open_system_target(name, system.url).ask(dataset, dataset.cases[:1])
        assert reply.error.endswith("HTTP 400 Bad Request: not now") and reply.error.startswith("/"), reply.error
        system.faults = (401,)
        with pytest.raises(ToolkitError, match=r"the server does not accept the key: .*HTTP 401 Unauthorized: not now"):
            open_system_target(name, system.url).probe(dataset, dataset.cases)


FAILED = {"message": {"content": "Error from rag-server. Please check rag-server logs for more details."}}
STREAM_ERRORS = {
    "nvidia": systems.events({"choices": [FAILED]}),
    "openai responses": ['data: {"type": "response.failed", "response": {"error": {"message": "too much"}}}\n\n'],
}


@pytest.mark.parametrize("name", STREAM_ERRORS)
def test_system_target_returns_no_answer_after_error_in_stream(dataset, name):
    with imitating(lambda system, request: systems.StreamedReply(STREAM_ERRORS[name], SSE), dataset.cases) as system:
        target = open_system_target(name, system.url, retries=1)
        [(_, reply)] = target.ask(dataset, dataset.cases[:1])
    assert reply.answer is None and "the server reports an error: " in reply.error


def test_nvidia_target_error_explains_an_unknown_reply_format(dataset):
    with (
        imitating(lambda system, request: {"weather": "fine today"}, dataset.cases) as system,
        pytest.raises(ToolkitError, match=r"Sent: .* Received: no answer in the reply.*; its form is ") as caught,
    ):
        open_system_target("nvidia", system.url).probe(dataset, dataset.cases)
    assert "jmespath" not in str(caught.value)


UPLOADS = ("nvidia", "azure chat")


def uploads(system):
    return {
        asked.body["name"]: asked.body["text"]
        for asked in system.asked
        if isinstance(asked.body, dict) and "fields" in asked.body
    }


@pytest.mark.parametrize("name", UPLOADS)
def test_ingest_set_to_auto_uploads_the_whole_corpus(imitation, dataset, name):
    with imitation(name) as system:
        target = open_system_target(name, system.url, ingest="auto")
        assert target.probe(dataset, dataset.cases) == [] and not system.files
        ingestion = target.ingest(dataset)
        assert (ingestion.files, ingestion.set_aside) == (3, []) and ingestion.seconds > 0
        assert uploads(system) == {
            file: path.read_text(encoding="utf-8").strip() for file, path in dataset.files.items()
        }
        [(_, reply)] = target.ask(dataset, dataset.cases[:1])
        assert reply.passages and not reply.error


@pytest.mark.parametrize("name", UPLOADS)
def test_ingest_set_to_auto_uploads_only_missing_files(imitation, dataset, name):
    with imitation(name) as system:
        system.exists, system.files = True, {"alder.txt": "read", "other.txt": "read"}
        open_system_target(name, system.url, ingest="auto").ingest(dataset)
        assert list(uploads(system)) == ["birch.txt", "cedar.txt"]
        system.asked.clear()
        assert open_system_target(name, system.url, ingest="auto").ingest(dataset).seconds is None and not uploads(
            system
        )
        open_system_target(name, system.url, ingest="fresh").ingest(dataset)
        assert list(uploads(system)) == ["alder.txt", "birch.txt", "cedar.txt"]


@pytest.mark.parametrize("name", UPLOADS)
def test_ingest_skips_and_reports_unreadable_file(imitation, dataset, name):
    with imitation(name) as system:
        system.unreadable = ("birch.txt",)
        ingestion = open_system_target(name, system.url, ingest="auto", retries=1).ingest(dataset)
        assert ingestion.files == 2 and ingestion.set_aside[0].startswith("birch.txt: ")
        system.unreadable, system.files, system.exists = tuple(dataset.files), {}, False
        with pytest.raises(ToolkitError, match="none of the 3 files is ready in the system.* the reason: alder.txt: "):
            open_system_target(name, system.url, ingest="auto", retries=1).ingest(dataset)


@pytest.mark.parametrize("ingest", ["auto", "fresh"])
def test_ingest_is_rejected_for_system_without_uploads(imitation, dataset, ingest):
    with imitation("azure index") as system:
        with pytest.raises(ToolkitError, match="the target has no upload of documents; remove --ingest"):
            open_system_target("azure index", system.url, ingest=ingest)
        assert not system.asked


def test_ingest_names_setting_with_invalid_address(dataset):
    target = open_target("nvidia", TargetOptions(ingest="auto"), {"url": "http://x", "ingestor": "localhost:8082"})
    with pytest.raises(ToolkitError, match="^target_ingestor 'localhost:8082' is not an address"):
        target.ingest(dataset)


def test_ingest_returns_a_note_when_replies_have_no_passages(imitation, dataset):
    def without_citations(system, request):
        reply = systems.nvidia(system, request)
        return {**reply, "citations": {}} if request.path == "/v1/generate" else reply

    with imitation("nvidia") as system:
        system.handle = without_citations
        [note] = open_system_target("nvidia", system.url, ingest="auto").ingest(dataset).notes
    assert "the reply has no passages" in note


def test_evaluate_rag_uploads_corpus_and_asks_questions(imitation, dataset, tmp_path, capsys):
    with imitation("nvidia", True) as system:
        flags = ["--target", "nvidia", "--target-url", system.url, "--target-ingestor", system.url]
        common = ["--dataset-paths", str(dataset.root), "--output-dir", str(tmp_path / "out"), "--run-name", "run"]
        code = evaluate_rag.main([*common, *flags, "--ingest", "auto", "--report-cases", "0"])
        assert code == 0, capsys.readouterr().err
        assert system.answers == 1 + 9, "a probe and nine questions"
    rows = rows_of(tmp_path / "out" / "run" / "leases" / "eval_results.jsonl")
    assert all(row["scores"]["answer_f1"] in (1.0, None) and row["reply"]["selected"] == 1 for row in rows)


@pytest.mark.parametrize(
    ("target", "settings", "message"),
    [
        ("openai", {"collection": "vs_1"}, "target_model"),
        ("azure-search", {"index": "x"}, "'' is not an address"),
        ("http", {}, "'' is not an address; an example is http://localhost:8000/ask"),
        ("http", {"url": "ftp://x"}, "is not an address"),
        ("http", {"url": "localhost:1/ask"}, "is not an address"),
        ("http", {"url": "http://[::1"}, "is not an address"),
        ("http", {"response_answer_jmespath": "a["}, r"target_response_answer_jmespath: .*'a\[' is not JMESPath"),
        ("http", {"key": "NO_SUCH_KEY", "url": "http://x"}, "the environment has no variable NO_SUCH_KEY"),
        ("oracle", {}, "no target 'oracle'; the targets are azure, azure-search, builtin, http, nvidia, openai"),
        ("builtin", {"splitter": "axe"}, "no splitter 'axe'"),
        ("builtin", {"embedder": "crystal"}, "no embedder 'crystal'"),
        ("builtin", {"store": "attic"}, "no store 'attic'"),
    ],
)
def test_open_target_names_unknown_target_and_missing_or_invalid_setting(target, settings, message):
    options = TargetOptions(config=Config(**settings if target == "builtin" else {}))
    with pytest.raises(ToolkitError, match=message):
        open_target(target, options, {} if target == "builtin" else settings)


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setenv("AZURE_SEARCH_KEY", KEY)
    with imitating(reply_as_azure, []) as system:
        yield system


def test_inspect_lists_azure_documents_and_categories(service, capsys):
    address = f"{service.url}/indexes/guides"
    assert inspect([address, "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["document"], row["passages"]) for row in listed] == [(f"{stem}.txt", 6) for stem in PARTIES]
    assert inspect([address, "categories"]) == 0
    assert re.search(r"Commercial Court +2\nKing's Bench Division +1\n", capsys.readouterr().out)
    assert inspect([address, "list", "--json", "--category", "King's Bench Division"]) == 0
    assert [row["document"] for row in json.loads(capsys.readouterr().out)] == ["alder.txt"]
    assert inspect([address, "test"]) == 0


def test_inspect_export_writes_only_azure_search_results_of_the_given_category(service, tmp_path, capsys):
    out = tmp_path / "law.json"
    words = ["--query", "governed by the law", "--category", "Commercial Court", "--top", "2", "--out", str(out)]
    assert inspect([f"{service.url}/indexes/guides", "export", *words]) == 0
    exported = json.loads(out.read_text(encoding="utf-8"))
    assert exported["query"] == "governed by the law"
    assert [row["sourcefile"] for row in exported["results"]] == ["birch.txt", "cedar.txt"]
    assert all("governed by the law" in row["content"] for row in exported["results"])


def test_inspect_rejects_wrong_azure_index_or_key_without_showing_key(service, monkeypatch, capsys):
    assert inspect([f"{service.url}/indexes/none", "list"]) == 1
    assert "The index was not found" in capsys.readouterr().err
    monkeypatch.setenv("AZURE_SEARCH_KEY", "wrong-key-77aa")
    assert inspect([f"{service.url}/indexes/guides", "list"]) == 1
    assert "AZURE_SEARCH_KEY" in (told := capsys.readouterr().err) and "wrong-key-77aa" not in told
    monkeypatch.delenv("AZURE_SEARCH_KEY")
    assert inspect([f"{service.url}/indexes/guides", "list"]) == 1
    assert inspect([f"{service.url}/guides", "list"]) == 1


@pytest.mark.parametrize("llm", ["azure:gpt-4o", "openai:gpt-4o-mini"])
def test_azure_search_target_answers_from_retrieved_passages_with_llm(service, tmp_path, monkeypatch, llm):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", service.url)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "openai-key-11")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")
    bundle = write_bundle(tmp_path / "guides")
    own = ["--set", "target_index=guides", "--set", "target_key=AZURE_SEARCH_KEY"]
    name = "azure" if llm.startswith("azure") else "azure-search"  # with an index, `azure` is a search service
    flags = ["--target", name, "--target-url", service.url, *own]
    where = ["--output-dir", str(tmp_path / "results"), "--run-name", "direct"]
    assert evaluate_rag.main([str(bundle), *flags, "--llm", llm, "--set", "k=3", *where]) == 0
    rows = rows_of(tmp_path / "results" / "direct" / "guides" / "eval_results.jsonl")
    law = next(row for row in rows if row["question"] == "Which law governs the agreement of Birch Inc.?")
    assert len(rows) == 9 and not any(row["reply"]["error"] for row in rows) and law["scores"]["answer_f1"] > 0.9
    assert "governed by the law of Ohio" in law["reply"]["answer"]
    assert law["reply"]["passages"][0]["filename"] == "birch.txt"
    direct = json.loads((tmp_path / "results/direct/direct_evaluation_results.json").read_text(encoding="utf-8"))
    assert direct["overall"]["count"] == len(direct["results"]) == 9 and direct["overall"]["failed"] == 0
    assert next(row["sources"][0] for row in direct["results"] if row["question"] == law["question"]) == "birch.txt"
    asked = [request for request in service.asked if request.path.endswith("/chat/completions")]
    azure = llm.startswith("azure")
    assert {request.path for request in asked} == {
        "/openai/deployments/gpt-4o/chat/completions" if azure else "/v1/chat/completions"
    }
    config = json.loads((tmp_path / "results" / "direct" / "config.json").read_text(encoding="utf-8"))
    assert config["llm"] == llm
