"""Downloads URLs as PDFs: the publisher's PDF if there is one, else the page printed by Chromium.

`fetch_all` never raises for a bad page: the result for each URL has a path or a reason. Fetched files stay in a folder,
so that the next run requests only the missing files.
"""

import asyncio
import hashlib
import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urldefrag, urlparse, urlsplit

from tqdm import tqdm

from exhibit.converters.core.benchmark import Item, Tally
from exhibit.converters.pages.download import DISALLOWED, Downloader, FetchError, PageReply, Policy, flaw_of
from exhibit.converters.pages.print import make_html
from exhibit.converters.pages.web_printer import print_web_page
from exhibit.engine import track
from exhibit.runtime.command import parse_positive, parse_seconds
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import LONGEST_NAME
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import find_cache_folder

__all__ = ["Policy", "UrlLine", "add_fetch_arguments", "fetch_all", "fetch_folder", "read_policy", "report"]

MAX_PAGES = 8  # most pages that are downloaded or printed at the same time
MAX_PAGES_OF_HOST = 2
MAX_THREADS = 32  # threads for these downloads and for the requests of pages in the browser
_RECIPE = 4  # increase it when pages are printed differently: cached files with another number are not used


@dataclass(frozen=True)
class UrlLine:
    """The result of fetching one URL."""

    url: str
    filename: str  # in the corpus, made from the URL
    path: Path | None = None  # the downloaded or printed PDF
    reason: str = ""  # the reason why there is no PDF
    detail: str = ""
    final_url: str = ""
    status: int | None = None
    sha256: str = ""
    note: str = ""  # a note for readers of the PDF
    printer: str = ""  # empty if the PDF is the publisher's


# ---------------------------------------------------------------- names


def filename_of(url: str) -> str:
    """Return the name of a URL's PDF in the corpus: the last segment of its path and its fragment, as written.

    Raise SourceError if the URL gives no name.
    """
    parts = urlparse(url)
    stem = parts.path.rpartition("/")[2] + (f"#{parts.fragment}" if parts.fragment else "")
    if not stem:
        raise SourceError(f"{url}: no file name in it, its path ends in '/'; use the address of one page")
    if "/" in stem or "\0" in stem:
        raise SourceError(f"{url}: the part after '#' has a '/', which no file name can have; remove this part")
    name = stem if stem.lower().endswith(".pdf") else f"{stem}.pdf"
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > LONGEST_NAME:
        raise SourceError(
            f"{url}: its file name would have {size} bytes, but the limit is {LONGEST_NAME}; leave this URL out"
        )
    return name


def make_corpus_names(urls: Iterable[str]) -> dict[str, str]:
    """Return the file name of each URL; raise a SourceError that names two URLs with the same file name."""
    owners: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        owner = owners.setdefault(filename_of(url), url)
        if owner != url:
            raise SourceError(
                f"{owner} and {url}: both would be {filename_of(url)!r} in the corpus; "
                "leave one of them out, or convert them into two bundles"
            )
    return {url: name for name, url in owners.items()}


