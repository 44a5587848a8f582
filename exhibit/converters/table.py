"""Any table of questions (JSON, YAML, CSV, Excel, Parquet), with its documents in a folder, beside it, or on the web.

exhibit convert table --source questions.csv --documents contracts/ --out datasets_out/mine
"""

import json
import math
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from exhibit.converters import Benchmark, DatasetInfo, Label, Licence, Quote, RawDocument, RawRow, Tally, squad
from exhibit.converters.core.documents import MIN_CLAUSE_LETTERS
from exhibit.converters.core.source import Release
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.converters.pages.fetch import add_fetch_arguments, read_policy
from exhibit.converters.tables.documents import Shelf, is_url
from exhibit.converters.tables.records import (
    ENDINGS,
    Record,
    columns_of,
    list_cell_values,
    open_record,
    read_cell_field,
    read_cell_words,
    read_records,
)  # fmt: skip
from exhibit.evidence.fields import FIELDS, HELPS, choose_name, flatten_object, name_key
from exhibit.evidence.fold import fold
from exhibit.evidence.read import is_readable
from exhibit.law.citations import BRACKETED
from exhibit.law.provisions import NamedProvision, read_provisions
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import ANSWER_FROM, MUST_CONTAIN, MUST_NOT_CONTAIN

INFO = DatasetInfo(
    name="table",
    title="A table of questions",
    benchmark="Any table of questions about documents",
    summary="Questions from a table, with the passages that answer them located in their documents.",
    expects=f"one table ({', '.join(ENDINGS)}) with one question per row",
    licence=Licence(id="unknown", name="unknown terms", redistributable=False),
    tags=("legal",),
    accepts=ENDINGS,
    questions="The questions are the table's own.",
    limits="The meaning of its columns was given on the command line, or guessed from their names: see bundle.json.",
)

Columns = dict[str, str | None]  # the column for each role, such as `question`; None if there is none

_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


