"""A bundle appears completely or not at all, and never replaces other files."""

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

from exhibit.converters.core import build
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.validate import validate
from exhibit.storage.atomic import (
    LINK,
    NO_FILE,
    NOWHERE,
    list_files,
    list_left_out,
    lock_folder,
    make_scratch_folder,
    refuse_links,
    remove_below,
    replace_file,
    replace_folder,
    write_whole,
)

ROOT = Path(__file__).parents[2]


def bundle(folder: Path, word: str) -> Path:
    (folder / "corpus").mkdir(parents=True)
    (folder / "train.json").write_text(word)
    return folder


def find_unfinished_folder(out):
    return next(out.parent.glob(f".{out.name}.*.partial"), None)


def test_replace_folder_with_force_replaces_a_bundle(tmp_path):
    old = bundle(tmp_path / "out", "old")
    with replace_folder(old, force=True) as folder:
        bundle(folder, "new")
        assert (old / "train.json").read_text() == "old"
    assert (old / "train.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names the file of a descriptor")
@pytest.mark.parametrize("existing", [True, False])
def test_replace_folder_flushes_every_file_before_the_rename(tmp_path, monkeypatch, existing):
    steps: list[str] = []
    rename = Path.replace
    monkeypatch.setattr(os, "fsync", lambda number: steps.append(str(Path(f"/proc/self/fd/{number}").readlink())))
    monkeypatch.setattr(Path, "replace", lambda self, to: steps.append("renamed") or rename(self, to))
    out = bundle(tmp_path / "out", "old") if existing else tmp_path / "out"
    with replace_folder(out, force=True) as folder:
        bundle(folder, "new")
        (folder / "corpus" / "a.txt").write_text("Rent is due.", encoding="utf-8")
    at = steps.index("renamed")
    partial = steps[at - 1]
    assert partial.startswith(str(tmp_path / ".out.")) and partial.endswith(".partial")
    assert set(steps[:at]) == {partial, *(f"{partial}/{name}" for name in ("train.json", "corpus", "corpus/a.txt"))}
    assert steps[-1] == str(tmp_path)


