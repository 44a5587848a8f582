"""Real object stores: two S3 servers, the Google emulator, a network with faults, and a hundred thousand keys."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import fsspec
import pytest

from exhibit.engine import shutdown_idle
from exhibit.storage.locations import Remote, StorageError, fetch, list_files
from exhibit.storage.validate import validate_at as validate
from tests.hub.bundles import files_of
from tests.object_stores import KEY, SECRET, Fault, Proxy, Request, google, moto, rclone
from tests.storage.memory import upload
from tests.test_remote import convert, evaluate, there

pytestmark = [pytest.mark.extra, pytest.mark.server]

KEYS = 100_000


def use(address: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the environment so that S3 clients use this address."""
    told = {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    # rclone sends the checksum of the whole object with a part of it, which newer clients would compare
    told |= {"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}
    told |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    told |= {"AWS_CONFIG_FILE": str(folder / "none"), "AWS_SHARED_CREDENTIALS_FILE": str(folder / "none")}
    for name, value in (told | {"EXHIBIT_CACHE": str(folder / "cache")}).items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    shutdown_idle()  # workers that rest have clients of the server before


@pytest.fixture(scope="module", params=[moto, rclone], ids=["moto", "rclone"])
def server(request, tmp_path_factory) -> Iterator[str]:
    with request.param(tmp_path_factory.mktemp("s3")) as address:
        yield address


@pytest.fixture
def proxy(server, tmp_path, monkeypatch) -> Iterator[Proxy]:
    """A proxy in front of the server; all S3 requests go through it."""
    proxy = Proxy(server)
    use(proxy.address, tmp_path, monkeypatch)
    yield proxy
    proxy.stop()
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture
def s3(proxy) -> Remote:
    """A bucket of its own for each test."""
    bucket = f"bucket-{os.urandom(6).hex()}"
    fsspec.filesystem("s3").mkdir(bucket)
    return Remote(f"s3://{bucket}/bundles")


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "lb"
    convert("legalbenchrag", folder, "--max-documents", "4")  # its names have spaces, %20, colons and bars
    return folder


# ---------------------------------------------------------------- a store that works


def test_bundle_and_metrics_are_the_same_on_each_server(s3, local, tmp_path, monkeypatch, capsys):
    upload(local, s3 / "lb")
    assert there(s3 / "lb") == files_of(local) and validate(s3 / "lb") == []
    flags = ["--report-cases", "0", "--jobs", "1", "--dataset-paths"]
    here = evaluate(tmp_path, monkeypatch, "local", *flags, str(local))
    assert evaluate(tmp_path, monkeypatch, "s3", *flags, f"{s3}/*") == here
    assert SECRET not in "".join(capsys.readouterr())


def test_a_wrong_secret_is_told_without_it(tmp_path, monkeypatch, capsys):
    with rclone(tmp_path) as address:  # moto takes any secret
        use(address, tmp_path, monkeypatch)
        fsspec.filesystem("s3").mkdir("bucket")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-of-nobody")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        evaluate(tmp_path, monkeypatch, "r", "--dataset-paths", "s3://bucket/lb", expect=1)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    told = capsys.readouterr().err
    assert "access denied" in told and "do these credentials allow it?" in told and "secret-of-nobody" not in told


# ---------------------------------------------------------------- a network that does not


def every(step: int, fault: str, *, method: str = "") -> Fault:
    """Return a rule that applies a fault to every `step`-th request, optionally only for one method."""
    return lambda request: fault if request.number % step == 0 and method in ("", request.method) else None


@pytest.mark.parametrize("fault", ["500", "slow down", "drop", "delay"])
def test_faults_that_pass_change_nothing(s3, proxy, local, fault):
    proxy.fault = every(7, fault)
    upload(local, s3 / "lb")
    assert there(s3 / "lb") == files_of(local)
    assert len(proxy.faults) > 3


def test_an_answer_that_is_cut_off_is_asked_for_again(s3, proxy, local, tmp_path):
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


def test_a_store_that_fails_for_good_is_a_line_and_no_document_is_blamed(
    s3, proxy, local, tmp_path, monkeypatch, capsys
):
    upload(local, s3 / "lb")
    [name, *_] = [name for name in list_files(s3 / "lb") if name.startswith("corpus/")]
    for fault in ("500", "cut", "drop"):
        proxy.fault = lambda request, fault=fault: fault if request.method == "GET" else None
        with pytest.raises(StorageError, match="run the same command again"):
            fetch(Remote((s3 / "lb" / name).url, "0" * 64), tmp_path / "file")
    proxy.fault = every(1, "500", method="GET")
    capsys.readouterr()
    evaluate(tmp_path, monkeypatch, "away", "--dataset-paths", str(s3 / "lb"), expect=1)
    told = capsys.readouterr().err
    assert "run the same command again" in told and SECRET not in told and "Traceback" not in told
    proxy.fault = lambda request: None
    assert validate(s3 / "lb") == []


# ---------------------------------------------------------------- many keys


class Listing(BaseHTTPRequestHandler):
    """Answers ListObjectsV2 for a bucket of many keys, a thousand at a time, as S3 does."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        start = int(asked.get("continuation-token", ["0"])[0])
        end = min(start + 1000, KEYS)
        rows = "".join(
            f"<Contents><Key>many/corpus/{n:06}.txt</Key><Size>{n}</Size><ETag>&quot;{n:x}&quot;</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><StorageClass>STANDARD</StorageClass></Contents>"
            for n in range(start, end)
        )
        more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < KEYS else ""
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>bucket</Name><Prefix>many/</Prefix><KeyCount>{end - start}</KeyCount><MaxKeys>1000</MaxKeys>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>{more}{rows}</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_hundred_thousand_keys_are_listed_page_by_page(tmp_path, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    proxy = Proxy(f"http://127.0.0.1:{server.server_port}")
    proxy.fault = every(30, "slow down")
    use(proxy.address, tmp_path, monkeypatch)
    found = list_files(Remote("s3://bucket/many"))
    assert len(found) == KEYS and list(found)[:: KEYS - 1] == ["corpus/000000.txt", f"corpus/{KEYS - 1:06}.txt"]
    assert found["corpus/004242.txt"] == (4242, f"{4242:x}")
    assert len(proxy.requests) == KEYS // 1000 + len(proxy.faults) and proxy.faults
    proxy.stop()
    server.shutdown()
    fsspec.get_filesystem_class("s3").clear_instance_cache()


def test_a_hundred_thousand_keys_are_listed_by_a_server_of_its_own(tmp_path, monkeypatch):
    corpus = tmp_path / "served" / "bucket" / "many" / "corpus"
    with rclone(tmp_path) as address:
        corpus.mkdir(parents=True)
        for number in range(KEYS):
            (corpus / f"{number:06}.txt").touch()
        (corpus / "004242.txt").write_bytes(b"The rent is 5.")
        use(address, tmp_path, monkeypatch)
        found = list_files(Remote("s3://bucket/many"))
    assert list(found) == [f"corpus/{number:06}.txt" for number in range(KEYS)]
    assert found["corpus/004242.txt"].bytes == 14 and found["corpus/004241.txt"].bytes == 0
    fsspec.get_filesystem_class("s3").clear_instance_cache()


# ---------------------------------------------------------------- Google's


def test_on_google_cloud_storage_bundle_and_metrics_are_the_same(local, tmp_path, monkeypatch):
    with google(tmp_path) as address:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        fsspec.get_filesystem_class("gs").clear_instance_cache()
        out = Remote("gs://bucket/bundles/lb")
        upload(local, out)
        assert there(out) == files_of(local) and validate(out) == []
        flags = ["--report-cases", "0", "--jobs", "1", "--dataset-paths"]
        here = evaluate(tmp_path, monkeypatch, "local", *flags, str(local))
        assert evaluate(tmp_path, monkeypatch, "gs", *flags, "gs://bucket/bundles/*") == here
    fsspec.get_filesystem_class("gs").clear_instance_cache()
