"""Any table of questions (JSON, YAML, CSV, Excel, Parquet), with its documents in a folder, beside it, or on the web.

python -m converters.table --source questions.csv --documents contracts/ --out datasets_out/mine
"""

import hashlib
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.converters import Benchmark, DatasetInfo, Quote, RawDocument, RawRow, Tally, read_info, squad
from exhibit.converters.benchmark import BEYOND
from exhibit.converters.fetching.fetch import add_fetch_arguments, read_policy
from exhibit.converters.raw.assertions import open_record
from exhibit.converters.raw.cells import label, read_cell_words
from exhibit.converters.raw.columns import ROLES, Columns, choose_columns, correct_columns, list_columns, show_columns
from exhibit.converters.raw.documents import Shelf, Texts
from exhibit.converters.raw.gold import CitedPassage, GoldReader, name_unplaced
from exhibit.converters.raw.judgments import find_judged_folder, read_judged
from exhibit.converters.raw.records import ENDINGS, columns_of, read_records
from exhibit.converters.raw.table_questions import TableQuestion, read_questions
from exhibit.converters.raw.titles import choose_unique_titles
from exhibit.converters.steps.cli import main
from exhibit.evidence.read import is_readable
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import ANSWER_FROM, MUST_CONTAIN, MUST_NOT_CONTAIN
from exhibit.schemas.models import Licence

INFO = read_info(__file__)

_HOP = re.compile(r"^\s*<\d+-hop>\s*")
"""The mark that ragas writes above the passages of a question that needs several."""
_SLUG = re.compile(r"[a-z0-9][a-z0-9.-]*")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags for columns and for fetching documents."""
    columns = parser.add_argument_group("columns", "guessed from common names when not given; '' for none")
    for role, meaning in ROLES.items():
        columns.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    add_fetch_arguments(parser)


class _Kinds(NamedTuple):
    """The requirements for every row of a table, which follow from the table's columns.

    A row may have to name a document, and it may have to give an answer, a passage or a provision.
    """

    needs_document: bool
    needs_words: bool
    """Whether a row needs an answer, a passage or a provision; a table may name only documents."""


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a table of questions, find the documents that its rows name, and return the benchmark.

    Each gold passage of a row is assigned to one document. SQuAD files and folders of queries with relevance
    judgments are also read.
    """
    policy = read_policy(options)
    if folder := find_judged_folder(source):
        shelf = Shelf(folder.queries, options.documents, getattr(options, "as") == "pdf", policy)
        return replace(read_judged(folder, shelf, tally), info=_make_info(source, options))
    table = _find_table(source)
    if squad.is_squad(table):
        return replace(squad.read(table, options, tally), info=_make_info(table, options))
    data = table.read_bytes()
    given = read_records(table, data, tally, sheet=options.sheet, encoding=options.encoding)
    records = [open_record(record, tally) for record in given]
    seen = columns_of(records)
    named = {role: getattr(options, role.replace("-", "_")) for role in ROLES}
    shelf = Shelf(table, options.documents, getattr(options, "as") == "pdf", policy)
    texts = Texts(shelf)
    chosen_by_user = [role for role, name in named.items() if name is not None]
    columns = correct_columns(choose_columns(table, seen, named), chosen_by_user, records, texts)
    show_columns(table, seen, columns, named, tally, records)
    gold = GoldReader(columns, seen, texts, _find_only_document(columns, shelf), tally)
    questions = list(read_questions(records, columns, gold, tally))
    gold.check(table)
    _count_pages_from_1(questions)
    questions = [question for question in questions if _find_documents(question, texts, tally)]
    names = list(dict.fromkeys(passage.document for question in questions for passage in question.passages))
    judged = any(question.judged for question in questions)
    if not names and not shelf.files and not judged:
        raise SourceError(f"{table}: no row names a document{list_columns(seen)}; name the column with --document")
    if not names and judged:
        tally.note("no document and no passage is named: answers are judged, passages are not", table.name)
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
    documents_by_name = _with_texts(documents_by_name, asked, texts)
    documents = {document.filename: document for document in [*documents_by_name.values(), *others.values()]}
    titles = choose_unique_titles({name: [document.title, name] for name, document in documents.items()})
    placed = any(columns[role] for role in ("document", "text", "provision"))
    worded = any(columns[role] for role in ("answer", "text", "provision"))
    kinds = _Kinds(needs_document=placed or not judged, needs_words=worded)
    return Benchmark(
        documents=[replace(document, title=titles[name]) for name, document in documents.items()],
        rows=[
            row for question in asked for row in _make_row(question, documents_by_name, shelf, options, tally, kinds)
        ],
        sha256={table.name: hashlib.sha256(data).hexdigest()},
        info=_make_info(table, options),
    )


