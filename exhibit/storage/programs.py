"""Starts programs by their absolute paths only, and runs Git without the repository's own configuration."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from exhibit.schemas.errors import SourceError
from exhibit.storage.atomic import make_scratch_folder

_GIT_SECONDS = 600.0  # timeout of a command; the log of 20,000 commits takes about ten seconds


def find_program(name: str) -> str | None:
    """Return a program's absolute path; None if it is missing or only in the working folder.

    A search path may contain `.`, and an untrusted working folder may contain a malicious program of that name.
    """
    program = shutil.which(name)
    if program and (not Path(program).is_absolute() or Path(program).parent == Path.cwd()):
        folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute() and Path(folder) != Path.cwd()]
        program = shutil.which(name, path=os.pathsep.join(folders))
    return program if program and Path(program).is_absolute() else None


class GitRepository:
    """Reads a repository through a bare clone, because the original's configuration can make Git run programs."""

    def __init__(self, clone: Path, folder: Path) -> None:
        self._clone, self._folder = clone, folder
        self.head = self.run("rev-list", "--max-count=1", "HEAD").decode().strip()

    def run(self, *arguments: str, seconds: float = _GIT_SECONDS, work_tree: Path | None = None) -> bytes:
        extra = {"GIT_DIR": str(self._clone)} | ({"GIT_WORK_TREE": str(work_tree)} if work_tree else {})
        return _run_git(self._folder, arguments, extra, seconds)


def is_git_repository(folder: Path) -> bool:
    return os.path.lexists(folder / ".git") or ((folder / "HEAD").is_file() and (folder / "objects").is_dir())


@contextmanager
def open_repository(folder: Path, *, confined: bool = True) -> Iterator[GitRepository]:
    """Yield a repository for reading; with `confined`, refuse one whose Git data is partly outside its folder."""
    git = folder / ".git" if os.path.lexists(folder / ".git") else folder
    if confined:
        _refuse_ways_out(folder, git)
    if not any((folder / name).is_file() for name in (".git", ".git/HEAD", "HEAD")):  # not a pipe: Git would hang
        raise SourceError(f"{folder}: this Git repository has no commit; commit its files first")
    _refuse_strangers(folder, git)
    with make_scratch_folder() as scratch:
        clone = scratch / "clone"
        _run_git(folder, ("clone", "--quiet", "--bare", "--shared", "--template=", str(folder.resolve()), str(clone)))
        try:
            repository = GitRepository(clone, folder)
        except SourceError as error:
            raise SourceError(f"{folder}: this Git repository has no commit; commit its files first") from error
        yield repository


def count_changes(repository: GitRepository, work_tree: Path, *, seconds: float) -> int:
    repository.run("read-tree", "HEAD", seconds=seconds)
    # ignore submodules: Git would use each submodule's own configuration
    words = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    return len(repository.run(*words, seconds=seconds, work_tree=work_tree).splitlines())


def _refuse_ways_out(folder: Path, git: Path) -> None:
    home = folder.resolve()
    objects = git / "objects"
    inside = [objects, *(objects.iterdir() if objects.is_dir() else ()), *(objects / "pack").glob("*")]
    outside = next((path for path in (git, *inside) if not path.resolve().is_relative_to(home)), None)
    if outside is not None or git.is_file() or (git / "commondir").exists():
        raise SourceError(
            f"{folder}: parts of its Git repository are outside the folder ({outside or git}); clone the repository, "
            "and pass the clone"
        )
    if (objects / "info" / "alternates").exists():
        raise SourceError(
            f"{folder}: its Git repository uses the objects of another repository; clone it without --shared"
        )


def _refuse_strangers(folder: Path, git: Path) -> None:
    """Raise if a Git repository belongs to another user and `safe.directory` does not name it."""
    if not hasattr(os, "geteuid"):
        return
    users = {os.geteuid()} | {int(user) for user in [os.environ.get("SUDO_UID", "")] if user.isdecimal()}
    if {folder.stat().st_uid, git.stat().st_uid} <= users:
        return
    named: set[str] = set()
    for scope in ("--global", "--system"):
        listed = _start_git(folder, ("config", scope, "--get-all", "safe.directory"), dict(os.environ), _GIT_SECONDS)
        named |= set(listed.stdout.decode("utf-8", "surrogateescape").splitlines())
    if not named & {"*", str(folder.resolve()), str(git.resolve())}:
        raise SourceError(
            f"{folder}: this Git repository belongs to another user; if you trust it, run: git config --global "
            f"--add safe.directory {folder.resolve()}"
        )


def _run_git(
    folder: Path, arguments: tuple[str, ...], extra: Mapping[str, str] | None = None, seconds: float = _GIT_SECONDS
) -> bytes:
    """Run a Git command without the configuration of the user and the system, and return its output."""
    names = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP")
    environment = {name: os.environ[name] for name in names if name in os.environ} | {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "HOME": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat",
        "LC_ALL": "C",
        # accept any owner: `_refuse_strangers` has checked the owner
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        **(extra or {}),
    }  # fmt: skip
    done = _start_git(folder, ("-c", "core.quotepath=off", *arguments), environment, seconds)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()[:200]
        raise SourceError(f"{folder}: git {arguments[0]}: {reason}")
    return done.stdout


def _start_git(
    folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str], seconds: float
) -> "subprocess.CompletedProcess[bytes]":
    program = find_program("git")
    if program is None:
        raise SourceError(f"{folder}: is a Git repository, but the program `git` is not installed; install git")
    try:  # run in the root folder: elsewhere Git could find a repository and read its configuration
        return subprocess.run(
            [program, *arguments], cwd=Path("/").resolve(), env=environment, capture_output=True, check=False,
            stdin=subprocess.DEVNULL, timeout=seconds,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"{folder}: git failed: {error}") from error
