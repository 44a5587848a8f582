"""Measures embedding on an accelerator: chunks per second, and the device's utilisation.

    python -m bench.gpu --source FOLDER [--embedder minilm:fp16] [--repeat 4]
    python -m bench.gpu --source FOLDER --embedder cuda [--weights model.safetensors] --repeat 300 [--json FILE]

The folder's documents are read and split first. Then their chunks are embedded `--repeat` times, each time
with a number in front, so that there is enough work to measure. Each phase runs for `--seconds`, and prints
a line at its start and end. If a phase takes `--stall` seconds more, the program prints its stack and ends.
The utilisation of an NVIDIA device is sampled ten times a second, and the time of its kernels is taken from
a profile of some chunks.

For the embedder `cuda`, each part is measured alone and together with the others: tokenising in one process
and in several workers; the device with texts sorted by length and with padded texts; copying the vectors
during the computation and after it. This embedder works in slabs; a slab is the texts that are sent to the
device together. `--weights` names the official weights if they are neither installed nor in the cache.
`--device cpu` runs everything without a device, to test this program; its figures are those of the CPU.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bench._device import Watch, time_kernels, watch_device
from bench._table import find_corpus_folder, print_table, read_texts
from exhibit.models.network import Feed, Tokens
from exhibit.models.protocols import Embedder, Vectors
from exhibit.rag.splitters import rcts
from exhibit.runtime.command import guarded
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import write_whole

_WARM = 1 << 10
"""The number of chunks that are embedded before the clock starts, to load libraries and to choose kernels."""
_PIECE = 1 << 12
"""The number of chunks per call, for an embedder without a feed."""
_PADDED = 1 << 10
"""The number of texts that are padded to the longest of them, if texts are not sorted by length."""

Work = Callable[[], Iterator[int]]
"""A function that does one piece of work after another, and yields the number of chunks in each."""


@runtime_checkable
class Fed(Protocol):
    """The protocol of an embedder that tokenises texts in worker processes and embeds them on a device.

    `feed` has the worker processes.
    """

    many: int
    feed: Feed

    def start(self, tokens: Tokens) -> Callable[[], Vectors]:
        """Start computing the vectors of tokenised texts; return a function that waits for them and returns them."""

    def slabs(self, texts: Sequence[str]) -> Iterator[tuple[int, Vectors]]:
        """Yield, for each slab (texts sent to the device together), the index of its first text, and its vectors."""


def chunks_of(folder: Path, repeat: int) -> list[str]:
    """Return a folder's chunks of 500 characters, `repeat` times; a number in front makes each string unique."""
    chunks = [text[start:end] for text in read_texts(folder) for start, end in rcts.split(text)]
    chunks = [chunk for chunk in chunks if chunk.strip()]
    return [chunk if not turn else f"{turn} {chunk}" for turn in range(repeat) for chunk in chunks]


class Timing(NamedTuple):
    """The measurements of one phase: its chunks, its seconds, and the share of the time that the device was busy."""

    name: str
    chunks: int
    seconds: float
    busy: float | None
    kernels: float | None = None
    """The share of the time that the kernels take, computed from their time per chunk in a profile."""

    def make_row(self) -> list[str]:
        """Return the timing as a row of the table."""
        shares = ["" if share is None else f"{share:.0%}" for share in (self.busy, self.kernels)]
        return [self.name, f"{self.chunks:,}", f"{self.seconds:.1f}", f"{self.chunks / self.seconds:,.0f}", *shares]


