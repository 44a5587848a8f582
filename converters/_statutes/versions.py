"""The versions of laws: files of a folder, LAW/DATE.md, or the history of a Git repository of laws in Markdown."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path, PurePosixPath

from exhibit.schemas.errors import SourceError

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_IN_FORCE = re.compile(r'^(?:effectiveness_date|effective_date|last_updated):\s*"?(\d{4}-\d{2}-\d{2})', re.MULTILINE)
_READ_ME = frozenset({"readme.md", "license.md", "contributing.md", "changelog.md"})
_HEADER = 4000  # characters in which a file's header stands


@dataclass(frozen=True)
class Version:
    """A law as it was worded from a day on."""

    law: str
    """The law's name: its folder's, or its file's."""
    markdown: str
    source: str
    """Where it was read, for the list of what was given."""
    start: date | None = None
    """The day from which it is in force; None where nothing tells."""
    end: date | None = None
    """The last day on which it is; None for the last version."""

    def holds(self, day: date) -> bool:
        """Return whether it is the law of a day."""
        return (self.start is None or self.start <= day) and (self.end is None or day <= self.end)


def read_versions(source: Path, *, since: date | None = None, as_of: date | None = None) -> list[Version]:
    """Return all versions by law and day; of each law those in force from `since` on, or the one of a day."""
    versions = list(_history(source)) if is_repository(source) else list(_files(source))
    if not versions:
        raise SourceError(f"{source}: no laws; expected LAW/DATE.md, LAW.md or a Git repository of such files")
    versions.sort(key=lambda version: (version.law, version.start or date.min))
    dated = [version for _, group in groupby(versions, lambda version: version.law) for version in _dated(list(group))]
    kept = [version for version in dated if _wanted(version, since, as_of)]
    if not kept:
        raise SourceError(f"{source}: none of {len(dated)} versions was in force then; see --from and --as-of")
    return kept


def _wanted(version: Version, since: date | None, as_of: date | None) -> bool:
    return (as_of is None or version.holds(as_of)) and (since is None or version.end is None or version.end >= since)


def _dated(versions: list[Version]) -> list[Version]:
    """Say when each version ended: the day before the next; of two with the same day the later one is the law."""
    last = {version.start: version for version in versions}
    ordered = list(last.values())
    nexts = [version.start for version in ordered[1:]]
    ends = [following - timedelta(days=1) if following else None for following in nexts]
    return [replace(version, end=end) for version, end in zip(ordered, [*ends, None], strict=True)]


# ---------------------------------------------------------------- a folder


def _files(folder: Path) -> Iterator[Version]:
    for path in sorted(folder.rglob("*.md")):
        if path.name.lower() in _READ_ME or not path.is_file():
            continue
        dated = _DATED.fullmatch(path.name)
        text = _text(path.read_bytes(), str(path))
        law = path.parent.name if dated and path.parent != folder else path.stem
        start = _day(dated[1], str(path)) if dated else _stated(text)
        yield Version(law, text, path.relative_to(folder).as_posix(), start)


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{name}: not UTF-8: {error}") from error


def _day(text: str, name: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SourceError(f"{name}: {text} is no day of the calendar") from error


def _stated(markdown: str) -> date | None:
    match = _IN_FORCE.search(markdown[:_HEADER])
    return _day(match[1], "a law's header") if match else None


# ---------------------------------------------------------------- a Git repository


def is_repository(source: Path) -> bool:
    """Return whether a folder is a clone or a bare repository."""
    return (source / ".git").exists() or ((source / "HEAD").is_file() and (source / "objects").is_dir())


def _history(repository: Path) -> Iterator[Version]:
    """Yield each law as each commit left it; a header's date of effect comes before the commit's own."""
    log = _git(
        repository, "log", "--reverse", "--diff-filter=AM", "--no-renames", "-z", "--name-only", "--format=%x01%H %as"
    )
    for entry in log.split("\x01")[1:]:
        head, *names = entry.split("\x00")
        commit, _, day = head.strip().partition(" ")
        for name in (name.strip() for name in names):
            if name.endswith(".md") and PurePosixPath(name).name.lower() not in _READ_ME:
                text = _text(_git_bytes(repository, "cat-file", "blob", f"{commit}:{name}"), f"{commit[:10]}:{name}")
                start = _stated(text) or _day(day, f"commit {commit[:10]}")
                yield Version(PurePosixPath(name).stem, text, f"{commit[:10]}:{name}", start)


def _git(repository: Path, *arguments: str) -> str:
    return _git_bytes(repository, *arguments).decode("utf-8", errors="replace")


def _git_bytes(repository: Path, *arguments: str) -> bytes:
    # safe.directory: a bare repository of another user is refused by Git otherwise, and nothing of it is run here
    command = ["git", "-c", "safe.directory=*", "-c", "core.quotepath=off", "-C", str(repository), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise SourceError(f"{repository}: a Git repository, and no `git` is installed to read it") from error
    if done.returncode:
        raise SourceError(f"{repository}: git {arguments[0]}: {done.stderr.decode(errors='replace').strip()[:200]}")
    return done.stdout
