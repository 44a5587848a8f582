"""The documents' own words: which column quotes them, and which document a passage without a name is from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from exhibit.converters._records import Record, columns_of
from exhibit.converters._table.columns import Columns, values, words
from exhibit.converters._table.documents import Shelf, is_url
from exhibit.engine import track
from exhibit.evidence.fold import fold
from exhibit.evidence.folder import Listed
from exhibit.evidence.guard import read_within
from exhibit.evidence.read import readable
from exhibit.schemas.errors import DocumentError

_LOOKED_AT = 20
"""Cells of a column that are looked for in the documents."""
_MOST = 0.5
"""Share of a column's cells that must be what the column is taken for."""
_NEARLY_ALL = 0.9
"""The same for a column that its heading says is something else: a few answers may be the names of files, too."""
_LONG = 20
"""Folded characters: fewer stand in any contract."""


@dataclass
class Texts:
    """The documents of a folder as folded text; one that cannot be read has none."""

    shelf: Shelf
    _read: dict[str, str] = field(default_factory=dict)

    def of(self, file: Listed) -> str:
        """Return a document's words as they are compared."""
        if file.name not in self._read:
            try:
                text = read_within(file.path).text if readable(file.path) else ""
            except DocumentError:
                text = ""  # whoever makes it a document says why
            self._read[file.name] = fold(text, loose=True)
        return self._read[file.name]

    @cached_property
    def _all(self) -> list[tuple[str, str]]:
        files = track(self.shelf.files, total=len(self.shelf.files), label="documents searched for passages")
        return [(file.name, self.of(file)) for file in files]

    def holders(self, passage: str) -> list[str]:
        """Return the documents that have a passage."""
        needle = fold(passage, loose=True)
        return [name for name, text in self._all if needle and needle in text]


def columns_by_cells(columns: Columns, named: Iterable[str], records: Sequence[Record], texts: Texts) -> Columns:
    """Return the columns, the document and the passage known by what their cells hold where nobody named them.

    A column whose cells name files of the folder is the document, whatever its heading; one whose cells stand in those
    files is the passage.
    """
    columns, shelf = dict(columns), texts.shelf
    free = columns_of(records)
    if shelf.folder is not None and "document" not in named:
        guessed = columns["document"]
        others = {name for role, name in columns.items() if role != "document"}
        shares = {name: _naming(records, name, shelf) for name in free}
        likely = [name for name in free if shares[name] >= (_NEARLY_ALL if name in others else _MOST)]
        best = max(likely, key=lambda name: shares[name], default=None)
        if best and (guessed is None or shares[best] > shares.get(guessed, 0.0)):
            columns = {role: None if name == best else name for role, name in columns.items()} | {"document": best}
    document = columns["document"]
    if shelf.folder is not None and columns["text"] is None and "text" not in named and document:
        taken = set(columns.values())
        quoted = {name: _quotes(records, name, document, texts) for name in free if name not in taken}
        best = max(quoted, key=lambda name: quoted[name], default=None)
        if best and quoted[best] >= _MOST:
            columns["text"] = best
    return columns


def _cells(records: Sequence[Record], column: str) -> list[tuple[Record, str]]:
    told = [(record, words(cell)) for record in records for cell in values(record.cells.get(column))]
    return [(record, cell) for record, cell in told if not is_url(cell)]


def _naming(records: Sequence[Record], column: str, shelf: Shelf) -> float:
    """Return the share of a column's cells that name a file of the folder."""
    cells = _cells(records, column)
    return sum(shelf.names.find(cell) is not None for _, cell in cells) / len(cells) if cells else 0.0


def _quotes(records: Sequence[Record], column: str, document: str, texts: Texts) -> float:
    """Return the share of a column's cells that stand in the document of their row."""
    files = {file.name: file for file in texts.shelf.files}
    looked = [(record, fold(cell, loose=True)) for record, cell in _cells(records, column)]
    looked = [(record, cell) for record, cell in looked if len(cell) >= _LONG][:_LOOKED_AT]
    hits = 0
    for record, cell in looked:
        names = (texts.shelf.names.find(words(name)) for name in values(record.cells.get(document)))
        hits += any(cell in texts.of(files[name]) for name in names if name)
    return hits / len(looked) if looked else 0.0
