"""An attacker's repositories at hf://, read by the real client: no file is written outside the folder.

Nothing else is read, and nothing is run.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhibit.hub import publish, pull
from exhibit.schemas.bundle import INFO
from tests.hub.bundles import files_of, large, write
from tests.hub.client import connect
from tests.hub.test_pull import evaluated

REPO = "evil/charters"
PLAN = "corpus/plan.pdf"
OUTSIDE = "outside.txt"


@pytest.fixture
def bundle(hub, tmp_path, monkeypatch):
    """A bundle that an attacker published."""
    connect(hub, tmp_path / "home", monkeypatch, token=hub.token("evil"))
    folder = write(tmp_path / "charters", more={PLAN: large("plan")})
    assert publish.main([str(folder), "--repo-id", REPO]) == 0
    return folder


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


def pulled(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, expect: int) -> str:
    out = tmp_path / "deep" / "er" / "back"
    out.parent.mkdir(parents=True, exist_ok=True)
    assert pull.main([REPO, "--out", str(out)]) == expect
    told = capsys.readouterr()
    assert "Traceback" not in told.err
    assert out.exists() == (expect == 0) and not list(out.parent.glob("*.partial"))
    return told.err


@pytest.mark.parametrize(
    "name",
    [f"../{OUTSIDE}", f"corpus/../../../{OUTSIDE}", f"/{OUTSIDE}", f"corpus/..\\..\\{OUTSIDE}", f"C:\\{OUTSIDE}"],
)
def test_a_repository_whose_files_lead_outside_places_none_there(hub, bundle, tmp_path, capsys, name):
    before = written(tmp_path)
    hub.commit(REPO, {name: b"owned"})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) in (0, 1)
    told = capsys.readouterr().err
    assert "Traceback" not in told
    new = [path for path in tmp_path.rglob(f"*{OUTSIDE}") if not path.is_relative_to(tmp_path / "home")]
    assert new == [] and not Path(f"/{OUTSIDE}").exists()
    cached = list((tmp_path / "home").rglob(f"*{OUTSIDE}"))
    assert all(path.is_relative_to(tmp_path / "home" / "hub") for path in cached)
    assert before <= written(tmp_path)


def test_a_repository_s_other_files_are_not_taken_and_not_asked_about(hub, bundle, tmp_path, capsys, monkeypatch):
    local = evaluated(tmp_path, monkeypatch, bundle, "local")
    evil = {"setup.py": b"raise SystemExit('ran')", "charters.py": b"raise SystemExit('ran')", ".env": b"A=1"}
    hub.commit(REPO, {**evil, "corpus/aaa stray.txt": b"This Charter is governed by the law of Nowhere."})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(bundle)
    assert evaluated(tmp_path, monkeypatch, f"hf://{REPO}", "remote") == local


@pytest.mark.parametrize("size", [0, 100, 10_000_000])
def test_a_file_that_is_not_as_long_as_was_said_is_refused(hub, bundle, tmp_path, capsys, size):
    hub.fault("GET", "^/store/", status=200, body=bytes(size), headers={"Content-Length": str(size)}, times=None)
    assert "its files cannot be downloaded: Consistency check failed" in pulled(tmp_path, capsys, expect=1)


def test_a_size_in_bundle_json_that_lies_is_refused(hub, bundle, tmp_path, capsys):
    told = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    told["files"][PLAN]["bytes"] = 7
    hub.commit(REPO, {INFO: json.dumps(told).encode()})
    assert PLAN in pulled(tmp_path, capsys, expect=1)


@pytest.mark.parametrize("name", [".git/config", "corpus/.git/hooks/post-checkout", "../charters.txt", "~/.netrc", ""])
def test_a_bundle_json_that_names_other_files_is_refused_or_finds_none(hub, bundle, tmp_path, capsys, name):
    told = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    told["files"][name] = {"sha256": "0" * 64, "bytes": 1}
    hub.commit(REPO, {INFO: json.dumps(told).encode()})
    pulled(tmp_path, capsys, expect=1)


@pytest.mark.parametrize("name", ["ETag", "X-Linked-Etag", "X-Repo-Commit"])
def test_names_in_headers_are_no_paths(hub, bundle, tmp_path, capsys, name):
    """An attacker's server sends these headers, from which the client makes its file names."""
    hub.fault("HEAD", f"/resolve/.*{Path(PLAN).name}", status=200, headers={name: f'"../../../{OUTSIDE}"'}, times=None)
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
    assert not list(tmp_path.rglob(OUTSIDE))


def test_a_link_in_the_cache_to_a_private_file_shows_nothing(hub, bundle, tmp_path, capsys):
    private = tmp_path / "private.txt"
    private.write_text("the private key of this machine", encoding="utf-8")
    hub.commit(REPO, {"corpus/link.txt": str(private).encode()})  # as git keeps a link: a file of a path
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert not any(path.is_symlink() for path in (tmp_path / "back").rglob("*"))
    assert files_of(tmp_path / "back") == files_of(bundle)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"files": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"{}", b"null"])
def test_a_bundle_json_made_to_hurt_is_one_error(hub, bundle, tmp_path, capsys, data):
    hub.commit(REPO, {INFO: data})
    assert f"{REPO} is not a bundle" in pulled(tmp_path, capsys, expect=1)