def add_arguments(parser: ArgumentParser) -> None:
    columns = parser.add_argument_group("columns", "guessed from the columns' names if not given; '' = no column")
    for role, meaning in HELPS.items():
        columns.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    add_fetch_arguments(parser)
    add = parser.add_argument_group("documents").add_argument
    add("--documents", type=Path, metavar="DIR", help="the folder with the documents")
    as_what = "print every file to PDF, or copy it unchanged (default: pdf)"
    add("--as", choices=["pdf", "is"], default="pdf", help=as_what)
    add = parser.add_argument_group("the table").add_argument
    add("--name", help="the bundle's short name (default: the table's file name)")
    add("--title", help="the bundle's title on the Hub (default: its short name)")
    add("--licence", metavar="NAME", help="the licence of the bundle, such as cc-by-4.0 (default: unknown)")
    add("--redistributable", action="store_true", help="state that the licence allows others to share the documents")


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a table of questions or a SQuAD file, and assign each gold passage to a document."""
    release, table = Release(source, INFO), source
    if source.is_dir():
        tables = sorted(path for path in source.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
        if len(tables) != 1:
            listing = ", ".join(path.name for path in tables) or "none"
            raise SourceError(f"{source}: expected {INFO.expects}; found {listing}. Pass the file itself with --source")
        [table] = tables
    is_squad = squad.is_squad(table)
    benchmark = squad.read(table, options, tally) if is_squad else _read_table(release, table, options, tally)
    titles = choose_unique_titles({raw.filename: [raw.title, raw.filename] for raw in benchmark.documents})
    documents = [replace(raw, title=titles[raw.filename]) for raw in benchmark.documents]
    return replace(benchmark, documents=documents, info=_make_info(table, options))


def _read_table(release: Release, table: Path, options: Namespace, tally: Tally) -> Benchmark:
    records = [open_record(record, tally) for record in read_records(table, release.read(table), tally)]
    seen = columns_of(records)
    shelf = Shelf(table, options.documents, vars(options)["as"] == "pdf", read_policy(options))
    named = {role: getattr(options, role.replace("-", "_")) for role in HELPS}
    columns = ColumnChooser(table, records, named, shelf).choose(tally)
    readable = [file.name for file in shelf.files if is_readable(file.path)]
    only = readable[0] if len(readable) == 1 and columns["document"] is None else None
    questions = read_questions(records, columns, RowReader(columns, seen, shelf, only, tally), tally)
    names = list(dict.fromkeys(quote.filename for row in questions for quote in row.quotes if quote.filename))
    judged = any(row.labels.keys() & _WORD_LISTS for row in questions)
    if not names and not shelf.files and not judged:
        known = f"(its columns: {', '.join(seen)}); name their column with --document"
        raise SourceError(f"{table}: no row names a document {known}")
    by_name = shelf.find(names, tally)
    documents = {document.filename: document for document in by_name.values()}
    needs_document = any(columns[role] for role in ("document", "text", "provision")) or not judged
    needs_words = any(columns[role] for role in ("answer", "text", "provision"))
    rows = []
    for row in questions:
        placed = [quote for quote in row.quotes if quote.filename]
        missing = next((quote.filename for quote in placed if quote.filename not in by_name), None)
        worded = row.answer or row.labels.keys() & _WORD_LISTS or any(quote.text or quote.provision for quote in placed)
        lacking, more = shelf.lost[missing] if missing is not None else ("", "")
        if not lacking and not row.is_impossible:
            if not worded and (needs_words or not placed):
                lacking = "row without an answer or a passage"
            elif needs_document and not row.quotes:
                lacking = "row names no document"
        if lacking:
            tally.leave_out_all(lacking, row.items, more=more, fault=True)
        else:
            rows.append(_finish_row(row, placed, by_name, tally))
    return Benchmark(list(documents.values()), rows, release.sha256)


def _make_info(table: Path, options: Namespace) -> DatasetInfo:
    name = options.name or table.stem
    title = options.title or name
    terms = options.licence
    slug = terms.lower() if terms and _SLUG.fullmatch(terms.lower()) else "other"
    licence = Licence(id=slug, name=terms, redistributable=options.redistributable) if terms else INFO.licence
    return replace(INFO, name=name, title=title, benchmark=title, licence=licence)


# ---------------------------------------------------------------- columns

_GOLD = ("answer", "text", "provision", "document", "must-contain", "must-not-contain")
_BESIDE = ("document", "page", "grade", "id")  # the fields that an object may have besides its passage
MAX_FLAGS = 3  # most flags that an error proposes
MAX_ROWS = 20  # the first rows, whose cells are searched in the documents
MIN_SHARE = 0.5  # least share of a column's cells that fit a role
MIN_SHARE_OF_OTHER = 0.9  # the same for a column whose name fits another role: some answers are file names
MIN_PASSAGE_CHARS = 20  # fewest characters of a passage in folded form: a shorter text occurs in any contract
MAX_PROVISION_CHARS = 80  # a longer cell is a sentence that cites a provision


class ColumnChooser:
    """Chooses the column for each role, such as `question`.

    Where the user names no column, the name and the cells of a column decide: a column with names of the folder's files
    becomes `document`, a column with texts from these files becomes `text`, one with provisions becomes `provision`.
    """

    def __init__(self, table: Path, records: Sequence[Record], named: Mapping[str, str | None], shelf: Shelf) -> None:
        self._table, self._records, self._shelf = table, records, shelf
        self._seen = columns_of(records)
        self._by_user = {role: name or None for role, name in named.items() if name is not None}
        for role, name in self._by_user.items():
            if name and split_path(name, self._seen) is None:
                raise SourceError(f"{table}: no column {name!r} for --{role} (its columns: {', '.join(self._seen)})")
        self._columns: Columns = dict(self._by_user)
        for role in HELPS:
            if role not in self._by_user:
                self._columns[role] = choose_name(self._list_free(), role)

    def choose(self, tally: Tally) -> Columns:
        """Return and print the column for each role; raise if the table lacks questions or gold."""
        columns, seen, by_name = self._columns, self._seen, dict(self._columns)
        self._check_cells()
        self._assign_documents()
        self._assign_provisions()
        self._assign_nested()
        self._assign_texts()
        lines = []
        for role in HELPS:
            line = f"{role} = {columns[role]}"
            if columns[role] is not None and role not in self._by_user:
                tally.note("column guessed from its name or its cells", line)
                line += " (by its name)" if columns[role] == by_name[role] else " (by its cells)"
            lines += [line] if columns[role] is not None else []
        used = {split[0] for path in columns.values() if path and (split := split_path(path, seen))}
        unread = [name for name in seen if name not in used]
        kept = f"; kept as labels: {', '.join(unread)}" if unread else ""
        tqdm.write(f"columns: {', '.join(lines) or 'none is known'}{kept}", file=sys.stderr)
        if columns["question"] is None:
            raise self._make_error("which column is the question?", "question", unread)
        if not any(columns[role] for role in (*_GOLD, "impossible", "answerable")):
            raise self._make_error("no column of answers, passages, provisions or documents", "answer", unread)
        return columns

    def _list_free(self) -> list[str]:
        return [name for name in self._seen if name not in self._columns.values()]

    def _make_error(self, problem: str, role: str, free: Sequence[str]) -> SourceError:
        """Return an error with up to three flags to try, such as `--answer reply`."""
        flags = ", or ".join(f"--{role} {shlex.quote(name)}" for name in free[:MAX_FLAGS]) or f"--{role} COLUMN"
        return SourceError(f"{self._table}: {problem} (its columns: {', '.join(self._seen)}); name it: {flags}")

    def _measure(self, column: str, fits: Callable[[Record, str], bool | None]) -> float:
        cells = ((record, cell) for record in self._records for cell in list_cell_values(record.cells.get(column)))
        words = ((record, read_cell_words(cell)) for record, cell in cells if not isinstance(cell, dict))
        fitting = [fit for record, cell in words if not is_url(cell) and (fit := fits(record, cell)) is not None]
        return sum(fitting) / len(fitting) if fitting else 0.0

    def _choose_free(self, fits: Callable[[Record, str], bool | None]) -> str | None:
        """Return the unassigned column with the largest share of cells that fit; None if that is less than half."""
        shares = {name: self._measure(name, fits) for name in self._list_free()}
        best = max(shares, key=lambda name: shares[name], default=None)
        return best if best is not None and shares[best] >= MIN_SHARE else None

    def _check_cells(self) -> None:
        """Unassign a column of pages or grades unless all its cells are numbers; assign a column of verdicts."""
        for role in {"page", "grade"} - self._by_user.keys():
            column = self._columns[role]
            if column and self._measure(column, lambda _, cell: read_number(cell) is not None) < 1:
                self._columns[role] = None
        verdict = choose_name(self._list_free(), "verdict")
        decided = self._columns["impossible"] or self._columns["answerable"] or "impossible" in self._by_user
        if verdict and not decided and self._measure(verdict, lambda _, cell: read_refusal(cell) is not None) == 1:
            self._columns["impossible"] = verdict

    def _names_file(self, _: Record, cell: str) -> bool:
        return self._shelf.find_named(cell) is not None

    def _assign_documents(self) -> None:
        """Choose as `document` the column in which the largest share of cells are names of the folder's files."""
        if self._shelf.folder is None or "document" in self._by_user:
            return
        guessed = self._columns["document"]
        others = {name for role, name in self._columns.items() if role not in ("document", "provision")}
        shares = {name: self._measure(name, self._names_file) for name in self._seen}
        likely = [name for name in shares if shares[name] >= (MIN_SHARE_OF_OTHER if name in others else MIN_SHARE)]
        best = max(likely, key=lambda name: shares[name], default=None)
        if best and (guessed is None or shares[best] > shares.get(guessed, 0.0)):
            self._columns |= {role: None for role, name in self._columns.items() if name == best} | {"document": best}

    def _assign_provisions(self) -> None:
        """Choose as `provision` an unassigned column of provisions, else the `document` column if it names no file."""

        def is_provision(_: Record, cell: str) -> bool:
            return len(cell) < MAX_PROVISION_CHARS and bool(read_provisions(cell, bare=False))

        if "provision" in self._by_user or self._columns["provision"]:
            return
        self._columns["provision"] = self._choose_free(is_provision)
        document = None if self._columns["provision"] or "document" in self._by_user else self._columns["document"]
        if not document or self._measure(document, self._names_file):
            return
        if self._measure(document, is_provision) >= MIN_SHARE:
            self._columns |= {"document": None, "provision": document}

    def _assign_nested(self) -> None:
        """If `text`, `provision` or `document` has no column, choose a nested field, such as `evidence.text`."""
        columns = self._columns
        nested = {
            f"{column}.{field}": column
            for record in self._records
            for column, cell in record.cells.items()
            for value in (list_cell_values(cell) if isinstance(cell, list | dict | str) else ())
            if isinstance(value, dict)
            for field in flatten_object(value)
        }
        for role in ("text", "provision", "document"):
            if role not in self._by_user and columns[role] is None and (role == "text" or not columns["text"]):
                taken = {path.split(".")[0] for path in columns.values() if path} if role == "text" else set()
                columns[role] = choose_name((path for path, column in nested.items() if column not in taken), role)
        inside = [path for path, column in nested.items() if column == columns["text"]]
        unknown = [path for path in inside if not any(choose_name([path], role) for role in _BESIDE)]
        if unknown and not any(choose_name(inside, role) for role in ("text", "provision")):
            problem = f"the objects in column {columns['text']!r} have no known field for the text of a passage"
            raise self._make_error(problem, "text", unknown)

    def _assign_texts(self) -> None:

        def is_quoted(record: Record, cell: str) -> bool | None:
            folded = fold(cell, loose=True)
            if len(folded) < MIN_PASSAGE_CHARS or record.index >= MAX_ROWS:
                return None
            names = map(read_cell_words, list_cell_values(record.cells.get(self._columns["document"] or "")))
            return any(folded in self._shelf.read_folded(file) for file in map(self._shelf.names.find, names) if file)

        wanted = "text" not in self._by_user and self._columns["text"] is None and self._columns["document"]
        if wanted and self._shelf.folder is not None:
            self._columns["text"] = self._choose_free(is_quoted)


