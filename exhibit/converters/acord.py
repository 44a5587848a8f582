"""ACORD: lawyers' queries for contract clauses, and a library of clauses that lawyers graded for each query.

exhibit convert acord --source acord --out datasets_out/acord

ACORD has the form of BEIR: a corpus, queries, and grades of documents (qrels). `exhibit convert table` reads any other
folder of this form with `read_judged`.
"""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import CC_BY, Benchmark, Block, DatasetInfo, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.source import Release
from exhibit.converters.tables import records
from exhibit.evidence.fields import flatten_object
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import ANSWER_FROM
from exhibit.storage.atomic import list_files

INFO = DatasetInfo(
    name="acord",
    title="ACORD as a library of PDFs",
    benchmark="Atticus Clause Retrieval Dataset (ACORD)",
    summary="""A library of contract clauses, each a separate document, and queries of lawyers who draft contracts;
    for each query, lawyers graded clauses from irrelevant to the best precedent.""",
    expects="corpus.jsonl, queries.jsonl and qrels/{train,valid,test}.tsv (or some of them)",
    licence=CC_BY,
    url="https://huggingface.co/datasets/theatticusproject/acord",
    version="1",
    citation="""@inproceedings{wang-etal-2025-acord,
  title = {ACORD: An Expert-Annotated Retrieval Dataset for Legal Contract Drafting},
  author = {Wang, Steven H. and Zubkov, Maksim and Fan, Kexin and Harrell, Sarah and Sun, Yuyang and Chen, Wei and
    Plesner, Andreas and Wattenhofer, Roger},
  booktitle = {ACL},
  year = {2025},
  eprint = {2501.06582},
  archivePrefix = {arXiv}
}""",
    by_hand="""Nothing is downloaded, because no revision with a fixed hash is known: run git clone
        https://huggingface.co/datasets/theatticusproject/acord (with Git LFS) and pass the folder with --source.""",
    headline="ndcg@5",
    tags=("legal", "contracts", "drafting", "acord"),
    annotations=("expert-generated",),
    derived="acord",
    splits=("train", "valid", "test"),
    questions="""The queries are ACORD's own, word for word, and name no document. The answer of a row is the clause
        with the best grade.""",
    limits="""
        - Each clause is printed to a separate PDF, which is not a page of a contract.
        - Grades go from 0 to 4 (ACORD's stars). Clauses of grade 3 or 4 are gold, the best first: `labels.grade` is the
          grade of that passage, `labels.grades` (on a row's first line) those of all clauses judged for the query.
        - Graded metrics leave out clauses that were not judged for a query, because many of them may answer it too.""",
)

GOLD_GRADE = 3  # the lowest grade of a gold clause: four or five stars in ACORD's scale

