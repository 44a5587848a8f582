"""Reads questions and their gold from the rows of a table: quotes, provisions, documents and pages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from exhibit.converters import Quote, RawRow, Tally
from exhibit.converters.tables.cells import (
    find_chosen_option,
    label,
    list_cell_values,
    read_cell_text,
    read_cell_words,
    read_number,
    read_options,
    read_refusal,
    split_values,
)
from exhibit.converters.tables.columns import MAX_FLAGS, Columns, split_path
from exhibit.converters.tables.documents import Shelf
from exhibit.converters.tables.records import Record
from exhibit.evidence.fields import choose_name, flatten_object
from exhibit.law.citations import BRACKETED
from exhibit.law.provisions import NamedProvision, read_provisions
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import MUST_CONTAIN, MUST_NOT_CONTAIN

MIN_TEXT_CHARS = 20  # least characters of a field with an unknown name that may be a passage
_HOP = re.compile(r"^\s*<\d+-hop>\s*")  # ragas writes this above the passages of a question that needs several
NO_LAW = "provision without a law, in a row without a document: it is not gold"
UNPLACED = "accepted passage outside the gold's documents: only a label"
_WORDS = ("document", "text", "provision")
_NOWHERE = Quote("", None)


class GoldReader:
    """Reads the gold passages of each row, from the columns that were chosen."""

    def __init__(self, columns: Columns, seen: Sequence[str], shelf: Shelf, only: str | None, tally: Tally) -> None:
        self._paths = {role: split_path(path, seen) or (path, "") for role, path in columns.items() if path}
        self._shelf, self._only, self._tally = shelf, only, tally
        self._understood: set[str] = set()  # columns with objects, at least one of which has a text
        self._unknown: dict[str, dict[str, int]] = {}  # by column, lengths of fields that gave no passage
        self._cells: dict[str, Any] = {}  # cells of the current row, as all fields below
        self._place = ""
        self._named: list[tuple[str, int | None]] = []

    def read(self, record: Record) -> tuple[tuple[Quote, ...], list[str]]:
        """Return the gold of a row, and the acceptable passages outside its documents; raise ValueError with the fault.

        A quote has the document's name and the page as the table states them, and no file name if it is not gold.
        """
        self._cells, self._place = record.cells, record.place
        self._named = list(self._read_documents())
        quotes = [_NOWHERE if ("grade", 0) in quote.labels else self._assign(quote) for quote in self._list_quotes()]
        return self._accept(quotes, [quote for quote in self._list_cited("acceptable") if quote.filename])

    def _accept(self, quotes: Sequence[Quote], acceptable: Sequence[Quote]) -> tuple[tuple[Quote, ...], list[str]]:
        """Add acceptable provisions to the quotes of their document; return them, and the names of all others."""
        worded = {quote.filename for quote in quotes if quote.text or quote.provision}
        whole = {quote.filename for quote in quotes} - worded
        others = [other for other in acceptable if other.filename not in (worded if other.provision else whole)]
        names = [f"{other.provision} in {other.filename}" if other.provision else other.filename for other in others]
        for name in names:
            self._tally.note(UNPLACED, f"{self._place}: {name}")
        provisions = {
            name: tuple(o.provision for o in acceptable if o.provision and o.filename == name) for name in worded
        }
        return tuple(replace(quote, acceptable=provisions.get(quote.filename, ())) for quote in quotes), names

    def _assign(self, quote: Quote) -> Quote:
        """Return a quote; if the row names no document, the only document that contains the quote."""
        if quote.filename or quote.provision:
            return quote
        if not self._shelf.files:
            raise ValueError("passage without a document")
        text = _HOP.sub("", quote.text or "")
        holders = self._shelf.find_holders(text)
        if len(holders) == 1:
            return replace(quote, filename=holders[0], text=text)
        several = "passage without a document is in several: it is ambiguous, and not gold"
        reason = several if holders else "passage without a document is in none"
        self._tally.note(reason, f"{self._place}: {text[:80]!r}")
        return quote

    def check(self, table: object) -> None:
        """Raise SourceError, with flags to try, if a column has objects without a known field for their text."""
        for column, fields in self._unknown.items():
            likely = sorted((name for name in fields if fields[name] >= MIN_TEXT_CHARS), key=lambda name: -fields[name])
            if likely and column not in self._understood:
                flags = ", or ".join(f"--text {column}.{name}" for name in likely[:MAX_FLAGS])
                raise SourceError(
                    f"{table}: column {column!r} has objects as passages, but no field of them is known as the text "
                    f"(the fields: {', '.join(fields)}); name the field: {flags}"
                )

    def _list_quotes(self) -> Sequence[Quote]:
        items, cited = self._list_items("text"), list[Quote]()
        quotes = list(self._read_quoted(items))
        if not any(quote.text or quote.provision for quote in quotes):
            cited = self._list_cited("provision")
            quotes = [quote for quote in cited if quote.filename] or quotes
        if quotes or items:
            return quotes or [_NOWHERE]
        return self._read_files() or [_NOWHERE for _ in cited]

    def _list_cited(self, role: str) -> list[Quote]:
        return [quote for value in self._list_items(role) for quote in self._read_cited(value)]

    def _read_files(self) -> list[Quote]:
        """Return whole documents or pages as gold, for a row without quotes and provisions."""
        named = self._named
        if not named or named == [(self._only, None)]:
            answer = " ".join(map(read_cell_words, self._list_items("answer")))
            # "… within 30 days [lease.pdf#page=2]" cites a file
            if cited := list(filter(None, map(self._shelf.find_named, BRACKETED.findall(answer)))):
                return [Quote(name, None, page=page) for name, page in cited]
        pages = self._read_numbers("page")
        if len(named) == 1 and pages:
            return [Quote(named[0][0], None, page=page) for page in pages]
        paired = pages if len(pages) == len(named) else [None] * len(named)
        return [Quote(name, None, page=stated or page) for (name, stated), page in zip(named, paired, strict=True)]

    # ------------------------------------------------------------ columns

    def _find_column(self, role: str) -> tuple[str, str]:
        return self._paths.get(role, ("", ""))

    def _list_items(self, role: str) -> list[Any]:
        """Return the values of a role's cell; a text with several names is split unless it is a known file's name."""
        cell = self._cells.get(self._find_column(role)[0])
        values, find_named = list_cell_values(cell), self._shelf.find_named
        if role == "text" or len(values) != 1 or not isinstance(values[0], str) or find_named(values[0]):
            return values
        pieces, by_comma = split_values(cell), [part.strip() for part in values[0].split(", ")]
        return by_comma if len(pieces) == 1 < len(by_comma) and all(map(find_named, by_comma)) else pieces

    def _read_documents(self) -> Iterator[tuple[str, int | None]]:
        """Yield the documents that the row names, with stated pages; nothing if the passages' objects name them."""
        column, inner = self._find_column("document")
        if inner and column in (self._find_column("text")[0], self._find_column("provision")[0]):
            return
        cited = [
            self._find_field(flatten_object(value), "document", column) if isinstance(value, dict) else value
            for value in self._list_items("document")
        ]
        names = list(filter(None, map(read_cell_words, cited)))
        for name in names or filter(None, [self._only]):
            file = self._shelf.find_named(name)
            yield (file if file and file[1] is not None else (name, None))

    def _read_numbers(self, role: str) -> list[int]:
        column, inner = self._find_column(role)
        values = [] if inner else list_cell_values(self._cells.get(column))
        return [number for value in values if (number := read_number(value)) is not None]

    def _find_field(self, fields: Mapping[str, Any], role: str, column: str) -> Any:
        """Return an object's value for a role, from the field that the user named or a field with a common name."""
        own, inner = self._find_column(role)
        if inner and own == column:
            return fields.get(inner)
        name = choose_name((name for name, held in fields.items() if read_cell_words(held)), role)
        return fields[name] if name is not None else None

    # ------------------------------------------------------------ passages

    def _read_quoted(self, items: Sequence[Any]) -> Iterator[Quote]:
        """Yield the passages of the text column, each with its document.

        The passage's object names the document; else it is the row's only document or the one at the same position.
        """
        column, named = self._find_column("text")[0], self._named
        beside = {role: self._read_numbers(role) for role in ("page", "grade")}
        for at, value in enumerate(items):
            stated: dict[str, Any] = {role: found[at] for role, found in beside.items() if len(found) == len(items)}
            held = self._read_object(value, column) if isinstance(value, dict) else {"text": read_cell_words(value)}
            if not held:
                continue
            if named and "document" not in held:
                if len(named) not in (1, len(items)):
                    raise ValueError(
                        f"{len(items)} passages, but {len(named)} documents: which passage is in which document?"
                    )
                stated["document"], page = named[at if len(named) > 1 else 0]
                stated |= {} if page is None else {"page": page}
            yield _make_quote(**(stated | held))

    def _read_object(self, value: Mapping[str, Any], column: str) -> dict[str, Any]:
        """Return the parts of a passage that an object describes, by role; empty if the object has no known field."""
        fields = flatten_object(value)
        found = {role: self._find_field(fields, role, column) for role in (*_WORDS, "page", "grade")}
        held: dict[str, Any] = {role: read_cell_words(found[role]) for role in _WORDS}
        held["page"] = next(map(read_number, list_cell_values(found["page"])), None)
        held["grade"] = read_number(found["grade"])
        if held["text"] or held["provision"]:
            self._understood.add(column)
        else:
            unknown = self._unknown.setdefault(column, {})
            for name, content in fields.items():
                if content is not found["document"]:
                    unknown[name] = max(unknown.get(name, 0), len(read_cell_words(content)))
        held = {role: part for role, part in held.items() if part not in ("", None)}
        return held if held.keys() - {"grade"} else {}

    # ------------------------------------------------------------ provisions

    def _read_cited(self, value: Any) -> list[Quote]:
        """Return the files, pages or provisions that a citation names; note a citation that names none."""
        held = self._read_object(value, self._find_column("provision")[0]) if isinstance(value, dict) else {}
        law, text = held.get("document", ""), held.get("provision", "")
        if isinstance(value, dict):
            if not text:
                return [_make_quote(**held)] if held else []
            text = text if read_provisions(text) else f"{law} {text}"
        else:
            text = read_cell_words(value)
            if file := self._shelf.find_named(text):
                return [Quote(file[0], None, page=file[1])]
        provisions = read_provisions(text)
        if not provisions:
            reason = "citation that names no file and no provision that is known"
            self._tally.note(reason, f"{self._place}: {text[:80]}")
            return [_NOWHERE]
        grade = held.get("grade")
        return [
            _make_quote(self._find_document(named, law), provision=named.label, grade=grade) for named in provisions
        ]

    def _find_document(self, provision: NamedProvision, law: str) -> str:
        """Return the file of the named law, else the row's only document if it may contain the provision."""
        for source in filter(None, (law, provision.source)):
            if file := self._shelf.find_law_file(source):
                return file
        files = list(dict.fromkeys(name for name, _ in self._named))
        if len(files) == 1 and self._shelf.may_be(files[0], provision):
            return files[0]
        reason = "provision of a law that is not in the documents" if law or provision.source else NO_LAW
        self._tally.note(reason, f"{self._place}: {provision.label}")
        return ""


