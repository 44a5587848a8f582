"""Runs items as Ray tasks on a new or an existing cluster; docs/scale.md explains why Ray Data is not used."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import exhibit
from exhibit.engine.limits import UNLIMITED, Limits
from exhibit.engine.outcome import AHEAD, DIED, TRIES, In, Out, Outcome, name_item, report_death
from exhibit.engine.worker import MapWork, Worker, read_outcome
from exhibit.runtime.command import ChangedStream
from exhibit.schemas.errors import ServiceError, ToolkitError

# Ray reads this once. A cluster that is started here listens only on the loopback interface, as it does by default on
# macOS and Windows. The address of an existing cluster stays unchanged.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")

import ray
from ray import cloudpickle
from ray import exceptions as faults

_DIED = (faults.WorkerCrashedError, faults.OutOfMemoryError, faults.NodeDiedError, faults.ObjectLostError)
"""Errors for a lost worker, machine or result, after which another worker can retry the item."""
_CONNECT_SECONDS = 10.0  # seconds for the cluster's head node to answer
_log = logging.getLogger(__name__)


class Runner:
    takes_address = True

    def __init__(self, *, jobs: int | None = None, address: str = "", limits: Limits | None = None) -> None:
        self.jobs, self.address = jobs, address or "local"
        self._limits = limits or UNLIMITED

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order; an item that exceeds its limits or kills its workers gets an error."""
        connect(self.address, self.jobs)
        # pickle a function of the script by value, because the cluster's machines do not have the script
        work = ray.put((cloudpickle.dumps(function), self._limits, str(Path.cwd())))
        # Ray's own retries are off: Ray would retry forever an item that the system kills for lack of memory
        task = ray.remote(_apply).options(num_cpus=1, max_retries=0)

        def send(item: Any) -> Any:
            return task.remote(work, cloudpickle.dumps(item), name_item(item))

        processors = int(ray.cluster_resources().get("CPU", 1)) or 1
        jobs = self.jobs or processors
        # a cluster with more processors than `jobs` would run all items in flight at once
        room = jobs * AHEAD if processors <= jobs else jobs
        waiting, flight = iter(items), deque[tuple[Any, Any]]()
        try:
            while True:
                flight.extend((item, send(item)) for item in islice(waiting, room - len(flight)))
                if not flight:
                    return
                yield _await_outcome(*flight.popleft(), send)
        finally:
            for _, ref in flight:
                with suppress(Exception):  # if the cluster is lost, there is nothing to cancel
                    ray.cancel(ref, force=True)


def _await_outcome(item: Any, ref: Any, send: Callable[[Any], Any]) -> Outcome[Any]:
    for tried in range(1, TRIES + 1):
        try:
            return read_outcome(ray.get(ref))
        except _DIED as error:
            _log.debug("attempt %d of %s: %s", tried, item, error)
            ref = send(item) if tried < TRIES else ref
        except faults.RayTaskError:
            raise  # a bug: it carries the worker's traceback
        except (faults.RayError, ConnectionError) as error:
            raise ServiceError(f"the Ray cluster failed: {_read_first_line(error)}; run the command again") from error
    return report_death(item, DIED)


def _apply(work: tuple[bytes, Limits, str], item: bytes, name: str) -> bytes:
    """Process an item in a child process of a Ray worker, because a child process can be killed at a limit."""
    function, limits, folder = work
    worker = Worker[Any, Any](MapWork.of(function, limits)._replace(folder=folder))
    answer = worker.answer(item, name)
    worker.rest()
    return answer


def connect(address: str, jobs: int | None) -> None:
    """Join a Ray cluster, or start a local one, unless already connected; Ray disconnects when the process ends."""
    if ray.is_initialized():
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # send no usage statistics
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # print no warning about unused GPUs
    sys.stdout = ChangedStream(sys.stdout, _divert_messages)  # Ray reports dead workers there
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address == "local":
            ray.init(address, num_cpus=jobs, include_dashboard=False, **quiet)
        else:
            _check_address(address)
            ray.init(address, runtime_env={"py_modules": [str(Path(exhibit.__file__).parent)]}, **quiet)
    except ImportError as error:
        raise ToolkitError(f"--engine ray:{address} needs an extra: pip install 'exhibit-rag[ray]'") from error
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise ServiceError(
            f"--engine ray:{address}: no cluster there ({_read_first_line(error)}); "
            "start one with 'ray start --head', or use --engine ray, which starts a new cluster"
        ) from error


def _check_address(address: str) -> None:
    """Raise at once if no server listens at the address: Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()


def _divert_messages(text: str) -> str:
    """Return a text that may be printed; one from Ray's threads is logged instead, and the result is empty."""
    if not threading.current_thread().name.startswith("ray_"):
        return text
    _log.debug("%s", text.rstrip())
    return ""


def _read_first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