def split_path(path: str, seen: Iterable[str]) -> tuple[str, str] | None:
    """Split a path, such as `evidence.words`, into a column and the path inside it; None if no column begins it."""
    if path in seen:
        return path, ""
    column = max((name for name in seen if path.startswith(f"{name}.")), key=len, default=None)
    return (column, path[len(column) + 1 :]) if column is not None else None


# ---------------------------------------------------------------- rows

_HOP = re.compile(r"^\s*<\d+-hop>\s*")  # ragas writes this mark before the passages of a question that needs several
NO_LAW = "provision without a law, in a row without a document: it is not gold"
UNPLACED = "passage that the source also accepts, in a document without gold: it is not used"
_NOWHERE = Quote("", None)  # a passage that is not gold has no file name


class RowReader:
    """Reads the questions and their gold passages, whose documents and pages are as the table writes them."""

    def __init__(self, columns: Columns, seen: Sequence[str], shelf: Shelf, only: str | None, tally: Tally) -> None:
        paths = {role: split_path(path, seen) or (path, "") for role, path in columns.items() if path}
        self._paths = dict.fromkeys(columns, ("", "")) | paths  # for each role, the column and the field of its objects
        self._columns, self._shelf, self._only, self._tally = columns, shelf, only, tally
        self._record = Record(0, "", {})  # the current row
        self._named: list[tuple[str, int | None]] = []  # the documents that it names, each with its page

    def read(self, record: Record, number: int) -> RawRow:
        """Return the question of a row; raise a ValueError that names what is missing."""
        self._record = record
        cells = {role: record.cells.get(name) if name else None for role, name in self._columns.items()}
        question = read_cell_text(cells["question"], "question")
        if not question:
            raise ValueError("the row has no question")
        refused = read_refusal(cells["impossible"])
        answerable = read_refusal(cells["answerable"]) if read_cell_words(cells["answerable"]) else True
        if refused is None or answerable is None:
            raise ValueError("the cell that marks impossible questions must be yes or no")
        used = {part for name in self._columns.values() if name for part in (name, name.split(".")[0])}
        labels = {name: label(value) for name, value in record.cells.items() if name not in used}
        answer, options = choose_option(read_cell_text(cells["answer"], "answer"), cells["options"])
        if options:
            labels |= {"options": label(options), "label": answer}
        self._named = list(self._read_documents())
        quotes = [_NOWHERE if ("grade", 0) in quote.labels else self._assign(quote) for quote in self._list_quotes()]
        self._add_acceptable(quotes)
        lists = {name: _read_words(cells[role]) for name, role in _WORD_LISTS.items()}
        labels |= {name: label(items) for name, items in lists.items() if items}
        impossible, items = refused or not answerable, (record.item,)
        return RawRow(number, question, answer, tuple(quotes), None, impossible, labels, items, record.place)

    def _add_acceptable(self, quotes: list[Quote]) -> None:
        """Add to each quote the acceptable provisions of its document; note those whose document has no such quote."""
        worded = {quote.filename for quote in quotes if quote.text or quote.provision}
        whole = {quote.filename for quote in quotes} - worded
        provisions: dict[str, tuple[str, ...]] = defaultdict(tuple)
        for other in self._list_cited("acceptable"):
            if other.provision and other.filename in worded:
                provisions[other.filename] += (other.provision,)
            elif other.filename and (other.provision or other.filename not in whole):
                self._note(UNPLACED, f"{other.provision} in {other.filename}".removeprefix(" in "))
        for at, quote in enumerate(quotes):
            if accepted := provisions[quote.filename]:
                stated = (("accepted", "; ".join(accepted)),) if quote.text else ()
                quotes[at] = replace(quote, acceptable=accepted, labels=quote.labels + stated)

    def _note(self, remark: str, detail: str) -> None:
        self._tally.note(remark, f"{self._record.place}: {detail}")

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
        self._note(several if holders else "passage that names no document and is in no document", f"{text[:80]!r}")
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
            named = list(filter(None, map(self._shelf.find_named, BRACKETED.findall(answer)))) or named
        pages: list[int | None] = [*self._read_numbers("page")]
        if len(named) == 1 and pages:
            named = [(named[0][0], None)] * len(pages)
        paired = pages if len(pages) == len(named) else [None] * len(named)
        return [_make_quote(name, page=stated or page) for (name, stated), page in zip(named, paired, strict=True)]

    def _list_items(self, role: str) -> list[Any]:
        """Return the values of the cell for `role`; a text with several names is split, unless it is a file's name."""
        cell = self._record.cells.get(self._paths[role][0])
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
        values = [] if inner else list_cell_values(self._record.cells.get(column))
        return [number for value in values if (number := read_number(value)) is not None]

    def _describe(self, role: str) -> list[dict[str, Any]]:
        """Return each value of the cell for `role` as a dict, such as `{'document': …, 'page': …}`."""
        plain = "citation" if role in ("provision", "acceptable") else role
        return [
            self._read_object(value, self._paths[role][0])
            if isinstance(value, dict)
            else {plain: read_cell_words(value)}
            for value in self._list_items(role)
        ]

    def _read_object(self, value: Mapping[str, Any], column: str) -> dict[str, Any]:
        """Return an object's known fields by role, such as `document` or `page`; empty if it has only a grade."""
        filled = {name: cell for name, cell in flatten_object(value).items() if read_cell_words(cell)}
        parts: dict[str, Any] = {}
        for role in ("document", "text", "provision", "page", "grade"):
            path, inner = self._paths[role]
            cell = filled.get((inner if path == column else "") or choose_name(filled, role) or "")
            numbers = (read_number(number) for number in list_cell_values(cell))
            part = next(numbers, None) if role in ("page", "grade") else read_cell_words(cell)
            parts |= {} if part in ("", None) else {role: part}
        return parts if parts.keys() - {"grade"} else {}

    def _read_quoted(self, items: Sequence[dict[str, Any]]) -> Iterator[Quote]:
        """Yield the passages of the text column, each with its own document, the row's only one or that beside it."""
        named = self._named
        beside = {role: self._read_numbers(role) for role in ("page", "grade")}
        for at, parts in enumerate(items):
            stated: dict[str, Any] = {role: cells[at] for role, cells in beside.items() if len(cells) == len(items)}
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
        """Return the files, pages or provisions that the citations of a row name; a note for those that name none."""
        quotes = []
        for parts in self._describe(role):
            law, text = parts.get("document", ""), parts.get("provision") or parts.get("citation", "")
            if not text:
                quotes += [_make_quote(**parts)] if parts else [_NOWHERE]
            elif "citation" in parts and (file := self._shelf.find_named(text)):
                quotes.append(_make_quote(file[0], page=file[1]))
            elif provisions := read_provisions(text) or read_provisions(f"{law} {text}"):
                grade = parts.get("grade")
                quotes += [
                    _make_quote(self._find_document(named, law), provision=named.label, grade=grade)
                    for named in provisions
                ]
            else:
                self._note("citation of an unknown file or provision", text[:80])
                quotes.append(_NOWHERE)
        return quotes

    def _find_document(self, provision: NamedProvision, law: str) -> str:
        """Return the file of the named law, or else the row's only document if that may contain the provision."""
        for source in filter(None, (law, provision.source)):
            if file := self._shelf.find_law_file(source):
                return file
        files = list(dict.fromkeys(name for name, _ in self._named))
        if len(files) == 1 and self._shelf.may_be(files[0], provision):
            return files[0]
        reason = "provision of a law that is not in the documents" if law or provision.source else NO_LAW
        self._note(reason, provision.label)
        return ""


