"""Compares the documents of a bundle with their current web pages, and lists the questions that are affected.

python -m converters.web --refresh datasets_out/web

The bundle itself is never changed. `--changes FILE` writes the changes, and `--keep` stores the new pages
for the next conversion. Exit code 0: no page changed; 4: a page changed or is gone; 1: no page changed, but
some could not be fetched.
"""

import json
import sys
import textwrap
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exhibit.converters.fetching.fetch import UrlLine, add_fetch_arguments, fetch_all, fetch_folder, read_policy
from exhibit.evidence import Document, Span, locate, read_document
from exhibit.law.sentences import split_sentences
from exhibit.runtime.command import FAILED, build_parser, guarded
from exhibit.schemas.bundle import INFO, read_info
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.schemas.models import Gold
from exhibit.storage.atomic import make_scratch_folder, write_whole
from exhibit.storage.bundle import BundleFolder, open_bundle
from exhibit.storage.locations import Remote

_MOST_WORDS = 3000
"""Most words of a passage that are compared one by one; a longer passage counts as changed."""


class Change(NamedTuple):
    """A passage that was replaced, removed or added."""

    removed: str
    added: str
    words_removed: tuple[str, ...]
    words_added: tuple[str, ...]


def find_changes(old: str, new: str) -> list[Change]:
    """Return the passages in which two texts differ; a difference in white space is no change."""
    before, after = _split_sentences(old), _split_sentences(new)
    changes = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            removed, added = " ".join(before[a:b]), " ".join(after[c:d])
            if removed.split() != added.split():  # the same words in other sentences are no change
                changes.append(Change(removed, added, *_find_differing_words(removed.split(), added.split())))
    return changes


def _split_sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [plain[span.start : span.end] for span in split_sentences(plain)]


