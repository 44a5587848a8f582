"""The command that inspects an index."""

import json

import pytest

from exhibit.converters import cpr
from exhibit.rag import Config, Pipeline
from exhibit.rag.inspect import main


@pytest.fixture(scope="module")
def index(tmp_path_factory, samples):
    folder = tmp_path_factory.mktemp("inspect")
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "policy.txt").write_text("PRIVACY POLICY\n\nThis Privacy Policy says what we collect: your location.\n")
    (corpus / "deal.txt").write_text(
        "SUPPLY AGREEMENT\n\nThis Supply Agreement is made between Alder Ltd and Birch Inc.\n\n"
        "1. Governing Law. This Agreement is governed by the law of Norway.\n\n"
        "2. Termination. Either party may terminate on ninety days' notice, a time limit that runs from receipt.\n"
    )
    Pipeline(Config.preset("rcts", embedder="hashing"), jobs=1, cache=folder / "cache").index(corpus, folder / "index")
    return str(folder / "index")


def test_inspect_checks_index_lists_documents_and_counts_categories(index, capsys):
    assert main([index, "test"]) == 0 and "FAIL" not in capsys.readouterr().out
    assert main([index, "list"]) == 0
    out = capsys.readouterr().out
    assert "deal.txt" in out and "policy.txt" in out and "category" in out
    assert main([index, "categories", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert sum(row["documents"] for row in counts) == 2 and len(counts) == 2
    assert main([index, "list", "--category", counts[0]["category"], "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


GUIDE = "The {court} Guide\n\nThis Guide is for users of the {court}.\n\n1. Disclosure\n\nDisclosure is given {how}.\n"
COURTS = {"Commercial Court": "by list", "Circuit Commercial Court": "by inspection", "Patents Court": "in models"}


@pytest.mark.parametrize("preset", ["routed", "rcts", "seed", "bm25"])
def test_inspect_search_filters_guides_by_category_which_is_their_court(preset, tmp_path, capsys):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for court, how in COURTS.items():
        (corpus / f"{court[:3]}.txt").write_text(GUIDE.format(court=court, how=how), encoding="utf-8")
    config = Config.preset(preset, embedder="hashing", depth=1, k=1)
    Pipeline(config, jobs=1, cache=tmp_path / "cache").index(corpus, tmp_path / "index")
    index = str(tmp_path / "index")
    assert main([index, "categories", "--json"]) == 0
    assert {row["category"] for row in json.loads(capsys.readouterr().out)} == set(COURTS)
    # documents of one passage: a filter after the ranking would leave none of the two
    for court, how in COURTS.items():
        assert main([index, "search", "--query", "disclosure", "--category", court.upper(), "--json"]) == 0
        [found] = json.loads(capsys.readouterr().out)
        assert found["category"] == court and how in found["content"]
    assert main([index, "search", "--query", "disclosure", "--category", "Admiralty Court", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


NDA = ("Definitions", "Obligations of the Recipient", "Exclusions", "Term and Termination", "Miscellaneous")


def test_inspect_shows_documents_sections_and_chunks(tmp_path, capsys):
    clauses = "".join(f"{number}. {title}\n\nOn this the parties agree.\n\n" for number, title in enumerate(NDA, 1))
    text = f"NON-DISCLOSURE AGREEMENT\n\nThis Agreement is made between Alder Ltd and Birch Ltd.\n\n{clauses}"
    path = tmp_path / "nda.txt"
    path.write_text(text, encoding="utf-8")
    Pipeline(Config.preset("seed", embedder="hashing"), jobs=1, cache=tmp_path).index(path, tmp_path / "index")

    def read_output(action: str) -> list[dict[str, object]]:
        assert main([str(tmp_path / "index"), action, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    [document] = read_output("list")
    assert document["category"] == "nda" and "Alder" in document["summary"] and document["sections"] >= len(NDA)
    kinds = [section["kind"] for section in read_output("sections") if section["kind"]]
    assert kinds == ["definitions", "obligations", "exclusions", "term", "miscellaneous"]
    assert "".join(chunk["content"] for chunk in read_output("chunks")) == text
    assert main([str(tmp_path / "index"), "sections"]) == 0 and main([str(tmp_path / "index"), "chunks"]) == 0


def test_inspect_export_can_be_read_by_cpr_converter(index, tmp_path):
    out = tmp_path / "export.json"
    assert main([index, "export", "--query", "law of Norway", "--out", str(out)]) == 0
    assert cpr.run(["--from-search", str(out), "--ground-truth-out", str(tmp_path / "truth.jsonl")]) == 0
    [line] = (tmp_path / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    assert "law of Norway" in json.loads(line)["question"] and "deal.txt" in json.loads(line)["truth"]


def test_inspect_table_cuts_long_cells(index, capsys):
    assert main([index, "chunks"]) == 0
    head, rule, *rows = capsys.readouterr().out.rstrip("\n").split("\n")
    assert head.split() == ["document", "section", "page", "content"] and set(rule) <= {"-", " "}
    cells = [row.rstrip() for row in rows]
    [deal, policy] = cells
    assert deal.endswith("Agreement is made between Alde…") and policy.startswith("policy.txt") and "None" not in policy
    start = head.index("content")
    assert len(deal[start:]) == 60 and policy[start:].startswith("PRIVACY POLICY This Privacy Policy")
    assert rule.split()[-1] == "-" * 60, "the column is as wide as its widest cell"


def test_inspect_search_results_have_section_span_and_rounded_score(index, capsys):
    assert main([index, "search", "--query", "terminate on notice", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert len(results) == 2 and {row["sourcefile"] for row in results} == {"deal.txt", "policy.txt"}
    for row in results:
        assert row["score"] == round(row["score"], 4) and row["sourcepage"] and row["page"] is None
        assert len(row["content"]) == row["span"][1] - row["span"][0]
    assert main([index, "search", "--query", "terminate", "--top", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
    assert main([index, "export", "--query", "terminate", "--top", "1"]) == 0
    exported = json.loads(capsys.readouterr().out)
    assert exported["query"] == "terminate" and len(exported["results"]) == 1
    with pytest.raises(SystemExit, match="2"):
        main([index, "search"])
