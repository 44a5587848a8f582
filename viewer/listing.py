"""The list of questions in pieces: lines in blocks, cases in blocks, and where a case's address leads."""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from exhibit.evaluation.metrics import about
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.cases import Block
from exhibit.viewer.drawing import Record, Wanted
from exhibit.viewer.page import as_json

LINES = 500
"""Lines of the list in a piece: 40 pieces for 20,000 cases, each read in some milliseconds."""
CASES = 50
"""Cases in a piece: opened in a few milliseconds, and enough neighbours to share their passages' words."""
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

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each value, once all lines are counted."""
        return {value: number for number, value in enumerate(self.values())}

    def as_json(self) -> Record:
        """Return what the script reads."""
        counts = [self.counts[value] for value in self.values()]
        return {"name": self.name, "title": self.title, "values": self.values(), "counts": counts}


class Catalogue:
    """What a list can be narrowed by: facets that every line has, and the labels of questions."""

    def __init__(self, facets: Sequence[Facet]) -> None:
        """Take the facets, in the order in which lines have them."""
        self.facets = list(facets)
        self._labels: dict[str, Facet] = {}
        self._crowded: set[str] = set()

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

    def line(self, values: Sequence[str], fields: Sequence[Any], labels: Mapping[str, str]) -> list[Any]:
        """Return a line: its values by number (-1: none), its fields, its labels as pairs of numbers, other words."""
        numbers = [facet.numbers.get(value, -1) for facet, value in zip(self.facets, values, strict=True)]
        known = [
            (at, label.numbers[labels[name]]) for at, (name, label) in enumerate(self._labels.items()) if name in labels
        ]
        words = [value for name, value in labels.items() if name not in self._labels]
        return [*numbers, *fields, [number for pair in known for number in pair], " ".join(words)]

    def as_json(self) -> Record:
        """Return what the script reads."""
        return {"facets": [f.as_json() for f in self.facets], "labels": [f.as_json() for f in self._labels.values()]}


class PieceWriter:
    """Takes cases in the order of the list and writes their pieces."""

    def __init__(self, folder: Path, catalogue: Catalogue, wanted: Wanted) -> None:
        """Take where the pieces go."""
        self.metrics: dict[str, int] = {}
        """Their numbers."""
        self.total = 0
        self._folder = folder
        self._catalogue = catalogue
        self._wanted = wanted
        self._lines: list[list[Any]] = []
        self._block = Block(self.metrics, wanted)

    def add(self, rows: Sequence[RunQuestion | None], line: list[Any], *, rank: int | None = None) -> None:
        """Add a case; with a rank its pages may be drawn, the lowest first."""
        self._block.add(rows, rank=rank)
        self._lines.append(line)
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
        sizes = {"total": self.total, "lines": LINES, "cases": CASES}
        return {**sizes, **self._catalogue.as_json(), "metrics": [_described(name) for name in self.metrics]}

    def _put_lines(self) -> None:
        write_piece(self._folder, f"i{max(0, self.total - 1) // LINES}", self._lines)
        self._lines = []

    def _put_cases(self) -> None:
        write_piece(self._folder, f"c{(self.total - 1) // CASES}", self._block.as_json())
        self._block = Block(self.metrics, self._wanted)


def _described(metric: str) -> list[str]:
    """Return the words for a metric: name, title, unit, meaning, and which way is better."""
    told = about(metric)
    return [metric, told.title, "%" if told.unit == "share" else told.sign, told.meaning, told.better]


IMAGES = "pages"
"""The folder of the pages' pictures, among the pieces."""
_KINDS = {".png": "png", ".webp": "webp"}


def pack(value: Any) -> str:
    """Return a value as compressed JSON in base64."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(as_json(value).encode("utf-8")) + packer.flush()
    return base64.b64encode(data).decode("ascii")


def write_piece(folder: Path, name: str, value: Any) -> None:
    """Write a piece that the page asks for by its name."""
    (folder / f"{name}.js").write_text(f'exhibitPiece("{name}","{pack(value)}")\n', encoding="ascii")


class Inlined:
    """Pieces and pictures of a folder as blocks of the page itself, as many as its budget allows."""

    def __init__(self, folder: Path, *, budget: int) -> None:
        """Take the index whole, then cases, then what lies on pages with their pictures."""
        self.blocks: dict[str, str] = {}
        self.cases = 0
        """Pieces of cases that are in, from the first on."""
        self.pages_left_out = 0
        self._left = budget
        for path in _in_order(folder, "i"):
            self._put(f"piece-{path.stem}", _content(path))
        for path in _in_order(folder, "c"):
            if not self._put(f"piece-{path.stem}", _content(path)):
                break
            self.cases += 1
        for path in _in_order(folder, "d"):
            self._put(f"piece-{path.stem}", _content(path))
        for path in sorted(folder.glob(f"{IMAGES}/*"), key=lambda path: [int(n) for n in path.stem.split("-")]):
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            if not self._put(f"image-{path.name}", f"data:image/{_KINDS[path.suffix]};base64,{data}"):
                self.pages_left_out += 1

    def _put(self, name: str, text: str) -> bool:
        if len(text) > self._left:
            return False
        self._left -= len(text)
        self.blocks[name] = text
        return True


def _in_order(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"{kind}[0-9]*.js"), key=lambda path: int(path.stem[1:]))


def _content(path: Path) -> str:
    """Return what a piece hands over."""
    return path.read_text(encoding="ascii").rpartition('","')[2].removesuffix('")\n')
