"""Queries with graded documents in the form of BEIR: a corpus, queries, and relevance judgments (qrels)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import Benchmark, Block, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.source import Release
from exhibit.converters.tables.records import ENDINGS, read_cell_field, read_cell_words, read_records, split_cells
from exhibit.schemas.layout import ANSWER_FROM
from exhibit.storage.atomic import list_files

_ODD = re.compile(r"[^\w.-]+")
MAX_STEM_CHARS = 120


class Judgment(NamedTuple):
    """The grade of a document for a query, and its line in the file."""

    place: str
    query: str
    document: str
    grade: int


def read_judgments(path: Path, text: str, tally: Tally) -> Iterator[Judgment]:
    """Yield the judgments of a file with the columns query, document and grade, below its header if any."""
    for number, cells in enumerate(split_cells(text, "\t"), 1):
        place = f"{path.name}: line {number}"
        if len(cells) == 3 and re.fullmatch(r"-?\d{1,3}", cells[2].strip()):
            yield Judgment(place, cells[0].strip(), cells[1].strip(), int(cells[2]))
        elif number > 1 and any(cells):
            tally.fault("line of judgments that has no grade at its end", place)


def read_judged(release: Release, tally: Tally) -> Benchmark | None:
    """Return the queries of a folder as questions; the gold of each is every document with a grade above 0.

    Return None if the source is not a folder that contains a corpus, queries and judgments.
    """
    source = release.source
    files = list_files(source) if source.is_dir() else []
    named = {path.stem.lower(): path for path in files if path.suffix.lower() in ENDINGS}
    judgments = [path for path in files if "qrels" in path.relative_to(source).as_posix().lower()]
    if not judgments or "corpus" not in named or "queries" not in named:
        return None
    corpus, queries = named["corpus"], named["queries"]
    judged: dict[str, dict[str, int]] = {}
    for path in judgments:
        for judgment in read_judgments(path, release.read_text(path), tally):
            judged.setdefault(judgment.query, {})[judgment.document] = judgment.grade
    documents = dict(read_corpus(corpus, release.read(corpus), tally))
    rows = []
    for record in read_records(queries, release.read(queries), tally):
        key = read_cell_field(record.cells, "id")
        question = read_cell_field(record.cells, "question") or read_cell_field(record.cells, "text")
        grades = judged.get(key, {})
        gold = sorted((name for name in grades if grades[name] > 0 and name in documents), key=lambda n: -grades[n])
        if not key or not question:
            tally.fault("query without an id or words", key or question[:80] or record.place, item=record.item)
        elif not gold:
            tally.leave_out("query whose judged documents are all missing", key, item=record.item)
        else:
            for name in (name for name in grades if name not in documents):
                tally.note("judged document that is missing", f"{key}: {name}")
            quotes = tuple(quote_document(documents[name], grades[name]) for name in gold)
            labels: dict[str, Label] = {"id": key, ANSWER_FROM: "document"}
            answer, items = quotes[0].text or "", (record.item,)
            rows.append(RawRow(record.index, question, answer, quotes, labels=labels, items=items, place=key))
    return Benchmark(list(documents.values()), rows, release.sha256)


def quote_document(document: RawDocument, grade: int) -> Quote:
    """Return a whole document as gold of a grade."""
    text = document.text or ""
    return Quote(document.filename, text, spans=((0, len(text)),), labels=(("grade", grade),))


def read_corpus(path: Path, data: bytes, tally: Tally) -> Iterator[tuple[str, RawDocument]]:
    """Yield the documents of a table of texts by their ids, to be printed below their titles."""
    taken: set[str] = set()
    for record in read_records(path, data, tally, accounted=False):
        key, text = read_cell_field(record.cells, "id"), read_cell_field(record.cells, "text")
        stem = _ODD.sub("_", key).strip("_.")[:MAX_STEM_CHARS]
        if not text or not stem or stem.casefold() in taken:
            reason = "document of the corpus without words, or with a duplicate id"
            tally.fault(reason, f"{path.name}: {record.place}")
            continue
        taken.add(stem.casefold())
        title = read_cell_words(record.cells.get("title"))
        blocks = (*([Block("h1", title)] if title else []), Block("p", text))
        yield key, RawDocument(f"{stem}.pdf", title or stem, text=text, blocks=blocks)
