"""Compares the embedder's speed with three peers: sentence-transformers, fastembed, and onnxruntime alone.

    python -m bench.embed [--source FOLDER] [--texts 400] [--threads 1] [--peer-python /path/to/python]

All embedders run alternately on the same chunks, with the same number of threads, so that the ratios of
their times are comparable on any machine. On a busy machine, compare the processor time. onnxruntime gets
texts that are already tokenised. sentence-transformers and fastembed run in another interpreter
(`--peer-python`), which needs sentence-transformers and torch, and for fastembed also fastembed and onnx.
fastembed runs the same weights in single precision, exported by torch. Both get batches of 32 texts:
fastembed pads a batch to its longest text, and is slower with its default of 256.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench._table import find_corpus_folder, measure_peak_memory, print_table, read_texts
from exhibit.models.embedders.minilm import Ids, MiniLM
from exhibit.models.network import MODEL, count_processors, find_file
from exhibit.models.protocols import Vectors
from exhibit.rag.splitters import rcts
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

_PEERS = """
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

for number, (name, embed) in enumerate(peers.items()):
    embed(texts[:8])
    started = time.perf_counter(), time.process_time()
    vectors = embed(texts)
    times = time.perf_counter() - started[0], time.process_time() - started[1]
    np.save(work / f"{name}.npy", vectors)
    print(json.dumps([name, *times]))
"""
_OURS = "ours, int8"


class Spent(NamedTuple):
    """The wall-clock and processor seconds that one embedder took."""

    seconds: float
    processor: float


def sample(folder: Path, count: int) -> list[str]:
    """Return a random sample of different chunks of up to 500 characters, the same sample in every run."""
    chunks = [text[start:end] for text in read_texts(folder) for start, end in rcts.split(text)]
    different = list({" ".join(chunk.split()): chunk for chunk in chunks}.values())
    return random.Random(7).sample(different, min(count, len(different)))


def time_work(work: Callable[[], object]) -> Spent:
    """Return the time that a function takes."""
    started = Spent(time.perf_counter(), time.process_time())
    work()
    return Spent(time.perf_counter() - started.seconds, time.process_time() - started.processor)


def run_peers(python: Path, texts: Sequence[str], threads: int, work: Path) -> dict[str, tuple[Spent, Vectors]]:
    """Run sentence-transformers and, if it is installed, fastembed on the texts, in another interpreter.

    `python` is the path of that interpreter. Return the time and the vectors of each library by its name.
    """
    command = [str(python), "-c", _PEERS, str(find_file(MODEL).parent), str(work), str(threads)]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolkitError(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('["')]
    return {name: (Spent(*times), np.load(work / f"{name}.npy")) for name, *times in lines}


def run_bare(model: MiniLM, batches: Sequence[Ids], threads: int) -> None:
    """Run the ONNX graph alone on texts that are already tokenised, with as many threads as the embedder."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(model.run, batches))


def equal_batches(tokens: Sequence[Ids], size: int) -> list[Ids]:
    """Return the tokenised texts in batches of at most `size`; all texts of a batch have the same length."""
    groups: dict[int, list[Ids]] = defaultdict(list)
    for ids in tokens:
        groups[ids.shape[1]].append(ids)
    return [np.concatenate(group[at : at + size]) for group in groups.values() for at in range(0, len(group), size)]


def find_top_ten(vectors: Vectors) -> list[set[int]]:
    """Return, for each text, the row numbers of its ten nearest other texts."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    return [set(map(int, row)) for row in np.argsort(-scores, axis=1)[:, :10]]


def measure_agreement(ours: Vectors, exact: Vectors) -> list[str]:
    """Return how well two embedders agree on the same texts: three numbers as text.

    They are the mean and the lowest cosine between the two vectors of a text, and the mean share of a text's
    ten nearest neighbours that both embedders have in common.
    """
    cosines = (ours * exact).sum(axis=1)
    kept = np.mean([len(a & b) / 10 for a, b in zip(find_top_ten(ours), find_top_ten(exact), strict=True)])
    return [f"{cosines.mean():.4f}", f"{cosines.min():.4f}", f"{kept:.1%}"]


def measure(texts: list[str], rounds: int, threads: int, peer: Path | None) -> None:
    """Time all embedders alternately; print a table of their speed and a table of their agreement."""
    default, full = MiniLM(threads=threads), MiniLM("fp32", threads=threads)
    tokens = sorted(default.tokenise(texts), key=lambda ids: -ids.shape[1])
    batches = equal_batches(tokens, 16)
    spent: dict[str, list[Spent]] = defaultdict(list)
    exact: dict[str, Vectors] = {}
    with tempfile.TemporaryDirectory() as work:
        for _ in range(rounds):
            spent[_OURS].append(time_work(lambda: default.embed(texts, role="passage")))
            spent["onnxruntime on the tokens"].append(time_work(lambda: run_bare(default, tokens, threads)))
            spent["the same in batches of 16"].append(time_work(lambda: run_bare(default, batches, threads)))
            spent["ours, fp32"].append(time_work(lambda: full.embed(texts, role="passage")))
            for name, (once, exact[name]) in (run_peers(peer, texts, threads, Path(work)) if peer else {}).items():
                spent[name].append(once)
    best = {name: Spent(*map(min, zip(*times, strict=True))) for name, times in spent.items()}
    ours = best[_OURS]
    rows = [
        [name, f"{len(texts) / once.seconds:.1f}", f"{once.processor / len(texts) * 1000:.1f}"]
        + [f"{mine / other:.2f}" for mine, other in zip(ours, once, strict=True)]
        for name, once in best.items()
    ]
    mean = np.mean([ids.shape[1] for ids in tokens])
    title = f"{len(texts)} chunks, {mean:.0f} tokens on average, {threads} threads, the least of {rounds} rounds"
    head = ["", "chunks/s", "processor ms a chunk", "ours as a share: time", "processor time"]
    print_table(title, head, rows)
    int8, fp32 = default.embed(texts, role="passage"), full.embed(texts, role="passage")
    rows = [["int8 and fp32", *measure_agreement(int8, fp32)]]
    for name, vectors in exact.items():
        rows += [
            [f"int8 and {name}", *measure_agreement(int8, vectors)],
            [f"fp32 and {name}", *measure_agreement(fp32, vectors)],
        ]
    print_table("Agreement", ["", "cosine, mean", "worst", "top ten kept"], rows)
    print(f"\nmost memory of this process, with the graph in int8 and in fp32: {measure_peak_memory():.0f} MB")


@guarded()
def main() -> int:
    """Measure all embedders on a sample of chunks, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="folder of .txt files (default: LegalBench-RAG-mini)")
    parser.add_argument("--texts", type=int, default=400, help="the number of chunks (default: 400)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, of which the fastest counts (default: 3)")
    parser.add_argument(
        "--threads", type=int, default=count_processors(), help="threads of each (default: all processors)"
    )
    parser.add_argument("--peer-python", type=Path, help="an interpreter with sentence-transformers and fastembed")
    options = parser.parse_args()
    texts = sample(find_corpus_folder(options.source), options.texts)
    measure(texts, options.rounds, options.threads, options.peer_python)
    if options.peer_python is None:
        print("\nwithout --peer-python nothing is compared with sentence-transformers and fastembed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
