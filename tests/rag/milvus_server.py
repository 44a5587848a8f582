"""A standalone Milvus server in a separate process, which can be killed and restarted with its data.

The server is in the PyPI wheel `milvus` 2.3.5 (the extra `test`), which exists for x86-64 only. It starts in about
eleven seconds and needs 450 MB of disk. Its ports are free ones, except for 2380 of its etcd: only one server can run
at a time.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDED = (
    "these tests start a Milvus server: pip install milvus==2.3.5 (57 MB), which there is for Linux on x86-64 alone. "
    f"Here: {platform.system()} on {platform.machine()}. Elsewhere, run make test-scale in an x86-64 container"
)
ROOT_TOKEN = "root:Milvus"
"""What a server that asks for a token has for its first user."""
_SECONDS = 180.0
"""How long a server may take to be ready; on a busy machine many times the usual eleven seconds."""


class MilvusProcess:
    """A server on loopback that requires a token."""

    def __init__(self, folder: Path) -> None:
        if find_spec("milvus") is None:
            pytest.fail(NEEDED)
        from milvus import MilvusServer, MilvusServerConfig

        server = MilvusServer(MilvusServerConfig(), wait_for_started=False)
        server.set_base_dir(str(folder))
        server.config.set("authorization_enabled", True)
        server.start()  # unpacks the program and writes the settings
        self._folder = folder
        self._health = f"http://127.0.0.1:{server.webservice_port}/healthz"
        self._process = server.server_proc
        self._server = server  # which ends the process when it is forgotten
        self.uri = f"http://127.0.0.1:{server.listen_port}"
        self._await()

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        self._process.kill()
        self._process.wait()

    def start(self) -> None:
        """Start the server again on the same port, with the same data."""
        program = self._folder / "bin" / "milvus"
        told = {"DEPLOY_MODE": "STANDALONE", "METRICS_PORT": self._health.split(":")[2].split("/")[0]}
        told |= {"MILVUS_RUN_DIR": str(self._folder / "run"), "LD_LIBRARY_PATH": str(program.parent)}
        with (self._folder / "logs" / "again.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "run", "standalone"], cwd=self._folder, env={**os.environ, **told}, stdout=log, stderr=log
            )
        self._await()

    def _await(self) -> None:
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            assert self._process.poll() is None, f"it ended; does another run? (port 2380) See {self._folder / 'logs'}"
            try:
                with urllib.request.urlopen(self._health, timeout=10) as answer:
                    if b"OK" in answer.read():
                        return
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.1)
        pytest.fail(f"the server was not ready after {_SECONDS:.0f} seconds; see {self._folder / 'logs'}")
