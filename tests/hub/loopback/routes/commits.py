"""Commits: how each file is to be sent, and all changes at once or none."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

from ..accounts import writable
from ..attributes import is_binary, is_large, is_tracked
from ..cards import check
from ..store import ATTRIBUTES, Commit, Entry, Repo, Store, below, folders, lfs_entry
from ..wire import REPO, REV, Call, HubError, Reply, give, route
from .discussions import open_pull
from .repos import KIND, at_revision, web_url


@route("POST", KIND + REPO + "/preupload/" + REV)
def preupload(call: Call) -> Reply:
    """Return, for each file, whether it goes to the storage or into the commit, and its id in the revision."""
    body = call.json()
    with call.hub.store.lock:
        repo, _ = writable(call, pull=call.flag("create_pr"))
        tree, store = at_revision(call, repo).tree, call.hub.store
        rules = store.read(tree[ATTRIBUTES]) if ATTRIBUTES in tree else b""
        told = []
        for file in body["files"]:
            large = is_tracked(file["path"], rules) or is_large(file["size"]) or is_binary(b64decode(file["sample"]))
            one = {"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
            entry = tree.get(file["path"])
            told.append({**one, "oid": entry.etag} if entry else one)
    return give({"files": told, "commitOid": at_revision(call, repo).oid})


@route("POST", KIND + REPO + "/commit/" + REV)
def commit(call: Call) -> Reply:
    """Make one commit of all that the lines of the body ask for, or refuse it and change nothing."""
    pull = call.flag("create_pr")
    with call.hub.store.lock:
        repo, token = writable(call, pull=pull)
        header, changes = _read(call)
        base = _base(call, repo, header.get("parentCommit"), pull=pull)
        tree = _apply(call.hub.store, repo, dict(base.tree), changes)
        if pull:
            discussion = open_pull(call, repo, header["summary"], token.user, draft=False, start=base.oid)
            ref = discussion.ref
        else:
            ref = str(repo.ref(call.parts["rev"]))
        message = header.get("description", "")
        made = call.hub.store.add(repo, tree, ref, header["summary"], token.user, message=message)
    told: dict[str, Any] = {
        "success": True,
        "commitUrl": f"{web_url(call, repo)}/commit/{made.oid}",
        "commitOid": made.oid,
        "hookOutput": "",
    }
    if pull:
        told["pullRequestUrl"] = f"{web_url(call, repo)}/discussions/{discussion.num}"
    return give(told)


def _read(call: Call) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Return the header and the changes of a commit; a body that was cut off, or has no header, is refused."""
    if call.request.headers["Content-Type"] != "application/x-ndjson":
        raise HubError(415, "Unsupported content type")
    try:
        lines = [json.loads(line) for line in call.body.decode().split("\n") if line]
        keyed = [(line["key"], line["value"]) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise HubError(400, f"Malformed body: {error}") from None
    if not keyed or keyed[0][0] != "header" or not keyed[0][1].get("summary"):
        raise HubError(400, "The first line must be a header with a summary")
    return keyed[0][1], keyed[1:]


def _base(call: Call, repo: Repo, parent: str | None, *, pull: bool) -> Commit:
    """Return the commit to build on; refuse it if the branch or pull request has moved since the client saw it."""
    ref = repo.ref(call.parts["rev"])
    if ref is None or ref.startswith("refs/tags/"):
        raise HubError(404, f"Invalid rev id: {call.parts['rev']}", code="RevisionNotFound")
    head = repo.commits[repo.refs[ref]]
    if parent is None:
        return head
    if pull:
        return at_revision(call, repo, parent)
    if not head.oid.startswith(parent):
        raise HubError(412, "A commit has happened since. Please refresh and try again.")
    return head


def _apply(
    store: Store, repo: Repo, tree: dict[str, Entry], changes: list[tuple[str, dict[str, Any]]]
) -> dict[str, Entry]:
    """Return the tree after all changes."""
    for key, value in changes:
        path = str(value["path"])
        if key == "file":
            tree[path] = _small(store, path, value)
        elif key == "lfsFile":
            tree[path] = _large(store, repo, value)
        elif key == "deletedFile":
            if tree.pop(path, None) is None:
                raise HubError(404, f"A file with this name doesn't exist: {path}", code="EntryNotFound")
        elif key == "deletedFolder":
            gone = below(tree, path.rstrip("/"))
            if not gone:
                raise HubError(404, f"A file with this name doesn't exist: {path}", code="EntryNotFound")
            tree = {name: entry for name, entry in tree.items() if name not in gone}
        else:
            raise HubError(400, f"Unknown key: {key}")
    both = folders(tree) & set(tree)
    if both:
        raise HubError(400, f"{min(both)} is both a file and a folder")
    return tree


def _check_path(path: str) -> None:
    parts = path.split("/")
    if not path or "" in parts or "." in parts or ".." in parts or ".git" in parts or "\0" in path:
        raise HubError(400, f"Invalid path: {path!r}")
    if len(path.encode()) > 4096 or any(len(part.encode()) > 255 for part in parts):
        raise HubError(400, f"Path too long: {path[:80]}…")


def _small(store: Store, path: str, value: dict[str, Any]) -> Entry:
    _check_path(path)
    try:
        content = (
            b64decode(value["content"], validate=True) if value["encoding"] == "base64" else value["content"].encode()
        )
    except Base64Error as error:
        raise HubError(400, f"{path}: {error}") from None
    if is_large(len(content)) or is_binary(content):
        raise HubError(400, f"Your push was rejected because it contains binary or large files: {path}")
    errors = check(content.decode())[0] if path == "README.md" else []
    if errors:
        raise HubError(400, "Invalid metadata in README.md.\n" + "\n".join(errors))
    return store.put_blob(content)


def _large(store: Store, repo: Repo, value: dict[str, Any]) -> Entry:
    _check_path(value["path"])
    oid = value["oid"]
    if value.get("algo") != "sha256" or oid not in repo.lfs or oid not in store.objects:
        raise HubError(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
    size = len(store.objects[oid])
    if value.get("size", size) != size:
        raise HubError(400, f"LFS pointer with a wrong size: {value['path']}")
    return lfs_entry(oid, size)
