"""Any table of questions (JSONL, JSON, CSV, TSV, Excel, Parquet), its documents in a folder, beside it, or on the web.

python -m converters.table --source questions.csv --documents contracts/ --out datasets_out/mine
"""

import hashlib
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.converters import Benchmark, DatasetInfo, Item, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.benchmark import BEYOND, Label
from exhibit.converters.fetching.fetch import add_fetch_arguments, policy_from
from exhibit.converters.raw.columns import (
    ROLES,
    Columns,
    choose_columns,
    columns_by_cells,
    inside,
    label,
    listed,
    show_columns,
    values,
    words,
)
from exhibit.converters.raw.documents import Shelf, Texts
from exhibit.converters.raw.records import ENDINGS, Record, columns_of, read_records
from exhibit.converters.raw.titles import unique_titles
from exhibit.converters.steps.cli import main
from exhibit.evidence.read import readable
from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import Licence

INFO = read_info(__file__)

_YES = frozenset({"true", "yes", "y", "1", "1.0", "t"})
_NO = frozenset({"false", "no", "n", "0", "0.0", "f", ""})
_HOP = re.compile(r"^\s*<\d+-hop>\s*")
"""What ragas writes above the passages of a question that needs several."""
_PAGE = re.compile(r"page(?:[ _-]?(?:number|no|num))?", re.IGNORECASE)
"""The name of a column with the page, counted from 1, that a row's passage stands on."""
_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the columns, and how documents are fetched."""
    columns = parser.add_argument_group("columns", "guessed from common names when not given; '' for none")
    for role, meaning in ROLES.items():
        columns.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    add_fetch_arguments(parser)


class _Cited(NamedTuple):
    """A document as the table names it, the words in it if there are any, and what their row alone says."""

    document: str
    text: str | None
    labels: tuple[tuple[str, Label], ...] = ()


@dataclass
class _Question:
    """A question as its rows give it."""

    id: int
    place: str
    text: str
    answer: str
    is_impossible: bool
    labels: dict[str, Label]
    passages: list[_Cited]
    items: list[Item]
    """The rows that it was read from."""
    quoted: bool = False
    """Whether the table quotes passages for it, wherever they stand."""


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read the table, find its documents, and tie each passage to its own."""
    table = _find_table(source)
    data = table.read_bytes()
    records = read_records(table, data, tally, sheet=options.sheet, encoding=options.encoding)
    seen = columns_of(records)
    named = {role: getattr(options, role) for role in ROLES}
    shelf = Shelf(table, options.documents, getattr(options, "as") == "pdf", policy_from(options))
    texts = Texts(shelf)
    given = [role for role, name in named.items() if name is not None]
    columns = columns_by_cells(choose_columns(table, seen, named), given, records, texts)
    show_columns(table, seen, columns, named, tally)
    questions = list(_questions(records, columns, _only_document(columns, shelf), tally))
    questions = [question for question in questions if _find_documents(question, texts, tally)]
    names = list(dict.fromkeys(passage.document for question in questions for passage in question.passages))
    if not names and not shelf.files:
        raise SourceError(f"{table}: no row names a document{listed(seen)}; name the column with --document")
    chosen = names[: options.limit]
    documents_by_name = shelf.find(chosen, tally)
    limited = options.limit is not None
    others = shelf.find_others(documents_by_name, take=not options.only_asked, limited=limited, tally=tally)
    within = frozenset(chosen)
    asked = []
    for question in questions:
        if all(passage.document in within for passage in question.passages):
            asked.append(question)
        else:
            tally.leave_out_all(BEYOND, question.items)
    documents = {document.filename: document for document in [*documents_by_name.values(), *others.values()]}
    titles = unique_titles({name: [document.title, name] for name, document in documents.items()})
    return Benchmark(
        documents=[replace(document, title=titles[name]) for name, document in documents.items()],
        rows=[row for question in asked for row in _row(question, documents_by_name, shelf, options, tally)],
        sha256={table.name: hashlib.sha256(data).hexdigest()},
        info=_info(table, options),
    )


