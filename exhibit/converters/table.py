"""Any table of questions (JSON, YAML, CSV, Excel, Parquet), with its documents in a folder, beside it, or on the web.

exhibit convert table --source questions.csv --documents contracts/ --out datasets_out/mine
"""

import hashlib
import re
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from exhibit.converters import Benchmark, DatasetInfo, Licence, Quote, RawDocument, RawRow, Tally, squad
from exhibit.converters.core.benchmark import BEYOND
from exhibit.converters.core.command import main
from exhibit.converters.core.documents import MIN_CLAUSE_LETTERS
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.converters.pages.fetch import add_fetch_arguments, read_policy
from exhibit.converters.tables.cells import label, read_cell_words
from exhibit.converters.tables.columns import ROLES, choose_columns, correct_columns, list_columns, show_columns
from exhibit.converters.tables.documents import Shelf
from exhibit.converters.tables.gold import CitedPassage, GoldReader, TableQuestion, open_record, read_questions
from exhibit.converters.tables.judgments import find_judged_folder, read_judged
from exhibit.converters.tables.records import ENDINGS, columns_of, read_records
from exhibit.evidence.fold import fold
from exhibit.evidence.read import is_readable
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import ANSWER_FROM, MUST_CONTAIN, MUST_NOT_CONTAIN

INFO = DatasetInfo(
    name="table",
    title="A table of questions",
    benchmark="Any table of questions about documents",
    summary="Questions from a table, with the passages that answer them located in their documents.",
    expects=f"one table ({', '.join(ENDINGS)}) with a question a row",
    licence=Licence(id="unknown", name="unknown terms", redistributable=False),
    tags=("legal",),
    accepts=ENDINGS,
    questions="The questions are the table's own.",
    limits="The meaning of its columns was given on the command line, or guessed from their names: see bundle.json.",
)

_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


