"""Runs `exhibit` commands in separate processes, which continue if the tab is closed or the server stops.

A job is a folder: `job.json` has the command, `output.txt` its output, `ended.txt` its exit code. Its process holds a
lock while it runs, so that a server that was started later knows whether the job is still running.

    python -m exhibit.viewer.server.jobs FOLDER    runs the command of that job; only the server calls it
"""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import BaseModel

from exhibit.runtime.command import STOPPED
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import write_whole

JOB, OUTPUT, ENDED, LOCK, PID = "job.json", "output.txt", "ended.txt", "lock", "pid"
_TAIL_BYTES = 4000  # bytes at the end of the output that a page shows
_PROGRESS = re.compile(r"^([^\n:]{1,60}): (\d+)/(\d+) \w", re.MULTILINE)

JobState = Literal["running", "finished", "stopped", "failed", "ended unexpectedly"]


class Job(BaseModel, frozen=True):
    key: str
    title: str
    words: tuple[str, ...]
    cwd: str
    began: float
    out: str  # the folder that the command makes: a bundle or a run


class Jobs:
    """Starts, watches and stops jobs; their state is in files, so that they continue if the server stops."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def start(self, title: str, words: Sequence[str], *, cwd: Path, out: Path) -> Job:
        """Start an `exhibit` command in the background, and return its job; this takes milliseconds."""
        key, began = secrets.token_hex(8), time.time()
        job = Job(key=key, title=title, words=tuple(words), cwd=str(cwd), began=began, out=str(out))
        folder = self._folder / job.key
        folder.mkdir(mode=0o700)
        write_whole(folder / JOB, job.model_dump_json())
        with (folder / OUTPUT).open("wb") as output:
            process = self._processes[job.key] = subprocess.Popen(
                [sys.executable, "-m", __name__, str(folder)], cwd=cwd,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,  # so that Ctrl-C at the server does not stop it
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
            )  # fmt: skip
        (folder / PID).write_text(str(process.pid), encoding="ascii")
        return job

    def all(self) -> list[Job]:
        for key, process in list(self._processes.items()):
            if process.poll() is not None:  # `poll` collects the exit code, so that no zombie process remains
                self._processes.pop(key, None)
        jobs = [job for path in self._folder.glob(f"*/{JOB}") if (job := _read(path))]
        return sorted(jobs, key=lambda job: -job.began)

    def get(self, key: str) -> Job:
        job = _read(self._folder / key / JOB) if key.isalnum() else None
        if job is None:
            raise ToolkitError("no job has this address; it may have been removed")
        return job

    def find_state(self, job: Job) -> JobState:
        """Return a job's state; a process that recorded no exit code ended unexpectedly."""
        folder, process = self._folder / job.key, self._processes.get(job.key)
        # check this before the exit code, which a process writes last
        runs_here = process is not None and process.poll() is None
        with suppress(OSError, ValueError):
            code = int((folder / ENDED).read_text(encoding="ascii"))
            return "finished" if not code else "stopped" if code == STOPPED else "failed"
        try:
            with FileLock(folder / LOCK, timeout=0):
                return "running" if runs_here else "ended unexpectedly"
        except Timeout:
            return "running"

    def read_output(self, job: Job) -> str:
        """Return the end of a job's output; of lines that overwrite each other, only the last line."""
        with suppress(OSError), (self._folder / job.key / OUTPUT).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
            return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
        return ""

    def stop(self, job: Job) -> None:
        """Stop a job as Ctrl-C does: its finished work stays on disk, and an evaluation can be resumed."""
        with suppress(OSError, ValueError):
            if self.find_state(job) == "running":  # after its end, the process number may belong to another process
                os.killpg(int((self._folder / job.key / PID).read_text(encoding="ascii")), signal.SIGINT)


def find_progress(output: str) -> tuple[str, int, int]:
    """Return the last step that a command reported, the number of finished items, and the number of all items."""
    label, done, total = (_PROGRESS.findall(output) or [("", 0, 0)])[-1]
    return label, int(done), int(total)


def _read(path: Path) -> Job | None:
    with suppress(OSError, ValueError):
        return Job.model_validate_json(path.read_bytes())
    return None


def main(argv: Sequence[str] | None = None) -> int:
    [name] = sys.argv[1:] if argv is None else argv
    folder = Path(name)
    # a shell makes background processes ignore Ctrl-C: reset this
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with FileLock(folder / LOCK):
        job = Job.model_validate_json((folder / JOB).read_bytes())
        from exhibit.__main__ import main as exhibit

        code = 1
        try:
            code = exhibit(job.words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        finally:
            write_whole(folder / ENDED, str(code))
    return 0


if __name__ == "__main__":
    sys.exit(main())
