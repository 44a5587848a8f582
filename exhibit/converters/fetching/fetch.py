"""Downloads URLs as PDFs: the publisher's PDF if there is one, else the page printed by Chromium.

A converter whose source contains links uses this module like this:

    add_fetch_arguments(parser)                                   # in add_arguments
    fetched = fetch_all(urls, folder=fetch_folder(), policy=read_policy(options))
    report(fetched, tally)                                        # counts failed URLs by reason
    documents = [RawDocument(f.filename, title, f.path, source=f.url, printer=f.printer) for f in … if f.path]

`fetch_all` never raises for a bad page: the result for each URL has a path or a reason. It raises a
SourceError, before any download, if two URLs would give the same file name or if a URL gives no file name.
Fetched files stay in the folder, so that the next run requests only the missing files.
"""

import asyncio
import hashlib
import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urldefrag, urlparse, urlsplit

from tqdm import tqdm

from exhibit.converters.benchmark import Block, Item, Tally
from exhibit.converters.fetching.download import Downloader, FetchError, PageReply, Policy, flaw_of
from exhibit.converters.fetching.page import PagePrinter
from exhibit.converters.printing.press import read_office_page
from exhibit.converters.printing.text_pdf import name_printer, needs_browser, pdf_of
from exhibit.engine import run_in_worker, track
from exhibit.runtime.command import add_arguments
from exhibit.schemas.errors import DocumentError, SourceError
from exhibit.schemas.parsing import read_beside
from exhibit.storage.atomic import make_scratch_folder, write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder

_LONGEST = 255
"""Most bytes of a file name that every common file system accepts."""


def stem_of(url: str) -> str:
    """Return a URL's last path segment, plus `#fragment` if there is one; nothing is unquoted or replaced."""
    parts = urlparse(url)
    segment = parts.path.rpartition("/")[2]
    return f"{segment}#{parts.fragment}" if parts.fragment else segment


def filename_of(url: str) -> str:
    """Return the file name of a URL's PDF in the corpus.

    Raise a SourceError that names the URL if its path and fragment give no valid file name.
    """
    stem = stem_of(url)
    if not stem:
        raise SourceError(f"{url}: no file name in it, its path ends in '/'; use the address of one page")
    if "/" in stem or "\0" in stem:
        raise SourceError(f"{url}: the part after '#' has a '/', which no file name can have; remove this part")
    name = stem if stem.lower().endswith(".pdf") else f"{stem}.pdf"
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > _LONGEST:
        raise SourceError(
            f"{url}: its file name would have {size} bytes, but the limit is {_LONGEST}; leave this URL out"
        )
    return name


def make_corpus_names(urls: Iterable[str]) -> dict[str, str]:
    """Return the file name of each URL; raise a SourceError that names both URLs if two have the same name."""
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        name = filename_of(url)
        if name in owners:
            raise SourceError(
                f"{owners[name]} and {url}: both would be {name!r} in the corpus; "
                "leave one of them out, or convert them into two bundles"
            )
        owners[name] = url
        names[url] = name
    return names


_RECIPE = 3
"""Increase this number when pages are printed differently: cached files of another number are not used."""

Outcome = Literal["pdf", "printed", "refused", "disallowed", "unusable", "failed"]
"""pdf: the publisher's file. printed: printed by us. refused: the address is not allowed. disallowed: by robots.txt.
unusable: neither a page nor a PDF, or too large. failed: an error of the server or the network.
"""


@dataclass(frozen=True)
class UrlLine:
    """The result of fetching one URL; the manifest, a JSONL file, has one line for each result."""

    url: str
    filename: str
    """The file's name in the corpus, made from the URL."""
    outcome: Outcome
    path: Path | None = None
    """The downloaded or printed PDF; None if there is none."""
    reason: str = ""
    """The reason why there is no PDF: the same words for all URLs with this outcome."""
    detail: str = ""
    final_url: str = ""
    status: int | None = None
    bytes: int = 0
    sha256: str = ""
    note: str = ""
    """A note for a reader of the PDF."""
    printer: str = ""
    """The program that printed the PDF."""


