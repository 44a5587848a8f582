"""A remote bundle: its small files come into the cache, its documents stay; nothing unfinished is read."""

from __future__ import annotations

import pytest

from exhibit.schemas.bundle import ORIGIN
from exhibit.schemas.errors import BundleError
from exhibit.storage import bundle as mirror
from exhibit.storage.bundle import list_corpus_files, mirror_bundle, open_bundle
from exhibit.storage.locations import Remote, origin_of
from exhibit.storage.validate import main
from exhibit.storage.validate import validate_at as validate
from tests.hub.bundles import write
from tests.storage.memory import get, memory, put, upload

__all__ = ["memory"]

NAMES = ("aurora.txt", "borealis.txt")


@pytest.fixture
def bundle(memory, tmp_path) -> Remote:
    return upload(write(tmp_path / "charters", names=NAMES), memory / "charters")


def test_a_path_is_its_own_mirror(tmp_path):
    assert mirror_bundle(tmp_path) == tmp_path and origin_of(tmp_path) is None


def test_only_small_files_come_here(bundle, tmp_path):
    folder = mirror_bundle(bundle)
    assert sorted(path.name for path in folder.iterdir()) == [ORIGIN, "bundle.json", "gold.jsonl", "train.json"]
    assert list((tmp_path / "cache" / "bundles").iterdir()) == [folder], "nothing half-done is left"
    assert origin_of(folder) == bundle
    opened, local = open_bundle(folder), open_bundle(tmp_path / "charters")
    assert (opened.questions, opened.gold, opened.info) == (local.questions, local.gold, local.info)
    assert opened.address == str(bundle)
    for name, file in list_corpus_files(folder).items():
        entry = local.info.files[f"corpus/{name}"]
        assert file == Remote(f"{bundle}/corpus/{name}", entry.sha256, entry.bytes)


def test_what_did_not_change_is_not_fetched_again(bundle, monkeypatch):
    fetched: list[str] = []
    fetch = mirror.fetch
    monkeypatch.setattr(mirror, "fetch", lambda file, path: fetched.append(file.name) or fetch(file, path))
    folder = mirror_bundle(bundle)
    assert mirror_bundle(bundle) == folder and fetched == ["bundle.json", "train.json", "gold.jsonl", "bundle.json"]
    (folder / "train.json").write_text("[]")  # damaged in the cache
    assert mirror_bundle(bundle) == folder and (folder / "train.json").read_bytes() == get(bundle / "train.json")


def test_a_changed_bundle_has_another_mirror(bundle, tmp_path):
    before = mirror_bundle(bundle)
    upload(write(tmp_path / "new", names=("cygnus.txt",)), bundle)
    after = mirror_bundle(bundle)
    assert (
        after != before
        and set(list_corpus_files(after)) == {"cygnus.txt"}
        and set(list_corpus_files(before)) == set(NAMES)
    )


def test_a_folder_without_bundle_json_is_refused(memory):
    put(memory / "half/corpus/aurora.txt")
    with pytest.raises(BundleError, match=r"half: no bundle.json there; it is written last"):
        mirror_bundle(memory / "half")


def test_questions_that_are_not_the_recorded_ones_are_refused(bundle, tmp_path):
    put(bundle / "train.json", b"[]")
    with pytest.raises(BundleError, match=r"train.json: the content differs from the sha256 in bundle.json"):
        mirror_bundle(bundle)
    assert list((tmp_path / "cache" / "bundles").iterdir()) == [], "nothing half-done is left"


def test_a_remote_bundle_is_checked_to_the_last_byte(bundle, capsys):
    assert validate(bundle) == [] and main([str(bundle), "--minimal"]) == 0
    put(bundle / "corpus/aurora.txt", b"something else")
    put(bundle / "corpus/stray.txt")
    assert [str(problem) for problem in validate(bundle)] == [
        "bundle.json: files: corpus/aurora.txt: the content differs from the recorded size or sha256",
        "bundle.json: files: corpus/stray.txt: in the bundle, but not recorded",
    ]
    assert main([str(bundle)]) == 1 and f"{bundle}: 2 problems" in capsys.readouterr().out
    assert main(["memory://bucket/none"]) == 1 and "no bundle.json there" in capsys.readouterr().err
