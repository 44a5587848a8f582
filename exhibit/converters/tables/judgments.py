"""Queries with judged documents: BEIR folders (corpus, queries, qrels), and TREC qrels over a folder of files."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from exhibit.converters.core.benchmark import Benchmark, Item, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.converters.tables.cells import read_cell_field, read_cell_words
from exhibit.converters.tables.documents import Shelf
from exhibit.converters.tables.records import ENDINGS, decode_table, read_records, split_cells
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import ANSWER_FROM

_ODD = re.compile(r"[^\w.-]+")
MAX_STEM_CHARS = 120
_WIDTHS = (3, 4)  # cells of a judgment: query, document and grade; TREC has an unused one after the query


class JudgedFolder(NamedTuple):
    """The files of a folder with judged queries."""

    queries: Path
    judgments: tuple[Path, ...]
    corpus: Path | None


class Judgment(NamedTuple):
    """The grade of a document for a query, and its line in the file."""

    place: str
    query: str
    document: str
    grade: int


def find_judged_folder(source: Path) -> JudgedFolder | None:
    """Return the files of a folder that contains queries and judgments; None for any other folder."""
    if not source.is_dir():
        return None
    files = sorted(path for path in source.rglob("*") if path.is_file())
    tables = [path for path in files if path.suffix.lower() in (*ENDINGS, ".txt")]
    queries = [path for path in tables if path.stem.lower() in ("queries", "topics")]
    judgments = [path for path in files if "qrels" in path.relative_to(source).as_posix().lower()]
    corpus = [path for path in tables if path.stem.lower() == "corpus"]
    if len(queries) != 1 or not judgments:
        return None
    return JudgedFolder(queries[0], tuple(judgments), corpus[0] if len(corpus) == 1 else None)


def read_judgments(path: Path, text: str, tally: Tally) -> Iterator[Judgment]:
    """Yield the judgments of a file, tab-separated (BEIR) or separated by spaces (TREC), below its header if any."""
    for number, row in enumerate(split_cells(text, "\t"), 1):
        cells = row if len(row) > 1 else " ".join(row).split()
        place = f"{path.name}: line {number}"
        if len(cells) in _WIDTHS and re.fullmatch(r"-?\d{1,3}", cells[-1].strip()):
            yield Judgment(place, cells[0].strip(), cells[-2].strip(), int(cells[-1]))
        elif number > 1 and any(cells):
            tally.fault("line of judgments that has no grade at its end", place)


def read_judged(folder: JudgedFolder, shelf: Shelf, tally: Tally) -> Benchmark:
    """Return the queries as questions; the gold of each is every available document with a grade above 0."""
    if folder.corpus is None and shelf.folder is None:
        raise SourceError(
            f"{folder.queries.parent}: has relevance judgments, but no corpus; pass the documents with --documents"
        )
    corpus = folder.corpus if shelf.folder is None else None
    content = {path: path.read_bytes() for path in (*folder.judgments, folder.queries, *filter(None, [corpus]))}
    judged: dict[str, dict[str, int]] = {}
    for path in folder.judgments:
        for judgment in read_judgments(path, decode_table(path, content[path], tally), tally):
            judged.setdefault(judgment.query, {})[judgment.document] = judgment.grade
    documents = dict(_read_corpus(corpus, content[corpus], tally)) if corpus else {}
    if not documents:
        documents = shelf.find(list(dict.fromkeys(name for grades in judged.values() for name in grades)), tally)
    others = shelf.find_others(documents, limited=False, tally=tally) if shelf.folder else {}
    rows = []
    for at, (key, question, item) in enumerate(_read_queries(folder.queries, content[folder.queries], tally)):
        grades = judged.get(key, {})
        gold = sorted((name for name in grades if grades[name] > 0 and name in documents), key=lambda n: -grades[n])
        if not gold:
            tally.leave_out("query whose judged documents are all missing", key, item=item)
            continue
        for name in (name for name in grades if name not in documents):
            tally.note("judged document that is missing", f"{key}: {name}")
        quotes = tuple(_quote(documents[name], grades[name]) for name in gold)
        labels: dict[str, Label] = {"id": key, ANSWER_FROM: "document"}
        answer = quotes[0].text or quotes[0].filename
        rows.append(RawRow(at, question, answer, quotes, quotes[0].filename, labels=labels, items=(item,), place=key))
    kept = {document.filename: document for document in (*documents.values(), *others.values())}
    titles = choose_unique_titles({name: [document.title, name] for name, document in kept.items()})
    sha256 = {path.name: hashlib.sha256(data).hexdigest() for path, data in content.items()}
    return Benchmark([replace(raw, title=titles[name]) for name, raw in kept.items()], rows, sha256)


def _quote(document: RawDocument, grade: int) -> Quote:
    """Return a judged document as gold: its whole text if the corpus has it, else the file."""
    spans = ((0, len(document.text)),) if document.text else ()
    return Quote(document.filename, document.text, spans=spans, labels=(("grade", grade),))


def _read_corpus(path: Path, data: bytes, tally: Tally) -> Iterator[tuple[str, RawDocument]]:
    taken: set[str] = set()
    for record in read_records(path, data, tally, accounted=False):
        key, text = read_cell_field(record.cells, "id"), read_cell_field(record.cells, "text")
        stem = _ODD.sub("_", key).strip("_.")[:MAX_STEM_CHARS]
        if not text or not stem or stem.casefold() in taken:
            reason = "document of the corpus without words, or with an id that is taken"
            tally.fault(reason, f"{path.name}: {record.place}")
            continue
        taken.add(stem.casefold())
        title = read_cell_words(record.cells.get("title"))
        yield key, RawDocument(f"{stem}.pdf", title or stem, text=text, heading=title)


def _read_queries(path: Path, data: bytes, tally: Tally) -> Iterator[tuple[str, str, Item]]:
    """Yield each query's id, text and item, from a table or from lines of the form `id<TAB>text`."""
    if path.suffix.lower() in (".tsv", ".txt"):
        rows = [cells for cells in split_cells(decode_table(path, data, tally), "\t") if len(cells) > 1]
        header = rows and rows[0][1].strip().casefold() in ("query", "text", "question")
        pairs = [(cells[0].strip(), "\t".join(cells[1:]).strip()) for cells in (rows[1:] if header else rows)]
    else:
        cells = [record.cells for record in read_records(path, data, tally, accounted=False)]
        pairs = [
            (read_cell_field(row, "id"), read_cell_field(row, "question") or read_cell_field(row, "text"))
            for row in cells
        ]
    for key, question in pairs:
        item = Item("rows", key)
        tally.take([item])
        if key and question:
            yield key, question, item
        else:
            tally.fault("query without an id or words", key or question[:80], item=item)
