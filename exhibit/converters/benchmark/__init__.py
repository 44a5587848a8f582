"""The result of a converter's reader: documents, questions with gold quotes, and the counts of skipped items."""

import tomllib
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from exhibit.evidence.readers.text import decode
from exhibit.schemas.errors import BundleError, SourceError, escape_surrogates
from exhibit.schemas.models import Account, DraftInfo, Licence, PatchEntry

Label = str | int | float | bool | None

UNREADABLE = "document cannot be read"
PAST_A_LIMIT = "document passes a limit of time, memory or nesting"
"""The reasons for which any converter leaves out a file."""


Style = Literal["h1", "h2", "p", "pre", "white", "tiny", "outside"]
"""The styles of a printed block; the last three are invisible: white on white, half a point high, beside the page."""


class Block(NamedTuple):
    """A block of a printed document: the document's name, a heading, a paragraph, or preformatted text."""

    style: Style
    text: str


class Item(NamedTuple):
    """A file or a table row of the source; every item must be counted as kept or as left out."""

    kind: Literal["files", "rows"]
    name: str


@dataclass(frozen=True)
class Download:
    """A pinned file or archive: its URL, its size and its SHA-256."""

    url: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class DatasetInfo:
    """The description of a benchmark, known before it is read; the dataset card is written from it."""

    name: str
    title: str
    """The bundle's name on the Hub."""
    benchmark: str
    """The source's own name."""
    summary: str
    url: str
    version: str
    licence: Licence
    citation: str
    expects: str
    """The files that the source must contain, for error messages and --help."""
    downloads: tuple[Download, ...] = ()
    """An archive, or all files of a release without one; empty if no permanent address is known."""
    by_hand: str = ""
    """How to get the source if it cannot be downloaded, for --help and error messages."""
    groups: str | None = None
    headline: str | None = None
    """The benchmark's main metric, such as `ndcg@5`."""
    tags: tuple[str, ...] = ()
    questions: str = ""
    """How the questions were written, for the card."""
    limits: str = ""
    """The limitations that a user must know, for the card: Markdown, see `format_points`."""
    annotations: tuple[str, ...] = ()
    """Who annotated the gold, in the Hub's terms, for the card: `expert-generated`, `crowdsourced` …"""
    derived: str = ""
    """The dataset that the bundle extends, for the card, if it has a name of its own."""
    accepts: tuple[str, ...] = ()
    """Suffixes of single files that can be a source (.jsonl, .csv), besides folders and archives."""
    corpus_only: bool = False
    """Whether the benchmark has only documents: its `train.json` is empty until questions are added."""
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The flags that only this benchmark has, as arguments of argparse."""
    command: str = ""
    """The command before the flags that makes the bundle again, for the card, if it is not a converter's."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """The questions that are asked about every document, by the source's own name for each, in the source's order."""


def read_info(module: str) -> DatasetInfo:
    """Return the description in the TOML file beside a converter: `read_info(__file__)` in cuad.py reads cuad.toml."""
    path = Path(module).with_suffix(".toml")
    fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    limits = fields.pop("limits", "")
    return DatasetInfo(
        name=path.stem,
        licence=Licence(**fields.pop("licence")),
        downloads=tuple(Download(**one) for one in fields.pop("downloads", ())),
        limits=format_points(*limits) if isinstance(limits, tuple) else limits,
        **fields,
    )


def format_points(*texts: str) -> str:
    """Return texts as a Markdown list."""
    return "\n".join(f"- {text}" for text in texts)


