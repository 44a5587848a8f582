"""Compares the documents of a bundle with their current web pages, and lists the questions that are affected.

python -m converters.web --refresh datasets_out/web

The bundle itself is never changed. `--changes FILE` writes the changes, and `--keep` stores the new pages for the next
conversion. Exit code 0: no page changed; 4: a page changed or is gone; 1: no page changed, but some could not be
fetched.
"""

import json
import sys
import textwrap
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal, NamedTuple

from exhibit.converters.pages.fetch import UrlLine, add_fetch_arguments, fetch_all, fetch_folder, read_policy
from exhibit.evidence import Document, Span, locate, read_document
from exhibit.law.sentences import split_sentences
from exhibit.runtime.command import FAILED, build_parser, guarded
from exhibit.schemas.bundle import INFO, read_info
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.schemas.models import Gold
from exhibit.storage.atomic import make_scratch_folder, write_whole
from exhibit.storage.bundle import BundleFolder, open_bundle
from exhibit.storage.locations import Remote

CHANGED = 4  # the exit code if a source has changed
MAX_WORDS = 3000  # of a passage that are compared one by one; a longer passage counts as changed
MAX_SHOWN = 5  # changes and questions of a page that are printed; `--changes` writes all
LINE_CHARS = 100
_GONE = frozenset({404, 410})

QuotedGold = tuple[Gold, str]  # a line of gold.jsonl with its quote


class Change(NamedTuple):
    """A passage that was replaced, removed or added."""

    removed: str
    added: str
    words_removed: tuple[str, ...]
    words_added: tuple[str, ...]


@dataclass(frozen=True)
class Touched:
    """A question whose gold has moved or is gone."""

    id: int
    fate: Literal["gone", "moved"]
    quote: str
    pages: tuple[int, ...] = ()  # on which the gold is now


@dataclass(frozen=True)
class PageState:
    """The result of comparing a document with its page; `unknown`: the page could not be fetched today."""

    filename: str
    url: str
    state: Literal["same", "changed", "gone", "unknown"]
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    questions: list[Touched] = field(default_factory=list)


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    """Compare a bundle with its web pages and print the result."""
    parser = build_parser("python -m converters.web", __doc__)
    parser.add_argument("--refresh", type=Path, required=True, metavar="BUNDLE", help="the bundle to compare")
    parser.add_argument("--changes", type=Path, metavar="FILE", help="also write the changes to this file, as JSON")
    parser.add_argument("--keep", action="store_true", help="store the new pages for the next conversion")
    add_fetch_arguments(parser)
    options = parser.parse_args(argv)
    states = refresh(options.refresh, options)
    sys.stdout.write("\n".join(format_states(states)) + "\n")
    if options.changes:
        records = [asdict(page) | {"changes": [change._asdict() for change in page.changes]} for page in states]
        write_whole(options.changes, json.dumps(records, ensure_ascii=False, indent=1) + "\n")
    kinds = {page.state for page in states}
    return CHANGED if kinds & {"changed", "gone"} else FAILED if "unknown" in kinds else 0


def refresh(root: Path, options: Namespace) -> list[PageState]:
    """Return the state of every document that has a web address, in the order of the bundle."""
    if not (root / INFO).is_file():
        raise BundleError(f"{root}: no {INFO} in it, so the sources of its documents are unknown")
    documents = read_info(root / INFO).documents
    urls = {entry.filename: entry.source for entry in documents if entry.source.startswith(("http://", "https://"))}
    if not urls:
        raise SourceError(f"{root}: none of its documents comes from a web address, so there is nothing to refresh")
    bundle = open_bundle(root)
    golds = group_gold(bundle)
    options.refetch = True
    with make_scratch_folder() as temporary:
        folder = fetch_folder() if options.keep else temporary
        fetched = fetch_all(list(urls.values()), folder=folder, policy=read_policy(options), tell=options.keep)
        return [_compare(bundle, name, fetched[url], golds.get(name, [])) for name, url in urls.items()]


def group_gold(bundle: BundleFolder) -> dict[str, list[QuotedGold]]:
    """Return the lines of gold.jsonl with their quotes, by file name."""
    contexts = {question.id: question.contexts for question in bundle.questions}
    golds: dict[str, list[QuotedGold]] = defaultdict(list)
    for line in bundle.gold:
        quotes = contexts.get(line.id, ())
        quote = quotes[line.context].text if line.context is not None and line.context < len(quotes) else ""
        golds[line.filename or ""].append((line, quote or ""))
    return golds


