"""Finds the columns of a table that hold the questions, answers and gold, and reads the questions from the rows."""

import json
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from shlex import quote
from typing import Any

from tqdm import tqdm

from exhibit.converters import Label, Quote, RawRow, Tally
from exhibit.converters.tables.documents import Shelf, is_url
from exhibit.converters.tables.records import Record, columns_of, list_cell_values, read_cell_field, read_cell_words
from exhibit.evidence.fields import FIELDS, HELPS, choose_name, flatten_object, name_key
from exhibit.evidence.fold import fold
from exhibit.law.citations import BRACKETED
from exhibit.law.provisions import NamedProvision, read_provisions
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import MUST_CONTAIN, MUST_NOT_CONTAIN

Columns = dict[str, str | None]
ROLES = HELPS

MAX_LABEL = 2**63 - 1  # a larger number is stored as text, because it fits no column type
_YES = frozenset({"true", "yes", "y", "1", "1.0", "t", *map(name_key, FIELDS["refuse"])})
_NO = frozenset({"false", "no", "n", "0", "0.0", "f", "", *map(name_key, FIELDS["comply"])})
_LETTER = re.compile(r"\(?([A-Za-z])[).:]?")
_GOLD = ("answer", "text", "provision", "document", "must-contain", "must-not-contain")
_BESIDE = ("document", "page", "grade", "id")  # the fields that an object may have besides its passage
MAX_FLAGS = 3  # most flags that an error proposes
MAX_CELLS = 20  # most cells of a column that are searched in the documents
MIN_SHARE = 0.5  # least share of a column's cells that fit a role
MIN_SHARE_OF_OTHER = 0.9  # the same for a column whose name fits another role: some answers are file names
MIN_PASSAGE_CHARS = 20  # fewest characters of a passage in folded form: a shorter text occurs in any contract
MAX_PROVISION_CHARS = 80  # a longer cell is a sentence that cites a provision


def assign_columns(
    table: Path, records: Sequence[Record], named: Mapping[str, str | None], shelf: Shelf, tally: Tally
) -> Columns:
    """Choose and print the column for each role, such as `question`; raise if the table lacks questions or gold.

    Where the user names no column, the name and the cells of a column decide: a column with names of the folder's files
    becomes `document`, a column with texts from these files becomes `text`, one with provisions becomes `provision`.
    """
    seen = columns_of(records)
    by_user = [role for role, name in named.items() if name is not None]
    by_name = _choose_columns(table, seen, named)
    columns = dict(by_name)
    _check_cells(columns, by_user, records)
    if shelf.folder is not None and "document" not in by_user:
        _assign_by_names(columns, records, shelf)
    if "provision" not in by_user and columns["provision"] is None:
        _assign_by_provisions(columns, by_user, records, shelf)
    _assign_by_nesting(table, columns, by_user, records)
    if shelf.folder is not None and "text" not in by_user and columns["text"] is None and columns["document"]:
        _assign_by_quotes(columns, records, columns["document"], shelf)
    reasons = dict.fromkeys(ROLES, " (by its cells)")
    reasons |= {role: " (by its name)" for role in ROLES if columns[role] == by_name[role]} | dict.fromkeys(by_user, "")
    shown = {role: f"{role} = {columns[role]}" for role in ROLES if columns[role] is not None}
    for role, line in shown.items():
        if reasons[role]:
            tally.note("column guessed from its name or its cells", line)
    used = {split[0] for path in columns.values() if path and (split := split_path(path, seen))}
    unread = [name for name in seen if name not in used]
    kept = f"; kept as labels: {', '.join(unread)}" if unread else ""
    lines = ", ".join(line + reasons[role] for role, line in shown.items())
    tqdm.write(f"columns: {lines or 'none is known'}{kept}", file=sys.stderr)
    if columns["question"] is None:
        raise _make_error(table, "which column is the question?", seen, ("question",), unread)
    if not any(columns[role] for role in (*_GOLD, "impossible", "answerable")):
        problem = "no column of answers, passages, provisions or documents"
        raise _make_error(table, problem, seen, ("answer", "text", "provision"), unread)
    return columns


