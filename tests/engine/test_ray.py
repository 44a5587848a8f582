"""A Ray cluster of our own is private and ends with the process; without the extra, the error names it."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import evaluate_rag
import exhibit
from exhibit.conversion import main as convert_main
from exhibit.engine import open_engine
from exhibit.rag.__main__ import main as rag_main
from exhibit.schemas.errors import ServiceError, ToolkitError
from tests.engine.work import Lease, pages

ROOT = Path(__file__).parent.parent.parent
NEEDED = "pip install 'exhibit-rag[ray]'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Ray on this machine, with two workers."""
    assert [outcome.unwrap() for outcome in open_engine("ray", jobs=2).map(abs, [-1, 2])] == [1, 2]
    yield
    sys.modules["ray"].shutdown()


# ---------------------------------------------------------------- without it


@pytest.fixture
def no_ray(monkeypatch):
    """Simulate that the extra `ray` is not installed."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "exhibit.engine.runners.ray", raising=False)


def test_without_the_extra_the_flag_names_it(no_ray):
    for wanted in ("ray", "ray:auto", "ray:ray://head.example.org:10001"):
        with pytest.raises(ToolkitError) as caught:
            open_engine(wanted, jobs=2, items=1)
        assert NEEDED in str(caught.value)


def test_every_command_says_so_before_it_works(no_ray, samples, tmp_path, capsys):
    out = tmp_path / "out"
    source = samples / "cuad"
    assert convert_main(["cuad", "--source", str(source), "--out", str(out), "--engine", "ray"]) == 1
    assert NEEDED in capsys.readouterr().err
    assert rag_main(["index", str(source), "--out", str(out), "--engine", "ray", "--embedder", "hashing"]) == 1
    assert NEEDED in capsys.readouterr().err
    assert evaluate_rag.main(["--dataset-paths", str(source), "--engine", "ray"]) == 1
    assert NEEDED in capsys.readouterr().err
    assert not out.exists()


def test_nothing_imports_ray_unless_it_is_asked_for():
    code = "import sys, exhibit.converters.cuad, evaluate_rag, exhibit.rag.__main__; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


# ---------------------------------------------------------------- what is asked of it


class Ray(ModuleType):
    """A stub of Ray without a cluster: a task runs in this process when its result is requested.

    The faults that a test sets are raised first.
    """

    def __init__(self) -> None:
        super().__init__("ray")
        self.began: list[tuple[str, dict[str, Any]]] = []
        self.sent: list[tuple[Any, ...]] = []
        self.cancelled: list[Any] = []
        self.faults: dict[str, list[Exception]] = {}
        self.processors: dict[str, float] = {"CPU": 8.0}
        self.machines = [{"NodeID": "a", "NodeManagerHostname": "head", "Alive": True}]
        self.blind: dict[str, list[str]] = {}
        kinds = ("WorkerCrashedError", "OutOfMemoryError", "NodeDiedError", "ObjectLostError", "RayTaskError")
        self.exceptions = ModuleType("ray.exceptions")
        self.exceptions.RayError = RayError
        for kind in kinds:
            setattr(self.exceptions, kind, type(kind, (RayError,), {}))
        self.cloudpickle = pickle

    put = staticmethod(lambda value: value)

    def is_initialized(self) -> bool:
        return bool(self.began)

    def init(self, address: str, **options: Any) -> None:
        self.began.append((address, options))

    def cluster_resources(self) -> dict[str, float]:
        return self.processors

    def nodes(self) -> list[dict[str, Any]]:
        return self.machines

    def remote(self, function: Any) -> Any:
        def options(**given: Any) -> Any:
            return SimpleNamespace(remote=lambda *told: self._send(function, given, told))

        return SimpleNamespace(options=options)

    def _send(self, function: Any, given: dict[str, Any], told: tuple[Any, ...]) -> int:
        self.sent.append((function, given, told))
        return len(self.sent) - 1

    def get(self, ref: int) -> Any:
        function, given, told = self.sent[ref]
        where = given.get("scheduling_strategy")
        left = self.faults.get(where[0] if where else told[-1])
        if left:
            raise left.pop(0)
        return self.blind.get(where[0], []) if where else function(*told)

    def wait(self, refs: list[int], *, num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        assert num_returns == len(refs) and timeout > 0
        return refs, []

    def cancel(self, ref: int, *, force: bool) -> None:
        assert force
        self.cancelled.append(self.sent[ref][2][-1])


class RayError(Exception): ...


@pytest.fixture
def fake(monkeypatch) -> Iterator[Ray]:
    """Install the stub in place of Ray and import the Ray runner anew; no cluster is started."""
    ray = Ray()
    parts = {name: ModuleType(name) for name in ("ray._private", "ray.util", "ray.util.scheduling_strategies")}
    parts["ray._private"].ray_constants = SimpleNamespace(ENABLE_RAY_CLUSTER=True)
    parts["ray._private"].worker = SimpleNamespace()
    parts["ray.util.scheduling_strategies"].NodeAffinitySchedulingStrategy = lambda node, *, soft: (node, soft)
    for name, module in {"ray": ray, "ray.exceptions": ray.exceptions, "ray.cloudpickle": pickle, **parts}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "exhibit.engine.runners.ray", raising=False)
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        monkeypatch.setenv(name, "")
    yield ray
    sys.modules.pop("exhibit.engine.runners.ray", None)


def test_a_cluster_of_our_own_is_started_once_and_reports_to_nobody(fake):
    for _ in range(2):
        assert [outcome.unwrap() for outcome in open_engine("ray", jobs=3).map(abs, [-1, 2])] == [1, 2]
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    assert fake.began == [("local", {"num_cpus": 3, "include_dashboard": False, **quiet})]
    assert sys.modules["ray._private"].ray_constants.ENABLE_RAY_CLUSTER is False, "it listens on loopback alone"
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    assert all(given == {"num_cpus": 1, "max_retries": 0} for _, given, _ in fake.sent)
    print_to = sys.modules["ray._private"].worker.print_to_stdstream
    assert print_to({"pid": 7, "lines": ["a worker died"]}) is None, "what Ray says is no result"


def test_a_cluster_that_is_there_is_knocked_at_and_sent_the_package(fake, monkeypatch):
    knocked = []
    monkeypatch.setattr(socket, "create_connection", lambda place, timeout: knocked.append(place) or socket.socket())
    monkeypatch.setattr(exhibit, "__file__", "/opt/exhibit/__init__.py")
    assert list(open_engine("ray:ray://[::1]:10001").map(abs, [])) == []
    [(address, options)] = fake.began
    assert address == "ray://[::1]:10001" and knocked == [("::1", 10001)]
    assert options["runtime_env"] == {"py_modules": ["/opt/exhibit"]} and "num_cpus" not in options
    fake.began.clear()
    list(open_engine("ray:auto").map(abs, []))
    fake.is_initialized = lambda: False
    list(open_engine("ray:head.example.org:port").map(abs, []))
    assert knocked == [("::1", 10001)], "only Ray knows where these are"
    assert [address for address, _ in fake.began] == ["auto", "head.example.org:port"]


def test_a_checkout_is_sent_as_one_package_with_every_room(fake):
    list(open_engine("ray:auto").map(abs, []))
    [sent] = map(Path, fake.began[0][1]["runtime_env"]["py_modules"])
    assert sent.name == "exhibit" and (sent / "__main__.py").is_file()
    assert (sent / "rag" / "__init__.py").is_file()


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (ImportError("no client"), ToolkitError, NEEDED),
        (ConnectionError(""), ServiceError, "--engine ray:auto: no cluster there (ConnectionError); start one with"),
        (RuntimeError("version 1\nis not 2"), ServiceError, "no cluster there (version 1); start one with"),
    ],
)
def test_a_cluster_that_cannot_be_joined_is_one_line(fake, error, kind, words):
    fake.init = lambda *_, **__: (_ for _ in ()).throw(error)
    with pytest.raises(kind) as caught:
        list(open_engine("ray:auto").map(abs, [1]))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_an_item_whose_worker_or_machine_is_gone_is_tried_three_times(fake):
    faults = fake.exceptions
    fake.faults = {
        "-1": [faults.WorkerCrashedError(), faults.NodeDiedError()],
        "-2": [faults.OutOfMemoryError(), faults.ObjectLostError(), faults.WorkerCrashedError()],
    }
    outcomes = list(open_engine("ray", jobs=1).map(abs, [-1, -2, -3]))
    assert [outcome.value for outcome in outcomes] == [1, None, 3]
    assert "-2: its worker process died 3 times" in str(outcomes[1].error)
    assert [told[-1] for _, _, told in fake.sent].count("-2") == 3
    assert fake.cancelled == []


def test_a_bug_is_raised_and_a_cluster_that_fails_is_named(fake):
    fake.faults = {"-1": [fake.exceptions.RayTaskError("return 1 // 0")], "-2": [RayError("the head\nis gone")]}
    with pytest.raises(fake.exceptions.RayTaskError, match="1 // 0"):
        list(open_engine("ray", jobs=1).map(abs, [-1]))
    with pytest.raises(ServiceError, match=r"the Ray cluster failed: the head; run the command again"):
        list(open_engine("ray", jobs=1).map(abs, [-2, -3]))


@pytest.mark.parametrize(
    ("processors", "jobs", "ahead"), [(8.0, 2, 2), (2.0, 2, 8), (1.0, 2, 8), (2.0, None, 8), (0.0, None, 4)]
)
def test_no_more_is_sent_than_a_cluster_can_begin_and_the_rest_is_cancelled(fake, processors, jobs, ahead):
    fake.processors = {"CPU": processors} if processors else {}
    outcomes = open_engine("ray", jobs=jobs).map(abs, range(100))
    assert [next(outcomes).unwrap(), next(outcomes).unwrap()] == [0, 1]
    assert len(fake.sent) == ahead + 1
    outcomes.close()
    assert fake.cancelled == [str(number) for number in range(2, ahead + 1)]


def test_a_machine_that_does_not_see_a_document_is_named_before_anything_is_done(fake, tmp_path):
    (tmp_path / "annexes").mkdir()
    for name in ("lease.pdf", "annexes/plan.pdf", "annexes/deep.pdf"):
        (tmp_path / name).touch()
    deep = [[[[tmp_path / "annexes" / "deep.pdf"]]]]
    more = ({"plan": tmp_path / "annexes" / "plan.pdf", "kind": Lease}, deep)
    item = Lease(tmp_path / "lease.pdf", tmp_path / "out" / "x.pdf", more)
    also = Lease(tmp_path / "lease.pdf", tmp_path / "new.pdf", more)
    fake.machines += [{"NodeID": "b", "NodeManagerHostname": "node-b", "Alive": True}]
    fake.machines += [{"NodeID": "c", "NodeManagerHostname": "node-c", "Alive": False}]
    lease, plan = str(tmp_path / "lease.pdf"), str(tmp_path / "annexes" / "plan.pdf")
    fake.blind = {"b": [lease]}
    with pytest.raises(
        ServiceError, match=r"ray:auto: 1 of 2 machines cannot find .*lease.pdf \(the first is node-b\)"
    ):
        list(open_engine("ray:auto").map(pages, [item]))
    assert [(given, told) for _, given, told in fake.sent] == [
        ({"num_cpus": 0, "max_retries": 0, "scheduling_strategy": (node, False)}, ([plan, lease],)) for node in "ab"
    ], "of the file to be its folder, had it been there; of what stands too deep nothing"
    fake.sent.clear()
    fake.blind, fake.faults = {}, {"b": [RayError("gone")]}
    assert [one.unwrap() for one in open_engine("ray:auto", jobs=9).map(pages, [also, item])] == [2, 2]
    assert [told for _, _, told in fake.sent[:2]] == [([str(tmp_path), plan, lease],)] * 2
    assert len(fake.sent) == 4, "they are asked about the first item alone"
    looks = fake.sent[0][0]
    assert looks([lease, str(tmp_path / "none.pdf")]) == [str(tmp_path / "none.pdf")]


def test_one_item_needs_no_cluster_and_one_job_is_still_the_clusters(fake):
    kinds = {
        "local": open_engine("ray", items=1),
        "serial": open_engine("ray", items=1, limits=None),
        "ray": open_engine("ray", jobs=1, limits=None),
    }
    assert {name: type(engine).__module__.rpartition(".")[2] for name, engine in kinds.items()} == {
        name: name for name in kinds
    }
    assert type(open_engine("ray", jobs=1, items=2)).__module__.endswith("ray")
    assert kinds["local"].jobs == 1 and kinds["ray"].jobs == 1 and open_engine("ray", jobs=5, items=2).jobs == 5


def test_nobody_is_asked_about_items_without_files(fake):
    assert [one.unwrap() for one in open_engine("ray:auto").map(abs, [-1])] == [1]
    assert len(fake.sent) == 1


# ---------------------------------------------------------------- with it


@pytest.mark.extra
def test_a_cluster_is_sent_the_package_with_every_room():
    sent = Path(import_module("exhibit.engine.runners.ray").find_package())
    assert sent.name == "exhibit" and (sent / "__main__.py").is_file()
    assert (sent / "rag" / "__init__.py").is_file()


def folder_and_path(_: int) -> tuple[str, bool]:
    return os.getcwd(), str(ROOT) in sys.path or (Path.cwd() / "engine").is_dir()  # noqa: PTH109


@pytest.mark.extra
def test_relative_paths_mean_the_same_to_a_worker(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (outcome,) = open_engine("ray", jobs=2).map(folder_and_path, [1])
    assert Path(outcome.unwrap()[0]).samefile(tmp_path)


def array(size: int) -> object:
    return import_module("numpy").zeros(size)


@pytest.mark.extra
def test_a_result_belongs_to_whoever_asked(cluster):
    (outcome,) = open_engine("ray", jobs=2).map(array, [1_000_000])
    values = outcome.unwrap()
    values[0] = 1.0  # what is read in place out of Ray's store is read-only
    assert values.sum() == 1.0


@pytest.mark.extra
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's list of sockets")
def test_its_servers_listen_on_loopback_alone(cluster):
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
def test_nothing_outlives_us(number, tmp_path):
    driver = subprocess.Popen([sys.executable, "-c", SLEEPY, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE)
    wait_until(lambda: len(list(tmp_path.iterdir())) >= 2 or driver.poll() is not None)
    assert driver.poll() is None, driver.stderr.read().decode()
    family = [(pid, begun_at(pid)) for pid in descendants(driver.pid)]
    assert len(family) > 4
    driver.send_signal(number)
    driver.communicate(timeout=600)
    assert driver.returncode != 0
    wait_until(lambda: not any(begun == begun_at(pid) for pid, begun in family if begun))


def wait_until(holds, *, seconds: float = 600) -> None:
    """Wait until `holds()` is true; fail after a time that is enough to start Ray on a busy machine."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)


def begun_at(pid: int) -> str:
    """Return when a running process began, which tells it from a later one with its number; "" if it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else fields[18]


@pytest.mark.extra
def test_no_cluster_at_the_address_is_one_line(tmp_path):
    flags = [
        "convert",
        "cuad",
        "--source",
        "samples/cuad",
        "--out",
        str(tmp_path / "out"),
        "--engine",
        "ray:127.0.0.1:1",
    ]
    run = subprocess.run([sys.executable, "-m", "exhibit", *flags], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("error: --engine ray:127.0.0.1:1: no cluster there") and "ray start" in run.stderr
    assert len(run.stderr.splitlines()) == 1
