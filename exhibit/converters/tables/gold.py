"""Reads questions and their gold from the rows of a table: quotes, provisions, documents and pages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from exhibit.converters.core.benchmark import Item, Label, Tally
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
from exhibit.evidence.fields import FIELDS, choose_name, flatten_object, name_key
from exhibit.law.citations import BRACKETED
from exhibit.law.provisions import NamedProvision, read_provisions
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import MUST_CONTAIN, MUST_NOT_CONTAIN

MIN_TEXT_CHARS = 20  # least characters of a field with an unknown name that may be a passage
_HOP = re.compile(r"^\s*<\d+-hop>\s*")  # ragas writes this above the passages of a question that needs several
_IN_OBJECTS = ("document", "text", "provision", "page", "start", "end", "grade")
_ASSERTIONS = {
    name_key(kind): role.removeprefix("assert-")
    for role, kinds in FIELDS.items()
    if role.startswith("assert-")
    for kind in kinds
}
_ASSERTED_COLUMNS = {
    "must-contain": "must_contain",
    "must-not-contain": "must_not_contain",
    "answer": "expected_answer",
    "impossible": "must_refuse",
}


class CitedPassage(NamedTuple):
    """A passage as the table gives it: its document, and its words, provision, page or offsets."""

    document: str
    text: str | None = None
    provision: str = ""
    page: int | None = None
    offsets: tuple[int, int] | None = None
    grade: int | None = None
    labels: tuple[tuple[str, Label], ...] = ()

    @property
    def is_part(self) -> bool:
        """Whether it is only a part of its document."""
        return bool(self.text or self.provision or self.offsets or self.page is not None)


@dataclass
class TableQuestion:
    """A question, read from one row of the table or from several rows with the same id."""

    id: int
    place: str
    text: str
    answer: str
    is_impossible: bool
    labels: dict[str, Label]
    passages: list[CitedPassage]
    items: list[Item]
    quoted: bool  # whether the table quotes or cites passages for it, even if they are not found
    acceptable: list[CitedPassage]
    lists: dict[str, list[Any]]  # texts that the answer must contain or must not contain

    @property
    def judged(self) -> bool:
        """Whether the question lists texts that its answer must contain or must not contain."""
        return any(self.lists.values())

    def name_unplaced(self) -> list[str]:
        """Return the acceptable passages that cannot be alternatives: their documents have no gold of this row."""
        gold = {passage.document for passage in self.passages}
        whole = {passage.document for passage in self.passages if not passage.is_part}
        return [
            f"{passage.provision} in {passage.document}" if passage.provision else passage.document
            for passage in self.acceptable
            if passage.document not in gold or (not passage.provision and passage.document not in whole)
        ]


def open_record(record: Record, tally: Tally) -> Record:
    """Return a row with nested objects (`vars`, `inputs`) and assertions (promptfoo's `assert`) turned into columns."""
    cells = flatten_object(record.cells, inside="wrapper")
    name = choose_name(cells, "assertions")
    checks = [check for check in list_cell_values(cells[name]) if isinstance(check, Mapping)] if name else []
    if name is not None and checks and all("type" in check for check in checks):
        del cells[name]
        asserted: dict[str, list[Any]] = {}
        for check in checks:
            role = _ASSERTIONS.get(name_key(str(check["type"])))
            values = list_cell_values(check.get("value"))
            if role is None:
                tally.note("assertion that is not read", f"{record.place}: {check['type']}")
            elif role == "must-contain" and str(check["type"]).endswith("any"):
                asserted.setdefault(role, []).append(values)  # one of these texts is enough
            else:
                asserted.setdefault(role, []).extend([True] if role == "impossible" else values)
        for role, values in asserted.items():
            single = role in ("answer", "impossible")
            cells.setdefault(_ASSERTED_COLUMNS[role], values[0] if single and values else values)
    return Record(record.index, record.place, cells)


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

    def read(self, record: Record) -> tuple[list[CitedPassage], list[CitedPassage]]:
        """Return the gold of a row, and the acceptable alternatives; raise ValueError with the fault.

        A passage without a document's name is assigned to the only document that contains it.
        """
        self._cells, self._place = record.cells, record.place
        self._named = list(self._read_documents())
        passages = []
        for passage in self._list_passages():
            if passage.grade == 0:
                continue
            if passage.document:
                passages.append(passage)
                continue
            if not self._shelf.files:
                raise ValueError("passage without a document")
            text = _HOP.sub("", passage.text or "")
            holders = self._shelf.find_holders(text)
            if len(holders) == 1:
                passages.append(passage._replace(document=holders[0], text=text))
            else:
                several = "passage without a document is in several: it is ambiguous, and not gold"
                reason = several if holders else "passage without a document is in none"
                self._tally.note(reason, f"{record.place}: {text[:80]!r}")
        return passages, self._list_cited("acceptable")

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

    def _list_passages(self) -> list[CitedPassage]:
        named, quoted = self._named, self._list_items("text")
        passages = list(self._read_quoted(quoted))
        if not any(passage.text or passage.provision for passage in passages):
            passages = self._list_cited("provision") or passages
        if passages or quoted:
            return passages
        if not named or named == [(self._only, None)]:
            answer = " ".join(map(read_cell_words, self._list_items("answer")))
            files = filter(None, map(self._shelf.find_named, BRACKETED.findall(answer)))
            cited = [CitedPassage(name, page=page) for name, page in files]
            if cited:
                return cited  # "… within 30 days [lease.pdf#page=2]" cites a file
        pages = self._read_numbers("page")
        if len(named) == 1 and pages:
            return [CitedPassage(named[0][0], page=page) for page in pages]
        paired = pages if len(pages) == len(named) else [None] * len(named)
        return [CitedPassage(name, page=stated or page) for (name, stated), page in zip(named, paired, strict=True)]

    def _list_cited(self, role: str) -> list[CitedPassage]:
        return [passage for value in self._list_items(role) for passage in self._read_cited(value)]

    # ------------------------------------------------------------ columns

    def _find_column(self, role: str) -> tuple[str, str]:
        return self._paths.get(role, ("", ""))

    def _list_items(self, role: str) -> list[Any]:
        cell = self._cells.get(self._find_column(role)[0])
        return list_cell_values(cell) if role == "text" else self._split_cell(cell)

    def _split_cell(self, cell: Any) -> list[Any]:
        """Return the values of a cell; a text with several names is split unless it is a known file's name."""
        values = list_cell_values(cell)
        find_named = self._shelf.find_named
        if len(values) != 1 or not isinstance(values[0], str) or find_named(values[0]):
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

    def _read_quoted(self, items: Sequence[Any]) -> Iterator[CitedPassage]:
        """Yield the passages of the text column, each with its document.

        The passage's object names the document; else it is the row's only document or the one at the same position.
        """
        column, named = self._find_column("text")[0], self._named
        beside = {role: self._read_numbers(role) for role in ("page", "start", "end", "grade")}
        for at, value in enumerate(items):
            text = "" if isinstance(value, dict) else read_cell_words(value)
            passage = self._read_object(value, column) if isinstance(value, dict) else CitedPassage("", text)
            if passage is None:
                continue
            document, page = passage.document, None
            if named and not document:
                if len(named) not in (1, len(items)):
                    raise ValueError(
                        f"{len(items)} passages, but {len(named)} documents: which passage is in which document?"
                    )
                document, page = named[at if len(named) > 1 else 0]
            numbers = {role: values[at] if len(values) == len(items) else None for role, values in beside.items()}
            yield passage._replace(
                document=document,
                page=_choose_first(passage.page, page, numbers["page"]),
                offsets=passage.offsets or _make_offsets(numbers["start"], numbers["end"], passage.text),
                grade=_choose_first(passage.grade, numbers["grade"]),
            )

    def _read_object(self, value: Mapping[str, Any], column: str) -> CitedPassage | None:
        """Return the passage that an object describes; None if the object has no known field."""
        fields = flatten_object(value)
        held = {role: self._find_field(fields, role, column) for role in _IN_OBJECTS}
        pages = list_cell_values(held["page"])
        text = read_cell_words(held["text"]) or None
        provision = read_cell_words(held["provision"])
        if text or provision:
            self._understood.add(column)
        else:
            unknown = self._unknown.setdefault(column, {})
            for name, content in fields.items():
                if content is not held["document"]:
                    unknown[name] = max(unknown.get(name, 0), len(read_cell_words(content)))
        passage = CitedPassage(
            read_cell_words(held["document"]),
            text,
            provision,
            read_number(pages[0]) if pages else None,
            _make_offsets(read_number(held["start"]), read_number(held["end"]), text),
            read_number(held["grade"]),
        )
        return passage if passage.document or passage.is_part else None

    # ------------------------------------------------------------ provisions

    def _read_cited(self, value: Any) -> list[CitedPassage]:
        """Return the files, pages or provisions that a citation names; note a citation that names none."""
        law, grade = "", None
        if isinstance(value, dict):
            passage = self._read_object(value, self._find_column("provision")[0])
            if passage is None or not passage.provision:
                return [passage] if passage else []
            law, text, grade = passage.document, passage.provision, passage.grade
            text = text if read_provisions(text) else f"{law} {text}"
        else:
            text = read_cell_words(value)
            if file := self._shelf.find_named(text):
                return [CitedPassage(file[0], page=file[1])]
        provisions = read_provisions(text)
        if not provisions:
            self._tally.note(
                "citation that names no file and no provision that is known", f"{self._place}: {text[:80]}"
            )
        documents = [(self._find_document(provision, law), provision.label) for provision in provisions]
        return [CitedPassage(name, None, words, grade=grade) for name, words in documents if name]

    def _find_document(self, provision: NamedProvision, law: str) -> str | None:
        """Return the file of the named law, else the row's only document, else the only document with the provision."""
        for source in filter(None, (law, provision.source)):
            if file := self._shelf.find_law_file(source):
                return file
        files = list(dict.fromkeys(name for name, _ in self._named))
        if len(files) == 1 and self._shelf.may_be(files[0], provision):
            return files[0]
        having = self._shelf.find_having(provision)
        if len(having) == 1:
            return having[0]
        several = f"provision is in {len(having)} documents, and the row names none of them: it is ambiguous"
        reason = several if having else "provision of a law that is not in the documents"
        self._tally.note(reason, f"{self._place}: {provision.label}")
        return None


def _choose_first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def _make_offsets(start: int | None, end: int | None, text: str | None) -> tuple[int, int] | None:
    if start is None:
        return None
    end = start + len(text) if end is None and text else end
    return (start, end) if end is not None and end > start else None


# ---------------------------------------------------------------- questions


def read_questions(records: list[Record], columns: Columns, gold: GoldReader, tally: Tally) -> list[TableQuestion]:
    """Return the questions in order; rows with the same id are one question."""
    ids = [read_cell_words(record.cells.get(columns["id"] or "")) for record in records]
    numeric = all(re.fullmatch(r"\d{1,15}", name) for name in ids) and columns["id"] is not None
    grouped: dict[str, TableQuestion] = {}
    for record, name in zip(records, ids, strict=True):
        try:
            question = _read_question(record, columns, gold, int(name) if numeric else record.index)
        except ValueError as error:
            tally.fault(str(error), record.place, item=record.item)
            continue
        if name and not numeric:
            question.labels = {"id": name, **question.labels}
        # 7 and 007 are the same number; a row without an id is a separate question
        first = grouped.setdefault(str(question.id) if numeric else name or f"\0{record.place}", question)
        if first is question:
            continue
        if first.text != question.text or first.is_impossible != question.is_impossible:
            line = f"{record.place}: {name}"
            tally.fault("another question under the id of an earlier row", line, item=record.item)
            continue
        if question.answer not in ("", first.answer):
            tally.note("another answer under the same id: the first is kept", f"{record.place}: {name}")
        labels = tuple((key, value) for key, value in question.labels.items() if first.labels.get(key) != value)
        first.items += question.items
        first.passages += [passage._replace(labels=labels) for passage in question.passages]
    return list(grouped.values())


def _read_question(record: Record, columns: Columns, gold: GoldReader, number: int) -> TableQuestion:
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
    passages, acceptable = gold.read(record)
    lists = {MUST_CONTAIN: _read_words(cells["must-contain"]), MUST_NOT_CONTAIN: _read_words(cells["must-not-contain"])}
    labels |= {name: label(items) for name, items in lists.items() if items}
    return TableQuestion(
        id=number,
        place=record.place,
        text=question,
        answer=answer,
        is_impossible=refused or (answerable is False and stated),
        labels=labels,
        passages=passages,
        items=[record.item],
        quoted=bool(list_cell_values(cells["text"]) or list_cell_values(cells["provision"])),
        acceptable=acceptable,
        lists=lists,
    )


def _read_words(cell: Any) -> list[Any]:
    """Return texts that an answer must contain or must not contain; one text of a nested list is enough."""
    return [
        list_cell_values(item) if isinstance(item, list) else read_cell_text(item, "text")
        for item in split_values(cell, r"[;|\n]|, ")
        if read_cell_words(item)
    ]
