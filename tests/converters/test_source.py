"""Malicious archives and interrupted downloads: a clear message, and no file outside the target folder."""

import dataclasses
import hashlib
import re
import stat
import zipfile
from importlib import import_module

import pytest

from exhibit.converters import DatasetInfo, Download
from exhibit.converters.core import source
from exhibit.converters.core.source import fetch, unpack
from exhibit.converters.cuad import INFO
from exhibit.schemas.errors import ServiceError, SourceError
from tests.converters.site import Site, serve


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
        table = source.Release(folder, INFO).find("master_clauses.csv")
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
def test_unpack_refuses_links_zip_bombs_and_archives_above_the_limits(
    archive, tmp_path, monkeypatch, limits, entries, message
):
    for name, most in limits.items():
        monkeypatch.setattr(source, name, most)
    with pytest.raises(SourceError, match=message):
        unpack(archive(*entries), tmp_path / "out")


ARCHIVE = bytes(range(256)) * 2000


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "site").mkdir()
    for name in ("CUAD_v1.zip", "more.zip"):
        (tmp_path / "site" / name).write_bytes(ARCHIVE)
    with serve(tmp_path / "site") as running:
        yield running


def info_of(site: Site, *names: str, sha256: str = hashlib.sha256(ARCHIVE).hexdigest()) -> DatasetInfo:
    files = tuple(Download(url=f"{site.url}/{name}", sha256=sha256, bytes=len(ARCHIVE)) for name in names)
    return dataclasses.replace(INFO, downloads=files)


def test_fetch_downloads_once_and_prints_licence_and_citation(site, capsys):
    info = info_of(site, "CUAD_v1.zip")
    path = fetch(info)
    assert path.read_bytes() == ARCHIVE and path.name == "CUAD_v1.zip"
    assert fetch(info) == path and site.asked == {"/CUAD_v1.zip": 1}
    notice = capsys.readouterr().err
    assert "CC BY 4.0" in notice and "Hendrycks" in notice and INFO.url in notice
    folder = fetch(info_of(site, "CUAD_v1.zip", "more.zip"))
    assert sorted(path.name for path in folder.iterdir()) == ["CUAD_v1.zip", "more.zip"]
    assert site.asked == {"/CUAD_v1.zip": 1, "/more.zip": 1}


@pytest.mark.parametrize(
    ("name", "sha256", "error", "message"),
    [
        ("rude/CUAD_v1.zip", "0" * 64, ServiceError, "run the command again"),
        ("CUAD_v1.zip", "0" * 64, SourceError, "expected 0000.*nothing was stored"),
    ],
)
def test_fetch_stores_no_file_when_the_connection_or_checksum_fails(site, name, sha256, error, message):
    with pytest.raises(error, match=message):
        fetch(info_of(site, name, sha256=sha256))
    assert not list(source.find_cache_folder().rglob("CUAD*"))


def test_fetch_continues_an_interrupted_download(site):
    info = info_of(site, "broken/CUAD_v1.zip")
    with pytest.raises(ServiceError, match="run the command again to resume it"):
        fetch(info)
    assert fetch(info).read_bytes() == ARCHIVE
    assert [path.name for path in source.find_cache_folder().rglob("CUAD*")] == ["CUAD_v1.zip"]


BENCHMARKS = ("cuad", "contractnli", "maud", "privacyqa", "cpr", "legalbenchrag", "acord")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_info_has_pinned_downloads_or_manual_instructions(name):
    info = import_module(f"exhibit.converters.{name}").INFO
    assert bool(info.downloads) != bool(info.by_hand)
    for file in info.downloads:
        assert file.url.startswith("https://") and re.fullmatch(r"[0-9a-f]{64}", file.sha256) and file.bytes > 1 << 20
    if not info.downloads:
        with pytest.raises(SourceError, match=re.escape(info.by_hand)):
            fetch(info)
