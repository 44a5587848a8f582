"""Real object stores: two S3 servers, the Google emulator, a network with faults, and a hundred thousand keys."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from exhibit.engine import shutdown_idle
from exhibit.storage.bundle import validate_at as validate
from exhibit.storage.locations import Remote, fetch, list_files
from tests.hub.bundles import files_of
from tests.object_stores import KEY, SECRET, Proxy, Request, google, moto, rclone
from tests.storage.memory import upload
from tests.test_remote import convert, evaluate, read_remote

pytestmark = [pytest.mark.extra, pytest.mark.server]


def set_s3_environment(address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment so that S3 clients use this address."""
    variables = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    # rclone sends the whole object's checksum with a part of the object, and newer clients would compare it
    variables |= {"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}
    variables |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    variables |= {"AWS_CONFIG_FILE": str(folder / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none")}
    for name, value in (variables | {"EXHIBIT_CACHE": str(folder / "cache")}).items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    shutdown_idle()  # idle workers have clients of the previous server


@pytest.fixture(scope="module", params=[moto, rclone], ids=["moto", "rclone"])
def server(request, tmp_path_factory) -> Iterator[str]:
    with request.param(tmp_path_factory.mktemp("s3")) as address:
        yield address


@pytest.fixture
def proxy(server, tmp_path, monkeypatch) -> Iterator[Proxy]:
    """A proxy in front of the server; all S3 requests go through it."""
    proxy = Proxy(server)
    with proxy.run() as address:
        set_s3_environment(address, tmp_path, monkeypatch)
        yield proxy
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture
def s3(proxy) -> Remote:
    """A separate bucket for each test."""
    bucket = f"bucket-{os.urandom(6).hex()}"
    fsspec.filesystem("s3").mkdir(bucket)
    return Remote(f"s3://{bucket}/bundles")


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "lb"
    convert("legalbenchrag", folder, "--max-documents", "4")  # its names have spaces, %20, colons and bars
    return folder


def test_s3_bundle_files_and_metrics_equal_local_bundle(s3, local, tmp_path, monkeypatch, capsys):
    upload(local, s3 / "lb")
    assert read_remote(s3 / "lb") == files_of(local) and validate(s3 / "lb") == []
    flags = ["--report-cases", "0", "--jobs", "1", "--dataset-paths"]
    here = evaluate(tmp_path, monkeypatch, "local", *flags, str(local))
    assert evaluate(tmp_path, monkeypatch, "s3", *flags, f"{s3}/*") == here
    assert SECRET not in "".join(capsys.readouterr())


def test_s3_evaluation_with_wrong_secret_reports_access_denied_without_secret(tmp_path, monkeypatch, capsys):
    with rclone(tmp_path) as address:  # moto accepts any secret
        set_s3_environment(address, tmp_path, monkeypatch)
        fsspec.filesystem("s3").mkdir("bucket")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-of-nobody")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        evaluate(tmp_path, monkeypatch, "r", "--dataset-paths", "s3://bucket/lb", expect=1)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    output = capsys.readouterr().err
    assert "access denied" in output and "use credentials that allow it" in output and "secret-of-nobody" not in output


def test_fetch_retries_when_s3_reply_is_cut_off(s3, proxy, local, tmp_path):
    upload(local, s3 / "lb")
    [name, *_] = [name for name in list_files(s3 / "lb") if name.startswith("corpus/")]
    cut: list[Request] = []

    def first(request: Request) -> str | None:
        if request.method == "GET" and "corpus/" in request.path and "list-type" not in request.path and not cut:
            cut.append(request)
            return "cut"
        return None

    proxy.fault = first
    digest = fetch(s3 / "lb" / name, tmp_path / "file")
    assert cut and digest == hashlib.sha256((local / name).read_bytes()).hexdigest()


def test_google_cloud_storage_bundle_files_and_metrics_equal_local_bundle(local, tmp_path, monkeypatch):
    with google(tmp_path) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        fsspec.get_filesystem_class("gs").clear_instance_cache()
        out = Remote("gs://bucket/bundles/lb")
        upload(local, out)
        assert read_remote(out) == files_of(local) and validate(out) == []
        flags = ["--report-cases", "0", "--jobs", "1", "--dataset-paths"]
        here = evaluate(tmp_path, monkeypatch, "local", *flags, str(local))
        assert evaluate(tmp_path, monkeypatch, "gs", *flags, "gs://bucket/bundles/*") == here
    fsspec.get_filesystem_class("gs").clear_instance_cache()