@dataclass(frozen=True)
class RawDocument:
    """A document to add to the corpus: an official file to copy, or text or HTML to print to PDF."""

    filename: str
    title: str
    path: Path | None = None
    """The file to copy. If None, `text` or `html` is printed if `filename` ends in .pdf, else written."""
    text: str | None = None
    """The source's text, to which `Quote.spans` refer."""
    text_path: Path | None = None
    """The UTF-8 file that contains `text`; it is read when needed, for corpora that are larger than the memory."""
    html: str | None = None
    blocks: tuple[Block, ...] = ()
    """The blocks to print, if they differ from `heading` and `text`."""
    subject: str = ""
    """The subject in the metadata of a printed file."""
    heading: str = ""
    """The heading above a printed text, if the text does not begin with one."""
    source: str = ""
    """The publisher's address of the document."""
    printer: str = ""
    """The program that printed `path`, if it was printed."""
    original: Path | None = None
    """The file to print; the reader of its kind reads it when it is printed."""
    items: tuple[Item, ...] = ()
    """The source's items from which the document was made, for the account."""
    labels: tuple[tuple[str, str], ...] = ()
    """The source's metadata of the document for `bundle.json`, such as the days of a law's version."""


def read_source_text(raw: RawDocument) -> str:
    """Return the text of a raw document: its `text`, else the content of its `text_path`, else an empty string."""
    return decode(raw.text_path) if raw.text is None and raw.text_path is not None else raw.text or ""


@dataclass(frozen=True)
class Quote:
    """A gold passage as the source gives it."""

    filename: str
    text: str | None
    spans: tuple[tuple[int, int], ...] = ()
    """The quote's offsets in `RawDocument.text`, if the source has them."""
    labels: tuple[tuple[str, Label], ...] = ()
    """The source's labels of this passage alone; the row's labels are added to them."""
    alternatives: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Further locations like `spans`, if the converter cannot decide between them."""
    score: float = 1.0
    """Below 1 if the words at `spans` are only similar to the quote."""
    marked: tuple[tuple[int, int], ...] = ()
    """The offsets in the extracted document that a reviewer marked; they are valid while the words there are the
    same.
    """
    section: bool = False
    """Whether the source cites a heading or a number, and this quote is the text below it."""
    provision: str = ""
    """The provision that the source names instead of a quote, `§ 535 BGB`: its text in the document is the gold."""
    acceptable: tuple[str, ...] = ()
    """Provisions of the same document that are equally right: they become alternatives."""
    stated: int | None = None
    """The page that the source states, if it is unknown whether it counts from 0 or from 1; see `steps.pages`."""
    page: int | None = None
    """The page that the source states: it decides between equal locations, or is the gold if there are no words."""
    answer: bool = False
    """Whether the quote is the answer itself: it is gold only if it occurs exactly once in the document."""


@dataclass(frozen=True)
class RawRow:
    """A question as a converter read it.

    `filename` is the document that the question is about. It must be set for an impossible question, because
    such a question has no quote that names the document.
    """

    id: int
    question: str
    answer: str
    quotes: tuple[Quote, ...] = ()
    filename: str | None = None
    is_impossible: bool = False
    labels: dict[str, Label] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    """The rows of a table from which the question was read, for the account."""
    place: str = ""
    """The position in the source, for the list of skipped items."""
    near_misses: tuple[Quote, ...] = ()
    """The same clause in versions of other days; the label `other_versions` has their locations."""

    @property
    def files(self) -> list[str]:
        """The documents that the question is about, each once."""
        names = (self.filename, *(quote.filename for quote in self.quotes))
        return list(dict.fromkeys(filter(None, names)))

    @property
    def name(self) -> str:
        """The question's name in the list of skipped items: its position in the source, else `row 12`."""
        return self.place or f"row {self.id}"


@dataclass(frozen=True)
class Benchmark:
    """The output of a converter's reader: documents, questions, source checksums and applied patches."""

    documents: list[RawDocument]
    rows: list[RawRow]
    sha256: dict[str, str]
    """The sha256 of the raw files that determine the content, by name."""
    info: DatasetInfo | None = None
    """The description, if it depends on the source or the command line; else None."""
    patches: tuple[PatchEntry, ...] = ()
    """The patches that were applied."""
    draft: DraftInfo | None = None
    """How the questions were drafted; if set, a row whose gold is not located is left out."""
    by_construction: bool = False
    """Whether gold is known by construction; if so, a row whose gold is not located is left out."""


