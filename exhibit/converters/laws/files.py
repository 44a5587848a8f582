"""Reads the versions of laws, from dated files in a folder or from the history of a Git repository."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from exhibit.converters.core.benchmark import Item, Tally
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


@dataclass(frozen=True)
class Version:
    """A version of a law: its text, and the first and last day on which it is in force."""

    law: str  # the name of its folder or its file
    markdown: str
    source: str  # where it was read, for the account
    start: date | None = None  # None if unknown
    end: date | None = None  # None for the last version

    @property
    def item(self) -> Item:
        """The name by which a conversion counts the version as kept or left out."""
        return Item("files", self.source)


class _File(NamedTuple):
    """A file that may be a version of a law: the law's path, the file's name for messages, and its content."""

    law: PurePosixPath
    name: str
    data: bytes
    dated: str  # the day in its name, if it has one
    committed: str = ""  # the day to take if neither the name nor the header has one


def read_versions(source: Path, tally: Tally, *, since: date | None = None, as_of: date | None = None) -> list[Version]:
    """Return the versions of all laws that were in force from `since`, or on `as_of`, sorted by law and day."""
    if is_git_repository(source):
        with open_repository(source) as repository:
            files = list(_read_history(repository, tally))
    else:
        files = list(_read_files(source, tally))
    names = _make_distinct_names({file.law for file in files})
    versions = []
    for file in files:
        try:
            text, start = _parse_file(file)
        except ValueError as error:
            _skip(str(error), file.name, tally)
        else:
            versions.append(Version(names[file.law], text, file.name, start))
    if not versions:
        raise SourceError(f"{source}: no laws; expected LAW/DATE.md, LAW.md or a Git repository of such files")
    tally.take(version.item for version in versions)
    versions.sort(key=lambda version: (version.law, version.start or date.min))
    kept = []
    for _, group in groupby(versions, lambda version: version.law):
        for version in _date_versions(list(group), tally):
            begun = as_of is None or version.start is None or version.start <= as_of
            ended = version.end is not None and any(day is not None and version.end < day for day in (since, as_of))
            if begun and not ended:
                kept.append(version)
            else:
                tally.leave_out(OUT_OF_RANGE, version.source, item=version.item)
    if not kept:
        raise SourceError(
            f"{source}: none of its {len(versions)} versions was in force at the dates of --from and --as-of; "
            "choose other dates"
        )
    return kept


def _date_versions(versions: list[Version], tally: Tally) -> list[Version]:
    """Return the sorted versions of a law, each with its last day; of two for one day, the later in the list."""
    last = {version.start: version for version in versions}
    for version in versions:
        if last[version.start] is not version:
            tally.leave_out(SAME_DAY, version.source, item=version.item)
    ordered = list(last.values())
    ends = [version.start - timedelta(days=1) if version.start else None for version in ordered[1:]]
    return [replace(version, end=end) for version, end in zip(ordered, [*ends, None], strict=True)]


def _skip(reason: str, name: str, tally: Tally) -> None:
    tally.take([Item("files", name)])
    tally.fault(reason, name, item=Item("files", name))


def _parse_file(file: _File) -> tuple[str, date | None]:
    """Return a file's text and its first day; raise ValueError with the reason if it is invalid."""
    if len(file.data) > MAX_FILE_BYTES:
        raise ValueError(f"the file has more than {MAX_FILE_BYTES:,} bytes")
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not in UTF-8") from None
    if not text.strip():
        raise ValueError("the file is empty")
    stated = _IN_FORCE.search(text[:HEADER_CHARS])
    day = file.dated or (stated[1] if stated else file.committed)
    try:
        return text, date.fromisoformat(day) if day else None
    except ValueError:
        raise ValueError("the date in its name or header does not exist") from None


def _is_law(name: str) -> bool:
    return name.endswith(".md") and PurePosixPath(name).name.lower() not in _READ_ME


def _make_distinct_names(laws: set[PurePosixPath]) -> dict[PurePosixPath, str]:
    """Return a distinct name for each law: the last part of its path, or all parts if several laws share the last."""
    sharing = defaultdict(set)
    for law in laws:
        sharing[law.name].add(law)
    names = {law: law.name if len(sharing[law.name]) == 1 else "-".join(law.parts) for law in laws}
    used: dict[str, PurePosixPath] = {}
    for law in sorted(laws, key=lambda path: (len(path.parts), path)):
        while used.setdefault(names[law], law) != law:  # `a-b` may be a law's own name
            names[law] += "-2"
    return names


def _read_files(folder: Path, tally: Tally) -> Iterator[_File]:
    for path, why in list_left_out(folder):
        if _is_law(path.name):
            _skip(f"a {why}", path.relative_to(folder).as_posix(), tally)
    for path in list_files(folder):
        name, match = path.relative_to(folder), _DATED.fullmatch(path.name)
        if not _is_law(path.name):
            continue
        # for DATE.md the folder is the law; without a folder, and for any other file, the file is the law
        law = name.parent if match and path.parent != folder else name.with_suffix("")
        try:
            data = read_regular(path, most=MAX_FILE_BYTES)
            yield _File(PurePosixPath(law.as_posix()), name.as_posix(), data, match[1] if match else "")
        except OSError as error:
            _skip(f"cannot be read: {error.strerror}", name.as_posix(), tally)


def _read_history(repository: GitRepository, tally: Tally) -> Iterator[_File]:
    """Yield the files of laws that each commit wrote; its header's date, else the commit's, is a version's day."""
    form = "--format=%x01%H %as"
    log = repository.run("log", "--reverse", "--diff-filter=AM", "--no-renames", "-z", "--name-status", form)
    for entry in log.decode("utf-8", "surrogateescape").split("\x01")[1:]:
        head, *words = entry.split("\x00")
        commit, _, day = head.strip().partition(" ")
        for path in filter(_is_law, words[1::2]):
            source = f"{commit[:10]}:{path}"
            try:
                data = repository.run("cat-file", "blob", f"{commit}:{path}")
                yield _File(PurePosixPath(path).with_suffix(""), source, data, "", day)
            except SourceError:
                _skip("not in the repository", source, tally)
