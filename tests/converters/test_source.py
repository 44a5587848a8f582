"""Malicious archives and interrupted downloads: a clear message, and no file outside the folder."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import re
import stat
import threading
import zipfile
from importlib import import_module

import pytest

from exhibit.converters import Download
from exhibit.converters.core import source
from exhibit.converters.core.source import fetch, unpack
from exhibit.converters.cuad import INFO
from exhibit.schemas.errors import ServiceError, SourceError


@pytest.fixture
def archive(tmp_path):
    def make(*entries: tuple[str | zipfile.ZipInfo, bytes], name: str = "a.zip"):
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for entry, data in entries:
                file.writestr(entry, data)
        return path

    return make


def test_open_source_removes_an_unpacked_archive_afterwards(archive):
    with source.open_source(INFO, archive(("CUAD_v1/master_clauses.csv", b"Filename\n"))) as folder:
        table = source.find_one(folder, INFO, "master_clauses.csv")
        assert table.read_bytes() == b"Filename\n"
    assert not table.exists()


@pytest.mark.parametrize(
    "name", ["C:/evil.txt", "../evil.txt", "CUAD_v1/../../evil.txt", "/tmp/evil.txt", "..\\evil.txt"]
)
def test_unpack_refuses_an_entry_outside_the_folder(archive, tmp_path, name):
    folder = tmp_path / "in" / "folder"
    folder.mkdir(parents=True)
    entry = zipfile.ZipInfo("x")
    entry.filename = name
    with pytest.raises(SourceError, match="outside the folder; do not trust this file"):
        unpack(archive(("good.txt", b"x"), (entry, b"evil")), folder)
    assert list(folder.iterdir()) == [] and not list(tmp_path.rglob("evil*"))


LINK = zipfile.ZipInfo("link.pdf")
LINK.external_attr = (stat.S_IFLNK | 0o777) << 16


@pytest.mark.parametrize(
    ("limits", "entries", "message"),
    [
        ({}, [("zeros", bytes(30 << 20))], "unpacks to .* times its size"),
        ({}, [(LINK, b"/etc/passwd")], "'link.pdf' is a symbolic link"),
        ({"MAX_BYTES": 150}, [("a", b"x" * 100), ("b", b"y" * 100)], "in 2 parts; the limits are 0 MiB"),
        ({"MAX_FILES": 1}, [("a", b"x"), ("b", b"y")], "in 2 parts; the limits are 8192 MiB and 1 parts"),
    ],
)
def test_unpack_refuses_links_bombs_and_archives_above_the_limits(
    archive, tmp_path, monkeypatch, limits, entries, message
):
    for name, most in limits.items():
        monkeypatch.setattr(source, name, most)
    with pytest.raises(SourceError, match=message):
        unpack(archive(*entries), tmp_path / "out")


# ---------------------------------------------------------------- downloads


@pytest.fixture
def server():
    """A local web server with range requests; it can be set to break off a reply."""
    data = bytes(range(256)) * 2000

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: state.break_at])

        def log_message(self, *args: object) -> None:
            pass

    state = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.asked, state.break_at, state.data = [], None, data
    threading.Thread(target=state.serve_forever, daemon=True).start()
    yield state
    state.shutdown()


@pytest.fixture
def info(server, tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    url = f"http://127.0.0.1:{server.server_port}/files/CUAD_v1.zip"
    digest = hashlib.sha256(server.data).hexdigest()
    return dataclasses.replace(INFO, downloads=(Download(url=url, sha256=digest, bytes=len(server.data)),))


def test_fetch_downloads_once_and_prints_licence_and_citation(server, info, capsys):
    path = fetch(info)
    assert path.read_bytes() == server.data and path.name == "CUAD_v1.zip"
    assert fetch(info) == path and len(server.asked) == 1
    notice = capsys.readouterr().err
    assert "CC BY 4.0" in notice and "Hendrycks" in notice and INFO.url in notice
    [file] = info.downloads
    second = dataclasses.replace(file, url=file.url.replace("CUAD_v1.zip", "more.zip"))
    folder = fetch(dataclasses.replace(info, downloads=(file, second)))
    assert sorted(path.name for path in folder.iterdir()) == ["CUAD_v1.zip", "more.zip"] and len(server.asked) == 2


def test_fetch_stores_nothing_of_an_interrupted_download(server, info):
    server.break_at = 1000
    with pytest.raises(ServiceError, match="run the command again"):
        fetch(info)
    assert not list(source.find_cache_folder().rglob("CUAD*"))


def test_fetch_refuses_a_download_with_another_checksum(server, info):
    wrong = dataclasses.replace(info, downloads=(dataclasses.replace(info.downloads[0], sha256="0" * 64),))
    with pytest.raises(SourceError, match="expected 0000.*nothing was stored"):
        fetch(wrong)
    assert not list(source.find_cache_folder().rglob("CUAD*"))


BENCHMARKS = ("cuad", "contractnli", "maud", "privacyqa", "cpr", "legalbenchrag", "acord")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_info_has_pinned_downloads_or_manual_instructions(name):
    info = import_module(f"exhibit.converters.{name}").INFO
    assert bool(info.downloads) != bool(info.by_hand)
    for one in info.downloads:
        assert one.url.startswith("https://") and re.fullmatch(r"[0-9a-f]{64}", one.sha256) and one.bytes > 1 << 20
    if not info.downloads:
        with pytest.raises(SourceError, match=re.escape(info.by_hand)):
            fetch(info)