def _make_quote(
    document: str = "", *, text: str = "", provision: str = "", page: int | None = None, grade: int | None = None
) -> Quote:
    labels = () if grade is None else (("grade", grade),)
    return Quote(document, text or None, labels=labels, provision=provision, page=page)


# ---------------------------------------------------------------- questions


def read_questions(records: list[Record], columns: Columns, gold: GoldReader, tally: Tally) -> list[RawRow]:
    """Return the questions in order; rows with the same id are one question."""
    ids = [read_cell_words(record.cells.get(columns["id"] or "")) for record in records]
    numeric = all(re.fullmatch(r"\d{1,15}", name) for name in ids) and columns["id"] is not None
    grouped: dict[str, RawRow] = {}
    for record, name in zip(records, ids, strict=True):
        try:
            row = _read_question(record, columns, gold, int(name) if numeric else record.index)
        except ValueError as error:
            tally.fault(str(error), record.place, item=record.item)
            continue
        if name and not numeric:
            row = replace(row, labels={"id": name, **row.labels})
        # 7 and 007 are the same number; a row without an id is a separate question
        key = str(row.id) if numeric else name or f"\0{record.place}"
        first = grouped.setdefault(key, row)
        if first is row:
            continue
        if first.question != row.question or first.is_impossible != row.is_impossible:
            line = f"{record.place}: {name}"
            tally.fault("another question under the id of an earlier row", line, item=record.item)
            continue
        if row.answer not in ("", first.answer):
            tally.note("another answer under the same id: the first is kept", f"{record.place}: {name}")
        labels = tuple((key, value) for key, value in row.labels.items() if first.labels.get(key) != value)
        quotes = (replace(quote, labels=(*labels, *quote.labels)) for quote in row.quotes)
        grouped[key] = replace(first, items=(*first.items, *row.items), quotes=(*first.quotes, *quotes))
    return list(grouped.values())


