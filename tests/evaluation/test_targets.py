"""Systems under test: our pipeline, Python functions, and a server with every fault."""

import asyncio
import re
import time
import unicodedata
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from exhibit.evaluation.cases import Passage, Reply
from exhibit.evaluation.placement import Documents
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.evaluation.targets.builtin import renumber
from exhibit.evidence import Span
from exhibit.models.embedders.hashing import Hashing
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from exhibit.schemas.errors import LimitError, ToolkitError
from tests.evaluation.loopback import SECRET, chat


def ask(target, dataset, cases=None):
    cases = dataset.cases if cases is None else cases
    replies = dict(target.ask(dataset, cases))
    assert sorted(replies) == list(range(len(cases)))
    return [replies[position] for position in range(len(cases))]


@pytest.fixture
def builtin(tmp_path):
    def make(**options):
        config = Config.preset("rcts", chunk_size=120, **options.pop("config", {}))
        options = {"cache": tmp_path / "cache", "threads": 1, "embedder": Hashing(256), **options}
        return open_target("builtin", TargetOptions(config=config, **options))

    return make


def test_builtin_target_answers_and_cites_passages_by_rank(builtin, dataset):
    target = builtin()
    ingestion = target.ingest(dataset)
    assert (ingestion.files, ingestion.set_aside) == (3, []) and ingestion.chunks > 6
    reply = ask(target, dataset)[3]
    number = int(re.search(r"\[(\d+)\]", reply.answer)[1])
    quote = re.search(r"“(.{30})", reply.answer)[1]
    assert quote in reply.passages[number - 1].text and reply.seconds > 0
    assert 1 <= reply.selected <= 6 < len(reply.passages)
    text = dataset.documents.get(reply.passages[0].filename).text
    span = reply.passages[0].span
    assert reply.passages[0].text == text[span.start : span.end]


def test_builtin_target_without_answers_returns_only_passages(builtin, dataset):
    target = builtin(answers=False)
    target.ingest(dataset)
    replies = ask(target, dataset)
    assert all(reply.answer is None and reply.passages and not reply.error for reply in replies)


def test_builtin_target_reuses_index_until_settings_or_documents_change(builtin, dataset, tmp_path):
    first = builtin()
    ingestion = first.ingest(dataset)
    folder = first.index_folder(dataset)
    before = (folder / "manifest.json").stat().st_mtime_ns
    again = builtin().ingest(dataset)
    assert (again.files, again.pages, again.chunks) == (ingestion.files, ingestion.pages, ingestion.chunks)
    assert again.seconds is again.pages_per_second is None and not again.set_aside
    assert (folder / "manifest.json").stat().st_mtime_ns == before
    builtin(ingest="fresh").ingest(dataset)
    assert (folder / "manifest.json").stat().st_mtime_ns > before
    assert builtin(config={"augment": "summary"}).index_folder(dataset) != folder
    assert builtin(embedder=Hashing(64)).index_folder(dataset) != folder
    dataset.files["birch.txt"].write_text("LEASE\n\nNow quite another document.", encoding="utf-8")
    assert builtin().index_folder(dataset) != folder


def test_builtin_target_retries_documents_that_exceeded_a_limit(builtin, dataset, monkeypatch):
    read = Preparation.__call__

    def exceed_limit(preparation, path):
        if path.name == "birch.txt":
            raise LimitError(f"{path}: left out, because it took more than 120 s; raise --item-timeout")
        return read(preparation, path)

    with monkeypatch.context() as patch:
        patch.setattr(Preparation, "__call__", exceed_limit)
        for _ in range(2):  # the index is built in the first run and opened in the second: both are too slow
            [reason] = builtin(engine="serial").ingest(dataset).set_aside
            assert reason == "birch.txt: left out, because it took more than 120 s; raise --item-timeout"
    whole = builtin()
    assert not whole.ingest(dataset).set_aside and whole.text("birch.txt")
    assert not builtin().ingest(dataset).set_aside


def test_builtin_target_names_unreadable_document_but_not_its_folder(builtin, dataset, tmp_path):
    dataset.files["birch.txt"].write_text("  ")
    [reason] = builtin().ingest(dataset).set_aside
    assert reason.startswith("birch.txt: no words in it") and str(tmp_path) not in reason


