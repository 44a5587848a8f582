"""A language model on a server: every fault becomes an error, nothing is requested twice, the key stays secret."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from exhibit.models.endpoint import Budget, CapError, Prices
from exhibit.models.llms import Completion, Prompt, azure, openai
from exhibit.models.llms.openai import OpenAI, ServerOptions
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import ServiceError, ToolkitError
from tests.models.openai_server import KEY, chat, serve_openai


@pytest.fixture
def server(monkeypatch):
    with serve_openai() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield running


@pytest.fixture
def waits() -> list[float]:
    """Record the pauses without waiting."""
    return []


@pytest.fixture
def llm(server, waits):
    """A function that opens a model whose pauses are only recorded."""
    opened = []

    def make(**options: object) -> OpenAI:
        opened.append(OpenAI("tiny", ServerOptions(**options), wait=waits.append))
        return opened[-1]

    yield make
    for model in opened:
        model.close()


def ask(model: OpenAI, *users: str, max_tokens: int = 50) -> list[Completion]:
    return model.complete([Prompt(user, "Be brief.") for user in users], max_tokens=max_tokens, temperature=0.0)


# ---------------------------------------------------------------- the usual


def test_a_prompt_becomes_a_chat_and_its_reply_a_completion(llm, server):
    (reply,) = ask(llm(), "Who pays?")
    assert (reply.text, reply.error, reply.tokens_in, reply.tokens_out) == ("echo: Who pays?", "", 100, 10)
    assert server.asked == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who pays?"}],
            "max_tokens": 50,
            "temperature": 0.0,
        }
    ]
    assert server.headers[0]["path"] == "/v1/chat/completions"
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_many_prompts_run_at_once_and_come_back_in_order(llm, server):
    together = threading.Barrier(4, timeout=120)

    def reply(prompt: str) -> str:
        together.wait()  # nobody is answered before four have asked
        return prompt.upper()

    server.reply = reply
    replies = ask(llm(concurrency=4), *(f"p{n}" for n in range(12)))
    assert [reply.text for reply in replies] == [f"P{n}" for n in range(12)]


def test_no_prompts_ask_nothing(llm, server):
    assert ask(llm()) == [] and server.asked == []


def test_a_lone_surrogate_and_other_odd_characters_pass(llm, server):
    (reply,) = ask(llm(), "broken \ud800 pdf — ‘quoted’ \0")
    assert not reply.error and server.prompts == ["broken \ufffd pdf — ‘quoted’ \0"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (chat("<think>Hm, who pays?\nTenant.</think>\n\nThe tenant [1]."), "The tenant [1]."),
        (chat([{"type": "text", "text": "The "}, {"type": "text", "text": "tenant."}]), "The tenant."),
    ],
)
def test_replies_in_parts_and_with_thoughts_are_read(llm, server, body, text):
    server.faults = {"q": [body]}
    assert ask(llm(), "q")[0].text == text


def rejected(name: str) -> dict[str, object]:
    return {"status": 400, "body": {"error": {"message": f"no {name}", "param": name}}}


def test_models_that_refuse_a_parameter_are_asked_in_their_own_way(llm, server):
    server.faults = {"q": [rejected("max_tokens"), rejected("temperature")]}
    model = llm(retries=0)
    assert [reply.text for reply in (*ask(model, "q"), *ask(model, "q2"))] == ["echo: q", "echo: q2"]
    for body in server.asked[2:]:
        assert body["max_completion_tokens"] == 50 and not {"max_tokens", "temperature"} & set(body)
    server.faults = {"q": [rejected("messages")]}
    assert "no messages" in ask(model, "q")[0].error


def test_requests_in_flight_when_a_parameter_is_first_refused_are_all_sent_again(llm, server, monkeypatch):
    users = [f"q{number}" for number in range(8)]
    sent = threading.Barrier(len(users))

    def refuse_first(prompt: str) -> dict[str, object] | None:
        if server.prompts.count(prompt) > 1:
            return None
        sent.wait(60)
        return rejected("max_tokens")

    monkeypatch.setattr(server, "fault_for", refuse_first)
    replies = ask(llm(retries=0), *users)
    assert [reply.text or reply.error for reply in replies] == [f"echo: {user}" for user in users]
    assert sum("max_tokens" in body for body in server.asked) == len(users) == len(server.asked) / 2
    monkeypatch.setattr(server, "fault_for", lambda prompt: rejected("max_tokens"))
    assert "no max_tokens" in ask(llm(retries=0), "again")[0].error, "a server that refuses what it was not sent"


SCHEMA = '{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}'


def test_a_reply_is_held_to_a_schema_where_the_server_can(llm, server):
    server.reply = lambda prompt: '{"title": "Lease"}'
    (reply,) = llm().complete([Prompt("Name it.", schema=SCHEMA)], max_tokens=50, temperature=0.0)
    assert reply.text == '{"title": "Lease"}'
    shape = {"name": "reply", "schema": json.loads(SCHEMA), "strict": True}
    assert server.asked[0]["response_format"] == {"type": "json_schema", "json_schema": shape}
    server.faults = {"Name": [{"status": 400, "body": {"error": {"message": "what?", "param": "response_format"}}}]}
    (reply,) = llm().complete([Prompt("Name it.", schema=SCHEMA)], max_tokens=50, temperature=0.0)
    assert reply.text and "response_format" not in server.asked[-1], "a server that knows no schemas is asked without"


def test_a_schema_is_part_of_what_was_asked(llm, server, tmp_path):
    model = llm(cache=tmp_path)
    for schema in ("", SCHEMA, SCHEMA):
        model.complete([Prompt("a", schema=schema)], max_tokens=50, temperature=0.0)
    assert len(server.asked) == 2


def test_words_are_heard_as_they_come(llm, server, tmp_path):
    heard: list[str] = []
    model = llm(heard=heard.append, cache=tmp_path)
    (reply,) = ask(model, "Who pays the rent?")
    assert heard == ["echo:", " Who", " pays", " the", " rent?"]
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("echo: Who pays the rent?", 100, 10)
    assert server.asked[0]["stream"] is True and server.asked[0]["stream_options"] == {"include_usage": True}
    (again,) = ask(model, "Who pays the rent?")
    assert again.cached and heard[5:] == ["echo: Who pays the rent?"] and len(server.asked) == 1


@pytest.mark.parametrize(
    ("fault", "message"), [("cut", "ended after 5 characters"), (500, "HTTP 500"), ("hang", "no reply within")]
)
def test_a_stream_that_fails_is_an_error(llm, server, fault, message):
    server.faults = {"q": [fault]}
    (reply,) = ask(llm(heard=str, retries=0, timeout=30 if fault != "hang" else 0.15), "q")
    assert message in reply.error and reply.text == ""


def test_a_stream_that_drips_for_ever_is_given_up(llm, server):
    server.faults = {"q": ["drip"]}
    assert "no reply within 0.15 s" in ask(llm(heard=str, retries=0, timeout=0.15), "q")[0].error


def test_the_server_learns_nothing_of_this_machine(llm, server):
    ask(llm(), "q")
    assert not [name for name in server.headers[0] if name.startswith("X-Stainless")]


# ---------------------------------------------------------------- Azure


@pytest.fixture
def deployment(server, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1"))
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    return server


def test_azure_is_asked_by_deployment_version_and_key(deployment, monkeypatch):
    model = azure.open("tiny-eu", {})
    (reply,) = ask(model, "Who pays?")
    assert model.name == "azure:tiny-eu" and reply.text == "echo: Who pays?"
    headers = deployment.headers[0]
    assert headers["path"] == "/openai/deployments/tiny-eu/chat/completions?api-version=2024-10-21"
    assert headers["Api-Key"] == KEY and "Authorization" not in headers
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "token-of-entra")
    ask(azure.open("tiny-eu", {}), "Who pays?")
    assert deployment.headers[1]["Authorization"] == "Bearer token-of-entra"


def test_azures_key_is_in_no_error(deployment):
    deployment.faults = {"q": [401], "r": [400]}
    replies = ask(azure.open("tiny-eu", {"retries": 0}), "q", "r")
    assert "check AZURE_OPENAI_API_KEY" in replies[0].error and KEY not in str(replies) and KEY[-4:] not in str(replies)


@pytest.mark.parametrize("missing", ["AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_API_KEY"])
def test_azure_says_what_is_missing(deployment, monkeypatch, missing):
    monkeypatch.delenv(missing)
    with pytest.raises(ServiceError, match=f"azure needs {missing}"):
        azure.open("tiny-eu", {})
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(ToolkitError, match="no deployment is named"):
        azure.open(None, {})


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("fault", [409, 429, 500, 503, "nonsense", "blank", "array", "nothing"])
def test_passing_faults_are_tried_again(llm, server, waits, fault):
    server.faults = {"q": [fault, fault]}
    (reply,) = ask(llm(backoff=1.0), "q")
    assert reply.text == "echo: q" and len(server.asked) == 3
    first, second = waits
    assert 0.7 < first < 1.3 and 1.4 < second < 2.6  # twice as long, spread by a quarter


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (429, "HTTP 429 Too Many Requests"),
        (500, "HTTP 500 Internal Server Error"),
        ("nonsense", "not JSON"),
        ("blank", "sent nothing"),
        ("array", "not JSON"),
        ("nothing", "no reply"),
    ],
)
def test_faults_that_last_become_errors(llm, server, fault, message):
    server.faults = {"q": [fault] * 9}
    (reply,) = ask(llm(retries=2), "q")
    assert message in reply.error and "tried 3 times" in reply.error
    assert reply.text == "" and len(server.asked) == 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (401, "check OPENAI_API_KEY"),
        (404, "HTTP 404"),
        ({"choices": []}, "no choices"),
        ({"choices": [7]}, "no choices"),
        ({}, "no choices"),
        (chat(None), "empty reply"),
        (chat("", finish_reason="length"), "max_tokens was reached"),
        (chat("  "), "empty reply"),
        (
            {"choices": [{"message": {"content": None, "refusal": "I would rather not"}}]},
            "declined: I would rather not",
        ),
        ({"error": {"message": "the model is asleep"}}, "the model is asleep"),
        ({"status": 429, "body": {"error": {"message": "pay first", "code": "insufficient_quota"}}}, "pay first"),
    ],
)
def test_faults_that_will_not_pass_are_not_tried_again(llm, server, waits, fault, message):
    server.faults = {"q": [fault]}
    (reply,) = ask(llm(), "q")
    assert message in reply.error and reply.text == ""
    assert len(server.asked) == 1 and waits == []


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_a_server_that_never_ends_is_given_up(llm, server, fault):
    server.faults = {"q": [fault]}
    (reply,) = ask(llm(timeout=0.15, retries=0), "q")
    assert "no reply within 0.15 s" in reply.error


def test_all_tries_together_have_the_seconds_that_a_prompt_may_take(llm, server):
    server.faults = {"q": ["hang"] * 9}
    (reply,) = ask(llm(timeout=60, total=0.3, retries=4, backoff=0.01), "q")
    assert "no reply within 0.3 s" in reply.error and len(server.asked) <= 1


def test_a_pipelines_language_model_has_the_seconds_that_the_user_gives(server, tmp_path):
    server.faults = {"q": ["hang"] * 9}
    pipeline = Pipeline(Config(llm="openai:tiny"), cache=tmp_path, timeout=0.3)
    (reply,) = ask(pipeline.llm, "q")
    assert "no reply within 0.3 s" in reply.error and len(server.asked) <= 1


def test_a_server_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    model = OpenAI("tiny", ServerOptions(retries=1), wait=lambda seconds: None)
    assert "http://127.0.0.1:9/v1/: no reply" in ask(model, "q")[0].error


def test_retry_after_is_honoured_in_seconds_and_as_a_date(llm, server, waits):
    server.faults, server.retry_after = {"q": [429]}, "7"
    ask(llm(), "q")
    assert waits == [pytest.approx(7, abs=0.5)]
    server.faults["q"] = [503]
    server.retry_after = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    ask(llm(), "q")
    assert waits[1:] == [pytest.approx(30, abs=2)]
    server.faults["q"], server.retry_after = [429], "soon"
    ask(llm(backoff=1), "q")
    assert waits[2:] == [pytest.approx(1, abs=0.3)]


def test_a_server_that_asks_for_hours_is_not_waited_for(llm, server, waits):
    server.faults, server.retry_after = {"q": [429]}, "3600"
    (reply,) = ask(llm(), "q")
    assert "asks to wait 3600 s" in reply.error and waits == []


def test_too_busy_for_one_is_too_busy_for_all(llm, server, waits):
    server.faults, server.retry_after = {"first": [429]}, "50"
    model = llm(concurrency=1)
    ask(model, "first", "second")
    assert waits and max(waits) == pytest.approx(50, abs=1)
    assert len(waits) == 2, "the retry waits, and so does the prompt behind it"


def test_some_failures_among_many_leave_the_rest(llm, server):
    server.faults = {"p3": [500] * 9, "p5": ["nothing"], "p7": [{"choices": []}], "p8": ["nonsense"] * 9}
    replies = ask(llm(retries=1), *(f"<p{n}>" for n in range(12)))
    assert [n for n, reply in enumerate(replies) if reply.error] == [3, 7, 8]
    assert all(reply.text == f"echo: <p{n}>" for n, reply in enumerate(replies) if not reply.error)


# ---------------------------------------------------------------- the cache


def test_what_was_asked_before_is_not_asked_again(llm, server, tmp_path):
    def slowly(prompt: str) -> str:
        time.sleep(0.2)  # the twin is on its way long before there is anything to find in the cache
        return f"echo: {prompt}"

    server.reply = slowly
    first = ask(llm(cache=tmp_path), "a", "b", "a")
    assert sorted(server.prompts) == ["a", "b"], "twins are asked once"
    second = ask(llm(cache=tmp_path), "b", "a")
    assert len(server.asked) == 2
    assert [(reply.text, reply.cached, reply.tokens_in) for reply in second] == [
        ("echo: b", True, 100),
        ("echo: a", True, 100),
    ]
    assert first[0].text == first[2].text == "echo: a" and not first[0].cached
    assert not list(tmp_path.rglob("*.partial"))


def test_another_model_prompt_or_parameter_is_another_question(llm, server, tmp_path, monkeypatch):
    model = llm(cache=tmp_path)
    ask(model, "a")
    ask(model, "a", max_tokens=51)
    model.complete([Prompt("a", "Be brief.")], max_tokens=50, temperature=0.5)
    model.complete([Prompt("a", "Be long.")], max_tokens=50, temperature=0.0)
    other = OpenAI("large", ServerOptions(cache=tmp_path))
    ask(other, "a")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("127.0.0.1", "localhost"))
    ask(OpenAI("tiny", ServerOptions(cache=tmp_path)), "a")
    assert len(server.asked) == 6


def test_failures_are_not_kept_and_damaged_files_are_asked_anew(llm, server, tmp_path):
    server.faults = {"a": [404]}
    assert ask(llm(cache=tmp_path), "a")[0].error
    assert ask(llm(cache=tmp_path), "a")[0].text == "echo: a"
    (kept,) = tmp_path.rglob("*.sqlite")
    with closing(sqlite3.connect(kept)) as database, database:
        database.execute("UPDATE kept SET value = '[\"half'")
    assert not ask(llm(cache=tmp_path), "a")[0].cached
    assert ask(llm(cache=tmp_path), "a")[0].cached


# ---------------------------------------------------------------- caps


def test_no_more_requests_than_allowed_go_out(llm, server, tmp_path):
    model = llm(max_requests=3, concurrency=2)
    replies = ask(model, *"abcde")
    assert len(server.asked) == 3
    assert [bool(reply.text) for reply in replies].count(True) == 3
    assert all("limit of 3 requests" in reply.error for reply in replies if not reply.text)


def test_retries_count_and_the_cache_is_free(llm, server, tmp_path):
    ask(llm(cache=tmp_path), "kept")
    server.faults = {"q": [500] * 9}
    replies = ask(llm(max_requests=2, cache=tmp_path, concurrency=1), "q", "kept")
    assert "limit of 2 requests" in replies[0].error and replies[1].text == "echo: kept"
    assert len(server.asked) == 3


def test_cost_never_passes_its_cap(llm, server):
    # a request took 100 tokens in and 10 out: 0.0012; its worst case, with 50 out, is about 0.005
    model = llm(max_cost=0.01, prices={"tiny": (2.0, 100.0)}, concurrency=4)
    replies = ask(model, *(f"p{n}" for n in range(30)))
    answered = [reply for reply in replies if reply.text]
    assert model.budget.spent == pytest.approx(0.0012 * len(answered))
    assert 0 < model.budget.spent <= 0.01 and 3 <= len(answered) < 9
    assert all("limit max_cost = 0.01" in reply.error for reply in replies if not reply.text)


def test_a_refused_request_costs_nothing_and_a_lost_one_its_worst_case(llm, server):
    prices = {"max_cost": 100, "prices": {"tiny": (1.0, 1000.0)}, "retries": 0}
    server.faults = {"refused": [500], "lost": ["hang"]}
    model = llm(**prices)
    ask(model, "refused")
    assert model.budget.spent == 0
    model = llm(**prices, timeout=0.15)  # a reply that never comes is given up whatever the machine is doing
    ask(model, "lost")
    assert model.budget.spent == pytest.approx(0.05, abs=0.001)


def test_usage_that_is_not_given_is_estimated(llm, server):
    server.usage = None
    (reply,) = ask(llm(), "How long is the initial term?")
    assert 5 < reply.tokens_in < 20 and 5 < reply.tokens_out < 20
    server.usage = {"prompt_tokens": 0, "completion_tokens": 0}
    (reply,) = ask(llm(), "How long is the initial term?")
    assert (reply.tokens_in, reply.tokens_out) == (0, 0), "what the server says counts"
    server.usage = {"prompt_tokens": -1, "completion_tokens": "many"}
    (reply,) = ask(llm(), "How long is the initial term?")
    assert 5 < reply.tokens_in < 20 and 5 < reply.tokens_out < 20


def test_a_cap_of_nothing_asks_nothing(llm, server):
    assert "limit of 0 requests" in ask(llm(max_requests=0), "q")[0].error
    assert server.asked == []


def test_the_budget_waits_for_what_is_in_flight():
    budget = Budget(max_requests=None, max_cost=1.0, prices=Prices(tokens_out=1_000_000))
    admitted = threading.Event()

    def second() -> None:
        with budget.reserve_request(tokens_in=0, tokens_out=1) as receipt:
            admitted.set()
            receipt.cost = 0.5

    with budget.reserve_request(tokens_in=0, tokens_out=1) as receipt:
        thread = threading.Thread(target=second)
        thread.start()
        assert not admitted.wait(0.05)
        receipt.cost = 0.0
    thread.join(120)
    assert admitted.is_set() and budget.spent == 0.5
    with pytest.raises(CapError, match="0.500000 is spent"), budget.reserve_request(tokens_in=0, tokens_out=1):
        pass


# ---------------------------------------------------------------- the key, and set-up


def test_the_key_is_in_no_output(llm, server, tmp_path, caplog, capsys, monkeypatch):
    caplog.set_level(logging.DEBUG)
    server.reply = lambda prompt: f"Your key is {KEY}."
    server.faults = {
        "e400": [400],
        "e401": [401],
        "e429": [429] * 9,
        "e500": [500] * 9,
        "odd": [{"error": f"bad {KEY}"}],
    }
    model = llm(cache=tmp_path, retries=1)
    replies = ask(model, "fine", "e400", "e401", "e429", "e500", "odd")
    assert sum(bool(reply.error) for reply in replies) == 5
    kept = [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*.sqlite*")]
    assert sum(one.count("Your key is ***.") for one in kept) == 1
    said = "\n".join([*map(repr, replies), *kept, caplog.text, *capsys.readouterr(), repr(model), repr(vars(model))])
    assert all(header["Authorization"].endswith(KEY) for header in server.headers)
    assert KEY not in said and KEY[:7] not in said and KEY[-8:] not in said


def test_a_password_in_the_address_is_in_no_output(server, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(
        "OPENAI_BASE_URL", server.url.replace("://", "://user:hunter2-secret@") + "?api-key=hunter2-secret"
    )
    server.faults = {"q": [404]}
    model = OpenAI("tiny", ServerOptions())
    (reply,) = ask(model, "q")
    assert "hunter2" not in reply.error + caplog.text + repr(vars(model))
    assert server.headers[0]["Authorization"].startswith("Basic ")


def test_set_up_says_what_is_missing(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    with pytest.raises(ServiceError, match="needs OPENAI_API_KEY"):
        openai.open("tiny", {})
    with pytest.raises(ToolkitError, match="no model is named"):
        openai.open(None, {})
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ServiceError, match="not an address"):
        openai.open("tiny", {})
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1")
    with pytest.raises(ToolkitError, match="no option colour; there are backoff"):
        openai.open("tiny", {"colour": "red"})
    with pytest.raises(ToolkitError, match="max_cost needs the prices of tiny"):
        openai.open("tiny", {"max_cost": 1.0})
    with pytest.raises(ToolkitError, match="concurrency"):
        openai.open("tiny", {"concurrency": 0})
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    assert openai.open(None, {"cache": None}).name == "openai:tiny"


def test_how_long_a_reply_may_take_is_told_by_the_environment(monkeypatch, server):
    monkeypatch.setenv("OPENAI_TIMEOUT", "0.5 s")
    with pytest.raises(ToolkitError, match="OPENAI_TIMEOUT: '0.5 s' is not a number of seconds"):
        openai.open("tiny", {})
    monkeypatch.setenv("OPENAI_TIMEOUT", "0")
    with pytest.raises(ToolkitError, match="the value of timeout is too low"):
        openai.open("tiny", {})
    assert openai.open("tiny", {"timeout": 5.0}).name == "openai:tiny", "what a caller says counts for more"
