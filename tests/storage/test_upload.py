"""A bundle in a store is whole or is none: bundle.json is last, and first to go."""

from __future__ import annotations

import json

import fsspec
import pytest

from exhibit.schemas.bundle import PARTIAL
from exhibit.schemas.errors import BundleError
from exhibit.storage.bundle import mirror_bundle
from exhibit.storage.locations import FileInfo, StorageError, list_files, parse_location
from exhibit.storage.upload import SentFile, check_out, open_output, send
from exhibit.storage.validate import validate_at as validate
from tests.hub.bundles import files_of, write
from tests.storage.memory import get, memory, put, upload

__all__ = ["memory"]


@pytest.fixture
def log(monkeypatch) -> list[str]:
    """What is done to the store, in order."""
    done: list[str] = []
    client = type(fsspec.filesystem("memory"))
    put_file, rm_file = client.put_file, client._rm

    def putting(self, source, target, *rest, **options):
        done.append(f"put {target.rpartition('/')[2]}")
        return put_file(self, source, target, *rest, **options)

    def removing(self, path):
        done.append(f"rm {path.rpartition('/')[2]}")
        return rm_file(self, path)

    monkeypatch.setattr(client, "put_file", putting)
    monkeypatch.setattr(client, "rm_file", removing)
    monkeypatch.setattr(client, "_rm", rm_file)
    return done


def fill(folder, *names):
    """Write a bundle as a converter would."""
    folder.rmdir()
    write(folder, names=names)


def there(remote):
    return {name: get(remote / name) for name in list_files(remote)}


def test_a_bundle_arrives_byte_for_byte_and_bundle_json_is_last(memory, tmp_path, log):
    expected = files_of(write(tmp_path / "local", names=("aurora.txt", "borealis.txt")))
    with open_output(memory, force=False) as out:
        fill(out.folder, "aurora.txt", "borealis.txt")
        out.send(out.folder / "corpus" / "aurora.txt")
        assert not (out.folder / "corpus" / "aurora.txt").exists(), "it has left this machine"
        assert out.file("corpus/aurora.txt").sha256 == out.entries["corpus/aurora.txt"].sha256
        assert out.file("corpus/borealis.txt") == out.folder / "corpus" / "borealis.txt"
    assert there(memory) == expected and validate(memory) == []
    assert log[-2:] == ["put bundle.json", f"rm {PARTIAL}"] and log.count("put aurora.txt") == 1
    assert not list((tmp_path / "cache" / "outgoing").iterdir()), "nothing stays here"


def test_a_path_and_a_file_url_are_placed_as_ever(tmp_path):
    for out in (tmp_path / "plain", parse_location(f"file://{tmp_path}/url")):
        check_out(out, force=False)
        with open_output(out, force=False) as target:
            fill(target.folder, "aurora.txt")
            target.send(target.folder / "corpus" / "aurora.txt")
        assert validate(out) == []
        with pytest.raises(BundleError, match="exists already"):
            check_out(out, force=False)


def test_nothing_is_replaced_without_force_and_nothing_else_with_it(memory, tmp_path):
    upload(write(tmp_path / "local"), memory)
    before = there(memory)
    for attempt in (lambda: check_out(memory, force=False), lambda: open_output(memory, force=False).__enter__()):
        with pytest.raises(BundleError, match="exists already; add --force"):
            attempt()
    put(parse_location("memory://bucket/other/thesis.txt"))
    with pytest.raises(BundleError, match="something else than a bundle and will not be replaced"):
        check_out(parse_location("memory://bucket/other"), force=True)
    with pytest.raises(BundleError, match="exhibit publish"):
        check_out(parse_location("hf://datasets/me/x"), force=True)
    assert there(memory) == before


def test_replacing_leaves_nothing_of_the_old_bundle(memory, tmp_path, log):
    upload(write(tmp_path / "old", names=("old.txt", "aurora.txt")), memory)
    with open_output(memory, force=True) as out:
        with pytest.raises(BundleError, match="not finished"):
            mirror_bundle(memory)  # from the first change on, there is no bundle
        fill(out.folder, "aurora.txt")
    assert log[0] == "rm bundle.json" and "rm old.txt" in log and log.index("rm old.txt") < log.index("put bundle.json")
    assert there(memory) == files_of(write(tmp_path / "new", names=("aurora.txt",)))