def _make_quote(
    document: str = "", *, text: str = "", provision: str = "", page: int | None = None, grade: int | None = None
) -> Quote:
    stated = {"grade": grade, "provision": provision or None, "stated_page": page}
    labels = tuple((name, value) for name, value in stated.items() if value is not None)
    return Quote(document, text or None, labels=labels, provision="" if text else provision, page=page)


def read_questions(records: list[Record], columns: Columns, reader: RowReader, tally: Tally) -> list[RawRow]:
    """Return the questions in order; rows with the same id are one question."""
    ids = [read_cell_words(record.cells.get(columns["id"] or "")) for record in records]
    numeric = all(re.fullmatch(r"\d{1,15}", name) for name in ids) and columns["id"] is not None
    grouped: dict[str, RawRow] = {}
    for record, name in zip(records, ids, strict=True):
        try:
            row = reader.read(record, int(name) if numeric else record.index)
        except ValueError as error:
            tally.fault(str(error), record.place, item=record.item)
            continue
        if name and not numeric:
            row = replace(row, labels={"id": name, **row.labels})
        # 7 and 007 are the same id; a row without an id is a separate question
        key, line = str(row.id) if numeric else name or f"\0{record.place}", f"{record.place}: {name}"
        first = grouped.setdefault(key, row)
        if first.question != row.question or first.is_impossible != row.is_impossible:
            tally.fault("another question under the id of an earlier row", line, item=record.item)
        elif first is not row:
            if row.answer not in ("", first.answer):
                tally.note("another answer under the same id: the first is kept", line)
            labels = tuple((key, value) for key, value in row.labels.items() if first.labels.get(key) != value)
            quotes = (replace(quote, labels=(*labels, *quote.labels)) for quote in row.quotes)
            grouped[key] = replace(first, items=(*first.items, *row.items), quotes=(*first.quotes, *quotes))
    return list(grouped.values())


