"""Large files as recent clients upload them: chunks in xorbs, and shards that list the chunks of each file.

Since 2.0 the client always uploads this way if hf_xet is installed, which is the default, and no reply of a
server makes it fall back to LFS. So this Hub accepts both. For downloads the client uses Xet only for files
that are announced with `X-Xet-Hash`; this Hub announces none and serves every file by plain HTTP. Chunks
are not deduplicated against earlier uploads. Xorbs are not checked against their own name, a BLAKE3 hash
that the standard library lacks; the sha256 of the whole file is checked instead.
"""

from __future__ import annotations

import hmac
import json
import struct
from hashlib import sha256

from ..accounts import readable, writable
from ..lz4 import decompress
from ..store import Repo
from ..wire import REPO, REV, Call, HubError, Reply, give, route
from .lfs import SECRET
from .repos import KIND

EXPIRES = 4_000_000_000
ENTRY = 48
"""Every record of a shard has this size."""
END = b"\xff" * 32
WITH_PROOF, WITH_SHA256 = 1 << 31, 1 << 30
HASH = r"[0-9a-f]{64}"


@route("GET", KIND + REPO + r"/xet-(?P<what>read|write)-token/" + REV)
def token(call: Call) -> Reply:
    """Give a short-lived token for the storage, which is good for one repository."""
    with call.hub.store.lock:
        if call.parts["what"] == "write":
            repo, _ = writable(call, pull=call.flag("create_pr") or call.parts["rev"] == "None")
        else:
            repo = readable(call)
    value = _pass(call.parts["what"], repo)
    told = {"casUrl": call.hub.storage_url, "exp": EXPIRES, "accessToken": value}
    headers = {
        "X-Xet-Cas-Url": call.hub.storage_url,
        "X-Xet-Token-Expiration": str(EXPIRES),
        "X-Xet-Access-Token": value,
    }
    return give(told, headers=headers)


def _pass(what: str, repo: Repo) -> str:
    text = f"{what} {repo.kind} {repo.id}".encode()
    return f"xet_{text.hex()}_{hmac.new(SECRET, text, sha256).hexdigest()}"


def _admitted(call: Call) -> Repo:
    """Return the repository of a storage token; the Hub's own tokens are refused here."""
    value = (call.request.headers["Authorization"] or "").removeprefix("Bearer ")
    try:
        what, kind, id = bytes.fromhex(value.split("_")[1]).decode().split(" ", 2)
        repo = call.hub.store.repos[kind, id]
    except (IndexError, ValueError, KeyError):
        raise HubError(401, "Unauthorized") from None
    if not hmac.compare_digest(value, _pass("write", repo)):
        raise HubError(403 if what == "read" else 401, "Forbidden")
    return repo


@route("GET", r"/v1/chunks/(?:default|default-merkledb)/" + HASH)
@route("POST", r"/v1/xorb-grants/default/" + HASH)
def unknown_here(call: Call) -> Reply:
    """Report every chunk as unknown and allow no upload elsewhere, so that the client sends all chunks here."""
    _admitted(call)
    raise HubError(404, "Not found")


@route("POST", r"/v1/xorbs/default/(?P<hash>" + HASH + ")")
def xorb(call: Call) -> Reply:
    """Store a xorb."""
    _admitted(call)
    try:
        chunks = _unpack(call.body)
    except (ValueError, IndexError, struct.error) as error:
        raise HubError(400, f"Malformed xorb: {error}") from None
    with call.hub.store.lock:
        new = call.hub.xorbs.setdefault(call.parts["hash"], chunks) is chunks
    return give({"was_inserted": new})


def _unpack(body: bytes) -> list[bytes]:
    """Return the chunks of a xorb; the index that follows them starts with letters instead of a 0."""
    chunks: list[bytes] = []
    position = 0
    while position < len(body) and body[position] == 0:
        packed = int.from_bytes(body[position + 1 : position + 4], "little")
        scheme = body[position + 4]
        size = int.from_bytes(body[position + 5 : position + 8], "little")
        data = body[position + 8 : position + 8 + packed]
        content = data if scheme == 0 else decompress(data)
        if scheme == 2:
            content = _interleave(content)
        if len(data) != packed or len(content) != size or scheme > 2:
            raise ValueError(f"chunk {len(chunks)}")
        chunks.append(content)
        position += 8 + packed
    return chunks


def _interleave(grouped: bytes) -> bytes:
    """Undo a byte grouping that stores every fourth byte together."""
    out, start = bytearray(len(grouped)), 0
    for group in range(4):
        count = len(range(group, len(grouped), 4))
        out[group::4] = grouped[start : start + count]
        start += count
    return bytes(out)


def _name(raw: bytes) -> str:
    """Return a hash as it is written in addresses: four numbers of 64 bits."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", raw))


@route("POST", r"/v1/shards")
@route("POST", r"/v2/shards")
def shard(call: Call) -> Reply:
    """Assemble files from uploaded chunks and store them if each matches its sha256."""
    with call.hub.store.lock:
        repo = _admitted(call)
        try:
            files = _files(call, call.body)
        except (struct.error, KeyError, IndexError) as error:
            raise HubError(400, f"Malformed shard, or a xorb that is not here: {error!r}") from None
        for digest, content in files:
            if sha256(content).hexdigest() != digest:
                raise HubError(400, "The content does not have the sha256 that the shard names")
        for _, content in files:
            repo.lfs.add(call.hub.store.put_object(content))
    if call.request.path == "/v1/shards":
        return give({"result": 1})
    frame = json.dumps({"type": "result", "result": 1}).encode() + b"\n"
    return Reply(200, frame, {"Content-Type": "application/x-ndjson"})


def _files(call: Call, body: bytes) -> list[tuple[str, bytes]]:
    """Return the sha256 and the content of each file in a shard."""
    found, position = [], ENTRY
    while body[position : position + 32] != END:
        flags, count = struct.unpack_from("<II", body, position + 32)
        position += ENTRY
        content = bytearray()
        for number in range(count):
            start = position + number * ENTRY
            _, size, first, last = struct.unpack_from("<IIII", body, start + 32)
            piece = b"".join(call.hub.xorbs[_name(body[start : start + 32])][first:last])
            if len(piece) != size:
                raise HubError(400, "A term of the shard has not the size that it names")
            content += piece
        position += count * ENTRY * (2 if flags & WITH_PROOF else 1)
        if not flags & WITH_SHA256:
            raise HubError(400, "A file without its sha256 cannot be named in a commit")
        found.append((_name(body[position : position + 32]), bytes(content)))
        position += ENTRY
    return found
