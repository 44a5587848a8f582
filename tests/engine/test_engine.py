"""The same map, whatever runs it: in order, errors set aside, a worker's death survived."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from engine import engine_names, open_engine, track
from schemas.errors import DocumentError, ToolkitError


def double(item: int) -> int:
    if item == 13:
        raise DocumentError("thirteen: unlucky")
    return item * 2


def die(item: tuple[int, str]) -> int:
    number, folder = item
    if number == 3:
        os._exit(9)
    if number == 5:  # dies once: another worker's death, or the system's memory
        marker = Path(folder) / "died"
        if not marker.exists():
            marker.touch()
            os._exit(9)
    return number


def bug(item: int) -> int:
    return 1 // item


@pytest.mark.parametrize(("name", "jobs"), [("serial", 1), ("local", 2)])
def test_outcomes_come_in_order_and_errors_are_set_aside(name, jobs):
    outcomes = list(open_engine(name, jobs=jobs).map(double, iter([1, 13, 2])))
    assert [outcome.value for outcome in outcomes] == [2, None, 4]
    with pytest.raises(DocumentError, match="unlucky"):
        outcomes[1].unwrap()


def test_a_bug_keeps_its_traceback():
    for name, jobs in (("serial", 1), ("local", 2)):
        with pytest.raises(ZeroDivisionError):
            list(open_engine(name, jobs=jobs).map(bug, [1, 0]))


def test_an_item_that_kills_its_worker_is_set_aside_and_the_rest_is_done(tmp_path):
    items = [(number, str(tmp_path)) for number in range(8)]
    outcomes = list(open_engine("local", jobs=2).map(die, items))
    assert [outcome.value for outcome in outcomes] == [0, 1, 2, None, 4, 5, 6, 7]
    assert "died on it twice" in str(outcomes[3].error)


def test_items_are_taken_only_as_fast_as_they_are_done():
    taken = []

    def items():
        for number in range(1000):
            taken.append(number)
            yield number

    outcomes = open_engine("local", jobs=2).map(double, items())
    assert next(outcomes).value == 0
    assert len(taken) < 20
    outcomes.close()


def test_one_job_needs_no_processes():
    assert type(open_engine("local", jobs=1)).__module__.endswith("serial")
    assert set(engine_names()) >= {"local", "serial"}
    with pytest.raises(ToolkitError, match="no engine 'abacus'; there are local"):
        open_engine("abacus", jobs=1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_line_every_few_seconds_where_nobody_watches(monkeypatch):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    out = io.StringIO()
    assert list(track(range(10), total=10, label="documents", stream=out)) == list(range(10))
    lines = out.getvalue().splitlines()
    assert 2 <= len(lines) <= 4 and lines[0].startswith("documents: 3/10 docs")


def test_progress_is_a_bar_on_a_terminal_and_nothing_for_short_work():
    out = Terminal()
    assert list(track(range(3), total=3, label="documents", stream=out)) == [0, 1, 2]
    assert "\n" not in out.getvalue()
