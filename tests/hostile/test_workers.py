"""Workers that never begin: others try in their place, and where none does the run ends with one line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from exhibit.engine import open_engine
from exhibit.engine.outcome import TRIES
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import DocumentError, ToolkitError
from tests.engine.work import Beginning


@pytest.fixture
def impatient(monkeypatch):
    """A function that makes the clock jump ahead whenever another worker hangs.

    A worker that dies needs no jump: on a busy machine the clock could be read between its marker file and its
    death.
    """

    def watch(what: str, folder: Path) -> None:
        if what == "dies":
            return
        real = time.monotonic

        class Clock:
            @staticmethod
            def monotonic() -> float:
                return real() + 1000.0 * len(list(folder.iterdir()))

        monkeypatch.setattr("exhibit.engine.worker.time", Clock)

    return watch


@pytest.mark.parametrize(
    ("what", "why"), [("hangs", "were not ready after 300 s"), ("dies", "ended before they began")]
)
def test_workers_that_never_begin_end_the_run_with_one_line(tmp_path, impatient, capsys, what, why):
    impatient(what, tmp_path)

    @guarded("stopped")
    def command() -> int:
        with pytest.raises(ToolkitError) as caught:
            list(open_engine("local", jobs=1).map(Beginning(what, tmp_path, 99), [1, 2]))
        assert not isinstance(caught.value, DocumentError), "it is no document's fault"
        raise caught.value

    assert command() == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {TRIES} worker processes {why}: this machine is too busy") and "--jobs" in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("what", ["hangs", "dies"])
def test_a_worker_that_does_not_begin_is_replaced(tmp_path, impatient, what):
    impatient(what, tmp_path)
    outcomes = open_engine("local", jobs=1).map(Beginning(what, tmp_path, TRIES - 1), [1, 2])
    assert [outcome.unwrap() for outcome in outcomes] == [2, 4]
