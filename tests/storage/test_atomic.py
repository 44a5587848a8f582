"""A bundle appears whole or not at all, and never over something else."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from exhibit.converters.steps import build
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.validate import validate
from exhibit.storage import atomic
from exhibit.storage.atomic import (
    LINK,
    NO_FILE,
    NOWHERE,
    find_unfinished_folder,
    list_files,
    list_left_out,
    lock_folder,
    make_scratch_folder,
    replace_file,
    replace_folder,
    write_whole,
)
from exhibit.storage.removal import refuse_links, remove_below

ROOT = Path(__file__).parents[2]


def bundle(folder: Path, word: str) -> Path:
    (folder / "corpus").mkdir(parents=True)
    (folder / "train.json").write_text(word)
    return folder


def test_a_new_folder_and_an_empty_one_are_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty", "deep/er"):
        with replace_folder(tmp_path / name, force=False) as folder:
            bundle(folder, "new")
        assert (tmp_path / name / "train.json").read_text() == "new"
    assert not list(tmp_path.rglob("*.partial"))


def test_nothing_is_overwritten_without_force(tmp_path):
    old = bundle(tmp_path / "out", "old")
    with pytest.raises(BundleError, match="add --force"), replace_folder(old, force=False):
        pytest.fail("must not begin")
    assert (old / "train.json").read_text() == "old"


@pytest.mark.parametrize("exchange", [True, False])
def test_force_replaces_a_bundle_in_one_step(tmp_path, monkeypatch, exchange):
    if not exchange:  # a file system that cannot swap two folders
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    elif sys.platform == "linux":  # which never leaves the place empty, as a rename away and another to it would
        monkeypatch.setattr(Path, "replace", lambda *paths: pytest.fail(f"two steps: {paths}"))
    old = bundle(tmp_path / "out", "old")
    with replace_folder(old, force=True) as folder:
        bundle(folder, "new")
        assert (old / "train.json").read_text() == "old"
    assert (old / "train.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(sys.platform != "linux", reason="which file a descriptor is of is known of Linux alone")
@pytest.mark.parametrize("there", [True, False])
def test_every_file_is_on_the_disk_before_the_folder_has_its_name(tmp_path, monkeypatch, there):
    """Checks the state after a power failure: which files were flushed before the folder was renamed."""
    steps: list[str] = []
    swap, rename = atomic._exchange, Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: steps.append(str(Path(f"/proc/self/fd/{number}").readlink())))
    monkeypatch.setattr(atomic, "_exchange", lambda *paths: bool(steps.append("named")) or swap(*paths))
    monkeypatch.setattr(Path, "replace", lambda self, to: steps.append("named") or rename(self, to))
    out = bundle(tmp_path / "out", "old") if there else tmp_path / "out"
    with replace_folder(out, force=True) as folder:
        bundle(folder, "new")
        (folder / "corpus" / "a.txt").write_text("Rent is due.", encoding="utf-8")
    at = steps.index("named")
    partial = steps[at - 1]
    assert partial.startswith(str(tmp_path / ".out.")) and partial.endswith(".partial")
    assert set(steps[:at]) == {partial, *(f"{partial}/{name}" for name in ("train.json", "corpus", "corpus/a.txt"))}
    assert steps[-1] == str(tmp_path)


def test_the_old_bundle_is_back_where_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    old, replace = bundle(tmp_path / "out", "old"), Path.replace

    def failing(self, target):
        if self.name.endswith(".partial"):
            raise OSError(errno.EIO, "the disk fails")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    with (
        pytest.raises(BundleError, match="the disk fails; the existing files are unchanged"),
        replace_folder(old, force=True) as folder,
    ):
        bundle(folder, "new")
    assert (old / "train.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_force_never_replaces_what_is_not_a_bundle(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.doc").touch()
    with (
        pytest.raises(BundleError, match="does not contain a bundle"),
        replace_folder(tmp_path / "home", force=True),
    ):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match="is not a folder"), replace_folder(tmp_path / "file", force=True):
        pass


def test_an_error_leaves_the_old_bundle_and_no_rest(tmp_path):
    old = bundle(tmp_path / "out", "old")
    with pytest.raises(ZeroDivisionError), replace_folder(old, force=True) as folder:
        bundle(folder, "new")
        raise ZeroDivisionError
    assert (old / "train.json").read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_run_left_is_cleared(tmp_path):
    left = killed_while_writing(tmp_path / "out")
    assert left is not None and (left / "junk").is_file()
    with replace_folder(tmp_path / "out", force=False) as folder:
        assert list(folder.iterdir()) == []
        bundle(folder, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def killed_while_writing(out: Path, *names: str) -> Path | None:
    """Run a process that is killed while it writes the folder that becomes `out`; return what it leaves, or None."""
    code = f"""
