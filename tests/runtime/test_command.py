"""Commands report problems by messages and exit codes, without secrets."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from exhibit.runtime.command import escape_terminal, guarded, print_note, without_controls
from exhibit.runtime.secrets import is_secret_name, remember_secret, scrub
from exhibit.schemas.errors import ToolkitError

ROOT = Path(__file__).parents[2]


def test_guarded_command_prints_errors_interruptions_and_tracebacks_without_secrets(capsys, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "planted-secret-1")

    @guarded("stopped; nothing was written")
    def main(fault: BaseException | None) -> int:
        if fault:
            raise fault
        return 4

    assert main(None) == 4
    assert main(ToolkitError("one\ntwo planted-secret-1")) == 1
    assert capsys.readouterr().err == "error: one\nerror: two ***\n"
    assert main(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "\nstopped; nothing was written\n"
    assert main(ValueError("sent planted-secret-1")) == 1
    output = capsys.readouterr().err
    assert output.startswith("Traceback") and "ValueError: sent ***" in output and "planted" not in output
    print_note("the key is planted-secret-1")
    assert capsys.readouterr().err == "note: the key is ***\n"


def test_guarded_command_exits_with_141_without_traceback_when_the_pipe_is_closed():
    code = (
        "import sys\nfrom exhibit.runtime.command import guarded\n"
        "@guarded()\ndef main():\n    for n in range(200000): print('line', n)\n    return 0\n"
        "sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "line 0\n"
    process.stdout.close()
    assert process.stderr and process.stderr.read() == ""
    assert process.wait() == 141


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Authorization: Bearer abcdef.123", "Authorization: ***"),
        ("hf_abcdefghijkl is mine", "hf_*** is mine"),
        ("Incorrect API key: sk-abc***xyz.", "Incorrect API key: ***."),
        ("GET https://store/x.pdf?X-Amz-Signature=1&a=2 failed", "GET https://store/x.pdf?*** failed"),
        ("https://me:pass@host/x", "https://***@host/x"),
        ("the key of the cellar", "the key of the cellar"),
    ],
)
def test_scrub_hides_text_that_looks_like_a_secret(text, clean):
    assert scrub(text) == clean


def test_scrub_hides_a_secret_after_remember_secret():
    assert scrub("token of a file: zebra-4711") == "token of a file: zebra-4711"
    remember_secret("zebra-4711")
    assert scrub("token of a file: zebra-4711") == "token of a file: ***"
    assert is_secret_name("X-Api-Key") and not is_secret_name("temperature")


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_escape_terminal_escapes_control_characters_only_on_a_terminal(monkeypatch):
    assert without_controls("~\x1f\x7f\x80\x9f\xa0\n\t") == "~\\x1f\\x7f\\x80\\x9f\xa0\n\t"
    terminal, file = FakeTerminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", terminal)
    with escape_terminal():
        assert sys.stdout.write("a\x1b[2Jb") == 6
        assert sys.stdout.getvalue() == "a\\x1b[2Jb"  # other attributes of the stream still work
        with escape_terminal():  # nested use escapes only once
            sys.stdout.write("\x07")
    assert sys.stdout is terminal and terminal.getvalue() == "a\\x1b[2Jb\\x07"
    monkeypatch.setattr(sys, "stdout", file)
    with escape_terminal():
        sys.stdout.write("\x1b")
        assert sys.stdout is file
    assert file.getvalue() == "\x1b"
