"""Ground truth against its source as it is today: pages fetched anew, compared, and the questions that this touches.

python -m converters.web --refresh datasets_out/web

Nothing is written unless it is asked for: `--changes FILE` writes what was found, `--keep` keeps the new pages, so that
the next conversion uses them. The bundle itself is never changed. Exit code 0: every page says what it said; 4: a page
says something else, or is gone; 1: none does, but some could not be had today.
"""

from __future__ import annotations

import json
import sys
import textwrap
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exhibit.converters._web.fetch import Fetched, add_fetch_arguments, fetch_all, fetch_folder, policy_from
from exhibit.evidence import Document, locate, read_document
from exhibit.law.sentences import sentences
from exhibit.schemas.bundle import INFO, read_info
from exhibit.schemas.command import FAILED, documented, guarded
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import Bundle, open_bundle
from exhibit.storage.locations import Remote
from exhibit.storage.place import scratch_folder, write_whole

CHANGED = 4
"""The exit code where a source is not what it was."""
_SHOWN = 5
"""Changes and questions of a page that are printed; `--changes` has all."""
_WIDTH = 100  # of a line on a terminal

State = Literal["same", "changed", "gone", "unknown"]
"""gone: its server says that it is not there; unknown: it could not be had today."""
_GONE = frozenset({404, 410})


class Change(NamedTuple):
    """A passage that was replaced, or only removed or only added."""

    removed: str
    added: str


class Lost(NamedTuple):
    """A question whose gold the source does not have any more."""

    id: int
    quote: str


@dataclass(frozen=True)
class PageState:
    """A document of the bundle and its source today."""

    filename: str
    url: str
    state: State
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    questions: list[Lost] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as `--changes` writes it."""
        parts = {name: [one._asdict() for one in getattr(self, name)] for name in ("changes", "questions")}
        return vars(self) | parts


def changes_between(old: str, new: str) -> list[Change]:
    """Return the sentences in which two texts differ; how they are broken into lines does not count."""
    before, after = _sentences(old), _sentences(new)
    edits = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    changes = [Change(" ".join(before[a:b]), " ".join(after[c:d])) for tag, a, b, c, d in edits if tag != "equal"]
    # the same words may stand in other sentences
    return [change for change in changes if change.removed.split() != change.added.split()]


def _sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    return [plain[span.start : span.end] for span in sentences(plain)]


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    """Compare a bundle with its sources; return 4 where one has changed."""
    parser = documented("python -m converters.web", __doc__)
    parser.add_argument("--refresh", type=Path, required=True, metavar="BUNDLE", help="the bundle to compare")
    parser.add_argument("--changes", type=Path, metavar="FILE", help="write what changed there, too, as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the new pages, for the next conversion to use")
    add_fetch_arguments(parser)
    options = parser.parse_args(argv)
    states = refresh(options.refresh, options)
    sys.stdout.write("\n".join(told(states)) + "\n")
    if options.changes:
        write_whole(options.changes, json.dumps([one.as_json() for one in states], ensure_ascii=False, indent=1) + "\n")
    kinds = {one.state for one in states}
    return CHANGED if kinds & {"changed", "gone"} else FAILED if "unknown" in kinds else 0


# ---------------------------------------------------------------- comparing


def refresh(root: Path, options: Namespace) -> list[PageState]:
    """Return the state of every document that has a web address, in the order of the bundle."""
    if not (root / INFO).is_file():
        raise BundleError(f"{root}: no {INFO} in it, so where its documents come from is not known")
    urls = {
        entry.filename: entry.source
        for entry in read_info(root / INFO).documents
        if entry.source.startswith(("http://", "https://"))
    }
    if not urls:
        raise SourceError(f"{root}: none of its documents comes from a web address")
    bundle = open_bundle(root)
    options.refetch = True
    with ExitStack() as stack:
        temporary = stack.enter_context(scratch_folder())
        folder = fetch_folder() if options.keep else temporary
        fetched = fetch_all(list(urls.values()), folder=folder, policy=policy_from(options), tell=options.keep)
        return [_state(bundle, name, fetched[url]) for name, url in urls.items()]


def _state(bundle: Bundle, name: str, one: Fetched) -> PageState:
    if one.path is not None:
        return _compared(bundle, name, one.url, one.path)
    reason = f"{one.reason}: {one.detail}" if one.detail else one.reason
    if one.status not in _GONE:
        return PageState(name, one.url, "unknown", reason=reason)
    return PageState(name, one.url, "gone", reason=reason, questions=list(_lost(bundle, name, None)))


def _compared(bundle: Bundle, name: str, url: str, path: Path) -> PageState:
    here = bundle.files.get(name)
    if here is None or isinstance(here, Remote):
        raise BundleError(f"{bundle.address}: corpus/ has no file {name!r} on this disk; pull the bundle first")
    old = read_document(here)
    try:
        new = read_document(path)
    except ToolkitError as error:
        return PageState(name, url, "unknown", reason=f"cannot be read: {error}")
    changes = changes_between(old.text, new.text)
    lost = list(_lost(bundle, name, new)) if changes else []
    return PageState(name, url, "changed" if changes else "same", changes=changes, questions=lost)


def _lost(bundle: Bundle, name: str, new: Document | None) -> Iterator[Lost]:
    """Yield the questions whose gold stood in a file and is not in what became of it."""
    for line in bundle.gold:
        quote = _quote(bundle, line) if line.filename == name else ""
        if quote and (new is None or not locate(quote, new)):
            yield Lost(line.id, quote)


def _quote(bundle: Bundle, line: Gold) -> str:
    """Return the words that a line of gold is about, as train.json has them."""
    contexts = next((question.contexts for question in bundle.questions if question.id == line.id), ())
    return (contexts[line.context].text or "") if line.context is not None and line.context < len(contexts) else ""


# ---------------------------------------------------------------- telling


def told(states: Sequence[PageState]) -> list[str]:
    """Return what a terminal shows: each page that changed, then how many did not."""
    lines: list[str] = []
    for one in (one for one in states if one.state != "same"):
        lines.append(f"{one.state}: {one.filename} ({one.url})")
        if one.reason:
            lines.append(f"  {one.reason}")
        lines += _change_lines(one)
    counts = Counter(one.state for one in states)
    unknown = f", {counts['unknown']} not had today" if counts["unknown"] else ""
    lost = {question.id for one in states for question in one.questions}
    lines.append(
        f"{len(states)} pages: {counts['same']} as they were, {counts['changed']} changed, "
        f"{counts['gone']} gone{unknown}; questions whose gold is gone: {len(lost)}"
    )
    return lines


def _change_lines(one: PageState) -> Iterator[str]:
    for change in one.changes[:_SHOWN]:
        yield from (f"  {sign} {_short(text)}" for sign, text in zip("-+", change, strict=True) if text)
    yield from (f"  question {id}: its gold is gone: {_short(quote)}" for id, quote in one.questions[:_SHOWN])
    more = sum(max(0, len(parts) - _SHOWN) for parts in (one.changes, one.questions))
    if more:
        yield f"  … and {more} more (--changes)"


def _short(text: str) -> str:
    return textwrap.shorten(text, _WIDTH, placeholder=" …")
