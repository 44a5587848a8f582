"""What sort of document each is, and its file's name as one run of letters."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np

from exhibit.rag.lexicon.postings import Numbers
from exhibit.rag.packed import Strings


class Labels:
    """Kinds and runs under the documents' numbers, in the order they were added: twenty bytes each, and the run."""

    def __init__(self) -> None:
        self._numbers, self._codes = array("q"), array("I")
        self._kinds: dict[str, int] = {}
        """Each kind that occurs, with its code."""
        self._runs = Strings()

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int, kind: str, run: str) -> None:
        """Add a document under a number that is not taken."""
        letters = str.encode(run, "utf-8", "surrogatepass")
        self._codes.append(self._kinds.setdefault(kind, len(self._kinds)))
        self._numbers.append(number)
        self._runs.append(letters)

    def remove(self, number: int) -> None:
        """Forget a document; KeyError where there is none."""
        try:
            place = self._numbers.index(number)
        except ValueError:
            raise KeyError(number) from None
        del self._numbers[place], self._codes[place]
        self._runs.remove_at(place)

    @property
    def numbers(self) -> Numbers:
        """The numbers, in order."""
        return np.sort(np.array(self._numbers, np.int64))

    def kinds(self) -> Iterator[str]:
        """Yield the kinds in the order of the numbers."""
        names = list(self._kinds)
        return (names[self._codes[place]] for place in self._order())

    def runs(self) -> Iterator[str]:
        """Yield the files' names in the order of the numbers."""
        return (self._runs[place].decode("utf-8", "surrogatepass") for place in self._order())

    def _order(self) -> Iterator[int]:
        return iter(np.argsort(np.array(self._numbers, np.int64), kind="stable"))  # one at a time: no list of them
