"""A local imitation of an Azure AI Search index: inspected, and evaluated with a language model's answers."""

from __future__ import annotations

import json
import re

import pytest

import evaluate_rag
from exhibit.rag.inspect import main as inspect
from tests.evaluation.loopback import Asked, System, imitating
from tests.rag.bundles import PARTIES, contract, write_bundle

KEY = "query-key-5b1e"
CATEGORIES = {"alder.txt": "King's Bench Division", "birch.txt": "Commercial Court", "cedar.txt": "Commercial Court"}
ROWS = [
    {
        "sourcefile": f"{stem}.txt",
        "sourcepage": f"{stem}.txt#page=1",
        "content": part,
        "category": CATEGORIES[f"{stem}.txt"],
    }
    for stem, (party, law) in PARTIES.items()
    for part in contract(party, law).split("\n\n")
]
MOST = 4
"""Rows of one reply: a service may give fewer than are asked for."""


def reply(_: System, asked: Asked) -> object:
    """Reply as the REST interface of a search service does, and as a deployment of Azure OpenAI."""
    if asked.path.endswith("/chat/completions"):
        words = re.findall(r"governed by the law of (\w+)", asked.body["messages"][-1]["content"])
        text = (
            f"This Agreement is governed by the law of {words[0]} [1]." if words else "Not found in provided documents"
        )
        usage = {"prompt_tokens": 40, "completion_tokens": 9}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}
    if asked.headers.get("api-key") != KEY or asked.query.get("api-version") != "2024-07-01":
        return 403, {"error": {"code": "", "message": "Access denied due to invalid key"}}
    if asked.path != "/indexes/guides/docs/search":
        return 404, {"error": {"code": "", "message": "The index was not found"}}
    wanted = re.fullmatch(r"category eq '(.*)'", asked.body.get("filter", "category eq ''"))
    name = wanted[1].replace("''", "'") if wanted else ""
    rows = [row for row in ROWS if name in ("", row["category"])]
    if asked.body["search"] != "*":
        words = set(re.findall(r"\w{3,}", asked.body["search"].lower()))
        score = {
            id(row): len(words & set(re.findall(r"\w{3,}", f"{row['sourcefile']} {row['content']}".lower())))
            for row in rows
        }
        rows = sorted(rows, key=lambda row: -score[id(row)])
    skip, top = asked.body.get("skip", 0), asked.body["top"]
    chosen = asked.body.get("select", "sourcefile,sourcepage,category,content").split(",")
    value = [
        {"@search.score": 1.0, **{field: row[field] for field in chosen}} for row in rows[skip : skip + min(top, MOST)]
    ]
    return {"@odata.count": len(rows), "value": value}


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setenv("AZURE_SEARCH_KEY", KEY)
    with imitating(reply, []) as system:
        yield system


def test_documents_and_categories_are_listed_page_by_page(service, capsys):
    address = f"{service.url}/indexes/guides"
    assert inspect([address, "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["document"], row["passages"]) for row in listed] == [(f"{stem}.txt", 6) for stem in PARTIES]
    assert inspect([address, "categories"]) == 0
    assert re.search(r"Commercial Court +2\nKing's Bench Division +1\n", capsys.readouterr().out)
    assert inspect([address, "list", "--json", "--category", "King's Bench Division"]) == 0
    assert [row["document"] for row in json.loads(capsys.readouterr().out)] == ["alder.txt"]
    assert inspect([address, "test"]) == 0


def test_a_search_of_one_category_is_exported_for_the_converter(service, tmp_path, capsys):
    out = tmp_path / "law.json"
    words = ["--query", "governed by the law", "--category", "Commercial Court", "--top", "2", "--out", str(out)]
    assert inspect([f"{service.url}/indexes/guides", "export", *words]) == 0
    exported = json.loads(out.read_text(encoding="utf-8"))
    assert exported["query"] == "governed by the law"
    assert [row["sourcefile"] for row in exported["results"]] == ["birch.txt", "cedar.txt"]
    assert all("governed by the law" in row["content"] for row in exported["results"])


def test_a_wrong_index_or_key_is_an_error_that_keeps_the_key_secret(service, monkeypatch, capsys):
    assert inspect([f"{service.url}/indexes/none", "list"]) == 1
    assert "The index was not found" in capsys.readouterr().err
    monkeypatch.setenv("AZURE_SEARCH_KEY", "wrong-key-77aa")
    assert inspect([f"{service.url}/indexes/guides", "list"]) == 1
    assert "AZURE_SEARCH_KEY" in (told := capsys.readouterr().err) and "wrong-key-77aa" not in told
    monkeypatch.delenv("AZURE_SEARCH_KEY")
    assert inspect([f"{service.url}/indexes/guides", "list"]) == 1
    assert inspect([f"{service.url}/guides", "list"]) == 1


@pytest.mark.parametrize("llm", ["azure:gpt-4o", "openai:gpt-4o-mini"])
def test_direct_evaluation_searches_answers_and_writes_its_results(service, tmp_path, monkeypatch, llm):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", service.url)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "openai-key-11")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{service.url}/v1")
    bundle = write_bundle(tmp_path / "guides")
    own = ["--set", "target_index=guides", "--set", "target_key=AZURE_SEARCH_KEY"]
    flags = ["--target", "azure", "--target-url", service.url, *own]
    where = ["--output-dir", str(tmp_path / "results"), "--run-name", "direct"]
    assert evaluate_rag.main([str(bundle), *flags, "--llm", llm, "--set", "k=3", *where]) == 0
    direct = json.loads(
        (tmp_path / "results" / "direct" / "direct_evaluation_results.json").read_text(encoding="utf-8")
    )
    assert direct["overall"]["count"] == len(direct["results"]) == 9 and direct["overall"]["failed"] == 0
    law = next(row for row in direct["results"] if row["question"] == "Which law governs the agreement of Birch Inc.?")
    assert "governed by the law of Ohio" in law["answer"] and law["sources"][0] == "birch.txt"
    assert law["metrics"]["answer_f1"] > 0.9
    asked = [one for one in service.asked if one.path.endswith("/chat/completions")]
    azure = llm.startswith("azure")
    assert {one.path for one in asked} == {
        "/openai/deployments/gpt-4o/chat/completions" if azure else "/v1/chat/completions"
    }
    config = json.loads((tmp_path / "results" / "direct" / "config.json").read_text(encoding="utf-8"))
    assert config["llm"] == llm
