"""A local imitation of an Azure AI Search index is inspected, and evaluated with an LLM's answers."""

from __future__ import annotations

import json
import re

import pytest

import evaluate_rag
from exhibit.rag.inspect import main as inspect
from tests.evaluation.loopback import imitating
from tests.evaluation.systems import KEY, reply_as_azure
from tests.rag.bundles import PARTIES, rows_of, write_bundle


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


def test_inspect_export_writes_azure_search_results_of_category(service, tmp_path, capsys):
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
    asked = [one for one in service.asked if one.path.endswith("/chat/completions")]
    azure = llm.startswith("azure")
    assert {one.path for one in asked} == {
        "/openai/deployments/gpt-4o/chat/completions" if azure else "/v1/chat/completions"
    }
    config = json.loads((tmp_path / "results" / "direct" / "config.json").read_text(encoding="utf-8"))
    assert config["llm"] == llm
