"""Convert, ingest and evaluate give the same bytes and results on Ray as on local processes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import evaluate_rag
from exhibit.conversion import main as convert
from exhibit.rag.__main__ import main as rag
from tests.hub.bundles import files_of

TIMED = ("seconds", "pages_per_second", "latency", "started", "ended")


@pytest.fixture(scope="module", autouse=True)
def shut_ray_down():
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


def drop_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: drop_times(item) for key, item in value.items() if not key.startswith(TIMED)}
    return [drop_times(item) for item in value] if isinstance(value, list) else value


def read_results(folder: Path) -> dict[str, Any]:
    """Return the content of the JSON files of a run, without times."""
    read = {}
    for path in sorted(folder.rglob("*.json*")):
        lines = path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text("utf-8")]
        read[str(path.relative_to(folder))] = [drop_times(json.loads(line)) for line in lines]
    return read


@pytest.mark.extra
def test_ray_and_local_engines_give_identical_bundle_index_and_results(samples, tmp_path, monkeypatch):
    for engine in ("local", "ray"):
        # a separate cache, so that the run reuses nothing of the other run
        monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / engine / "cache"))
        # no document exceeds the time limit on a busy machine
        run = ["--engine", engine, "--jobs", "2", "--item-timeout", "3600"]
        bundle = tmp_path / engine / "cuad"
        assert convert(["cuad", "--source", str(samples / "cuad"), "--out", str(bundle), *run]) == 0
        index = tmp_path / engine / "index"
        assert rag(["index", str(bundle / "corpus"), "--out", str(index), "--embedder", "hashing", *run]) == 0
        flags = ["--dataset-paths", str(bundle), "--embedder", "hashing", "--report-cases", "0"]
        assert evaluate_rag.main([*flags, "--output-dir", str(tmp_path / engine), "--run-name", "results", *run]) == 0
    local, ray = tmp_path / "local", tmp_path / "ray"
    assert files_of(local / "cuad") == files_of(ray / "cuad")
    assert files_of(local / "index") == files_of(ray / "index")
    ours, theirs = read_results(local / "results"), read_results(ray / "results")
    assert ours.keys() == theirs.keys() and len(ours) > 5
    for name in ours:
        assert json.dumps(ours[name]).replace(str(local), "") == json.dumps(theirs[name]).replace(str(ray), ""), name
