"""ACORD: lawyers' queries for contract clauses, and a library of clauses that lawyers graded for each query.

exhibit convert acord --source acord --out datasets_out/acord
"""

import json
import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from exhibit.converters import CC_BY, Benchmark, Block, DatasetInfo, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.source import Release
from exhibit.converters.tables import records
from exhibit.evidence.fields import flatten_object
from exhibit.schemas.errors import SourceError

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
_ID = re.compile(r"\w[\w.-]{0,119}")  # an id that can be a file's name


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read clauses, queries and grades; every clause becomes a document, even a clause without a grade."""
    release = Release(source, INFO)
    corpus = release.find("corpus.jsonl")
    clauses = dict(_read_clauses(release, corpus, tally))
    grades, splits = _read_grades(release, corpus.parent, clauses, tally)
    kept = dict(list(clauses.items())[: options.max_documents])
    rows: list[RawRow] = []
    path = release.find("queries.jsonl")
    unseen = set(grades)
    for record in records.read_records(path, release.read(path), tally):
        key, text = (records.read_cell_words(record.cells.get(name)) for name in ("_id", "text"))
        if not key or not text:
            tally.fault("query without an id or a text", key or text[:80] or record.place, item=record.item)
        elif key not in grades:
            tally.leave_out("query without grades", key, item=record.item)
        elif key not in unseen:
            tally.fault("query that occurs twice", key, item=record.item)
        else:
            unseen.remove(key)
            graded = {clause: grade for clause, grade in grades[key].items() if clause in kept}
            rows += _make_row(record, splits[key], graded, kept, options, tally)
    for key in unseen:
        tally.fault("grades of a query that is not in queries.jsonl", key)
    return Benchmark(list(kept.values()), rows, release.sha256)


def _make_row(
    record: records.Record, split: str, grades: dict[str, int], clauses: Mapping[str, RawDocument], options: Namespace,
    tally: Tally,
) -> Iterator[RawRow]:  # fmt: skip
    """Yield a query's row; its label `grades` is on the first gold clause, or on the row if no clause is gold."""
    key, text = str(record.cells["_id"]), " ".join(str(record.cells["text"]).split())
    ranked = sorted(grades, key=lambda clause: -grades[clause])
    gold = [clause for clause in ranked if grades[clause] >= GOLD_GRADE]
    if not gold and (options.answerable_only or not any(grades.values())):
        tally.leave_out(f"no clause of grade {GOLD_GRADE} or 4 in the library", key, item=record.item)
        return
    fields = flatten_object(record.cells)
    labels: dict[str, Label] = {"split": split}
    labels |= {name: str(label) for name in ("category", "type") if (label := fields.get(f"metadata.{name}"))}
    every = json.dumps({clauses[clause].filename: grade for clause, grade in grades.items()})
    quotes: list[Quote] = []
    for clause in gold:
        raw, words = clauses[clause], clauses[clause].text or ""
        marks = (("grade", grades[clause]), *(() if quotes else (("grades", every),)))
        quotes.append(Quote(raw.filename, words, spans=((0, len(words)),), labels=marks))
    if not gold:
        tally.note(f"best clause below grade {GOLD_GRADE}: only graded metrics apply", key)
        labels["grades"] = every
    answer = clauses[ranked[0]].text or ""
    yield RawRow(record.index, text, answer, tuple(quotes), labels=labels, items=(record.item,), place=key)


def _read_grades(
    release: Release, folder: Path, clauses: Mapping[str, RawDocument], tally: Tally
) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    splits: dict[str, str] = {}
    for split in INFO.splits:
        path = folder / "qrels" / f"{split}.tsv"
        lines = records.split_cells(release.read_text(path), "\t") if path.is_file() else []
        for number, cells in enumerate(lines, 1):
            place = f"{path.name}: line {number}"
            if len(cells) != 3 or not re.fullmatch(r"-?\d{1,3}", cells[2].strip()):
                if number > 1 and any(cells):  # the first line may be a header
                    tally.fault("line of the grades file that does not end with a grade", place)
                continue
            query, clause, grade = cells[0].strip(), cells[1].strip(), int(cells[2])
            if grade not in range(5) or clause not in clauses:
                tally.fault("grade that is not 0 to 4, or of a clause that is not in the corpus", place)
            elif splits.setdefault(query, split) != split:
                tally.fault("query that is graded in two splits", place)
            else:
                grades[query][clause] = grade
    if not splits:
        raise SourceError(f"{folder}: no grades in qrels/; expected {INFO.expects}, from {INFO.url}")
    if missing := [split for split in INFO.splits if split not in splits.values()]:
        tally.note("incomplete release: the grades of a split are missing", ", ".join(missing))
    return grades, splits


def _read_clauses(release: Release, path: Path, tally: Tally) -> Iterator[tuple[str, RawDocument]]:
    """Yield the id of each clause, and a document in which the clause is printed below its title."""
    taken: set[str] = set()
    for record in records.read_records(path, release.read(path), tally, accounted=False):
        key, text, title = (records.read_cell_words(record.cells.get(name)) for name in ("_id", "text", "title"))
        if not text or not _ID.fullmatch(key) or key.casefold() in taken:
            tally.fault("document without a text, or with the id of another document", f"{path.name}: {record.place}")
            continue
        taken.add(key.casefold())
        blocks = (*([Block("h1", title)] if title else []), Block("p", text))
        yield key, RawDocument(f"{key}.pdf", f"Clause {key}", text=text, blocks=blocks)
