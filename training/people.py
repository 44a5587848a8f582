"""Writes questions that people wrote, with their documents, as a table for `exhibit convert table`.

    python -m training.people --data FOLDER --out FOLDER
    exhibit convert table --source FOLDER/questions.jsonl --documents FOLDER/documents --as is --name people \\
      --out datasets_out/people

The input `people/questions.jsonl` has one question per line, with its document, its short answer, and the
spans of the quotes that answer it. The file does not contain the documents' texts, because other people own
them: the quotes are cut from the published releases of CUAD, ContractNLI and MAUD below the folder --data.
Documents of the source `lessons` belong to this project.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from exhibit.runtime.command import guarded
from exhibit.schemas.errors import SourceError

QUESTIONS = Path(__file__).parent / "people" / "questions.jsonl"
LESSONS = Path(__file__).parent / "lessons" / "documents"
_CUAD = "cuad/CUAD_v1/full_contract_txt"
_CONTRACTNLI = "contractnli/contract-nli/train.json"
_MAUD = "maud/maud-main/data/contracts"


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Write `questions.jsonl` with the questions that people wrote, and their documents as text files."""
    parser = argparse.ArgumentParser(prog="python -m training.people", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, required=True, metavar="DIR", help="has the folders cuad, contractnli, maud"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="gets questions.jsonl and documents/")
    options = parser.parse_args(arguments)
    count = write_table(options.data, options.out)
    print(f"{count} questions: {options.out / 'questions.jsonl'}; documents: {options.out / 'documents'}")
    return 0


def write_table(data: Path, out: Path) -> int:
    """Write `out`/questions.jsonl, in which each question by a person has its document, answer and quotes."""
    documents = out / "documents"
    documents.mkdir(parents=True, exist_ok=True)
    rows = []
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        text = read_text(data, record["document"])
        start, end = record.get("part", (0, len(text)))
        name = f"{Path(record['document']).stem}.txt"
        (documents / name).write_text(text[start:end], encoding="utf-8", newline="")
        quotes = [text[low:high] for low, high in record["spans"]]
        rows.append({
            "question": record["question"], "document": name, "answer": record["answer"], "text": quotes,
            "impossible": record["kind"] == "none",
        })  # fmt: skip
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (out / "questions.jsonl").write_text("".join(lines), encoding="utf-8")
    return len(rows)


@cache
def read_text(data: Path, document: str) -> str:
    """Return a document's text from the published files of its source."""
    source, _, name = document.partition("/")
    if source == "contractnli":
        return _read_agreements(data)[name]
    folder = {"cuad": data / _CUAD, "maud": data / _MAUD, "lessons": LESSONS}[source]
    path = next(iter(sorted(folder.rglob(name))), None)
    if path is None:
        raise SourceError(f"{folder}: no file {name!r}; give the folder of the published data with --data")
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def _read_agreements(data: Path) -> dict[str, str]:
    release = json.loads((data / _CONTRACTNLI).read_text(encoding="utf-8"))
    return {document["file_name"]: document["text"] for document in release["documents"]}


if __name__ == "__main__":
    sys.exit(main())