def _compare(bundle: BundleFolder, name: str, page: UrlLine, gold: Sequence[QuotedGold]) -> PageState:
    if page.path is None:
        reason = f"{page.reason}: {page.detail}" if page.detail else page.reason
        if page.status not in _GONE:
            return PageState(name, page.url, "unknown", reason)
        return PageState(name, page.url, "gone", reason, [], [Touched(line.id, "gone", quote) for line, quote in gold])
    here = bundle.files.get(name)
    if here is None or isinstance(here, Remote):
        raise BundleError(f"{bundle.address}: corpus/ has no file {name!r} on this disk; pull the bundle first")
    old = read_document(here)
    try:
        new = read_document(page.path)
    except ToolkitError as error:
        return PageState(name, page.url, "unknown", f"cannot be read: {error}")
    changes = find_changes(old.text, new.text)
    touched = list(_find_touched(gold, old, new)) if changes else []
    return PageState(name, page.url, "changed" if changes else "same", "", changes, touched)


def find_changes(old: str, new: str) -> list[Change]:
    """Return the passages in which two texts differ; a difference in white space is no change."""
    before, after = _split_sentences(old), _split_sentences(new)
    changes = []
    for a, b, c, d in _list_edits(before, after):
        removed, added = " ".join(before[a:b]), " ".join(after[c:d])
        gone, put = removed.split(), added.split()
        if gone == put:
            continue  # the same words in other sentences are no change
        if max(len(gone), len(put)) <= MAX_WORDS:
            edits = _list_edits(gone, put)
            gone, put = [w for a, b, _, _ in edits for w in gone[a:b]], [w for _, _, c, d in edits for w in put[c:d]]
        changes.append(Change(removed, added, tuple(gone), tuple(put)))
    return changes


def _list_edits(before: list[str], after: list[str]) -> list[tuple[int, int, int, int]]:
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [ranges for tag, *ranges in codes if tag != "equal"]  # type: ignore[misc]


def _split_sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [plain[span.start : span.end] for span in split_sentences(plain)]


def _find_touched(gold: Sequence[QuotedGold], old: Document, new: Document) -> Iterator[Touched]:
    """Yield the questions whose gold in a file is gone or has moved."""
    for line, words in gold:
        # a section is a location without a quote: compare the words at the location
        quote = words or " ".join(old.text[start:end] for start, end in line.spans)
        matches = locate(quote, new) if line.spans else []
        if line.spans and not matches:
            yield Touched(line.id, "gone", quote)
        elif line.spans and tuple(Span(*span) for span in line.spans) not in [tuple(match.spans) for match in matches]:
            pages = new.pages_of(*matches[0].spans)
            yield Touched(line.id, "moved", quote, tuple(pages))


# ---------------------------------------------------------------- output


def format_states(states: Sequence[PageState]) -> list[str]:
    """Return the lines to print: each changed page, then the number of unchanged pages."""
    lines = [line for page in states if page.state != "same" for line in _format_page(page)]
    counts = Counter(page.state for page in states)
    unknown = f", {counts['unknown']} not fetched today" if counts["unknown"] else ""
    hit = Counter(fate for _, fate in {(touched.id, touched.fate) for page in states for touched in page.questions})
    return [
        *lines,
        f"{len(states)} pages: {counts['same']} unchanged, {counts['changed']} changed, {counts['gone']} gone"
        f"{unknown}; questions whose gold is gone: {hit['gone']}, moved: {hit['moved']}",
    ]


def _format_page(page: PageState) -> Iterator[str]:
    yield f"{page.state}: {page.filename} ({page.url})"
    if page.reason:
        yield f"  {page.reason}"
    if page.changes:
        removed = sum(len(change.words_removed) for change in page.changes)
        added = sum(len(change.words_added) for change in page.changes)
        yield f"  {removed} words removed, {added} added"
    for change in page.changes[:MAX_SHOWN]:
        yield from (f"  {sign} {_shorten(text)}" for sign, text in zip("-+", change[:2], strict=True) if text)
    if len(page.changes) > MAX_SHOWN:
        yield f"  … and {len(page.changes) - MAX_SHOWN} more changes (--changes)"
    for touched in page.questions[:MAX_SHOWN]:
        where = f" to page {', '.join(map(str, touched.pages))}" if touched.pages else ""
        fate = "moved" if touched.fate == "moved" else "is gone"
        yield f"  question {touched.id}: its gold {fate}{where}: {_shorten(touched.quote)}"
    if len(page.questions) > MAX_SHOWN:
        yield f"  … and {len(page.questions) - MAX_SHOWN} more questions (--changes)"


def _shorten(text: str) -> str:
    return textwrap.shorten(text, LINE_CHARS, placeholder=" …")