def _finish_row(row: RawRow, placed: Sequence[Quote], documents: Mapping[str, RawDocument], tally: Tally) -> RawRow:
    """Return a row with its passages as gold to locate; without passages, an answer that is a clause is searched."""
    quoted = any(quote.text or quote.provision for quote in placed)
    if row.is_impossible and quoted:
        tally.note("impossible question with passages: they are ignored", row.place)
    clause = row.answer if not quoted and len(fold(row.answer, loose=True)) >= MIN_CLAUSE_LETTERS else ""
    quotes = [
        replace(quote, filename=documents[quote.filename].filename, text=clause or quote.text, answer=bool(clause))
        for quote in placed
    ]
    stand_in, made_of = ("", "") if row.answer or row.is_impossible else _stand_in(dict(row.labels), placed)
    return replace(
        row,
        answer=row.answer or stand_in,
        quotes=() if row.is_impossible else tuple(dict.fromkeys(quotes)),
        filename=quotes[0].filename if quotes else None,
        labels={**row.labels, **({ANSWER_FROM: made_of} if made_of else {})},
    )


def _stand_in(labels: Mapping[str, Label], quotes: Sequence[Quote]) -> tuple[str, str]:
    """Return a text for a row without an expected answer, and its origin; the origin is empty for gold passages."""

    def list_words(name: str) -> list[str]:
        items = json.loads(str(labels.get(name, "[]")))
        return [" / ".join(map(read_cell_words, item if isinstance(item, list) else [item])) for item in items]

    texts = {
        "": [quote.text for quote in quotes if quote.text],
        MUST_CONTAIN: list_words(MUST_CONTAIN),
        "provision or document": [quote.provision or quote.filename for quote in quotes],
        MUST_NOT_CONTAIN: [f"not: {words}" for words in list_words(MUST_NOT_CONTAIN)],
    }
    made_of = next((made_of for made_of, words in texts.items() if words), "")
    return "; ".join(dict.fromkeys(texts[made_of])), made_of


