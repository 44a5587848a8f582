"""Discussions and pull requests."""

from __future__ import annotations

from typing import Any

from ..accounts import readable, writable
from ..store import Discussion, Repo
from ..wire import REPO, Call, HubError, Reply, give, route
from .repos import KIND

ONE = KIND + REPO + r"/discussions/(?P<num>\d+)"
PAGE = 30


def open_pull(
    call: Call, repo: Repo, title: str, author: str, *, draft: bool, start: str, pull: bool = True
) -> Discussion:
    """Open a pull request whose ref starts at a commit, or a discussion."""
    num, date = len(repo.discussions) + 1, call.hub.store.now()
    found = repo.discussions[num] = Discussion(num, title, author, date, "draft" if draft else "open", pull)
    if pull:
        repo.refs[found.ref] = start
    return found


@route("GET", KIND + REPO + r"/discussions")
def discussions(call: Call) -> Reply:
    """List a page of discussions, the newest first."""
    with call.hub.store.lock:
        repo, query = readable(call), call.request.query
        kind, status, author = (query.get(name, ["all"])[0] for name in ("type", "status", "author"))
        found = [
            one
            for one in sorted(repo.discussions.values(), key=lambda one: -one.num)
            if kind in ("all", "pull_request" if one.pull else "discussion")
            and (status == "all" or (status == "open") == (one.status in ("open", "draft")))
            and author in ("all", one.author)
        ]
    start = int(query.get("p", ["0"])[0]) * PAGE
    told = [_describe(repo, one) for one in found[start : start + PAGE]]
    return give({"discussions": told, "count": len(found), "start": start})


def _describe(repo: Repo, one: Discussion) -> dict[str, Any]:
    return {
        "num": one.num,
        "title": one.title,
        "author": {"name": one.author, "type": "user"},
        "createdAt": one.date,
        "status": one.status,
        "isPullRequest": one.pull,
        "repo": {"name": repo.id, "type": repo.kind},
    }


@route("POST", KIND + REPO + r"/discussions")
def create(call: Call) -> Reply:
    """Open a discussion, or a draft of a pull request with nothing in it yet."""
    body = call.json()
    with call.hub.store.lock:
        repo, token = writable(call, pull=True)
        pull, head = bool(body.get("pullRequest")), repo.refs["refs/heads/main"]
        one = open_pull(call, repo, body["title"], token.user, draft=pull, start=head, pull=pull)
        _happen(call, one, "comment", token.user, _comment(body.get("description", "")))
    return give({"num": one.num, "pullRequest": pull, "title": one.title, "url": f"/discussions/{one.num}"})


def _comment(text: str) -> dict[str, Any]:
    return {"edited": False, "hidden": False, "latest": {"raw": text, "html": text}}


def _happen(call: Call, one: Discussion, kind: str, author: str, data: dict[str, Any]) -> dict[str, Any]:
    """Add an event to a discussion."""
    event: dict[str, Any] = {
        "id": f"{one.num:012x}{len(one.events):012x}",
        "type": kind,
        "createdAt": call.hub.store.now(),
        "author": {"name": author, "type": "user"},
        "data": data,
    }
    one.events.append(event)
    return event


def _find(call: Call, repo: Repo) -> Discussion:
    one = repo.discussions.get(int(call.parts["num"]))
    if one is None:
        raise HubError(404, "Discussion not found")
    return one


@route("GET", ONE)
def details(call: Call) -> Reply:
    """Return the full description of a discussion."""
    with call.hub.store.lock:
        repo = readable(call)
        one = _find(call, repo)
        told = {**_describe(repo, one), "events": list(one.events)}
        if one.pull:
            commits = _own(repo, one)
            told["events"] += [
                {
                    "id": commit.oid[:24],
                    "type": "commit",
                    "createdAt": commit.date,
                    "author": {"name": commit.author, "type": "user"},
                    "data": {"subject": commit.title, "oid": commit.oid},
                }
                for commit in commits
            ]
            told["changes"] = {"base": one.base, "mergeCommitId": one.merged}
            told["filesWithConflicts"] = _conflicts(repo, one)
            told["diff"] = ""
    return give(told)


def _own(repo: Repo, one: Discussion) -> list[Any]:
    """Return the commits of a pull request that its base does not have, the oldest first."""
    based = {commit.oid for commit in repo.history(one.base)}
    return [commit for commit in reversed(repo.history(one.ref)) if commit.oid not in based]


def _changes(repo: Repo, one: Discussion) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the files changed by the pull request and by its base since they diverged; None is a deleted file."""
    ours = {commit.oid for commit in repo.history(one.base)}
    common = next(commit.tree for commit in repo.history(one.ref) if commit.oid in ours)
    sides = (repo.commits[repo.refs[one.ref]].tree, repo.commits[repo.refs[one.base]].tree)
    theirs, base = ({p: side.get(p) for p in {*side, *common} if side.get(p) != common.get(p)} for side in sides)
    return theirs, base


def _conflicts(repo: Repo, one: Discussion) -> list[str]:
    if one.merged:
        return []
    theirs, base = _changes(repo, one)
    return sorted(path for path in {*theirs} & {*base} if theirs[path] != base[path])


@route("POST", ONE + "/merge")
def merge(call: Call) -> Reply:
    """Merge a pull request that is open and has no conflicts."""
    with call.hub.store.lock:
        repo, token = writable(call)
        one = _find(call, repo)
        if not one.pull or one.status != "open":
            raise HubError(400, f"This pull request cannot be merged: it is {one.status}")
        if _conflicts(repo, one):
            raise HubError(409, "This pull request has conflicts")
        head = repo.refs[one.base]
        tree = {**repo.commits[head].tree, **_changes(repo, one)[0]}
        tree = {path: entry for path, entry in tree.items() if entry is not None}
        title = f"{one.title} (#{one.num})"
        made = call.hub.store.add(repo, tree, one.base, title, token.user, parents=(head, repo.refs[one.ref]))
        one.status, one.merged = "merged", made.oid
        _happen(call, one, "status-change", token.user, {"status": "merged"})
    return give({"success": True})


@route("POST", ONE + "/status")
def change_status(call: Call) -> Reply:
    """Open or close a discussion."""
    body = call.json()
    with call.hub.store.lock:
        repo, token = writable(call)
        one = _find(call, repo)
        one.status = body["status"]
        return give({"newStatus": _happen(call, one, "status-change", token.user, {"status": one.status})})


@route("POST", ONE + "/title")
def rename(call: Call) -> Reply:
    """Give a discussion another title."""
    with call.hub.store.lock:
        repo, token = writable(call)
        one = _find(call, repo)
        data = {"from": one.title, "to": call.json()["title"]}
        one.title = data["to"]
        return give({"newTitle": _happen(call, one, "title-change", token.user, data)})


@route("POST", ONE + "/comment")
def comment(call: Call) -> Reply:
    """Add a comment."""
    with call.hub.store.lock:
        repo, token = writable(call, pull=True)
        event = _happen(call, _find(call, repo), "comment", token.user, _comment(call.json()["comment"]))
        return give({"newMessage": event})
