"""What the hub keeps: repositories with their commits and refs, small files as git blobs, large ones by sha256."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha1, sha256
from itertools import pairwise

from .attributes import DEFAULT_ATTRIBUTES, add_rules, is_binary, is_large, is_tracked

ATTRIBUTES = ".gitattributes"


def blob_oid(content: bytes) -> str:
    """Return the id that Git gives to a file's content."""
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Entry:
    """A file in a commit."""

    oid: str
    size: int
    lfs: str | None = None
    """The sha256 of a large file; its `oid` is then that of the pointer file, as in git."""

    @property
    def etag(self) -> str:
        """The Hub's id of the content: the sha256 of a large file, the Git blob id of a small one."""
        return self.lfs or self.oid


def pointer(digest: str, size: int) -> bytes:
    """Return the pointer file that git holds in place of a large file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n".encode()


def lfs_entry(digest: str, size: int) -> Entry:
    """Return the entry of a large file."""
    return Entry(blob_oid(pointer(digest, size)), size, digest)


@dataclass(frozen=True)
class Commit:
    """A commit with all its files."""

    oid: str
    title: str
    message: str
    author: str
    date: str
    parents: tuple[str, ...]
    tree: Mapping[str, Entry] = field(repr=False)


@dataclass
class Discussion:
    """A discussion or a pull request."""

    num: int
    title: str
    author: str
    date: str
    status: str
    pull: bool
    base: str = "refs/heads/main"
    events: list[dict[str, object]] = field(default_factory=list)
    merged: str | None = None

    @property
    def ref(self) -> str:
        """The ref that holds the commits of a pull request."""
        return f"refs/pr/{self.num}"


@dataclass
class Repo:
    """A repository."""

    kind: str
    """`model`, `dataset` or `space`."""
    id: str
    private: bool
    created: str
    refs: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    discussions: dict[int, Discussion] = field(default_factory=dict)
    lfs: set[str] = field(default_factory=set)
    """The large files that may be named in a commit here."""

    def ref(self, revision: str) -> str | None:
        """Return the full name of the branch, tag or pull request that a revision names."""
        names = (revision, f"refs/heads/{revision}", f"refs/tags/{revision}", f"refs/{revision}")
        return next((name for name in names if name in self.refs), None)

    def find(self, revision: str) -> Commit | None:
        """Return the commit that a branch, a tag, a ref or the start of an oid names."""
        ref = self.ref(revision)
        if ref:
            return self.commits[self.refs[ref]]
        if not re.fullmatch(r"[0-9a-f]{7,40}", revision):
            return None
        return next((commit for oid, commit in self.commits.items() if oid.startswith(revision)), None)

    def history(self, revision: str) -> list[Commit]:
        """Return a commit and its ancestors, newest first."""
        commit = self.find(revision)
        found = []
        while commit:
            found.append(commit)
            commit = self.commits[commit.parents[0]] if commit.parents else None
        return found

    def last_change(self, path: str, revision: str) -> Commit:
        """Return the commit in which a file or folder last changed."""
        history = self.history(revision)
        now = below(history[0].tree, path)
        for newer, older in pairwise(history):
            if below(older.tree, path) != now:
                return newer
        return history[-1]


def below(tree: Mapping[str, Entry], folder: str) -> dict[str, Entry]:
    """Return a file, or the files under a folder; all of them for the empty name."""
    if not folder:
        return dict(tree)
    return {path: entry for path, entry in tree.items() if path == folder or path.startswith(folder + "/")}


def folders(paths: Iterable[str]) -> set[str]:
    """Return every folder that contains one of the files, directly or indirectly."""
    return {"/".join(parts[:end]) for parts in (path.split("/") for path in paths) for end in range(1, len(parts))}


class Store:
    """All repositories and their content; hold `lock` to read and change them in one step."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.repos: dict[tuple[str, str], Repo] = {}
        self.blobs: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}
        self._ticks = 0

    def now(self) -> str:
        """Return the Hub's time, which advances by a second with each call."""
        self._ticks += 1
        moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._ticks)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def create(self, kind: str, id: str, *, private: bool, author: str) -> Repo:
        """Create a repository, with the first commit that the Hub makes by itself."""
        repo = self.repos[kind, id] = Repo(kind, id, private, self.now())
        self.add(repo, {ATTRIBUTES: self.put_blob(DEFAULT_ATTRIBUTES)}, "refs/heads/main", "initial commit", author)
        return repo

    def put_blob(self, content: bytes) -> Entry:
        """Keep a small file."""
        oid = blob_oid(content)
        self.blobs[oid] = content
        return Entry(oid, len(content))

    def put_object(self, content: bytes) -> str:
        """Keep a large file; return its sha256."""
        digest = sha256(content).hexdigest()
        self.objects[digest] = content
        return digest

    def put(self, repo: Repo, path: str, content: bytes) -> Entry:
        """Store a file as a blob or as a large file, as the Hub would choose."""
        commit = repo.find("main")
        rules = self.read(commit.tree[ATTRIBUTES]) if commit and ATTRIBUTES in commit.tree else b""
        if not content or not (is_tracked(path, rules) or is_large(len(content)) or is_binary(content[:512])):
            return self.put_blob(content)
        digest = self.put_object(content)
        repo.lfs.add(digest)
        return lfs_entry(digest, len(content))

    def read(self, entry: Entry) -> bytes:
        """Return a file's content."""
        return self.objects[entry.lfs] if entry.lfs else self.blobs[entry.oid]

    def add(
        self,
        repo: Repo,
        tree: dict[str, Entry],
        ref: str,
        title: str,
        author: str,
        *,
        message: str = "",
        parents: tuple[str, ...] | None = None,
    ) -> Commit:
        """Commit a whole tree and move a ref to the commit; the Hub's own rules are applied to the tree."""
        tree = self._track(tree)
        if parents is None:
            parents = (repo.refs[ref],) if ref in repo.refs else ()
        date = self.now()
        names = "\n".join(f"{path} {entry.oid}" for path, entry in sorted(tree.items()))
        oid = sha1("\n".join((repo.kind, repo.id, *parents, title, date, names)).encode()).hexdigest()
        commit = repo.commits[oid] = Commit(oid, title, message, author, date, parents, tree)
        repo.refs[ref] = oid
        return commit

    def _track(self, tree: dict[str, Entry]) -> dict[str, Entry]:
        """Add rules to .gitattributes for large files that no rule covers, as the Hub does in the same commit."""
        rules = self.read(tree[ATTRIBUTES]) if ATTRIBUTES in tree else b""
        missing = [path for path, entry in tree.items() if entry.lfs and not is_tracked(path, rules)]
        return {**tree, ATTRIBUTES: self.put_blob(add_rules(rules, missing))} if missing else tree
