"""A Hub on this machine for the tests: the real, unpatched clients publish to it, list, stream and load from it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Self

from . import routes as routes  # fills the table of routes
from .accounts import Role, Token
from .faults import Fault, Faults
from .server import Server
from .store import Commit, Entry, Repo, Store
from .wire import Request

GRANTED = ("repo.content.read", "repo.write")


class LoopbackHub:
    """A running Hub: its content, the requests it received, and its faults."""

    def __init__(self, *, multipart: int = 8 * 1024 * 1024, page: int = 1000) -> None:
        self.store = Store()
        self.tokens: dict[str, Token] = {}
        self.requests: list[Request] = []
        """Every request, in order of arrival."""
        self.unknown: list[str] = []
        """Requests that no route answers: a test should find none."""
        self.crashes: list[str] = []
        """Tracebacks of the hub's own defects: a test should find none."""
        self.faults = Faults()
        self.multipart = multipart
        """Files larger than this are uploaded in parts of this size."""
        self.page = page
        """How many files a page of a listing has; the Hub's number is 1000, and 50 with `expand`."""
        self.uploads: dict[str, dict[int, bytes]] = {}
        """Parts that have arrived of uploads that are not complete."""
        self.xorbs: dict[str, list[bytes]] = {}
        """Chunks that have arrived, by the name of what they came in."""
        self._server = Server(self)
        port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{port}"
        self.storage_url = f"http://localhost:{port}"
        """Where large files are: another host for the client, so that it must not send the token there."""

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.stop()

    def token(
        self,
        user: str = "me",
        role: Role = "write",
        *,
        scopes: Mapping[str, tuple[str, ...]] | None = None,
        orgs: Mapping[str, str] | None = None,
    ) -> str:
        """Return a new token; by default a fine-grained one may write in its user's whole namespace."""
        value = "hf_" + sha256(f"{user} {role} {len(self.tokens)}".encode()).hexdigest()[:34]
        if role == "finegrained" and scopes is None:
            scopes = {user: GRANTED}
        self.tokens[value] = Token(value, user, role, dict(scopes or {}), dict(orgs or {}))
        return value

    def fault(self, method: str | None = None, path: str = "", **fault: object) -> Fault:
        """Plant a fault (see `Fault`); its `hits` says how often it happened."""
        return self.faults.plant(Fault(method, path, **fault))  # type: ignore[arg-type]

    def create(self, repo_id: str, *, private: bool = False, repo_type: str = "dataset") -> Repo:
        """Create a repository directly, without the client."""
        with self.store.lock:
            return self.store.create(repo_type, repo_id, private=private, author=repo_id.split("/")[0])

    def repo(self, repo_id: str, *, repo_type: str = "dataset") -> Repo:
        """Return a repository."""
        return self.store.repos[repo_type, repo_id]

    def commit(
        self,
        repo_id: str,
        files: Mapping[str, bytes | None],
        *,
        title: str = "Somebody else's change",
        revision: str = "main",
        user: str = "somebody",
        repo_type: str = "dataset",
    ) -> Commit:
        """Commit files directly, without the client; create the repository if it does not exist.

        A file whose content is None is deleted.
        """
        with self.store.lock:
            if (repo_type, repo_id) not in self.store.repos:
                self.create(repo_id, repo_type=repo_type)
            repo = self.repo(repo_id, repo_type=repo_type)
            ref = repo.ref(revision)
            assert ref, f"{repo_id} has no revision {revision}"
            tree: dict[str, Entry] = dict(repo.commits[repo.refs[ref]].tree)
            for path, content in files.items():
                if content is None:
                    del tree[path]
                else:
                    tree[path] = self.store.put(repo, path, content)
            return self.store.add(repo, tree, ref, title, user)

    def commits(self, repo_id: str, revision: str = "main", *, repo_type: str = "dataset") -> list[Commit]:
        """Return the commits of a revision, the newest first; the last is the Hub's own."""
        with self.store.lock:
            return self.repo(repo_id, repo_type=repo_type).history(revision)

    def files(self, repo_id: str, revision: str = "main", *, repo_type: str = "dataset") -> dict[str, bytes]:
        """Return every file of a revision, including the `.gitattributes` that the Hub adds to every repository."""
        with self.store.lock:
            commit = self.repo(repo_id, repo_type=repo_type).find(revision)
            assert commit, f"{repo_id} has no revision {revision}"
            return {path: self.store.read(entry) for path, entry in commit.tree.items()}

    def asked(self, method: str | None = None, path: str = "") -> list[Request]:
        """Return the requests of a method whose path holds a text."""
        return [one for one in self.requests if method in (None, one.method) and path in one.path]