# ---------------------------------------------------------------- cells

MAX_LABEL = 2**63 - 1  # a larger number is stored as text, because it fits no column type
_WORD_LISTS = {MUST_CONTAIN: "must-contain", MUST_NOT_CONTAIN: "must-not-contain"}  # the roles of two labels
_YES = frozenset({"true", "yes", "y", "1", "1.0", "t", *map(name_key, FIELDS["refuse"])})
_NO = frozenset({"false", "no", "n", "0", "0.0", "f", "", *map(name_key, FIELDS["comply"])})
_LETTER = re.compile(r"\(?([A-Za-z])[).:]?")


def _read_words(cell: Any) -> list[Any]:
    """Return the texts that an answer must contain, or must not contain; a nested list has alternatives."""
    return [
        list_cell_values(item) if isinstance(item, list) else read_cell_text(item, "text")
        for item in split_values(cell, r"[;|\n]|, ")
        if read_cell_words(item)
    ]


def split_values(cell: Any, marks: str = r"[;|\n]") -> list[Any]:
    """Return the values of a cell; a single text is split at semicolons, vertical bars and line ends."""
    values = list_cell_values(cell)
    if len(values) == 1 and isinstance(values[0], str):
        return [part.strip(" \t-•*") for part in re.split(marks, values[0]) if part.strip(" \t-•*")]
    return values


