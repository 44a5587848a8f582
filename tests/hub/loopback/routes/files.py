"""What a revision holds: listings, and the files themselves, whole or in part."""

from __future__ import annotations

import gzip
import re
from hashlib import sha1
from typing import Any
from urllib.parse import quote, urlencode

from ..accounts import readable
from ..store import Commit, Entry, Repo, below, folders, pointer
from ..wire import REPO, REV, Call, HubError, Reply, give, route
from .lfs import sign
from .repos import KIND, at_revision

MOST_PATHS = 1000
"""The Hub refuses to be asked about more paths at once."""


@route("GET", KIND + REPO + "/tree/" + REV + r"(?:/(?P<path>.*))?")
def tree(call: Call) -> Reply:
    """List a folder page by page; the next page's address is in the Link header."""
    with call.hub.store.lock:
        repo = readable(call)
        commit = at_revision(call, repo)
        folder, expand = call.parts["path"].strip("/"), call.flag("expand")
        if folder and folder not in folders(commit.tree):
            raise HubError(404, f'{folder} does not exist on "{call.parts["rev"]}"', code="EntryNotFound")
        found = _inside(commit, folder, recursive=call.flag("recursive"))
        size = min(call.hub.page, 50) if expand else call.hub.page
        start = int(call.request.query.get("cursor", ["0"])[0])
        told = [path_info(repo, commit, path, expand=expand) for path in found[start : start + size]]
    headers = {"X-Repo-Commit": commit.oid}
    if start + size < len(found):
        query = {name: values[0] for name, values in call.request.query.items()} | {"cursor": str(start + size)}
        headers["Link"] = f'<{call.hub.url}{call.request.path}?{urlencode(query)}>; rel="next"'
    return give(told, headers=headers)


def _inside(commit: Commit, folder: str, *, recursive: bool) -> list[str]:
    """Return the paths in a folder: first the folders, then the files, both sorted."""
    files = [path for path in below(commit.tree, folder) if path != folder]
    depth = folder.count("/") + 2 if folder else 1
    inner = [path for path in folders(files) if path.count("/") + 1 >= depth]
    if not recursive:
        files, inner = ([path for path in some if path.count("/") + 1 == depth] for some in (files, inner))
    return sorted(inner) + sorted(files)


def path_info(repo: Repo, commit: Commit, path: str, *, expand: bool) -> dict[str, Any]:
    """Return the Hub's description of a file or a folder."""
    entry = commit.tree.get(path)
    told: dict[str, Any]
    if entry is None:
        names = "".join(f"{name}{one.oid}" for name, one in sorted(below(commit.tree, path).items()))
        told = {"type": "directory", "oid": sha1(names.encode()).hexdigest(), "size": 0, "path": path}
    else:
        told = {"type": "file", "oid": entry.oid, "size": entry.size, "path": path}
        if entry.lfs:
            size = len(pointer(entry.lfs, entry.size))
            told["lfs"] = {"oid": entry.lfs, "size": entry.size, "pointerSize": size}
    if expand:
        last = repo.last_change(path, commit.oid)
        told["lastCommit"] = {"id": last.oid, "title": last.title, "date": last.date}
        if entry:
            scan = {"status": "safe", "avScan": None, "pickleImportScan": None}
            told["securityFileStatus"] = scan
    return told


@route("POST", KIND + REPO + "/paths-info/" + REV)
def paths_info(call: Call) -> Reply:
    """Tell about the paths that are there, and nothing about those that are not."""
    with call.hub.store.lock:
        repo = readable(call)
        commit = at_revision(call, repo)
        form = call.form()
        paths, expand = form.get("paths", []), form.get("expand", False) in (True, ["true"], ["True"])
        if len(paths) > MOST_PATHS:
            raise HubError(413, "too many parameters")
        there = folders(commit.tree) | set(commit.tree)
        told = [path_info(repo, commit, path, expand=expand) for path in paths if path in there]
    return give(told)