def _choose_columns(table: Path, seen: Sequence[str], named: Mapping[str, str | None]) -> Columns:
    """Return the column for each role, such as `answer`: the user's choice, else the first with a usual name for it."""
    chosen: Columns = {role: name or None for role, name in named.items() if name is not None}
    for role, name in chosen.items():
        if name and split_path(name, seen) is None:
            raise SourceError(f"{table}: no column {name!r} for --{role}{list_columns(seen)}")
    for role in ROLES:
        if role not in chosen:
            chosen[role] = choose_name((name for name in seen if name not in chosen.values()), role)
    return chosen


def split_path(path: str, seen: Iterable[str]) -> tuple[str, str] | None:
    """Split a path, such as `evidence.words`, into a column and the path inside it; None if no column begins it."""
    if path in seen:
        return path, ""
    column = max((name for name in seen if path.startswith(f"{name}.")), key=len, default=None)
    return (column, path[len(column) + 1 :]) if column is not None else None


def list_columns(columns: Sequence[str]) -> str:
    """Return a table's column names for an error message: " (its columns: id, question)"."""
    return f" (its columns: {', '.join(columns) or 'none'})"


def _make_error(
    table: Path, problem: str, seen: Sequence[str], roles: Sequence[str], free: Sequence[str]
) -> SourceError:
    """Return an error with up to three flags to try, such as `--answer reply`."""
    names = [quote(name) for name in free[:MAX_FLAGS]] or ["COLUMN"]
    flags = ", or ".join(
        f"--{role} {name}" for role, name in zip_longest(roles[: len(names)], names, fillvalue=roles[-1])
    )
    return SourceError(f"{table}: {problem}{list_columns(seen)}; name it: {flags}")


# ---------------------------------------------------------------- by the cells


def _check_cells(columns: Columns, named: Collection[str], records: Sequence[Record]) -> None:
    """Unassign a column of pages or grades if one of its cells is not a number.

    If no column marks impossible questions, a column of verdicts gets the role `impossible`.
    """

    def holds_only(column: str, parse: Callable[[Any], int | None]) -> bool:
        cells = [cell for record in records for cell in list_cell_values(record.cells.get(column))]
        return bool(cells) and all(parse(cell) is not None for cell in cells)

    for role in ("page", "grade"):
        column = columns[role]
        if column is not None and role not in named and not holds_only(column, read_number):
            columns[role] = None
    verdict = choose_name((name for name in columns_of(records) if name not in columns.values()), "verdict")
    decided = columns["impossible"] or columns["answerable"] or "impossible" in named
    if verdict and not decided and holds_only(verdict, read_refusal):
        columns["impossible"] = verdict


def _assign_by_names(columns: Columns, records: Sequence[Record], shelf: Shelf) -> None:
    """Choose as `document` the column in which the largest share of cells are names of the folder's files."""
    guessed = columns["document"]
    others = {name for role, name in columns.items() if role not in ("document", "provision")}
    shares = {name: _measure(records, name, shelf.is_named) for name in columns_of(records)}
    likely = [name for name in shares if shares[name] >= (MIN_SHARE_OF_OTHER if name in others else MIN_SHARE)]
    best = max(likely, key=lambda name: shares[name], default=None)
    if best and (guessed is None or shares[best] > shares.get(guessed, 0.0)):
        columns |= {role: None for role, name in columns.items() if name == best} | {"document": best}


def _assign_by_provisions(columns: Columns, named: Collection[str], records: Sequence[Record], shelf: Shelf) -> None:
    """Choose as `provision` an unassigned column of provisions, else the `document` column if it names no file."""

    def is_provision(cell: str) -> bool:
        return len(cell) < MAX_PROVISION_CHARS and bool(read_provisions(cell, bare=False))

    columns["provision"] = _choose_free(columns, records, lambda name: _measure(records, name, is_provision))
    document = columns["document"]
    if columns["provision"] or not document or "document" in named or _measure(records, document, shelf.is_named):
        return
    if _measure(records, document, is_provision) >= MIN_SHARE:
        columns |= {"document": None, "provision": document}


