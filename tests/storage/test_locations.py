"""Remote files are listed, downloaded one by one, checked and deleted; errors name the URL."""

import hashlib
import pickle
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import read_document
from exhibit.schemas.errors import DocumentError
from exhibit.storage import locations
from exhibit.storage.bundle import sha256_of
from exhibit.storage.locations import (
    Remote,
    StorageError,
    expand,
    explain_store_errors,
    fetch_file,
    keep_recent_files,
    list_file,
    list_files,
    read_start,
)
from tests.storage.memory import memory, put

__all__ = ["memory"]

NAMES = st.text(min_size=1, max_size=40).filter(lambda name: "/" not in name and "\0" not in name)


@pytest.fixture
def download_folder(tmp_path, monkeypatch) -> Path:
    """The temporary folder for downloaded files."""
    folder = tmp_path / "passing"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def downloads(monkeypatch) -> list[str]:
    """The names of the downloaded files."""
    names: list[str] = []
    fetch = locations.fetch

    def noted(file, path):
        names.append(file.name)
        return fetch(file, path)

    monkeypatch.setattr(locations, "fetch", noted)
    return names


@given(NAMES)
def test_remote_path_with_special_characters_is_unchanged(name):
    file = Remote("s3://bucket/corpus/") / name
    assert file.name == name and file.suffix == Path(name).suffix and file.key == f"bucket/corpus/{name}"
    assert pickle.loads(pickle.dumps(file)) == file


def test_no_file_is_downloaded_by_list_files_list_file_or_read_start(memory, downloads):
    put(memory / "a/one.txt", b"123")
    put(memory / "a/deep/two.txt")
    assert list_files(memory / "a") == {"deep/two.txt": 5, "one.txt": 3}
    assert list_files(memory / "nothing") == {} and list_file(memory / "nothing") is None
    assert list_file(memory / "a") is None, "a folder is not a file"
    assert list_file(memory / "a/one.txt") == 3
    assert read_start(memory / "a/one.txt", 2) == b"12" and downloads == []


def test_expand_returns_sorted_folders_that_match_a_remote_wildcard(memory):
    for name in ("b/bundle.json", "a/bundle.json", ".hidden/bundle.json", "README.md"):
        put(memory / name)
    assert [root.url for root in expand(memory / "*")] == ["memory://bucket/folder/a", "memory://bucket/folder/b"]
    assert expand(memory / "none*") == [] and expand(memory) == [memory]


def test_fetch_file_removes_the_download_after_its_with_block(memory, download_folder, downloads):
    file = put(memory / "lease.txt", b"The rent is due.")
    with fetch_file(file) as path, fetch_file(file) as again:
        assert path == again and path.read_bytes() == b"The rent is due."
        assert sha256_of(file) == hashlib.sha256(b"The rent is due.").hexdigest()
    assert downloads == ["lease.txt"], "all readers share one download"
    assert list(download_folder.iterdir()) == []


def test_keep_recent_files_keeps_a_limited_number_of_files(memory, download_folder, downloads):
    files = [put(memory / f"{number}.txt") for number in range(5)]
    with keep_recent_files(files=2):
        for file in [*files, files[4], files[3], files[0]]:
            with fetch_file(file):
                assert len([path for path in download_folder.iterdir() if path.is_dir()]) <= 3
        assert len([path for path in download_folder.iterdir() if path.is_dir()]) == 2
    assert downloads == ["0.txt", "1.txt", "2.txt", "3.txt", "4.txt", "0.txt"] and list(download_folder.iterdir()) == []


def test_fetch_refuses_a_document_whose_checksum_differs_from_bundle_json(memory, download_folder):
    file = put(memory / "lease.txt", b"The rent is doubled.")
    recorded = Remote(file.url, hashlib.sha256(b"The rent is due.").hexdigest(), 16)
    with pytest.raises(
        DocumentError, match=r"^memory://bucket/folder/lease.txt: the content differs from the sha256 in bundle.json"
    ):
        read_document(recorded)
    assert sha256_of(recorded) == recorded.sha256 and list(download_folder.iterdir()) == []


def test_reader_error_names_the_url_instead_of_the_temporary_file(memory, download_folder):
    with pytest.raises(DocumentError) as caught:
        read_document(put(memory / "lease.pdf", b"no PDF"))
    assert str(caught.value).startswith("memory://bucket/folder/lease.pdf: not a PDF")
    assert str(download_folder) not in str(caught.value) and list(download_folder.iterdir()) == []
    with pytest.raises(DocumentError, match=r"none\.txt: no such file"):
        read_document(memory / "none.txt")
    assert list(download_folder.iterdir()) == []


class NoCredentialsError(Exception):
    """An error with the name that cloud clients use."""


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (FileNotFoundError("x"), "not found; is the bucket's name right?"),
        (PermissionError("Forbidden"), "access denied (Forbidden); use credentials that allow it: set AWS_"),
        (NoCredentialsError("Unable to locate"), "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (ConnectionResetError("reset by peer"), "reset by peer; check the address and the network, then run the same"),
        (OSError("at https://h/k?X-Amz-Signature=abc&b=c now"), "at https://h/k?… now; check"),
        (OSError("key AKIA-hush-hush of hush-hush"), "key *** of hush-hush; check"),
    ],
)
def test_store_error_is_a_single_line_with_the_url(raised, message, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "AKIA-hush-hush")
    with pytest.raises(StorageError) as caught, explain_store_errors("s3://bucket/x"):
        raise raised
    assert str(caught.value).startswith(f"s3://bucket/x: {message}")


def test_explain_store_errors_raises_a_programming_error_unchanged():
    with pytest.raises(TypeError), explain_store_errors("s3://bucket/x"):
        raise TypeError("a bug")


def test_url_with_password_is_refused_without_repeating_the_password():
    with pytest.raises(StorageError) as caught:
        list_files(Remote("s3://me:hush-hush@bucket/x"))
    assert "environment" in str(caught.value) and "hush" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["https", "nonesuch"])
def test_open_filesystem_refuses_an_unsupported_scheme(scheme):
    with pytest.raises(StorageError, match=f"{scheme}://.*use s3://, gs://, hf://"):
        locations.open_filesystem(scheme)
