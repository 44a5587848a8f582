"""End-to-end tests with a model that generates text: documents, answers, citations, limits, cache, marks.

`make test-llm` runs them. They do not check the quality of answers, because a model of 135 million parameters answers
badly.
"""

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import evaluate_rag
from exhibit.law.citations import find_citations
from tests.loopback import Reply, Request, serve
from tests.rag.bundles import rows_of

pytestmark = pytest.mark.llm

ROOT = Path(__file__).parents[1]


@dataclass
class RecordingProxy:
    """A proxy of the model's server that counts requests and can withhold a reply."""

    behind: str
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    stalled: threading.Event | None = None

    def forward(self, path: str, body: bytes) -> tuple[int, bytes]:
        self.asked.append(json.loads(body))
        if self.stalled is not None:
            self.stalled.wait()
        parts = urlsplit(self.behind)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=1200)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()


@pytest.fixture(scope="session")
def model() -> Iterator[str]:
    """The address of a server with the model, which is stopped when the tests end."""
    command = [sys.executable, str(ROOT / "tests" / "llm_server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "no address; see the error of the server on stderr"
        try:
            yield address
        finally:
            process.kill()


@pytest.fixture(scope="session")
def recording_proxy(model: str) -> Iterator[RecordingProxy]:
    standing = RecordingProxy(model)

    def answer(request: Request) -> Reply:
        status, reply = standing.forward(request.target, request.data)
        return Reply(reply, status, {"Content-Type": "application/json"})

    with serve(answer) as url:
        standing.url = f"{url}/v1"
        yield standing


@pytest.fixture(autouse=True)
def environment(
    recording_proxy: RecordingProxy, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", recording_proxy.url)
    monkeypatch.setenv("OPENAI_MODEL", "smollm2")
    monkeypatch.setenv("OPENAI_TIMEOUT", "1200")  # long enough for a busy machine
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample, converted by the command line."""
    out = tmp_path_factory.mktemp("bundles") / "cuad"
    flags = ["--source", "samples/cuad", "--out", str(out), "--max-documents", "1"]
    subprocess.run([sys.executable, "-m", "converters.cuad", *flags], cwd=ROOT, check=True, capture_output=True)
    return out


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def evaluate(bundle: Path, results: Path, name: str, *flags: str) -> int:
    """Answer two questions from one short passage each."""
    arguments = ["--dataset-paths", bundle, "--output-dir", results, "--run-name", name, "--embedder", "hashing",
            "--limit", "2", "--report-cases", "0", "--llm", "openai:smollm2", "--answerer", "llm", "--top-k", "1",
            "--budget-tokens", "250", *flags]  # fmt: skip
    return evaluate_rag.main([str(flag) for flag in arguments])


JUDGED = ("--max-tokens", "24", "--price-in", "1", "--price-out", "2", "--judge", "openai:smollm2", "--metrics",
          "groundedness,answer_correctness,tokens,cost,claim_citations,latency")  # fmt: skip


def rows(results: Path, name: str) -> list[dict[str, Any]]:
    return rows_of(results / name / "cuad" / "eval_results.jsonl")


def test_second_evaluation_with_llm_sends_no_requests(recording_proxy, bundle, results, capsys):
    assert evaluate(bundle, results, "first", *JUDGED) == 0
    asked = len(recording_proxy.asked)
    first = rows(results, "first")
    assert len(first) == 2 and asked >= 2 + 2 * 2, "two answers with two marks each"
    for row in first:
        reply = row["reply"]
        assert reply["answer"].strip() and not reply["error"]
        assert reply["usage"]["requests"] >= 1 and reply["usage"]["tokens_in"] > reply["usage"]["tokens_out"] > 0
        cited = {number for citation in find_citations(reply["answer"]) for number in citation.numbers}
        assert reply["citations"] == sorted(cited & set(range(1, len(reply["passages"]) + 1)))
        paid = (reply["usage"]["tokens_in"] + 2 * reply["usage"]["tokens_out"]) / 1e6
        assert row["scores"]["cost"] == pytest.approx(paid)
    said = [row["reply"]["answer"] for row in first]
    words = {
        message["content"] for r in recording_proxy.asked for message in r["messages"] if message["role"] == "user"
    }
    assert any(answer in prompt for prompt in words for answer in said), "the judge prompt contains a generated answer"
    summary = json.loads((results / "first" / "summary.json").read_text(encoding="utf-8"))
    assert summary["tokens_out"]["n"] == 2 and summary["tokens_out"]["errors"] == 0
    for mark in ("groundedness", "answer_correctness"):
        assert summary[mark].keys() >= {"mean", "n", "errors"}
        assert all(row["scores"][mark] is None or 1 <= row["scores"][mark] <= 5 for row in first)
    capsys.readouterr()

    assert evaluate(bundle, results, "second", *JUDGED) == 0
    assert len(recording_proxy.asked) == asked, "all replies and marks are cached"
    second = rows(results, "second")
    assert [row["reply"]["answer"] for row in second] == said
    assert [row["reply"]["usage"]["requests"] for row in second] == [0.0, 0.0]
    again = json.loads((results / "second" / "summary.json").read_text(encoding="utf-8"))
    assert again["groundedness"] == summary["groundedness"]
    assert "results:" in capsys.readouterr().out


def test_evaluation_with_llm_sends_no_request_that_would_exceed_cost_limit(recording_proxy, bundle, results, capsys):
    asked = len(recording_proxy.asked)
    prices = ("--price-in", "1000000", "--price-out", "1000000", "--max-requests", "1")  # a token costs 1
    assert evaluate(bundle, results, "poor", "--max-tokens", "21", *prices) == 3
    assert len(recording_proxy.asked) == asked, "the cost limit is below a single request"
    assert all("cost" in row["reply"]["error"] for row in rows(results, "poor"))
    assert "2 of 2 questions failed" in capsys.readouterr().err
