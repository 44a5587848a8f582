"""Converts a list of URLs to a corpus of PDFs, for benchmarks that only give links to their documents.

exhibit convert web --source urls.txt --out datasets_out/web
"""

import re
import sys
import textwrap
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from exhibit.converters import BEYOND, Benchmark, DatasetInfo, Item, Licence, RawDocument, Tally
from exhibit.converters.core.command import main
from exhibit.converters.core.source import Release
from exhibit.converters.core.titles import choose_unique_titles, read_own_title
from exhibit.converters.pages import fetch
from exhibit.converters.tables.documents import is_url
from exhibit.evidence import locate, read_document
from exhibit.law.names import tidy
from exhibit.law.sentences import split_sentences
from exhibit.runtime.command import FAILED, build_parser, guarded
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.storage.atomic import make_scratch_folder
from exhibit.storage.bundle import open_bundle

INFO = DatasetInfo(
    name="web",
    title="Pages from the web as PDFs",
    benchmark="A list of URLs",
    summary="""Documents that a benchmark only links to, as PDFs: the publisher's PDF if the address has one,
        otherwise the page as Chromium prints it, with pictures and print style.""",
    expects="a list of URLs: urls.txt (one per line, # starts a comment)",
    licence=Licence(
        id="other",
        name="the terms of each page's publisher",
        redistributable=False,
        note="Publishers may forbid others to share their pages: ask each publisher before you share this bundle.",
    ),
    tags=("legal", "web"),
    accepts=(".txt",),
    corpus_only=True,
    questions="This bundle has documents, but no questions.",
    limits="""Fetched pages are stored, so that the same list gives the same bundle (--refetch requests all again). A
        printed page is what a visitor without cookies sees, consent banners included. A file is named after the last
        path segment and the fragment of its address, exactly as written there.""",
)

_EPILOG = """\
example, with a small site of this project served from this machine:
  python -m http.server 8765 --bind 127.0.0.1 --directory samples/web/site &
  exhibit convert web --source samples/web/urls.txt --out datasets_out/web --allow-private
  exhibit convert web --refresh datasets_out/web --allow-private
"""
_REFRESH = """Compares a bundle's documents with their web pages and lists the affected questions; writes nothing.

Exit code 0: no page changed; 4: a page changed or is gone; 1: no page changed, but some could not be fetched."""
_MADE_BY = re.compile(r"^Microsoft (Word|PowerPoint|Excel) - |\.(docx?|pdf|indd|qxd)$", re.IGNORECASE)


def add_arguments(parser: ArgumentParser) -> None:
    fetch.add_fetch_arguments(parser)
    changed = "report which pages of a bundle have changed, and write nothing; see --refresh --help"
    parser.add_argument("--refresh", default=SUPPRESS, metavar="BUNDLE", help=changed)
    parser.epilog = _EPILOG


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Fetch every URL of the list; each page becomes a document, and there are no questions."""
    release = Release(source, INFO)
    path = release.find("urls.txt")
    listed: dict[str, list[Item]] = defaultdict(list)
    for number, line in enumerate(map(str.strip, release.read_text(path).splitlines()), 1):
        if line and not line.startswith("#"):  # inside a line, # begins a fragment
            listed[line].append(Item("rows", f"line {number}"))
    if not listed:
        raise SourceError(f"{path}: no URL in it; expected {INFO.expects}")
    urls = list(listed)
    fetched = fetch.fetch_all(urls[: options.max_documents], policy=fetch.read_policy(options))
    for url, items in listed.items():
        tally.take(items)
        if len(items) > 1:
            tally.note("URL listed more than once: fetched once", url)
        if url not in fetched:
            tally.leave_out_all(BEYOND, items)
    fetch.report(fetched, tally, items=listed)
    pages = {url: page for url, page in fetched.items() if page.path is not None}
    titles = choose_unique_titles({page.filename: _list_titles(page) for page in pages.values()})
    documents = [
        RawDocument(
            page.filename, titles[page.filename], page.path, source=url, printer=page.printer, items=tuple(listed[url])
        )
        for url, page in pages.items()
    ]
    return Benchmark(documents, [], release.sha256)


def _list_titles(page: fetch.UrlLine) -> list[str]:
    """Return candidate titles of a page: the title in the document, then the same title with the file's name."""
    stem = unquote(page.filename[:-4])
    pdf_title = tidy(_MADE_BY.sub("", read_own_title(page.path) if page.path else ""))
    # Chromium uses the address as the title of a page without one
    if not pdf_title or pdf_title.startswith(urlsplit(page.final_url).netloc) or pdf_title.lower() == "untitled":
        return [stem]
    return [pdf_title, f"{pdf_title} ({stem})"]


