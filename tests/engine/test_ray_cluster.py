"""On a cluster of three local nodes, work survives the death of a node."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import fsspec
import pytest

from bench.scale import CONTRACTS, repeat_documents
from exhibit.engine import open_engine
from exhibit.engine.limits import Limits
from exhibit.rag import Config, Pipeline
from exhibit.storage.locations import Remote
from tests.engine.test_ray import wait_until
from tests.hub.bundles import files_of
from tests.object_stores import moto
from tests.storage.memory import put
from tests.test_object_stores import set_s3_environment

pytestmark = [pytest.mark.extra, pytest.mark.slow]
ROOT = Path(__file__).parent.parent.parent
STORE = 80 << 20
"""Bytes of each node's object store: the least that Ray accepts."""
PATIENCE = 600
"""The timeout in seconds for everything that a test waits for: ten times the longest time on a busy machine."""


@dataclass
class RayNodes:
    """A Ray head node with one processor and the further nodes of its cluster, all on this machine."""

    cluster: Any
    nodes: list[Any] = field(default_factory=list)

    @property
    def engine(self) -> str:
        return f"ray:{self.cluster.address}"

    def raylet(self, number: int) -> str:
        """Return the process id of a node's raylet, which its workers know as `RAY_RAYLET_PID`."""
        return str(self.nodes[number].all_processes["raylet"][0].process.pid)

    def kill(self, number: int) -> None:
        self.cluster.remove_node(self.nodes.pop(number), allow_graceful=False)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory) -> Iterator[Remote]:
    """A bucket whose address is in the environment that the nodes inherit when they are started."""
    folder = tmp_path_factory.mktemp("s3")
    with moto(folder) as address, pytest.MonkeyPatch.context() as patch:
        set_s3_environment(address, folder, patch)
        fsspec.filesystem("s3").mkdir("contracts")
        yield Remote("s3://contracts")
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture(scope="module")
def no_tokens() -> Iterator[None]:
    """Switch Ray's authentication off; make Ray read the setting again, because an earlier test may have changed it."""
    authentication = import_module("ray._private.authentication_test_utils")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        authentication.reset_auth_token_state()
        yield
    authentication.reset_auth_token_state()


@pytest.fixture(scope="module")
def head(bucket, no_tokens) -> Iterator[RayNodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        options = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        cluster = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args=options)
        by_value = import_module("ray.cloudpickle")
        # send the product to the cluster, without its tests
        by_value.register_pickle_by_value(sys.modules[__name__])
        try:
            yield RayNodes(cluster)
        finally:
            by_value.unregister_pickle_by_value(sys.modules[__name__])
            sys.modules["ray"].shutdown()
            cluster.shutdown()


@pytest.fixture
def three_nodes(head: RayNodes) -> RayNodes:
    """The head and two nodes; nodes that a test has killed are replaced."""
    head.nodes += [head.cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2 - len(head.nodes))]
    return head


def start_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


@dataclass(frozen=True)
class WaitForGate:
    """A task that writes down its node and waits until the gate file exists."""

    folder: Path

    def __call__(self, number: int) -> int:
        (self.folder / f"{number}.{os.environ['RAY_RAYLET_PID']}").touch()
        while not (self.folder / "open").exists():
            time.sleep(0.05)
        return number * number


def test_map_repeats_items_of_a_killed_node_on_other_nodes(three_nodes, tmp_path):
    engine = open_engine(three_nodes.engine, limits=Limits(PATIENCE))
    thread, done = start_thread(lambda: [outcome.unwrap() for outcome in engine.map(WaitForGate(tmp_path), range(9))])
    lost = three_nodes.raylet(0)
    wait_until(lambda: list(tmp_path.glob(f"*.{lost}")) or not thread.is_alive())
    [begun] = tmp_path.glob(f"*.{lost}")
    three_nodes.kill(0)
    (tmp_path / "open").touch()
    thread.join(PATIENCE)
    assert done == [[number * number for number in range(9)]]
    again = [path for path in tmp_path.glob(f"{begun.stem}.*") if path != begun]
    assert again, "the item of the killed node was not repeated"


@pytest.fixture(scope="module")
def documents(bucket, tmp_path_factory) -> Remote:
    """Nine contracts in the bucket, and nowhere else."""
    folder = tmp_path_factory.mktemp("contracts")
    for number, path in enumerate(repeat_documents(CONTRACTS, 9, folder)):
        put(bucket / "documents" / f"{number}.txt", path.read_bytes())
    return bucket / "documents"


def build_index(source: Remote, folder: Path, engine: str) -> int:
    config = Config.preset("routed", embedder="hashing:64")
    return Pipeline(config, cache=folder / "cache", engine=engine).index(source, folder / "index").documents


def test_index_of_bucket_equals_the_local_index_when_a_node_is_killed(three_nodes, documents, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert build_index(documents, tmp_path / "here", "serial") == 9
    thread, results = start_thread(lambda: build_index(documents, tmp_path / "there", three_nodes.engine))
    wait_until(lambda: results or not thread.is_alive() or any((tmp_path / "there").rglob("texts/*")))
    three_nodes.kill(0)
    thread.join(PATIENCE)
    assert results == [9]
    assert files_of(tmp_path / "there" / "index") == files_of(tmp_path / "here" / "index")
