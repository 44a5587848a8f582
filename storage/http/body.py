"""Bodies of HTTP replies, decoded within limits: a few bytes that unpack to gigabytes are refused as they come."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from exhibit.storage.http.errors import HttpError

if TYPE_CHECKING:
    import httpx

ACCEPT = {"Accept-Encoding": "gzip, deflate"}
"""What a request must say: other encodings are not decoded here."""
MOST_LAYERS = 2
"""Encodings over one another: a server that packs a file which is packed already makes two, nobody makes three."""
_BLOCK = 1 << 16
"""Bytes that are unpacked at a time."""


class BodyError(HttpError):
    """A body that is too large, or packed in a way that is not undone."""


class TooLargeError(BodyError):
    """A body of more bytes than are read."""

    def __init__(self, most: int) -> None:
        large = f"{most >> 20} MB" if most >= 1 << 20 else f"{most} bytes"
        super().__init__(f"the reply is larger than {large}")


class Body:
    """Decodes a body as it comes; no layer of it ever unpacks to more than `most` bytes."""

    def __init__(self, headers: Mapping[str, str], *, most: int) -> None:
        """Take the reply's headers; raise where its encodings are too many or unknown."""
        told = headers.get("content-encoding", "")
        encodings = [
            name for name in (part.strip().lower() for part in told.split(",")) if name not in ("", "identity")
        ]
        if len(encodings) > MOST_LAYERS:
            raise BodyError(f"the reply is packed {len(encodings)} times over, more than {MOST_LAYERS}")
        self._layers = [_Layer(name, most) for name in reversed(encodings)]
        self._most, self._size = most, 0

    def feed(self, block: bytes) -> bytes:
        """Return what a block of the body unpacks to."""
        for layer in self._layers:
            block = layer.feed(block)
        self._size += len(block)
        if self._size > self._most:
            raise TooLargeError(self._most)
        return block

    def close(self) -> None:
        """Raise where the body broke off."""
        if any(layer.open for layer in self._layers):
            raise BodyError("the reply is packed, and cut short")


class _Layer:
    def __init__(self, name: str, most: int) -> None:
        if name not in ("gzip", "x-gzip", "deflate"):
            raise BodyError(f"the reply is packed as {name!r:.40}, which was not asked for")
        # 47: gzip or zlib, whichever its first bytes say
        self._stream = zlib.decompressobj(47)
        self._raw = name == "deflate"
        self._most, self._size, self._begun = most, 0, False

    @property
    def open(self) -> bool:
        return self._begun and not self._stream.eof

    def feed(self, block: bytes) -> bytes:
        pieces = []
        try:
            piece = self._stream.decompress(block, _BLOCK)
        except zlib.error as error:
            if self._begun or not self._raw:
                raise BodyError(f"the reply is packed, and damaged ({error})") from error
            self._stream = zlib.decompressobj(-15)  # some servers call this deflate, without its head
            piece = self._decompress(block)
        self._begun = self._begun or bool(block)
        while piece or self._stream.unconsumed_tail:
            self._size += len(piece)
            if self._size > self._most:
                raise TooLargeError(self._most)
            pieces.append(piece)
            piece = self._decompress(self._stream.unconsumed_tail) if self._stream.unconsumed_tail else b""
        return b"".join(pieces)

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._stream.decompress(data, _BLOCK)
        except zlib.error as error:
            raise BodyError(f"the reply is packed, and damaged ({error})") from error


async def body_blocks(response: httpx.Response, *, most: int) -> AsyncIterator[bytes]:
    """Yield a streamed reply's body, decoded, block by block."""
    body = Body(response.headers, most=most)
    async for block in response.aiter_raw():
        yield body.feed(block)
    body.close()
