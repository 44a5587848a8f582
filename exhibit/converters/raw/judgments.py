"""Queries with judged documents: BEIR folders (corpus, queries, qrels), and TREC qrels over a folder of files."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from exhibit.converters.benchmark import Benchmark, Item, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.raw.cells import read_cell_words
from exhibit.converters.raw.documents import Shelf
from exhibit.converters.raw.records import ENDINGS, Record, decode_table, read_records
from exhibit.converters.raw.titles import choose_unique_titles
from exhibit.evidence.fields import choose_name
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import ANSWER_FROM

_ODD = re.compile(r"[^\w.-]+")
_LONGEST = 120  # characters of an id in a file's name
_WIDTHS = (3, 4)
"""Cells of a judgment: query, document and grade; TREC has an unused one after the query."""


class JudgedFolder(NamedTuple):
    """The files of a folder with judged queries: the queries, the judgments and, if present, the corpus."""

    queries: Path
    judgments: tuple[Path, ...]
    corpus: Path | None


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


def read_judged(folder: JudgedFolder, shelf: Shelf, tally: Tally) -> Benchmark:
    """Return the queries of a folder with relevance judgments as questions.

    The gold of a question is every document that the judgments give a grade above 0 and that is available. A
    question without such a document is left out.
    """
    sha256: dict[str, str] = {}
    judged = _read_judgments(folder.judgments, sha256, tally)
    documents = dict(_read_corpus(folder.corpus, sha256, tally)) if folder.corpus and shelf.folder is None else {}
    if not documents:
        if shelf.folder is None:
            raise SourceError(
                f"{folder.queries.parent}: has relevance judgments, but no corpus; pass the documents with --documents"
            )
        documents = shelf.find(list(dict.fromkeys(name for grades in judged.values() for name in grades)), tally)
    others = {} if not shelf.folder else shelf.find_others(documents, take=True, limited=False, tally=tally)
    rows = []
    for at, (key, question, item) in enumerate(_read_queries(folder.queries, sha256, tally)):
        grades = judged.get(key, {})
        gold = sorted((name for name in grades if grades[name] > 0 and name in documents), key=lambda one: -grades[one])
        if not gold:
            tally.leave_out("query without a judged document that is at hand", key, item=item)
            continue
        for name in grades:
            if name not in documents:
                tally.note("judged document that is not at hand", f"{key}: {name}")
        quotes = tuple(_quote(documents[name], grades[name]) for name in gold)
        answer = "; ".join(dict.fromkeys(quote.text or quote.filename for quote in quotes[:1]))
        labels: dict[str, Label] = {"id": key, ANSWER_FROM: "document"}
        rows.append(RawRow(at, question, answer, quotes, quotes[0].filename, labels=labels, items=(item,), place=key))
    kept = {document.filename: document for document in (*documents.values(), *others.values())}
    titles = choose_unique_titles({name: [document.title, name] for name, document in kept.items()})
    named = [RawDocument(**{**vars(one), "title": titles[name]}) for name, one in kept.items()]
    return Benchmark(documents=named, rows=rows, sha256=sha256)


def _quote(document: RawDocument, grade: int) -> Quote:
    """Return a judged document as gold: its whole text if the corpus has it, else the file."""
    spans = ((0, len(document.text)),) if document.text else ()
    return Quote(document.filename, document.text, spans=spans, labels=(("grade", grade),))


def _read_records(path: Path, sha256: dict[str, str], tally: Tally) -> list[Record]:
    data = path.read_bytes()
    sha256[path.name] = hashlib.sha256(data).hexdigest()
    return read_records(path, data, tally, accounted=False)


def _find_field(cells: Mapping[str, object], field: str) -> str:
    name = choose_name((name for name, held in cells.items() if read_cell_words(held)), field)
    return read_cell_words(cells[name]) if name is not None else ""


def _read_corpus(path: Path, sha256: dict[str, str], tally: Tally) -> Iterator[tuple[str, RawDocument]]:
    taken: set[str] = set()
    for record in _read_records(path, sha256, tally):
        key, text = _find_field(record.cells, "id"), _find_field(record.cells, "text")
        stem = _ODD.sub("_", key).strip("_.")[:_LONGEST]
        if not text or not stem or stem.casefold() in taken:
            tally.fault(
                "document of the corpus without words, or with an id that is taken", f"{path.name}: {record.place}"
            )
            continue
        taken.add(stem.casefold())
        title = read_cell_words(record.cells.get("title"))
        yield key, RawDocument(f"{stem}.pdf", title or stem, text=text, heading=title)


def _read_queries(path: Path, sha256: dict[str, str], tally: Tally) -> Iterator[tuple[str, str, Item]]:
    """Yield each query's id, its text, and its `Item` (the entry that counts it as kept or left out).

    The file is a table, or a text file with lines of the form `id<TAB>text`.
    """
    if path.suffix.lower() in (".tsv", ".txt"):
        data = path.read_bytes()
        sha256[path.name] = hashlib.sha256(data).hexdigest()
        lines = [line.split("\t", 1) for line in decode_table(path, data, tally).splitlines() if line.strip()]
        pairs = [(line[0].strip(), line[-1].strip()) for line in lines if len(line) > 1]
        if pairs and pairs[0][1].casefold() in ("query", "text", "question"):
            pairs = pairs[1:]
    else:
        cells = [record.cells for record in _read_records(path, sha256, tally)]
        pairs = [(_find_field(one, "id"), _find_field(one, "question") or _find_field(one, "text")) for one in cells]
    for key, question in pairs:
        item = Item("rows", key)
        tally.take([item])
        if key and question:
            yield key, question, item
        else:
            tally.fault("query without an id or words", key or question[:80], item=item)


def _read_judgments(paths: tuple[Path, ...], sha256: dict[str, str], tally: Tally) -> dict[str, dict[str, int]]:
    """Return the grades of all judgments, by query and then by document."""
    judged: dict[str, dict[str, int]] = {}
    for path in paths:
        data = path.read_bytes()
        sha256[path.name] = hashlib.sha256(data).hexdigest()
        for number, line in enumerate(decode_table(path, data, tally).splitlines(), 1):
            cells = line.split("\t") if "\t" in line else line.split()
            if len(cells) not in _WIDTHS or not re.fullmatch(r"-?\d{1,3}", cells[-1].strip()):
                if number > 1 and line.strip():
                    tally.fault("line of judgments that has no grade at its end", f"{path.name}: line {number}")
                continue
            query, document = cells[0].strip(), cells[-2].strip()
            judged.setdefault(query, {})[document] = int(cells[-1])
    return judged