@pytest.mark.parametrize("during", ["writing", "renaming"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "the disk fails"), KeyboardInterrupt()])
def test_old_bundle_stays_when_the_new_bundle_cannot_be_written_or_renamed(tmp_path, monkeypatch, error, during):
    old, replace = bundle(tmp_path / "out", "old"), Path.replace

    def failing(self, target):
        if self.name.endswith(".partial"):
            raise error
        return replace(self, target)

    expected = BundleError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected), replace_folder(old, force=True) as folder:
        bundle(folder, "new")
        if during == "writing":
            raise error
        monkeypatch.setattr(Path, "replace", failing)
    assert (old / "train.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_next_run_restores_the_old_bundle_of_a_run_killed_between_two_renames(tmp_path):
    old = bundle(tmp_path / "out", "old")
    code = f"""
import os, signal
from pathlib import Path
from exhibit.storage import atomic
def kill(partial, out, old):
    out.replace(old)
    os.kill(os.getpid(), signal.SIGKILL)
atomic._rename_over = kill
with atomic.replace_folder(Path({str(old)!r}), force=True) as folder:
    (folder / "train.json").write_text("new")
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert not old.exists()
    with pytest.raises(BundleError, match="add --force"), replace_folder(old, force=False):
        pytest.fail("must not begin")
    assert (old / "train.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_replace_folder_refuses_a_folder_that_is_not_a_bundle_or_is_in_use(tmp_path):
    bundle(tmp_path / "out", "old")
    (tmp_path / "home").mkdir()
    for path in ("file", "home/thesis.doc"):
        (tmp_path / path).touch()
    with replace_folder(tmp_path / "busy", force=False) as folder:
        for name, force, message in (
            ("out", False, "add --force"),
            ("home", True, "does not contain a bundle"),
            ("file", True, "is not a folder"),
            ("busy", True, "another run is writing to this folder now"),
        ):
            with pytest.raises(BundleError, match=message), replace_folder(tmp_path / name, force=force):
                pytest.fail("must not begin")
        bundle(folder, "new")
    assert [(tmp_path / name / "train.json").read_text() for name in ("out", "busy")] == ["old", "new"]


def test_next_run_removes_the_partial_folder_of_a_killed_run(tmp_path):
    left = kill_while_writing(tmp_path / "out")
    assert left is not None and (left / "junk").is_file()
    with replace_folder(tmp_path / "out", force=False) as folder:
        assert list(folder.iterdir()) == []
        bundle(folder, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def kill_while_writing(out: Path, *names: str) -> Path | None:
    """Run a process that is killed while it writes `out`; return the unfinished folder, or None."""
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
def test_replace_folder_leaves_foreign_folders_and_links_with_reserved_names_unchanged(tmp_path, name, linked):
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


def test_replace_folder_removes_no_files_if_a_link_replaced_the_folder(tmp_path):
    home = tmp_path / "home"
    bundle(home, "mine")
    old = bundle(tmp_path / "out", "old")
    with pytest.raises(KeyError), replace_folder(old, force=True) as folder:
        folder.rename(tmp_path / "moved")
        folder.symlink_to(home)
        raise KeyError
    assert (home / "train.json").read_text() == "mine" and (tmp_path / "moved").is_dir()


def test_remove_below_follows_no_link(tmp_path):
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


def test_convert_reports_an_unwritable_output_folder(tmp_path, convert, samples, capsys):
    (tmp_path / "file").touch()
    convert("cuad", "--source", samples / "cuad", out="file/bundle", expect=1)
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_convert_reports_a_full_disk_and_does_not_change_the_old_bundle(
    tmp_path, convert, samples, capsys, monkeypatch
):
    first = convert("cuad", "--source", samples / "cuad", "--max-documents", "1", out="out")
    before = sorted((p, p.stat().st_size) for p in first.rglob("*"))

    def raise_disk_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(build, "write_gold", raise_disk_full)
    convert("cuad", "--source", samples / "cuad", "--force", out="out", expect=1)
    assert "No space left on device; the existing files are unchanged" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "copyfile", raise_disk_full)
    convert("cuad", "--source", samples / "cuad", "--force", "--engine", "serial", out="out", expect=1)
    assert "No space left on device" in capsys.readouterr().err
    assert sorted((p, p.stat().st_size) for p in first.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_convert_stopped_by_a_signal_leaves_the_old_or_new_bundle(tmp_path, samples, convert, how):
    out = convert("cuad", "--source", samples / "cuad", "--max-documents", "1", out="out")
    flags = f"--source {samples / 'cuad'} --out {out} --force --jobs 2".split()
    command = [sys.executable, "-m", "converters.cuad", *flags]
    for moment in ("", "gold.jsonl", "README.md"):
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not ((there := find_unfinished_folder(out)) and (there / moment).exists()):
            time.sleep(0.01)
        process.send_signal(how)
        error = process.communicate()[1]
        assert process.returncode in {0, -how, 130}, error
        assert validate(out) == []
        if how == signal.SIGINT and process.returncode == 130:
            assert find_unfinished_folder(out) is None


def test_replace_file_is_atomic_and_leaves_no_partial_file(tmp_path):
    path = tmp_path / "deep" / "a.json"
    write_whole(path, "one")
    with pytest.raises(RuntimeError), replace_file(path) as partial:
        partial.write_text("half", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "one"
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "one"
    for content, written in ((b"two", b"two"), ("x\ud800y", b"x?y")):
        write_whole(path, content)
        assert path.read_bytes() == written and [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_list_files_excludes_pipes_and_links_out_of_the_folder(tmp_path):
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


def test_list_files_follows_links_out_of_a_folder_only_in_the_hub_cache(tmp_path):
    for name, others in (("snapshots", ("blobs",)), ("copies", ("blobs",)), ("snapshots", ())):
        repository = tmp_path / f"{name}{len(others)}"
        folder = repository / name / "abc" / "corpus"
        folder.mkdir(parents=True)
        for other in others:
            (repository / other).mkdir()
        (repository / "x.txt").write_text("x")
        (folder / "x.txt").symlink_to(repository / "x.txt")
        assert bool(list_files(folder)) is (name == "snapshots" and bool(others))


def test_lock_folder_prints_a_single_note_while_waiting(tmp_path):
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


def test_scratch_folder_is_private_and_removed_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with make_scratch_folder() as folder:
        assert list(folder.iterdir()) == [] and folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
        (folder / "x").write_text("x", encoding="utf-8")
        with make_scratch_folder() as second:
            assert folder.is_dir() and second != folder, "a folder in use must not be removed"
    left = tmp_path / "exhibit-scratch-left"
    left.mkdir()
    other = tmp_path / "somebody"
    other.mkdir()
    (tmp_path / "exhibit-scratch-link").symlink_to(other)
    with make_scratch_folder() as folder:
        assert not left.exists() and other.is_dir(), "only folders of killed runs are removed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exhibit-scratch-link", "somebody"]


def test_scratch_folder_is_not_created_in_a_missing_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", "/there")
    with pytest.raises(ToolkitError, match="/there: cannot be written: No such file.*; set TMPDIR"):
        make_scratch_folder().__enter__()
    assert not (tmp_path / "none").exists()
