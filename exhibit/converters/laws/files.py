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
HEADER_CHARS = 4000
MAX_FILE_BYTES = 32 << 20  # the longest German and Czech codes have 2 MB
SAME_DAY = "another version of the law takes effect on the same day"
OUT_OF_RANGE = "version not in force at the dates of --from and --as-of"

Skip = Callable[[str, str], None]  # receives the reason why a version is left out, and its source
Key = TypeVar("Key")


@dataclass(frozen=True)
class Version:
    """A version of a law: its text, and the first and last day on which it is in force."""

    law: str  # the name of its folder or its file
    markdown: str
    source: str  # where it was read, for the account
    start: date | None = None  # None if unknown
    end: date | None = None  # None for the last version

    def holds(self, day: date) -> bool:
        """Return whether the version is in force on a day."""
        return (self.start is None or self.start <= day) and (self.end is None or day <= self.end)


def read_versions(
    source: Path, *, skip: Skip, leave_out: Skip | None = None, since: date | None = None, as_of: date | None = None
) -> list[Version]:
    """Return the versions of all laws that were in force from `since`, or on `as_of`, sorted by law and day.

    `skip` is called for each file that cannot be used, and `leave_out` for each version that a rule leaves out.
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
        for version in _date_versions(list(group), leave_out)
    ]
    kept = []
    for version in dated:
        if (as_of is None or version.holds(as_of)) and (since is None or version.end is None or version.end >= since):
            kept.append(version)
        elif leave_out:
            leave_out(OUT_OF_RANGE, version.source)
    if not kept:
        raise SourceError(
            f"{source}: none of its {len(dated)} versions was in force at the dates of --from and --as-of; "
            "choose other dates"
        )
    return kept


def _date_versions(versions: list[Version], leave_out: Skip | None) -> list[Version]:
    """Return the sorted versions of a law, each with its last day; of two for one day, the later in the list."""
    last = {version.start: version for version in versions}
    for version in versions:
        if leave_out and last[version.start] is not version:
            leave_out(SAME_DAY, version.source)
    ordered = list(last.values())
    ends = [version.start - timedelta(days=1) if version.start else None for version in ordered[1:]]
    return [replace(version, end=end) for version, end in zip(ordered, [*ends, None], strict=True)]


def _parse_file(data: bytes, dated: str) -> tuple[str, date | None]:
    """Return a file's text and the day in its name or header; raise ValueError with the reason if it is invalid."""
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"the file has more than {MAX_FILE_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not in UTF-8") from None
    if not text.strip():
        raise ValueError("the file is empty")
    stated = _IN_FORCE.search(text[:HEADER_CHARS])
    day = dated or (stated[1] if stated else "")
    try:
        return text, date.fromisoformat(day) if day else None
    except ValueError:
        raise ValueError("the date in its name or header does not exist") from None


def _is_law(name: str) -> bool:
    return name.endswith(".md") and PurePosixPath(name).name.lower() not in _READ_ME


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
            text, start = _parse_file(read_regular(path, most=MAX_FILE_BYTES), dated[path])
        except OSError as error:
            skip(f"cannot be read: {error.strerror}", name)
        except ValueError as error:
            skip(str(error), name)
        else:
            yield Version(names[laws[path]], text, name, start)


def _make_distinct_names(paths: dict[Key, PurePosixPath]) -> dict[Key, str]:
    """Return a distinct name for each law: the last part of its path, or all parts if several laws share the last."""
    sharing = defaultdict(set)
    for path in paths.values():
        sharing[path.name].add(path)
    names = {key: path.name if len(sharing[path.name]) == 1 else "-".join(path.parts) for key, path in paths.items()}
    used: dict[str, PurePosixPath] = {}
    for key, path in sorted(paths.items(), key=lambda item: (len(item[1].parts), item[1])):
        while used.setdefault(names[key], path) != path:  # `a-b` may be a law's own name
            names[key] += "-2"
    return names


def _read_history(repository: GitRepository, skip: Skip) -> Iterator[Version]:
    """Yield a version for each commit that changed a law's file; its header's date, else the commit's, is its day."""
    written = list(_read_writings(repository))
    names = _make_distinct_names({law: PurePosixPath(path).with_suffix("") for _, _, path, law in written})
    for commit, day, path, law in written:
        source = f"{commit[:10]}:{path}"
        try:
            text, start = _parse_file(repository.run("cat-file", "blob", f"{commit}:{path}"), "")
            yield Version(names[law], text, source, start or date.fromisoformat(day))
        except (ValueError, SourceError) as error:
            skip(str(error) if isinstance(error, ValueError) else "not in the repository", source)


def _read_writings(repository: GitRepository) -> Iterator[tuple[str, str, str, int]]:
    """Yield commit, day, path and law of each written file; a moved file is the same law."""
    form = "--format=%x01%H %as"
    log = repository.run("log", "--reverse", "--diff-filter=AMD", "--no-renames", "-z", "--name-status", form)
    laws: dict[str, int] = {}  # of each existing file, by path
    gone: dict[str, int] = {}  # the last law of each file name that no longer exists
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
            yield commit, day, path, laws[path]
