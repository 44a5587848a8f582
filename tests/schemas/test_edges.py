"""Error messages and hidden secrets."""

from __future__ import annotations

import errno
import logging
import os

import pytest

from exhibit.runtime.command import (
    Invocation,
    guarded,
    is_quiet,
    print_error,
    print_note,
    set_invocation,
)
from exhibit.runtime.secrets import is_secret_name, remember_secret, scrub, scrub_logs
from exhibit.schemas.errors import ToolkitError, escape_surrogates
from exhibit.schemas.run_folder import is_secret_setting

# ---------------------------------------------------------------- commands


def test_quiet_hides_notes_but_not_errors(capsys):
    with set_invocation(Invocation(quiet=True)):
        assert is_quiet()
        print_note("a note")
        print_error(ToolkitError("one"))
    assert capsys.readouterr().err == "error: one\n" and not is_quiet()
    with set_invocation(Invocation(verbose=True)):
        print_error(ToolkitError("one"))
    assert capsys.readouterr().err.startswith("exhibit.schemas.errors.ToolkitError: one\n")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "/x: No space left on device; free some space"),
        (errno.EROFS, "/x: Read-only file system; free some space"),
    ],
)
def test_guarded_describes_disk_errors_with_advice(capsys, number, message):
    @guarded()
    def main(error: OSError) -> int:
        raise error

    assert main(OSError(number, os.strerror(number), "/x")) == 1
    assert message in capsys.readouterr().err
    assert main(OSError(errno.EIO, "odd")) == 1
    assert capsys.readouterr().err.startswith("error: the disk: odd; is the path right")


def test_toolkit_error_escapes_surrogates():
    assert str(ToolkitError("a\udcff")) == "a\\udcff" == escape_surrogates("a\udcff") and str(ToolkitError()) == ""


# ---------------------------------------------------------------- secrets


def test_scrub_logs_hides_secrets_in_messages_and_tracebacks(caplog):
    remember_secret("marmot-0815")
    log = logging.getLogger("scrub")
    with scrub_logs():
        log.error("sent %s", "marmot-0815")
        log.error("nothing secret in %s", "this")
        try:
            raise ValueError("marmot-0815")
        except ValueError:
            log.exception("failed")
        broken = logging.getLogRecordFactory()("scrub", logging.ERROR, "x.py", 1, "bad %d", ("args",), None)
    told = [record.getMessage() for record in caplog.records[:3]]
    assert told == ["sent ***", "nothing secret in this", "failed"]
    assert caplog.records[1].args == ("this",), "what holds no secret is as it was"
    assert "ValueError: ***" in (caplog.records[2].exc_text or "") and caplog.records[2].exc_info is None
    assert broken.args == ("args",), "logging reports it itself"
    log.error("sent %s", "marmot-0815")
    assert caplog.records[3].getMessage() == "sent marmot-0815"


@pytest.mark.parametrize(("value", "hidden"), [("abc-1234", True), ("abc-123", False), ("abcdefgh", False)])
def test_scrub_hides_environment_secrets_of_8_characters_with_a_nonletter(monkeypatch, value, hidden):
    monkeypatch.setenv("MY_TOKEN", value)
    monkeypatch.setenv("MY_NAME", "visible-name")
    assert (scrub(f"it is {value} visible-name") == "it is *** visible-name") is hidden
    assert is_secret_name("MY_TOKEN") and scrub("x y-z", "y-z", None) == "x ***"
    assert scrub("x y-z-1", "y-z", "y-z-1") == "x ***", "the longest first, or a part of it would stay"


@pytest.mark.parametrize(("name", "secret"), [("judge.api_key", True), ("max_tokens", False), ("key_field", False)])
def test_is_secret_setting_depends_on_the_name(name, secret):
    assert is_secret_setting(name) is secret
