"""Our Ray cluster is private and ends with the process; if the extra `ray` is missing, the error names it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from exhibit.engine import open_engine
from exhibit.schemas.errors import ToolkitError

ROOT = Path(__file__).parent.parent.parent
NEEDED = "pip install 'exhibit-rag[ray]'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray on this machine, with two workers."""
    assert [outcome.unwrap() for outcome in open_engine("ray", jobs=2).map(abs, [-1, 2])] == [1, 2]
    yield
    sys.modules["ray"].shutdown()


@pytest.fixture
def no_ray(monkeypatch):
    """Simulate that the extra `ray` is not installed."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "exhibit.engine.runners.ray", raising=False)


def test_open_engine_error_names_the_ray_extra_when_ray_is_missing(no_ray):
    for wanted in ("ray", "ray:auto", "ray:ray://head.example.org:10001"):
        with pytest.raises(ToolkitError) as caught:
            open_engine(wanted, jobs=2, items=1)
        assert NEEDED in str(caught.value)


def folder_and_path(_: int) -> tuple[str, bool]:
    return os.getcwd(), str(ROOT) in sys.path or (Path.cwd() / "engine").is_dir()  # noqa: PTH109


@pytest.mark.extra
def test_ray_worker_resolves_relative_paths_in_the_working_folder_of_the_program(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (outcome,) = open_engine("ray", jobs=2).map(folder_and_path, [1])
    assert Path(outcome.unwrap()[0]).samefile(tmp_path)


def array(size: int) -> object:
    return import_module("numpy").zeros(size)


@pytest.mark.extra
def test_arrays_returned_by_ray_are_writable(cluster):
    (outcome,) = open_engine("ray", jobs=2).map(array, [1_000_000])
    values = outcome.unwrap()
    values[0] = 1.0  # an array in Ray's store is read-only
    assert values.sum() == 1.0


@pytest.mark.extra
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's list of sockets")
def test_ray_servers_listen_only_on_loopback(cluster):
    listening = [address for pid in descendants(os.getpid()) for address in listeners(pid)]
    assert len(listening) >= 3
    assert {address for address in listening if not is_loopback(address)} == set()


def descendants(root: int) -> list[int]:
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def listeners(pid: int) -> list[str]:
    try:
        inodes = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}  # noqa: PTH115
    except OSError:
        return []
    rows = [line.split() for file in ("tcp", "tcp6") for line in Path(f"/proc/net/{file}").read_text().splitlines()]
    return [row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


def is_loopback(address: str) -> bool:
    """Return whether an address in the kernel's hexadecimal notation is 127.x.y.z (also mapped to IPv6) or ::1."""
    return address[-2:] == "7F" or address == "0" * 24 + "01000000"


SLEEPY = """
import os, signal, sys, time
from pathlib import Path
from exhibit.engine import open_engine

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores Ctrl-C

def work(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(600)

list(open_engine("ray", jobs=2).map(work, [sys.argv[1]] * 9))
"""


@pytest.mark.extra
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_all_ray_processes_end_with_the_program(number, tmp_path):
    driver = subprocess.Popen([sys.executable, "-c", SLEEPY, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE)
    wait_until(lambda: len(list(tmp_path.iterdir())) >= 2 or driver.poll() is not None)
    assert driver.poll() is None, driver.stderr.read().decode()
    family = [(pid, read_start_time(pid)) for pid in descendants(driver.pid)]
    assert len(family) > 4
    driver.send_signal(number)
    driver.communicate(timeout=600)
    assert driver.returncode != 0
    wait_until(lambda: not any(begun == read_start_time(pid) for pid, begun in family if begun))


def wait_until(holds, *, seconds: float = 600) -> None:
    """Wait until `holds()` is true; fail after the time that Ray needs to start on a busy machine."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.1)


def read_start_time(pid: int) -> str:
    """Return when a process began, which tells it from a later process with the same id; "" if it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else fields[18]


@pytest.mark.extra
def test_convert_prints_single_error_line_when_ray_cluster_is_unreachable(tmp_path):
    flags = f"convert cuad --source samples/cuad --out {tmp_path / 'out'} --engine ray:127.0.0.1:1".split()
    run = subprocess.run([sys.executable, "-m", "exhibit", *flags], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("error: --engine ray:127.0.0.1:1: no cluster there") and "ray start" in run.stderr
    assert len(run.stderr.splitlines()) == 1
