"""Files from other people cannot make us contact a server, send a key or show a private file."""

import json
from pathlib import Path

import pytest

from evaluate_rag import main as evaluate
from exhibit.rag.config import Config
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer.report import find_dataset_roots
from tests.rag.bundles import write_bundle

SECRET = "the private key of this machine"


def evaluate_bundle(bundle: Path, results: Path) -> int:
    flags = ["--run-name", "r", "--embedder", "hashing", "--engine", "serial", "--report-cases", "0"]
    return evaluate(["--dataset-paths", str(bundle), "--output-dir", str(results), *flags])


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A finished run with its bundle beside it, as a colleague would send it."""
    folder = tmp_path_factory.mktemp("sent")
    bundle = write_bundle(folder / "supply")
    assert evaluate_bundle(bundle, folder / "results") == 0
    return folder / "results" / "r"


def set_address(run: Path, address: str) -> Path:
    """Change the recorded address of a run's bundle; return the run."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config["datasets"]["supply"] |= {"path": address, "origin": address}
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return run


@pytest.mark.parametrize("address", ["hf://evil/corpus", "s3://evil/corpus", "https://evil.example/corpus"])
def test_find_dataset_roots_contacts_no_server_named_by_a_run(finished, monkeypatch, address):
    def fail_on_request(*_: object, **__: object) -> None:
        raise AssertionError("asked for a place that the run names")

    monkeypatch.setattr("socket.socket.connect", fail_on_request)
    monkeypatch.setattr("socket.getaddrinfo", fail_on_request)
    said: list[str] = []
    assert find_dataset_roots([RunFolder(set_address(finished, address))], say=said.append) == {}
    assert f"{address}: not on this machine; name its folder with --dataset-paths" in said[0]


def test_find_dataset_roots_ignores_a_folder_that_is_not_a_bundle(finished, tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "id_rsa.txt").write_text(SECRET, encoding="utf-8")
    said: list[str] = []
    assert find_dataset_roots([RunFolder(set_address(finished, str(tmp_path)))], say=said.append) == {}
    assert "no such folder" in said[0]


@pytest.mark.parametrize("setting", ["llm = 'openai:http://evil.example'", "store = 'milvus:http://evil.example'"])
def test_preset_that_names_a_server_is_refused_unless_a_flag_names_the_server_too(tmp_path, setting):
    preset = tmp_path / "fast.toml"
    name, _, value = setting.partition(" = ")
    preset.write_text(setting, encoding="utf-8")
    with pytest.raises(ToolkitError, match=f"names a server; to allow this, add --{name}"):
        Config.preset(str(preset))
    assert getattr(Config.preset(str(preset), **{name: value.strip("'")}), name) == value.strip("'")


def test_evaluate_writes_no_content_of_a_file_linked_from_the_corpus(tmp_path, capsys):
    private = tmp_path / "private.txt"
    private.write_text(SECRET, encoding="utf-8")
    bundle = write_bundle(tmp_path / "supply")
    (bundle / "corpus" / "linked.txt").symlink_to(private)
    results = tmp_path / "results"
    assert evaluate_bundle(bundle, results) == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink() and path != private]
    assert written and not any(SECRET.encode() in path.read_bytes() for path in written)
    assert SECRET not in "".join(capsys.readouterr())


def test_convert_refuses_a_patch_that_contains_a_path(samples, tmp_path, convert, capsys):
    patch = {
        "format": "exhibit-patch/1",
        "dataset": "maud",
        "about": "<script>alert(1)</script>",
        "documents": [{"filename": "../../../etc/passwd", "reason": "x"}],
        "questions": [{"id": 10**9, "reason": "y"}],
        "corrections": [],
    }
    flags = ("--source", samples / "maud", "--max-documents", "1", "--patch", tmp_path / "patch.json")
    (tmp_path / "patch.json").write_text(json.dumps(patch), encoding="utf-8")
    convert("maud", *flags, expect=1)
    assert "must be a plain file name, not a path" in capsys.readouterr().err
    patch["documents"][0]["filename"] = "passwd"
    (tmp_path / "patch.json").write_text(json.dumps(patch), encoding="utf-8")
    bundle = convert("maud", *flags)
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["patches"][0]["documents"] == info["patches"][0]["questions"] == info["patches"][0]["corrections"] == 0
    assert any("passwd" in name for names in info["noted"].values() for name in names)
    assert "<script>" not in (bundle / "README.md").read_text(encoding="utf-8")
