"""A few bytes that unpack to very many."""

from __future__ import annotations

import gzip
import zlib
from functools import cache

_BLOCK = 1 << 20  # bytes


@cache
def packed_zeros(times: int, mebibytes: int) -> bytes:
    """Return a number of mebibytes of zeros, compressed with gzip `times` times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    # after a full flush a block stands by itself: it is packed once and repeated, in a tenth of the time
    block = packer.compress(bytes(_BLOCK)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(mebibytes):
        checksum = zlib.crc32(bytes(_BLOCK), checksum)
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    tail = checksum.to_bytes(4, "little") + (mebibytes * _BLOCK).to_bytes(4, "little")
    data = head + block * mebibytes + packer.flush() + tail
    for _ in range(times - 1):
        data = gzip.compress(data, 9, mtime=0)
    return data
