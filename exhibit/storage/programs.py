"""Starts programs by their absolute paths only, and runs Git without the repository's own configuration."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import read_regular
from exhibit.storage.atomic import make_scratch_folder

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")  # SHA-1, SHA-256
_LARGEST_FILE = 1 << 16  # bytes; a file that names a branch, a folder or a commit has one line
_LARGEST_LIST = 1 << 28  # bytes; the index of a repository with a million files has 100 MB
_DEEPEST = 5  # symbolic refs that point to each other; Git allows this depth
_SECONDS = 600.0  # seconds for one command; the log of a repository with 20,000 commits takes about ten
_KEPT_SETTINGS = re.compile(r"core\.(filemode|symlinks|ignorecase|autocrlf) (true|false)")
"""Repository settings that decide whether a file counts as changed; each is a boolean and starts no program."""


def find_program(name: str) -> str | None:
    """Return a program's absolute path; None if it is missing, or found only in the working folder.

    A search path may contain `.`, and Windows searches the working folder first. If that folder is untrusted,
    it may contain a malicious program with the same name.
    """
    found = shutil.which(name)
    if found and (not Path(found).is_absolute() or Path(found).parent == Path.cwd()):
        folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute() and Path(folder) != Path.cwd()]
        found = shutil.which(name, path=os.pathsep.join(folders))
    return found if found and Path(found).is_absolute() else None


class GitRepository:
    """Reads the objects and the last commit of a repository, through a Git folder of our own.

    Git obeys the configuration of the folder in which it works, and that configuration may name programs to run. We
    therefore never read it: our own Git folder has an empty configuration and uses the repository's objects.
    """

    def __init__(self, own: Path, head: str, folder: Path) -> None:
        self.head = head
        self._own, self._folder = own, folder

    def run(self, *arguments: str, seconds: float = _SECONDS, work_tree: Path | None = None) -> bytes:
        """Return the output of a Git command; raise SourceError with Git's message if it fails."""
        extra = {"GIT_WORK_TREE": str(work_tree)} if work_tree else {}
        done = _run_git(self._own, arguments, {**_clean_environment(self._own), **extra}, seconds, self._folder)
        if done.returncode:
            told = done.stderr.decode(errors="replace").strip()[:200]
            raise SourceError(f"{self._folder}: git {arguments[0]}: {told}")
        return done.stdout


def is_git_repository(folder: Path) -> bool:
    """Return whether a folder is a clone or a bare repository."""
    return os.path.lexists(folder / ".git") or ((folder / "HEAD").is_file() and (folder / "objects").is_dir())


@contextmanager
def open_repository(folder: Path, *, confined: bool = True) -> Iterator[GitRepository]:
    """Yield a repository for reading; with `confined`, refuse one that has links or parts outside its folder."""
    place, common = _find_git_folders(folder)
    if confined:
        _refuse_ways_out(folder, place, common)
    head = _read_head(place, common)
    if head is None:
        raise SourceError(
            f"{folder}: this Git repository has no commit, or keeps its branches in a reftable; "
            "make a commit, or clone it with --ref-format=files"
        )
    with make_scratch_folder() as own:
        _refuse_strangers(folder, place, own)
        _make_own(own, head, common / "objects", folder)
        for name in ("shallow", "index"):
            path = (common if name == "shallow" else place) / name
            if path.is_file():
                (own / name).write_bytes(read_regular(path, most=_LARGEST_LIST))
                # copy the index's time: Git uses it to recognise files that were written after the index
                changed = path.stat()
                os.utime(own / name, ns=(changed.st_atime_ns, changed.st_mtime_ns))
        repository = GitRepository(own, head, folder)
        _keep_settings(repository, own, common / "config")
        yield repository


def count_changes(repository: GitRepository, work_tree: Path, *, seconds: float) -> int:
    """Return how many files of a working tree differ from its last commit; new files do not count."""
    # ignore submodules: Git would use each submodule's own configuration
    words = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    return len(repository.run(*words, seconds=seconds, work_tree=work_tree).splitlines())


def _find_git_folders(folder: Path) -> tuple[Path, Path]:
    """Return the repository's own Git folder, and the folder of its objects and branches, which work trees share."""
    try:
        place = folder / ".git" if os.path.lexists(folder / ".git") else folder
        if place.is_file():
            words = read_regular(place, most=_LARGEST_FILE).decode("utf-8", "surrogateescape")
            place = folder / words.partition("gitdir:")[2].strip()
        link = place / "commondir"
        common = place / _read_line(link) if link.is_file() else place
    except OSError as error:
        raise SourceError(f"{folder}: this Git repository cannot be read: {error.strerror}") from error
    return place, common


def _read_line(path: Path) -> str:
    try:
        return read_regular(path, most=_LARGEST_FILE).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


