"""Installation: one line for each step with its time; if a step fails, only its last output is shown."""

import sys
from pathlib import Path

import install
from install import ROOT, Step, list_steps


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_install_refuses_old_python_and_names_required_version(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(install.sys, "version_info", (3, 9, 2))
    assert install.main([str(tmp_path / "venv")]) == 1
    assert "Python 3.11 or later is needed, this is 3.9.2" in capsys.readouterr().err


def test_install_steps_use_hashed_locks_and_then_provide_model_and_browser():
    done = list(list_steps(Path("venv"), extras=True))
    pips = [step for step in done if "pip" in step.command]
    assert [step.command[-1] for step in pips] == [
        *(str(ROOT / name) for name in ("requirements.lock", "models.lock")), str(ROOT), str(ROOT / "extras.lock")
    ]  # fmt: skip
    locked = [step for step in pips if step.command[-1].endswith(".lock")]
    assert all("--require-hashes" in step.command for step in locked)
    assert "--editable" in pips[2].command and "--no-deps" in pips[2].command, (
        "installing the project downloads nothing"
    )
    assert [step.command[2:] for step in done if "pip" not in step.command] == [
        ["exhibit", "doctor", "--fix", "model"],
        ["exhibit", "doctor", "--fix", "browser"],
    ]
    assert (ROOT / "install.py").is_file() and "--no-deps" in pips[1].command


def test_install_stops_at_failing_step_and_logs_the_error_of_that_step(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(install, "make_environment", lambda venv: venv.mkdir())
    monkeypatch.setattr(
        install, "list_steps", lambda venv, extras: [Step("first", python("1/0")), Step("second", ["no"])]
    )
    assert install.main([str(tmp_path / "venv")]) == 1
    shown = capsys.readouterr()
    assert str(tmp_path / "venv" / "install.log") in shown.err
    assert "ZeroDivisionError" in shown.err and "second" not in shown.out + shown.err
    assert "ZeroDivisionError" in (tmp_path / "venv" / "install.log").read_text(encoding="utf-8")


def test_install_shows_the_last_line_of_a_running_step_on_a_terminal_only(capsys, monkeypatch, tmp_path):
    step = Step("packages", python("print('Collecting lxml')"))
    install.perform(step, tmp_path / "log")
    assert "Collecting" not in capsys.readouterr().out
    monkeypatch.setattr(install.sys.stdout, "isatty", lambda: True)
    install.perform(step, tmp_path / "log")
    assert "Collecting lxml" in capsys.readouterr().out
