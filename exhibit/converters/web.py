"""Converts a list of URLs to a corpus of PDFs, for benchmarks that only give links to their documents.

python -m converters.web --source urls.txt --out datasets_out/web
"""

import hashlib
import re
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from exhibit.converters import Benchmark, DatasetInfo, Item, Licence, RawDocument, Tally
from exhibit.converters.core.benchmark import BEYOND
from exhibit.converters.core.command import main
from exhibit.converters.core.source import find_one
from exhibit.converters.core.titles import choose_unique_titles, read_own_title
from exhibit.converters.pages import refresh
from exhibit.converters.pages.download import flaw_of
from exhibit.converters.pages.fetch import (
    UrlLine,
    add_fetch_arguments,
    fetch_all,
    fetch_folder,
    make_corpus_names,
    read_policy,
    report,
)
from exhibit.converters.tables.records import Record, columns_of, decode_table, read_records
from exhibit.law.names import tidy
from exhibit.schemas.errors import SourceError

INFO = DatasetInfo(
    name="web",
    title="Pages from the web as PDFs",
    benchmark="A list of URLs",
    summary="""Documents that a benchmark only links to, as PDFs: the publisher's own where the address gives one,
        else the page as Chromium prints it, with its pictures and its print style. There are no questions in it:
        train.json is empty until somebody asks some.""",
    expects=(
        "a list of URLs: urls.txt (one a line, # comments), or a table (.csv, .tsv, .jsonl, .json, .parquet) with"
        " a column of them"
    ),
    licence=Licence(
        id="other",
        name="the terms of each page's publisher",
        redistributable=False,
        note="A page that may be read may not always be passed on: ask its publisher before you share this bundle.",
    ),
    citation="""@misc{web,
  note = {Cite each page by its own address: documents[].source in bundle.json}
}""",
    tags=("legal", "web"),
    accepts=(".txt", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".xlsx", ".xlsm", ".parquet"),
    corpus_only=True,
    questions="There are none: this bundle is a corpus.",
    limits="""The same address may give other bytes on another day; what was fetched is kept, so that running the
        same list again gives the same bundle (--refetch asks anew). A printed page is what a visitor without
        cookies sees, consent banners included. A file is named after the last segment of its address's path, and
        its fragment, exactly as written there.""",
)

_EPILOG = """\
example, with a small site of this project served from this machine:
  python -m http.server 8765 --bind 127.0.0.1 --directory samples/web/site &
  python -m converters.web --source samples/web/urls.txt --out datasets_out/web --allow-private
  exhibit validate datasets_out/web

Has a page changed since, and which questions does that touch?
  python -m converters.web --refresh datasets_out/web --allow-private

A second run asks only for what is missing or failed. Each run writes a manifest, one line per URL, and says where.
"""
_USUAL_COLUMNS = ("url", "link", "href", "uri", "source_url", "address")
_MADE_BY = re.compile(r"^Microsoft (Word|PowerPoint|Excel) - |\.(docx?|pdf|indd|qxd)$", re.IGNORECASE)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags for fetching pages, and examples."""
    add_fetch_arguments(parser)
    column = "the column of a table that holds the URLs (default: guessed)"
    parser.add_argument("--column", metavar="NAME", help=column)
    refresh_help = "convert nothing; say what changed on a bundle's pages since, and exit 4 (more: --refresh --help)"
    parser.add_argument("--refresh", default=SUPPRESS, metavar="BUNDLE", help=refresh_help)
    parser.epilog = _EPILOG


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Fetch every URL of the list; each page becomes a document, and there are no questions."""
    path = find_one(source, INFO, "urls.txt")
    data = path.read_bytes()
    listed: dict[str, list[Item]] = {}
    for url, item in _read_urls(path, data, options.column, tally):
        tally.take([item])
        listed.setdefault(url, []).append(item)
    urls = list(listed)
    for url in urls:
        if len(listed[url]) > 1:
            tally.note("listed more than once, fetched once", url)
    if not urls:
        raise SourceError(f"{path}: no URL in it; expected {INFO.expects}")
    make_corpus_names(url for url in urls if flaw_of(url) is None)  # check the whole list, whatever --limit is
    fetched = fetch_all(urls[: options.max_documents], folder=fetch_folder(), policy=read_policy(options))
    report(fetched, tally, items=listed)
    for url in urls if options.max_documents else ():
        if url not in fetched:
            for item in listed[url]:
                tally.leave_out(BEYOND, url, item=item)
    by_name = {one.filename: listed[url] for url, one in fetched.items() if one.path is not None}
    pages = [one for one in fetched.values() if one.path is not None]
    titles = choose_unique_titles({one.filename: _list_titles(one) for one in pages})
    return Benchmark(
        documents=[
            RawDocument(name, titles[name], one.path, source=one.url, printer=one.printer, items=tuple(by_name[name]))
            for one in pages
            for name in [one.filename]
        ],
        rows=[],
        sha256={path.name: hashlib.sha256(data).hexdigest()},
        info=replace(INFO, url=_find_site(pages)),
    )


