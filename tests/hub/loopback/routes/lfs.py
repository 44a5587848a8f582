"""Large files: who uploads what, in one piece or in parts, and whether it arrived whole."""

from __future__ import annotations

import hmac
from hashlib import md5, sha256
from math import ceil
from typing import Any
from urllib.parse import urlencode

from ..accounts import readable, writable
from ..wire import REPO, Call, HubError, Reply, give, route

GIT = r"/(?:(?P<kind>datasets|spaces)/)?" + REPO
SECRET = b"the storage's key, which only the hub knows"


def sign(path: str) -> str:
    """Return the signature that allows the use of a storage address without a token."""
    return hmac.new(SECRET, path.encode(), sha256).hexdigest()


def signed(call: Call, path: str, **query: object) -> str:
    """Return a signed address of the storage."""
    return f"{call.hub.storage_url}{path}?{urlencode({**query, 'signature': sign(path)})}"


@route("POST", GIT + r"\.git/info/lfs/objects/batch")
def batch(call: Call) -> Reply:
    """Return upload instructions for each file; a file that is already stored needs none."""
    body = call.json()
    # a pull request names no branch here, so that those who may only read can upload for it
    repo, _ = writable(call, pull="ref" not in body)
    if body["operation"] != "upload" or body.get("hash_algo") != "sha256":
        raise HubError(422, "Only uploads of sha256 objects")
    parts = "multipart" in body["transfers"]
    with call.hub.store.lock:
        told = [_plan(call, repo.id, one["oid"], one["size"], parts=parts) for one in body["objects"]]
        repo.lfs |= {one["oid"] for one in body["objects"] if one["oid"] in call.hub.store.objects}
    # the client of 2.x asks this only where hf_xet is not installed or HF_HUB_DISABLE_XET is set; it offers no `xet`
    transfer = "multipart" if parts and any(one["size"] > call.hub.multipart for one in told) else "basic"
    return give({"transfer": transfer, "objects": told, "hash_algo": "sha256"})


def _plan(call: Call, id: str, oid: str, size: int, *, parts: bool) -> dict[str, Any]:
    if call.hub.store.objects.get(oid) is not None:
        return {"oid": oid, "size": size, "authenticated": True}
    kind = call.parts["kind"]
    verify = f"{call.hub.url}/{kind + '/' if kind else ''}{id}.git/info/lfs/verify"
    if not parts or size <= call.hub.multipart:
        upload: dict[str, Any] = {"href": signed(call, f"/upload/{oid}", repo=id, kind=kind)}
    else:
        key = f"{oid}-{len(call.hub.requests)}"
        call.hub.uploads[key] = {}
        count = ceil(size / call.hub.multipart)
        header = {str(n): signed(call, f"/upload/{oid}/{key}/{n}") for n in range(1, count + 1)}
        path = "/api/complete_multipart"
        query = urlencode({"uploadId": key, "repo": id, "kind": kind, "signature": sign(path + key)})
        upload = {"href": f"{call.hub.url}{path}?{query}", "header": {"chunk_size": str(call.hub.multipart), **header}}
    return {"oid": oid, "size": size, "authenticated": True, "actions": {"upload": upload, "verify": {"href": verify}}}


def _check_signature(call: Call) -> None:
    if call.request.headers["Authorization"]:
        raise HubError(400, "Only one auth mechanism allowed")
    if call.request.query.get("signature") != [sign(call.request.path)]:
        raise HubError(403, "Access denied")
    if call.request.headers["Content-Length"] is None:
        raise HubError(411, "MissingContentLength")  # the real storage knows no chunked uploads


@route("PUT", r"/upload/(?P<oid>[0-9a-f]{64})")
def upload(call: Call) -> Reply:
    """Take a file in one piece."""
    _check_signature(call)
    _keep(call, call.parts["oid"], call.body)
    return Reply(200, b"", {"ETag": f'"{md5(call.body).hexdigest()}"'})


@route("PUT", r"/upload/(?P<oid>[0-9a-f]{64})/(?P<key>[^/]+)/(?P<part>\d+)")
def upload_part(call: Call) -> Reply:
    """Take a part of a file."""
    _check_signature(call)
    parts = call.hub.uploads.get(call.parts["key"])
    if parts is None:
        raise HubError(404, "NoSuchUpload")
    parts[int(call.parts["part"])] = call.body
    return Reply(200, b"", {"ETag": f'"{md5(call.body).hexdigest()}"'})


@route("POST", r"/api/complete_multipart")
def complete(call: Call) -> Reply:
    """Join the parts of a file; refuse it unless they are the parts that arrived."""
    key, body = call.request.query["uploadId"][0], call.json()
    if call.request.query.get("signature") != [sign(call.request.path + key)]:
        raise HubError(403, "Access denied")
    with call.hub.store.lock:
        parts = call.hub.uploads.get(key)
        if parts is None:
            raise HubError(404, "NoSuchUpload")
        named = {one["partNumber"]: one["etag"].strip('"') for one in body["parts"]}
        if named != {number: md5(part).hexdigest() for number, part in parts.items()}:
            raise HubError(400, "InvalidPart: the parts named are not those that were uploaded")
        _keep(call, body["oid"], b"".join(parts[number] for number in sorted(parts)))
        del call.hub.uploads[key]
    return give({"success": True})


def _keep(call: Call, oid: str, content: bytes) -> None:
    """Store a file; refuse it unless its content matches the hash in its name."""
    if sha256(content).hexdigest() != oid:
        raise HubError(400, "BadDigest: the content does not have the sha256 that it was announced with")
    query = call.request.query
    kind = {"datasets": "dataset", "spaces": "space"}.get(query.get("kind", [""])[0], "model")
    with call.hub.store.lock:
        call.hub.store.objects[oid] = content
        repo = call.hub.store.repos.get((kind, query["repo"][0]))
        if repo:
            repo.lfs.add(oid)


@route("POST", GIT + r"\.git/info/lfs/verify")
def verify(call: Call) -> Reply:
    """Return whether a file has arrived intact."""
    repo, body = readable(call), call.json()
    content = call.hub.store.objects.get(body["oid"])
    if body["oid"] not in repo.lfs or content is None or len(content) != body["size"]:
        raise HubError(404, "Object does not exist on the server")
    return Reply()
