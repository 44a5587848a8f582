"""Commands on remote bundles give the same files and metrics, and never download the whole corpus."""

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

import evaluate_rag
from exhibit.conversion import main as convert_main
from exhibit.evidence.check import main as check_main
from exhibit.evidence.show import main as show_main
from exhibit.hub.exports import main as export_main
from exhibit.schemas.run import SUMMARY
from exhibit.storage import locations
from exhibit.storage.bundle import open_bundle
from exhibit.storage.bundle import validate_at as validate
from exhibit.storage.locations import Remote, list_files
from tests.hub.bundles import files_of
from tests.object_stores import SECRET, moto
from tests.rag.models import link_models
from tests.storage.memory import get, memory, put, upload

__all__ = ["memory"]

ROOT = Path(__file__).parent.parent
TIMES = ("latency", "seconds")


def convert(name: str, out: object, *flags: str, expect: int = 0) -> None:
    arguments = ["--source", str(ROOT / "samples" / name), "--out", str(out), "--engine", "serial", *flags]
    assert convert_main([name, *arguments]) == expect


def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str, *flags: str, expect: int = 0) -> dict:
    """Evaluate with a separate cache that shares only the models with other runs; return the means."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(link_models(tmp_path / f"cache-{run}")))
    fixed = ["--embedder", "hashing", "--llm", "none", "--threads", "1", "--run-name", run]
    fixed += ["--output-dir", str(tmp_path / "results")]
    assert evaluate_rag.main([*fixed, *flags]) == expect
    if expect:
        return {}
    summary = json.loads((tmp_path / "results" / run / SUMMARY).read_text())
    return {name: value for name, value in summary.items() if name not in TIMES}


def read_remote(remote: Remote) -> dict[str, bytes]:
    return {name: get(remote / name) for name in list_files(remote)}


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    """Three contracts as PDFs, converted here."""
    folder = tmp_path_factory.mktemp("local") / "cuad"
    convert("cuad", folder, "--max-documents", "3")
    return folder


def test_convert_refuses_to_write_bundle_to_url_or_hub(memory, capsys):
    convert("cuad", memory, "--max-documents", "1", expect=1)
    output = capsys.readouterr().err
    assert f"{memory}: a bundle cannot be written to a URL; give a path, then copy the folder" in output
    assert list_files(memory) == {}
    convert("cuad", "hf://datasets/me/cuad", "--max-documents", "1", expect=1)
    assert (
        "a bundle cannot be written to the Hub directly; write it to a folder, then run exhibit publish"
        in capsys.readouterr().err
    )


def test_check_show_and_export_give_same_files_for_remote_bundle(memory, local, tmp_path, capsys):
    for name, content in files_of(local).items():
        put(memory / name, content)
    row = next(gold.id for gold in open_bundle(local).gold if gold.spans)
    for bundle, out in ((local, "here"), (memory, "there")):
        assert check_main([str(bundle)]) == 0 and f"{bundle}: " in capsys.readouterr().out
        (tmp_path / out).mkdir()
        assert show_main([str(bundle), str(row), "--out", str(tmp_path / out / "gold.png")]) == 0
        assert export_main([str(bundle), "--to", "text", "--out", str(tmp_path / out / "texts")]) == 0
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")


def test_remote_bundle_gives_the_same_metrics_as_a_local_bundle(memory, local, tmp_path, monkeypatch, capsys):
    for name, content in files_of(local).items():
        put(memory / "bundles/cuad" / name, content)
    put(memory / "bundles/half/corpus/a.txt")
    passing = tmp_path / "passing"
    passing.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(passing))
    fetch, most = locations.fetch, []

    def count_and_fetch(file, path):
        most.append(len(list(passing.glob("exhibit-*"))))
        return fetch(file, path)

    monkeypatch.setattr(locations, "fetch", count_and_fetch)
    flags = ["--limit", "6", "--report-cases", "2", "--engine", "serial", "--file-type", "pdf", "--dataset-paths"]
    here = evaluate(tmp_path, monkeypatch, "local", *flags, str(local))
    assert not most
    assert evaluate(tmp_path, monkeypatch, "remote", *flags, f"{memory}/bundles/*") == here
    assert most[:3] == [1, 1, 1] and list(passing.iterdir()) == []
    assert 3 < len(most) <= 6, "each file is fetched at most twice"
    assert f"{memory}/bundles/half: has no bundle.json; skipped" in capsys.readouterr().err
    config = json.loads((tmp_path / "results" / "remote" / "config.json").read_text())
    assert config["datasets"]["cuad"]["path"] == f"{memory}/bundles/cuad"
    pages = [
        len(list((tmp_path / "results" / run / "report_files" / "pages").iterdir())) for run in ("local", "remote")
    ]
    assert pages[0] == pages[1] > 0, "the report shows the same pages"


def test_evaluate_stops_when_remote_bundle_is_missing_or_incomplete(memory, tmp_path, monkeypatch, capsys):
    put(memory / "half/corpus/a.txt")
    evaluate(tmp_path, monkeypatch, "r", "--dataset-paths", f"{memory}/half", f"{memory}/none*", expect=1)
    output = capsys.readouterr().err
    assert "half: no bundle.json in it" in output and f"{memory}/none*: no file or folder matches" in output


def test_evaluate_stops_when_store_connection_fails_and_can_be_resumed(memory, local, tmp_path, monkeypatch, capsys):
    for name, content in files_of(local).items():
        put(memory / "cuad" / name, content)
    fetch, documents = locations.fetch, []

    def fail_at_second(file, path):
        documents.append(file)
        if len(documents) == 2:
            raise locations.StorageError(f"{file}: connection refused")
        return fetch(file, path)

    monkeypatch.setattr(locations, "fetch", fail_at_second)
    flags = ["--limit", "2", "--report-cases", "0", "--engine", "serial", "--dataset-paths", f"{memory}/cuad"]
    evaluate(tmp_path, monkeypatch, "r", *flags, expect=1)
    output = capsys.readouterr().err
    assert "connection refused" in output and "set aside" not in output and len(documents) == 2
    assert evaluate(tmp_path, monkeypatch, "r", *flags, "--resume"), "the resumed run continues"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Iterator[str]:
    """The address of an S3 server in its own process, which runs until the module's tests end."""
    with moto(tmp_path_factory.mktemp("s3")) as address:
        yield address