@dataclass(frozen=True)
class FetchedStore:
    """A folder of fetched PDFs; each PDF's record is written last, so a PDF without a record is incomplete."""

    folder: Path

    def load(self, url: str, filename: str) -> UrlLine | None:
        """Return the stored result for a URL; None if there is no result or its file has changed."""
        path, record = self._find_files(url)
        try:
            known = UrlLine(**json.loads(record.read_bytes()))
            unchanged = sha256_of(path) == known.sha256
        except (OSError, ValueError, TypeError):
            return None  # never fetched, or the run was killed between the two files
        return replace(known, path=path, filename=filename) if unchanged else None

    def save(self, fetched: UrlLine, data: bytes) -> UrlLine:
        path, record = self._find_files(fetched.url)
        fetched = replace(fetched, sha256=hashlib.sha256(data).hexdigest())
        write_whole(path, data)
        write_whole(record, json.dumps({**asdict(fetched), "path": None}))
        return replace(fetched, path=path)

    def _find_files(self, url: str) -> tuple[Path, Path]:
        key = hashlib.sha256(f"{_RECIPE} {url}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.folder / f"{key}.pdf", self.folder / f"{key}.json"


# ---------------------------------------------------------------- flags and reports


def add_fetch_arguments(parser: ArgumentParser) -> None:
    """Add the flags for fetching pages; `read_policy` reads them."""
    add = parser.add_argument_group("fetching").add_argument
    delay = "seconds between two requests to one host; robots.txt may ask for more (default: %(default)s)"
    add("--delay", type=parse_seconds, default=0.5, metavar="S", help=delay)
    add("--timeout", type=parse_seconds, default=60.0, metavar="S", help="seconds for one page (default: %(default)s)")
    large = "leave out what is larger (default: %(default)s)"
    add("--max-bytes", type=parse_positive, default=100 << 20, metavar="N", help=large)
    add("--refetch", action="store_true", help="fetch again what an earlier run has stored")
    add("--ignore-robots", action="store_true", help="fetch even what robots.txt asks robots to leave")
    private = "allow addresses of this machine, of private networks and of cloud metadata services"
    add("--allow-private", action="store_true", help=private)


def read_policy(options: Namespace) -> Policy:
    """Return the policy that the flags of `add_fetch_arguments` set."""
    return Policy(**{name: value for name, value in vars(options).items() if name in Policy.__dataclass_fields__})


def fetch_folder() -> Path:
    """Return the folder of fetched pages, which all converters share so that no page is fetched twice."""
    return find_cache_folder() / "web"


def report(fetched: Mapping[str, UrlLine], tally: Tally, *, items: Mapping[str, Sequence[Item]] | None = None) -> None:
    """Count every URL without a PDF by reason, once for each line of the source with it; record the notes."""
    for url, line in fetched.items():
        name = f"{line.url}: {line.detail}" if line.detail else line.url
        if line.path is None:
            leave = tally.leave_out if line.reason == DISALLOWED else tally.fault
            known: Sequence[Item | None] = (items or {}).get(url) or [None]
            for item in known:
                leave(line.reason, name, item=item)
        elif line.note:
            tally.note(line.note, name)


# ---------------------------------------------------------------- fetching


def fetch_all(urls: Sequence[str], *, folder: Path, policy: Policy) -> dict[str, UrlLine]:
    """Return the result for each distinct URL, in order; a failure is also a result.

    Raise SourceError if a URL gives no file name, if two give the same name, or if the folder cannot be written.
    """
    flaws = {url: flaw_of(url) for url in urls}
    names = make_corpus_names(url for url, flaw in flaws.items() if flaw is None)
    store = FetchedStore(folder)
    pages = {
        # without the user name and password
        url: UrlLine(re.sub(r"//[^/@]*@", "//…@", url), "", reason=flaw)
        for url, flaw in flaws.items()
        if flaw is not None
    }
    if not policy.refetch:
        pages |= {url: known for url, name in names.items() if (known := store.load(url, name)) is not None}
    missing = {url: name for url, name in names.items() if url not in pages}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pages |= asyncio.run(_fetch_missing(missing, store, policy)) if missing else {}
    except OSError as error:
        raise SourceError(
            f"{folder}: cannot be written: {error.strerror}; set EXHIBIT_CACHE to another folder"
        ) from error
    tqdm.write(f"{len(missing)} of {len(flaws)} URLs requested, the others are in {folder}", file=sys.stderr)
    return {url: pages[url] for url in flaws}


async def _fetch_missing(names: Mapping[str, str], store: FetchedStore, policy: Policy) -> dict[str, UrlLine]:
    """Fetch the URLs and store their PDFs; URLs that differ only in their fragment are downloaded once."""
    groups: dict[str, list[str]] = defaultdict(list)
    for url in names:
        groups[urldefrag(url).url].append(url)
    free = asyncio.Semaphore(MAX_PAGES)
    hosts: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(MAX_PAGES_OF_HOST))

    async def fetch(base: str, urls: Sequence[str]) -> list[UrlLine]:
        async with hosts[urlsplit(base).netloc.lower()], free:
            try:
                reply = await asyncio.to_thread(downloader.get, base)
            except FetchError as error:
                return [_make_failed_line(url, names[url], error) for url in urls]
            return [await _store_reply(url, names[url], reply, downloader, store, policy) for url in urls]

    pages: dict[str, UrlLine] = {}
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(MAX_THREADS))
    with closing(Downloader(policy)) as downloader:
        tasks = [asyncio.create_task(fetch(base, urls)) for base, urls in groups.items()]
        try:
            for done in track(asyncio.as_completed(tasks), total=len(tasks), label="fetching", unit="page"):
                pages |= {line.url: line for line in await done}
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return pages


async def _store_reply(
    url: str, name: str, reply: PageReply, downloader: Downloader, store: FetchedStore, policy: Policy
) -> UrlLine:
    line = UrlLine(url, name, final_url=reply.url, status=reply.status)
    if reply.kind == "pdf":
        return store.save(line, reply.data)
    if reply.kind == "text":
        page, headers = make_html(reply.text), {"content-type": "text/html; charset=utf-8"}
        reply = replace(reply, data=page.encode("utf-8"), headers=headers)
    fragment = urldefrag(url).fragment
    address = f"{reply.url}#{fragment}" if fragment else reply.url
    try:
        printed = await print_web_page(reply, address, downloader, timeout=policy.timeout)
    except FetchError as error:
        return _make_failed_line(url, name, error)
    return store.save(replace(line, final_url=printed.url, note=printed.note, printer=printed.printer), printed.data)


def _make_failed_line(url: str, name: str, error: FetchError) -> UrlLine:
    return UrlLine(url, name, reason=error.reason, detail=error.detail, status=error.status)
