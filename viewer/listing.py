"""The list of questions in pieces: lines in blocks, cases in blocks, and where a case's address leads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exhibit.evaluation.metrics import about
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.cases import Block, Table
from exhibit.viewer.drawing import Wanted
from exhibit.viewer.pieces import key_bucket, write_piece
from exhibit.viewer.sheets import Record

LINES = 500
"""Lines of the list in a piece: 40 pieces for 20,000 cases, each read in some milliseconds."""
CASES = 50
"""Cases in a piece: opened in a few milliseconds, and enough neighbours to share their passages' words."""
_KEYS = 400
"""Addresses in a piece."""
_MOST_VALUES = 300
"""A label with more values than this names questions rather than sorting them; search finds it all the same."""
_MOST_LABELS = 40  # that the list can be filtered by: more fill no menu


@dataclass
class Facet:
    """Something that the list can be narrowed by: its values, counted."""

    name: str
    title: str
    order: Sequence[str] = ()
    """Values in the order they are offered in; those not named here follow by name."""
    counts: Counter[str] = field(default_factory=Counter)

    def values(self) -> list[str]:
        """Return the values there are, in order."""
        known = [value for value in self.order if self.counts[value]]
        return known + sorted(value for value in self.counts if value and value not in set(known))


class Catalogue:
    """What a list can be narrowed by: facets that every line has, and the labels of questions."""

    def __init__(self, facets: Sequence[Facet]) -> None:
        """Take the facets, in the order in which lines have them."""
        self.facets = list(facets)
        self._labels: dict[str, Facet] = {}
        self._crowded: set[str] = set()
        self._numbers: dict[str, dict[str, int]] = {}

    def count(self, values: Sequence[str], labels: Mapping[str, str]) -> None:
        """Count a line."""
        for facet, value in zip(self.facets, values, strict=True):
            facet.counts[value] += 1
        for name, value in labels.items():
            if name in self._crowded or (name not in self._labels and len(self._labels) >= _MOST_LABELS):
                continue
            label = self._labels.setdefault(name, Facet(name, name.replace("_", " ")))
            label.counts[value] += 1
            if len(label.counts) > _MOST_VALUES:
                self._crowded.add(name)
                del self._labels[name]

    def close(self) -> None:
        """Give every value its number, once all lines are counted."""
        for facet in [*self.facets, *self._labels.values()]:
            self._numbers[f"{facet in self.facets} {facet.name}"] = {v: n for n, v in enumerate(facet.values())}

    def line(self, values: Sequence[str], fields: Sequence[Any], labels: Mapping[str, str]) -> list[Any]:
        """Return a line: its values by number (-1: none), its fields, its labels as pairs of numbers, other words."""
        numbers = [self._numbers[f"True {f.name}"].get(v, -1) for f, v in zip(self.facets, values, strict=True)]
        pairs, words = [], []
        names = {name: number for number, name in enumerate(self._labels)}
        for name, value in labels.items():
            if name in names:
                pairs += [names[name], self._numbers[f"False {name}"][value]]
            else:
                words.append(value)
        return [*numbers, *fields, pairs, " ".join(words)]

    def as_json(self) -> Record:
        """Return what the script reads."""
        return {"facets": [_told(f) for f in self.facets], "labels": [_told(f) for f in self._labels.values()]}


class PieceWriter:
    """Takes cases in the order of the list and writes their pieces."""

    def __init__(self, folder: Path, catalogue: Catalogue, wanted: Wanted) -> None:
        """Take where the pieces go."""
        self.metrics = Table()
        self.total = 0
        self._folder = folder
        self._catalogue = catalogue
        self._wanted = wanted
        self._lines: list[list[Any]] = []
        self._block = Block(self.metrics, wanted)
        self._keys: list[str] = []

    def add(self, rows: Sequence[RunQuestion | None], line: list[Any], *, rank: int | None = None) -> None:
        """Add a case; with a rank its pages may be drawn, the lowest first."""
        self._block.add(rows, rank=rank)
        self._lines.append(line)
        case = self._block.cases[-1]
        self._keys.append(f"{case['dataset']}/{case['id']}")
        self.total += 1
        if self.total % CASES == 0:
            self._put_cases()
        if self.total % LINES == 0:
            self._put_lines()

    def close(self) -> Record:
        """Write what is left, and return what the script must know."""
        if self._block.cases:
            self._put_cases()
        if self._lines or not self.total:
            self._put_lines()
        buckets = max(1, -(-self.total // _KEYS))
        places: list[dict[str, int]] = [{} for _ in range(buckets)]
        for number, key in enumerate(self._keys):
            places[key_bucket(key, buckets)].setdefault(key, number)
        for bucket, numbers in enumerate(places):
            write_piece(self._folder, f"k{bucket}", numbers)
        sizes = {"total": self.total, "lines": LINES, "cases": CASES, "buckets": buckets}
        return {**sizes, **self._catalogue.as_json(), "metrics": [_described(name) for name in self.metrics]}

    def _put_lines(self) -> None:
        write_piece(self._folder, f"i{max(0, self.total - 1) // LINES}", self._lines)
        self._lines = []

    def _put_cases(self) -> None:
        write_piece(self._folder, f"c{(self.total - 1) // CASES}", self._block.as_json())
        self._block = Block(self.metrics, self._wanted)


def _told(facet: Facet) -> Record:
    values = facet.values()
    return {"name": facet.name, "title": facet.title, "values": values, "counts": [facet.counts[v] for v in values]}


def _described(metric: str) -> list[str]:
    """Return the words for a metric: name, title, unit, meaning, and which way is better."""
    told = about(metric)
    return [metric, told.title, "%" if told.unit == "share" else told.sign, told.meaning, told.better]
