"""ACORD: lawyers' queries for contract clauses, and a library of clauses that lawyers graded for each query.

python -m converters.acord --source acord --out datasets_out/acord
"""

import hashlib
import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import CC_BY, Benchmark, DatasetInfo, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.command import main
from exhibit.converters.core.source import find_one, refuse_pointer
from exhibit.converters.tables.records import Record, read_records
from exhibit.schemas.errors import SourceError

INFO = DatasetInfo(
    name="acord",
    title="ACORD as a library of PDFs",
    benchmark="Atticus Clause Retrieval Dataset (ACORD)",
    summary="""A library of contract clauses, each a document of its own, and what lawyers look for in it when they
        draft: for each query the clauses were graded by lawyers from irrelevant to the best precedent.""",
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
    by_hand="""Nothing is downloaded, as no revision is known here by its hash: git clone
        https://huggingface.co/datasets/theatticusproject/acord (with Git LFS) and pass the folder with --source.""",
    headline="ndcg@5",
    tags=("legal", "contracts", "drafting", "acord"),
    annotations=("expert-generated",),
    derived="acord",
    questions="""The queries are ACORD's own, word for word; they name no document, and the whole library is
        searched. The answer of a row is the text of the clause with the best grade.""",
    limits="""
        - The source gives clauses as text: each is printed to a PDF of its own and is not the page of a contract.
        - Grades go from 0 to 4, which are ACORD's one to five stars. Gold is what has grade 3 or 4, the best first;
          `labels.grade` in gold.jsonl is the grade of that passage, and `labels.grades`, on the first line of each
          row, is a JSON object with the grade of every clause that was judged for the query.
        - For each query a part of the library was judged, irrelevant clauses (grade 0) among it. Graded metrics are
          over that part: clauses that nobody judged are left out of a ranking, as many of them would do as well.""",
)

SPLITS = ("train", "valid", "test")
GOLD_GRADE = 3  # the lowest grade of a gold clause: four or five stars in ACORD's scale
_GRADES = frozenset(range(5))
_NAME = re.compile(r"[\w.-]{1,200}")  # ids that are valid file names; the release's are ten hexadecimal digits


class _Query(NamedTuple):
    """A query, and the grade of each graded clause in the order of the grades file."""

    id: int
    key: str
    text: str
    split: str
    labels: Mapping[str, Label]
    grades: Mapping[str, int]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flag that only ACORD has."""
    what = "which queries to take (default: all that are judged); the library is the same for each"
    parser.add_argument("--split", choices=[*SPLITS, "all"], default="all", help=what)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read clauses, queries and grades; every clause becomes a document, even if no chosen query has a grade for it."""
    folder = find_one(source, INFO, "corpus.jsonl").parent
    sha256: dict[str, str] = {}
    clauses = _read_clauses(folder, sha256, tally)
    judged = {split: _read_grades(folder, split, clauses, sha256, tally) for split in SPLITS}
    queries = list(_read_queries(folder, judged, sha256, tally))
    missing = [split for split in SPLITS if not judged[split]]
    if options.split in missing or len(missing) == len(SPLITS):
        wanted = "any split" if options.split == "all" else f"split {options.split!r}"
        raise SourceError(f"{folder}: no grades for {wanted} in qrels/; expected {INFO.expects}, from {INFO.url}")
    if options.split == "all" and missing:
        tally.note("part of the release: grades of a split are not there", ", ".join(missing))
    kept = dict(list(clauses.items())[: options.max_documents])
    chosen = [query for query in queries if options.split in (query.split, "all")]
    rows = [row for query in chosen for row in _make_rows(query, kept, options, tally)]
    documents = [RawDocument(f"{key}.pdf", f"Clause {key}", text=text) for key, text in kept.items()]
    return Benchmark(documents, rows, sha256)