def add_arguments(parser: ArgumentParser) -> None:
    columns = parser.add_argument_group("columns", "guessed from common names when not given; '' for none")
    for role, meaning in ROLES.items():
        columns.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    add_fetch_arguments(parser)
    add = parser.add_argument_group("documents").add_argument
    add("--documents", type=Path, metavar="DIR", help="the folder that holds them")
    as_what = "every file printed to PDF, or as it is (default: pdf)"
    add("--as", choices=["pdf", "is"], default="pdf", help=as_what)
    add = parser.add_argument_group("about the table").add_argument
    add("--sheet", metavar="NAME", help="of a workbook (default: the first that has rows)")
    add("--name", help="the bundle's short name (default: the table's)")
    add("--title", help="the bundle's name on the Hub (default: the short one)")
    add("--licence", metavar="NAME", help="such as cc-by-4.0 (default: unknown)")
    add("--redistributable", action="store_true", help="the licence allows to pass the documents on")


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a table of questions, find the documents named in its rows, and assign each gold passage to a document.

    SQuAD files and folders of queries with relevance judgments are also read.
    """
    if folder := find_judged_folder(source):
        return replace(read_judged(folder, tally), info=_make_info(source, options))
    table = _find_table(source)
    if squad.is_squad(table):
        return replace(squad.read(table, options, tally), info=_make_info(table, options))
    data = table.read_bytes()
    records = [open_record(record, tally) for record in read_records(table, data, tally, sheet=options.sheet)]
    seen = columns_of(records)
    named = {role: getattr(options, role.replace("-", "_")) for role in ROLES}
    shelf = Shelf(table, options.documents, vars(options)["as"] == "pdf", read_policy(options))
    by_user = [role for role, name in named.items() if name is not None]
    columns = correct_columns(choose_columns(table, seen, named), by_user, records, shelf)
    show_columns(table, seen, columns, named, tally)
    readable = [file.name for file in shelf.files if is_readable(file.path)]
    only = readable[0] if len(readable) == 1 and columns["document"] is None else None
    gold = GoldReader(columns, seen, shelf, only, tally)
    questions = read_questions(records, columns, gold, tally)
    gold.check(table)
    names = list(dict.fromkeys(passage.document for question in questions for passage in question.passages))
    judged = any(question.judged for question in questions)
    if not names and not shelf.files and not judged:
        raise SourceError(f"{table}: no row names a document{list_columns(seen)}; name the column with --document")
    if not names and judged:
        tally.note("no document and no passage is named: answers are judged, passages are not", table.name)
    chosen = names[: options.max_documents]
    by_name = shelf.find(chosen, tally)
    others = shelf.find_others(by_name, limited=options.max_documents is not None, tally=tally)
    asked = []
    for question in questions:
        if set(chosen).issuperset(passage.document for passage in question.passages):
            asked.append(question)
        else:
            tally.leave_out_all(BEYOND, question.items)
    for name in {passage.document for question in asked for passage in question.passages if passage.offsets}:
        if name in by_name and (read := shelf.read_source(by_name[name])) is not None:
            by_name[name] = replace(by_name[name], text=read.text)  # to which the offsets refer
    documents = {document.filename: document for document in [*by_name.values(), *others.values()]}
    titles = choose_unique_titles({name: [document.title, name] for name, document in documents.items()})
    from_0 = any(passage.page == 0 for question in questions for passage in question.passages)
    needs_document = any(columns[role] for role in ("document", "text", "provision")) or not judged
    needs_words = any(columns[role] for role in ("answer", "text", "provision"))
    rows = []
    for question in asked:
        lacking, more = _find_lacking(question, by_name, shelf, needs_document=needs_document, needs_words=needs_words)
        if lacking:
            tally.leave_out_all(lacking, question.items, more=more, fault=True)
        else:
            rows.append(_make_row(question, by_name, tally, from_0=from_0))
    return Benchmark(
        documents=[replace(document, title=titles[name]) for name, document in documents.items()],
        rows=rows,
        sha256={table.name: hashlib.sha256(data).hexdigest()},
        info=_make_info(table, options),
    )


def _find_table(source: Path) -> Path:
    if source.is_file():
        return source
    tables = sorted(path for path in source.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    if len(tables) != 1:
        listing = ", ".join(path.name for path in tables) or "none"
        raise SourceError(f"{source}: expected {INFO.expects}; found {listing}. Pass the file itself with --source")
    return tables[0]


def _make_info(table: Path, options: Namespace) -> DatasetInfo:
    name = options.name or table.stem
    title = options.title or name
    terms = options.licence
    slug = terms.lower() if terms and _SLUG.fullmatch(terms.lower()) else "other"
    licence = Licence(id=slug, name=terms, redistributable=options.redistributable) if terms else INFO.licence
    return replace(INFO, name=name, title=title, benchmark=title, licence=licence)


# ---------------------------------------------------------------- rows


def _find_lacking(
    question: TableQuestion, documents: dict[str, RawDocument], shelf: Shelf, *, needs_document: bool, needs_words: bool
) -> tuple[str, str]:
    """Return what a row lacks, such as `row names no document`, with details; empty if the row can be evaluated."""
    missing = next((passage.document for passage in question.passages if passage.document not in documents), None)
    if missing is not None:
        reason, more = shelf.lost[missing]
        return reason, f"{missing} ({more})" if more else missing
    if question.is_impossible:
        return "", ""
    texts = any(passage.text or passage.provision for passage in question.passages)
    if not (question.answer or texts or question.judged or (question.passages and not needs_words)):
        return "row without an answer or a passage", ""
    placed = question.passages or question.quoted or not needs_document
    return "" if placed else "row names no document", ""


def _make_row(question: TableQuestion, documents: dict[str, RawDocument], tally: Tally, *, from_0: bool) -> RawRow:
    quoted = any(passage.text or passage.provision for passage in question.passages)
    if question.is_impossible and quoted:
        tally.note("impossible, so its passages are dropped", question.place)
    whole_clause = len(fold(question.answer, loose=True)) >= MIN_CLAUSE_LETTERS
    answer = question.answer if not quoted and whole_clause else ""
    quotes = [_quote(passage, question, documents, answer, from_0=from_0) for passage in question.passages]
    unplaced = question.name_unplaced()
    for name in unplaced:
        tally.note("accepted passage outside the gold's documents: only a label", f"{question.place}: {name}")
    kept = {"acceptable": label(unplaced)} if unplaced else {}
    stand_in, made_of = ("", "") if question.answer or question.is_impossible else _stand_in(question)
    return RawRow(
        id=question.id,
        question=question.text,
        answer=question.answer or stand_in,
        quotes=() if question.is_impossible else tuple(dict.fromkeys(quotes)),
        filename=quotes[0].filename if quotes else None,
        is_impossible=question.is_impossible,
        labels=question.labels | kept | ({ANSWER_FROM: made_of} if made_of else {}),
        items=tuple(question.items),
        place=question.place,
    )


def _stand_in(question: TableQuestion) -> tuple[str, str]:
    """Return a text for a missing expected answer, and its origin; quotes are an answer, with an empty origin."""

    def words_of(item: Any) -> str:
        return " / ".join(map(read_cell_words, item)) if isinstance(item, list) else read_cell_words(item)

    lists = question.lists
    for made_of, texts in {
        "": [passage.text for passage in question.passages if passage.text],
        MUST_CONTAIN: [words_of(item) for item in lists.get(MUST_CONTAIN, ())],
        "provision or document": [passage.provision or passage.document for passage in question.passages],
        MUST_NOT_CONTAIN: [f"not: {words_of(item)}" for item in lists.get(MUST_NOT_CONTAIN, ())],
    }.items():
        if texts:
            return "; ".join(dict.fromkeys(texts)), made_of
    return "", ""


def _quote(
    passage: CitedPassage, question: TableQuestion, documents: dict[str, RawDocument], answer: str, *, from_0: bool
) -> Quote:
    """Return a passage as gold to locate; its provision, page and grade become labels."""
    document = documents[passage.document]
    text = passage.text
    if text is None and passage.offsets and document.text:
        text = document.text[slice(*passage.offsets)] or None
    page = passage.page
    if page is not None and from_0 and not passage.text and not passage.provision:
        page += 1  # the gold is the whole page, so no quote can show that the table counts from 0
    stated = {"provision": passage.provision or None, "stated_page": page, "grade": passage.grade}
    labels = tuple((name, value) for name, value in stated.items() if value is not None)
    accepted = [other.provision for other in question.acceptable if other.document == passage.document]
    worded = bool(text or passage.provision)
    return Quote(
        document.filename,
        text or answer or None,
        spans=(passage.offsets,) if passage.offsets and document.text and text else (),
        labels=(*passage.labels, *labels),
        provision="" if text else passage.provision,
        acceptable=tuple(filter(None, accepted)) if worded else (),
        stated=page if worded else None,
        page=None if worded else page,
        answer=bool(answer) and not text,
    )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