def _read_head(place: Path, common: Path) -> str | None:
    """Return the commit that is checked out, from HEAD or from the branch that HEAD names; None if there is none."""
    name = "HEAD"
    for _ in range(_DEEPEST):
        text = _read_line(place / name) or _read_line(common / name) or _read_packed_ref(common, name)
        if not text.startswith("ref: "):
            return text if _COMMIT.fullmatch(text) else None
        name = text.removeprefix("ref: ").strip()
        if not name.startswith("refs/") or ".." in name.split("/"):
            return None
    return None


def _read_packed_ref(common: Path, name: str) -> str:
    try:
        data = read_regular(common / "packed-refs", most=_LARGEST_LIST)
    except OSError:
        return ""
    lines = (line.split(" ", 1) for line in data.decode("utf-8", "replace").splitlines())
    return next((line[0] for line in lines if line[1:] == [name]), "")


def _refuse_ways_out(folder: Path, place: Path, common: Path) -> None:
    home, objects = folder.resolve(), common / "objects"
    inside = [objects, *(objects.iterdir() if objects.is_dir() else ()), *(objects / "pack").glob("*")]
    outside = next((path for path in (place, common, *inside) if not path.resolve().is_relative_to(home)), None)
    if outside is not None:
        raise SourceError(
            f"{folder}: parts of its Git repository are elsewhere ({outside}); clone it, and pass the clone"
        )
    if (objects / "info" / "alternates").exists():
        raise SourceError(
            f"{folder}: its Git repository uses the objects of another repository; clone it without --shared"
        )


def _refuse_strangers(folder: Path, place: Path, own: Path) -> None:
    """Raise an error if a Git repository belongs to another user.

    The repository is allowed if `safe.directory` in the global or system configuration of Git names it.
    """
    if not hasattr(os, "geteuid"):
        return
    users = {os.geteuid()} | {int(user) for user in [os.environ.get("SUDO_UID", "")] if user.isdecimal()}
    if {folder.stat().st_uid, place.stat().st_uid} <= users:
        return
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"GIT_DIR": str(own)}
    named: set[str] = set()
    for scope in ("--global", "--system"):
        listed = _run_git(own, ("config", scope, "--get-all", "safe.directory"), ours, _SECONDS, folder)
        named |= set(listed.stdout.decode("utf-8", "surrogateescape").splitlines())
    if not named & {"*", str(folder.resolve()), str(place.resolve())}:
        raise SourceError(
            f"{folder}: this Git repository belongs to another user; if you trust it, run: git config --global "
            f"--add safe.directory {folder.resolve()}"
        )


def _make_own(own: Path, head: str, objects: Path, folder: Path) -> None:
    place = str(objects.resolve())
    if "\n" in place:
        raise SourceError(f"{folder}: Git cannot use a folder with a line break in its name; rename it")
    for name in ("objects/info", "refs"):
        (own / name).mkdir(parents=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(place) + b"\n")
    (own / "HEAD").write_text(f"{head}\n", encoding="ascii")
    hashing = "repositoryformatversion = 1\n[extensions]\nobjectformat = sha256" if len(head) == 64 else (
        "repositoryformatversion = 0")  # fmt: skip
    (own / "config").write_text(f"[core]\n{hashing}\n", encoding="ascii")


def _keep_settings(repository: GitRepository, own: Path, config: Path) -> None:
    if not config.is_file():
        return
    (own / "theirs").write_bytes(read_regular(config, most=_LARGEST_FILE))
    try:  # Git parses the file as data: no other file is included, and no setting takes effect
        told = repository.run("config", "--file", str(own / "theirs"), "--no-includes", "--get-regexp", "^core[.]")
    except SourceError:
        return
    kept = filter(None, map(_KEPT_SETTINGS.fullmatch, told.decode("utf-8", "replace").splitlines()))
    with (own / "config").open("a", encoding="ascii") as file:
        file.write("".join(f"[core]\n{match[1]} = {match[2]}\n" for match in kept))


def _clean_environment(own: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
    return kept | {
        **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
        **dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "GIT_DIR"), str(own)),
        **dict.fromkeys(
            ("GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS", "GIT_NO_LAZY_FETCH"), "1"
        ),
        **dict.fromkeys(("GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS"), "0"),
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }


def _run_git(
    own: Path, arguments: tuple[str, ...], environment: Mapping[str, str], seconds: float, folder: Path
) -> "subprocess.CompletedProcess[bytes]":
    """Run a Git command in `own`, a temporary Git folder with an empty configuration.

    Raise SourceError if Git cannot start or takes longer than `seconds`. `folder`, the user's repository, is
    only named in error messages.
    """
    program = find_program("git")
    if program is None:
        raise SourceError(f"{folder}: is a Git repository, and the program `git` is missing; install it")
    command = [program, "-c", "core.quotepath=off", "-c", "core.commitGraph=false", *arguments]
    try:
        return subprocess.run(
            command,
            cwd=own,
            env=environment,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"{folder}: git {arguments[0]}: {error}") from error
