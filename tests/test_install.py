"""Installation: one line for each step with its time; if a step fails, only its last output is shown."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

import install
from install import ROOT, Step, StepError, list_steps, perform


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_step_is_one_line_with_its_time_and_its_result(capsys):
    log = io.StringIO()
    perform(Step("browser", python("import sys; print('noise'); print('more', file=sys.stderr); print('/bin/b')")), log)
    shown = capsys.readouterr()
    assert re.fullmatch(r"browser +\d+\.\d s  /bin/b\n", shown.out) and shown.err == ""
    assert "noise\n" in log.getvalue() and "more\n" in log.getvalue()


def test_packages_are_counted_and_what_pip_says_is_kept_out_of_sight(capsys, monkeypatch):
    monkeypatch.setattr(install, "EVERY", -1.0)  # progress at every look
    said = "Collecting a\\nWARNING: odd\\nIgnoring b: markers\\nRequirement already satisfied: c"
    perform(Step("packages", python(f"print('{said}')"), 3), io.StringIO())
    shown = capsys.readouterr()
    assert re.fullmatch(r"packages +\d+\.\d s\n", shown.out)
    assert "1 of 3 packages\n" in shown.err and shown.err.endswith("unpacking\n") and "WARNING" not in shown.err


def test_a_step_that_fails_gives_its_last_words_and_its_log(capsys, tmp_path):
    with (
        (tmp_path / "log").open("w", encoding="utf-8") as log,
        pytest.raises(StepError, match=f"packages:\n  hash mismatch\n  all that it said: {tmp_path / 'log'}$"),
    ):
        perform(Step("packages", python("print('hash mismatch'); raise SystemExit(1)")), log)
    assert capsys.readouterr().out.startswith("packages: failed after ")


def test_an_old_python_is_told_which_one_is_needed(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 2))
    assert install.main([str(tmp_path / "venv")]) == 1
    assert "Python 3.11 or later is needed, this is 3.9.2" in capsys.readouterr().err


def test_everything_is_installed_from_locks_with_hashes_and_then_made_ready():
    done = list(list_steps(Path("venv"), extras=True))
    pips = [step for step in done if "pip" in step.command]
    assert [step.command[-1] for step in pips] == [
        *(str(ROOT / name) for name in ("requirements.lock", "models.lock")), str(ROOT), str(ROOT / "extras.lock")
    ]  # fmt: skip
    locked = [step for step in pips if step.command[-1].endswith(".lock")]
    assert all("--require-hashes" in step.command and step.total >= 1 for step in locked)
    assert "--editable" in pips[2].command and "--no-deps" in pips[2].command, (
        "nothing is fetched for the project itself"
    )
    assert [step.command[2:] for step in done if "pip" not in step.command] == [
        ["exhibit", "prepare", "model"],
        ["exhibit", "prepare", "browser"],
    ]
    assert (ROOT / "install.py").is_file() and "--no-deps" in pips[1].command


def test_a_failing_step_ends_the_run_with_one_error(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(install, "make_environment", lambda venv: venv.mkdir())
    monkeypatch.setattr(
        install, "list_steps", lambda venv, extras: [Step("first", python("1/0")), Step("second", ["no"])]
    )
    assert install.main([str(tmp_path / "venv")]) == 1
    shown = capsys.readouterr()
    assert str(tmp_path / "venv" / "install.log") in shown.err
    assert "ZeroDivisionError" in shown.err and "second" not in shown.out + shown.err
    assert "ZeroDivisionError" in (tmp_path / "venv" / "install.log").read_text(encoding="utf-8")
