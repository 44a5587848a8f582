"""Measures how well this project locates text that other parsers extracted, in the original PDF.

    python -m bench.parsers [--data FOLDER]

There are two kinds of text: the quotes of OHR-Bench, for which the source states the page, and the Markdown
that MinerU made of each page, cut into chunks at line ends. A chunk is located if at least four fifths of
its letters are found in the document. The folder has `ohr/` and `cuad/` (default: EXHIBIT_DATA, else
../shared/data).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench._table import print_table
from exhibit.evidence import Document, locate, read_document
from exhibit.evidence.parser_markup import cells_of, letters_of
from exhibit.evidence.place import place_text
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import SourceError

_SIZE = 1000  # characters of a chunk, a usual size of splitters
_MOST = 0.8  # the share of a chunk's letters: the rest may be a formula that the parser invented
_FEWEST = 20  # letters of a chunk, at least: fewer are a page number or a rule


def read_corpus(root: Path) -> dict[str, Document]:
    """Return the contracts that OHR-Bench's questions are about, by the stem of their file."""
    files = {path.stem.strip(): path for path in (root / "cuad").rglob("*") if path.suffix.lower() == ".pdf"}
    stems = sorted(path.stem.strip() for path in (root / "ohr" / "MinerU").iterdir())
    return {stem: read_document(files[stem]) for stem in stems}


def chunks_of(text: str) -> Iterator[str]:
    """Yield the lines of a page in chunks of about a thousand characters."""
    chunk = ""
    for line in text.splitlines(keepends=True):
        if chunk and len(chunk) + len(line) > _SIZE:
            yield chunk
            chunk = ""
        chunk += line
    yield chunk


def measure_quotes(root: Path, documents: dict[str, Document]) -> list[list[object]]:
    """Return the table rows on OHR-Bench's quotes.

    The rows count the quotes that were located, those that were located on the page that OHR-Bench states,
    and those that were located on that page although the page number was not passed to the search.
    """
    lines = (root / "ohr" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if Path(row["document"]).stem.strip() in documents]
    located = on_page = unaided = 0
    started = time.perf_counter()
    for row in rows:
        document = documents[Path(row["document"]).stem.strip()]
        matches = locate(row["text"], document, page=row["page"])
        located += bool(matches)
        on_page += bool(matches) and row["page"] in document.pages_of(matches[0].span)
        plain = locate(row["text"], document)
        unaided += bool(plain) and row["page"] in document.pages_of(plain[0].span)
    seconds = time.perf_counter() - started
    share = f"{located / len(rows):.3f}"
    return [
        ["quotes located", located, len(rows), share, f"{seconds:.1f}"],
        ["on the stated page", on_page, located, f"{on_page / max(located, 1):.3f}", ""],
        ["on it without being told", unaided, located, f"{unaided / max(located, 1):.3f}", ""],
    ]


def measure_chunks(root: Path, documents: dict[str, Document]) -> list[list[object]]:
    """Return two table rows: one for all chunks of MinerU's text, and one for its chunks that contain a table.

    A row has the number of chunks that were located in the original PDF, the number of all its chunks, and the
    share of located chunks among all. The first row also has the seconds that both rows took.
    """
    counts = {"chunks": [0, 0], "chunks with a table": [0, 0]}
    started = time.perf_counter()
    for path in sorted((root / "ohr" / "MinerU").iterdir()):
        document = documents[path.stem.strip()]
        for page in json.loads(path.read_text(encoding="utf-8")):
            for chunk in chunks_of(page["text"]):
                if len(letters_of(chunk).text) < _FEWEST:
                    continue
                table = "tabular" in chunk or "<td" in chunk
                found = place_text(chunk, document).share >= _MOST
                for name in ("chunks", "chunks with a table") if table and cells_of(chunk) else ("chunks",):
                    counts[name][0] += found
                    counts[name][1] += 1
    seconds = f"{time.perf_counter() - started:.1f}"
    return [
        [f"MinerU's {name}", found, total, f"{found / max(total, 1):.3f}", seconds if name == "chunks" else ""]
        for name, (found, total) in counts.items()
    ]


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Print how many of OHR-Bench's quotes and of MinerU's chunks are located."""
    parser = argparse.ArgumentParser(prog="python -m bench.parsers", description=__doc__.partition("\n")[0])
    default = Path(os.environ.get("EXHIBIT_DATA") or Path(__file__).parent.parent.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default, metavar="FOLDER", help="the folder with ohr/ and cuad/")
    root = parser.parse_args(argv).data
    if not (root / "ohr" / "questions.jsonl").is_file():
        raise SourceError(f"{root}: no ohr/questions.jsonl; give the folder with --data")
    documents = read_corpus(root)
    rows = [*measure_quotes(root, documents), *measure_chunks(root, documents)]
    print_table("Words in a parser's markup", ["", "found", "of", "share", "seconds"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
