"""Branches, tags, and the history of a revision."""

from __future__ import annotations

from ..accounts import readable, writable
from ..store import Repo
from ..wire import REPO, REV, Call, HubError, Reply, give, route
from .repos import KIND, at_revision


@route("GET", KIND + REPO + r"/refs")
def refs(call: Call) -> Reply:
    """List branches and tags, and pull requests where they are asked for."""
    repo = readable(call)
    told = {"branches": _named(repo, "heads"), "converts": _named(repo, "convert"), "tags": _named(repo, "tags")}
    if call.flag("include_prs"):
        told["pullRequests"] = _named(repo, "pr", whole=True)
    return give(told)


def _named(repo: Repo, folder: str, *, whole: bool = False) -> list[dict[str, str]]:
    start = f"refs/{folder}/"
    return [
        {"name": ref if whole else ref.removeprefix(start), "ref": ref, "targetCommit": oid}
        for ref, oid in sorted(repo.refs.items())
        if ref.startswith(start)
    ]


@route("GET", KIND + REPO + "/commits/" + REV)
def commits(call: Call) -> Reply:
    """List the commits of a revision, the newest first."""
    repo = readable(call)
    at_revision(call, repo)
    return give(
        [
            {
                "id": commit.oid,
                "title": commit.title,
                "message": commit.message,
                "authors": [{"user": commit.author, "avatar": ""}],
                "date": commit.date,
            }
            for commit in repo.history(call.parts["rev"])
        ]
    )


@route("POST", KIND + REPO + r"/branch/(?P<name>[^/]+)")
def create_branch(call: Call) -> Reply:
    """Create a branch."""
    with call.hub.store.lock:
        repo, _ = writable(call)
        return _create(repo, f"refs/heads/{call.parts['name']}", call, call.json().get("startingPoint") or "main")


@route("POST", KIND + REPO + "/tag/" + REV)
def create_tag(call: Call) -> Reply:
    """Create a tag on a revision."""
    with call.hub.store.lock:
        repo, _ = writable(call)
        return _create(repo, f"refs/tags/{call.json()['tag']}", call, call.parts["rev"])


def _create(repo: Repo, ref: str, call: Call, start: str) -> Reply:
    if ref in repo.refs:
        raise HubError(409, f"Reference already exists: {ref}")
    repo.refs[ref] = at_revision(call, repo, start).oid
    return Reply()


@route("DELETE", KIND + REPO + r"/(?P<what>branch|tag)/(?P<name>[^/]+)")
def delete(call: Call) -> Reply:
    """Delete a branch or a tag; the main branch stays."""
    with call.hub.store.lock:
        repo, _ = writable(call)
        ref = f"refs/{'heads' if call.parts['what'] == 'branch' else 'tags'}/{call.parts['name']}"
        if ref == "refs/heads/main":
            raise HubError(403, "Cannot delete the main branch")
        if repo.refs.pop(ref, None) is None:
            raise HubError(404, f"Invalid rev id: {call.parts['name']}", code="RevisionNotFound")
    return Reply()
