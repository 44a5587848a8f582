"""Any table of questions (JSON, YAML, CSV, Excel, Parquet), with its documents in a folder, beside it, or on the web.

exhibit convert table --source questions.csv --documents contracts/ --out datasets_out/mine
"""

import json
import re
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from exhibit.converters import BEYOND, Benchmark, DatasetInfo, Label, Licence, Quote, RawDocument, RawRow, Tally, squad
from exhibit.converters.core.documents import MIN_CLAUSE_LETTERS
from exhibit.converters.core.source import Release
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.converters.pages.fetch import add_fetch_arguments, read_policy
from exhibit.converters.tables.documents import Shelf
from exhibit.converters.tables.questions import ROLES, GoldReader, assign_columns, list_columns, read_questions
from exhibit.converters.tables.records import ENDINGS, columns_of, open_record, read_cell_words, read_records
from exhibit.evidence.fold import fold
from exhibit.evidence.read import is_readable
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

_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


def add_arguments(parser: ArgumentParser) -> None:
    columns = parser.add_argument_group("columns", "guessed from the columns' names if not given; '' = no column")
    for role, meaning in ROLES.items():
        columns.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    add_fetch_arguments(parser)
    add = parser.add_argument_group("documents").add_argument
    add("--documents", type=Path, metavar="DIR", help="the folder with the documents")
    as_what = "print every file to PDF, or copy it unchanged (default: pdf)"
    add("--as", choices=["pdf", "is"], default="pdf", help=as_what)
    add = parser.add_argument_group("the table").add_argument
    add("--sheet", metavar="NAME", help="the sheet of a workbook (default: the first sheet with rows)")
    add("--name", help="the bundle's short name (default: the table's file name)")
    add("--title", help="the bundle's title on the Hub (default: its short name)")
    add("--licence", metavar="NAME", help="the licence of the bundle, such as cc-by-4.0 (default: unknown)")
    add("--redistributable", action="store_true", help="state that the licence allows others to share the documents")


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a table of questions, find the documents named in its rows, and assign each gold passage to a document.

    SQuAD files are also read.
    """
    release, table = Release(source, INFO), source
    if source.is_dir():
        tables = sorted(path for path in source.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
        if len(tables) != 1:
            listing = ", ".join(path.name for path in tables) or "none"
            hint = "Pass the file itself with --source"
            raise SourceError(f"{source}: expected {INFO.expects}; found {listing}. {hint}")
        [table] = tables
    is_squad = squad.is_squad(table)
    benchmark = squad.read(table, options, tally) if is_squad else _read_table(release, table, options, tally)
    titles = choose_unique_titles(
        {document.filename: [document.title, document.filename] for document in benchmark.documents}
    )
    documents = [replace(document, title=titles[document.filename]) for document in benchmark.documents]
    return replace(benchmark, documents=documents, info=_make_info(table, options))


def _read_table(release: Release, table: Path, options: Namespace, tally: Tally) -> Benchmark:
    records = [
        open_record(record, tally) for record in read_records(table, release.read(table), tally, sheet=options.sheet)
    ]
    seen = columns_of(records)
    named = {role: getattr(options, role.replace("-", "_")) for role in ROLES}
    shelf = Shelf(table, options.documents, vars(options)["as"] == "pdf", read_policy(options))
    columns = assign_columns(table, records, named, shelf, tally)
    readable = [file.name for file in shelf.files if is_readable(file.path)]
    only = readable[0] if len(readable) == 1 and columns["document"] is None else None
    gold = GoldReader(columns, seen, shelf, only, tally)
    questions = read_questions(records, columns, gold, tally)
    names = list(dict.fromkeys(quote.filename for row in questions for quote in row.quotes if quote.filename))
    judged = any(_is_judged(row) for row in questions)
    if not names and not shelf.files and not judged:
        raise SourceError(f"{table}: no row names a document{list_columns(seen)}; name their column with --document")
    if not names and judged:
        tally.note("the table names no document and no passage: only answers are judged", table.name)
    chosen = names[: options.max_documents]
    by_name = shelf.find(chosen, tally)
    shelf.lost |= dict.fromkeys(names[len(chosen) :], (BEYOND, ""))
    others = shelf.find_others(by_name, tally)
    documents = {document.filename: document for document in [*by_name.values(), *others.values()]}
    needs_document = any(columns[role] for role in ("document", "text", "provision")) or not judged
    needs_words = any(columns[role] for role in ("answer", "text", "provision"))
    rows = []
    for row in questions:
        lacking, more = _find_lacking(row, by_name, shelf, needs_document=needs_document, needs_words=needs_words)
        if lacking:
            tally.leave_out_all(lacking, row.items, more=more, fault=lacking != BEYOND)
        else:
            rows.append(_finish_row(row, by_name, tally))
    return Benchmark(list(documents.values()), rows, release.sha256)


def _make_info(table: Path, options: Namespace) -> DatasetInfo:
    name = options.name or table.stem
    title = options.title or name
    terms = options.licence
    slug = terms.lower() if terms and _SLUG.fullmatch(terms.lower()) else "other"
    licence = Licence(id=slug, name=terms, redistributable=options.redistributable) if terms else INFO.licence
    return replace(INFO, name=name, title=title, benchmark=title, licence=licence)


def _is_judged(row: RawRow) -> bool:
    """Return whether a question lists texts that its answer must contain or must not contain."""
    return MUST_CONTAIN in row.labels or MUST_NOT_CONTAIN in row.labels


def _list_placed(row: RawRow) -> list[Quote]:
    return [quote for quote in row.quotes if quote.filename]


def _find_lacking(
    row: RawRow, documents: dict[str, RawDocument], shelf: Shelf, *, needs_document: bool, needs_words: bool
) -> tuple[str, str]:
    """Return why a row cannot be evaluated, such as `row names no document`, and details; empty if it can."""
    placed = _list_placed(row)
    missing = next((quote.filename for quote in placed if quote.filename not in documents), None)
    if missing is not None:
        reason, detail = shelf.lost[missing]
        return reason, f"{missing} ({detail})" if detail else missing
    if row.is_impossible:
        return "", ""
    texts = any(quote.text or quote.provision for quote in placed)
    if not (row.answer or texts or _is_judged(row) or (placed and not needs_words)):
        return "row without an answer or a passage", ""
    return "" if row.quotes or not needs_document else "row names no document", ""


def _finish_row(row: RawRow, documents: dict[str, RawDocument], tally: Tally) -> RawRow:
    placed = _list_placed(row)
    quoted = any(quote.text or quote.provision for quote in placed)
    if row.is_impossible and quoted:
        tally.note("impossible question with passages: they are ignored", row.place)
    whole_clause = len(fold(row.answer, loose=True)) >= MIN_CLAUSE_LETTERS
    answer = row.answer if not quoted and whole_clause else ""
    quotes = [_finish_quote(quote, documents[quote.filename], answer) for quote in placed]
    stand_in, made_of = ("", "") if row.answer or row.is_impossible else _stand_in(dict(row.labels), placed)
    return replace(
        row,
        answer=row.answer or stand_in,
        quotes=() if row.is_impossible else tuple(dict.fromkeys(quotes)),
        filename=quotes[0].filename if quotes else None,
        labels={**row.labels, **({ANSWER_FROM: made_of} if made_of else {})},
    )


def _stand_in(labels: dict[str, Label], quotes: list[Quote]) -> tuple[str, str]:
    """Return a text for a row without an expected answer, and its origin; the origin is empty for gold passages."""

    def list_words(name: str) -> list[str]:
        items = json.loads(str(labels.get(name, "[]")))
        return [" / ".join(map(read_cell_words, item if isinstance(item, list) else [item])) for item in items]

    for made_of, texts in {
        "": [quote.text for quote in quotes if quote.text],
        MUST_CONTAIN: list_words(MUST_CONTAIN),
        "provision or document": [quote.provision or quote.filename for quote in quotes],
        MUST_NOT_CONTAIN: [f"not: {words}" for words in list_words(MUST_NOT_CONTAIN)],
    }.items():
        if texts:
            return "; ".join(dict.fromkeys(texts)), made_of
    return "", ""


def _finish_quote(quote: Quote, document: RawDocument, answer: str) -> Quote:
    """Return a passage as gold to locate; its provision and page become labels."""
    accepted = "; ".join(quote.acceptable) if quote.text else ""
    stated = {"provision": quote.provision or None, "stated_page": quote.page, "accepted": accepted or None}
    return replace(
        quote,
        filename=document.filename,
        text=quote.text or answer or None,
        labels=(*quote.labels, *((name, value) for name, value in stated.items() if value is not None)),
        provision="" if quote.text else quote.provision,
        answer=bool(answer) and not quote.text,
    )
