"""Functions that the engine's tests send to workers, in a module that imports neither tests nor pytest."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from exhibit.engine import Limits
from exhibit.engine.limits import limit_reading, watch_programs
from exhibit.schemas.errors import DocumentError


def double(item: int | None) -> int | None:
    if item == 13:
        raise DocumentError("thirteen: unlucky")
    return None if item is None else item * 2


def kill_worker(item: tuple[int, str]) -> int:
    number, folder = item
    deaths = len(list(Path(folder).glob(f"{number}.*")))
    # 5 succeeds at the last attempt: its first workers died for another reason, such as a lack of memory
    if number == 3 or (number == 5 and deaths < 2):
        (Path(folder) / f"{number}.{deaths}").touch()
        os._exit(9)
    return number


def divide_by_item(item: int) -> int:
    return 1 // item


def record_start(item: tuple[int, str]) -> tuple[int, int]:
    number, folder = item
    time.sleep(0.02)
    (Path(folder) / str(number)).touch()
    return number, os.getpid()


def fail(item: tuple[int, int, str]) -> int:
    """Raise an OSError with this errno the first few times; then return the number of failed attempts."""
    number, times, folder = item
    tried = len(list(Path(folder).iterdir()))
    (Path(folder) / str(tried)).touch()
    if tried < times:
        raise OSError(number, os.strerror(number))
    return tried


def fail_with_document_error(item: tuple[int, int, str]) -> int:
    try:
        return fail(item)
    except OSError as error:
        raise DocumentError(f"lease.pdf: cannot be read: {error.strerror}") from error


def hang(item: tuple[str, str]) -> str:
    """Return at once, hang in a library, in Python or in a regex, or use too much memory, as the item demands."""
    what, folder = item
    if what != "quick":
        (Path(folder) / what).touch()
    if what == "library":
        subprocess.run([sys.executable, "-c", f"import time; time.sleep(3600)  # {folder}"], check=False)
    elif what == "python":
        while True:
            pass
    elif what == "expression":
        re.match(r"(a|a)*b", "a" * 60)
    elif what == "memory":
        return "x" * (4 << 30)
    elif what == "deep":
        return hang(item)
    return what


def exceed_time_limit(item: int) -> int:
    """For item 1, send this process the signal for exceeding its time limit for reading a file."""
    if item == 1:
        with limit_reading("lease.pdf", 100):
            os.kill(os.getpid(), signal.SIGPROF)
    return item


def allocate_512_mib(size: int) -> int:
    with limit_reading("lease.pdf", size):
        return len(bytearray(512 << 20))


def crash_worker(item: int) -> int:
    """For item 1 abort like a C library; for item 3 exit like the C library when memory is exhausted."""
    if item == 1:
        os.abort()
    if item == 3:
        os._exit(127)
    return item


def start_with_memory_limit(code: str) -> int:
    """Run a program with a memory limit in a worker, so that the limit applies to no other program of the tests."""
    from unittest.mock import patch  # import here: it imports asyncio, and few tests need it

    with patch("exhibit.engine.limits.MIN_PROGRAM_BYTES", 0), watch_programs(Limits(memory=200 << 20), "lease.html"):
        return subprocess.run([sys.executable, "-c", code], check=True).returncode


class UnpicklableError(Exception):
    """An error that cannot be unpickled, because its constructor needs two arguments."""

    def __init__(self, first: str, two: str) -> None:
        super().__init__(f"{first} {two}")


def return_unpicklable(what: str) -> object:
    if what == "error":
        raise UnpicklableError("a", "b")
    return lambda: None


def worker_pid(_: int) -> int:
    return os.getpid()


def folder_and_setting(name: str) -> tuple[str, str | None]:
    return os.getcwd(), os.environ.get(name)  # noqa: PTH109
