"""Compares the speed of the pipeline's parts with their peers on the same input, in one run.

    python -m bench.speed [--source FOLDER] [--texts 400] [--threads 1] [--peer-python /path/to/python] [--page FILE]

The embedder is compared with sentence-transformers and fastembed, which run in another interpreter
(`--peer-python`) that has them; the splitter with langchain-text-splitters (the extra `bench`); the store
`faiss` with FAISS itself. The ways alternate, so that the ratios hold on a busy
machine; compare processor time there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import faiss
import numpy as np

from bench.table import Cost, Table, find_data, publish, read_texts, time_alternately
from exhibit.evidence import Span
from exhibit.models.embedders import minilm
from exhibit.models.network import MODEL, find_file
from exhibit.models.protocols import Vectors
from exhibit.rag.splitters import SEPARATORS, split
from exhibit.rag.stores.faiss import open as open_store
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

CHUNK_CHARS = 500
PEERS = """
import importlib.util, json, pathlib, shutil, sys, time
import numpy as np, torch, transformers
from sentence_transformers import SentenceTransformer

source, work, threads = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
texts = json.load(sys.stdin)
torch.set_num_threads(threads)
model = SentenceTransformer(str(source), device="cpu")
peers = {"sentence-transformers": lambda texts: model.encode(texts, batch_size=32, normalize_embeddings=True)}
if importlib.util.find_spec("fastembed"):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType
    folder = work / "fastembed"
    if not folder.exists():
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors"))
        inputs = ["input_ids", "attention_mask", "token_type_ids"]
        class States(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.network = transformers.AutoModel.from_pretrained(str(source), attn_implementation="eager").eval()
            def forward(self, *given):
                return self.network(**dict(zip(inputs, given)))[0]
        ones = torch.ones((2, 7), dtype=torch.long)
        torch.onnx.export(
            States(), (ones, ones, ones), str(folder / "model.onnx"), opset_version=17, dynamo=False,
            input_names=inputs, output_names=["last_hidden_state"],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in [*inputs, "last_hidden_state"]},
        )
    TextEmbedding.add_custom_model(
        model="local/minilm", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="local/minilm"),
        dim=384, model_file="model.onnx",
    )
    fast = TextEmbedding("local/minilm", specific_model_path=str(folder), threads=threads)
    peers["fastembed"] = lambda texts: np.array(list(fast.embed(texts, batch_size=32)))
for name, embed in peers.items():
    embed(texts[:8])
    started = time.perf_counter(), time.process_time()
    vectors = embed(texts)
    print(json.dumps([name, time.perf_counter() - started[0], time.process_time() - started[1]]))
    np.save(work / f"{name}.npy", vectors)
