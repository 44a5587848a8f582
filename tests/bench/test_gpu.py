"""Embedding on an accelerator: all chunks are embedded, and what the device says is read."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import gpu


def test_no_string_is_embedded_twice(tmp_path):
    (tmp_path / "a.txt").write_text("The Lease ends in May. " * 60, encoding="utf-8")
    once, thrice = gpu.chunks_of(tmp_path, 1), gpu.chunks_of(tmp_path, 3)
    assert len(thrice) == 3 * len(once) > 6 and len(set(thrice)) == 3 * len(set(once))


def test_the_device_is_asked_while_the_work_is_done_and_no_longer(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    # exec: what is ended at the end of the block is the process that was started, and leaves no child
    tool.write_text('#!/bin/sh\necho 40\necho 60\ntouch "$0.said"\nexec sleep 600\n')
    tool.chmod(0o755)
    monkeypatch.setattr(gpu.shutil, "which", lambda name: str(tool))
    with gpu.watched() as watch:
        while not tool.with_name("nvidia-smi.said").exists():
            time.sleep(0.01)
    assert watch.samples == [40.0, 60.0]


def test_it_tells_chunks_a_second_and_how_busy_the_device_was(monkeypatch, capsys):
    @contextmanager
    def watched():
        watch = gpu.Watch()
        watch.samples = [40.0, 60.0]
        yield watch

    monkeypatch.setattr(gpu, "watched", watched)
    source = Path(__file__).parents[2] / "samples" / "legalbenchrag" / "corpus"
    assert gpu.main(["--source", str(source), "--embedder", "hashing", "--repeat", "2"]) == 0
    told = capsys.readouterr().out
    assert "hashing" in told and f"{len(gpu.chunks_of(source, 2)):,}" in told and "50%" in told


@pytest.mark.parametrize("embedder", ["nobody", "minilm:int4"])
def test_an_embedder_that_is_not_there_is_an_error(tmp_path, embedder, capsys):
    (tmp_path / "a.txt").write_text("The Lease ends in May.", encoding="utf-8")
    assert gpu.main(["--source", str(tmp_path), "--embedder", embedder]) == 1
    assert capsys.readouterr().err.startswith("error: ")
