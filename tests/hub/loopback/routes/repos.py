"""Repositories: create, delete, settings, and what there is to know about one."""

from __future__ import annotations

from typing import Any

from ..accounts import may_create, readable, signed_in, writable
from ..cards import front_matter, tags
from ..store import Commit, Entry, Repo, pointer
from ..wire import REPO, REV, Call, HubError, Reply, give, route

KIND = r"/api/(?P<kind>models|datasets|spaces)/"


def web_url(call: Call, repo: Repo) -> str:
    """Return the address of a repository's page."""
    prefix = "" if repo.kind == "model" else f"{repo.kind}s/"
    return f"{call.hub.url}/{prefix}{repo.id}"


def at_revision(call: Call, repo: Repo, revision: str = "") -> Commit:
    """Return the commit of a request's revision; refuse an unknown revision."""
    revision = revision or call.parts.get("rev") or "main"
    commit = repo.find(revision)
    if commit is None:
        raise HubError(404, f"Invalid rev id: {revision}", code="RevisionNotFound")
    return commit


@route("POST", r"/api/repos/create")
def create(call: Call) -> Reply:
    """Create a repository; for one that exists, return 409 with its address, which `exist_ok` needs."""
    token, body = signed_in(call), call.json()
    kind, namespace = body.get("type", "model"), body.get("organization") or token.user
    id = f"{namespace}/{body['name']}"
    with call.hub.store.lock:
        repo = call.hub.store.repos.get((kind, id))
        may_create(token, kind, namespace)
        if repo:
            told = {"error": f"You already created this {kind} repo", "url": web_url(call, repo)}
            return give(told, status=409, headers={"X-Error-Message": told["error"]})
        private = body.get("visibility") == "private" or bool(body.get("private"))
        repo = call.hub.store.create(kind, id, private=private, author=token.user)
    return give({"url": web_url(call, repo), "name": id, "id": repo.created})


@route("DELETE", r"/api/repos/delete")
def delete(call: Call) -> Reply:
    """Delete a repository."""
    token, body = signed_in(call), call.json()
    kind = body.get("type", "model")
    call.parts = {"kind": kind + "s", "repo": f"{body.get('organization') or token.user}/{body['name']}"}
    with call.hub.store.lock:
        repo, _ = writable(call)
        del call.hub.store.repos[repo.kind, repo.id]
    return Reply()


@route("PUT", KIND + REPO + r"/settings")
def settings(call: Call) -> Reply:
    """Make a repository private or public."""
    repo, _ = writable(call)
    body = call.json()
    repo.private = body.get("visibility", "private" if repo.private else "public") == "private"
    return give({"visibility": "private" if repo.private else "public"})


@route("GET", KIND + REPO + r"/auth-check(?P<write>/write)?")
def auth_check(call: Call) -> Reply:
    """Say whether the caller may read, or write."""
    if call.parts["write"]:
        writable(call)
    else:
        readable(call)
    return Reply()


@route("GET", KIND + r"[^/]+")
def no_namespace(call: Call) -> Reply:
    """Refuse a repository without an owner; the Hub's few old ones do not exist here."""
    call.parts["repo"] = ""
    readable(call)
    return Reply()


@route("GET", KIND + REPO)
@route("GET", KIND + REPO + "/revision/" + REV)
def info(call: Call) -> Reply:
    """Return information on a repository at a revision; `expand` selects fields, `blobs` adds file sizes."""
    with call.hub.store.lock:
        repo = readable(call)
        commit = at_revision(call, repo)
        told = describe(call, repo, commit, blobs=call.flag("blobs"))
    query = call.request.query
    wanted = [*query.get("expand", []), *query.get("expand[]", [])]
    if wanted:
        told = {name: value for name, value in told.items() if name in ("_id", "id", *wanted)}
    return give(told)


def describe(call: Call, repo: Repo, commit: Commit, *, blobs: bool) -> dict[str, Any]:
    """Return the Hub's description of a repository."""
    store = call.hub.store
    readme = commit.tree.get("README.md")
    try:
        card = front_matter(store.read(readme).decode()) if readme else {}
    except ValueError:
        card = {}
    head = repo.commits[repo.refs["refs/heads/main"]]
    return {
        "_id": commit.oid[:24],
        "id": repo.id,
        "author": repo.id.split("/")[0],
        "sha": commit.oid,
        "lastModified": head.date,
        "createdAt": repo.created,
        "private": repo.private,
        "gated": False,
        "disabled": False,
        "tags": tags(card),
        "description": None,
        "citation": None,
        "downloads": 0,
        "likes": 0,
        "cardData": card or None,
        "usedStorage": sum(entry.size for entry in commit.tree.values()),
        "siblings": [_sibling(path, entry, blobs=blobs) for path, entry in sorted(commit.tree.items())],
    }


def _sibling(path: str, entry: Entry, *, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": path}
    told: dict[str, Any] = {"rfilename": path, "blobId": entry.oid, "size": entry.size}
    if entry.lfs:
        size = len(pointer(entry.lfs, entry.size))
        told["lfs"] = {"sha256": entry.lfs, "size": entry.size, "pointerSize": size}
    return told
