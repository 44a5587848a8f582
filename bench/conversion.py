"""Measures conversions, and compares the search for gold in PDFs with simpler methods.

    python -m bench.conversion [cuad maud …] [--contracts 40] [--page FILE]

The simpler methods are pypdf's text and one regular expression per quote. OHR-Bench's quotes are in the markup of
another parser. MinerU's chunks represent the passages of another system.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pypdf import PdfReader

from bench.answers import make_key
from bench.table import ROOT, Table, find_data, publish, read_json, time_work, watch_memory
from exhibit import locate, read_document
from exhibit.evidence.locate import place_text
from exhibit.runtime.command import guarded

BENCHMARKS = {
    "cuad": "CUAD_v1", "contractnli": "contract-nli", "maud": "maud-main", "privacyqa": "", "cpr": "",
    "legalbenchrag": "", "acord": "",
}  # fmt: skip
"""Each benchmark with the folder of its release."""
MIN_SHARE = 0.8  # least share of a chunk's letters that must be located: the parser may have invented the others
MIN_LETTERS = 20  # least letters of a chunk: a shorter one is a page number or a line
CHUNK_CHARS = 1000  # a usual chunk size


def measure_conversion(name: str, jobs: int) -> list[object]:
    """Convert a benchmark in a separate process; return its row: counts, located gold, time and memory."""
    source = find_data(name)
    source = source / BENCHMARKS[name] if (source / BENCHMARKS[name]).is_dir() else source
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / name
        command = [sys.executable, "-m", "exhibit", "convert", name, "--source", str(source), "--out", str(out)]
        command += ["--jobs", str(jobs)]
        environment = {**os.environ, "EXHIBIT_CACHE": f"{folder}/cache", "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with watch_memory(process.pid) as peak:
            (_, error), seconds = time_work(process.communicate)
        if process.returncode:
            return [name, error.decode().strip().splitlines()[-1][:80], "", "", "", "", ""]
        counts = read_json(out / "bundle.json")["counts"]
    quotes = sum(counts["located"].values())
    located = f"{quotes - counts['located'].get('absent', 0)} of {quotes}"
    speed = f"{counts['documents'] / seconds:.1f}"
    return [name, counts["documents"], counts["questions"], located, f"{seconds:.1f}", speed, peak() >> 20]


# ---------------------------------------------------------------- locating


def read_quotes(root: Path, contracts: int) -> list[tuple[Path, list[str]]]:
    """Return the PDFs of CUAD's first contracts, each with its quotes, from CUAD_v1.json or the samples' bundle."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "cuad"
        command = [sys.executable, "-m", "exhibit", "convert", "cuad", "--source", str(root), "--out", str(out)]
        command += ["--max-documents", str(contracts), "--keep-ambiguous"]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        rows = read_json(out / "train.json")
    pdfs = {make_key(path.name): path for path in root.rglob("*") if path.suffix.lower() == ".pdf"}
    quotes: dict[Path, list[str]] = {}
    for row in rows:
        for context in row["contexts"]:
            if path := pdfs.get(make_key(context["filename"])):
                quotes.setdefault(path, []).append(context["text"])
    return list(quotes.items())


def match_expression(quote: str, text: str) -> bool:
    """Return whether a quote matches in a text, with any white space between its words."""
    return re.search(r"\s+".join(map(re.escape, quote.split())), text) is not None


def compare_locating(contracts: Sequence[tuple[Path, Sequence[str]]]) -> Table:
    """Return how many quotes each method finds in the PDFs, and its time."""

    def read_simply(path: Path) -> str:
        return "\n".join(page.extract_text() for page in PdfReader(path).pages)

    theirs, their_seconds = time_work(lambda: [read_simply(path) for path, _ in contracts])
    ours, our_seconds = time_work(lambda: [read_document(path) for path, _ in contracts])
    pairs = [(quote, text, document)
             for (_, quotes), text, document in zip(contracts, theirs, ours, strict=True)
             for quote in quotes]  # fmt: skip
    verbatim = sum(quote in text for quote, text, _ in pairs)
    matched, match_seconds = time_work(lambda: sum(match_expression(quote, d.text) for quote, _, d in pairs))
    located, locate_seconds = time_work(lambda: sum(bool(locate(quote, document)) for quote, _, document in pairs))
    rows = [
        ["pypdf, quotes verbatim", verbatim, f"{their_seconds:.2f}", ""],
        ["our text, one expression per quote", matched, f"{our_seconds:.2f}", f"{match_seconds:.2f}"],
        ["our text, `locate`", located, f"{our_seconds:.2f}", f"{locate_seconds:.2f}"],
    ]
    title = f"CUAD: {len(pairs)} quotes in {len(contracts)} PDFs"
    return Table(title, ["", "found", "seconds to read", "seconds to search"], rows)


def compare_parsers(ohr: Path, cuad: Path) -> Table:
    """Return how many of OHR-Bench's quotes and of MinerU's chunks are located in the original PDFs."""
    files = {make_key(path.name): path for path in cuad.rglob("*") if path.suffix.lower() == ".pdf"}
    parsed = sorted((ohr / "MinerU").iterdir())
    documents = {make_key(path.stem + ".pdf"): read_document(files[make_key(path.stem + ".pdf")]) for path in parsed}
    located = on_page = total = 0
    for line in (ohr / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        document = documents[make_key(row["document"])]
        matches = locate(row["text"], document)
        total += 1
        located += bool(matches)
        on_page += bool(matches) and row["page"] in document.pages_of(matches[0].span)
    placed = [
        place_text(chunk, documents[make_key(path.stem + ".pdf")]).share >= MIN_SHARE
        for path in parsed
        for page in json.loads(path.read_text(encoding="utf-8"))
        for chunk in split_lines(page["text"])
        if len(re.findall(r"\w", chunk)) >= MIN_LETTERS
    ]
    rows = [
        ["OHR-Bench's quotes located", located, total, f"{located / total:.3f}"],
        ["of these on the stated page, located without its number", on_page, located, f"{on_page / located:.3f}"],
        ["MinerU's chunks placed", sum(placed), len(placed), f"{sum(placed) / len(placed):.3f}"],
    ]
    return Table("Words in another parser's markup", ["", "found", "of", "share"], rows)


def split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page in chunks of about a thousand characters."""
    chunk = ""
    for line in text.splitlines(keepends=True):
        if chunk and len(chunk) + len(line) > CHUNK_CHARS:
            yield chunk
            chunk = ""
        chunk += line
    yield chunk


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables on conversions, on locating CUAD's quotes, and on locating the text of other parsers."""
    parser = argparse.ArgumentParser(prog="python -m bench.conversion", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--contracts", type=int, default=40, metavar="N", help="number of contracts (40)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="also write the tables to this Markdown file")
    options = parser.parse_args(argv)
    head = ["benchmark", "documents", "questions", "gold located", "seconds", "documents/s", "peak MB"]
    rows = [measure_conversion(name, options.jobs) for name in options.names or BENCHMARKS]
    tables = [Table(f"Conversions with {options.jobs} workers", head, rows)]
    cuad = find_data("cuad")
    tables.append(compare_locating(read_quotes(cuad / "CUAD_v1", options.contracts)))
    if (cuad.parent / "ohr").is_dir():
        tables.append(compare_parsers(cuad.parent / "ohr", cuad))
    publish(options.page, "Conversions and located gold", tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