def test_a_run_that_fails_leaves_no_bundle_and_the_next_one_goes_on(memory, tmp_path, log):
    with pytest.raises(KeyboardInterrupt), open_output(memory, force=False) as out:
        fill(out.folder, "aurora.txt", "stray.txt")
        out.send(out.folder / "corpus" / "aurora.txt")
        out.send(out.folder / "corpus" / "stray.txt")
        raise KeyboardInterrupt
    assert sorted(list_files(memory)) == [PARTIAL, "corpus/aurora.txt", "corpus/stray.txt"]
    log.clear()
    with open_output(memory, force=False) as out:  # no --force: what is there is known for ours
        fill(out.folder, "aurora.txt", "borealis.txt")
    assert "put aurora.txt" not in log and "put borealis.txt" in log and "rm stray.txt" in log
    assert there(memory) == files_of(write(tmp_path / "local", names=("aurora.txt", "borealis.txt")))


def test_what_was_changed_in_the_store_meanwhile_is_sent_again(memory, log):
    with pytest.raises(KeyboardInterrupt), open_output(memory, force=False) as out:
        fill(out.folder, "aurora.txt")
        out.send(out.folder / "corpus" / "aurora.txt")
        raise KeyboardInterrupt
    put(memory / "corpus/aurora.txt", b"x" * len(get(memory / "corpus/aurora.txt")))
    with open_output(memory, force=False) as out:
        fill(out.folder, "aurora.txt")
    assert log.count("put aurora.txt") == 2 and validate(memory) == []


def test_a_journal_that_a_kill_cut_off_is_read_as_far_as_it_goes(memory, tmp_path, log):
    with pytest.raises(KeyboardInterrupt), open_output(memory, force=False) as out:
        fill(out.folder, "aurora.txt")
        out.send(out.folder / "corpus" / "aurora.txt")
        raise KeyboardInterrupt
    [journal] = (tmp_path / "cache" / "outgoing").rglob("sent.jsonl")
    cut = json.dumps(["corpus/b.txt", "ab"])[:-4]
    journal.write_text(f"{cut}\n{journal.read_text()}{cut}")  # and by an earlier one
    with open_output(memory, force=False) as out:
        fill(out.folder, "aurora.txt")
    assert log.count("put aurora.txt") == 1 and validate(memory) == []


def test_two_runs_at_once_never_mix(memory):
    with (
        pytest.raises(BundleError, match="another run is writing it now"),
        open_output(memory, force=False),
        open_output(memory, force=False),
    ):
        pass
    # from another machine no lock is seen
    with (
        pytest.raises(StorageError, match="another run writes to the same place"),
        open_output(memory, force=False) as o,
    ):
        fill(o.folder, "aurora.txt")
        put(memory / PARTIAL, b"somebody else's")
    assert "bundle.json" not in list_files(memory)
    with pytest.raises(StorageError, match="aurora.txt is not what was sent"), open_output(memory, force=False) as o:
        fill(o.folder, "aurora.txt")
        o.send(o.folder / "corpus" / "aurora.txt")
        put(memory / "corpus/aurora.txt", b"somebody else's")
    assert "bundle.json" not in list_files(memory)


def test_a_store_that_gives_no_mark_is_sent_everything_again(memory, tmp_path):
    """Without a mark nobody can tell whether a file of the same size is still the one that was sent."""
    with open_output(memory, force=False) as out:
        out.record("corpus/aurora.txt", SentFile("0" * 64, 5, ""))
        out.record("corpus/borealis.txt", SentFile("1" * 64, 5, "mark"))
        out.recall({"corpus/aurora.txt": FileInfo(5, ""), "corpus/borealis.txt": FileInfo(5, "mark")})
        assert list(out.known) == ["corpus/borealis.txt"]
        fill(out.folder, "aurora.txt")
        out.sent.clear()


def test_a_file_that_did_not_arrive_whole_is_told_and_one_that_is_there_is_not_sent(memory, tmp_path, log, monkeypatch):
    path, to = tmp_path / "a.txt", parse_location("memory://box/a.txt")
    path.write_bytes(b"four")
    first = send(path, to)
    assert (first.bytes, get(to)) == (4, b"four") and log == ["put a.txt"]
    assert send(path, to, first) is first and log == ["put a.txt"]
    path.write_bytes(b"five!")
    assert send(path, to, first).bytes == 5 and len(log) == 2
    for listed in (None, FileInfo(4, "")):
        monkeypatch.setattr("exhibit.storage.upload.list_file", lambda remote, listed=listed: listed)
        with pytest.raises(StorageError, match=r"a\.txt: the upload is incomplete; run the same command again"):
            send(path, to)
