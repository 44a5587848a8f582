"""Embedding on an accelerator: all chunks are embedded, and the device's utilisation is read."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench import _device, gpu
from exhibit.models.network import Feed


def test_no_string_is_embedded_twice(tmp_path):
    (tmp_path / "a.txt").write_text("The Lease ends in May. " * 60, encoding="utf-8")
    once, thrice = gpu.chunks_of(tmp_path, 1), gpu.chunks_of(tmp_path, 3)
    assert len(thrice) == 3 * len(once) > 6 and len(set(thrice)) == 3 * len(set(once))


def test_the_device_is_asked_while_the_work_is_done_and_no_longer(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    # exec: what is ended at the end of the block is the process that was started, and leaves no child
    tool.write_text("#!/bin/sh\necho 40\necho 60\nexec sleep 600\n")
    tool.chmod(0o755)
    monkeypatch.setattr(_device.shutil, "which", lambda name: str(tool))
    started = time.perf_counter()
    with _device.watch_device() as watch:
        while len(watch.samples) < 2:
            time.sleep(0.01)
    assert [share for _, share in watch.samples] == [40.0, 60.0]
    watch.samples = [(started + at, share) for at, share in ((0.1, 40.0), (2.0, 60.0), (3.0, 80.0), (9.0, 10.0))]
    assert (
        watch.compute_utilisation(started, started + 4) == 0.7
    )  # without the first half second, which is of what was before
    assert watch.compute_utilisation(started + 5, started + 6) is None


def test_it_tells_chunks_a_second_and_how_busy_the_device_was(monkeypatch, tmp_path, capsys):
    @contextmanager
    def watched():
        watch = _device.Watch()
        monkeypatch.setattr(watch, "compute_utilisation", lambda start, end: 0.5)
        yield watch

    def no_driver():
        raise RuntimeError("no driver")

    # another program part may have imported PyTorch, on a machine without a GPU
    torch = SimpleNamespace(__version__="2.13.0", cuda=SimpleNamespace(get_device_name=no_driver))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(gpu, "watch_device", watched)
    source = Path(__file__).parents[2] / "samples" / "legalbenchrag" / "corpus"
    arguments = ["--source", str(source), "--embedder", "hashing", "--repeat", "2", "--json", str(tmp_path / "told")]
    assert gpu.main(arguments) == 0
    told = capsys.readouterr().out
    count = len(gpu.chunks_of(source, 2))
    assert "hashing" in told and f"{count:,}" in told and "50%" in told
    kept = json.loads((tmp_path / "told").read_text(encoding="utf-8"))
    assert (
        kept["device"] == "cpu"
        and kept["chunks"] == count
        and [(phase["chunks"], phase["busy"]) for phase in kept["phases"]] == [(count, 0.5)]
    )


class Fake:
    """An embedder with a feed, whose device returns one number for each text."""

    name, dimensions, many = "fake", 1, 8

    def __init__(self):
        self.feed = Feed(workers=0, slab=self.many)
        self.given = []

    def start(self, tokens):
        self.given.append(tokens)
        return lambda: np.ones((len(tokens.lengths), 1), np.float32)

    def slabs(self, texts):
        for start, tokens in self.feed.slabs(texts):
            yield start, self.start(tokens)()


def test_every_part_of_an_embedder_with_a_feed_is_timed_alone_and_with_the_others(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "time_kernels", lambda work: work() is None or 0.8)  # a tenth of a second for each text
    ticks = iter(float(number) for number in range(10_000))
    monkeypatch.setattr(gpu.time, "perf_counter", lambda: next(ticks))
    chunks = [f"{number} " + "notice " * (number % 3) for number in range(20)]
    clock = gpu.Clock(_device.Watch(), seconds=100, stall=600, into=None, about={})
    fake = Fake()
    gpu.time_parts(clock, fake, chunks)
    timings = {timing.name: timing for timing in clock.timings}
    assert {timing.chunks for timing in timings.values()} == {20, 16}  # sixteen: two slabs that were there already
    whole = timings["workers, copies behind the work (as it is)"]
    assert whole.seconds == 3 and whole.kernels == pytest.approx(0.1 * 20 / 3)  # three slabs, a second each
    assert timings["tokens, workers"].kernels is None
    lengths = [tokens.lengths.tolist() for tokens in fake.given]
    assert [5, 5, 5, 5, 5, 5, 5, 5] in lengths and [3, 4, 5, 3, 4, 5, 3, 4] in lengths  # padded, and as they are
    assert "tokens, workers" in capsys.readouterr().out


def test_a_phase_ends_when_its_time_is_over(monkeypatch):
    ticks = iter(float(number) for number in range(10_000))
    monkeypatch.setattr(gpu.time, "perf_counter", lambda: next(ticks))
    closed = []

    def endless():
        try:
            while True:
                yield 10
        finally:
            closed.append(True)

    clock = gpu.Clock(_device.Watch(), seconds=5, stall=600, into=None, about={})
    clock.time("endless", endless)
    assert clock.timings[0].chunks == 60 and clock.timings[0].seconds == 6 and closed


def test_a_phase_that_hangs_is_stopped_and_says_where_it_stood():
    told = "import time\nfrom bench import _device, gpu\n"
    told += "clock = gpu.Clock(_device.Watch(), seconds=0, stall=3, into=None, about={})\n"
    told += "def stand_still():\n    time.sleep(600)\n    yield 1\nclock.time('hangs', stand_still)\n"
    ended = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "hangs: does not end" in ended.stderr and "in stand_still" in ended.stderr


@pytest.mark.parametrize("embedder", ["nobody", "minilm:int4"])
def test_an_embedder_that_is_not_there_is_an_error(tmp_path, embedder, capsys):
    (tmp_path / "a.txt").write_text("The Lease ends in May.", encoding="utf-8")
    assert gpu.main(["--source", str(tmp_path), "--embedder", embedder]) == 1
    assert capsys.readouterr().err.startswith("error: ")