def _count_pages_from_1(questions: Sequence[TableQuestion]) -> None:
    """If the table has a page 0, add 1 to the page number of each passage that has neither text nor provision.

    The gold of such a passage is the whole page, and its page number must count from 1.
    """
    if any(passage.page == 0 for question in questions for passage in question.passages):
        for question in questions:
            question.passages = [
                one if one.page is None or one.text or one.provision else one._replace(page=one.page + 1)
                for one in question.passages
            ]


def _with_texts(
    documents: dict[str, RawDocument], questions: Sequence[TableQuestion], texts: Texts
) -> dict[str, RawDocument]:
    """Return the documents; each document for which a passage states offsets gets the text of its file."""
    counted = {passage.document for question in questions for passage in question.passages if passage.offsets}
    by_path = {file.path: file for file in texts.shelf.files}
    whole = dict(documents)
    for name in counted & documents.keys():
        file = by_path.get(documents[name].original or documents[name].path or Path())
        read = texts.document(file) if file else None
        if read is not None:
            whole[name] = replace(documents[name], text=read.text)
    return whole


def _find_table(source: Path) -> Path:
    if source.is_file():
        return source
    tables = sorted(path for path in source.iterdir() if path.suffix.lower() in ENDINGS and path.is_file())
    if len(tables) != 1:
        listing = ", ".join(path.name for path in tables) or "none"
        raise SourceError(f"{source}: expected {INFO.expects}; found {listing}. Pass the file itself with --source")
    return tables[0]


def _find_only_document(columns: Columns, shelf: Shelf) -> str | None:
    """Return the name of the folder's only document if no column names documents; else None."""
    if columns["document"] is not None:
        return None
    files = [file for file in shelf.files if is_readable(file.path)]
    return files[0].name if len(files) == 1 else None


def _make_info(table: Path, options: Namespace) -> DatasetInfo:
    name = options.name or table.stem
    title = options.title or name
    terms = options.licence
    slug = terms.lower() if terms and _SLUG.fullmatch(terms.lower()) else "other"
    licence = Licence(id=slug, name=terms, redistributable=options.redistributable) if terms else INFO.licence
    return replace(INFO, name=name, title=title, benchmark=title, licence=licence)


# ---------------------------------------------------------------- rows


def _words_of(item: Any) -> str:
    return " / ".join(map(read_cell_words, item)) if isinstance(item, list) else read_cell_words(item)


def _find_documents(question: TableQuestion, texts: Texts, tally: Tally) -> bool:
    """Assign each passage without a document to the only document that contains it.

    Return False, and count the question as left out, if there are no documents to search.
    """
    passages = []
    for passage in question.passages:
        if passage.document:
            passages.append(passage)
            continue
        if not texts.shelf.files:
            tally.leave_out_all("passage without a document", question.items, fault=True)
            return False
        text = _HOP.sub("", passage.text or "")
        holders = texts.find_holders(text)
        if len(holders) == 1:
            passages.append(passage._replace(document=holders[0], text=text))
        else:
            several = "passage without a document stands in several: it is ambiguous, and no gold"
            reason = several if holders else "passage without a document stands in none"
            tally.note(reason, f"{question.place}: {text[:80]!r}")
    question.passages = passages
    return True


