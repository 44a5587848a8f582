"""What is sent, and what that changes on the Hub: known before anything is sent, without a download."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from exhibit.hub._loading import addressed, corpus_patterns, without_documents
from exhibit.hub._remote import RemoteFile
from exhibit.hub.card import holds_documents
from exhibit.schemas.bundle import CARD, CORPUS, INFO
from exhibit.schemas.models import BundleInfo
from exhibit.storage.bundle import sha256_of

_SHOWN = 12
"""Files of one kind that are listed by name."""
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Content:
    """A file as it is sent."""

    source: Path | bytes
    size: int
    sha256: str

    def is_at(self, remote: RemoteFile) -> bool:
        """Return whether the Hub has this content already."""
        if remote.sha256 is not None:
            return remote.sha256 == self.sha256
        return remote.size == self.size and remote.blob == self._blob()

    def data(self) -> bytes:
        """Return the content itself."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()

    def _blob(self) -> str:
        data = self.data()
        # git's own name for a content: not a matter of security
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


Contents = Mapping[str, Content]


def contents_of(root: Path, info: BundleInfo, *, repo_id: str, corpus: bool) -> dict[str, Content]:
    """Return every file that is sent, by path: what bundle.json lists, the card under its new name, and itself."""
    own = (root / CARD).read_bytes()
    tables = () if corpus else corpus_patterns(own)
    sent = {}
    for name, entry in info.files.items():
        shown = holds_documents(name) or any(fnmatchcase(name, pattern) for pattern in tables)
        if corpus or not shown:
            sent[name] = Content(root / name, entry.bytes, entry.sha256)
    card = addressed(own if corpus else without_documents(own), repo_id)
    sent[CARD] = Content(card, len(card), hashlib.sha256(card).hexdigest())
    sent[INFO] = Content(root / INFO, (root / INFO).stat().st_size, sha256_of(root / INFO))
    return dict(sorted(sent.items()))


@dataclass(frozen=True)
class Plan:
    """The difference between a bundle and a branch on the Hub."""

    contents: Contents
    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def sent(self) -> tuple[str, ...]:
        """What goes over the wire."""
        return tuple(sorted((*self.new, *self.changed)))

    @property
    def is_empty(self) -> bool:
        """Whether the Hub holds exactly this already."""
        return not (self.new or self.changed or self.removed)

    def is_at(self, files: Mapping[str, RemoteFile]) -> bool:
        """Return whether a commit with these files is this plan, carried out."""
        there = all(name in files and content.is_at(files[name]) for name, content in self.contents.items())
        return there and not any(name in files for name in self.removed)


def compare(contents: Contents, remote: Mapping[str, RemoteFile], *, recorded: Collection[str]) -> Plan:
    """Return what changes; a file goes only when it is under corpus/ or the bundle on the Hub records it as its own."""
    there = [name for name in contents if name in remote]
    same = {name for name in there if contents[name].is_at(remote[name])}
    ours = [name for name in remote if name not in contents and (name.startswith(f"{CORPUS}/") or name in recorded)]
    return Plan(
        contents,
        new=tuple(name for name in contents if name not in remote),
        changed=tuple(name for name in there if name not in same),
        unchanged=tuple(name for name in there if name in same),
        removed=tuple(sorted(ours)),
    )


def listing(plan: Plan) -> Iterator[str]:
    """Yield what is sent and what changes, in lines."""
    size = sum(plan.contents[name].size for name in plan.sent)
    yield f"to send: {len(plan.sent):,} of {len(plan.contents):,} files, {amount(size)} of {amount(_total(plan))}"
    for word, names in (("new", plan.new), ("changed", plan.changed), ("removed", plan.removed)):
        for name in names[:_SHOWN]:
            yield f"  {word:<9} {name}" + (f"  ({amount(plan.contents[name].size)})" if name in plan.contents else "")
        if len(names) > _SHOWN:
            yield f"  {word:<9} … and {len(names) - _SHOWN:,} more"
    if plan.unchanged:
        yield f"  unchanged {len(plan.unchanged):,} files"


def _total(plan: Plan) -> int:
    return sum(content.size for content in plan.contents.values())


def amount(size: float) -> str:
    """Return a number of bytes for reading."""
    if size < 1000:
        return f"{size:.0f} bytes"
    unit = next((unit for unit in ("kB", "MB") if size < 1000 * _UNITS[unit]), "GB")
    return f"{size / _UNITS[unit]:.1f} {unit}"
