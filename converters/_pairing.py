"""Names in a table paired with files on a disk that were renamed on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exhibit.evidence.align import edit_distance
from exhibit.law.names import file_key

_MIN_LENGTH = 20
"""Names shorter than this say too little to be matched by a part of them."""
_MIN_SIMILARITY = 0.9  # a letter or two of a name of twenty


@dataclass
class Pairs:
    """Which row has which file; and how sure that is."""

    files: dict[int, Path] = field(default_factory=dict)
    similar: list[tuple[str, str]] = field(default_factory=list)
    """Pairs that rest on a similar name alone, for the report."""
    doubled: list[int] = field(default_factory=list)
    """Rows that name a file which an earlier row has."""
    missing: list[int] = field(default_factory=list)


def pair_files(names: Sequence[str], paths: Iterable[Path]) -> Pairs:
    """Tie each name to one file: equal names first, then the rest by what is left over, surest rule first."""
    left = {path.name: path for path in paths}
    pairs = Pairs()
    for rule in _RULES:
        for row, name in enumerate(names):
            path = rule(name, left) if row not in pairs.files else None
            if path is not None:
                pairs.files[row] = left.pop(path.name)
                if rule is _similar:
                    pairs.similar.append((name, path.name))
    taken = {path.name: path for path in pairs.files.values()}
    for row, name in enumerate(names):
        if row not in pairs.files:
            again = any(rule(name, taken) for rule in (_equal, _alike))
            (pairs.doubled if again else pairs.missing).append(row)
    return pairs


def _equal(name: str, left: Mapping[str, Path]) -> Path | None:
    return left.get(name)


def _alike(name: str, left: Mapping[str, Path]) -> Path | None:
    """`A&B .PDF` and `A_B.pdf`."""
    key = file_key(name)
    return _only(path for path in left.values() if file_key(path.name) == key)


def _longer(name: str, left: Mapping[str, Path]) -> Path | None:
    """One name goes on where the other ends."""
    key = file_key(name)
    keys = {path: file_key(path.name) for path in left.values()}
    return _only(
        path
        for path, other in keys.items()
        if min(len(key), len(other)) >= _MIN_LENGTH and (other.startswith(key) or key.startswith(other))
    )


def _similar(name: str, left: Mapping[str, Path]) -> Path | None:
    """A letter lost on the way (`É` as `_`), in a name that is still clearly this one."""
    key = file_key(name)
    if len(key) < _MIN_LENGTH:
        return None
    distances = {path: edit_distance(key, file_key(path.name)) for path in left.values()}
    close = [path for path, distance in distances.items() if distance <= (1 - _MIN_SIMILARITY) * len(key)]
    nearest = min((distances[path] for path in close), default=0)
    return _only(path for path in close if distances[path] == nearest)


_RULES: tuple[Callable[[str, Mapping[str, Path]], Path | None], ...] = (_equal, _alike, _longer, _similar)


def _only(paths: Iterable[Path]) -> Path | None:
    some = list(paths)
    return some[0] if len(some) == 1 else None
