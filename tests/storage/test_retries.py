"""Retries of requests: how long to wait, for which errors, and when to give up."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from exhibit.storage.http import (
    Deadline,
    HttpError,
    Retries,
    Secrets,
    parse_retry_after,
)


class Step:
    """A step that fails with each given error in turn, then succeeds."""

    def __init__(self, *errors: HttpError) -> None:
        self.errors, self.done = list(errors), 0

    def __call__(self) -> str:
        self.done += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def busy(**given: object) -> HttpError:
    return HttpError("busy", transient=True, **given)  # type: ignore[arg-type]


def test_retry_pauses_double_up_to_the_longest():
    pauses: list[float] = []
    assert Retries(9, 1.0, sleep=pauses.append)(Step(*(busy() for _ in range(7)))) == "done"
    assert [round(pause) for pause in pauses] == [1, 2, 4, 8, 16, 30, 30]


def test_no_retry_whose_pause_ends_after_the_deadline():
    step = Step(busy(), busy(), busy())
    with pytest.raises(HttpError):
        Retries(5, 20.0, sleep=lambda _: None)(step, deadline=Deadline(30))
    assert step.done == 2, "twenty seconds fit, forty do not"


@pytest.mark.parametrize(
    ("told", "seconds"), [("7", 7), ("0.5", 0.5), ("-3", 0), ("soon", 0), ("", 0), ("nan", 0), ("inf", float("inf"))]
)
def test_retry_after_is_read_in_seconds(told, seconds):
    assert parse_retry_after(told) == seconds


def test_retry_after_is_read_as_a_date():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 80 < parse_retry_after(later) <= 90 and parse_retry_after("Mon, 01 Jan 2001 00:00:00 GMT") == 0


# ---------------------------------------------------------------- what a server says, for reading


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", ""),
        (b"out of\n memory\x00", "out of memory"),
        (b"\xff", "\N{REPLACEMENT CHARACTER}"),
        ('{"error": {"message": "no such model", "code": 7}}', "no such model"),
        ('[{"detail": [{"msg": "first"}, {"msg": "second"}]}]', "first"),
        ('{"code": 7}', '{"code": 7}'),
        ('{"message": "", "detail": "the second"}', "the second"),
        ('"only words"', "only words"),
        ("[]", "[]"),
        ("[7]", "[7]"),
        ("<p>not <b>found</b> &amp; gone</p>", "not found & gone"),
        ("a &lt; b", "a < b"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "…"),
    ],
)
def test_server_message_is_one_short_line(said, words):
    assert Secrets().words(said) == words


def test_secrets_removes_the_longest_value_first_and_keeps_short_words():
    secrets = Secrets(["Bearer planted-key", "planted", "abc", "Basic"])
    told = "Bearer planted-key, planted, abc, Basic, bearer"
    assert secrets.strip(told) == "***, ***, abc, Basic, bearer"
    assert secrets.words(json.dumps({"error": told})) == "***, ***, abc, Basic, bearer"
    assert Secrets(["four"]).strip("four") == "***"


def test_retries_resume_after_one_success():
    retries = Retries(1, 0.0, in_vain=1)
    with pytest.raises(HttpError):
        retries(Step(busy(), busy()))
    assert retries(Step()) == "done" and retries(Step(busy())) == "done"


def test_status_429_makes_all_threads_wait():
    pauses: list[float] = []
    retries = Retries(1, 1.0, sleep=pauses.append)
    assert retries(Step(busy(status=429, wait=50.0))) == "done" and retries(Step()) == "done"
    assert [round(pause) for pause in pauses] == [50, 50]
    other = Retries(1, 1.0, sleep=pauses.append)
    assert other(Step(busy(status=503, wait=50.0))) == "done" and other(Step()) == "done"
    assert [round(pause) for pause in pauses] == [50, 50, 50], "one who fails otherwise fails alone"
    assert other(Step(busy()), spread=0.5) == "done" and round(pauses[-1], 1) == 0.5
