"""Reading a Git repository from other people never starts a program that its configuration names."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from exhibit.converters import Tally
from exhibit.converters.statutes import read_versions
from exhibit.evaluation.evaluate import commit_of
from exhibit.schemas.errors import SourceError
from exhibit.storage.programs import find_program

pytestmark = pytest.mark.slow

LAW = "# Harbour Act\n\n## § 1 Meaning\n\nA harbour is a place for ships.\n"
ENVIRONMENT = {
    "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_AUTHOR_DATE": "2020-01-01T12:00:00Z", "GIT_COMMITTER_DATE": "2020-01-01T12:00:00Z",
}  # fmt: skip
SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQEz\n -----END PGP SIGNATURE-----\n"


def git(folder: Path, *words: str, given: str | None = None, check: bool = True) -> str:
    command = ["git", "-C", str(folder), *words]
    done = subprocess.run(command, check=check, capture_output=True, text=True, env=ENVIRONMENT, input=given)
    return done.stdout.strip()


@pytest.fixture
def laws(tmp_path: Path) -> Path:
    """A repository with a law, whose last commit has a signature."""
    folder = tmp_path / "laws"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "harbour.md").write_text(LAW, encoding="utf-8")
    (folder / ".gitattributes").write_text("*.md filter=bait diff=bait\n", encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    head, _, message = git(folder, "cat-file", "commit", "HEAD").partition("\n\n")
    signed = git(folder, "hash-object", "-t", "commit", "-w", "--stdin", given=f"{head}\n{SIGNATURE}\n{message}\n")
    git(folder, "update-ref", "refs/heads/main", signed)
    return folder


def write_bait(folder: Path) -> tuple[str, Path]:
    """Return a program that creates a file when it is started, and the path of this file."""
    program, mark = folder / "bait.sh", folder / "started"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{mark}'\ncat\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program), mark


BAITS = [
    {"log.showSignature": "true", "gpg.program": "{}"},
    {"log.showSignature": "true", "gpg.format": "ssh", "gpg.ssh.program": "{}", "gpg.openpgp.program": "{}"},
    {"core.fsmonitor": "{}"},
    {"core.pager": "{}", "pager.log": "{}", "pager.status": "{}"},
    {"diff.external": "{}", "diff.bait.textconv": "{}", "diff.bait.command": "{}"},
    {
        "filter.bait.clean": "{}",
        "filter.bait.smudge": "{}",
        "filter.bait.process": "{}",
        "filter.bait.required": "true",
    },
    {"core.sshCommand": "{}", "core.gitProxy": "{}", "core.alternateRefsCommand": "{}", "credential.helper": "{}"},
    {"alias.log": "!{}", "alias.status": "!{}", "alias.cat-file": "!{}"},
    {"extensions.partialClone": "origin", "remote.origin.promisor": "true", "remote.origin.url": "ext::{}"},
]


@pytest.mark.skipif(sys.platform == "win32", reason="the bait is a shell script")
@pytest.mark.parametrize("settings", BAITS, ids=lambda settings: next(iter(settings)))
@pytest.mark.parametrize("included", [False, True])
def test_read_versions_starts_no_program_configured_in_a_repository(laws, tmp_path, monkeypatch, settings, included):
    program, mark = write_bait(tmp_path)
    place = tmp_path / "more" if included else laws / ".git" / "config"
    for name, value in settings.items():
        git(tmp_path, "config", "-f", str(place), name, value.format(program))
    if included:
        git(laws, "config", "include.path", str(place))
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        (laws / ".git" / "hooks").mkdir(exist_ok=True)
        (laws / ".git" / "hooks" / hook).symlink_to(program)
    os.utime(laws / "harbour.md", (1, 1))  # so that it is compared
    if {"log.showSignature", "core.fsmonitor", "filter.bait.clean"} & settings.keys() and "gpg.format" not in settings:
        git(laws, "log", check=False)
        git(laws, "status", check=False)
        assert mark.is_file(), "plain Git must start the configured program"
        mark.unlink()
    [version] = read_versions(laws, Tally(strict=True))
    assert version.markdown == LAW
    monkeypatch.chdir(laws)
    assert commit_of(laws, {})["commit"] == git(laws, "rev-parse", "HEAD")
    assert not mark.exists()


def test_reading_the_commit_starts_no_program_named_in_user_git_configuration(laws, tmp_path, monkeypatch):
    program, mark = write_bait(tmp_path)
    config = tmp_path / ".gitconfig"
    config.write_text(f'[filter "bait"]\n\tclean = {program}\n[core]\n\tfsmonitor = {program}\n', encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    os.utime(laws / "harbour.md", (1, 1))  # so that it is compared
    assert commit_of(laws, {})["commit"] == git(laws, "rev-parse", "HEAD")
    assert not mark.exists()


def test_read_versions_refuses_git_repository_of_another_user_unless_marked_safe(laws, tmp_path, monkeypatch):
    config = tmp_path / ".gitconfig"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: laws.stat().st_uid + 1)
    config.write_text("", encoding="utf-8")
    with pytest.raises(SourceError, match="belongs to another user; if you trust it, run: git config --global"):
        read_versions(laws, Tally())
    config.write_text(f"[safe]\n\tdirectory = {laws.resolve()}\n", encoding="utf-8")
    assert read_versions(laws, Tally())


def test_find_program_ignores_programs_in_the_working_folder(tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in (".", str(tmp_path), os.pathsep):
        monkeypatch.setenv("PATH", path)
        assert find_program("git") is None
    monkeypatch.chdir("/")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_program("git") == str(tmp_path / "git")