def _assign_by_nesting(table: Path, columns: Columns, named: Collection[str], records: Sequence[Record]) -> None:
    """If `text`, `provision` or `document` has no column, choose a nested field, such as `evidence.text`.

    Raise SourceError if the passages are objects without a known field for their text.
    """
    nested = {
        f"{column}.{field}": column
        for record in records
        for column, cell in record.cells.items()
        for value in (list_cell_values(cell) if isinstance(cell, list | dict | str) else ())
        if isinstance(value, dict)
        for field in flatten_object(value)
    }
    for role in ("text", "provision", "document"):
        if role not in named and columns[role] is None and (role == "text" or not columns["text"]):
            taken = {path.split(".")[0] for path in columns.values() if path} if role == "text" else set()
            columns[role] = choose_name((path for path, column in nested.items() if column not in taken), role)
    inside = [path for path, column in nested.items() if column == columns["text"]]
    known = any(choose_name(inside, role) for role in ("text", "provision"))
    unknown = [path for path in inside if not any(choose_name([path], role) for role in _BESIDE)]
    if unknown and not known:
        problem = f"the objects in column {columns['text']!r} have no known field for the text of a passage"
        raise _make_error(table, problem, inside, ("text",), unknown)


def _assign_by_quotes(columns: Columns, records: Sequence[Record], document: str, shelf: Shelf) -> None:
    """Choose as `text` an unassigned column whose longer cells occur in the document of their row."""

    def measure(column: str) -> float:
        fits: list[bool] = []
        for record, cell in _list_cells(records, column):
            folded = fold(cell, loose=True)
            if len(folded) >= MIN_PASSAGE_CHARS and len(fits) < MAX_CELLS:
                names = (shelf.names.find(read_cell_words(n)) for n in list_cell_values(record.cells.get(document)))
                fits.append(any(folded in shelf.read_folded(name) for name in names if name))
        return sum(fits) / len(fits) if fits else 0.0

    columns["text"] = _choose_free(columns, records, measure)


def _choose_free(columns: Columns, records: Sequence[Record], measure: Callable[[str], float]) -> str | None:
    """Return the unassigned column for which `measure` gives the largest share; None if that is less than half."""
    shares = {name: measure(name) for name in columns_of(records) if name not in columns.values()}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= MIN_SHARE else None


def _list_cells(records: Sequence[Record], column: str) -> list[tuple[Record, str]]:
    values = ((record, cell) for record in records for cell in list_cell_values(record.cells.get(column)))
    cells = ((record, read_cell_words(cell)) for record, cell in values if not isinstance(cell, dict))
    return [(record, cell) for record, cell in cells if not is_url(cell)]


def _measure(records: Sequence[Record], column: str, fits: Callable[[str], bool]) -> float:
    """Return the share of a column's cells for which `fits` is true."""
    results = [fits(cell) for _, cell in _list_cells(records, column)]
    return sum(results) / len(results) if results else 0.0


_HOP = re.compile(r"^\s*<\d+-hop>\s*")  # ragas writes this mark before the passages of a question that needs several
NO_LAW = "provision without a law, in a row without a document: it is not gold"
UNPLACED = "passage that the source also accepts, in a document without gold: it is only a label"
_NOWHERE = Quote("", None)


