"""Small functions and properties of the models, error messages, and hidden secrets."""

import errno
import logging

import pytest

from exhibit.runtime.command import Invocation, guarded, is_quiet, print_error, print_note, set_invocation
from exhibit.runtime.secrets import is_secret_name, remember_secret, scrub, scrub_logs
from exhibit.schemas.errors import ToolkitError, describe_disk_error, escape_surrogates
from exhibit.schemas.layout import fit_name
from exhibit.schemas.models import compute_wilson
from exhibit.schemas.review import AddedQuestion, MarkedPassage
from exhibit.schemas.run import Outcome, RunQuestion, RunReply
from exhibit.schemas.run_folder import is_secret_setting


@pytest.mark.parametrize(
    ("part", "whole", "interval"),
    [
        (2, 40, (0.01382, 0.16504)),
        (5, 10, (0.23659, 0.76341)),
        (0, 10, (0.0, 0.27754)),  # the upper end is z² / (10 + z²)
        (10, 10, (0.72246, 1.0)),
    ],
)
def test_compute_wilson_gives_the_interval_of_a_proportion(part, whole, interval):
    assert compute_wilson(part, whole) == pytest.approx(interval, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "ending", "fitted"),
    [
        ("lease", ".pdf", "lease.pdf"),
        ("a" * 251, ".pdf", "a" * 251 + ".pdf"),  # 255 bytes, the longest name
        ("a" * 300, "", "a" * 239 + "9835fa6bf4e20a9b"),  # the digests are from sha256sum
        ("a" * 300, ".pdf", "a" * 235 + "9835fa6bf4e20a9b.pdf"),
        ("é" * 200, "", "é" * 119 + "df20b2aa6262e99e"),  # 239 bytes would end inside the 120th letter
    ],
)
def test_fit_name_cuts_names_above_255_bytes_and_adds_a_digest(name, ending, fitted):
    assert fit_name(name, ending) == fitted


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "full"), "the disk: full; check the path, the free space and the limit"),
        (FileNotFoundError(errno.ENOENT, "missing", "a\udcff"), "a\\udcff: missing; check the path, "),
    ],
)
def test_describe_disk_error_names_the_path_and_the_remedy(error, message):
    assert describe_disk_error(error).startswith(message)


def test_describe_disk_error_raises_again_an_error_that_is_not_about_the_disk():
    with pytest.raises(BrokenPipeError):
        describe_disk_error(BrokenPipeError(errno.EPIPE, "broken pipe"))


def test_question_added_by_reviewer_without_passages_is_impossible():
    passage = MarkedPassage(filename="lease.pdf", spans=[(0, 4)], text="rent")
    assert AddedQuestion(question="Who pays?").is_impossible
    assert not AddedQuestion(question="Who pays?", contexts=[passage]).is_impossible


@pytest.mark.parametrize(("filename", "document"), [("lease.pdf", "lease.pdf"), (None, "\0q-7"), ("", "\0q-7")])
def test_run_question_without_file_name_gets_a_unique_document_key(filename, document):
    reply = RunReply(error="")
    question = RunQuestion(
        id="q-7", question="Who pays?", truth="the tenant", filename=filename, reply=reply, outcome=Outcome.RIGHT
    )
    assert question.document == document


def test_quiet_hides_notes_but_not_errors(capsys):
    with set_invocation(Invocation(quiet=True)):
        assert is_quiet()
        print_note("a note")
        print_error(ToolkitError("one"))
    assert capsys.readouterr().err == "error: one\n" and not is_quiet()
    with set_invocation(Invocation(verbose=True)):
        print_error(ToolkitError("one"))
    assert capsys.readouterr().err.startswith("exhibit.schemas.errors.ToolkitError: one\n")


def test_guarded_command_prints_disk_errors_with_a_remedy(capsys):
    @guarded()
    def main(error: OSError) -> int:
        raise error

    assert main(OSError(errno.EIO, "odd")) == 1
    assert capsys.readouterr().err.startswith("error: the disk: odd; check the path")


def test_toolkit_error_escapes_surrogates():
    assert str(ToolkitError("a\udcff")) == "a\\udcff" == escape_surrogates("a\udcff") and str(ToolkitError()) == ""


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
    logged = [record.getMessage() for record in caplog.records[:3]]
    assert logged == ["sent ***", "nothing secret in this", "failed"]
    assert caplog.records[1].args == ("this",), "arguments without secrets are unchanged"
    assert "ValueError: ***" in (caplog.records[2].exc_text or "") and caplog.records[2].exc_info is None
    assert broken.args == ("args",), "logging reports the format error"
    log.error("sent %s", "marmot-0815")
    assert caplog.records[3].getMessage() == "sent marmot-0815"


@pytest.mark.parametrize(("value", "hidden"), [("abc-1234", True), ("abc-123", False), ("abcdefgh", False)])
def test_scrub_hides_environment_values_of_at_least_8_characters_with_a_nonletter(monkeypatch, value, hidden):
    monkeypatch.setenv("MY_TOKEN", value)
    monkeypatch.setenv("MY_NAME", "visible-name")
    assert (scrub(f"it is {value} visible-name") == "it is *** visible-name") is hidden
    assert is_secret_name("MY_TOKEN") and scrub("x y-z", "y-z", None) == "x ***"
    assert scrub("x y-z-1", "y-z", "y-z-1") == "x ***", "the longest secret is hidden first"


@pytest.mark.parametrize(("name", "secret"), [("judge.api_key", True), ("max_tokens", False), ("key_field", False)])
def test_is_secret_setting_depends_on_the_name(name, secret):
    assert is_secret_setting(name) is secret