def _make_row(
    question: TableQuestion,
    documents: dict[str, RawDocument],
    shelf: Shelf,
    options: Namespace,
    tally: Tally,
    kinds: _Kinds,
) -> Iterator[RawRow]:
    missing = [passage.document for passage in question.passages if passage.document not in documents]
    texts = [passage.text or passage.provision for passage in question.passages if passage.text or passage.provision]
    if missing:
        reason, more = shelf.lost[missing[0]]
        more = f"{missing[0]} ({more})" if more else missing[0]
        tally.leave_out_all(reason, question.items, more=more, fault=True)
        return
    lacking = _find_lacking(question, texts, kinds)
    if lacking:
        tally.leave_out_all(lacking, question.items, fault=True)
        return
    if question.is_impossible and texts:
        tally.note("impossible, so its passages are dropped", question.place)
    answer = question.answer if options.gold_from_answers and not texts else ""
    quotes = [_quote(passage, question, documents, answer) for passage in question.passages]
    unplaced = name_unplaced(question.passages, question.acceptable)
    for name in unplaced:
        tally.note("accepted, but not in a document of the gold: a label, no alternative", f"{question.place}: {name}")
    kept = {"acceptable": label(unplaced)} if unplaced else {}
    stand_in, made_of = _stand_in(question)
    yield RawRow(
        id=question.id,
        question=question.text,
        answer=question.answer or stand_in,
        quotes=() if question.is_impossible else tuple(dict.fromkeys(quotes)),
        filename=quotes[0].filename if quotes else None,
        is_impossible=question.is_impossible,
        labels=question.labels | kept | ({ANSWER_FROM: made_of} if made_of and not question.answer else {}),
        items=tuple(question.items),
        place=question.place,
    )


def _find_lacking(question: TableQuestion, texts: Sequence[str], kinds: _Kinds) -> str:
    """Return what a row lacks, such as `row names no document`; empty if replies to its question can be judged."""
    if question.is_impossible:
        return ""
    if not (question.answer or texts or question.judged or (question.passages and not kinds.needs_words)):
        return "row without an answer or a passage"
    placed = question.passages or question.quoted or not kinds.needs_document
    return "" if placed else "row names no document"


def _stand_in(question: TableQuestion) -> tuple[str, str]:
    """Return a text that replaces a missing expected answer, and the origin of this text.

    The text is made of the question's quotes if there are any. The origin is then empty, because quotes count
    as an answer. Otherwise the text is made of required items, cited provisions or forbidden items, and the
    origin says which. Both results are empty for an impossible question.
    """
    if question.is_impossible:
        return "", ""
    quoted = [passage.text for passage in question.passages if passage.text]
    if quoted:
        return "; ".join(dict.fromkeys(quoted)), ""
    cited = [passage.provision or passage.document for passage in question.passages]
    for made_of, texts in {
        MUST_CONTAIN: [_words_of(item) for item in question.lists.get(MUST_CONTAIN, ())],
        "provision or document": cited,
        MUST_NOT_CONTAIN: [f"not: {_words_of(item)}" for item in question.lists.get(MUST_NOT_CONTAIN, ())],
    }.items():
        if texts:
            return "; ".join(dict.fromkeys(texts)), made_of
    return "", ""


def _quote(passage: CitedPassage, question: TableQuestion, documents: dict[str, RawDocument], answer: str) -> Quote:
    """Return a passage as gold to locate; its provision, page and grade become labels."""
    document = documents[passage.document]
    text = passage.text
    if text is None and passage.offsets and document.text:
        text = document.text[slice(*passage.offsets)] or None
    stated = {"provision": passage.provision or None, "stated_page": passage.page, "grade": passage.grade}
    own = tuple((name, value) for name, value in stated.items() if value is not None)
    accepted = [one.provision for one in question.acceptable if one.provision and one.document == passage.document]
    return Quote(
        document.filename,
        text or answer or None,
        spans=(passage.offsets,) if passage.offsets and document.text and text else (),
        labels=(*passage.labels, *own),
        provision="" if text else passage.provision,
        acceptable=tuple(accepted) if text or passage.provision else (),
        stated=passage.page if text or passage.provision else None,
        page=None if text or passage.provision else passage.page or None,
        answer=bool(answer) and not text,
    )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