def test_renumber_replaces_citation_numbers_with_ranks():
    assert renumber("So it is [1][2]. And so [3], as clause 2 says.", {1: 1, 2: 3, 3: 4}) == (
        "So it is [1][3]. And so [4], as clause 2 says."
    )
    assert renumber("So [1].", {1: 1}) == "So [1]."


@pytest.fixture
def http(server, monkeypatch):
    common = ("timeout", "threads", "retries", "backoff")

    def make(**more):
        options = {"timeout": 60.0, "threads": 3, "backoff": 0.01, **{k: more.pop(k) for k in common if k in more}}
        return open_target("http", TargetOptions(**options), {"url": server.url, **more})

    return make


FAULTS = {
    "an HTTP error with HTML": ((400, b"<h1>Bad</h1> &amp; wrong"), "HTTP 400 Bad Request: Bad & wrong"),
    "an HTTP error with JSON": ((422, {"detail": [{"msg": "question too long"}]}), "HTTP 422 Unprocessable"),
    "a redirect": (302, "HTTP 302 Found"),
    "HTML instead of JSON": (b"<html>down for repairs", "the reply is not JSON: down for repairs"),
    "an empty body": (b"", "the reply is empty"),
    "an array": ([1, 2], "no answer in the reply; its form is [2 × number]"),
    "a number": (b"7", "no answer in the reply; its form is number"),
    "no answer": ({"message": {}}, "no answer in the reply; its form is {message: {}}"),
    "a blank answer": (chat("  ", []), "no answer in the reply"),
    "an answer of another type": (chat({"a": 1}, []), "no answer in the reply"),  # type: ignore[arg-type]
    "passages that are a number": (chat("x", 7), "passages are int, not a list"),
    "a passage that is a number": (chat("x", [7]), "a passage is int"),
    "an error": ({"error": {"message": f"no such key {SECRET}"}}, "the server reports an error: no such key ***"),
    "JSON nested too deeply": (b"[" * 100_000, "the reply is not JSON"),
    "cut off": ("cut", "the connection broke (RemoteProtocolError) (asked 3 times)"),
    "a server that never replies": ("hang", "no complete reply within 0.3 s (--timeout)"),
    "a server that replies too slowly": ("drip", "no complete reply within 0.3 s (--timeout)"),
    "drops of a header": ("drip headers", "no complete reply within 0.3 s (--timeout)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_http_target_error_fails_only_its_question(http, server, dataset, fault):
    wrong, message = FAULTS[fault]
    bad = dataset.cases[1].question
    server.reply = lambda question: wrong if question == bad else chat("fine", [])
    # no other questions, because a short timeout might be too short for them
    if wrong in ("hang", "drip", "drip headers"):
        [slow] = ask(http(timeout=0.3), dataset, dataset.cases[1:2])
        assert slow.error == message and slow.answer is None
        return
    replies = ask(http(timeout=60.0, retries=2), dataset, dataset.cases[:3])
    assert replies[1].error.startswith(message) and replies[1].answer is None
    assert [reply.answer for reply in (replies[0], replies[2])] == ["fine", "fine"]


@pytest.mark.parametrize("blank", [{"answer": ""}, {"answer": None}, chat("  ", []), chat(None, [])])
def test_empty_or_null_answer_of_a_server_is_not_an_error(http, server, dataset, blank):
    answer = {"answer": "fine"} if "answer" in blank else chat("fine", [])
    server.reply = lambda question: blank if question == dataset.cases[-1].question else answer
    target = http()
    target.probe(dataset, dataset.cases[:-1])
    replies = ask(target, dataset, [dataset.cases[0], dataset.cases[-1]])
    assert [(reply.answer, reply.error) for reply in replies] == [("fine", ""), ("", "")]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, "cut"])
def test_latency_excludes_the_wait_for_a_busy_server(http, server, dataset, status):
    question = dataset.cases[0].question
    server.reply = lambda asked: status if server.questions.count(question) < 3 else chat("at last", [])
    server.headers["Retry-After"] = "0.2"
    began = time.monotonic()
    [reply] = ask(http(retries=2, backoff=0.1 if status == "cut" else 40.0), dataset, dataset.cases[:1])
    assert reply.answer == "at last" and server.questions == [question] * 3
    assert reply.seconds < time.monotonic() - began - 0.3, "pauses of 0.3 or 0.4 s are excluded"