@route("GET", r"/(?:(?P<kind>datasets|spaces)/)?" + REPO + "/resolve/" + REV + "/(?P<path>.+)")
def resolve(call: Call) -> Reply:
    """Redirect the client to the address of a file's bytes; headers state their hash and size."""
    with call.hub.store.lock:
        repo = readable(call)
        commit = at_revision(call, repo)
        entry = _entry(call, commit)
        headers = {
            "X-Repo-Commit": commit.oid,
            "X-Linked-Size": str(entry.size),
            "X-Linked-Etag": f'"{entry.etag}"',
            "Accept-Ranges": "bytes",
        }
        if call.request.headers["If-None-Match"] in (entry.etag, f'"{entry.etag}"'):
            return Reply(304, b"", {**headers, "ETag": f'"{entry.etag}"'})
        if entry.lfs:
            path = f"/store/{entry.lfs}"
            query = urlencode({"filename": call.parts["path"].rsplit("/", 1)[-1], "signature": sign(path)})
            return Reply(302, b"", {**headers, "Location": f"{call.hub.storage_url}{path}?{query}"})
        where = f"/api/resolve-cache/{repo.kind}s/{repo.id}/{commit.oid}/{quote(call.parts['path'])}"
        return Reply(307, b"", {**headers, "Location": where})


@route("GET", r"/api/resolve-cache/(?P<kind>models|datasets|spaces)/" + REPO + "/" + REV + "/(?P<path>.+)")
def cached(call: Call) -> Reply:
    """Return a small file; it is on the Hub's own host, so the token is checked again."""
    with call.hub.store.lock:
        commit = at_revision(call, readable(call))
        entry = _entry(call, commit)
        content = call.hub.store.read(entry)
    return give_bytes(call, content, etag=entry.etag, name=call.parts["path"], commit=commit.oid)


@route("GET", r"/store/(?P<oid>[0-9a-f]{64})")
def stored(call: Call) -> Reply:
    """Return a large file for a signed address; like the real storage, refuse a token in addition."""
    query = call.request.query
    if call.request.headers["Authorization"]:
        raise HubError(400, "Only one auth mechanism allowed")
    if query.get("signature") != [sign(call.request.path)]:
        raise HubError(403, "Access denied")
    content = call.hub.store.objects.get(call.parts["oid"])
    if content is None:
        raise HubError(404, "NoSuchKey")
    return give_bytes(call, content, etag=call.parts["oid"], name=query.get("filename", [""])[0])


def _entry(call: Call, commit: Commit) -> Entry:
    entry = commit.tree.get(call.parts["path"])
    if entry is None:  # the commit is told too: the client remembers that the file is not in it
        raise HubError(404, "Entry not found", code="EntryNotFound", headers={"X-Repo-Commit": commit.oid})
    return entry


def _worth_packing(call: Call, content: bytes, name: str) -> bool:
    headers, kinds = call.request.headers, (".json", ".jsonl", ".md", ".txt", ".csv")
    asked = call.request.method == "GET" and not headers["Range"] and "gzip" in (headers["Accept-Encoding"] or "")
    return asked and "/store/" not in call.request.path and len(content) > 1000 and name.endswith(kinds)


def give_bytes(call: Call, content: bytes, *, etag: str, name: str, commit: str = "") -> Reply:
    """Return a file, or the part that the Range header asks for."""
    headers = {
        "Content-Type": "application/octet-stream",
        "ETag": f'"{etag}"',
        "Accept-Ranges": "bytes",
        "Content-Disposition": f"inline; filename*=UTF-8''{quote(name.rsplit('/', 1)[-1], safe='')}",
    }
    if commit:
        headers["X-Repo-Commit"] = commit
    if call.request.headers["If-None-Match"] in (etag, f'"{etag}"'):
        return Reply(304, b"", headers)
    if _worth_packing(call, content, name):  # as the Hub's own host does; a part of a file is never packed
        packed = {**headers, "Content-Encoding": "gzip", "ETag": f'W/"{etag}"', "Vary": "Accept-Encoding"}
        return Reply(200, gzip.compress(content, mtime=0), packed)
    wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", call.request.headers["Range"] or "")
    if not wanted or wanted[0] == "bytes=-":
        return Reply(200, content, headers)
    first = int(wanted[1]) if wanted[1] else max(0, len(content) - int(wanted[2]))
    last = min(int(wanted[2]), len(content) - 1) if wanted[1] and wanted[2] else len(content) - 1
    if first > last:
        return Reply(416, b"", {**headers, "Content-Range": f"bytes */{len(content)}"})
    return Reply(206, content[first : last + 1], {**headers, "Content-Range": f"bytes {first}-{last}/{len(content)}"})