# ---------------------------------------------------------------- the list


def _read_urls(path: Path, data: bytes, column: str | None, tally: Tally) -> Iterator[tuple[str, Item]]:
    """Yield each URL of a list or table, without surrounding spaces, and the line or row that contains it."""
    if path.suffix.lower() == ".txt":
        lines = (line.strip() for line in decode_table(path, data, tally).splitlines())
        for number, line in enumerate(lines, 1):
            # a line that starts with # is a comment; inside a line # begins a fragment
            if line and not line.startswith("#"):
                yield line, Item("rows", f"line {number}")
        return
    records = read_records(path, data, tally)
    seen = columns_of(records)
    column = column or _guess(path, records)
    if column not in seen:
        raise SourceError(f"{path}: no column {column!r}; there are {', '.join(seen) or 'none'}")
    for record in records:
        url = str(record.cells.get(column) or "").strip()
        if url:
            yield url, record.item
        else:
            tally.leave_out("no URL in the row", f"{path.name}: {record.place}", item=record.item)


def _guess(path: Path, records: list[Record]) -> str:
    """Return the column with a common name for URLs, or the only column that contains nothing but URLs."""
    columns = columns_of(records)
    for name in _USUAL_COLUMNS:
        for column in columns:
            if column.strip().lower() == name:
                return column
    links = []
    for column in columns:
        cells = filter(None, (str(record.cells.get(column) or "").strip() for record in records))
        flaws = list(map(flaw_of, cells))
        links += [column] if flaws and not any(flaws) else []
    if len(links) != 1:
        raise SourceError(f"{path}: which column holds the URLs? Pass --column, one of {', '.join(columns) or 'none'}")
    return links[0]


# ---------------------------------------------------------------- titles


def _list_titles(one: UrlLine) -> list[str]:
    """Return candidate titles of a page: the title in the document, then the same title with the file's name."""
    stem = unquote(one.filename[:-4])
    own = tidy(_MADE_BY.sub("", read_own_title(one.path) if one.path else ""))
    # Chromium uses the address as the title of a page without one
    if not own or own.startswith(urlsplit(one.final_url).netloc) or own.lower() == "untitled":
        return [stem]
    return [own, f"{own} ({stem})"]


def _find_site(pages: Sequence[UrlLine]) -> str:
    """Return the address of the web site that all pages belong to; "" if they belong to several sites."""
    sites = {f"{parts.scheme}://{parts.netloc}/" for parts in (urlsplit(one.url) for one in pages)}
    return sites.pop() if len(sites) == 1 else ""


def run(argv: list[str] | None = None) -> int:
    """Convert a list of URLs to a bundle; with `--refresh`, compare an existing bundle with its web pages."""
    given = sys.argv[1:] if argv is None else argv
    if any(flag.partition("=")[0] == "--refresh" for flag in given):
        return refresh.main(given)
    return main(sys.modules[__name__], given)


if __name__ == "__main__":
    sys.exit(run())