def test_http_target_fails_question_when_server_stays_busy(http, server, dataset):
    server.reply = lambda asked: 429
    [reply] = ask(http(retries=2, backoff=0.01), dataset, dataset.cases[:1])
    assert reply.error == "HTTP 429 Too Many Requests (asked 3 times)" and len(server.questions) == 3
    server.headers["Retry-After"] = "3600"
    [reply] = ask(http(retries=2, backoff=0.01), dataset, dataset.cases[:1])
    assert reply.error == "HTTP 429 Too Many Requests" and len(server.questions) == 4, "no time for another retry"


def test_http_target_stops_retrying_when_server_was_busy_for_several_questions(http, server, dataset):
    server.reply = lambda asked: 503
    target = http(retries=1, backoff=0.01, threads=1)
    assert all(reply.error.startswith("HTTP 503") for reply in ask(target, dataset, dataset.cases[:6]))
    assert len(server.questions) == 3 * 2 + 3
    server.reply = lambda asked: chat("back", [])
    assert [reply.answer for reply in ask(target, dataset, dataset.cases[:1])] == ["back"]


def test_http_target_error_for_unreachable_server_omits_query_string(http, dataset):
    target = http(url="http://127.0.0.1:9/ask?code=planted-4f9a1c77", retries=1)
    [reply] = ask(target, dataset, dataset.cases[:1])
    assert reply.error.startswith("no server answers at http://127.0.0.1:9/ask: ") and "planted" not in reply.error
    assert reply.error.endswith("(asked 2 times)")
    with pytest.raises(ToolkitError, match="no server answers at http://127.0.0.1:9/ask.* Is the server running"):
        target.probe(dataset, dataset.cases)


def test_http_target_reads_headers_from_environment(http, server, dataset, monkeypatch):
    monkeypatch.setenv("THEIR_TOKEN", SECRET)
    ask(http(header={"Authorization": "THEIR_TOKEN"}), dataset, dataset.cases[:1])
    assert server.asked[-1].headers["Authorization"] == SECRET
    with pytest.raises(ToolkitError, match="the environment has no variable NO_SUCH"):
        http(header={"X": "NO_SUCH"})
    monkeypatch.setenv("THEIR_TOKEN", f"{SECRET}\n")
    with pytest.raises(ToolkitError, match="THEIR_TOKEN must have only printable ASCII") as caught:
        http(header={"X": "THEIR_TOKEN"})
    assert SECRET not in str(caught.value)


def test_documents_find_a_file_whose_name_is_spelled_differently(tmp_path):
    for name in ("Part 36.pdf", "lease.pdf", "lease.txt", "Élan.txt"):
        (tmp_path / name).touch()
    documents = Documents({path.name: path for path in tmp_path.iterdir()})
    spellings = ("Part 36.pdf", "part 36", "corpus/Part 36.pdf", "Part 36#page=Offers to Settle", "Part 36.pdf#page=3")
    spellings += ("https://files.example/in/Part%2036.pdf?sig=a%2Fb#page=3", "C:\\in\\Part 36.pdf", "PART 36.PDF")
    for name in (*spellings, "Part 36.pdf.pdf", "Part%252036.pdf"):
        assert documents.named(name) == "Part 36.pdf", name
    assert documents.named(unicodedata.normalize("NFD", "Élan.txt")) == "Élan.txt"
    assert documents.named("lease") is None and documents.named("lease.txt") == "lease.txt"
    cased = Documents({name: tmp_path / name for name in ("Case.txt", "case.txt")})
    assert [cased.named(name) for name in ("case.txt", "a/Case.txt", "CASE.TXT")] == ["case.txt", "Case.txt", None]


def ask_function(function, dataset, cases=None, **options):
    target = open_target("function", TargetOptions(function=function, **options))
    return ask(target, dataset, dataset.cases[:1] if cases is None else cases)


@dataclass
class Document:
    """A document with the attributes of LangChain's class."""

    page_content: str
    metadata: dict[str, object]


