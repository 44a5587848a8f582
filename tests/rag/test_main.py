"""The pipeline's commands, and the example in its documentation."""

import json
import re
from pathlib import Path

import pytest

from exhibit.rag import Config, Pipeline
from exhibit.rag.__main__ import main
from exhibit.rag.config import describe_settings
from exhibit.rag.inspect import Inspector
from tests.rag.models import link_models

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def index(tmp_path_factory, samples):
    """An index that tests must not change."""
    folder = tmp_path_factory.mktemp("main")
    source = samples / "cuad" / "CUAD_v1" / "full_contract_txt"
    flags = f"--out {folder / 'index'} --preset sac-multilayer --embedder hashing --chunk-size 300".split()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
        assert main(["index", str(source), *flags, "--threshold", "none"]) == 0
    return str(folder / "index")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(link_models(tmp_path / "cache")))


def test_commands_index_search_and_answer_sample_contracts(index, capsys):
    capsys.readouterr()
    question = "Which law governs the distributor agreement?"
    assert main(["search", index, question, "--k", "3", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert len(found["passages"]) == 3 and all(len(hit["text"]) <= 300 for hit in found["passages"])
    assert main(["ask", index, question, "another question?"]) == 0
    out = capsys.readouterr().out
    assert question in out and "another question?" in out and "[1]" in out


def test_command_errors_are_printed_on_single_line(index, tmp_path, capsys):
    assert main(["search", str(tmp_path / "nowhere"), "x"]) == 1
    assert main(["index", str(tmp_path / "nowhere"), "--out", str(tmp_path / "i")]) == 1
    assert main(["index", str(tmp_path), "--out", str(tmp_path / "i"), "--chunk-size", "many"]) == 1
    errors = capsys.readouterr().err.strip().splitlines()
    assert len(errors) == 3 and all(line.startswith("error: ") for line in errors) and "chunk_size" in errors[2]


def test_rag_documentation_example_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "rag.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    # the same lines, with an embedder that needs no model
    code = code.replace("chunk_size=400", 'chunk_size=400, embedder="hashing"')
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/rag.md", "exec"), {})
    assert "6 documents" in capsys.readouterr().out


QUESTION = "Under Harrowgate's distributor agreement with Pellworth, which law governs?"


def ask(capsys, *argv: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main([*argv, "--json"]) == 0
    [answer] = json.loads(capsys.readouterr().out)
    return answer["passages"]


def test_search_uses_settings_stored_in_index_unless_flags_override_them(tmp_path, samples, capsys):
    source, index = samples / "cuad" / "CUAD_v1" / "full_contract_txt", tmp_path / "index"
    flags = ["--embedder", "hashing", "--depth", "40"]
    assert main(["index", str(source), "--out", str(index), *flags]) == 0
    kept = Config.parse(json.loads((index / "manifest.json").read_text(encoding="utf-8"))["config"])
    assert kept == Config.preset("routed", embedder="hashing", depth=40)
    first = ask(capsys, "search", str(index), QUESTION)[0]
    [found] = Pipeline(kept).open(index).search([QUESTION])
    assert first["text"] == found.ranked[0].text and first["text"].lstrip().startswith("8.2 Law.")
    plain = ask(capsys, "search", str(index), QUESTION, "--method", "dense", "--k", "2")
    assert len(plain) == 2 and plain[0]["text"] != first["text"]
    listed = Inspector(index, {}).search(QUESTION, 1, None)
    assert listed[0]["content"] == first["text"]


def test_index_help_describes_every_setting(capsys):
    with pytest.raises(SystemExit):
        main(["index", "--help"])
    output = " ".join(capsys.readouterr().out.split())
    for name, text in describe_settings().items():
        assert f"--{name.replace('_', '-')}" in output and len(text.partition(" (default")[0]) > 10, name


def test_search_prints_score_section_and_beginning_of_passage(tmp_path, capsys):
    text = "1. Rent\n\n" + "The rent of the mill is due in advance. " * 5
    (tmp_path / "lease.txt").write_text(text, encoding="utf-8")
    flags = ["--preset", "rcts", "--embedder", "hashing", "--reranker", "none", "--engine", "serial"]
    assert main(["index", str(tmp_path / "lease.txt"), "--out", str(tmp_path / "i"), *flags]) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(r".*i: 1 documents, 0 pages, 1 chunks, \d+\.\d s\n", out)
    assert main(["search", str(tmp_path / "i"), "What is the rent?"]) == 0
    blank, question, head, words = capsys.readouterr().out.rstrip("\n").split("\n")
    assert (blank, question) == ("", "What is the rent?")
    assert re.fullmatch(r"  \[1\] \d\.\d{3}  lease\.txt, 1\. Rent", head)
    assert words == "      " + " ".join(text.split())[:100]
    assert main(["ask", str(tmp_path / "i"), "What is the rent?", "--json"]) == 0
    printed = capsys.readouterr().out
    [record] = json.loads(printed)
    [passage] = record["passages"]
    assert printed.startswith('[\n {\n  "question"'), "the JSON is indented"
    assert passage["score"] == round(passage["score"], 4) and "error" not in record and "refused" in record


def test_index_command_counts_and_names_unreadable_files(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("The rent is due.", encoding="utf-8")
    (tmp_path / "docs" / "b.pdf").write_bytes(b"%PDF-1.4")
    flags = ["--preset", "rcts", "--embedder", "hashing", "--engine", "serial"]
    assert main(["index", str(tmp_path / "docs"), "--out", str(tmp_path / "i"), *flags]) == 0
    _, counted, named = capsys.readouterr().out.rstrip("\n").split("\n")
    assert counted == "files given: 2 = 1 indexed + 1 not indexed"
    assert named.startswith("not indexed: ") and "b.pdf" in named
