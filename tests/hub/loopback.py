"""A fake of the Hugging Face Hub on loopback: as much of its API as publish, pull and `load_dataset` use."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote

import yaml

from tests.loopback import Handler, Request, run_server

LARGE_BYTES = 10_000
"""Files of at least this size are stored as large files; on the Hub, the limit is 10 MB."""


def blob_oid(content: bytes) -> str:
    """Return the id that Git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def etag_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if len(content) >= LARGE_BYTES else blob_oid(content)


@dataclass(frozen=True)
class Commit:
    oid: str
    title: str
    files: dict[str, bytes]


@dataclass
class Repo:
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def add(self, files: dict[str, bytes], title: str, branch: str = "main") -> Commit:
        seed = f"{len(self.commits)} {branch} {title} {sorted(files)}"
        commit = Commit(hashlib.sha1(seed.encode("utf-8", "surrogatepass")).hexdigest(), title, files)
        self.commits[commit.oid] = commit
        self.refs[branch] = commit.oid
        return commit

    def find(self, revision: str) -> Commit | None:
        return self.commits.get(self.refs.get(revision.removeprefix("refs/heads/"), revision))


class FakeHubError(Exception):
    def __init__(self, status: int, message: str, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class LoopbackHub:
    """A running fake Hub; `unknown` lists the requests that it cannot answer."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.tokens: dict[str, tuple[str, str]] = {}
        self.storage: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.unknown: list[str] = []
        self.faults: list[list[Any]] = []
        self.url = ""

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[LoopbackHub]:
        hub = cls()
        with run_server(type("Handler", (_Handler,), {"hub": hub})) as hub.url:
            yield hub

    def token(self, user: str, role: str = "write") -> str:
        value = f"hf_{hashlib.sha1(f'{user} {role}'.encode()).hexdigest()[:34]}"
        self.tokens[value] = (user, role)
        return value

    def commit(self, repo_id: str, files: dict[str, bytes]) -> Commit:
        """Commit additional files as another user."""
        repo = self.repos.setdefault(repo_id, Repo())
        before = repo.find("main")
        return repo.add({**(before.files if before else {}), **files}, "by another user")

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        commit = self.repos[repo_id].find(revision)
        assert commit is not None
        return {name: content for name, content in commit.files.items() if name != ".gitattributes"}

    def fail(self, pattern: str, status: int, times: int = 1) -> None:
        """Answer with an error the next requests whose method and path match a pattern."""
        self.faults.append([pattern, status, times])


ROUTES: list[tuple[str, str]] = []
_REPO = r"(?P<repo>[^/]+/[^/]+)"
_REV = r"(?P<rev>[^/]+)"


def route(pattern: str) -> Any:
    def register(method: Any) -> Any:
        ROUTES.append((pattern.replace("REPO", _REPO).replace("REV", _REV), method.__name__))
        return method

    return register


class _Handler(Handler):
    hub: LoopbackHub

    def handle_request(self, request: Request) -> None:
        asked = f"{request.method} {request.path}"
        self.hub.requests.append(asked)
        try:
            for fault in self.hub.faults:
                if fault[2] and re.search(fault[0], asked):
                    fault[2] -= 1
                    raise FakeHubError(fault[1], "the Hub is in trouble")
            method = "GET" if self.command == "HEAD" else self.command
            for pattern, name in ROUTES:
                if match := re.fullmatch(pattern, f"{method} {request.path}"):
                    values = {key: unquote(value or "") for key, value in match.groupdict().items()}
                    getattr(self, name)(request.data, request.query, **values)
                    return
            self.hub.unknown.append(asked)
            raise FakeHubError(404, "not found")
        except FakeHubError as error:
            headers = {"X-Error-Message": str(error), **({"X-Error-Code": error.code} if error.code else {})}
            self.give({"error": str(error)}, error.status, headers)

    # ------------------------------------------------------------ who may do what

    def user(self) -> tuple[str, str] | None:
        header = self.headers["Authorization"]
        if header and header.removeprefix("Bearer ") not in self.hub.tokens:
            raise FakeHubError(401, "Invalid credentials in Authorization header")
        return self.hub.tokens[header.removeprefix("Bearer ")] if header else None

    def read(self, repo_id: str) -> Repo:
        repo, user = self.hub.repos.get(repo_id), self.user()
        if repo is None or (repo.private and (user is None or user[0] != repo_id.split("/")[0])):
            raise FakeHubError(404 if user else 401, "Repository not found", "RepoNotFound")
        return repo

    def write(self, repo_id: str, *, pull: bool = False) -> Repo:
        repo, user = self.read(repo_id), self.user()
        if user is None or user[1] == "read" or (user[0] != repo_id.split("/")[0] and not pull):
            raise FakeHubError(403, "Forbidden: you must use a write token")
        return repo

    def at(self, repo: Repo, revision: str) -> Commit:
        commit = repo.find(revision or "main")
        if commit is None:
            raise FakeHubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return commit

    # ------------------------------------------------------------ routes

    @route(r"GET /api/whoami-v2")
    def whoami(self, body: bytes, query: dict[str, str]) -> None:
        user = self.user()
        if user is None:
            raise FakeHubError(401, "Invalid username or password.")
        self.give({"name": user[0], "type": "user", "auth": {"accessToken": {"role": user[1]}}, "orgs": []})

    @route(r"POST /api/validate-yaml")
    def validate_yaml(self, body: bytes, query: dict[str, str]) -> None:
        head = json.loads(body)["content"].split("---\n")[1]
        errors = [] if "license" in yaml.safe_load(head) else [{"message": '"license" is required'}]
        self.give({"errors": errors, "warnings": []}, 400 if errors else 200)

    @route(r"POST /api/repos/create")
    def create(self, body: bytes, query: dict[str, str]) -> None:
        fields, user = json.loads(body), self.user()
        repo_id = f"{fields.get('organization') or (user or ('',))[0]}/{fields['name']}"
        if user is None or user[1] == "read" or repo_id.split("/")[0] != user[0]:
            raise FakeHubError(403, "You don't have the rights to create a dataset")
        if repo_id in self.hub.repos:
            self.give({"error": "exists", "url": f"{self.hub.url}/datasets/{repo_id}"}, 409)
            return
        private = fields.get("visibility") == "private" or bool(fields.get("private"))
        self.hub.repos[repo_id] = Repo(private)
        self.hub.repos[repo_id].add({".gitattributes": b""}, "initial commit")
        self.give({"url": f"{self.hub.url}/datasets/{repo_id}"})

    @route(r"GET /api/datasets/REPO(?:/revision/REV)?")
    def info(self, body: bytes, query: dict[str, str], repo: str, rev: str) -> None:
        found = self.read(repo)
        commit = self.at(found, rev)
        files = [{"rfilename": name} for name in sorted(commit.files)]
        dates = {"lastModified": "2026-01-01T00:00:00.000Z", "createdAt": "2026-01-01T00:00:00.000Z"}
        self.give({"id": repo, "sha": commit.oid, "private": found.private, "siblings": files, "tags": [], **dates})

    def describe(self, path: str, commit: Commit) -> dict[str, Any]:
        if path not in commit.files:
            return {"type": "directory", "oid": blob_oid(path.encode()), "size": 0, "path": path}
        content = commit.files[path]
        entry: dict[str, Any] = {"type": "file", "oid": blob_oid(content), "size": len(content), "path": path}
        if len(content) >= LARGE_BYTES:
            entry["lfs"] = {"oid": etag_of(content), "size": len(content), "pointerSize": 130}
        return entry

    @route(r"GET /api/datasets/REPO/tree/REV(?:/(?P<path>.*))?")
    def tree(self, body: bytes, query: dict[str, str], repo: str, rev: str, path: str) -> None:
        commit = self.at(self.read(repo), rev)
        inside = [name for name in commit.files if name.startswith(f"{path}/" if path else "")]
        if path and not inside:
            raise FakeHubError(404, f"{path} does not exist", "EntryNotFound")
        depth = path.count("/") + 2 if path else 1
        parents = {"/".join(name.split("/")[:n]) for name in inside for n in range(depth, name.count("/") + 1)}
        names = sorted({*inside, *parents})
        if query.get("recursive", "").lower() not in ("true", "1"):
            names = [name for name in names if name.count("/") + 1 == depth]
        self.give([self.describe(name, commit) for name in names])

    @route(r"POST /api/datasets/REPO/paths-info/REV")
    def paths_info(self, body: bytes, query: dict[str, str], repo: str, rev: str) -> None:
        commit = self.at(self.read(repo), rev)
        form = json.loads(body) if body.startswith(b"{") else parse_qs(body.decode())
        folders = {"/".join(name.split("/")[:n]) for name in commit.files for n in range(1, name.count("/") + 1)}
        known = [path for path in form.get("paths", []) if path in commit.files or path in folders]
        self.give([self.describe(path, commit) for path in known])

    @route(r"GET /datasets/REPO/resolve/REV/(?P<path>.+)")
    def resolve(self, body: bytes, query: dict[str, str], repo: str, rev: str, path: str) -> None:
        commit = self.at(self.read(repo), rev)
        if path not in commit.files:
            self.give({}, 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit.oid})
            return
        content = commit.files[path]
        headers = {"ETag": f'"{etag_of(content)}"', "X-Repo-Commit": commit.oid, "Accept-Ranges": "bytes"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers["Range"] or "")
        if not wanted:
            self.give(content, 200, headers)
            return
        first, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        self.give(content[first : last + 1], 206, headers)

    @route(r"POST /api/datasets/REPO/branch/(?P<name>[^/]+)")
    def branch(self, body: bytes, query: dict[str, str], repo: str, name: str) -> None:
        self.set_ref(self.write(repo), name, "main")

    @route(r"POST /api/datasets/REPO/tag/REV")
    def tag(self, body: bytes, query: dict[str, str], repo: str, rev: str) -> None:
        self.set_ref(self.write(repo), json.loads(body)["tag"], rev)

    def set_ref(self, repo: Repo, name: str, revision: str) -> None:
        if name in repo.refs:
            raise FakeHubError(409, f"Reference already exists: {name}")
        repo.refs[name] = self.at(repo, revision).oid
        self.give(b"")

    @route(r"POST /api/datasets/REPO/preupload/REV")
    def preupload(self, body: bytes, query: dict[str, str], repo: str, rev: str) -> None:
        commit = self.at(self.write(repo, pull="create_pr" in query), rev)
        answers = []
        for file in json.loads(body)["files"]:
            mode = "lfs" if file["size"] >= LARGE_BYTES else "regular"
            entry = {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
            known = {"oid": etag_of(commit.files[file["path"]])} if file["path"] in commit.files else {}
            answers.append({**entry, **known})
        self.give({"files": answers})

    @route(r"POST /datasets/REPO\.git/info/lfs/objects/batch")
    def batch(self, body: bytes, query: dict[str, str], repo: str) -> None:
        objects = []
        for item in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/upload/{item['oid']}"}}
            objects.append({**item, **({} if item["oid"] in self.hub.storage else {"actions": upload})})
        self.give({"transfer": "basic", "objects": objects, "hash_algo": "sha256"})

    @route(r"PUT /upload/(?P<oid>[0-9a-f]{64})")
    def upload(self, body: bytes, query: dict[str, str], oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            raise FakeHubError(400, "BadDigest")
        self.hub.storage[oid] = body
        self.give(b"")

    @route(r"POST /api/datasets/REPO/commit/REV")
    def make_commit(self, body: bytes, query: dict[str, str], repo: str, rev: str) -> None:
        found = self.write(repo, pull="create_pr" in query)
        head, *changes = [json.loads(line) for line in body.decode().split("\n") if line]
        base = self.at(found, rev)
        if head["value"].get("parentCommit") not in (None, base.oid):
            raise FakeHubError(412, "A commit has happened since. Please refresh and try again.")
        files = dict(base.files)
        for change in changes:
            value = change["value"]
            if change["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif change["key"] == "lfsFile":
                files[value["path"]] = self.hub.storage[value["oid"]]
            else:
                del files[value["path"]]
        number = len([name for name in found.refs if name.startswith("refs/pr/")]) + 1
        branch = f"refs/pr/{number}" if "create_pr" in query else rev
        commit = found.add(files, head["value"]["summary"], branch)
        url = f"{self.hub.url}/datasets/{repo}"
        pull = {"pullRequestUrl": f"{url}/discussions/{number}"} if "create_pr" in query else {}
        self.give({"success": True, "commitUrl": f"{url}/commit/{commit.oid}", "commitOid": commit.oid, **pull})

    @route(r"GET /(?:info|parquet)|GET /api/(?:telemetry/.*|agent-harnesses)")  # the dataset viewer, by the proxy
    def not_offered(self, body: bytes, query: dict[str, str]) -> None:
        raise FakeHubError(500, "not ready", "ResponseNotReady")