class Tally:
    """Counts the skipped items by reason, and collects notes for the users of the bundle."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.left_out: dict[str, list[str]] = {}
        self.noted: dict[str, list[str]] = {}
        self._items: dict[Item, str] = {}

    def take(self, items: Iterable[Item]) -> None:
        """Record items of the source, so that `account` can check that each of them was kept or left out."""
        for item in items:
            self._items.setdefault(item, "")

    def leave_out(self, reason: str, name: str, *, item: Item | None = None) -> None:
        """Count an item that a rule or an option leaves out; a second reason for the same item is ignored."""
        if item is not None:
            if self._items.get(item):
                return
            self._items[item] = reason
        # a name may not be valid UTF-8, but bundle.json must be
        self.left_out.setdefault(reason, []).append(escape_surrogates(name))

    def leave_out_all(
        self, reason: str, items: Sequence[Item], *, name: str = "", more: str = "", fault: bool = False
    ) -> None:
        """Count all items (files or table rows of the source) of a document or a question as left out.

        `reason` is the reason, and `more` adds details to it. If there are no items, `name` is counted instead.
        With `fault`, the items are counted as faults of the source, which are an error with --strict.
        """
        detail = f": {more}" if more else ""
        count = self.fault if fault else self.leave_out
        for item in items:
            count(reason, f"{item.name}{detail}", item=item)
        if name and not items:
            count(reason, f"{name}{detail}")

    def fault(self, reason: str, name: str, *, item: Item | None = None) -> None:
        """Count a faulty item of the source as left out; with --strict, raise SourceError instead."""
        if self.strict:
            raise SourceError(f"{name}: {reason}; fix the source, or remove --strict")
        self.leave_out(reason, name, item=item)

    def note(self, remark: str, name: str) -> None:
        """Record a note about something unusual in the source; the item itself is not left out."""
        self.noted.setdefault(remark, []).append(escape_surrogates(name))

    def account(self, kept: Iterable[Item]) -> dict[str, Account]:
        """Return, for each kind of item (`files` or `rows`), the numbers of items that were kept and left out.

        Raise BundleError if an item was neither kept nor left out, which is a bug.
        """
        whole = set(kept)
        forgotten = [item for item, reason in self._items.items() if not reason and item not in whole]
        if forgotten:
            raise BundleError(f"{forgotten[0].name}: this item was neither kept nor left out; please report this bug")
        accounts: dict[str, Account] = {}
        for kind in dict.fromkeys(item.kind for item in self._items):
            mine = {item: reason for item, reason in self._items.items() if item.kind == kind}
            lost = Counter(reason for item, reason in mine.items() if item not in whole)
            accounts[kind] = Account(given=len(mine), kept=len(mine) - lost.total(), left_out=dict(lost))
        return accounts


class Converter(Protocol):
    """A module of this package that can be run with `python -m converters.NAME`.

    It may have a function `add_arguments(parser)` for flags that its TOML file cannot describe.
    """

    INFO: DatasetInfo

    def read(self, source: Path, options: Namespace, tally: Tally) -> Benchmark:
        """Read the raw files; write nothing."""


BEYOND = "beyond --limit"
IMPOSSIBLE = "no answer in the document (--answerable-only)"


def choose(benchmark: Benchmark, options: Namespace, tally: Tally) -> Benchmark:
    """Return the benchmark with only the first `--limit` documents and the questions that need no other document.

    With --answerable-only, impossible questions are left out, too. Every row that is left out is counted.
    """
    documents = benchmark.documents[: options.limit]
    names = {document.filename for document in documents}
    for document in benchmark.documents[len(documents) :]:
        tally.leave_out_all(BEYOND, document.items)
    rows = []
    for row in benchmark.rows:
        if row.is_impossible and options.answerable_only:
            tally.leave_out_all(IMPOSSIBLE, row.items, name=row.name)
        elif options.limit is not None and not names.issuperset(row.files):
            tally.leave_out_all(BEYOND, row.items, name=row.name)
        else:
            rows.append(row)
    return replace(benchmark, documents=documents, rows=rows)
