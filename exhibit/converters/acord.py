"""ACORD: lawyers' queries for contract clauses, and a library of clauses that lawyers graded for each query.

python -m converters.acord --source acord --out datasets_out/acord
"""

import hashlib
import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exhibit.converters import Benchmark, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.benchmark import Label
from exhibit.converters.raw.records import Record, read_records
from exhibit.converters.raw.source import find_one, refuse_pointer
from exhibit.converters.steps.cli import main
from exhibit.schemas.errors import SourceError

INFO = read_info(__file__)

SPLITS = ("train", "valid", "test")
GOLD_GRADE = 3
"""The lowest grade of a gold clause: four or five stars in ACORD's scale."""
_GRADES = frozenset(range(5))
_NAME = re.compile(r"[\w.-]{1,200}")
"""Ids that are valid file names on every system; the release's ids are ten hexadecimal digits."""


@dataclass(frozen=True)
class _JudgedQuery:
    """A query with its split, its labels, and the grade of each graded clause in the order of the grades file."""

    id: int
    key: str
    text: str
    split: str
    labels: Mapping[str, Label]
    grades: Mapping[str, int]


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read clauses, queries and grades.

    Every clause (at most `--limit`) becomes a document, even if no chosen query has a grade for it.
    """
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
    kept = dict(list(clauses.items())[: options.limit])
    chosen = [query for query in queries if options.split in (query.split, "all")]
    rows = [row for query in chosen for row in _make_rows(query, kept, options, tally)]
    documents = [RawDocument(_name_file(key), f"Clause {key}", text=text) for key, text in kept.items()]
    return Benchmark(documents, rows, sha256)


# ---------------------------------------------------------------- the release's files


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
    if not path.is_file():
        return grades
    for record in _load(path, ("query-id", "corpus-id", "score"), sha256, tally):
        query, clause, score = (str(record.cells[name]).strip() for name in ("query-id", "corpus-id", "score"))
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
) -> Iterator[_JudgedQuery]:
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
            yield _JudgedQuery(record.index, key, text, splits[0], _read_labels(record.cells), judged[splits[0]][key])
        seen.add(key)
    for key in dict.fromkeys(query for split in SPLITS for query in judged[split]):
        if key not in seen:
            tally.fault("grades of a query that is not in queries.jsonl", key)


def _read_labels(cells: Mapping[str, Any]) -> dict[str, Label]:
    """Return the labels in a query's metadata: its category and its type, if the release states them."""
    metadata = cells.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    return {name: str(known[name]) for name in ("category", "type") if known.get(name)}


# ---------------------------------------------------------------- questions


def _make_rows(query: _JudgedQuery, clauses: Mapping[str, str], options: Namespace, tally: Tally) -> Iterator[RawRow]:
    """Yield the row of a query, with its gold clauses in descending order of grade.

    The label `grades` lists the grades of all graded clauses. It belongs to the first gold passage, or to the
    row if no clause is gold. A query whose clauses all have grade 0 is left out. With --answerable-only, every
    query without a gold clause is left out.
    """
    grades = {key: grade for key, grade in query.grades.items() if key in clauses}
    ranked = sorted(grades, key=lambda key: -grades[key])  # stable: clauses of one grade keep the table's order
    gold = [key for key in ranked if grades[key] >= GOLD_GRADE]
    if not gold:
        if options.answerable_only or not ranked or not grades[ranked[0]]:
            tally.leave_out(f"no clause of grade {GOLD_GRADE} or 4 in the library", query.key)
            return
        tally.note(f"best clause below grade {GOLD_GRADE}: graded metrics alone apply", query.key)
    every: Label = json.dumps({_name_file(key): grade for key, grade in grades.items()}, separators=(", ", ": "))
    labels = {"split": query.split, **query.labels}
    yield RawRow(
        id=query.id,
        question=query.text,
        answer=clauses[ranked[0]],
        quotes=tuple(
            Quote(
                _name_file(key),
                clauses[key],
                spans=((0, len(clauses[key])),),
                labels=(("grade", grades[key]), *((("grades", every),) if key == gold[0] else ())),
            )
            for key in gold
        ),
        labels=labels if gold else {**labels, "grades": every},
    )


def _name_file(key: str) -> str:
    return f"{key}.pdf"


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