Grades = dict[str, dict[str, int]]  # the grade of each document, by query


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read clauses, queries and grades; every clause becomes a document, even a clause without a grade."""
    release = Release(source, INFO)
    corpus = release.find("corpus.jsonl")
    folder = corpus.parent
    clauses = {key: replace(raw, title=f"Clause {key}") for key, raw in read_corpus(release, corpus, tally)}
    grades: Grades = defaultdict(dict)
    splits: dict[str, str] = {}  # of the queries
    for split in INFO.splits:
        path = folder / "qrels" / f"{split}.tsv"
        for judgment in read_judgments(release, path, tally) if path.is_file() else ():
            if judgment.grade not in range(5) or judgment.document not in clauses:
                tally.fault("grade that is not 0 to 4, or of a clause that is not in the corpus", judgment.place)
            elif splits.setdefault(judgment.query, split) != split:
                tally.fault("query that is graded in two splits", judgment.place)
            else:
                grades[judgment.query][judgment.document] = judgment.grade
    missing = [split for split in INFO.splits if split not in splits.values()]
    if not splits:
        raise SourceError(f"{folder}: no grades in qrels/; expected {INFO.expects}, from {INFO.url}")
    if missing:
        tally.note("incomplete release: the grades of a split are missing", ", ".join(missing))
    kept = dict(list(clauses.items())[: options.max_documents])
    queries = list(read_queries(release, release.find("queries.jsonl"), grades, tally))
    for key in grades.keys() - {query.key for query in queries}:
        tally.fault("grades of a query that is not in queries.jsonl", key)
    rows = [row for query in queries for row in _make_row(query, splits[query.key], kept, options, tally)]
    return Benchmark(list(kept.values()), rows, release.sha256)


def _make_row(
    query: Query, split: str, clauses: Mapping[str, RawDocument], options: Namespace, tally: Tally
) -> Iterator[RawRow]:
    """Yield a query's row with its gold clauses.

    The label `grades`, with all graded clauses, is on the first gold passage, or on the row if no clause is gold.
    """
    gold = query.list_gold(clauses, GOLD_GRADE)
    grades = {key: grade for key, grade in query.grades.items() if key in clauses}
    if not gold and (options.answerable_only or not any(grades.values())):
        reason = f"no clause of grade {GOLD_GRADE} or 4 in the library"
        tally.leave_out(reason, query.key, item=query.record.item)
        return
    fields = flatten_object(query.record.cells)
    labels: dict[str, Label] = {"split": split}
    labels |= {name: str(label) for name in ("category", "type") if (label := fields.get(f"metadata.{name}"))}
    every = json.dumps({clauses[key].filename: grade for key, grade in grades.items()})
    if gold:
        gold[0] = replace(gold[0], labels=(*gold[0].labels, ("grades", every)))
    else:
        tally.note(f"best clause below grade {GOLD_GRADE}: only graded metrics apply", query.key)
        labels["grades"] = every
    best = max(grades, key=lambda key: grades[key])
    yield query.make_row(clauses[best].text or "", gold, labels)


_ODD = re.compile(r"[^\w.-]+")
MAX_STEM_CHARS = 120


class Judgment(NamedTuple):
    """The grade of a document for a query, and its line in the file."""

    place: str
    query: str
    document: str
    grade: int


class Query(NamedTuple):
    """A query, and the grades of the documents that were judged for it."""

    record: records.Record
    key: str
    text: str
    grades: Mapping[str, int]

    def list_gold(self, documents: Mapping[str, RawDocument], least: int) -> list[Quote]:
        """Return the documents with at least the grade `least` as gold, sorted by grade, with the highest first."""
        graded = [(grade, documents[key]) for key, grade in self.grades.items() if key in documents and grade >= least]
        return [
            Quote(raw.filename, raw.text or "", spans=((0, len(raw.text or "")),), labels=(("grade", grade),))
            for grade, raw in sorted(graded, key=lambda pair: -pair[0])
        ]

    def make_row(self, answer: str, gold: list[Quote], labels: dict[str, Label]) -> RawRow:
        items = (self.record.item,)
        return RawRow(self.record.index, self.text, answer, tuple(gold), labels=labels, items=items, place=self.key)


def read_judged(release: Release, tally: Tally) -> Benchmark | None:
    """Return the queries of a folder as questions; the gold of each is every document with a grade above 0.

    Return None if the source is not a folder that contains a corpus, queries and judgments.
    """
    source = release.source
    files = list_files(source) if source.is_dir() else []
    named = {path.stem.lower(): path for path in files if path.suffix.lower() in records.ENDINGS}
    judgments = [path for path in files if "qrels" in path.relative_to(source).as_posix().lower()]
    if not judgments or "corpus" not in named or "queries" not in named:
        return None
    grades: Grades = defaultdict(dict)
    for judgment in (judgment for path in judgments for judgment in read_judgments(release, path, tally)):
        grades[judgment.query][judgment.document] = judgment.grade
    documents = dict(read_corpus(release, named["corpus"], tally))
    rows = []
    for query in read_queries(release, named["queries"], grades, tally):
        gold = query.list_gold(documents, 1)
        if not gold:
            reason = "query whose judged documents are all missing"
            tally.leave_out(reason, query.key, item=query.record.item)
            continue
        for name in query.grades.keys() - documents.keys():
            tally.note("judged document that is missing", f"{query.key}: {name}")
        rows.append(query.make_row(gold[0].text or "", gold, {"id": query.key, ANSWER_FROM: "document"}))
    return Benchmark(list(documents.values()), rows, release.sha256)


def read_judgments(release: Release, path: Path, tally: Tally) -> Iterator[Judgment]:
    """Yield the judgments of a file, which has the columns query, document and grade, and may have a header."""
    for number, cells in enumerate(records.split_cells(release.read_text(path), "\t"), 1):
        place = f"{path.name}: line {number}"
        if len(cells) == 3 and re.fullmatch(r"-?\d{1,3}", cells[2].strip()):
            yield Judgment(place, cells[0].strip(), cells[1].strip(), int(cells[2]))
        elif number > 1 and any(cells):
            tally.fault("line of the grades file that does not end with a grade", place)


def read_queries(release: Release, path: Path, grades: Grades, tally: Tally) -> Iterator[Query]:
    """Yield each query that has an id, a text and grades; record every other query as left out."""
    seen: set[str] = set()
    for record in records.read_records(path, release.read(path), tally):
        key = records.read_cell_field(record.cells, "id")
        text = records.read_cell_field(record.cells, "question") or records.read_cell_field(record.cells, "text")
        if not key or not text:
            tally.fault("query without an id or a text", key or text[:80] or record.place, item=record.item)
        elif key in seen:
            tally.fault("query that occurs twice", key, item=record.item)
        elif key not in grades:
            tally.leave_out("query without grades", key, item=record.item)
        else:
            seen.add(key)
            yield Query(record, key, " ".join(text.split()), grades[key])


def read_corpus(release: Release, path: Path, tally: Tally) -> Iterator[tuple[str, RawDocument]]:
    """Yield the id of each text in a table, and a document in which the text is printed below its title."""
    taken: set[str] = set()
    for record in records.read_records(path, release.read(path), tally, accounted=False):
        key, text = records.read_cell_field(record.cells, "id"), records.read_cell_field(record.cells, "text")
        stem = _ODD.sub("_", key).strip("_.")[:MAX_STEM_CHARS]
        if not text or not stem or stem.casefold() in taken:
            reason = "document without a text, or with the id of another document"
            tally.fault(reason, f"{path.name}: {record.place}")
            continue
        taken.add(stem.casefold())
        title = records.read_cell_words(record.cells.get("title"))
        blocks = (*([Block("h1", title)] if title else []), Block("p", text))
        yield key, RawDocument(f"{stem}.pdf", title or stem, text=text, blocks=blocks)