def _find_differing_words(removed: list[str], added: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the removed and the added words of a changed passage, by a word-by-word comparison.

    In a very long passage, all words count as removed and added.
    """
    if max(len(removed), len(added)) > _MOST_WORDS:
        return tuple(removed), tuple(added)
    gone: list[str] = []
    come: list[str] = []
    for tag, a, b, c, d in SequenceMatcher(None, removed, added, autojunk=False).get_opcodes():
        if tag != "equal":
            gone += removed[a:b]
            come += added[c:d]
    return tuple(gone), tuple(come)


CHANGED = 4
"""The exit code if a source has changed."""
_SHOWN = 5
"""Changes and questions of a page that are printed; `--changes` writes all."""
_WIDTH = 100  # columns of a line on a terminal

State = Literal["same", "changed", "gone", "unknown"]
"""gone: the server says that the page does not exist; unknown: the page could not be fetched today."""
_GONE = frozenset({404, 410})


@dataclass(frozen=True)
class Touched:
    """A question whose gold has moved or is gone."""

    id: int
    fate: Literal["gone", "moved"]
    quote: str
    pages: tuple[int, ...] = ()
    """The pages on which the gold is now."""


@dataclass(frozen=True)
class PageState:
    """The result of comparing a document of the bundle with its current web page."""

    filename: str
    url: str
    state: State
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    questions: list[Touched] = field(default_factory=list)


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    """Compare a bundle with its web pages and print the result.

    Return 4 if a page has changed or is gone, else 1 if a page could not be fetched, else 0.
    """
    parser = build_parser("python -m converters.web", __doc__)
    parser.add_argument("--refresh", type=Path, required=True, metavar="BUNDLE", help="the bundle to compare")
    parser.add_argument("--changes", type=Path, metavar="FILE", help="also write the changes to this file, as JSON")
    parser.add_argument("--keep", action="store_true", help="store the new pages for the next conversion")
    add_fetch_arguments(parser)
    options = parser.parse_args(argv)
    states = refresh(options.refresh, options)
    sys.stdout.write("\n".join(format_states(states)) + "\n")
    if options.changes:
        write_whole(options.changes, json.dumps([as_json(one) for one in states], ensure_ascii=False, indent=1) + "\n")
    kinds = {one.state for one in states}
    return CHANGED if kinds & {"changed", "gone"} else FAILED if "unknown" in kinds else 0


# ---------------------------------------------------------------- comparing


def refresh(root: Path, options: Namespace) -> list[PageState]:
    """Return the state of every document that has a web address, in the order of the bundle."""
    if not (root / INFO).is_file():
        raise BundleError(f"{root}: no {INFO} in it, so the sources of its documents are unknown")
    urls = {
        entry.filename: entry.source
        for entry in read_info(root / INFO).documents
        if entry.source.startswith(("http://", "https://"))
    }
    if not urls:
        raise SourceError(f"{root}: none of its documents comes from a web address, so there is nothing to refresh")
    bundle = open_bundle(root)
    options.refetch = True
    with ExitStack() as stack:
        temporary = stack.enter_context(make_scratch_folder())
        folder = fetch_folder() if options.keep else temporary
        fetched = fetch_all(list(urls.values()), folder=folder, policy=read_policy(options), tell=options.keep)
        return [_find_state(bundle, name, fetched[url]) for name, url in urls.items()]


def _find_state(bundle: BundleFolder, name: str, one: UrlLine) -> PageState:
    if one.path is not None:
        return _compare_page(bundle, name, one.url, one.path)
    reason = f"{one.reason}: {one.detail}" if one.detail else one.reason
    if one.status not in _GONE:
        return PageState(name, one.url, "unknown", reason=reason)
    lost = [Touched(line.id, "gone", _quote(bundle, line)) for line in bundle.gold if line.filename == name]
    return PageState(name, one.url, "gone", reason=reason, questions=lost)


def _compare_page(bundle: BundleFolder, name: str, url: str, path: Path) -> PageState:
    here = bundle.files.get(name)
    if here is None or isinstance(here, Remote):
        raise BundleError(f"{bundle.address}: corpus/ has no file {name!r} on this disk; pull the bundle first")
    old = read_document(here)
    try:
        new = read_document(path)
    except ToolkitError as error:
        return PageState(name, url, "unknown", reason=f"cannot be read: {error}")
    changes = find_changes(old.text, new.text)
    touched = list(_find_touched(bundle, name, old, new)) if changes else []
    return PageState(name, url, "changed" if changes else "same", changes=changes, questions=touched)


def _find_touched(bundle: BundleFolder, name: str, old: Document, new: Document) -> Iterator[Touched]:
    """Yield the questions whose gold in a file is gone or has moved."""
    for line in bundle.gold:
        if line.filename != name or not line.spans:
            continue
        # a section is a location without a quote: compare the words at the location
        quote = _quote(bundle, line) or " ".join(old.text[start:end] for start, end in line.spans)
        matches = locate(quote, new)
        if not matches:
            yield Touched(line.id, "gone", quote)
        elif all(tuple(match.spans) != tuple(Span(*span) for span in line.spans) for match in matches):
            pages = sorted({page for span in matches[0].spans for page in new.pages_of(span)})
            yield Touched(line.id, "moved", quote, tuple(pages))


def _quote(bundle: BundleFolder, line: Gold) -> str:
    """Return the quote that train.json has for a line of gold.jsonl; empty if it has none."""
    contexts = next((question.contexts for question in bundle.questions if question.id == line.id), ())
    return (contexts[line.context].text or "") if line.context is not None and line.context < len(contexts) else ""


# ---------------------------------------------------------------- output


def format_states(states: Sequence[PageState]) -> list[str]:
    """Return the lines to print: each changed page, then the number of unchanged pages."""
    lines: list[str] = []
    for one in (one for one in states if one.state != "same"):
        lines.append(f"{one.state}: {one.filename} ({one.url})")
        if one.reason:
            lines.append(f"  {one.reason}")
        lines += _change_lines(one)
    counts = Counter(one.state for one in states)
    unknown = f", {counts['unknown']} not had today" if counts["unknown"] else ""
    hit = {(touched.id, touched.fate) for one in states for touched in one.questions}
    lines.append(
        f"{len(states)} pages: {counts['same']} as they were, {counts['changed']} changed, "
        f"{counts['gone']} gone{unknown}; "
        f"questions whose gold is gone: {sum(fate == 'gone' for _, fate in hit)}, "
        f"moved: {sum(fate == 'moved' for _, fate in hit)}"
    )
    return lines


def _change_lines(one: PageState) -> Iterator[str]:
    if one.changes:
        removed = sum(len(change.words_removed) for change in one.changes)
        added = sum(len(change.words_added) for change in one.changes)
        yield f"  {removed} words removed, {added} added"
    for change in one.changes[:_SHOWN]:
        for sign, text in (("-", change.removed), ("+", change.added)):
            if text:
                yield f"  {sign} {_shorten(text)}"
    if len(one.changes) > _SHOWN:
        yield f"  … and {len(one.changes) - _SHOWN} more changes (--changes)"
    for touched in one.questions[:_SHOWN]:
        where = f" to page {', '.join(map(str, touched.pages))}" if touched.fate == "moved" and touched.pages else ""
        yield f"  question {touched.id}: its gold {'moved' if touched.fate == 'moved' else 'is gone'}{where}: " + (
            _shorten(touched.quote)
        )
    if len(one.questions) > _SHOWN:
        yield f"  … and {len(one.questions) - _SHOWN} more questions (--changes)"


def _shorten(text: str) -> str:
    return textwrap.shorten(text, _WIDTH, placeholder=" …")


def as_json(one: PageState) -> dict[str, Any]:
    """Return a page's state as the JSON object that `--changes` writes for it."""
    row = asdict(one)
    row["changes"] = [change._asdict() for change in one.changes]
    return row
