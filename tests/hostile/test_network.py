"""Documents are printed without network access, and opening a model writes no telemetry file."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from exhibit.converters.pages import chromium as browser
from exhibit.converters.pages.chromium import Printer
from exhibit.evidence import read_document
from tests.hostile.references import LEADING, PASSIVE, documents

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def recorder() -> Iterator[tuple[int, list[bytes]]]:
    """Yield a local port, for TCP and UDP, and a list with the first line of everything that it receives."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as packets:
        packets.bind(server.getsockname())

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    try:
                        heard.append(connection.recv(500).split(b"\r\n")[0])
                    except OSError:
                        heard.append(b"a connection without a word")

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield server.getsockname()[1], heard
        packets.setblocking(False)
        with suppress(BlockingIOError):
            heard.append(packets.recv(500))
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def use_proxy(monkeypatch: pytest.MonkeyPatch, port: int, *, sealed: bool) -> None:
    """Set a local port as the proxy of the printing browser, so that all its traffic is recorded."""

    usual = browser.launch_options

    def options(folder: Path) -> dict[str, object]:
        there = {"server": f"http://127.0.0.1:{port}", "bypass": "<-loopback>"}
        arguments = usual(folder)["args"] if sealed else browser.FLAGS
        return usual(folder) | {"proxy": there, "args": arguments}

    monkeypatch.setattr(browser, "launch_options", options)


@pytest.mark.parametrize("words", [("passive0", "leading1"), pytest.param((), marks=pytest.mark.slow, id="all")])
def test_printer_prints_hostile_html_without_any_network_request(tmp_path, monkeypatch, words):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of this machine", encoding="utf-8")
    assert len({*PASSIVE, *LEADING}) >= 70
    with recorder() as (port, heard):
        use_proxy(monkeypatch, port, sealed=True)
        with Printer() as printer:
            pages = documents([f"http://127.0.0.1:{port}", "https://elsewhere.example"], str(secret))
            for word in words or pages:
                page = pages[word]
                printer.print_html(page, tmp_path / f"{word}.pdf")
                text = read_document(tmp_path / f"{word}.pdf").text
                assert text.startswith(word) and "secret of" not in text and "elsewhere" not in text
                if word in ("leading1", "passive0"):
                    printer.print_html(page, tmp_path / "again.pdf")
                    once, again = ((tmp_path / name).read_bytes() for name in (f"{word}.pdf", "again.pdf"))
                    assert once == again, f"{word}: every time the same"
    assert heard == []


_MODEL = """
import {first}, os
import numpy, onnxruntime
from onnx import TensorProto, helper
one = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])
graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [one("x")], [one("y")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
session.run(None, {{"x": numpy.zeros(1, dtype="float32")}})
"""


def list_files_of_model(home: Path, first: str) -> list[str]:
    """Open a model with a separate home folder; return the names of the files that it writes there.

    Such files would be an id of this machine and telemetry reports.
    """
    home.mkdir()
    unset = {"CI", "GITHUB_ACTIONS", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    environment = {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", _MODEL.format(first=first)], env=environment, check=True, timeout=300)
    return [path.name for path in home.rglob("*") if path.is_file()]


@pytest.mark.skipif(sys.platform != "linux", reason="where reports are kept is known of Linux alone")
def test_opening_a_model_writes_no_device_id_or_telemetry_file(tmp_path):
    assert list_files_of_model(tmp_path / "ours", "exhibit") == []
    assert "deviceid" in list_files_of_model(tmp_path / "theirs", "sys"), "the unprotected library writes the file here"
