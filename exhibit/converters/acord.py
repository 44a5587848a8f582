"""ACORD: lawyers' queries for contract clauses, and a library of clauses that lawyers graded for each query.

exhibit convert acord --source acord --out datasets_out/acord
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from exhibit.converters import CC_BY, Benchmark, DatasetInfo, Label, RawDocument, RawRow, Tally
from exhibit.converters.core.command import main
from exhibit.converters.core.source import Release
from exhibit.converters.tables.judgments import quote_document, read_corpus, read_judgments
from exhibit.converters.tables.records import read_cell_words, read_records
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
    questions="""The queries are ACORD's own, word for word; they name no document, and the whole library is
        searched. The answer of a row is the text of the clause with the best grade.""",
    limits="""
        - The source gives clauses as text: each is printed to a separate PDF, which is not a page of a contract.
        - Grades go from 0 to 4, which are ACORD's one to five stars. Clauses of grade 3 or 4 are gold, the best first;
          `labels.grade` in gold.jsonl is the grade of that passage, and `labels.grades`, on the first line of each
          row, is a JSON object with the grade of every clause that was judged for the query.
        - For each query a part of the library was judged, including irrelevant clauses (grade 0). Graded metrics use
      that part: clauses without a judgment are left out of a ranking, because many of them may also answer.""",
)

GOLD_GRADE = 3  # the lowest grade of a gold clause: four or five stars in ACORD's scale

Grades = dict[str, dict[str, dict[str, int]]]  # the grade of each clause, by split and query


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read clauses, queries and grades; every clause becomes a document, even an ungraded one."""
    release = Release(source, INFO)
    corpus = release.find("corpus.jsonl")
    folder = corpus.parent
    texts = read_corpus(corpus, release.read(corpus), tally)
    clauses = {key: replace(raw, title=f"Clause {key}") for key, raw in texts}
    grades: Grades = {split: {} for split in INFO.splits}
    for split, graded in grades.items():
        path = folder / "qrels" / f"{split}.tsv"
        for judgment in read_judgments(path, release.read_text(path), tally) if path.is_file() else ():
            if judgment.grade not in range(5) or judgment.document not in clauses:
                tally.fault("grade that is not 0 to 4, or of a clause that is not in the corpus", judgment.place)
            else:
                graded.setdefault(judgment.query, {})[judgment.document] = judgment.grade
    missing = [split for split, graded in grades.items() if not graded]
    if len(missing) == len(INFO.splits):
        raise SourceError(f"{folder}: no grades in qrels/; expected {INFO.expects}, from {INFO.url}")
    if missing:
        tally.note("incomplete release: the grades of a split are missing", ", ".join(missing))
    kept = dict(list(clauses.items())[: options.max_documents])
    return Benchmark(list(kept.values()), list(_make_rows(release, grades, kept, options, tally)), release.sha256)


def _make_rows(
    release: Release, grades: Grades, clauses: Mapping[str, RawDocument], options: Namespace, tally: Tally
) -> Iterator[RawRow]:
    """Yield a row for each query with grades in one split."""
    seen: set[str] = set()
    path = release.find("queries.jsonl")
    for record in read_records(path, release.read(path), tally, accounted=False):
        fields = flatten_object(record.cells)
        key, text = read_cell_words(fields.get("_id")), " ".join(read_cell_words(fields.get("text")).split())
        splits = [split for split, graded in grades.items() if key in graded]
        if not key or not text:
            tally.fault("query without an id or words", record.place)
        elif key in seen or len(splits) > 1:
            tally.fault("query that occurs twice, or is graded in two splits", key)
        elif not splits:
            tally.leave_out("query for which no clause was graded", key)
        else:
            labels: dict[str, Label] = {"split": splits[0]}
            labels |= {name: str(label) for name in ("category", "type") if (label := fields.get(f"metadata.{name}"))}
            row = RawRow(record.index, text, "", labels=labels, place=key)
            yield from _add_gold(row, grades[splits[0]][key], clauses, options, tally)
        seen.add(key)
    for key in dict.fromkeys(query for graded in grades.values() for query in graded if query not in seen):
        tally.fault("grades of a query that is not in queries.jsonl", key)


def _add_gold(
    row: RawRow, judged: Mapping[str, int], clauses: Mapping[str, RawDocument], options: Namespace, tally: Tally
) -> Iterator[RawRow]:
    """Yield the row with its gold clauses in descending order of grade.

    The label `grades`, with all graded clauses, is on the first gold passage, or on the row if no clause is gold.
    """
    grades = {key: grade for key, grade in judged.items() if key in clauses}
    # `sorted` is stable: clauses with equal grades keep the table's order
    ranked = sorted(grades, key=lambda key: -grades[key])
    gold = [quote_document(clauses[key], grades[key]) for key in ranked if grades[key] >= GOLD_GRADE]
    if not gold:
        if options.answerable_only or not ranked or not grades[ranked[0]]:
            tally.leave_out(f"no clause of grade {GOLD_GRADE} or 4 in the library", row.name)
            return
        tally.note(f"best clause below grade {GOLD_GRADE}: only graded metrics apply", row.name)
    every = {clauses[key].filename: grade for key, grade in grades.items()}
    label = {"grades": json.dumps(every, separators=(", ", ": "))}
    if gold:
        gold[0] = replace(gold[0], labels=(*gold[0].labels, *label.items()))
    labels = row.labels if gold else {**row.labels, **label}
    yield replace(row, answer=clauses[ranked[0]].text or "", quotes=tuple(gold), labels=labels)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
