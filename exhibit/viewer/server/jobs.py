"""Run long work as `exhibit` commands in separate processes, which survive a closed tab and a stopped server.

A job is a folder: `job.json` has the command, `output.txt` its output, `ended.json` its exit code. Its process holds a
lock while it runs, so that a server that was started later knows whether the job is still running.

    python -m exhibit.viewer.server.jobs FOLDER    runs the command of that job; only the server calls it
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import write_whole

JOB, OUTPUT, ENDED, LOCK = "job.json", "output.txt", "ended.json", "lock"
_TAIL = 4000  # bytes of the output that a page shows
_START = 10.0  # seconds within which the process of a job must start
_STOPPED = 130  # the exit code of a stopped command

JobState = Literal["running", "finished", "stopped", "failed", "died"]


@dataclass(frozen=True)
class Job:
    """A command, such as a conversion, that a user started from a page of `exhibit view`."""

    key: str
    title: str
    words: tuple[str, ...]
    """The words after `exhibit`."""
    cwd: str
    began: float
    out: str = ""
    """The folder that the command makes: a bundle or a run."""


class Jobs:
    """A manager that starts, watches and stops background commands (jobs).

    The state of every job is stored in files, so that jobs continue if the server stops.
    """

    def __init__(self, folder: Path) -> None:
        """Store the folder of the jobs; only its owner may read it."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def start(self, title: str, words: Sequence[str], *, cwd: Path, out: Path | None = None) -> Job:
        """Start an `exhibit` command in the background, and return its job.

        `words` are the arguments after `exhibit`. `out` is the folder that the command writes.
        """
        key = secrets.token_hex(8)
        place = self._folder / key
        place.mkdir(mode=0o700)
        job = Job(key, title, tuple(words), str(cwd), time.time(), str(out) if out else "")
        write_whole(place / JOB, json.dumps(asdict(job)))
        with (place / OUTPUT).open("wb") as output:
            subprocess.Popen(
                [sys.executable, "-m", __name__, str(place)],
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the server must not reach it
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
            )
        end = time.monotonic() + _START
        while not (place / LOCK).exists() and time.monotonic() < end:
            time.sleep(0.02)
        return job

    def all(self) -> list[Job]:
        """Return every job, the newest first."""
        jobs = [job for path in self._folder.glob(f"*/{JOB}") if (job := _read(path))]
        return sorted(jobs, key=lambda job: -job.began)

    def get(self, key: str) -> Job:
        """Return a job by its key."""
        job = _read(self._folder / key / JOB) if key.isalnum() else None
        if job is None:
            raise ToolkitError("there is no such job")
        return job

    def find_state(self, job: Job) -> JobState:
        """Return a job's state: `running`, `finished`, `stopped`, `failed` or `died`.

        A job has died if its process ended without recording an exit code.
        """
        place = self._folder / job.key
        with suppress(OSError, ValueError, KeyError):
            code = json.loads((place / ENDED).read_text(encoding="utf-8"))["code"]
            return "finished" if not code else "stopped" if code in (_STOPPED, -signal.SIGINT) else "failed"
        lock = FileLock(place / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return "running"
        lock.release()
        return "died"

    def read_output(self, job: Job) -> str:
        """Return the end of a job's output; of lines that overwrite each other, the last one is kept."""
        path = self._folder / job.key / OUTPUT
        with suppress(OSError), path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            text = file.read().decode("utf-8", "replace")
            return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
        return ""

    def stop(self, job: Job) -> None:
        """Ask a job to stop, as Ctrl-C does: its finished work is kept, and it can be resumed."""
        with suppress(OSError, ValueError):
            pid = int((self._folder / job.key / LOCK).with_suffix(".pid").read_text(encoding="ascii"))
            if self.find_state(job) == "running":  # otherwise the number may belong to another process by now
                if hasattr(os, "killpg"):
                    os.killpg(pid, signal.SIGINT)
                else:
                    os.kill(pid, signal.SIGTERM)


def _read(path: Path) -> Job | None:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Job(**{**fields, "words": tuple(fields["words"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of a job, and record its exit code."""
    [given] = sys.argv[1:] if argv is None else argv
    place = Path(given)
    job = _read(place / JOB)
    if job is None:
        raise ToolkitError(f"{place}: not a job's folder; only `exhibit view` starts this command")
    # the pid is written before the lock is visible, and the lock is held as long as the process lives
    (place / LOCK).with_suffix(".pid").write_text(str(os.getpid()), encoding="ascii")
    with FileLock(place / LOCK):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the command stops; this process records how it ended
        command = subprocess.Popen([sys.executable, "-c", _COMMAND, *job.words], cwd=job.cwd, stdin=subprocess.DEVNULL)
        code = command.wait()
        write_whole(place / ENDED, json.dumps({"code": code}))
    return 0


_COMMAND = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from exhibit.__main__ import main; sys.exit(main(sys.argv[1:]))"
)
"""The process inherits that SIGINT is ignored, so the command enables it again."""


if __name__ == "__main__":
    sys.exit(main())
