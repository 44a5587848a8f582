"""Language models and embeddings on a server: retries, caps, caches, and errors that never show the key."""

import numpy as np
import pytest

from exhibit.models.embedders import to_unit
from exhibit.models.llms import Prompt, azure, count_tokens, openai
from exhibit.models.openai import OpenAI
from exhibit.schemas.errors import ServiceError, ToolkitError
from tests.models.openai_server import KEY, OpenAIServer, chat, serve_openai


@pytest.fixture
def server(monkeypatch):
    with serve_openai() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


def make_model(**options) -> OpenAI:
    return OpenAI("m", **{"timeout": 5.0, **options}, wait=lambda seconds: None)


def ask(llm: OpenAI, *prompts: str) -> list[str]:
    replies = llm.complete([Prompt(prompt) for prompt in prompts], max_tokens=20, temperature=0.0)
    return [reply.error or reply.text for reply in replies]


def test_complete_returns_replies_in_order_with_token_usage(server: OpenAIServer):
    llm = make_model(top_p=0.9)
    replies = llm.complete([Prompt("one", "be brief"), Prompt("two")], max_tokens=20, temperature=0.5)
    assert [reply.text for reply in replies] == ["echo: one", "echo: two"]
    assert (replies[0].tokens_in, replies[0].tokens_out) == (100, 10)
    body = next(body for body in server.asked if body["messages"][-1]["content"] == "one")
    assert body["messages"][0] == {"role": "system", "content": "be brief"}
    assert (body["model"], body["max_tokens"], body["temperature"], body["top_p"]) == ("m", 20, 0.5, 0.9)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("fault", [429, 500, 503, "no reply", "HTML", "empty body", "JSON array"])
def test_complete_retries_transient_faults(server: OpenAIServer, fault):
    server.faults = {"x": [fault, fault]}
    assert ask(make_model(), "x") == ["echo: x"] and len(server.asked) == 3


@pytest.mark.parametrize(
    ("fault", "words", "requests"),
    [
        (401, "check OPENAI_API_KEY", 1),
        (400, "400", 1),
        ({"status": 429, "body": {"error": {"code": "insufficient_quota", "message": "pay"}}}, "429", 1),
        (chat("", finish_reason="length"), "raise max_tokens", 1),
        ({"choices": []}, "no choices", 1),
        ({"error": {"message": "overloaded"}}, "the server reports an error", 1),
        ({"choices": [{"message": {"content": None, "refusal": "I cannot"}}]}, "the model declined: I cannot", 1),
    ],
)
def test_complete_reports_lasting_faults_without_revealing_key(server: OpenAIServer, fault, words, requests):
    server.faults = {"x": [fault] * 9}
    [error] = ask(make_model(), "x")
    assert words in error and KEY not in error and KEY[-4:] not in error and len(server.asked) == requests


def test_slow_reply_ends_at_the_deadline(server: OpenAIServer):
    server.faults = {"x": ["drip"] * 9}
    [error] = ask(make_model(timeout=0.3), "x")
    assert "no complete reply" in error


def test_complete_replaces_max_tokens_when_the_server_rejects_the_parameter(server: OpenAIServer):
    rejected = {"status": 400, "body": {"error": {"param": "max_tokens", "message": "use max_completion_tokens"}}}
    server.faults = {"x": [rejected]}
    assert ask(make_model(), "x") == ["echo: x"]
    assert server.asked[-1]["max_completion_tokens"] == 20 and "max_tokens" not in server.asked[-1]


def test_replies_are_cached_and_errors_are_not(server: OpenAIServer, tmp_path):
    server.faults = {"bad": [400]}
    assert ask(make_model(cache=tmp_path), "x", "x", "bad")[:2] == ["echo: x"] * 2 and len(server.asked) == 2
    [reply, again] = make_model(cache=tmp_path).complete([Prompt("x"), Prompt("bad")], max_tokens=20, temperature=0.0)
    assert reply.cached and again.text == "echo: bad" and len(server.asked) == 3


def test_complete_stops_at_max_requests(server: OpenAIServer):
    replies = ask(make_model(max_requests=2), "a", "b", "c")
    assert len([reply for reply in replies if reply.startswith("echo")]) == 2 == len(server.asked)
    assert sum("limit of 2 requests" in reply for reply in replies) == 1


def test_complete_sends_schema_and_removes_thinking_text(server: OpenAIServer):
    server.reply = lambda prompt: "<think>hm</think> {}"
    reply = make_model().complete([Prompt("x", schema='{"type": "object"}')], max_tokens=9, temperature=0.0)[0]
    assert reply.text == "{}"
    assert server.asked[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("plugin", "variables", "message"),
    [
        (openai, {}, "api.openai.com needs OPENAI_API_KEY"),
        (openai, {"OPENAI_BASE_URL": "nowhere"}, "not an address"),
        (openai, {"OPENAI_API_KEY": "k", "OPENAI_TIMEOUT": "soon"}, "OPENAI_TIMEOUT"),
        (azure, {}, "AZURE_OPENAI_ENDPOINT"),
        (azure, {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}, "OPENAI_API_VERSION"),
    ],
)
def test_openai_and_azure_errors_name_missing_or_invalid_environment_variables(monkeypatch, plugin, variables, message):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_TIMEOUT", "AZURE_OPENAI_ENDPOINT", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((ServiceError, ToolkitError), match=message):
        plugin.open("m", {})
    with pytest.raises(ToolkitError, match=r"is named"):
        plugin.open(None, {})


def test_azure_request_has_the_deployment_in_its_url_path(server: OpenAIServer, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    assert ask(azure.open("my model", {}), "x") == ["echo: x"]
    assert server.headers[0]["path"].endswith("/openai/deployments/my%20model/chat/completions?api-version=2024-10-21")
    assert server.headers[0]["Api-Key"] == KEY


def test_token_estimate_grows_with_words():
    assert count_tokens("") == 0 and count_tokens("The rent is due.") == 5
    assert count_tokens("internationalisation") > 1 and count_tokens("12345678") == 3


def test_to_unit_rejects_zero_infinite_ragged_or_wrongly_sized_vectors():
    assert np.allclose(to_unit([[3, 4]], ["x"], name="e"), [[0.6, 0.8]])
    for rows, message in (
        ([[0, 0, 0]], "only zeros"), ([[float("inf"), 1, 1]], "not finite"),
        ([[1, 2], [3]], "one list of numbers for each text"), ([[1, 2]], "1 x 2 numbers for 1 texts instead of 1 x 3"),
    ):  # fmt: skip
        with pytest.raises(ServiceError, match=message):
            to_unit(rows, ["x"] * len(rows), name="e", dimensions=3)
