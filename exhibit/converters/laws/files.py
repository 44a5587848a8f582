"""Reads the versions of laws, from dated files in a folder or from the history of a Git repository."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby, zip_longest
from pathlib import Path, PurePosixPath

from exhibit.converters.core.benchmark import Item, Tally
from exhibit.converters.core.titles import choose_unique_titles
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

    law: str  # the path of its folder or file; later the law's name, which is the last part of this path
    markdown: str
    source: str  # where it was read, for the counts
    start: date | None = None  # None if unknown
    end: date | None = None  # None for the last version

    @property
    def item(self) -> Item:
        """The name under which a conversion counts the version as kept or left out."""
        return Item("files", self.source)

    @property
    def days(self) -> dict[str, str | None]:
        """The first and the last day, as labels."""
        days = {"effective_from": self.start, "effective_to": self.end}
        return {name: day.isoformat() if day else None for name, day in days.items()}


def read_versions(source: Path, tally: Tally, *, since: date | None = None, as_of: date | None = None) -> list[Version]:
    """Return the versions of all laws that were in force from `since`, or on `as_of`, sorted by law and day."""
    if is_git_repository(source):
        with open_repository(source) as repository:
            versions = list(_read_history(repository, tally))
    else:
        versions = list(_read_folder(source, tally))
    if not versions:
        raise SourceError(f"{source}: no laws; expected LAW/DATE.md, LAW.md or a Git repository of such files")
    paths = {version.law: PurePosixPath(version.law) for version in versions}
    names = choose_unique_titles(
        {law: [path.name, "-".join(path.parts), "--".join(path.parts)] for law, path in paths.items()}
    )
    versions = [replace(version, law=names[version.law].replace("/", "-")) for version in versions]
    versions.sort(key=lambda version: (version.law, version.start or date.min))
    kept = []
    for _, group in groupby(versions, lambda version: version.law):
        given = list(group)
        last = {version.start: version for version in given}
        for version in given:
            if last[version.start] is not version:
                tally.leave_out(SAME_DAY, version.source, item=version.item)
        ordered = list(last.values())
        for version, following in zip_longest(ordered, ordered[1:]):
            end = following.start - timedelta(days=1) if following and following.start else None
            begun = as_of is None or version.start is None or version.start <= as_of
            ended = end is not None and any(day is not None and end < day for day in (since, as_of))
            if begun and not ended:
                kept.append(replace(version, end=end))
            else:
                tally.leave_out(OUT_OF_RANGE, version.source, item=version.item)
    if not kept:
        raise SourceError(
            f"{source}: none of its {len(versions)} versions was in force at the dates of --from and --as-of; "
            "choose other dates"
        )
    return kept


def _is_law(name: str) -> bool:
    return name.endswith(".md") and PurePosixPath(name).name.lower() not in _READ_ME


def _skip(reason: str, name: str, tally: Tally) -> None:
    tally.take([Item("files", name)])
    tally.fault(reason, name, item=Item("files", name))


def _parse(
    law: str, name: str, data: bytes, tally: Tally, *, dated: str = "", committed: str = ""
) -> Iterator[Version]:
    """Yield the version in a file; its first day comes from the file's name, its header, or its commit."""
    try:
        text = data.decode("utf-8-sig")
        stated = _IN_FORCE.search(text[:HEADER_CHARS])
        day = dated or (stated[1] if stated else committed)
        version = Version(law, text, name, date.fromisoformat(day) if day else None)
    except UnicodeDecodeError:
        _skip("the file is not in UTF-8", name, tally)
    except ValueError:
        _skip("the date in its name or header does not exist", name, tally)
    else:
        if text.strip():
            tally.take([version.item])
            yield version
        else:
            _skip("the file is empty", name, tally)


def _read_folder(folder: Path, tally: Tally) -> Iterator[Version]:
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
        except OSError as error:
            _skip(f"cannot be read: {error.strerror}", name.as_posix(), tally)
        else:
            yield from _parse(law.as_posix(), name.as_posix(), data, tally, dated=match[1] if match else "")


def _read_history(repository: GitRepository, tally: Tally) -> Iterator[Version]:
    """Yield the law files that each commit wrote; a version's day is the date in its header, else the commit's."""
    form = "--format=%x01%H %as"
    log = repository.run("log", "--reverse", "--diff-filter=AM", "--no-renames", "-z", "--name-status", form)
    for entry in log.decode("utf-8", "surrogateescape").split("\x01")[1:]:
        head, *words = entry.split("\x00")
        commit, _, day = head.strip().partition(" ")
        for path in filter(_is_law, words[1::2]):
            source = f"{commit[:10]}:{path}"
            try:
                data = repository.run("cat-file", "blob", f"{commit}:{path}")
            except SourceError:
                _skip("not in the repository", source, tally)
            else:
                yield from _parse(str(PurePosixPath(path).with_suffix("")), source, data, tally, committed=day)
