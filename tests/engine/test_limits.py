"""Limits of an item: their size, their flags, and how they are enforced on a process and its subprocesses."""

import argparse
import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from exhibit.engine import add_engine_arguments, check_engine, read_limits, run_in_worker
from exhibit.engine.limits import PACKED, PAGES, PLAIN, Limits, lift_memory_limit, limit_memory, run_program
from exhibit.schemas.errors import ToolkitError
from tests.engine.work import return_unpicklable

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory, and tells of others")
MEBIBYTES = 48 << 20


def test_read_limits_uses_flags_or_defaults():
    parser = argparse.ArgumentParser()
    add_engine_arguments(parser)
    options = parser.parse_args([])
    assert (options.engine, options.jobs, read_limits(options)) == ("local", None, Limits(120, 2 << 30))
    options = parser.parse_args(["--engine", "serial", "--jobs", "3", "--item-timeout", "0", "--item-memory", "5"])
    assert (options.engine, options.jobs, read_limits(options)) == ("serial", 3, Limits(None, 5 << 20))
    assert read_limits(SimpleNamespace()) == Limits()
    assert read_limits(SimpleNamespace(item_timeout=1.5, item_memory=0)) == Limits(1.5, None)
    assert check_engine("serial") == "serial"
    with pytest.raises(ToolkitError, match="no engine 'abacus'"):
        check_engine("abacus:here")


@pytest.mark.parametrize(
    ("size", "share", "seconds", "memory"),
    [
        (0, PLAIN, 10, 3 << 20),
        (1_200_000, PLAIN, 70, MEBIBYTES * (1 / 16 + 0.15)),
        (4_000_000, PLAIN, 120, 27 << 20),
        (0, PAGES, 10, 1 << 20),
        (45_000_000, PAGES, 120, 25 << 20),
        (0, PACKED, 10, 1 << 20),
        (1_000_000, PACKED, 60, 25 << 20),
        (1 << 40, PACKED, 120, 48 << 20),
    ],
)
def test_limits_for_reading_grow_with_file_size(size, share, seconds, memory):
    limits = Limits(120, MEBIBYTES).for_reading(size, share)
    assert limits.seconds == pytest.approx(seconds) and limits.memory == pytest.approx(memory, abs=1)


def test_limit_errors_name_the_limit_and_the_flag_that_changes_the_limit():
    limits = Limits(1.5, 3 << 20)
    assert str(limits.late("a.pdf")) == "a.pdf: left out, because it took more than 1.5 s; raise --item-timeout"
    memory = "a.pdf: left out, because it needs more than 3 MiB of memory; raise --item-memory"
    assert str(limits.make_memory_error("a.pdf")) == memory
    assert "raise --item-timeout, now 1.5 s" in str(limits.spent("a.pdf"))
    assert "raise --item-timeout, now 0 s" in str(Limits(None, None).spent("a.pdf"))
    assert "more than 0 MiB" in str(Limits(None, None).make_memory_error("a.pdf"))


@LINUX
def test_nested_apply_limits_block_cannot_raise_the_memory_limit():
    with limit_memory(1 << 28):
        for inner in (nullcontext(), limit_memory(1 << 40), limit_memory(None)):
            with inner, pytest.raises(MemoryError):
                bytearray(1 << 29)
        with lift_memory_limit():
            assert len(bytearray(1 << 29)) == 1 << 29
    assert len(bytearray(1 << 29)) == 1 << 29


def test_run_in_worker_reports_a_result_that_cannot_be_pickled():
    for what in ("error", "value"):
        with pytest.raises(RuntimeError, match="the result of a worker cannot be sent: ") as caught:
            run_in_worker(return_unpicklable, what)
        assert "Traceback" in str(caught.value.__cause__) and str(caught.value.__cause__).startswith("\n")


@LINUX
def test_time_limit_ends_a_program_and_its_child_processes():
    done = run_program(["sh", "-c", "cat; echo said >&2; exit 3"], seconds=60, given=b"a page")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"a page", b"said\n")
    assert run_program(["sh", "-c", "echo $A"], seconds=60, environment={"A": "b"}).stdout == b"b\n"
    sleep = f"sleep {3600 + os.getpid()}"  # another run of this test may be in progress on the same machine
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(["sh", "-c", f"{sleep} & wait"], seconds=0.2)
    assert sleep not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
