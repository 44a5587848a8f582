"""The stored help texts equal the real ones, and `--help` takes almost no time."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from exhibit import demo
from exhibit.reference import FILE, generate

ROOT = Path(__file__).parent.parent.parent
MOST = 0.5
"""Seconds of processor time."""


def test_the_kept_help_is_that_of_the_code():
    assert FILE.read_text(encoding="utf-8") == generate(), "run python -m exhibit.reference"


def test_help_takes_under_half_a_second_of_processor_time():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for words in (["-m", "exhibit", "evaluate"], ["evaluate_rag.py"], ["-m", "exhibit", "convert", "cuad"]):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, *words, "--help"], cwd=ROOT, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0 and done.stdout.startswith("usage: ")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent / 3 < MOST


def test_help_lists_no_target_that_only_python_can_give():
    targets = json.loads(FILE.read_text(encoding="utf-8"))["evaluate"].partition("--target NAME")[2][:200]
    assert "builtin" in targets and "function" not in targets


def test_demo_prints_one_json_value(tmp_path, monkeypatch, capsys):
    def says(line):
        return lambda _: print(line) or 0

    monkeypatch.setattr(demo, "convert", lambda *_, **__: None)
    monkeypatch.setattr(demo, "validate", says("a table"))
    monkeypatch.setattr(demo, "check", says("another"))
    monkeypatch.setattr(demo, "evaluate", lambda words: print(json.dumps(words)) or 0)
    assert demo.main(["--only", "maud", "--out", str(tmp_path), "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)[-1] == "--json" and "a table\nanother\n" in printed.err
