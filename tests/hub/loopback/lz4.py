"""Undo LZ4, as the real client compresses what it uploads; the standard library cannot."""

from __future__ import annotations

import struct

MAGIC = 0x184D2204
STORED = 0x80000000


def decompress(frame: bytes) -> bytes:
    """Return the content of a frame; its checksums are left alone, as a sha256 over all is checked afterwards."""
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
    """Append a block: runs of plain bytes, each followed by a copy of something earlier."""
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
    """Return a length, which goes on for as long as its bytes are full, and where it ends."""
    if length == 15:
        while True:
            more = block[position]
            length, position = length + more, position + 1
            if more != 255:
                break
    return length, position


def _copy(out: bytearray, back: int, count: int) -> None:
    """Repeat what was written `back` bytes ago, which may overlap what is being written."""
    if not 0 < back <= len(out):
        raise ValueError("LZ4 copy from before the start")
    start = len(out) - back
    piece = out[start : start + count]
    out += (piece * (count // len(piece) + 1))[:count]
