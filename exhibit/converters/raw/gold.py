"""Reads the gold of a row: quotes, provisions, documents and pages, in separate columns or in the objects of a list."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exhibit.converters.benchmark import Label, Tally
from exhibit.converters.raw.cells import list_cell_values, read_cell_words, read_number, split_values
from exhibit.converters.raw.columns import Columns, split_path
from exhibit.converters.raw.documents import Texts
from exhibit.evidence.fields import choose_name, flatten_object
from exhibit.law.citations import BRACKETED
from exhibit.law.provisions import NamedProvision, read_provisions
from exhibit.schemas.errors import SourceError

_TELLING = 20
"""Fewest characters of a field with an unknown name that may be a passage."""
_FLAGS = 3
"""Most flags that an error proposes."""


class CitedPassage(NamedTuple):
    """A passage as the table gives it: its document, and its words, provision, page or offsets."""

    document: str
    text: str | None = None
    provision: str = ""
    page: int | None = None
    offsets: tuple[int, int] | None = None
    grade: int | None = None
    labels: tuple[tuple[str, Label], ...] = ()


@dataclass
class GoldReader:
    """A reader that returns the gold passages of each table row, from the columns that the user chose.

    A cell may hold a JSON object. The reader records the fields of objects in which it finds no passage, for
    the error message of `check`.
    """

    columns: Columns
    seen: Sequence[str]
    texts: Texts
    only: str | None
    tally: Tally
    _yields: dict[str, bool] = field(default_factory=dict)
    _unknown: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each column, the fields of objects that gave no passage, each with its number of characters."""

    def read(self, cells: Mapping[str, Any], place: str) -> list[CitedPassage]:
        """Return the gold of a row; raise a ValueError with the reason if it is ambiguous."""
        named = list(self._read_documents(cells))
        quoted = self._list_items(cells, "text")
        passages = list(self._read_quoted(quoted, named, cells))
        if not passages or not any(one.text or one.provision for one in passages):
            cited = [self._read_cited(value, named, place) for value in self._list_items(cells, "provision")]
            provisions = [passage for group in cited for passage in group]
            passages = provisions or passages
        if passages or quoted:
            return passages
        if not named or named == [(self.only, None)]:
            answer = " ".join(read_cell_words(one) for one in self._list_items(cells, "answer"))
            found = [self.texts.shelf.find_named(one) for one in BRACKETED.findall(answer)]
            cited_files = [CitedPassage(one[0], page=one[1]) for one in found if one]
            if cited_files:
                return cited_files  # "… within 30 days [lease.pdf#page=2]" cites a file
        pages = self._read_numbers(cells, "page")
        if len(named) == 1 and pages:
            return [CitedPassage(named[0][0], page=page) for page in pages]
        paired = pages if len(pages) == len(named) else [None] * len(named)
        return [CitedPassage(name, page=stated or page) for (name, stated), page in zip(named, paired, strict=True)]

    def read_acceptable(self, cells: Mapping[str, Any], place: str) -> list[CitedPassage]:
        """Return the passages that a row accepts as alternatives to the expected ones."""
        named = list(self._read_documents(cells))
        cited = (self._read_cited(value, named, place) for value in self._list_items(cells, "acceptable"))
        return [passage for group in cited for passage in group]

    def check(self, table: object) -> None:
        """Raise SourceError if a column of passages has objects, but no known field name for their text.

        The error names the fields that may hold the text, as flags such as `--text evidence.words`.
        """
        for column, fields in self._unknown.items():
            if self._yields.get(column):
                continue
            likely = sorted((name for name in fields if fields[name] >= _TELLING), key=lambda name: -fields[name])
            if likely:
                flags = ", or ".join(f"--text {column}.{name}" for name in likely[:_FLAGS])
                raise SourceError(
                    f"{table}: column {column!r} has objects as passages, but no field of them is known as the text "
                    f"(the fields: {', '.join(fields)}); name the field: {flags}"
                )

    # ------------------------------------------------------------ columns

    def _split_path(self, role: str) -> tuple[str, str]:
        path = self.columns.get(role)
        return (split_path(path, self.seen) or (path, "")) if path else ("", "")

    def _list_items(self, cells: Mapping[str, Any], role: str) -> list[Any]:
        column, _ = self._split_path(role)
        cell = cells.get(column) if column else None
        return list_cell_values(cell) if role == "text" else self._split_cell(cell)

    def _split_cell(self, cell: Any) -> list[Any]:
        """Return the values of a cell; a text with several names is split, unless it is the name of a known file."""
        found = list_cell_values(cell)
        if len(found) == 1 and isinstance(found[0], str) and not self.texts.shelf.find_named(found[0]):
            pieces = split_values(cell)
            if len(pieces) == 1 and ", " in found[0]:
                cut = [part.strip() for part in found[0].split(", ")]
                pieces = cut if all(self.texts.shelf.find_named(part) for part in cut) else pieces
            return pieces
        return found

    def _read_documents(self, cells: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
        """Yield the documents that a row names, each with the page that is stated with its name, else None.

        Nothing is yielded if the row has an object for each passage and these objects name the documents.
        """
        column, inner = self._split_path("document")
        if inner and column in (self._split_path("text")[0], self._split_path("provision")[0]):
            return
        cited = [
            (
                self._find_field(flatten_object(value), "document", column)
                if isinstance(value, dict)
                else read_cell_words(value)
            )
            for value in self._split_cell(cells.get(column) if column else None)
        ]
        named = list(filter(None, map(read_cell_words, cited)))
        for name in named or ([self.only] if self.only else []):
            found = self.texts.shelf.find_named(name)
            yield (found if found and found[1] is not None else (name, None))

    def _read_numbers(self, cells: Mapping[str, Any], role: str) -> list[int]:
        column, inner = self._split_path(role)
        held = list_cell_values(cells.get(column)) if column and not inner else []
        return [found for one in held if (found := read_number(one)) is not None]

    def _find_field(self, fields: Mapping[str, Any], role: str, column: str) -> Any:
        """Return the value of an object's field for a role, such as `document`; None if there is no such field.

        The field is the one that the user named within this column, else one with a common name for the role.
        """
        own, inner = self._split_path(role)
        if inner and own == column:
            return fields.get(inner)
        name = choose_name((name for name, held in fields.items() if read_cell_words(held)), role)
        return fields[name] if name is not None else None

    # ------------------------------------------------------------ passages

    def _read_quoted(
        self, items: Sequence[Any], named: Sequence[tuple[str, int | None]], cells: Mapping[str, Any]
    ) -> Iterator[CitedPassage]:
        """Yield the passages of the text column, each with its document.

        A passage that is an object may name its document. Any other passage belongs to the row's only document. If
        the row lists several documents, there must be one for each passage, in the same order; otherwise, raise
        ValueError.
        """
        column, _ = self._split_path("text")
        beside = {role: self._read_numbers(cells, role) for role in ("page", "start", "end", "grade")}
        for at, value in enumerate(items):
            passage = (
                self._read_object(value, column)
                if isinstance(value, dict)
                else CitedPassage("", read_cell_words(value))
            )
            if passage is None:
                continue
            if not passage.document and len(named) not in (0, 1, len(items)):
                raise ValueError(
                    f"{len(items)} passages, but {len(named)} documents: which passage is in which document?"
                )
            document, page = named[at if len(named) > 1 else 0] if named and not passage.document else ("", None)
            numbers = {role: _choose_nth(found, at, len(items)) for role, found in beside.items()}
            ends = (numbers["start"], numbers["end"])
            yield passage._replace(
                document=passage.document or document,
                page=_choose_first(passage.page, page, numbers["page"]),
                offsets=passage.offsets or _make_offsets(*ends, passage.text),
                grade=_choose_first(passage.grade, numbers["grade"]),
            )

    def _read_object(self, value: Mapping[str, Any], column: str) -> CitedPassage | None:
        """Return the passage that an object describes; None if the object has no known field."""
        fields = flatten_object(value)
        held = {role: self._find_field(fields, role, column) for role in _IN_OBJECTS}
        pages = list_cell_values(held["page"])
        text = read_cell_words(held["text"]) or None
        provision = read_cell_words(held["provision"])
        if not text and not provision:
            unknown = self._unknown.setdefault(column, {})
            for name, one in fields.items():
                if one is not held["document"]:
                    unknown[name] = max(unknown.get(name, 0), len(read_cell_words(one)))
        else:
            self._yields[column] = True
        passage = CitedPassage(
            read_cell_words(held["document"]),
            text,
            provision,
            read_number(pages[0]) if pages else None,
            _make_offsets(read_number(held["start"]), read_number(held["end"]), text),
            read_number(held["grade"]),
        )
        return passage if any((text, provision, passage.document, passage.page is not None)) else None

    # ------------------------------------------------------------ provisions

    def _read_cited(self, value: Any, named: Sequence[tuple[str, int | None]], place: str) -> list[CitedPassage]:
        """Return the passages that a citation names: a file, a page of a file, or provisions.

        Record a note if the citation names none of these.
        """
        grade = None
        if isinstance(value, dict):
            column = self._split_path("provision")[0]
            passage = self._read_object(value, column)
            if passage is None or not passage.provision:
                return [passage] if passage else []
            law, text, grade = passage.document, passage.provision, passage.grade
            if not read_provisions(text):
                text = f"{law} {text}"
        else:
            law, text = "", read_cell_words(value)
            found = self.texts.shelf.find_named(text)
            if found:
                return [CitedPassage(found[0], page=found[1])]
        provisions = read_provisions(text)
        if not provisions:
            self.tally.note("citation that names no file and no provision that is known", f"{place}: {text[:80]}")
            return []
        made = []
        for one in provisions:
            document = self._document_of(one, law, named, place)
            if document:
                made.append(CitedPassage(document, None, one.label, grade=grade))
        return made

    def _document_of(
        self, provision: NamedProvision, law: str, named: Sequence[tuple[str, int | None]], place: str
    ) -> str | None:
        """Return the document that has a provision; None, with a note, if no document or several are possible.

        The document is the file of the named law, else the only document that the row names, else the only document
        that contains the provision.
        """
        for source in filter(None, (law, provision.source)):
            file = self.texts.find_law_file(source)
            if file:
                return file
        files = list(dict.fromkeys(name for name, _ in named))
        if len(files) == 1 and self.texts.may_be(files[0], provision):
            return files[0]
        having = [name for name in self.texts.find_having(provision) if self.texts.may_be(name, provision)]
        if len(having) == 1:
            return having[0]
        several = f"provision stands in {len(having)} documents, and the row names none of them: it is ambiguous"
        self.tally.note(several if having else "provision of a law that is not at hand", f"{place}: {provision.label}")
        return None


def name_unplaced(passages: Sequence[CitedPassage], acceptable: Sequence[CitedPassage]) -> list[str]:
    """Return the names of the passages in `acceptable` that cannot be stored as alternatives to the gold.

    `passages` is the gold; `acceptable` are passages that a row accepts instead of it. An acceptable provision
    can be stored if its document contains gold. An acceptable whole document can be stored only if the whole
    document is gold.
    """
    gold, whole = {one.document for one in passages}, {one.document for one in passages if not _is_part(one)}
    return [
        f"{one.provision} in {one.document}" if one.provision else one.document
        for one in acceptable
        if one.document not in gold or (not one.provision and one.document not in whole)
    ]


def _is_part(passage: CitedPassage) -> bool:
    return bool(passage.text or passage.provision or passage.offsets or passage.page is not None)


_IN_OBJECTS = ("document", "text", "provision", "page", "start", "end", "grade")


def _choose_nth(found: Sequence[int], at: int, count: int) -> int | None:
    """Return `found[at]`, the number that belongs to the passage at position `at`.

    Return None if `found` does not have exactly one number for each of the `count` passages.
    """
    return found[at] if len(found) == count else None


def _choose_first(*numbers: int | None) -> int | None:
    return next((one for one in numbers if one is not None), None)


def _make_offsets(start: int | None, end: int | None, text: str | None) -> tuple[int, int] | None:
    if start is None:
        return None
    end = start + len(text) if end is None and text else end
    return (start, end) if end is not None and end > start else None