"""
"""The program that the other interpreter runs: the same weights, batches of 32, as both are fastest."""


def compare_embedders(texts: Sequence[str], threads: int, peer: Path | None) -> Table:
    """Return chunks per second and processor time of our embedder and its peers, and how far vectors agree."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    variants = {name: minilm.open(name) for name in ("int8", "fp32")}
    for embedder in variants.values():
        embedder.embed(texts[:8], role="passage")
    ways = [lambda embedder=embedder: embedder.embed(texts, role="passage") for embedder in variants.values()]
    costs = dict(zip(variants, time_alternately(ways, rounds=3), strict=True))
    vectors = {name: embedder.embed(texts, role="passage") for name, embedder in variants.items()}
    if peer is not None:
        with tempfile.TemporaryDirectory() as work:
            command = [str(peer), "-c", PEERS, str(find_file(MODEL).parent), work, str(threads)]
            done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
            if done.returncode:
                raise ToolkitError(f"{peer}: {done.stderr.strip().splitlines()[-1]}")
            for name, *cost in (json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')):
                costs[name], vectors[name] = Cost(*cost), np.load(Path(work) / f"{name}.npy")
    ours = costs["int8"]
    rows = [
        [
            name, f"{len(texts) / cost.seconds:.1f}", f"{1000 * cost.processor / len(texts):.1f}",
            f"{ours.processor / cost.processor:.2f}", f"{(vectors[name] * vectors['int8']).sum(axis=1).mean():.4f}",
        ]
        for name, cost in costs.items()
    ]  # fmt: skip
    head = ["MiniLM", "chunks/s", "processor ms a chunk", "int8 / this", "cosine with int8"]
    return Table(f"Embedding {len(texts)} chunks, {threads} threads", head, rows)


def compare_splitters(texts: Sequence[str]) -> Table:
    """Return the time of our splitter and of langchain's with the same separators, and the share of equal chunks."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    separators = list(SEPARATORS)
    peer = RecursiveCharacterTextSplitter(
        separators=separators, chunk_size=CHUNK_CHARS, chunk_overlap=0, strip_whitespace=False
    )
    ours, theirs = time_alternately(
        [lambda: [split(text, size=CHUNK_CHARS, separators=separators) for text in texts],
         lambda: [peer.split_text(text) for text in texts]],
        rounds=5,
    )  # fmt: skip
    same = total = 0
    for text in texts:
        spans, start = set(split(text, size=CHUNK_CHARS, separators=separators)), 0
        for chunk in peer.split_text(text):
            same += Span(start, start + len(chunk)) in spans
            total += 1
            start += len(chunk)
    rows = [
        ["langchain-text-splitters", f"{theirs.processor:.3f}", "1.0", ""],
        ["ours", f"{ours.processor:.3f}", f"{theirs.processor / ours.processor:.1f} x", f"{same / total:.2%}"],
    ]
    return Table(f"Splitting {len(texts)} texts", ["", "processor s", "ratio", "same chunks"], rows)


def make_unit_vectors(rows: int, width: int, seed: int) -> Vectors:
    """Return random vectors of length one, one per row."""
    vectors = np.random.default_rng(seed).standard_normal((rows, width), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def compare_search(rows: int) -> Table:
    """Return the time of searches through the store `faiss` and through FAISS itself, and whether results agree."""
    width, within = 384, np.arange(min(1200, rows))
    vectors, queries = make_unit_vectors(rows, width, 1), make_unit_vectors(128, width, 2)
    raw = faiss.IndexFlatIP(width)
    raw.add(vectors)
    selector, chosen = faiss.SearchParameters(), faiss.IDSelectorBatch(within)
    selector.sel = chosen
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder), None, name="chunk", dimensions=width)
        store.add(np.arange(rows), vectors)
        same = (store.search(queries, 64)[1] == raw.search(queries, 64)[1]).mean()
        ways = [
            lambda: store.search(queries, 64),
            lambda: raw.search(queries, 64),
            lambda: store.search(queries[:32], 64, within=within),
            lambda: raw.search(queries[:32], 64, params=selector),
        ]
        ours, theirs, ours_within, theirs_within = time_alternately(ways, rounds=5)
    table = []
    for name, mine, other in (("128 queries", ours, theirs), ("32 in 1,200 chunks", ours_within, theirs_within)):
        table.append([name, f"{other.seconds:.3f}", f"{mine.seconds:.3f}", f"{mine.seconds / other.seconds:.2f}"])
    title = f"Search in {rows:,} vectors, {100 * same:.2f}% the same results"
    return Table(title, ["", "FAISS, s", "our store, s", "ours / FAISS"], table)


def sample_chunks(texts: Sequence[str], count: int) -> list[str]:
    """Return different chunks of up to 500 characters, the same in every run."""
    chunks = {text[start:end] for text in texts for start, end in split(text)}
    return random.Random(7).sample(sorted(chunks), min(count, len(chunks)))


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each part of the pipeline: its time beside that of its peers."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, help="folder of .txt files (default: LegalBench-RAG's corpus)")
    parser.add_argument("--texts", type=int, default=400, metavar="N", help="chunks to embed (400)")
    parser.add_argument("--rows", type=int, default=100_000, metavar="N", help="vectors to search (100,000)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--peer-python", type=Path, help="an interpreter with sentence-transformers and fastembed")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the tables to this Markdown file")
    options = parser.parse_args(argv)
    texts = read_texts(options.source or find_data("legalbenchrag") / "corpus")
    tables = [compare_embedders(sample_chunks(texts, options.texts), options.threads, options.peer_python)]
    if find_spec("langchain_text_splitters"):
        tables.append(compare_splitters(texts))
    tables.append(compare_search(options.rows))
    publish(options.page, "Speed beside peers", tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
