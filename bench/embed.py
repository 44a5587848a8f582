"""Compares the embedder's speed with sentence-transformers on torch, and with onnxruntime alone on the same tokens.

    python -m bench.embed [--source FOLDER] [--texts 400] [--peer-python /path/to/python]

All run alternately on the same chunks, so that the ratios hold on any machine. sentence-transformers runs in another
interpreter, which has torch; without one it is left out.
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

import numpy as np

from bench._table import corpus_folder, print_table, read_texts
from exhibit.models.embedders.minilm import Ids, MiniLM
from exhibit.models.network import MODEL, find_file
from exhibit.models.protocols import Vectors
from exhibit.rag.splitters import rcts
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

_PEER = """
import json, sys, time
import numpy as np
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
texts = json.load(sys.stdin)
model.encode(texts[:8])
started = time.perf_counter()
vectors = model.encode(texts, batch_size=32, normalize_embeddings=True)
seconds = time.perf_counter() - started
np.save(sys.argv[2], vectors)
print(seconds)
"""


def sample(folder: Path, count: int) -> list[str]:
    """Return some chunks of 500 characters, the same in every run, all different."""
    chunks = [text[start:end] for text in read_texts(folder) for start, end in rcts.split(text)]
    different = list({" ".join(chunk.split()): chunk for chunk in chunks}.values())
    return random.Random(7).sample(different, min(count, len(different)))


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that a function takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def run_peer(python: Path, texts: Sequence[str]) -> tuple[float, Vectors]:
    """Return the seconds of sentence-transformers, and its vectors; one run."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "vectors.npy"
        command = [str(python), "-c", _PEER, str(find_file(MODEL).parent), str(out)]
        done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolkitError(f"{python}: {done.stderr.strip().splitlines()[-1]}")
        return float(done.stdout.split()[-1]), np.load(out)


def run_bare(model: MiniLM, batches: Sequence[Ids], threads: int) -> None:
    """Run the graph on existing tokens, with as many threads as the embedder."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(model.run, batches))


def equal_batches(tokens: Sequence[Ids], size: int) -> list[Ids]:
    """Return batches of texts with the same number of tokens."""
    groups: dict[int, list[Ids]] = defaultdict(list)
    for ids in tokens:
        groups[ids.shape[1]].append(ids)
    return [np.concatenate(group[at : at + size]) for group in groups.values() for at in range(0, len(group), size)]


def top_ten(vectors: Vectors) -> list[set[int]]:
    """Return the ten nearest other texts of each text."""
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    return [set(map(int, row)) for row in np.argsort(-scores, axis=1)[:, :10]]


def agreement(ours: Vectors, exact: Vectors) -> list[str]:
    """Return the mean and the lowest cosine, and the share of nearest neighbours that are the same."""
    cosines = (ours * exact).sum(axis=1)
    kept = np.mean([len(a & b) / 10 for a, b in zip(top_ten(ours), top_ten(exact), strict=True)])
    return [f"{cosines.mean():.4f}", f"{cosines.min():.4f}", f"{kept:.1%}"]


def measure(texts: list[str], rounds: int, peer: Path | None) -> None:
    """Time all embedders alternately, and print the two tables."""
    default, full = MiniLM(), MiniLM("fp32")
    tokens = sorted(default.tokenise(texts), key=lambda ids: -ids.shape[1])
    batches = equal_batches(tokens, 16)
    seconds: dict[str, list[float]] = defaultdict(list)
    exact = None
    for _ in range(rounds):
        seconds["ours, int8"].append(timed(lambda: default.embed(texts, role="passage")))
        seconds["onnxruntime on the tokens"].append(timed(lambda: run_bare(default, tokens, default.threads)))
        seconds["the same in batches of 16"].append(timed(lambda: run_bare(default, batches, default.threads)))
        seconds["ours, fp32"].append(timed(lambda: full.embed(texts, role="passage")))
        if peer is not None:
            once, exact = run_peer(peer, texts)
            seconds["sentence-transformers"].append(once)
    best = {name: min(times) for name, times in seconds.items()}
    rows = [[name, f"{len(texts) / s:.1f}", f"{s / best['ours, int8']:.2f}"] for name, s in best.items()]
    mean = np.mean([ids.shape[1] for ids in tokens])
    print_table(f"{len(texts)} chunks, {mean:.0f} tokens on average", ["", "chunks/s", "seconds, as times ours"], rows)
    ours, fp32 = default.embed(texts, role="passage"), full.embed(texts, role="passage")
    rows = [["int8 and fp32", *agreement(ours, fp32)]]
    if exact is not None:
        rows += [["int8 and torch", *agreement(ours, exact)], ["fp32 and torch", *agreement(fp32, exact)]]
    print_table("Agreement", ["", "cosine, mean", "worst", "top ten kept"], rows)


@guarded()
def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="folder of .txt files (default: LegalBench-RAG-mini)")
    parser.add_argument("--texts", type=int, default=400, help="the number of chunks (default: 400)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="runs of each embedder, of which the fastest counts (default: 3)"
    )
    parser.add_argument("--peer-python", type=Path, help="an interpreter with sentence-transformers")
    options = parser.parse_args()
    measure(sample(corpus_folder(options.source), options.texts), options.rounds, options.peer_python)
    if options.peer_python is None:
        print("\nwithout --peer-python there is no comparison with sentence-transformers", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