RESULTS = {
    "text": "Norway.",
    "mapping": {"answer": "Norway.", "passages": [{"filename": "alder.txt", "text": "the law of Norway"}]},
    "pair": ("Norway.", ["alder.txt: the law of Norway"]),
    "object": SimpleNamespace(answer="Norway.", passages=(Passage("the law of Norway", "alder.txt", Span(3, 9)),)),
    "chain": {"answer": "Norway.", "context": [Document("the law of Norway", {"source": "docs/alder.txt", "page": 0})]},
    "reply": Reply("Norway.", (Passage("the law of Norway", "alder.txt"),)),
    "index": SimpleNamespace(
        response="Norway.",
        source_nodes=[SimpleNamespace(node=Document("", {"file_name": "alder.txt"}), text="the law of Norway")],
    ),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_function_target_accepts_all_supported_return_types(dataset, kind):
    [reply] = ask_function(lambda question: RESULTS[kind], dataset)
    assert reply.answer == "Norway." and not reply.error and reply.seconds >= 0
    if kind != "text":
        assert (reply.passages[0].filename, reply.passages[0].text) == ("alder.txt", "the law of Norway")


def test_function_target_runs_async_calls_in_a_single_event_loop(dataset):
    together = asyncio.Event()
    loops, waiting = set(), []

    async def answer(question: str) -> str:
        loops.add(asyncio.get_running_loop())
        waiting.append(question)
        if len(waiting) == 3:
            together.set()
        await asyncio.wait_for(together.wait(), 60)
        return f"re: {question}"

    replies = ask_function(answer, dataset, dataset.cases[:3], threads=3)
    assert [reply.answer for reply in replies] == [f"re: {case.question}" for case in dataset.cases[:3]]
    assert len(loops) == 1


def test_function_target_passes_as_of_date_to_functions_that_accept_as_of(dataset):
    seen = []

    def answer(question, *, as_of=None):
        seen.append((question, as_of))
        return "x"

    ask_function(answer, dataset, [replace(dataset.cases[0], labels={"as_of": "2021-01-01"})])
    assert seen == [(dataset.cases[0].question, "2021-01-01")]


@pytest.mark.parametrize(("wrong", "message"), [
    (None, "but returned null"), (7, "but returned number"), ({"colour": "red"}, "but returned {colour: text}"),
    ({"answer": None, "passages": [], "output": {}}, "but returned"),
    ({"answer": "x", "passages": 7}, "passages are int, not a list"), (KeyError("answers"), "KeyError: 'answers'"),
])  # fmt: skip
def test_function_target_error_fails_only_its_question(dataset, wrong, message):
    def answer(question):
        if question == dataset.cases[1].question:
            if isinstance(wrong, Exception):
                raise wrong
            return wrong
        return "fine"

    replies = ask_function(answer, dataset, dataset.cases[:3])
    assert message in replies[1].error and [replies[0].answer, replies[2].answer] == ["fine", "fine"]


def test_empty_answer_of_a_function_is_a_reply_without_error(dataset):
    [reply] = ask_function(lambda question: {"answer": " ", "passages": []}, dataset, dataset.cases[:1])
    assert (reply.answer, reply.error) == ("", "")


def test_function_target_times_out_async_function_that_never_ends(dataset):
    async def answer(question):
        await asyncio.Event().wait()

    [reply] = ask_function(answer, dataset, timeout=0.1)
    assert reply.error == "no complete reply within 0.1 s (--timeout)"


def test_function_target_probe_tries_other_questions_after_failure(dataset):
    asked = []

    def answer(question):
        asked.append(question)
        if len(asked) == 1:
            raise RuntimeError("cold")
        return "warm"

    target = open_target("function", TargetOptions(function=answer))
    [note] = target.probe(dataset, dataset.cases)
    assert len(asked) == 2 and "the reply has no passages" in note
    target = open_target("function", TargetOptions(function=lambda: None))
    with pytest.raises(ToolkitError, match="none of 5 questions was answered. The first error: TypeError"):
        target.probe(dataset, dataset.cases)
    with pytest.raises(ToolkitError, match="--target function works from Python only"):
        open_target("function", TargetOptions())
