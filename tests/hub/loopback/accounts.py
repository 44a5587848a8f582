"""Permissions: three kinds of tokens, and the Hub's replies to a missing, wrong or insufficient token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Any, Literal

from .store import Repo
from .wire import Call, HubError

Role = Literal["write", "read", "finegrained"]
KINDS = {"models": "model", "datasets": "dataset", "spaces": "space"}


@dataclass(frozen=True)
class Token:
    """An access token."""

    value: str = field(repr=False)
    user: str
    role: Role
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of a fine-grained token: a repository's id or a namespace -> permissions, such as `repo.write`."""
    orgs: Mapping[str, str] = field(default_factory=dict)
    """The user's organisations -> `read`, `write` or `admin`."""

    def owns(self, namespace: str) -> bool:
        """Return whether the user may write in a namespace, regardless of this token's scopes."""
        return namespace == self.user or self.orgs.get(namespace) in ("write", "admin")

    def knows(self, namespace: str) -> bool:
        """Whether the user may see what is private in a namespace."""
        return namespace == self.user or namespace in self.orgs

    def permits(self, permission: str, id: str) -> bool:
        """Whether the token itself, not its user, carries a permission for a repository or a namespace."""
        if self.role != "finegrained":
            return self.role == "write" or permission == "repo.content.read"
        granted = {*self.scopes.get(id, ()), *self.scopes.get(id.split("/")[0], ())}
        return permission in granted or (permission == "repo.content.read" and "repo.write" in granted)

    def describe(self) -> dict[str, Any]:
        """Return the answer to whoami."""
        access: dict[str, Any] = {
            "displayName": "loopback",
            "role": "fineGrained" if self.role == "finegrained" else self.role,
            "createdAt": "2026-01-01T00:00:00.000Z",
        }
        if self.role == "finegrained":
            scoped = [
                {"entity": _entity(id, user=self.user), "permissions": list(names)} for id, names in self.scopes.items()
            ]
            access["fineGrained"] = {"canReadGatedRepos": False, "global": [], "scoped": scoped}
        orgs = [
            {"type": "org", "id": _id(name), "name": name, "fullname": name, "isEnterprise": False, "roleInOrg": role}
            for name, role in self.orgs.items()
        ]
        return {
            "type": "user",
            "id": _id(self.user),
            "name": self.user,
            "fullname": self.user.title(),
            "email": f"{self.user}@example.org",
            "emailVerified": True,
            "canPay": False,
            "isPro": False,
            "avatarUrl": "/avatars/0.svg",
            "orgs": orgs,
            "auth": {"type": "access_token", "accessToken": access},
        }


def _id(name: str) -> str:
    return sha1(name.encode()).hexdigest()[:24]


def _entity(id: str, *, user: str) -> dict[str, str]:
    kind = "dataset" if "/" in id else "user" if id == user else "org"
    return {"_id": _id(id), "type": kind, "name": id}


def caller(call: Call) -> Token | None:
    """Return the token of a request, or None; refuse an unknown token, even for public content."""
    header = call.request.headers["Authorization"]
    if not header:
        return None
    token = call.hub.tokens.get(header.removeprefix("Bearer ").strip())
    if token is None:
        raise HubError(401, "Invalid credentials in Authorization header")
    return token


def signed_in(call: Call) -> Token:
    """Return the token of a request; refuse a request without one."""
    token = caller(call)
    if token is None:
        raise HubError(401, "Invalid username or password.")
    return token


def readable(call: Call) -> Repo:
    """Return the repository of a request; one that the caller may not see is reported as missing."""
    token = caller(call)
    repo = call.hub.store.repos.get((KINDS[call.parts.get("kind") or "models"], call.parts["repo"]))
    if repo and repo.private:
        namespace = repo.id.split("/")[0]
        if not (token and token.knows(namespace) and token.permits("repo.content.read", repo.id)):
            repo = None
    if repo is None:  # without a token the Hub does not even say whether there is such a repository
        raise HubError(404 if token else 401, "Repository not found", code="RepoNotFound")
    return repo


def writable(call: Call, *, pull: bool = False) -> tuple[Repo, Token]:
    """Return the repository and the token of a request that writes; refuse a caller without permission.

    With `pull`, a write token may also open a pull request on a repository that its user does not own.
    """
    repo = readable(call)
    token = signed_in(call)
    if token.role == "read":
        raise HubError(403, "Forbidden: you must use a write token to upload to a repository.")
    if pull and token.role != "finegrained":
        return repo, token
    if not token.owns(repo.id.split("/")[0]):
        raise HubError(403, "Forbidden: pass `create_pr=1` as a query parameter to create a Pull Request")
    wanted = "discussion.write" if pull else "repo.write"
    if not (token.permits(wanted, repo.id) or token.permits("repo.write", repo.id)):
        raise HubError(403, "This authentication method does not have sufficient permissions to call this method")
    return repo, token


def may_create(token: Token, kind: str, namespace: str) -> None:
    """Refuse a new repository where the token's user, or the token, may not write."""
    if not (token.owns(namespace) and token.permits("repo.write", namespace)):
        raise HubError(403, f'You don\'t have the rights to create a {kind} under the namespace "{namespace}"')
