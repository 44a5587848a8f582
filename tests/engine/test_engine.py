"""Every engine returns results in order, returns errors as outcomes and survives the death of a worker."""

import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit.engine import Limits, apply_limits, open_engine, run_in_worker, shutdown_idle, track
from exhibit.engine.limits import get_limits
from exhibit.engine.outcome import AHEAD, TRIES
from exhibit.schemas.errors import DocumentError, LimitError
from tests.engine.work import (
    allocate_512_mib,
    crash_worker,
    divide_by_item,
    double,
    exceed_time_limit,
    fail,
    fail_with_document_error,
    folder_and_setting,
    hang,
    kill_worker,
    record_start,
    start_with_memory_limit,
    worker_pid,
)

JOBS = 2
RAY = pytest.param("ray", marks=pytest.mark.extra)
ALL = pytest.mark.parametrize("name", ["serial", "local", RAY])
PROCESSES = pytest.mark.parametrize("name", ["local", RAY])


@pytest.fixture(scope="module", autouse=True)
def shut_ray_down():
    """Shut Ray down after the last test; the first test that needs Ray starts it."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


def run(name, function, items):
    return open_engine(name, jobs=JOBS).map(function, items)


def test_idle_workers_are_reused_until_shutdown_idle_ends_them():
    [first], [second] = ([outcome.unwrap() for outcome in run("local", worker_pid, [0])] for _ in range(2))
    assert first == second == run_in_worker(worker_pid, 0) != os.getpid()
    with pytest.raises(DocumentError, match="unlucky"):
        run_in_worker(double, 13)
    shutdown_idle()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    assert [outcome.unwrap() for outcome in run("local", double, [1, 2])] == [2, 4]


@ALL
def test_map_returns_outcomes_and_errors_in_order(name):
    outcomes = list(run(name, double, iter([1, 13, None, 2, *range(20, 50)])))
    assert [outcome.value for outcome in outcomes] == [2, None, None, 4, *range(40, 100, 2)]
    assert [bool(outcome.error) for outcome in outcomes[:4]] == [False, True, False, False]
    with pytest.raises(DocumentError, match="unlucky"):
        outcomes[1].unwrap()


@ALL
def test_map_raises_a_programming_error_with_its_traceback(name):
    with pytest.raises(ZeroDivisionError) as caught:
        list(run(name, divide_by_item, [1, 0, 1]))
    message = "".join([str(caught.value), str(caught.value.__cause__), *(str(line) for line in caught.traceback)])
    assert "return 1 // item" in message
    assert [outcome.value for outcome in run(name, divide_by_item, [1])] == [1]  # the other items succeed


@pytest.fixture
def no_pauses(monkeypatch):
    """Retry without pauses between the attempts."""
    monkeypatch.setattr("exhibit.engine.outcome._RETRY_SECONDS", (0.0,) * (TRIES - 1))


@ALL
def test_transient_error_is_retried(name, tmp_path, no_pauses):
    (outcome,) = run(name, fail, [(errno.EIO, TRIES - 1, str(tmp_path))])
    assert outcome.value == TRIES - 1


@pytest.mark.parametrize("function", [fail, fail_with_document_error])
def test_map_returns_error_for_item_after_repeated_transient_errors(function, tmp_path, no_pauses):
    (outcome,) = run("serial", function, [(errno.ESTALE, 99, str(tmp_path))])
    assert outcome.error is not None and os.strerror(errno.ESTALE) in str(outcome.error)
    assert len(list(tmp_path.iterdir())) == TRIES


def test_full_disk_error_stops_run_without_retry(tmp_path):
    with pytest.raises(OSError, match="No space left"):
        list(run("serial", fail, [(errno.ENOSPC, 99, str(tmp_path))]))
    assert len(list(tmp_path.iterdir())) == 1


@PROCESSES
def test_map_completes_other_items_after_an_item_kills_its_worker(name, tmp_path, capfd):
    items = [(number, str(tmp_path)) for number in range(8)]
    outcomes = list(run(name, kill_worker, items))
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, None, 4, 5, 6, 7]
    assert f"(3, '{tmp_path}'): left out, because its worker process died 3 times" in str(outcomes[3].error)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.0", "3.1", "3.2", "5.0", "5.1"]
    assert not capfd.readouterr().out, "the killed worker must print nothing to stdout"


@PROCESSES
def test_map_returns_every_result_in_order_when_a_worker_is_killed(name, tmp_path):
    values = []
    for outcome in run(name, record_start, [(number, str(tmp_path)) for number in range(40)]):
        number, worker = outcome.unwrap()
        values.append(number)
        if number == 5:
            os.kill(worker, signal.SIGKILL)
            time.sleep(0.2)  # the worker has died when the next item is sent
    assert values == list(range(40))


@PROCESSES
def test_map_starts_only_a_few_items_ahead_of_its_consumer(name, tmp_path):
    taken = []

    def items():
        for number in range(1000):
            taken.append(number)
            yield number, str(tmp_path)

    outcomes = run(name, record_start, items())
    assert next(outcomes).unwrap()[0] == 0
    for _ in range(2400):  # wait until all sent items are done, even on a busy machine
        if len(list(tmp_path.iterdir())) == len(taken):
            break
        time.sleep(0.05)
    assert len(list(tmp_path.iterdir())) == len(taken) <= JOBS * AHEAD
    assert next(outcomes).unwrap()[0] == 1
    assert len(taken) <= JOBS * AHEAD + 1
    outcomes.close()


def test_open_engine_without_limits_returns_serial_engine_for_a_single_job_or_item():
    for options in ({"jobs": 1}, {"jobs": 2, "items": 1}):
        assert type(open_engine("local", limits=None, **options)).__module__.endswith("serial")
        assert type(open_engine("local", **options)).__module__.endswith("local"), "a worker can be ended"
    assert type(open_engine("local", jobs=2, items=2, limits=None)).__module__.endswith("local")


class FakeClock:
    """A clock that shows the real time, but jumps far ahead as soon as an item that never ends has started."""

    def __init__(self, folder: Path, real=time.monotonic) -> None:
        self.folder, self.ahead, self.real = folder, 0.0, real

    def __call__(self) -> float:
        for started in self.folder.iterdir():
            started.unlink()
            self.ahead += 1000.0
        return self.real() + self.ahead


@pytest.mark.parametrize("what", ["library", "python", "expression"])
def test_local_engine_stops_endless_item_and_its_programs_and_completes_other_items(what, tmp_path, monkeypatch):
    monkeypatch.setattr("exhibit.engine.worker.time", SimpleNamespace(monotonic=FakeClock(tmp_path)))
    engine = open_engine("local", jobs=1, limits=Limits(seconds=500))
    items = [("quick", ""), (what, str(tmp_path)), ("quick", ""), (what, str(tmp_path)), ("quick", "")]
    outcomes = list(engine.map(hang, items))
    assert [outcome.value for outcome in outcomes] == ["quick", None, "quick", None, "quick"]
    assert isinstance(outcomes[1].error, LimitError)
    assert str(outcomes[1].error).startswith(f"('{what}', ")
    assert "left out, because it took more than 500 s" in str(outcomes[3].error)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running, "programs started by the item must have ended"


@ALL
def test_map_returns_error_for_item_that_is_nested_too_deep(name, tmp_path):
    outcomes = list(run(name, hang, [("quick", ""), ("deep", str(tmp_path)), ("quick", "")]))
    assert [outcome.value for outcome in outcomes] == ["quick", None, "quick"]
    assert "nested too deep" in str(outcomes[1].error)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
@PROCESSES
def test_map_returns_error_for_item_that_exceeds_memory_limit(name, tmp_path):
    engine = open_engine(name, jobs=JOBS, limits=Limits(memory=1 << 30))
    outcomes = list(engine.map(hang, [("quick", ""), ("memory", str(tmp_path)), ("quick", "")]))
    assert [outcome.value for outcome in outcomes] == ["quick", None, "quick"]
    assert "needs more than 1024 MiB of memory" in str(outcomes[1].error)


@pytest.mark.skipif(not hasattr(signal, "SIGPROF"), reason="Windows has no timer of processor time")
@PROCESSES
def test_map_returns_error_for_file_that_exceeds_its_processor_time_limit(name):
    outcomes = list(run(name, exceed_time_limit, [0, 1, 2]))
    assert [outcome.value for outcome in outcomes] == [0, None, 2]
    assert isinstance(outcomes[1].error, LimitError) and "more processor time than the limit" in str(outcomes[1].error)


@PROCESSES
def test_map_does_not_retry_item_that_crashes_its_worker(name):
    outcomes = list(run(name, crash_worker, [0, 1, 2, 3]))
    assert [outcome.value for outcome in outcomes] == [0, None, 2, None]
    for item, end in ((3, "exit code 127"), (1, "SIGABRT")):
        message = f"{item}: left out, because its worker process ended with {end} (out of memory, or a fault"
        assert message in str(outcomes[item].error)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_run_in_worker_allows_more_memory_for_a_larger_file():
    with pytest.raises(LimitError, match="lease.pdf: reading it needs more than 128 MiB of memory, the limit for"):
        run_in_worker(allocate_512_mib, 700)
    assert run_in_worker(allocate_512_mib, 4_000_000) == 512 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what others take")
def test_memory_limit_ends_programs_started_by_worker():
    with pytest.raises(LimitError, match="lease.html: left out, because it needs more than 200 MiB of memory"):
        run_in_worker(start_with_memory_limit, "held = b'x' * (300 << 20); import time; time.sleep(3600)")
    assert run_in_worker(start_with_memory_limit, "") == 0


@pytest.mark.extra
def test_ray_engine_stops_endless_item_and_completes_other_items(tmp_path):
    engine = open_engine("ray", jobs=JOBS, limits=Limits(seconds=5))
    outcomes = list(engine.map(hang, [("quick", ""), ("library", str(tmp_path)), ("quick", "")]))
    assert [outcome.value for outcome in outcomes] == ["quick", None, "quick"]
    assert "left out, because it took more than 5 s" in str(outcomes[1].error)


def test_apply_limits_restores_previous_limits_after_its_with_block():
    usual = get_limits()
    with apply_limits(Limits(7, None)):
        with apply_limits(Limits(None, 1 << 20)):
            assert get_limits() == Limits(None, 1 << 20)
        assert get_limits() == Limits(7, None)
    assert get_limits() == usual == Limits(120, 2 << 30)


def test_reused_worker_uses_the_current_folder_and_environment(tmp_path, monkeypatch):
    run_in_worker(worker_pid, 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXHIBIT_CACHE", "elsewhere")
    folder, setting = run_in_worker(folder_and_setting, "EXHIBIT_CACHE")
    assert Path(folder).samefile(tmp_path) and setting == "elsewhere"
    monkeypatch.delenv("EXHIBIT_CACHE")
    assert run_in_worker(folder_and_setting, "EXHIBIT_CACHE")[1] is None


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("seconds", "total", "line"), [(4.9, 2, ""), (5, 3, "leases: 1/3 docs, 5.00s/doc, 00:10 left")]
)
def test_track_logs_progress_line_after_five_seconds(monkeypatch, seconds, total, line):
    clock = iter([0.0, seconds])
    monkeypatch.setattr("exhibit.engine.outcome.time", SimpleNamespace(monotonic=lambda: next(clock)))
    out = io.StringIO()
    list(track(["alder"], total=total, label="leases", stream=out))
    assert " ".join(out.getvalue().split()) == line


def test_track_prints_nothing_on_a_terminal_for_short_work():
    out = FakeTerminal()
    assert list(track(range(3), total=3, label="documents", stream=out)) == [0, 1, 2]
    assert "\n" not in out.getvalue()
