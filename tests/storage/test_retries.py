"""Requests sent again: how long is waited, for whom, and when nobody waits any more."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from exhibit.storage.exchanges import LONGEST_WAIT, Deadline, HttpError, Retries, seconds_asked


class Step:
    """Fails with each error in turn, then succeeds."""

    def __init__(self, *errors: HttpError) -> None:
        self.errors, self.done = list(errors), 0

    def __call__(self) -> str:
        self.done += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def busy(**given: object) -> HttpError:
    return HttpError("busy", transient=True, **given)  # type: ignore[arg-type]


def test_pauses_grow_and_stop_growing():
    pauses: list[float] = []
    assert Retries(9, 1.0, sleep=pauses.append)(Step(*(busy() for _ in range(7)))) == "done"
    assert [round(pause) for pause in pauses] == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("error", "done"),
    [(busy(), 3), (HttpError("no"), 1), (busy(wait=LONGEST_WAIT + 1), 1), (busy(wait=LONGEST_WAIT), 3)],
)
def test_what_is_not_worth_waiting_for_is_raised_at_once(error, done):
    step = Step(error, error, error)
    with pytest.raises(HttpError) as caught:
        Retries(2, 1.0, sleep=lambda _: None)(step)
    assert step.done == done == caught.value.tries


def test_a_pause_that_ends_after_the_deadline_is_not_made():
    step = Step(busy(), busy(), busy())
    with pytest.raises(HttpError):
        Retries(5, 20.0, sleep=lambda _: None)(step, deadline=Deadline(30))
    assert step.done == 2, "twenty seconds fit, forty do not"


def test_a_server_that_fails_for_everybody_is_asked_once_until_it_answers():
    retries = Retries(3, 0.0, in_vain=2)
    for done in (4, 4, 1, 1):
        step = Step(*(busy() for _ in range(9)))
        with pytest.raises(HttpError):
            retries(step)
        assert step.done == done
    assert retries(Step()) == "done"
    assert retries(Step(busy())) == "done", "it has answered: its errors are waited for again"


def test_nobody_waits_once_it_is_stopped():
    stopped = threading.Event()
    stopped.set()
    step = Step(busy(wait=60.0))
    with pytest.raises(HttpError):
        Retries(3, 60.0, stopped=stopped)(step)
    assert step.done == 1


@pytest.mark.parametrize(
    ("told", "seconds"), [("7", 7), ("0.5", 0.5), ("-3", 0), ("soon", 0), ("", 0), ("nan", 0), ("inf", float("inf"))]
)
def test_retry_after_is_read_in_seconds(told, seconds):
    assert seconds_asked(told) == seconds


def test_retry_after_is_read_as_a_date():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 < seconds_asked(later) <= 90 and seconds_asked("Mon, 01 Jan 2001 00:00:00 GMT") == 0
