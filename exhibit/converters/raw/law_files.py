"""Reads the versions of laws, from dated files in a folder or from the history of a Git repository."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TypeVar

from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import read_regular
from exhibit.storage.atomic import list_files, list_left_out
from exhibit.storage.programs import GitRepository, is_git_repository, open_repository

_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})\.md")
_IN_FORCE = re.compile(r'^(?:effectiveness_date|effective_date|last_updated):\s*"?(\d{4}-\d{2}-\d{2})', re.MULTILINE)
_READ_ME = frozenset({"readme.md", "license.md", "contributing.md", "changelog.md"})
_HEADER_LENGTH = 4000  # characters that contain a file's header
_LARGEST = 32 << 20  # bytes of one version; the longest German and Czech codes have 2 MB

Skip = Callable[[str, str], None]
"""A function that receives the reason why a file is left out, and the file's name."""


@dataclass(frozen=True)
class Version:
    """A version of a law: its text, and the first and last day on which it is in force."""

    law: str
    """The law's name: that of its folder or its file."""
    markdown: str
    source: str
    """The place where it was read, for the account."""
    start: date | None = None
    """The day from which it is in force; None if unknown."""
    end: date | None = None
    """The last day on which it is in force; None for the last version."""

    def holds(self, day: date) -> bool:
        """Return whether the version is in force on a day."""
        return (self.start is None or self.start <= day) and (self.end is None or day <= self.end)


def read_versions(source: Path, *, skip: Skip, since: date | None = None, as_of: date | None = None) -> list[Version]:
    """Return the versions of all laws, sorted by law and day.

    With `since`, leave out versions that ended before that day; with `as_of`, return only those in force on
    that day. `skip` is called for each file that cannot be used.
    """
    if is_git_repository(source):
        with open_repository(source) as repository:
            versions = list(_read_history(repository, skip))
    else:
        versions = list(_read_files(source, skip))
    if not versions:
        raise SourceError(f"{source}: no laws; expected LAW/DATE.md, LAW.md or a Git repository of such files")
    versions.sort(key=lambda version: (version.law, version.start or date.min))
    dated = [
        version
        for _, group in groupby(versions, lambda version: version.law)
        for version in _date_versions(list(group))
    ]
    kept = [version for version in dated if _is_wanted(version, since, as_of)]
    if not kept:
        raise SourceError(
            f"{source}: none of its {len(dated)} versions was in force at the dates of --from and --as-of; "
            "choose other dates"
        )
    return kept


def _is_wanted(version: Version, since: date | None, as_of: date | None) -> bool:
    return (as_of is None or version.holds(as_of)) and (since is None or version.end is None or version.end >= since)


def _date_versions(versions: list[Version]) -> list[Version]:
    """Return the versions of a law, each with its last day: the day before the next version starts.

    The versions must be sorted by their first day. If two versions start on the same day, the one that is later
    in the list is returned.
    """
    last = {version.start: version for version in versions}
    ordered = list(last.values())
    nexts = [version.start for version in ordered[1:]]
    ends = [following - timedelta(days=1) if following else None for following in nexts]
    return [replace(version, end=end) for version, end in zip(ordered, [*ends, None], strict=True)]


def _parse_file(data: bytes, dated: str) -> tuple[str, date | None]:
    """Return a file's text and the day in its name or header; raise ValueError with the reason if it is invalid."""
    if len(data) > _LARGEST:
        raise ValueError(f"the file has more than {_LARGEST:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not in UTF-8") from None
    if not text.strip():
        raise ValueError("the file is empty")
    stated = _IN_FORCE.search(text[:_HEADER_LENGTH])
    day = dated or (stated[1] if stated else "")
    try:
        return text, date.fromisoformat(day) if day else None
    except ValueError:
        raise ValueError("the date in its name or header does not exist") from None


def _is_law(name: str) -> bool:
    return name.endswith(".md") and PurePosixPath(name).name.lower() not in _READ_ME


# ---------------------------------------------------------------- a folder


Key = TypeVar("Key")


