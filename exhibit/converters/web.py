"""Converts a list of URLs to a corpus of PDFs, for benchmarks that only give links to their documents.

python -m converters.web --source urls.txt --out datasets_out/web
"""

import hashlib
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from exhibit.converters import Benchmark, Item, RawDocument, Tally, read_info
from exhibit.converters.benchmark import BEYOND
from exhibit.converters.fetching import refresh
from exhibit.converters.fetching.download import flaw_of
from exhibit.converters.fetching.fetch import (
    UrlLine,
    add_fetch_arguments,
    fetch_all,
    fetch_folder,
    make_corpus_names,
    read_policy,
    report,
)
from exhibit.converters.raw.records import Record, columns_of, decode_table, read_records
from exhibit.converters.raw.source import find_one
from exhibit.converters.raw.titles import choose_unique_titles, read_own_title
from exhibit.converters.steps.cli import main
from exhibit.law.casing import tidy
from exhibit.schemas.errors import SourceError

INFO = read_info(__file__)

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
    fetched = fetch_all(urls[: options.limit], folder=fetch_folder(), policy=read_policy(options))
    report(fetched, tally, items=listed)
    for url in urls if options.limit else ():
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
