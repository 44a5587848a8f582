"""Limits of an item: their size, their flags, and how they are enforced on a process and its subprocesses."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from exhibit.engine import add_engine_arguments, check_engine, make_limits, open_engine, read_limits, run_in_worker
from exhibit.engine.limits import (
    PACKED,
    PAGES,
    PLAIN,
    Limits,
    lift_memory_limit,
    limit_memory,
    limit_time,
    list_programs,
    measure_memory_left,
    run_program,
)
from exhibit.engine.outcome import name_item
from exhibit.schemas.errors import LimitError, ToolkitError
from tests.engine.work import fail, what_cannot_travel

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory, and tells of others")
MEBIBYTES = 48 << 20


def test_flags_and_their_absence_are_limits():
    parser = argparse.ArgumentParser()
    add_engine_arguments(parser)
    options = parser.parse_args([])
    assert (options.engine, options.jobs, read_limits(options)) == ("local", None, Limits(120, 2 << 30))
    options = parser.parse_args(["--engine", "serial", "--jobs", "3", "--item-timeout", "0", "--item-memory", "5"])
    assert (options.engine, options.jobs, read_limits(options)) == ("serial", 3, Limits(None, 5 << 20))
    assert read_limits(SimpleNamespace()) == Limits() and make_limits(1.5, 0) == Limits(1.5, None)
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
def test_reading_has_a_share_that_grows_with_the_file(size, share, seconds, memory):
    limits = Limits(120, MEBIBYTES).for_reading(size, share)
    assert limits.seconds == pytest.approx(seconds) and limits.memory == pytest.approx(memory, abs=1)


def test_a_short_limit_leaves_a_worker_the_time_to_load_its_reader():
    assert Limits(30, None).for_reading(0) == Limits(5, None), "a twelfth is 2.5"
    assert Limits(3, None).for_reading(0) == Limits(3, None) and Limits(None, 16).for_reading(0) == Limits(None, 1)


def test_errors_tell_the_limit_and_the_flag_that_moves_it():
    limits = Limits(1.5, 3 << 20)
    assert str(limits.late("a.pdf")) == "a.pdf: not done after 1.5 s (--item-timeout); left out"
    assert str(limits.make_memory_error("a.pdf")) == "a.pdf: needs more than 3 MiB of memory (--item-memory); left out"
    assert "(the limit depends on the size; raise it with --item-timeout, now 1.5 s)" in str(limits.spent("a.pdf"))
    assert "raise it with --item-timeout, now 0 s)" in str(Limits(None, None).spent("a.pdf"))
    assert "more than 0 MiB" in str(Limits(None, None).make_memory_error("a.pdf"))


@LINUX
def test_memory_is_limited_in_the_block_and_never_raised_by_a_block_within():
    before = measure_memory_left()
    with limit_memory(1 << 30):
        assert (1 << 30) - (64 << 20) < measure_memory_left() <= 1 << 30
        with limit_memory(1 << 40):
            assert measure_memory_left() <= 1 << 30
        with limit_memory(None):
            assert measure_memory_left() <= 1 << 30
        with lift_memory_limit():
            assert measure_memory_left() is None or measure_memory_left() > 1 << 30, (
                "as much as the system lets it have"
            )
        with pytest.raises(MemoryError):
            bytearray(2 << 30)
    assert (measure_memory_left() is None) == (before is None)


def test_a_block_in_time_leaves_the_clock_and_its_handler_as_they_were():
    before = signal.getsignal(signal.SIGALRM)
    with limit_time(Limits(60, None), "a.pdf"):
        assert 59 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        handler = signal.getsignal(signal.SIGALRM)
        with pytest.raises(LimitError, match=r"a\.pdf: not done after 60 s"):
            handler(signal.SIGALRM, None)
    assert signal.getsignal(signal.SIGALRM) == before and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    with limit_time(Limits(None, None), "a.pdf"):
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_in_another_thread_there_is_no_clock_and_the_work_is_done():
    done = []
    thread = threading.Thread(
        target=lambda: done.extend(open_engine("serial", limits=Limits(60, None)).map(abs, [-1, 2]))
    )
    thread.start()
    thread.join()
    assert [outcome.unwrap() for outcome in done] == [1, 2]


def test_pauses_between_tries_grow_and_end(monkeypatch, tmp_path):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    (outcome,) = open_engine("serial").map(fail, [(5, 99, str(tmp_path))])  # errno 5: the disk failed
    assert pauses == [0.2, 1.0] and "tried 3 times; left out" in str(outcome.error)


def test_an_error_calls_an_item_by_two_hundred_characters():
    assert name_item("x" * 200) == "x" * 200 and name_item("x" * 201) == "x" * 200 + "…"


def test_an_error_that_cannot_travel_is_told_in_its_own_words():
    for what in ("error", "value"):
        with pytest.raises(RuntimeError, match="the result of a worker cannot be sent: ") as caught:
            run_in_worker(what_cannot_travel, what)
        assert "Traceback" in str(caught.value.__cause__) and str(caught.value.__cause__).startswith("\n")


# ---------------------------------------------------------------- programs


@LINUX
def test_a_program_is_run_to_its_end_or_ended_with_what_it_started():
    done = run_program(["sh", "-c", "cat; echo said >&2; exit 3"], seconds=60, given=b"a page")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"a page", b"said\n")
    assert run_program(["sh", "-c", "echo $A"], seconds=60, environment={"A": "b"}).stdout == b"b\n"
    with pytest.raises(subprocess.TimeoutExpired):
        run_program(["sh", "-c", "sleep 3607 & wait"], seconds=0.2)
    assert "sleep 3607" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


@LINUX
def test_programs_are_found_however_deep_they_stand():
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        sleeper = int(shell.stdout.readline())
        assert {shell.pid, sleeper} <= set(list_programs(os.getpid())) and list_programs(shell.pid) == [sleeper]
        os.kill(sleeper, signal.SIGKILL)
    assert sleeper not in list_programs(os.getpid())
