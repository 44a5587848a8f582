"""The command in docs/rag.md sends an OpenAI-compatible server the requests of the second seed's system."""

import re
import shlex
from pathlib import Path

import evaluate_rag
from tests.evaluation.loopback import imitating
from tests.evaluation.systems import reply_as_openai
from tests.rag.bundles import write_bundle

PAGE = Path(__file__).parents[1] / "docs" / "rag.md"


def test_seed_preset_command_of_rag_page_sends_models_and_settings_of_the_seed_system(tmp_path, monkeypatch):
    line = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if "--preset seed --embedder" in line)
    program, script, _, *flags = shlex.split(line)
    assert (program, script) == ("python", "evaluate_rag.py")
    bundle = write_bundle(tmp_path / "leases")
    long = bundle / "corpus" / "alder.txt"
    long.write_text(long.read_text(encoding="utf-8") + "\n5. Records. Records are kept.\n" * 400, encoding="utf-8")
    with imitating(reply_as_openai, []) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
        where = ["--output-dir", str(tmp_path / "results"), "--run-name", "seed"]
        assert evaluate_rag.main([str(bundle), *flags, *where]) == 0
    bodies = [asked.body for asked in server.asked]
    assert {body["model"] for body in bodies} == {"text-embedding-3-large", "gpt-4o-mini", "gpt-4"}
    summaries = [body for body in bodies if body["model"] == "gpt-4o-mini"]
    assert {(body["temperature"], body["max_tokens"]) for body in summaries} == {(0.3, 50)}
    assert 5000 < max(len(body["messages"][-1]["content"]) for body in summaries) < 6000, "5,000 document characters"
    assert any("150 characters" in body["messages"][-1]["content"] for body in summaries)
    answers = [body for body in bodies if body["model"] == "gpt-4"]
    assert {(body["temperature"], body["top_p"], body["max_tokens"]) for body in answers} == {(0.1, 0.95, 1000)}
    sources = [set(re.findall(r"^\[(\d+)\]", body["messages"][-1]["content"], re.MULTILINE)) for body in answers]
    assert all(1 <= len(numbers) <= 6 for numbers in sources)
    embedded = [text for body in bodies if "input" in body for text in body["input"]]
    assert any(text.startswith("A supply agreement.") and "Governing Law" in text for text in embedded), "summary"
