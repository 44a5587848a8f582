"""Shared by the tests of Milvus: a corpus, a pipeline on it, and programs that are killed while they write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exhibit.models.embedders.hashing import Hashing
from exhibit.rag import Config, Pipeline
from exhibit.rag.protocols import VectorStore
from exhibit.runtime.plugins import load_plugin

ROOT = Path(__file__).parents[2]


def opened(folder: Path, argument: str | None = None, *, name: str = "chunk", dimensions: int = 32) -> VectorStore:
    """Open a layer of an index in Milvus."""
    module, argument = load_plugin("exhibit.rag.stores", f"milvus:{argument or ''}")
    return module.open(folder, argument, name=name, dimensions=dimensions)


def collections(server: str) -> list[str]:
    """Return the names of a server's collections."""
    from pymilvus import MilvusClient

    client = MilvusClient(server, token=os.environ.get("MILVUS_TOKEN", ""))
    try:
        return sorted(client.list_collections())
    finally:
        client.close()


CONTRACT = "SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {party} and Dune plc.\n\n" + "".join(
    f"1.{n} Clause {n}. {{party}} shall give {n} days' notice of termination under the law of {{law}}.\n\n"
    for n in range(1, 12)
)


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, party, law in (("alder", "Alder Ltd", "Norway"), ("birch", "Birch Inc.", "Ohio")):
        (folder / f"{name}.txt").write_text(CONTRACT.format(party=party, law=law), encoding="utf-8")
    return folder


def pipeline(tmp_path: Path, store: str, **settings) -> Pipeline:
    config = Config.preset("sac-multilayer", **{"store": store, "chunk_size": 120, "document_limit": 0, **settings})
    return Pipeline(config, cache=tmp_path / "cache", jobs=1, embedder=Hashing(64))


WRITER = """
import sys
from pathlib import Path
from bench.stores import make_mixture
from exhibit.rag.stores.milvus import open
store = open(Path(sys.argv[1]), sys.argv[2], name="chunk", dimensions=32)
vectors = make_mixture(6000, 32, 1)
for at in range(0, 6000, 250):
    store.add(range(at, at + 250), vectors[at:at + 250])
    print(at, flush=True)
store.save()
"""


def run_until(row: int, folder: Path, argument: str) -> None:
    """Run a writer and kill it soon after it has written this row."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, folder, argument], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        for line in writer.stdout:
            if int(line) >= row:
                time.sleep(0.02)  # into the middle of the next batch
                os.kill(writer.pid, signal.SIGKILL)
                break


BUILDER = """
import sys
from pathlib import Path
from exhibit.rag import Config, Pipeline
from exhibit.models.embedders.hashing import Hashing
import exhibit.rag.ingest
exhibit.rag.ingest._BATCH = 8

class Telling(Hashing):
    def embed(self, texts, *, role):
        print(len(texts), flush=True)
        return super().embed(texts, role=role)

if __name__ == "__main__":
    config = Config.preset("sac", store=f"milvus:{sys.argv[3]}", chunk_size=120)
    embedder = Telling(64)
    Pipeline(config, cache=Path(sys.argv[1]) / "c", jobs=1, embedder=embedder).index(
        Path(sys.argv[1]) / "corpus", Path(sys.argv[1]) / sys.argv[2])
"""
