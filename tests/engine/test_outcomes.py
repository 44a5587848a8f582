"""The outcome of an item: limits while it is read, errors that set it aside, retries, and progress messages."""

from __future__ import annotations

import errno
import io
import signal

import pytest

from exhibit.engine import limits as limits_module
from exhibit.engine import open_engine, outcome
from exhibit.engine.limits import (
    Limits,
    is_processor_exit,
    lift_memory_limit,
    limit_memory,
    limit_reading,
    measure_memory_left,
)
from exhibit.engine.outcome import (
    Outcome,
    attempt,
    attempt_within,
    name_item,
    report_dead_worker,
    report_failed_worker,
    track,
)
from exhibit.engine.runners import local, serial
from exhibit.schemas.errors import LimitError, ToolkitError


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr(limits_module, "_serving", [Limits(120.0, 480 << 20)])


def test_a_worker_reads_a_file_within_its_share_and_the_clock_is_stopped_after(worker):
    before = signal.getsignal(signal.SIGPROF)
    try:
        with limit_reading("a.pdf", 0):
            assert 9.0 < signal.getitimer(signal.ITIMER_PROF)[0] <= 10.1
            assert measure_memory_left() is not None and measure_memory_left() <= 30 << 20
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
        with (
            pytest.raises(
                LimitError, match=r"a.pdf: reading it needs more than 30 MiB of memory, .* a file of 7 bytes"
            ),
            limit_reading("a.pdf", 7),
        ):
            raise MemoryError
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGPROF, before)


def test_who_is_no_worker_reads_without_limits():
    with limit_reading("a.pdf", 0):
        assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    with pytest.raises(MemoryError), limit_reading("a.pdf", 0):
        raise MemoryError
    assert is_processor_exit(-signal.SIGPROF) and not is_processor_exit(0) and not is_processor_exit(None)


def test_programs_may_take_more_than_the_process_that_starts_them():
    usual = measure_memory_left()
    with limit_memory(50 << 20):
        inside = measure_memory_left()
        assert inside is not None and 0 < inside <= 50 << 20
        with lift_memory_limit():
            more = measure_memory_left()
            assert more is None or more > inside
        assert measure_memory_left() is not None
    after = measure_memory_left()
    assert (after is None) == (usual is None)
    with limit_memory(None):
        assert (measure_memory_left() is None) == (usual is None)


def test_an_item_that_takes_too_much_or_is_nested_too_deep_is_set_aside():
    def fail(error):
        raise error

    most = Limits(None, 5 << 20)
    assert attempt_within(most, len, "abc") == Outcome(3)
    large = attempt_within(Limits(None, None), fail, MemoryError())
    assert isinstance(large.error, LimitError) and large.value is None
    deep = attempt_within(Limits(None, None), fail, RecursionError("too deep"))
    assert str(deep.error) == "too deep: nested too deeply; left out"
    with pytest.raises(LimitError):
        deep.unwrap()
    with pytest.raises(ZeroDivisionError):
        attempt_within(Limits(None, None), fail, ZeroDivisionError())


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT, errno.ECONNRESET]
)
def test_what_a_disk_or_a_network_failed_is_tried_three_times(monkeypatch, number):
    waited, tried = [], []
    monkeypatch.setattr("time.sleep", waited.append)

    def fail(item):
        tried.append(item)
        raise OSError(number, "away")

    told = attempt(fail, "a.pdf")
    assert len(tried) == 3 and waited == [0.2, 1.0] and str(told.error).endswith("tried 3 times; left out")
    tried.clear()

    def once(item):
        tried.append(item)
        if len(tried) < 2:
            raise OSError(number, "away")
        return item

    assert attempt(once, "a.pdf") == Outcome("a.pdf")


def test_what_does_not_pass_is_not_tried_again(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("nobody waits"))

    def refuse(_item):
        raise ToolkitError("no")

    assert str(attempt(refuse, "a").error) == "no"

    def missing(_item):
        raise FileNotFoundError(errno.ENOENT, "gone")

    with pytest.raises(FileNotFoundError):
        attempt(missing, "a")

    def wrapped(_item):
        try:
            raise OSError(errno.ENOSPC, "full")
        except OSError as error:
            raise ToolkitError("full disk") from error

    assert str(attempt(wrapped, "a").error) == "full disk"


def test_items_are_called_by_their_first_letters():
    assert name_item("x" * 200) == "x" * 200 and name_item("x" * 201) == "x" * 200 + "…"
    assert "died 3 times" in str(report_dead_worker("a").error) and "ended with SIGSEGV" in str(
        report_failed_worker("a", "SIGSEGV").error
    )


def test_how_far_the_work_is_stands_in_the_log_every_five_seconds(monkeypatch):
    clock = iter([0.0, 4.9, 5.0, 9.0, 10.0, 99.0])
    monkeypatch.setattr(outcome.time, "monotonic", lambda: next(clock))
    log = io.StringIO()
    assert list(track("abcd", total=8, label="docs", unit="doc", stream=log)) == list("abcd")
    assert log.getvalue().splitlines() == ["docs: 2/8 docs, 0.4/s, 15 s left", "docs: 4/8 docs, 0.4/s, 10 s left"]
    quiet = io.StringIO()
    monkeypatch.setattr(outcome, "is_quiet", lambda: True)
    assert list(track("ab", total=None, label="x", stream=quiet)) == ["a", "b"] and quiet.getvalue() == ""


@pytest.mark.parametrize(
    ("total", "left"),
    [
        (None, ""),
        (1, ""),
        (12, ", 55 s left"),
        (13, ", 1 min left"),
        (709, ", 59 min left"),
        (2521, ", 3 h 30 min left"),
    ],
)
def test_what_is_left_is_told_as_people_say_it(monkeypatch, total, left):
    clock = iter([0.0, 5.0])
    monkeypatch.setattr(outcome.time, "monotonic", lambda: next(clock))
    log = io.StringIO()
    list(track("a", total=total, label="x", stream=log))
    assert log.getvalue() == f"x: {f'1/{total}' if total else '1'} docs, 0.2/s{left}\n"


def test_one_item_pays_for_one_process_and_work_without_limits_for_none():
    assert isinstance(open_engine("local", jobs=2), local.Runner) and isinstance(open_engine("serial"), serial.Runner)
    assert isinstance(open_engine("local", jobs=1, limits=None), serial.Runner)
    assert isinstance(open_engine("local", items=1, limits=None), serial.Runner)
    assert isinstance(open_engine("local", jobs=2, items=9, limits=None), local.Runner)
    with pytest.raises(ToolkitError, match="no engine 'none'; there are "):
        open_engine("none")
    with pytest.raises(ToolkitError, match="takes no address; remove 'x'"):
        open_engine("local:x")