def _load(path: Path, columns: Sequence[str], sha256: dict[str, str], tally: Tally) -> Iterator[Record]:
    """Yield the records of a file that have a value in every one of `columns`; count the other records as faults."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}; expected {INFO.expects}") from error
    refuse_pointer(path, data, INFO)
    sha256[path.name] = hashlib.sha256(data).hexdigest()
    records = read_records(path, data, tally, accounted=False)
    if not any(all(name in record.cells for name in columns) for record in records):
        raise SourceError(f"{path}: no record has {' and '.join(map(repr, columns))}; is this ACORD's {path.name}?")
    for record in records:
        if all(record.cells.get(name) is not None for name in columns):
            yield record
        else:
            tally.fault(f"record without {' or '.join(columns)}", f"{path.name}: {record.place}")


def _read_clauses(folder: Path, sha256: dict[str, str], tally: Tally) -> dict[str, str]:
    """Return the text of each valid clause by its id, in the order of `corpus.jsonl`."""
    clauses: dict[str, str] = {}
    names: set[str] = set()
    for record in _load(folder / "corpus.jsonl", ("_id", "text"), sha256, tally):
        key, text = str(record.cells["_id"]), str(record.cells["text"]).strip()
        if not _NAME.fullmatch(key) or key.casefold() in names:
            tally.fault("clause whose id is taken, or cannot be a file's name", f"{record.place}: {key}")
        elif not text:
            tally.fault("clause without words", key)
        else:
            clauses[key] = text
            names.add(key.casefold())
    return clauses


def _read_grades(
    folder: Path, split: str, clauses: Mapping[str, str], sha256: dict[str, str], tally: Tally
) -> dict[str, dict[str, int]]:
    """Return the grades of a split as `{query id: {clause id: grade}}`; empty if the split has no file."""
    path = folder / "qrels" / f"{split}.tsv"
    grades: dict[str, dict[str, int]] = {}
    columns = ("query-id", "corpus-id", "score")
    for record in _load(path, columns, sha256, tally) if path.is_file() else ():
        query, clause, score = (str(record.cells[name]).strip() for name in columns)
        place = f"{path.name}: {record.place}: {query!r}, {clause}"
        if not score.isdecimal() or int(score) not in _GRADES:
            tally.fault(f"grade {score!r} that is not 0 to 4", place)
        elif clause not in clauses:
            tally.fault("grade of a clause that is not in the corpus", place)
        elif grades.setdefault(query, {}).setdefault(clause, int(score)) != int(score):
            tally.fault("second, different grade for a clause", place)
    return grades


def _read_queries(
    folder: Path, judged: Mapping[str, Mapping[str, Mapping[str, int]]], sha256: dict[str, str], tally: Tally
) -> Iterator[_Query]:
    """Yield the queries that have grades in exactly one split; a query's id is its position in `queries.jsonl`."""
    seen: set[str] = set()
    for record in _load(folder / "queries.jsonl", ("_id", "text"), sha256, tally):
        key, text = str(record.cells["_id"]).strip(), " ".join(str(record.cells["text"]).split())
        splits = [split for split in SPLITS if key in judged[split]]
        if not text or key in seen:
            tally.fault("query without words, or with an id that is taken", f"{record.place}: {key}")
        elif not splits:
            tally.leave_out("query for which no clause was graded", key)
        elif len(splits) > 1:
            tally.fault("query that is graded in two splits", f"{key}: {', '.join(splits)}")
        else:
            metadata = record.cells.get("metadata")
            known = metadata if isinstance(metadata, dict) else {}
            labels = {name: str(known[name]) for name in ("category", "type") if known.get(name)}
            yield _Query(record.index, key, text, splits[0], labels, judged[splits[0]][key])
        seen.add(key)
    for key in dict.fromkeys(query for split in SPLITS for query in judged[split]):
        if key not in seen:
            tally.fault("grades of a query that is not in queries.jsonl", key)


def _make_rows(query: _Query, clauses: Mapping[str, str], options: Namespace, tally: Tally) -> Iterator[RawRow]:
    """Yield the row of a query, its gold clauses in descending order of grade.

    The label `grades`, with all graded clauses, belongs to the first gold passage, or to the row if none is gold.
    """
    grades = {key: grade for key, grade in query.grades.items() if key in clauses}
    ranked = sorted(grades, key=lambda key: -grades[key])  # stable: clauses of one grade keep the table's order
    gold = [key for key in ranked if grades[key] >= GOLD_GRADE]
    if not gold:
        if options.answerable_only or not ranked or not grades[ranked[0]]:
            tally.leave_out(f"no clause of grade {GOLD_GRADE} or 4 in the library", query.key)
            return
        tally.note(f"best clause below grade {GOLD_GRADE}: graded metrics alone apply", query.key)
    every: Label = json.dumps({f"{key}.pdf": grade for key, grade in grades.items()}, separators=(", ", ": "))
    quotes = []
    for key in gold:
        labels = (("grade", grades[key]), *((("grades", every),) if key == gold[0] else ()))
        quotes.append(Quote(f"{key}.pdf", clauses[key], ((0, len(clauses[key])),), labels))
    own = {"split": query.split, **query.labels, **({} if gold else {"grades": every})}
    yield RawRow(query.id, query.text, clauses[ranked[0]], tuple(quotes), labels=own)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