class Clock:
    """A timer that runs one phase after another, prints the progress, and writes the measurements to a file."""

    def __init__(self, watch: Watch, *, seconds: float, stall: float, into: Path | None, about: dict[str, Any]) -> None:
        self._watch, self._seconds, self._stall = watch, seconds, stall
        self._into, self._about = into, about
        self.timings: list[Timing] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Print the start of a step and its duration; end the program if the step takes too long."""
        print(f"{name} …", flush=True)
        started = time.perf_counter()
        guard = threading.Timer(self._seconds + self._stall, _give_up, [name])
        guard.daemon = True
        guard.start()
        try:
            yield
        finally:
            guard.cancel()
        print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)

    def time(self, name: str, work: Work) -> None:
        """Run one phase until its work is done or its time is over; record, print and save its timing."""
        chunks, ended = 0, 0.0
        with self.step(name):
            pieces = work()
            started = time.perf_counter()
            for count in pieces:
                chunks, ended = chunks + count, time.perf_counter()
                if ended - started > self._seconds:
                    break
            close = getattr(pieces, "close", None)
            if close is not None:
                close()
        self.timings.append(Timing(name, chunks, ended - started, self._watch.compute_utilisation(started, ended)))
        print("  " + "  ".join(self.timings[-1].make_row()[1:]), flush=True)
        self._keep()

    def add_kernels(self, each: float, phases: Sequence[str]) -> None:
        """Record, for each named phase, the share of its time that the kernels took.

        `each` is the kernels' time in seconds per chunk.
        """
        for place, timing in enumerate(self.timings):
            if timing.name in phases:
                self.timings[place] = timing._replace(kernels=each * timing.chunks / timing.seconds)
        self._keep()

    def _keep(self) -> None:
        if self._into is not None:
            rows = [timing._asdict() for timing in self.timings]
            write_whole(self._into, json.dumps(self._about | {"phases": rows}, indent=1) + "\n")


def _give_up(name: str) -> None:
    """End the program because a step hangs: print the stack of every thread, and kill the child processes."""
    print(f"{name}: does not end; its stack:", file=sys.stderr, flush=True)
    faulthandler.dump_traceback(all_threads=True)
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(1)


def open_embedder(wanted: str, **options: Any) -> Embedder:
    """Open an embedder by name; raise an error if an option is given for any embedder but `cuda`.

    The options are `weights`, `device` and `slab` (the number of texts that are sent to the device together).
    """
    module, argument = load_plugin("exhibit.models.embedders", wanted)
    named = {name: value for name, value in options.items() if value is not None}
    if named and wanted.partition(":")[0] != "cuda":
        raise ToolkitError(f"--{' and --'.join(named)}: only for the embedder cuda; remove it for {wanted}")
    embedder: Embedder = module.open(argument, **named)
    return embedder


def time_whole(clock: Clock, embedder: Embedder, chunks: Sequence[str]) -> None:
    """Measure how fast an embedder computes vectors in this process, one batch of chunks after another."""

    def work() -> Iterator[int]:
        for start in range(0, len(chunks), _PIECE):
            yield len(check_vectors(embedder.embed(chunks[start : start + _PIECE], role="passage")))

    clock.time(embedder.name, work)


def time_parts(clock: Clock, embedder: Fed, chunks: Sequence[str]) -> None:
    """Time an embedder that tokenises in worker processes: tokenising alone, the device alone, and both together."""
    alone, many = Feed(workers=0, slab=embedder.many), embedder.many
    slabs: list[Tokens] = []
    with clock.step("workers, until the first tokens are there"):
        for _, tokens in embedder.feed.slabs(chunks[: 2 * many]):
            slabs.append(tokens)
    clock.time("tokens, one process", lambda: (len(tokens.lengths) for _, tokens in alone.slabs(chunks)))
    clock.time("tokens, workers", lambda: (len(tokens.lengths) for _, tokens in embedder.feed.slabs(chunks)))
    again = [slabs[0]] * max(1, len(chunks) // len(slabs[0].lengths))
    as_they_come = [pad_tokens(slabs[0])] * len(again)
    phases: dict[str, Work] = {
        "device alone, by length": lambda: run_overlapped(embedder, again),
        "one process, one after another": lambda: run_waited(embedder, alone, chunks),
        "workers, one after another": lambda: run_waited(embedder, embedder.feed, chunks),
        "workers, copies behind the work (as it is)": lambda: (
            len(check_vectors(v)) for _, v in embedder.slabs(chunks)
        ),
    }
    for name, work in phases.items():
        clock.time(name, work)
    clock.time("device alone, padded as they come", lambda: run_overlapped(embedder, as_they_come))
    with clock.step("profile of one slab's kernels"):
        took = time_kernels(lambda: embedder.start(slabs[0])())
    if took is not None:
        clock.add_kernels(took / len(slabs[0].lengths), list(phases))


def run_overlapped(embedder: Fed, slabs: Sequence[Tokens]) -> Iterator[int]:
    """Embed groups (slabs) of tokenised texts, and yield the number of texts in each slab.

    Computing and copying overlap: while the device computes the vectors of one slab, the vectors of the
    previous slab are copied from the device.
    """
    waiting: list[Callable[[], Vectors]] = []
    for tokens in slabs:
        waiting.append(embedder.start(tokens))
        if len(waiting) > 1:
            yield len(waiting.pop(0)())
    for last in waiting:
        yield len(last())


def run_waited(embedder: Fed, feed: Feed, chunks: Sequence[str]) -> Iterator[int]:
    """Embed slabs of texts one after another, and yield the number of texts in each slab.

    Each slab is tokenised, embedded and copied from the device before the next slab is begun.
    """
    for _, tokens in feed.slabs(chunks):
        yield len(embedder.start(tokens)())


def pad_tokens(tokens: Tokens) -> Tokens:
    """Return dummy tokens for measuring the cost of padding: texts in their given order, not sorted by length.

    Every text in a group of 1,024 gets the length of the group's longest text.
    """
    edges = range(0, len(tokens.lengths), _PADDED)
    lengths = [np.full_like(part := tokens.lengths[at : at + _PADDED], part.max()) for at in edges]
    total = int(sum(map(np.sum, lengths)))
    return Tokens(np.resize(tokens.ids, total), np.concatenate(lengths))


def check_vectors(vectors: Vectors) -> Vectors:
    """Return the vectors; raise an error if one is not finite."""
    if not np.isfinite(vectors).all():
        raise ToolkitError("a vector is not finite")
    return vectors


def describe_machine(device: str) -> dict[str, Any]:
    """Return a description of the machine: processors, load, ONNX Runtime's providers, PyTorch and the device."""
    about: dict[str, Any] = {"processors": os.cpu_count(), "load": [round(load, 2) for load in os.getloadavg()]}
    if find_spec("onnxruntime"):
        about["onnxruntime"] = import_module("onnxruntime").get_available_providers()
    torch = sys.modules.get("torch")
    if torch is not None:
        about["torch"] = torch.__version__
        about["device"] = torch.cuda.get_device_name() if device == "cuda" else device
    return about


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options of the command line."""
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu", description=what, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="a folder of text files (default: the samples)")
    parser.add_argument("--embedder", default="minilm", help="NAME[:ARGUMENT] (default: minilm, on any device)")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="the official weights, for the embedder cuda")
    parser.add_argument(
        "--device", help="the device of the embedder cuda (default: cuda; cpu as a test of this program)"
    )
    parser.add_argument(
        "--slab", type=int, metavar="N", help="texts sent to the device together (default: the embedder's)"
    )
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="the number of times that everything is embedded"
    )
    parser.add_argument("--seconds", type=float, default=8, metavar="S", help="the seconds of a phase (default: 8)")
    parser.add_argument(
        "--stall",
        type=float,
        default=60,
        metavar="S",
        help="the seconds beyond that after which a phase is stopped (default: 60)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measurements after each phase")
    return parser.parse_args(arguments)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Read and split the documents, time the embedder, and print a table of its phases."""
    options = parse(arguments)
    with watch_device() as watch:
        clock = Clock(watch, seconds=options.seconds, stall=options.stall, into=options.json, about={})
        with clock.step("documents read and split"):
            chunks = chunks_of(find_corpus_folder(options.source), options.repeat)
        with clock.step(f"{options.embedder} opened"):
            embedder = open_embedder(
                options.embedder, weights=options.weights, device=options.device, slab=options.slab
            )
        device = options.device or ("cuda" if options.embedder.partition(":")[0] == "cuda" else "cpu")
        about = describe_machine(device) | {"embedder": embedder.name, "chunks": len(chunks)}
        clock = Clock(watch, seconds=options.seconds, stall=options.stall, into=options.json, about=about)
        print(json.dumps(about), flush=True)
        with clock.step(f"first {_WARM:,} chunks"):
            check_vectors(embedder.embed(chunks[:_WARM], role="passage"))
        if isinstance(embedder, Fed):
            time_parts(clock, embedder, chunks)
            embedder.feed.close()
        else:
            time_whole(clock, embedder, chunks)
    rows = [timing.make_row() for timing in clock.timings]
    print_table("Embedding", ["phase", "chunks", "seconds", "chunks/s", "device busy", "kernels"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