def read_cell_text(cell: Any, field: str) -> str:
    """Return a cell's texts, joined by semicolons: of an object its `field`, of a chat the last message of the user."""
    values = list_cell_values(cell)
    if values and all(isinstance(value, dict) and "role" in value for value in values):
        messages = [value for value in values if value["role"] in ("user", "human")] or values
        return read_cell_words(messages[-1].get("content"))
    texts = (read_cell_field(value, field) or read_cell_field(value, "text") for value in values)
    return "; ".join(filter(None, texts))


def label(cell: Any) -> Label:
    """Return a cell as a label of gold.jsonl; a list or an object becomes JSON text, and an infinity becomes None."""
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False, default=str)
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    fits = cell is None or isinstance(cell, str | bool) or (isinstance(cell, int) and abs(cell) <= MAX_LABEL)
    return cell if fits else str(cell)


def read_number(cell: Any) -> int | None:
    """Return a non-negative integer, given as a number or as a string of digits; None for anything else."""
    words = read_cell_words(cell)
    return int(words) if words.isdecimal() else None


def read_refusal(cell: Any) -> bool | None:
    """Return whether a cell states that a question must be refused: False if it is empty, None if it is unclear."""
    word = name_key(read_cell_words(cell))
    return True if word in _YES else False if word in _NO else None


def choose_option(answer: str, cell: Any) -> tuple[str, list[str]]:
    """Return the option that an answer such as `B` or `(b)` names, else the answer; and the texts of all options."""
    values = list_cell_values(cell)
    if len(values) == 1 and isinstance(values[0], dict):
        values = list(values[0].values())  # {"A": …, "B": …}
    options = [read_cell_field(value, "text") for value in values]
    match = _LETTER.fullmatch(answer.strip())
    at = ord(match[1].upper()) - ord("A") if match else -1
    return (options[at] if 0 <= at < len(options) else answer), options