def _read_files(folder: Path, skip: Skip) -> Iterator[Version]:
    for path, why in list_left_out(folder):
        if _is_law(path.name):
            skip(f"a {why}", path.relative_to(folder).as_posix())
    paths = [path for path in list_files(folder) if _is_law(path.name)]
    dated = {path: match[1] if (match := _DATED.fullmatch(path.name)) else "" for path in paths}
    # for DATE.md the folder is the law; without a folder, and for any other file, the file is the law
    laws = {path: path.parent if dated[path] and path.parent != folder else path.with_suffix("") for path in paths}
    names = _make_distinct_names({law: PurePosixPath(law.relative_to(folder).as_posix()) for law in laws.values()})
    for path in paths:
        name = path.relative_to(folder).as_posix()
        try:
            text, start = _parse_file(read_regular(path, most=_LARGEST), dated[path])
        except OSError as error:
            skip(f"cannot be read: {error.strerror}", name)
        except ValueError as error:
            skip(str(error), name)
        else:
            yield Version(names[laws[path]], text, name, start)


def _make_distinct_names(paths: dict[Key, PurePosixPath]) -> dict[Key, str]:
    """Return a distinct name for each law, by the law's key: the last part of its path.

    If several laws have the same last part, the name is the whole path, joined by hyphens.
    """
    sharing = defaultdict(set)
    for path in paths.values():
        sharing[path.name].add(path)
    names = {key: path.name if len(sharing[path.name]) == 1 else "-".join(path.parts) for key, path in paths.items()}
    used: dict[str, PurePosixPath] = {}
    for key, path in sorted(paths.items(), key=lambda item: (len(item[1].parts), item[1])):
        while used.setdefault(names[key], path) != path:  # `a-b` may be a law's own name
            names[key] += "-2"
    return names


# ---------------------------------------------------------------- a Git repository


@dataclass(frozen=True)
class _Written:
    """A version of a law's file in Git: the commit that wrote the file, its date, the path, and the law's number."""

    commit: str
    day: str
    path: str
    law: int
    """The number of the law: a moved file is the same law, and two files at the same time are two laws."""


def _read_history(repository: GitRepository, skip: Skip) -> Iterator[Version]:
    """Yield a law's version for each commit that changed the law's file, in the order of the commits.

    A version takes effect on the date in the file's header or, if the header has no date, on the commit's
    date.
    """
    written = list(_read_writings(repository))
    last = {one.law: PurePosixPath(one.path).with_suffix("") for one in written}
    names = _make_distinct_names(last)
    for one in written:
        source = f"{one.commit[:10]}:{one.path}"
        try:
            text, start = _parse_file(repository.run("cat-file", "blob", f"{one.commit}:{one.path}"), "")
            yield Version(names[one.law], text, source, start or date.fromisoformat(one.day))
        except (ValueError, SourceError) as error:
            skip(str(error) if isinstance(error, ValueError) else "not in the repository", source)


def _read_writings(repository: GitRepository) -> Iterator[_Written]:
    form = "--format=%x01%H %as"
    log = repository.run("log", "--reverse", "--diff-filter=AMD", "--no-renames", "-z", "--name-status", form)
    laws: dict[str, int] = {}
    """The law of each existing file, by path."""
    gone: dict[str, int] = {}
    """The last law of each file name that no longer exists."""
    count = 0
    for entry in log.decode("utf-8", "surrogateescape").split("\x01")[1:]:
        head, *words = entry.split("\x00")
        commit, _, day = head.strip().partition(" ")
        changes = [(kind.strip(), path) for kind, path in zip(words[::2], words[1::2], strict=False) if _is_law(path)]
        for kind, path in changes:
            if kind == "D" and path in laws:
                gone[PurePosixPath(path).name] = laws.pop(path)
        for kind, path in changes:
            if kind == "D":
                continue
            if path not in laws:
                moved = gone.pop(PurePosixPath(path).name, None)
                laws[path], count = (count, count + 1) if moved is None else (moved, count)
            yield _Written(commit, day, path, laws[path])