def _read_question(record: Record, columns: Columns, gold: GoldReader, number: int) -> RawRow:
    """Return the question of a row; raise a ValueError that names the missing part."""
    cells = {role: record.cells.get(name) if name else None for role, name in columns.items()}
    question = read_cell_text(cells["question"], "question")
    if not question:
        raise ValueError("the row has no question")
    refused, answerable = read_refusal(cells["impossible"]), read_refusal(cells["answerable"])
    stated = bool(read_cell_words(cells["answerable"]))
    if refused is None or (answerable is None and stated):
        raise ValueError("the cell for impossible questions is neither yes nor no")
    used = {name.split(".")[0] for name in columns.values() if name} | set(columns.values())
    labels = {name: label(value) for name, value in record.cells.items() if name not in used}
    options = read_options(cells["options"])
    answer = find_chosen_option(read_cell_text(cells["answer"], "answer"), options)
    if options:
        labels |= {"options": label(options), "label": answer}
    quotes, unplaced = gold.read(record)
    lists = {MUST_CONTAIN: _read_words(cells["must-contain"]), MUST_NOT_CONTAIN: _read_words(cells["must-not-contain"])}
    lists |= {"acceptable": unplaced}
    labels |= {name: label(items) for name, items in lists.items() if items}
    impossible = refused or (answerable is False and stated)
    return RawRow(number, question, answer, quotes, None, impossible, labels, (record.item,), record.place)


def _read_words(cell: Any) -> list[Any]:
    """Return texts that an answer must contain or must not contain; one text of a nested list is enough."""
    return [
        list_cell_values(item) if isinstance(item, list) else read_cell_text(item, "text")
        for item in split_values(cell, r"[;|\n]|, ")
        if read_cell_words(item)
    ]
