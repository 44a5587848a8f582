"""A small bundle as a dataset, and a RAG server on this machine."""

import pytest

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