class GoldReader:
    """Reads the gold passages of each row, from the columns that were chosen."""

    def __init__(self, columns: Columns, seen: Sequence[str], shelf: Shelf, only: str | None, tally: Tally) -> None:
        paths = {role: split_path(path, seen) or (path, "") for role, path in columns.items() if path}
        self._paths = dict.fromkeys(columns, ("", "")) | paths  # for each role, the column and the field of its objects
        self._shelf, self._only, self._tally = shelf, only, tally
        self._cells: dict[str, Any] = {}  # the cells of the current row
        self._place = ""
        self._named: list[tuple[str, int | None]] = []

    def read(self, record: Record) -> tuple[tuple[Quote, ...], list[str]]:
        """Return a row's quotes, and the acceptable passages that cannot be added to them; raise if the row is faulty.

        Names of documents and pages are as the table writes them. A quote that is not gold has no file name.
        """
        self._cells, self._place = record.cells, record.place
        self._named = list(self._read_documents())
        quotes = [_NOWHERE if ("grade", 0) in quote.labels else self._assign(quote) for quote in self._list_quotes()]
        return self._accept(quotes, [quote for quote in self._list_cited("acceptable") if quote.filename])

    def _accept(self, quotes: Sequence[Quote], acceptable: Sequence[Quote]) -> tuple[tuple[Quote, ...], list[str]]:
        """Add to each quote the acceptable provisions of its document; also return the passages that cannot be added.

        A passage cannot be added, and is named in a note, if its document has no quote that it could replace.
        """
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
        """Return the quote; if it names no document, add the name of the only document that contains it."""
        if quote.filename or quote.provision:
            return quote
        if not self._shelf.files:
            raise ValueError("passage without a document")
        text = _HOP.sub("", quote.text or "")
        holders = self._shelf.find_holders(text)
        if len(holders) == 1:
            return replace(quote, filename=holders[0], text=text)
        several = "passage that names no document and is in several documents: it is not gold"
        reason = several if holders else "passage that names no document and is in no document"
        self._tally.note(reason, f"{self._place}: {text[:80]!r}")
        return quote

    def _list_quotes(self) -> Sequence[Quote]:
        parts = self._describe("text")
        quotes, cited = list(self._read_quoted(parts)), list[Quote]()
        if not any(quote.text or quote.provision for quote in quotes):
            cited = self._list_cited("provision")
            quotes = [quote for quote in cited if quote.filename] or quotes
        return quotes or ([] if parts else self._read_files()) or [_NOWHERE for _ in (parts or cited)]

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

    def _list_items(self, role: str) -> list[Any]:
        """Return the values of the cell for `role`; a text with several names is split, unless it is a file's name."""
        cell = self._cells.get(self._paths[role][0])
        values, find_named = list_cell_values(cell), self._shelf.find_named
        if role == "text" or len(values) != 1 or not isinstance(values[0], str) or find_named(values[0]):
            return values
        pieces, by_comma = split_values(cell), [part.strip() for part in values[0].split(", ")]
        return by_comma if len(pieces) == 1 < len(by_comma) and all(map(find_named, by_comma)) else pieces

    def _read_documents(self) -> Iterator[tuple[str, int | None]]:
        """Yield the documents that a row names, each with its page if stated; none if the row's passages name them."""
        column, inner = self._paths["document"]
        if inner and column in (self._paths["text"][0], self._paths["provision"][0]):
            return
        names = [parts["document"] for parts in self._describe("document") if parts.get("document")]
        for name in names or filter(None, [self._only]):
            file = self._shelf.find_named(name)
            yield (file if file and file[1] is not None else (name, None))

    def _read_numbers(self, role: str) -> list[int]:
        column, inner = self._paths[role]
        values = [] if inner else list_cell_values(self._cells.get(column))
        return [number for value in values if (number := read_number(value)) is not None]

    def _describe(self, role: str, plain: str = "") -> list[dict[str, Any]]:
        """Return each value of the cell for `role` as a dict, such as `{'document': …, 'page': …}`.

        A plain text or number gets the key `plain` or, if this is empty, `role`.
        """
        column = self._paths[role][0]
        return [
            self._read_object(flatten_object(value), column)
            if isinstance(value, dict)
            else {plain or role: read_cell_words(value)}
            for value in self._list_items(role)
        ]

    def _read_object(self, fields: Mapping[str, Any], column: str) -> dict[str, Any]:
        """Return an object's known fields by role, such as `document` or `page`; empty if it has only a grade."""
        parts: dict[str, Any] = {}
        filled = {name: value for name, value in fields.items() if read_cell_words(value)}
        for role in ("document", "text", "provision", "page", "grade"):
            path, inner = self._paths[role]
            known = inner if inner and path == column else choose_name(filled, role)
            value = filled.get(known or "")
            if role == "page":
                value = next(iter(list_cell_values(value)), None)
            parts[role] = read_number(value) if role in ("page", "grade") else read_cell_words(value)
        parts = {role: part for role, part in parts.items() if part not in ("", None)}
        return parts if parts.keys() - {"grade"} else {}

    # ------------------------------------------------------------ passages and provisions

    def _read_quoted(self, items: Sequence[dict[str, Any]]) -> Iterator[Quote]:
        """Yield the passages of the text column, each with its document.

        The passage's object may name the document. Otherwise, the document is the only document of the row, or
        the document at the same position in the row as the passage.
        """
        named = self._named
        beside = {role: self._read_numbers(role) for role in ("page", "grade")}
        for at, parts in enumerate(items):
            stated: dict[str, Any] = {role: found[at] for role, found in beside.items() if len(found) == len(items)}
            if parts and named and "document" not in parts:
                if len(named) not in (1, len(items)):
                    raise ValueError(
                        f"{len(items)} passages, but {len(named)} documents; name one document, or one for each passage"
                    )
                stated["document"], page = named[at if len(named) > 1 else 0]
                stated |= {} if page is None else {"page": page}
            if parts:
                yield _make_quote(**(stated | parts))

    def _list_cited(self, role: str) -> list[Quote]:
        return [quote for parts in self._describe(role, "citation") for quote in self._read_cited(parts)]

    def _read_cited(self, parts: dict[str, Any]) -> list[Quote]:
        """Return the files, pages or provisions that a citation names; if it names nothing, record a note."""
        law, text = parts.get("document", ""), parts.get("provision") or parts.get("citation", "")
        if parts and not text:
            return [_make_quote(**parts)]
        if "citation" in parts and (file := self._shelf.find_named(text)):
            return [Quote(file[0], None, page=file[1])]
        provisions = read_provisions(text) or read_provisions(f"{law} {text}")
        if not provisions:
            reason = "citation of an unknown file or provision"
            self._tally.note(reason, f"{self._place}: {text[:80]}")
            return [_NOWHERE]
        grade = parts.get("grade")
        return [
            _make_quote(self._find_document(named, law), provision=named.label, grade=grade) for named in provisions
        ]

    def _find_document(self, provision: NamedProvision, law: str) -> str:
        """Return the file of the named law, or else the row's only document if that may contain the provision."""
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
        # 7 and 007 are the same id; a row without an id is a separate question
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
        raise ValueError("the cell that marks impossible questions must be yes or no")
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
    """Return the texts that an answer must contain, or must not contain; a nested list has alternatives."""
    return [
        list_cell_values(item) if isinstance(item, list) else read_cell_text(item, "text")
        for item in split_values(cell, r"[;|\n]|, ")
        if read_cell_words(item)
    ]


