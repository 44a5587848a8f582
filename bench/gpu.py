"""Embedding on an accelerator: chunks a second, and the share of the time that the device was busy.

    python -m bench.gpu --source FOLDER [--embedder minilm:fp16] [--repeat 4]

The folder's documents are read and split first; then their chunks are embedded, the same ones `--repeat` times under
other words, so that there is enough work to measure. An NVIDIA device is asked ten times a second how busy it is.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import numpy as np

from bench._table import corpus_folder, print_table, read_texts
from rag.splitters import rcts
from schemas.command import guarded
from schemas.plugins import load_plugin


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


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Embed, and print how fast it went."""
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=what, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="a folder of text files (default: the samples)")
    parser.add_argument("--embedder", default="minilm", help="NAME[:ARGUMENT] (default: minilm, on whatever there is)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="embed everything so many times")
    options = parser.parse_args(arguments)
    chunks = chunks_of(corpus_folder(options.source), options.repeat)
    module, argument = load_plugin("rag.embedders", options.embedder)
    embedder = module.open(argument)
    embedder.embed(chunks[:256], role="passage")  # the first time, libraries are loaded and kernels chosen
    with watched() as watch:
        started = time.perf_counter()
        vectors = embedder.embed(chunks, role="passage")
        seconds = time.perf_counter() - started
    if not np.isfinite(vectors).all():
        print("error: a vector is not finite", file=sys.stderr)
        return 1
    busy = f"{fmean(watch.samples):.0f}%" if watch.samples else "no device"
    rows = [[embedder.name, f"{len(chunks):,}", f"{seconds:.1f}", f"{len(chunks) / seconds:,.0f}", busy]]
    print_table("Embedding", ["embedder", "chunks", "seconds", "chunks/s", "device busy"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
