"""Which files are large: the rules of .gitattributes, and the Hub's own rules on size and binary data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

LARGE = 10 * 1024 * 1024
"""The Hub takes no file from here on as part of a commit."""

PATTERNS = """
*.7z *.arrow *.avro *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.lz4 *.mds *.mlmodel *.model *.msgpack *.npy
*.npz *.onnx *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors saved_model/**/* *.tar.* *.tar *.tflite
*.tgz *.wasm *.xz *.zip *.zst *tfevents* *.pcm *.sam *.raw *.aac *.flac *.mp3 *.ogg *.wav *.bmp *.gif *.png *.tiff *.jpg
*.jpeg *.webp *.mp4 *.webm
""".split()
RULE = " filter=lfs diff=lfs merge=lfs -text\n"
DEFAULT_ATTRIBUTES = "".join(pattern + RULE for pattern in PATTERNS).encode()
"""What the Hub puts into every new dataset. PDF is not among them: those are large because they are no text."""


def is_large(size: int) -> bool:
    """Whether a file is too large for a commit."""
    return size >= LARGE


def is_binary(sample: bytes) -> bool:
    """Return whether a file's first bytes are not text; a character cut off at the end is allowed."""
    if b"\0" in sample:
        return True
    try:
        sample.decode()
    except UnicodeDecodeError as error:
        return error.start < len(sample) - 3
    return False


def is_tracked(path: str, rules: bytes) -> bool:
    """Return whether .gitattributes assigns a file to large-file storage."""
    names, patterns = _read(rules)
    return path in names or any(_matches(path, pattern) for pattern in patterns)


@lru_cache(maxsize=64)
def _read(rules: bytes) -> tuple[frozenset[str], tuple[str, ...]]:
    """Split the rules for large files into plain names and patterns, since most rules name one document."""
    names, patterns = set(), []
    for line in rules.decode().splitlines():
        pattern, _, effect = line.strip().partition(" ")
        if "filter=lfs" not in effect:
            continue
        plain = pattern.replace("[[:space:]]", " ")
        if re.search(r"(?<!\\)[*?\[]", plain):
            patterns.append(plain)
        else:
            names.add(re.sub(r"\\(.)", r"\1", plain))
    return frozenset(names), tuple(patterns)


def _matches(path: str, pattern: str) -> bool:
    """Match as Git does: a pattern without a slash is compared with the file name in any folder."""
    return fnmatchcase(path if "/" in pattern else path.rsplit("/", 1)[-1], pattern)


def add_rules(rules: bytes, paths: Iterable[str]) -> bytes:
    """Add a rule for each path, escaped as Git requires."""
    text = rules.decode()
    text += "\n" if text and not text.endswith("\n") else ""
    plain = (re.sub(r"([*?\[\\])", r"\\\1", path).replace(" ", "[[:space:]]") for path in sorted(paths))
    return (text + "".join(path + RULE for path in plain)).encode()
