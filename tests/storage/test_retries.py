"""Retries of requests: how long to wait, for which errors, and when to give up."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from exhibit.storage.http_policy import (
    LONGEST_WAIT,
    Deadline,
    HttpError,
    Retries,
    Secrets,
    parse_retry_after,
    strip_address,
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
        ("<style>p {}</style>a<script>b</script>c<SCRIPT>d</script>e", "a c e"),
        ("a &lt; b", "a < b"),
        ("x" * 300, "x" * 300),
        ("x" * 301, "x" * 299 + "…"),
    ],
)
def test_what_a_server_says_is_one_short_line(said, words):
    assert Secrets().words(said) == words


def test_secrets_are_taken_out_the_longest_first_and_short_words_stay():
    secrets = Secrets(["Bearer planted-key", "planted", "abc", "Basic"])
    told = "Bearer planted-key, planted, abc, Basic, bearer"
    assert secrets.strip(told) == "***, ***, abc, Basic, bearer"
    assert secrets.words(json.dumps({"error": told})) == "***, ***, abc, Basic, bearer"
    assert Secrets(["four"]).strip("four") == "***"


def test_an_address_is_told_without_user_password_and_query():
    assert strip_address("https://me:key@host:8/v1?sig=1&a=?b") == "https://host:8/v1"
    assert strip_address("https://host/a@b") == "https://host/a@b"


def test_a_deadline_that_is_over_says_which_flag_moves_it():
    assert str(Deadline(2.5, flag="--timeout").make_error()) == "no complete reply within 2.5 s (--timeout)"
    assert str(Deadline(60).make_error()) == "no complete reply within 60 s" and Deadline(-1).left == 0
    assert 59 < Deadline(60).left <= 60


def test_one_answer_is_enough_to_be_waited_for_again():
    retries = Retries(1, 0.0, in_vain=1)
    with pytest.raises(HttpError):
        retries(Step(busy(), busy()))
    assert retries(Step()) == "done" and retries(Step(busy())) == "done"


def test_what_too_many_ask_is_waited_for_by_all():
    pauses: list[float] = []
    retries = Retries(1, 1.0, sleep=pauses.append)
    assert retries(Step(busy(status=429, wait=50.0))) == "done" and retries(Step()) == "done"
    assert [round(pause) for pause in pauses] == [50, 50]
    other = Retries(1, 1.0, sleep=pauses.append)
    assert other(Step(busy(status=503, wait=50.0))) == "done" and other(Step()) == "done"
    assert [round(pause) for pause in pauses] == [50, 50, 50], "one who fails otherwise fails alone"
    assert other(Step(busy()), spread=0.5) == "done" and round(pauses[-1], 1) == 0.5