CHANGED = 4  # the exit code if a source has changed
MAX_SHOWN = 5  # most changed sentences of a page that are printed
_GONE = frozenset({404, 410})

Gold = list[tuple[int, str]]  # the ids of the questions about a document, with their quotes


@guarded("stopped; nothing was written")
def refresh(argv: Sequence[str]) -> int:
    """Compare a bundle with its web pages and print the result."""
    parser = build_parser("exhibit convert web", _REFRESH)
    parser.add_argument("--refresh", type=Path, required=True, metavar="BUNDLE", help="the bundle to compare")
    fetch.add_fetch_arguments(parser)
    options = parser.parse_args(argv)
    bundle = open_bundle(options.refresh)
    documents = bundle.info.documents if bundle.info else []
    urls = {document.filename: document.source for document in documents if is_url(document.source)}
    if not urls:
        raise SourceError(f"{options.refresh}: none of its documents comes from a web address: nothing to refresh")
    gold: dict[str, Gold] = defaultdict(list)
    for question in bundle.questions:
        for context in question.contexts:
            gold[str(context.filename)].append((int(question.id), context.text or ""))
    states: Counter[str] = Counter()
    with make_scratch_folder() as folder:
        policy = replace(fetch.read_policy(options), refetch=True)
        pages = fetch.fetch_all(list(urls.values()), folder=folder, policy=policy)
        for name, url in urls.items():
            path = bundle.files.get(name)
            if not isinstance(path, Path):
                raise BundleError(f"{bundle.address}: corpus/ has no file {name!r} on this disk; pull the bundle first")
            state, lines = _compare(path, pages[url], gold[name])
            states[state] += 1
            if state != "unchanged":
                sys.stdout.write("\n  ".join([f"{state}: {name} ({url})", *lines]) + "\n")
    unknown = f", {states['unknown']} could not be fetched" if states["unknown"] else ""
    counts = f"{states['unchanged']} unchanged, {states['changed']} changed, {states['gone']} gone{unknown}"
    sys.stdout.write(f"{len(urls)} pages: {counts}\n")
    return CHANGED if states["changed"] or states["gone"] else FAILED if states["unknown"] else 0


def _compare(path: Path, page: fetch.UrlLine, gold: Gold) -> tuple[str, list[str]]:
    """Return the state of a document's page, and lines to print: the changes, and the questions whose gold is lost."""
    if page.path is None:
        reason = f"{page.reason}: {page.detail}" if page.detail else page.reason
        return ("gone", [reason, *_list_lost(gold)]) if page.status in _GONE else ("unknown", [reason])
    old = read_document(path)
    try:
        new = read_document(page.path)
    except ToolkitError as error:
        return "unknown", [f"cannot be read: {error}"]
    if old.text.split() == new.text.split():
        return "unchanged", []
    lines = list(list_changes(old.text, new.text))
    omitted = [f"… and {len(lines) - MAX_SHOWN} more sentences"] if len(lines) > MAX_SHOWN else []
    lost = [(id, quote) for id, quote in gold if quote and not locate(quote, new)]
    return "changed", [*lines[:MAX_SHOWN], *omitted, *_list_lost(lost)]


def _list_lost(gold: Gold) -> list[str]:
    return [f"question {id}: its gold is no longer on the page: {_shorten(quote)}" for id, quote in gold]


def list_changes(old: str, new: str) -> Iterator[str]:
    """Yield the sentences that are in only one of two texts: first the old text's, then the new text's."""
    plain = (" ".join(text.split()) for text in (old, new))
    before, after = (Counter(text[slice(*span)] for span in split_sentences(text)) for text in plain)
    yield from (f"- {_shorten(sentence)}" for sentence in before - after)
    yield from (f"+ {_shorten(sentence)}" for sentence in after - before)


def _shorten(text: str) -> str:
    return textwrap.shorten(text, 100, placeholder=" …")


def run(argv: list[str] | None = None) -> int:
    """Convert a list of URLs to a bundle, or with `--refresh` compare an existing bundle with its web pages."""
    words = sys.argv[1:] if argv is None else argv
    if any(word.partition("=")[0] == "--refresh" for word in words):
        return refresh(words)
    return main(sys.modules[__name__], words)
