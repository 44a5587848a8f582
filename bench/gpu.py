"""Embedding on an accelerator: chunks a second, and the share of the time that the device was busy.

    python -m bench.gpu --source FOLDER [--embedder minilm:fp16] [--repeat 4]
    python -m bench.gpu --source FOLDER --embedder cuda [--weights model.safetensors] --repeat 10

The folder's documents are read and split first; then their chunks are embedded, the same ones `--repeat` times under
other words, so that there is enough work to measure. An NVIDIA device is asked ten times a second how busy it is.
For the embedder `cuda` its parts are measured, too: tokens by one process, by all workers, and the device alone with
tokens that are there already. `--weights` names the official weights where they are neither installed nor in the cache.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from bench._table import corpus_folder, print_table, read_texts
from rag.embedders._feed import Feed
from rag.embedders._tokens import Tokens
from rag.seams import Embedder, Vectors
from rag.splitters import rcts
from schemas.command import guarded
from schemas.errors import ToolkitError
from schemas.plugins import load_plugin

_WARM = 1 << 14
"""Chunks that are embedded before the clock starts."""


@runtime_checkable
class Fed(Protocol):
    """An embedder whose tokens come from workers, and whose device can be given tokens alone."""

    many: int
    feed: Feed

    def start(self, tokens: Tokens) -> Callable[[], Vectors]:
        """Start on the vectors of some tokens; return what waits for them."""


class Watch:
    """How busy the device was, in percent, once for each sample."""

    def __init__(self) -> None:
        self.samples: list[float] = []


@contextmanager
def watched() -> Iterator[Watch]:
    """Ask the device how busy it is while the block runs; nothing is known where there is none."""
    watch = Watch()
    tool = shutil.which("nvidia-smi")
    if not tool:
        yield watch
        return
    query = [tool, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "100"]
    process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True)
    try:
        yield watch
    finally:
        process.terminate()
        told, _ = process.communicate()
        watch.samples = [float(line) for line in told.split() if line.replace(".", "", 1).isdigit()]


def chunks_of(folder: Path, repeat: int) -> list[str]:
    """Return a folder's chunks of 500 characters, each once for every repetition, never the same string twice."""
    chunks = [text[start:end] for text in read_texts(folder) for start, end in rcts.split(text)]
    chunks = [chunk for chunk in chunks if chunk.strip()]
    return [chunk if not turn else f"{turn} {chunk}" for turn in range(repeat) for chunk in chunks]


class Timing(NamedTuple):
    """How many chunks, in how many seconds, and how busy the device was."""

    name: str
    chunks: int
    seconds: float
    samples: Sequence[float]

    def row(self) -> list[str]:
        """Return it as a table has it."""
        busy = f"{fmean(self.samples):.0f}%" if self.samples else "no device"
        return [self.name, f"{self.chunks:,}", f"{self.seconds:.1f}", f"{self.chunks / self.seconds:,.0f}", busy]


def timed(name: str, chunks: Sequence[str], work: Callable[[], object]) -> Timing:
    """Return how long the work took on these chunks."""
    with watched() as watch:
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
    return Timing(name, len(chunks), seconds, watch.samples)


def open_embedder(wanted: str, weights: Path | None) -> Embedder:
    """Return the embedder; with weights, `cuda` on those."""
    module, argument = load_plugin("rag.embedders", wanted)
    if weights is None:
        embedder: Embedder = module.open(argument)
    elif wanted.partition(":")[0] == "cuda":
        embedder = module.open(argument, weights=weights)
    else:
        raise ToolkitError(f"--weights is for the embedder cuda; {wanted} finds its own")
    return embedder


def time_parts(embedder: Fed, chunks: Sequence[str]) -> Iterator[Timing]:
    """Yield what the parts of an embedder take alone that has a feed and an encoder."""
    some = chunks[: len(chunks) // 4]  # one process is slow, and enough of it is seen
    alone = Feed(workers=0, slab=embedder.many)
    yield timed("tokens, one process", some, lambda: list(alone.slabs(some)))
    slabs: list[Tokens] = []
    ready = timed("tokens, all workers", chunks, lambda: slabs.extend(t for _, t in embedder.feed.slabs(chunks)))
    yield ready

    def run() -> None:
        for copied in [embedder.start(tokens) for tokens in slabs]:
            copied()

    yield timed("device alone", chunks, run)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Embed, and print how fast it went."""
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=what, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="a folder of text files (default: the samples)")
    parser.add_argument("--embedder", default="minilm", help="NAME[:ARGUMENT] (default: minilm, on whatever there is)")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="the official weights, for the embedder cuda")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="embed everything so many times")
    options = parser.parse_args(arguments)
    chunks = chunks_of(corpus_folder(options.source), options.repeat)
    embedder = open_embedder(options.embedder, options.weights)
    # the first time, libraries are loaded, kernels chosen and workers started
    embedder.embed(chunks[:_WARM], role="passage")
    made: list[Vectors] = []
    whole = timed(embedder.name, chunks, lambda: made.append(embedder.embed(chunks, role="passage")))
    if not np.isfinite(made[0]).all():
        raise ToolkitError(f"{options.embedder}: a vector is not finite")
    parts = list(time_parts(embedder, chunks)) if isinstance(embedder, Fed) else []
    rows = [timing.row() for timing in (whole, *parts)]
    print_table("Embedding", ["embedder", "chunks", "seconds", "chunks/s", "device busy"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
