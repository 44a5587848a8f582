"""Helpers for fault trials with an external cause: network traffic, manipulated indexes, little memory.

HTML documents are printed where every packet is recorded, indexes name foreign servers or contain changed
files, and the kernel kills processes for lack of memory.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.hostile.references import documents

_SPACE = ["unshare", "--map-root-user", "--net", "sh", "-c"]
_ROUTES = "ip link set lo up && ip route add local 0.0.0.0/0 dev lo; ip -6 route add local ::/0 dev lo"
"""In a network of its own every address is this machine's, so that whatever is sent to anybody passes its loopback."""
_ALL = 3  # ETH_P_ALL
_CGROUP = Path("/sys/fs/cgroup")
_LITTLE = 150 << 20  # bytes: an evaluation takes more, its start less


def has_network_namespaces() -> bool:
    """Return whether this user may create a network namespace."""
    if not (shutil.which("unshare") and shutil.which("ip")):
        return False
    return subprocess.run([*_SPACE, _ROUTES], capture_output=True).returncode == 0


def heard(line: list[str], folder: Path, run: Callable[..., Any]) -> tuple[Any, list[str]]:
    """Run a command in its own network namespace; return the finished process and the receivers of its packets."""
    report = folder / "heard.json"
    inner = [sys.executable, "-m", "tests.campaign.elsewhere", report, *line]
    done = run([*_SPACE, f'{_ROUTES}; exec "$@"', "sh", *map(str, inner)], folder)
    return done, json.loads(report.read_text(encoding="utf-8"))


def listen_and_run(report: Path, line: list[str]) -> int:
    """Run a command, record the packets on the loopback interface, and write their receivers to `report`.

    The exit status of the command is returned.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL)) as ear:  # type: ignore[attr-defined]
        ear.bind(("lo", 0))
        with suppress(OSError):
            socket.create_connection(("192.0.2.1", 9), timeout=1)  # heard first, or nobody listens
        done = subprocess.run(line)
        ear.setblocking(False)
        packets = []
        with suppress(BlockingIOError):
            while True:
                packets.append(ear.recv(200))
    report.write_text(json.dumps(sorted(set(map(_receiver, packets)))), encoding="utf-8")
    return done.returncode


def _receiver(packet: bytes) -> str:
    kind = int.from_bytes(packet[12:14], "big")
    if kind == 0x0800:
        return socket.inet_ntop(socket.AF_INET, packet[30:34])
    return socket.inet_ntop(socket.AF_INET6, packet[38:54]) if kind == 0x86DD else f"{kind:04x}"


def write_pages(chance: random.Random, folder: Path) -> int:
    """Write HTML documents with references of every kind to random addresses, and a table with a question on each.

    Return the number of documents.
    """
    public = f"http://{chance.randrange(1, 223)}.{chance.randrange(255)}.0.7"
    private = chance.choice(["http://10.0.0.7", "http://169.254.169.254", "http://[fd00::7]", "http://127.0.0.1:8080"])
    names = [public, private, f"https://n{chance.randrange(999)}.example"]
    pages = list(documents(names, "/etc/hostname").values())
    (folder / "pages").mkdir()
    rows = []
    for number, page in enumerate(pages):
        (folder / "pages" / f"{number}.html").write_text(page, encoding="utf-8")
        rows.append({"question": f"What is in {number}?", "answer": "words", "document": f"{number}.html"})
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return len(pages)


@contextmanager
def recording_server() -> Iterator[tuple[str, list[bytes]]]:
    """Yield the address of a local server and the list of the bytes that it receives."""
    sent: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    connection.settimeout(2)
                    sent.append(connection.recv(2000))

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", sent
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def spoil(chance: random.Random, index: Path, server: str) -> None:
    """Manipulate an index as a malicious sender could: name a server in it, add a symbolic link, or change a byte."""
    manifest = json.loads((index / "manifest.json").read_text(encoding="utf-8"))
    kind = chance.choice(["reranker", "llm", "store", "embedder", "link", "bytes"])
    if kind == "bytes":
        path = chance.choice([path for path in sorted(index.rglob("*")) if path.is_file()])
        data = bytearray(path.read_bytes()) or bytearray(b"x")
        data[chance.randrange(len(data))] ^= 1 + chance.randrange(255)
        path.write_bytes(data)
        return
    if kind == "link":
        path = chance.choice(sorted(index.rglob("*.txt")) or [index / "manifest.json"])
        path.unlink()
        path.symlink_to("/etc/hostname")
        return
    values = {
        "reranker": f"http:{server}/r",
        "llm": f"openai:{server}",
        "store": f"milvus:{server}",
        "embedder": "openai:x",
    }
    manifest["config"][kind] = values[kind]
    (index / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def can_limit_memory() -> Path | None:
    """Return a cgroup in which this user can create memory-limited cgroups, or None."""
    for parent in (_CGROUP, _CGROUP / "memory"):
        group = parent / f"exhibit-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        limit = any((group / name).exists() for name in ("memory.max", "memory.limit_in_bytes"))
        group.rmdir()
        if limit:
            return parent
    return None


class Cell:
    """A cgroup whose processes may use little memory."""

    def __init__(self, group: Path) -> None:
        self._group = group

    def enter(self) -> None:
        """Move the calling process into the cgroup; used between fork and exec."""
        (self._group / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    @property
    def kills(self) -> int:
        """The number of processes in the cgroup that the kernel has killed for lack of memory."""
        for name in ("memory.events", "memory.oom_control"):
            if (self._group / name).exists():
                words = (self._group / name).read_text(encoding="ascii").split()
                return int(words[words.index("oom_kill") + 1])
        return 0

    @property
    def alive(self) -> list[str]:
        """The ids of the processes that are still in the cgroup."""
        return (self._group / "cgroup.procs").read_text(encoding="ascii").split()


@contextmanager
def little_memory(parent: Path) -> Iterator[Cell]:
    """Yield a new cgroup with so little memory that the kernel kills an evaluation in it."""
    group = parent / f"exhibit-{os.getpid()}"
    group.mkdir()
    try:
        name = "memory.max" if (group / "memory.max").exists() else "memory.limit_in_bytes"
        (group / name).write_text(str(_LITTLE), encoding="ascii")
        with suppress(OSError):
            (group / "memory.swap.max").write_text("0", encoding="ascii")
        yield Cell(group)
    finally:
        with suppress(OSError):
            group.rmdir()


if __name__ == "__main__":
    sys.exit(listen_and_run(Path(sys.argv[1]), sys.argv[2:]))