import os, signal
from pathlib import Path
from exhibit.storage.atomic import replace_folder
with replace_folder(Path({str(out)!r}), force=False) as folder:
    for name in {names or ("junk",)!r}:
        (folder / name).write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    return find_unfinished_folder(out)


@pytest.mark.parametrize("name", ["out.partial", ".out.0123456789abcdef.partial", ".out.partial", "out.old"])
@pytest.mark.parametrize("linked", [True, False])
def test_a_folder_that_somebody_prepared_under_any_of_our_names_is_left_as_it_is(tmp_path, name, linked):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.doc").touch()
    parent = tmp_path / "received"
    parent.mkdir()
    if linked:
        (parent / name).symlink_to(home)
    else:
        (parent / name).mkdir()
        (parent / name / "theirs.txt").touch()
    for _ in range(2):
        with replace_folder(parent / "out", force=True) as folder:
            bundle(folder, "new")
    assert (home / "thesis.doc").is_file() and sorted(path.name for path in parent.iterdir()) == sorted([name, "out"])
    assert linked or (parent / name / "theirs.txt").is_file()


@pytest.mark.parametrize("exchange", [True, False])
def test_nothing_is_removed_where_the_folder_was_replaced_by_a_link_meanwhile(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    home = tmp_path / "home"
    bundle(home, "mine")
    old = bundle(tmp_path / "out", "old")
    with pytest.raises(KeyError), replace_folder(old, force=True) as folder:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(home)
        raise KeyError
    assert (home / "train.json").read_text() == "mine" and (tmp_path / "moved").is_dir()


def test_a_prepared_lock_that_is_a_link_is_neither_followed_nor_emptied(tmp_path):
    (tmp_path / "profile").write_text("export A=1")
    (tmp_path / ".out.partial.lock").symlink_to(tmp_path / "profile")
    with pytest.raises(BundleError, match="cannot be written"), replace_folder(tmp_path / "out", force=False):
        pytest.fail("must not begin")
    assert (tmp_path / "profile").read_text() == "export A=1"


def test_without_a_cache_a_folder_is_still_placed(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "file" / "cache"))
    with replace_folder(tmp_path / "out", force=False) as folder:
        bundle(folder, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


def test_a_name_of_any_length_has_room_for_what_is_beside_it(tmp_path):
    for name in ("n" * 255, "ß" * 127, "法" * 85):
        write_whole(tmp_path / name, "x")
        assert (tmp_path / name).read_text(encoding="utf-8") == "x"
        (tmp_path / name).unlink()
        with replace_folder(tmp_path / name, force=False) as folder:
            assert find_unfinished_folder(tmp_path / name) == folder
            bundle(folder, "new")
    assert len(list(tmp_path.iterdir())) == 3


def test_what_is_removed_below_a_folder_is_reached_through_no_link(tmp_path):
    home, folder = tmp_path / "home", tmp_path / "index"
    for name in (home, folder):
        (name / "deep").mkdir(parents=True)
        (name / "deep" / "a.txt").touch()
    (folder / "link").symlink_to(home)
    remove_below(folder, "link/deep")
    assert (home / "deep" / "a.txt").is_file()
    remove_below(folder, "link")
    remove_below(folder, "deep/a.txt")
    remove_below(folder, "deep/gone.txt")
    assert [path.name for path in folder.rglob("*")] == ["deep"] and (home / "deep" / "a.txt").is_file()
    with pytest.raises(BundleError, match=r"deep/link: is a link"):
        (folder / "deep" / "link").symlink_to(home)
        refuse_links(folder)


def test_two_runs_at_once_are_refused(tmp_path):
    with replace_folder(tmp_path / "out", force=False) as folder:
        with (
            pytest.raises(BundleError, match="another run is writing to this folder now"),
            replace_folder(tmp_path / "out", force=False),
        ):
            pass
        bundle(folder, "new")
    assert (tmp_path / "out" / "train.json").read_text() == "new"


def test_an_unwritable_place_is_a_clear_error(tmp_path, convert, samples, capsys):
    (tmp_path / "file").touch()
    convert("cuad", "--source", samples / "cuad", out="file/bundle", expect=1)
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path, convert, samples, capsys, monkeypatch):
    first = convert("cuad", "--source", samples / "cuad", "--max-documents", "1", out="out")
    before = sorted((p, p.stat().st_size) for p in first.rglob("*"))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(build, "write_gold", full)
    convert("cuad", "--source", samples / "cuad", "--force", out="out", expect=1)
    assert "No space left on device; the existing files are unchanged" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "copyfile", full)
    convert("cuad", "--source", samples / "cuad", "--force", "--engine", "serial", out="out", expect=1)
    assert "No space left on device" in capsys.readouterr().err
    assert sorted((p, p.stat().st_size) for p in first.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("how", "moments"),
    [
        (signal.SIGKILL, ["gold.jsonl"]),
        pytest.param(signal.SIGKILL, ["", "README.md"], marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, ["", "gold.jsonl", "README.md"], marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_leaves_the_old_bundle_or_the_new(tmp_path, samples, convert, how, moments):
    out = convert("cuad", "--source", samples / "cuad", "--max-documents", "1", out="out")
    command = [
        sys.executable,
        "-m",
        "exhibit.converters.cuad",
        "--source",
        samples / "cuad",
        "--out",
        out,
        "--force",
        "--jobs",
        "2",
    ]
    for moment in moments:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not ((there := find_unfinished_folder(out)) and (there / moment).exists()):
            time.sleep(0.01)
        process.send_signal(how)
        error = process.communicate()[1]
        assert process.returncode in {0, -how, 130}, error
        assert validate(out) == []
        if how == signal.SIGINT and process.returncode == 130:
            assert find_unfinished_folder(out) is None


def test_what_belongs_to_a_folder_goes_with_it_and_a_killed_run_leaves_what_its_kind_keeps(tmp_path):
    let_go = []
    kind = atomic.FolderKind(
        "a shelf",
        lambda folder: (folder / "word").is_file(),
        let_go=lambda folder: let_go.extend(path.read_text() for path in folder.glob("word")),
        kept=frozenset({"far"}),
    )
    for word in ("one", "two"):
        with replace_folder(tmp_path / "shelf", force=True, kind=kind) as folder:
            (folder / "word").write_text(word)
    assert let_go == ["one"], "the one that was replaced, and not the one that took its place"
    with pytest.raises(KeyError), replace_folder(tmp_path / "shelf", force=True, kind=kind) as folder:
        (folder / "word").write_text("three")
        raise KeyError
    assert let_go == ["one", "three"] and (tmp_path / "shelf" / "word").read_text() == "two"
    (tmp_path / "shelf").rename(tmp_path / "away")
    killed_while_writing(tmp_path / "shelf", "far", "near")
    with replace_folder(tmp_path / "shelf", force=True, kind=kind) as folder:
        assert [path.name for path in folder.iterdir()] == ["far"]
        (folder / "word").write_text("four")


# ---------------------------------------------------------------- a file


def test_a_file_is_replaced_in_one_step_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "deep" / "a.json"
    write_whole(path, "one")
    with pytest.raises(RuntimeError), replace_file(path) as partial:
        partial.write_text("half", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "one"
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "one"
    write_whole(path, b"two")
    assert path.read_bytes() == b"two" and [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_half_a_surrogate_pair_is_a_question_mark(tmp_path):
    write_whole(tmp_path / "a", "x\ud800y")
    assert (tmp_path / "a").read_bytes() == b"x?y"


def test_the_files_below_a_folder_and_what_is_left_out_of_them(tmp_path):
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "b.txt").write_text("b")
    (folder / "a.txt").write_text("a")
    (tmp_path / "out.txt").write_text("out")
    for name, target in {"out": tmp_path / "out.txt", "within": folder / "a.txt", "gone": tmp_path / "none"}.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    names = [path.relative_to(folder).as_posix() for path in list_files(folder)]
    assert names == ["a.txt", "deep/b.txt", "within"]
    assert {path.name: why for path, why in list_left_out(folder)} == {"out": LINK, "gone": NOWHERE, "pipe": NO_FILE}


def test_the_hubs_cache_may_link_to_its_blobs_and_nothing_else_may(tmp_path):
    for name, others in (("snapshots", ("blobs",)), ("copies", ("blobs",)), ("snapshots", ())):
        repository = tmp_path / f"{name}{len(others)}"
        folder = repository / name / "abc" / "corpus"
        folder.mkdir(parents=True)
        for other in others:
            (repository / other).mkdir()
        (repository / "x.txt").write_text("x")
        (folder / "x.txt").symlink_to(repository / "x.txt")
        assert bool(list_files(folder)) is (name == "snapshots" and bool(others))


def test_a_folder_that_is_held_is_refused_or_waited_for(tmp_path):
    folder, said = tmp_path / "held", []
    with lock_folder(folder, busy="somebody has it"):
        with pytest.raises(BundleError, match="somebody has it"), lock_folder(folder, busy="somebody has it"):
            pass
        assert (tmp_path / ".held.lock").exists()
    assert not (tmp_path / ".held.lock").exists()
    with lock_folder(folder, busy="somebody has it", say=said.append):
        assert said == []


def test_a_link_that_leads_nowhere_is_placed_like_any_file(tmp_path):
    with replace_folder(tmp_path / "out", force=False) as folder:
        bundle(folder, "new")
        (folder / "link").symlink_to(tmp_path / "none")
    assert (tmp_path / "out" / "link").is_symlink()


def test_one_who_waits_is_told_once_that_somebody_has_it(tmp_path):
    folder, said = tmp_path / "held", []
    held, free = threading.Event(), threading.Event()

    def hold():
        with lock_folder(folder, busy=""):
            held.set()
            free.wait(120)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(120)
    with lock_folder(folder, busy="somebody has it", say=lambda words: said.append(words) or free.set()):
        assert said == ["somebody has it"]
    other.join()


def test_a_file_is_written_with_the_folders_above_it(tmp_path):
    write_whole(tmp_path / "a" / "b" / "c.json", b"\xff")
    assert (tmp_path / "a" / "b" / "c.json").read_bytes() == b"\xff"
    write_whole(tmp_path / ("n" * 200), "long names too")
    assert (tmp_path / ("n" * 200)).read_text(encoding="utf-8") == "long names too"


def test_a_folder_for_a_while_is_empty_private_and_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with make_scratch_folder() as folder:
        assert list(folder.iterdir()) == [] and folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
        (folder / "x").write_text("x", encoding="utf-8")
        with make_scratch_folder() as second:
            assert folder.is_dir() and second != folder, "one that is held is not swept away"
    left = tmp_path / "exhibit-scratch-left"
    left.mkdir()
    other = tmp_path / "somebody"
    other.mkdir()
    (tmp_path / "exhibit-scratch-link").symlink_to(other)
    with make_scratch_folder() as folder:
        assert not left.exists() and other.is_dir(), "what a killed run left goes, what is no folder of ours stays"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exhibit-scratch-link", "somebody"]


def test_a_place_for_such_folders_that_is_missing_is_told_and_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", "/there")
    with (
        pytest.raises(ToolkitError, match="/there: cannot be written: No such file.*; set TMPDIR"),
        make_scratch_folder(),
    ):
        pass
    assert not (tmp_path / "none").exists()
