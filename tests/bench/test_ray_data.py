"""Ray's tasks compared with Ray Data: the processor time of a process includes all its descendants."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench import ray_data

_PARENT = """
import subprocess, sys, time
child = "import sys, time; sum(range(4_000_000)); print(time.process_time(), flush=True); sys.stdin.read()"
with subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
    print(run.stdout.readline(), end="", flush=True)
    sys.stdin.read()
    run.stdin.close()
"""
_TICK = 0.02
"""Seconds: the system counts in hundredths, twice."""


def test_what_children_use_is_counted():
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        told = float(parent.stdout.readline())
        assert ray_data.measure_processor_seconds(parent.pid) >= told - _TICK > 0
        parent.stdin.close()
    assert ray_data.measure_processor_seconds(parent.pid) == 0  # it is gone


@pytest.mark.extra
def test_a_worker_that_is_killed_costs_its_item_alone():
    assert ray_data.run_apart(ray_data.survive, "plain tasks", 300.0).value.startswith("8 done, 1 set aside")
