"""An index from another person is data: it names no server, links to no file, and matches its checksums."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from exhibit.rag import Config, Pipeline
from exhibit.rag import ingest as ingest_module
from exhibit.rag.__main__ import main
from exhibit.rag.index import open_index
from exhibit.rag.inspect import main as inspect_main
from exhibit.schemas.errors import BundleError
from exhibit.storage.bundle import sha256_of
from tests.loopback import Reply, Request, serve

LEASE = "LEASE AGREEMENT\n\nbetween Alder Ltd and Birch LLP.\n\n1. Rent. The tenant pays the rent monthly.\n"


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("alder", "birch"):
        (folder / f"{name}.txt").write_text(LEASE.replace("Alder", name.title()), encoding="utf-8")
    return folder


def pipeline(tmp_path, **settings) -> Pipeline:
    config = Config.preset("routed", embedder="hashing", **settings)
    return Pipeline(config, cache=tmp_path / "cache", jobs=1, engine="serial")


@pytest.fixture
def index(tmp_path, corpus) -> Path:
    pipeline(tmp_path).index(corpus, tmp_path / "index")
    return tmp_path / "index"


def change_config(index: Path, **settings) -> None:
    """Change an index like an attacker: write a manifest with these settings and matching checksums."""
    manifest = json.loads((index / "manifest.json").read_text(encoding="utf-8"))
    manifest["config"] |= settings
    manifest["config_hash"] = Config.parse(manifest["config"]).ingest_hash
    (index / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    heard: list[str] = []

    def answer(request: Request) -> Reply:
        heard.extend((request.data.decode(), str(request.headers)))
        return Reply(b"")

    with serve(answer) as url:
        yield url, heard


@pytest.mark.parametrize("setting", [pytest.param("reranker", marks=pytest.mark.slow), "llm", "embedder", "store"])
@pytest.mark.parametrize("command", [main, inspect_main])
def test_commands_contact_no_server_named_only_in_an_index(index, server, setting, command, monkeypatch, capsys):
    uri, heard = server
    for key in ("OPENAI_API_KEY", "MILVUS_TOKEN"):
        monkeypatch.setenv(key, "secret-of-the-user")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{uri}/v1")
    part = {"reranker": "cross-encoder:m", "llm": "openai:m", "embedder": "openai:m", "store": f"milvus:{uri}"}
    change_config(index, **{setting: part[setting]})
    words = ["search", str(index), "Who pays?"] if command is main else [str(index), "test"]
    assert command(words) == 1
    output = capsys.readouterr().err
    assert f"add --{setting} {part[setting]}" in output and str(index) in output
    assert not heard


def test_server_of_an_index_is_contacted_only_if_the_user_names_the_server(index, server, monkeypatch, capsys):
    uri, heard = server
    monkeypatch.setenv("OPENAI_BASE_URL", f"{uri}/v1")
    monkeypatch.setattr("exhibit.models.openai._BACKOFF_SECONDS", 0.0)
    change_config(index, llm="openai:m")
    assert main(["ask", str(index), "Who pays?", "--llm", "none", "--answerer", "extractive"]) == 0 and not heard
    main(["ask", str(index), "Who pays?", "--llm", "openai:m"])
    assert heard
    change_config(index, llm="none")
    assert main(["search", str(index), "Who pays?", "--embedder", "hashing"]) == 0
    assert main(["search", str(index), "Who pays?", "--embedder", "minilm"]) == 1
    assert "fixed when the index was built" in capsys.readouterr().err
    # the user chose this config
    assert open_index(index, Config.preset("routed", embedder="hashing", llm="openai:m"))


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_open_index_refuses_changed_missing_linked_or_added_file(index, tmp_path):
    sealed = json.loads((index / "manifest.json").read_text(encoding="utf-8"))["sha256"]
    files = {path.relative_to(index).as_posix() for path in index.rglob("*") if path.is_file()}
    assert set(sealed) == files - {"manifest.json"}
    for path in (index / name for name in sealed):
        content = path.read_bytes()
        (tmp_path / "secret.txt").write_bytes(content)  # a link is refused even if its target has the recorded content
        for damage, message in (
            (lambda path, content: path.write_bytes(content[:-1] + bytes([content[-1] ^ 1])), "missing or damaged"),
            (lambda path, content: path.unlink(), "missing or damaged"),
            (lambda path, content: path.symlink_to(tmp_path / "secret.txt"), "a link"),
        ):
            damage(path, content)
            with pytest.raises(BundleError, match=message):
                open_index(index)
        path.unlink()
        path.write_bytes(content)
        open_index(index)
    (index / "more.bin").write_bytes(b"x")
    with pytest.raises(BundleError, match="more.bin"):
        open_index(index)
    (index / "folder").symlink_to(tmp_path)
    with pytest.raises(BundleError, match="a link"):
        open_index(index)


def test_index_excludes_and_reports_file_that_changes_while_being_read(tmp_path, corpus, monkeypatch):
    usual = ingest_module.read_document

    def slow(path):
        document = usual(path)
        if path.name == "birch.txt":
            path.write_text(LEASE.replace("monthly", "weekly"), encoding="utf-8")
        return document

    monkeypatch.setattr(ingest_module, "read_document", slow)
    report = pipeline(tmp_path).index(corpus, tmp_path / "index")
    assert report.documents == 1 and "birch.txt: changed while it was read" in report.set_aside[0]


def test_index_stops_when_file_differs_from_expected_checksum(tmp_path, corpus):
    paths = sorted(corpus.iterdir())
    meant = {path: sha256_of(path) for path in paths}
    paths[1].write_text(LEASE.replace("monthly", "weekly"), encoding="utf-8")
    with pytest.raises(BundleError, match=r"birch.txt: changed or deleted while documents were indexed"):
        pipeline(tmp_path).index(paths, tmp_path / "index", sha256=meant)
    paths[1].unlink()
    with pytest.raises(BundleError, match=r"birch.txt: changed or deleted"):
        pipeline(tmp_path).index(paths, tmp_path / "index", sha256=meant)
    assert not (tmp_path / "index").exists()
    paths[1].write_text("   ", encoding="utf-8")  # blank text: not usable
    report = pipeline(tmp_path).index(paths, tmp_path / "index", sha256={**meant, paths[1]: sha256_of(paths[1])})
    assert report.documents == 1 and len(report.set_aside) == 1