# ---------------------------------------------------------------- cells


def split_values(cell: Any, marks: str = r"[;|\n]") -> list[Any]:
    """Return the values of a cell; a single text is split at semicolons, vertical bars and line ends."""
    values = list_cell_values(cell)
    if len(values) == 1 and isinstance(values[0], str):
        return [part.strip(" \t-•*") for part in re.split(marks, values[0]) if part.strip(" \t-•*")]
    return values


def read_cell_text(cell: Any, field: str) -> str:
    """Return a cell's texts, joined by semicolons.

    Of an object, only the text of its `field` is returned; of a chat, only the last message.
    """
    values = list_cell_values(cell)
    if values and all(isinstance(value, dict) and "role" in value for value in values):
        messages = [value for value in values if value["role"] in ("user", "human")] or values
        return read_cell_words(messages[-1].get("content"))
    texts = [
        (read_cell_field(value, field) or read_cell_field(value, "text"))
        if isinstance(value, dict)
        else read_cell_words(value)
        for value in values
    ]
    return "; ".join(filter(None, texts))


def label(cell: Any) -> Label:
    """Return a cell as a label of gold.jsonl; a list or an object becomes JSON text, and an infinity becomes None."""
    if isinstance(cell, int) and abs(cell) > MAX_LABEL:
        return str(cell)
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, dict | list) else str(cell)


def read_number(cell: Any) -> int | None:
    """Return a non-negative integer, given as a number or as a string of digits; None for anything else."""
    words = read_cell_words(cell)
    return int(words) if words.isdecimal() else None


def read_refusal(cell: Any) -> bool | None:
    """Return whether a cell states that a question must be refused: False if it is empty, None if it is unclear."""
    word = name_key(read_cell_words(cell)) if not isinstance(cell, bool) else str(cell).casefold()
    return True if word in _YES else False if word in _NO else None


def read_options(cell: Any) -> list[str]:
    """Return the options of a multiple-choice question, from a list or from an object such as `{"A": …, "B": …}`."""
    values = list_cell_values(cell)
    if len(values) == 1 and isinstance(values[0], dict):
        return [read_cell_words(value) for value in values[0].values()]
    return [read_cell_field(value, "text") if isinstance(value, dict) else read_cell_words(value) for value in values]


def find_chosen_option(answer: str, options: Sequence[str]) -> str:
    """Return the option that an answer such as `B` or `(b)` names, or the answer if it names no option."""
    match = _LETTER.fullmatch(answer.strip())
    at = ord(match[1].upper()) - ord("A") if match else -1
    return options[at] if 0 <= at < len(options) else answer
