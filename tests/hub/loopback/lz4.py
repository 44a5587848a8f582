"""LZ4 decompression, which the standard library lacks; the real client compresses its uploads with LZ4."""

from __future__ import annotations

import struct

MAGIC = 0x184D2204
STORED = 0x80000000


def decompress(frame: bytes) -> bytes:
    """Return the content of an LZ4 frame.

    Its checksums are not verified, because the sha256 of the whole file is checked later.
    """
    magic, flags = struct.unpack_from("<IB", frame)
    if magic != MAGIC:
        raise ValueError("no LZ4 frame")
    block_sums, content_size, dictionary = flags & 0x10, flags & 0x08, flags & 0x01
    position = 7 + (8 if content_size else 0) + (4 if dictionary else 0)
    out = bytearray()
    while size := struct.unpack_from("<I", frame, position)[0]:
        position += 4
        stored, size = size & STORED, size & ~STORED
        block = frame[position : position + size]
        if stored:
            out += block
        else:
            _add_block(out, block)
        position += size + (4 if block_sums else 0)
    return bytes(out)


def _add_block(out: bytearray, block: bytes) -> None:
    """Decompress a block to `out`: literal bytes, each run followed by a copy of earlier output."""
    position, end = 0, len(block)
    while position < end:
        token = block[position]
        count, position = _length(block, position + 1, token >> 4)
        out += block[position : position + count]
        position += count
        if position >= end:  # the last run has no copy
            return
        back = block[position] | block[position + 1] << 8
        count, position = _length(block, position + 2, token & 15)
        _copy(out, back, count + 4)


def _length(block: bytes, position: int, length: int) -> tuple[int, int]:
    """Return a length and the position after it; each byte of 255 means that another byte follows."""
    if length == 15:
        while True:
            more = block[position]
            length, position = length + more, position + 1
            if more != 255:
                break
    return length, position


def _copy(out: bytearray, back: int, count: int) -> None:
    """Append `count` bytes from `back` bytes before the end; the copy may overlap its own output."""
    if not 0 < back <= len(out):
        raise ValueError("LZ4 copy from before the start")
    start = len(out) - back
    piece = out[start : start + count]
    out += (piece * (count // len(piece) + 1))[:count]