def _find_table(source: Path) -> Path:
    if source.is_file():
        return source
    tables = sorted(path for path in source.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    if len(tables) != 1:
        listing = ", ".join(path.name for path in tables) or "none"
        raise SourceError(f"{source}: expected {INFO.expects}; found {listing}. Pass the file itself with --source")
    return tables[0]


def _only_document(columns: Columns, shelf: Shelf) -> str | None:
    """Return the name of the document that all rows must be about, where no column says so."""
    if columns["document"] is not None:
        return None
    files = [file for file in shelf.files if readable(file.path)]
    return files[0].name if len(files) == 1 else None


def _info(table: Path, options: Namespace) -> DatasetInfo:
    name = options.name or table.stem
    title = options.title or name
    terms = options.licence
    slug = terms.lower() if terms and _SLUG.fullmatch(terms.lower()) else "other"
    licence = Licence(id=slug, name=terms, redistributable=options.redistributable) if terms else INFO.licence
    return replace(INFO, name=name, title=title, benchmark=title, licence=licence)


# ---------------------------------------------------------------- questions


def _questions(records: list[Record], columns: Columns, only: str | None, tally: Tally) -> Iterator[_Question]:
    """Yield the questions in order; rows with the same id are one."""
    ids = [words(record.cells.get(columns["id"] or "")) for record in records]
    keep = all(re.fullmatch(r"\d{1,15}", name) for name in ids) and columns["id"] is not None
    grouped: dict[str, _Question] = {}
    for record, name in zip(records, ids, strict=True):
        try:
            question = _question(record, columns, only, int(name) if keep else record.index)
        except ValueError as error:
            tally.fault(str(error), record.place, item=record.item)
            continue
        if name and not keep:
            question.labels = {"id": name, **question.labels}
        # 7 and 007 are one number; a row without an id is a question by itself
        first = grouped.setdefault(str(question.id) if keep else name or f"\0{record.place}", question)
        if first is question:
            continue
        if first.text != question.text or first.is_impossible != question.is_impossible:
            line = f"{record.place}: {name}"
            tally.fault("another question under the id of an earlier row", line, item=record.item)
            continue
        if question.answer not in ("", first.answer):
            tally.note("another answer under the same id: the first is kept", f"{record.place}: {name}")
        own = tuple((key, value) for key, value in question.labels.items() if first.labels.get(key) != value)
        first.items += question.items
        first.passages += [passage._replace(labels=own) for passage in question.passages]
    yield from grouped.values()


def _question(record: Record, columns: Columns, only: str | None, number: int) -> _Question:
    """Return the question of a row, or raise a ValueError that says what it lacks."""
    cells = {role: record.cells.get(name) if name else None for role, name in columns.items()}
    question = words(cells["question"])
    if not question:
        raise ValueError("row without a question")
    verdict = words(cells["impossible"]).casefold()
    if verdict not in _YES | _NO:
        raise ValueError("whether it is impossible is neither yes nor no")
    names = [words(value) for value in values(cells["document"])] or ([only] if only else [])
    used = {name for name in columns.values() if name}
    return _Question(
        id=number,
        place=record.place,
        text=question,
        answer="; ".join(filter(None, map(words, values(cells["answer"])))),
        is_impossible=verdict in _YES,
        labels={name: label(value) for name, value in record.cells.items() if name not in used},
        passages=list(_passages(names, values(cells["text"]))),
        items=[record.item],
        quoted=bool(values(cells["text"])),
    )


def _passages(names: Sequence[str], cell: Sequence[Any]) -> Iterator[_Cited]:
    """Tie passages to documents: each to the one it names, all to the only one, or one to one."""
    if not cell:
        yield from (_Cited(name, None) for name in names)
    for place, value in enumerate(cell):
        own = inside(value, "document") if isinstance(value, dict) else ""
        text = inside(value, "text") if isinstance(value, dict) else words(value)
        if not own and len(names) not in (0, 1, len(cell)):
            raise ValueError(f"{len(cell)} passages and {len(names)} documents: which stands where?")
        yield _Cited(own or (names[place if len(names) > 1 else 0] if names else ""), text or None)


def _stated_page(labels: Mapping[str, Label]) -> int | None:
    """Return the page that a column states for a passage; None where there is none, or it is no whole number."""
    pages = [value for name, value in labels.items() if _PAGE.fullmatch(name.strip())]
    stated = str(pages[0]).strip().removesuffix(".0") if pages else ""
    return int(stated) if re.fullmatch(r"[1-9]\d{0,5}", stated) else None


def _find_documents(question: _Question, texts: Texts, tally: Tally) -> bool:
    """Give passages that name no document the only one that has their words; return whether that can be looked for."""
    passages = []
    for passage in question.passages:
        if passage.document:
            passages.append(passage)
            continue
        if not texts.shelf.files:
            tally.leave_out_all("passage without a document", question.items, fault=True)
            return False
        text = _HOP.sub("", passage.text or "")
        holders = texts.holders(text)
        if len(holders) == 1:
            passages.append(passage._replace(document=holders[0], text=text))
        else:
            several = "passage without a document stands in several: it is ambiguous, and no gold"
            reason = several if holders else "passage without a document stands in none"
            tally.note(reason, f"{question.place}: {text[:80]!r}")
    question.passages = passages
    return True


def _row(
    question: _Question, documents: dict[str, RawDocument], shelf: Shelf, options: Namespace, tally: Tally
) -> Iterator[RawRow]:
    missing = [passage.document for passage in question.passages if passage.document not in documents]
    texts = [passage.text for passage in question.passages if passage.text]
    if missing:
        reason, more = shelf.lost[missing[0]]
        more = f"{missing[0]} ({more})" if more else missing[0]
        tally.leave_out_all(reason, question.items, more=more, fault=True)
        return
    if not question.is_impossible and not (question.answer or texts):
        tally.leave_out_all("row without an answer or a passage", question.items, fault=True)
        return
    if not question.is_impossible and not question.passages and not question.quoted:
        tally.leave_out_all("row names no document", question.items, fault=True)
        return
    if question.is_impossible and texts:
        tally.note("impossible, so its passages are dropped", question.place)
    answer = question.answer if options.gold_from_answers and not texts else ""
    quotes = [
        Quote(
            documents[p.document].filename,
            p.text or answer or None,
            labels=p.labels,
            page=_stated_page({**question.labels, **dict(p.labels)}),
            answer=bool(answer),
        )
        for p in question.passages
    ]
    yield RawRow(
        id=question.id,
        question=question.text,
        answer=question.answer or "; ".join(dict.fromkeys(texts)),
        quotes=() if question.is_impossible else tuple(dict.fromkeys(quotes)),
        filename=quotes[0].filename if quotes else None,
        is_impossible=question.is_impossible,
        labels=question.labels,
        items=tuple(question.items),
    )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
