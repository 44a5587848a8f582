"""A small bundle as a dataset, and a RAG server on this machine."""

import pytest

import evaluate_rag
from exhibit.evaluation.datasets import Selection, load_datasets
from tests.evaluation.loopback import serving
from tests.rag.bundles import write_bundle


@pytest.fixture
def dataset(tmp_path):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "data" / "leases")], Selection())
    return dataset


@pytest.fixture
def server():
    with serving() as running:
        yield running


@pytest.fixture
def run_command(tmp_path, monkeypatch):
    """A function that runs the command with a separate cache and returns its exit code."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))

    def run(*flags, name="r"):
        fixed = ["--output-dir", tmp_path / "results", "--run-name", name, "--embedder", "hashing", "--report-cases", 0]
        return evaluate_rag.main([*map(str, (*fixed, *flags))])

    return run