@dataclass(frozen=True)
class FetchedStore:
    """A folder of fetched PDFs, each with a record.

    The record is written after the PDF, so a PDF without a record is incomplete and is ignored.
    """

    folder: Path

    def load(self, url: str, filename: str) -> UrlLine | None:
        """Return the stored result for a URL; None if there is none or its file has changed."""
        path, record = self._find_places(url)
        try:
            kept = UrlLine(**json.loads(record.read_bytes()))
            whole = sha256_of(path) == kept.sha256
        except (OSError, ValueError, TypeError):
            return None  # never fetched, or the run was killed between the two files
        return replace(kept, path=path, filename=filename) if whole else None

    def save(self, fetched: UrlLine, data: bytes) -> UrlLine:
        """Store a PDF and its record."""
        path, record = self._find_places(fetched.url)
        fetched = replace(fetched, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        write_whole(path, data)
        write_whole(record, _format_line(fetched))
        return replace(fetched, path=path)

    def write_manifest(self, fetched: Iterable[UrlLine]) -> Path:
        """Write the manifest of a list of URLs, one line per URL; return its path, which is different for each list."""
        lines = list(fetched)
        key = hashlib.sha256("\n".join(one.url for one in lines).encode()).hexdigest()[:16]
        path = self.folder / f"manifest-{key}.jsonl"
        write_whole(path, b"".join(map(_format_line, lines)))
        return path

    def _find_places(self, url: str) -> tuple[Path, Path]:
        key = hashlib.sha256(f"{_RECIPE} {url}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.folder / f"{key}.pdf", self.folder / f"{key}.json"


def _format_line(fetched: UrlLine) -> bytes:
    record = asdict(fetched)
    del record["path"]
    return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


__all__ = ["Policy", "UrlLine", "add_fetch_arguments", "fetch_all", "fetch_folder", "read_policy", "report"]

_AT_ONCE = 8
"""Most downloads at the same time, over all hosts."""
_THREADS = 32  # threads for these downloads, and for the requests of pages in the browser


def add_fetch_arguments(parser: ArgumentParser) -> None:
    """Add the flags for fetching pages; `read_policy` reads them."""
    add_arguments(parser, read_beside(__file__))


def read_policy(options: Namespace) -> Policy:
    """Return the policy that the flags of `add_fetch_arguments` set."""
    given = {name: value for name, value in vars(options).items() if name in Policy.__dataclass_fields__}
    return Policy(**given, pages=max(4, getattr(options, "jobs", None) or os.cpu_count() or 4))


def fetch_folder() -> Path:
    """Return the folder of fetched pages; all converters share it, so that no page is fetched twice."""
    return find_cache_folder() / "web"


def report(fetched: Mapping[str, UrlLine], tally: Tally, *, items: Mapping[str, Sequence[Item]] | None = None) -> None:
    """Count every URL without a PDF by reason, once for each table row that has the URL.

    For every URL with a PDF, record the note on the PDF, if there is one.
    """
    for url, one in fetched.items():
        name = f"{one.url}: {one.detail}" if one.detail else one.url
        if one.path is None:
            leave = tally.leave_out if one.outcome == "disallowed" else tally.fault
            rows: Sequence[Item | None] = (items or {}).get(url) or [None]
            for item in rows:
                leave(one.reason, name, item=item)
        elif one.note:
            tally.note(one.note, name)


def fetch_all(urls: Sequence[str], *, folder: Path, policy: Policy, tell: bool = True) -> dict[str, UrlLine]:
    """Return the result for each distinct URL, in order; a page that cannot be fetched is a result, too.

    Raise SourceError if a URL gives no file name, if two give the same one, or if the folder cannot be written.
    With `tell`, print the path of the manifest on stderr.
    """
    flaws = {url: flaw_of(url) for url in urls}
    names = make_corpus_names(url for url, flaw in flaws.items() if flaw is None)
    pages = {
        url: UrlLine(_strip_user(url), "", "refused", reason=flaw) for url, flaw in flaws.items() if flaw is not None
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        store = FetchedStore(folder)
        if not policy.refetch:
            pages |= {url: kept for url, name in names.items() if (kept := store.load(url, name)) is not None}
        missing = {url: name for url, name in names.items() if url not in pages}
        if missing:
            pages |= asyncio.run(_fetch_missing(missing, store, policy))
        fetched = {url: pages[url] for url in flaws}
        manifest = store.write_manifest(fetched.values())
    except OSError as error:
        raise SourceError(
            f"{folder}: cannot be written: {error.strerror}; set EXHIBIT_CACHE to another folder"
        ) from error
    if tell:
        tqdm.write(f"{len(missing)} of {len(flaws)} URLs asked for; what became of each: {manifest}", file=sys.stderr)
    return fetched


async def _fetch_missing(names: Mapping[str, str], store: FetchedStore, policy: Policy) -> dict[str, UrlLine]:
    """Fetch the URLs and store their PDFs; return the result for each URL.

    URLs that differ only in their fragment (`#…`) are downloaded once.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for url in names:
        groups[urldefrag(url).url].append(url)
    pages: dict[str, UrlLine] = {}
    downloader = Downloader(policy)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS))
    async with AsyncExitStack() as stack:
        stack.callback(downloader.close)
        printer = PagePrinter(downloader, timeout=policy.timeout, pages=policy.pages)
        stack.push_async_callback(printer.aclose)
        crew = _Crew(downloader, printer, store, policy)
        tasks = [
            asyncio.create_task(crew.fetch(base, {url: names[url] for url in group})) for base, group in groups.items()
        ]
        try:
            for done in track(asyncio.as_completed(tasks), total=len(tasks), label="fetching", unit="page"):
                pages |= {one.url: one for one in await done}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return pages


class _Crew:
    """The downloader, the printer, the store and the limits that all tasks of one run share."""

    def __init__(self, downloader: Downloader, printer: PagePrinter, store: FetchedStore, policy: Policy) -> None:
        self.downloader, self.printer, self.store = downloader, printer, store
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._slots: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(policy.per_host))

    async def fetch(self, base: str, names: Mapping[str, str]) -> list[UrlLine]:
        """Download an address once and return a result for each of its URLs, which differ only in their fragment.

        A failed download also gives a result for each URL.
        """
        async with self._slots[urlsplit(base).netloc.lower()], self._at_once:
            try:
                reply = await asyncio.to_thread(self.downloader.get, base)
            except FetchError as error:
                return [_make_failed_line(url, name, error) for url, name in names.items()]
            return [await self._store_reply(url, name, reply) for url, name in names.items()]

    async def _store_reply(self, url: str, name: str, reply: PageReply) -> UrlLine:
        if reply.kind == "pdf":
            return self.store.save(UrlLine(url, name, "pdf", final_url=reply.url, status=reply.status), reply.data)
        fragment = urldefrag(url).fragment
        try:
            if reply.kind == "file":
                reply = await asyncio.to_thread(_as_page, reply)
            if reply.kind == "text" and not needs_browser(reply.text):
                data = await asyncio.to_thread(pdf_of, [Block("p", reply.text)], title=name.removesuffix(".pdf"))
                final, note, printer = reply.url, "", name_printer()
            else:
                address = f"{reply.url}#{fragment}" if fragment else reply.url
                data, final, note = await self.printer.print(reply, address)
                printer = f"Chromium {self.printer.browser}"
        except FetchError as error:
            return _make_failed_line(url, name, error)
        printed = UrlLine(url, name, "printed", final_url=final, status=reply.status, note=note, printer=printer)
        return self.store.save(printed, data)


def _as_page(reply: PageReply) -> PageReply:
    """Convert a reply that contains a file, such as a Word document, to a reply with an HTML page to print."""
    with make_scratch_folder() as folder:
        path = folder / f"document{reply.suffix}"
        path.write_bytes(reply.data)
        try:
            page = run_in_worker(read_office_page, path).html
        except DocumentError as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise FetchError("cannot be read", reason, fate="unusable", url=reply.url, status=reply.status) from error
    return replace(reply, kind="html", data=page.encode("utf-8"), headers={"content-type": "text/html; charset=utf-8"})


def _make_failed_line(url: str, name: str, error: FetchError) -> UrlLine:
    return UrlLine(
        url,
        name,
        error.fate,
        reason=error.reason,
        detail=error.detail,
        final_url=error.url if error.url != url else "",
        status=error.status,
    )


def _strip_user(url: str) -> str:
    """Return an address without its user name and password."""
    return re.sub(r"//[^/@]*@", "//…@", url)
