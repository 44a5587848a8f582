"""What is known of each document while an index is built, in a few bytes: objects take hundreds.

Twenty thousand documents then take little more memory than one thousand.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping
from hashlib import blake2b
from pathlib import Path

import numpy as np

from exhibit.storage.locations import Location

_RECENT = 1024
"""Names that are held as they are: 0.2 MB, and a look among them is a dictionary's."""


class Strings:
    """Strings of bytes, one behind the other: eight bytes each beside their own."""

    def __init__(self, strings: Iterable[bytes] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("q")
        for string in strings:
            self.append(string)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> bytes:
        """Return a string by its place, counted from the first."""
        end = self._ends[place]
        return bytes(self._bytes[self._ends[place - 1] if place else 0 : end])

    def __iter__(self) -> Iterator[bytes]:
        return (self[place] for place in range(len(self)))

    def append(self, string: bytes) -> None:
        """Add a string at the end."""
        self._bytes += string
        self._ends.append(len(self._bytes))

    def remove_at(self, place: int) -> None:
        """Remove a string by its place."""
        start, end = self._ends[place - 1] if place else 0, self._ends[place]
        del self._bytes[start:end], self._ends[place]
        if place < len(self._ends):  # NumPy takes no view of nothing
            np.frombuffer(self._ends, np.int64)[place:] -= end - start


class Paths(Collection[Location]):
    """Paths that become objects when they are gone through, each time anew."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._names = Strings(map(os.fsencode, paths))

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Location]:
        return (Path(os.fsdecode(name)) for name in self._names)

    def __contains__(self, path: object) -> bool:
        return any(path == one for one in self)


def packed(locations: Iterable[Location]) -> Collection[Location]:
    """Return the same places, packed where all of them are paths."""
    given = list(locations)
    paths = [place for place in given if isinstance(place, Path)]
    return Paths(paths) if len(paths) == len(given) else given


class Places(MutableMapping[int, int]):
    """Numbers under numbers, sixteen bytes each, in the order of the keys; quick where these are added as they grow."""

    def __init__(self) -> None:
        self._keys, self._values = array("q"), array("q")

    def _find(self, key: int) -> tuple[int, bool]:
        if self._keys and key > self._keys[-1]:
            return len(self._keys), False
        at = bisect_left(self._keys, key)
        return at, at < len(self._keys) and self._keys[at] == key

    def __setitem__(self, key: int, value: int) -> None:
        at, here = self._find(key)
        if here:
            self._values[at] = value
            return
        self._keys.insert(at, key)
        self._values.insert(at, value)

    def __getitem__(self, key: int) -> int:
        at, here = self._find(key)
        if not here:
            raise KeyError(key)
        return self._values[at]

    def __delitem__(self, key: int) -> None:
        at, here = self._find(key)
        if not here:
            raise KeyError(key)
        del self._keys[at], self._values[at]

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys[:])  # keys may be removed meanwhile

    def __len__(self) -> int:
        return len(self._keys)


class Names:
    """The number of each document by its name; of those that were added long ago a digest is held, and no name."""

    def __init__(self, name_of: Callable[[int], str]) -> None:
        """Have none; a digest that fits is compared with the name that the document itself tells."""
        self._name_of = name_of
        self._held: dict[str, int] = {}
        self._recent: dict[str, int] = {}
        self._digests = np.zeros(0, np.uint64)
        self._numbers = np.zeros(0, np.int64)

    def hold(self, name: str, number: int) -> None:
        """Have a name that is looked for often: one of an index that was opened."""
        self._held[name] = number

    def add(self, name: str, number: int) -> None:
        """Add a name, of a document that can tell it from now on."""
        self._recent[name] = number
        if len(self._recent) < _RECENT:
            return
        digests = np.concatenate([self._digests, np.array([_digest(name) for name in self._recent], np.uint64)])
        numbers = np.concatenate([self._numbers, np.array(list(self._recent.values()), np.int64)])
        order = np.argsort(digests, kind="stable")
        self._digests, self._numbers = digests[order], numbers[order]
        self._recent = {}

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __getitem__(self, name: str) -> int:
        number = self.get(name)
        if number is None:
            raise KeyError(name)
        return number

    def get(self, name: str) -> int | None:
        """Return the number of a name, None where there is none."""
        number = self._held.get(name, self._recent.get(name))
        if number is None and (place := self._place(name)) is not None:
            number = int(self._numbers[place])
        return number

    def __delitem__(self, name: str) -> None:
        for names in (self._held, self._recent):
            if name in names:
                del names[name]
                return
        place = self._place(name)
        if place is None:
            raise KeyError(name)
        self._digests, self._numbers = np.delete(self._digests, place), np.delete(self._numbers, place)

    def _place(self, name: str) -> int | None:
        if not len(self._digests):
            return None
        digest = np.uint64(_digest(name))
        first, end = (int(np.searchsorted(self._digests, digest, side=side)) for side in ("left", "right"))
        return next((place for place in range(first, end) if self._name_of(int(self._numbers[place])) == name), None)


def _digest(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
