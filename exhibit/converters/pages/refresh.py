"""Compares the documents of a bundle with their current web pages, and lists the questions that are affected.

exhibit convert web --refresh datasets_out/web

Nothing is written. Exit code 0: no page changed; 4: a page changed or is gone; 1: no page changed, but some could not
be fetched.
"""

import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from exhibit.converters.pages.fetch import UrlLine, add_fetch_arguments, fetch_all, read_policy
from exhibit.evidence import locate, read_document
from exhibit.law.sentences import split_sentences
from exhibit.runtime.command import FAILED, build_parser, guarded
from exhibit.schemas.bundle import INFO
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.storage.atomic import make_scratch_folder
from exhibit.storage.bundle import open_bundle
from exhibit.storage.locations import Remote

CHANGED = 4  # the exit code if a source has changed
MAX_SHOWN = 5  # sentences of a page that are printed
LINE_CHARS = 100
_GONE = frozenset({404, 410})

State = Literal["unchanged", "changed", "gone", "unknown"]
Gold = list[tuple[int, str]]  # the questions about a document, with their quotes


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    """Compare a bundle with its web pages and print the result."""
    parser = build_parser("exhibit convert web", __doc__)
    parser.add_argument("--refresh", type=Path, required=True, metavar="BUNDLE", help="the bundle to compare")
    add_fetch_arguments(parser)
    options = parser.parse_args(argv)
    bundle = open_bundle(options.refresh)
    if bundle.info is None:
        raise BundleError(f"{options.refresh}: no {INFO} in it, so the sources of its documents are unknown")
    sources = {entry.filename: entry.source for entry in bundle.info.documents}
    urls = {name: source for name, source in sources.items() if source.startswith(("http://", "https://"))}
    if not urls:
        raise SourceError(f"{options.refresh}: none of its documents comes from a web address: nothing to refresh")
    gold: dict[str, Gold] = defaultdict(list)
    for question in bundle.questions:
        for context in question.contexts:
            gold[str(context.filename)].append((int(question.id), context.text or ""))
    states: Counter[State] = Counter()
    with make_scratch_folder() as folder:
        pages = fetch_all(list(urls.values()), folder=folder, policy=replace(read_policy(options), refetch=True))
        for name, url in urls.items():
            path = bundle.files.get(name)
            if path is None or isinstance(path, Remote):
                raise BundleError(f"{bundle.address}: corpus/ has no file {name!r} on this disk; pull the bundle first")
            state, lines = _compare(path, pages[url], gold[name])
            states[state] += 1
            if state != "unchanged":
                sys.stdout.write("\n  ".join([f"{state}: {name} ({url})", *lines]) + "\n")
    unknown = f", {states['unknown']} not fetched today" if states["unknown"] else ""
    counts = f"{states['unchanged']} unchanged, {states['changed']} changed, {states['gone']} gone{unknown}"
    sys.stdout.write(f"{len(urls)} pages: {counts}\n")
    return CHANGED if states["changed"] or states["gone"] else FAILED if states["unknown"] else 0


def _compare(path: Path, page: UrlLine, gold: Gold) -> tuple[State, list[str]]:
    """Return the state of a document's page, and the lines to print: the changes and the questions without gold."""

    def list_lost(is_lost: Callable[[str], bool]) -> list[str]:
        return [f"question {id}: its gold is gone: {_shorten(quote)}" for id, quote in gold if is_lost(quote)]

    if page.path is None:
        reason = f"{page.reason}: {page.detail}" if page.detail else page.reason
        return ("gone", [reason, *list_lost(lambda _: True)]) if page.status in _GONE else ("unknown", [reason])
    old = read_document(path)
    try:
        new = read_document(page.path)
    except ToolkitError as error:
        return "unknown", [f"cannot be read: {error}"]
    if old.text.split() == new.text.split():
        return "unchanged", []
    lines = list(list_changes(old.text, new.text))
    more = [f"… and {len(lines) - MAX_SHOWN} more sentences"] if len(lines) > MAX_SHOWN else []
    return "changed", [*lines[:MAX_SHOWN], *more, *list_lost(lambda quote: bool(quote) and not locate(quote, new))]


def list_changes(old: str, new: str) -> Iterator[str]:
    """Yield the sentences that are in only one of two texts: first the old text's, then the new text's."""
    plain = (" ".join(text.split()) for text in (old, new))
    before, after = (Counter(text[slice(*span)] for span in split_sentences(text)) for text in plain)
    yield from (f"- {_shorten(sentence)}" for sentence in before - after)
    yield from (f"+ {_shorten(sentence)}" for sentence in after - before)


def _shorten(text: str) -> str:
    return textwrap.shorten(text, LINE_CHARS, placeholder=" …")