@pytest.fixture
def s3(store, tmp_path, monkeypatch) -> Iterator[Remote]:
    """A separate bucket for each test."""
    variables = {"AWS_ENDPOINT_URL": store, "AWS_ACCESS_KEY_ID": "loopback", "AWS_SECRET_ACCESS_KEY": SECRET}
    variables |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    variables |= {"AWS_CONFIG_FILE": str(tmp_path / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "none")}
    for name, value in (variables | {"EXHIBIT_CACHE": str(tmp_path / "cache")}).items():
        monkeypatch.setenv(name, value)
    client = fsspec.filesystem("s3", skip_instance_cache=True)
    bucket = f"b{time.monotonic_ns()}"
    client.mkdir(bucket)
    yield Remote(f"s3://{bucket}/bundles")
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.mark.extra
def test_s3_evaluation_with_workers_gives_same_metrics_as_local_evaluation(s3, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "lb"
    convert("legalbenchrag", folder)  # its names have spaces, %20, colons and bars
    upload(folder, s3 / "lb")
    assert validate(s3 / "lb") == []
    flags = ["--report-cases", "2", "--jobs", "2", "--dataset-paths"]
    here = evaluate(tmp_path, monkeypatch, "local", *flags, str(folder))
    assert evaluate(tmp_path, monkeypatch, "s3", *flags, f"{s3}/*") == here
    assert SECRET not in "".join(capsys.readouterr())


@pytest.mark.extra
def test_s3_evaluation_reports_missing_bundle_and_missing_credentials(s3, tmp_path, monkeypatch, capsys):
    evaluate(tmp_path, monkeypatch, "r", "--dataset-paths", "s3://no-such-bucket-here/cuad", expect=1)
    assert "s3://no-such-bucket-here/cuad: no bundle.json in it" in capsys.readouterr().err
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    evaluate(tmp_path, monkeypatch, "r", "--dataset-paths", f"{s3}/cuad", expect=1)
    assert f"{s3}/cuad/bundle.json: no credentials; set AWS_ACCESS_KEY_ID" in capsys.readouterr().err
