"""What a converter reads: documents, questions with the quotes that answer them, and what it had to leave out."""

import tomllib
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from exhibit.evidence.readers.text import decode
from exhibit.schemas.errors import BundleError, SourceError, printable
from exhibit.schemas.models import Account, DraftInfo, Licence, PatchEntry

Label = str | int | float | bool | None

UNREADABLE = "document cannot be read"
PAST_A_LIMIT = "document passes a limit of time, memory or nesting"
"""Reasons to leave out a file, whichever converter meets it."""


Style = Literal["h1", "h2", "p", "pre", "white", "tiny", "outside"]
"""The last three print words that nobody sees: white on white, half a point high, beside the page."""


class Block(NamedTuple):
    """A stretch of a printed document: its name, a heading, text, or text set for a typewriter."""

    style: Style
    text: str


class Item(NamedTuple):
    """One thing that a source gave and that the account must tell of: a file of a folder, a row of a table."""

    kind: Literal["files", "rows"]
    name: str


@dataclass(frozen=True)
class Download:
    """A pinned file or archive: where it is, how long, and what it must hash to."""

    url: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of a benchmark before it is read; the card is written from it."""

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
    """What the source must hold, for error messages and --help."""
    downloads: tuple[Download, ...] = ()
    """An archive, or all files of a release that has none; empty where no address is known whose bytes stay."""
    by_hand: str = ""
    """How to get it where nothing is downloaded, for --help and error messages."""
    groups: str | None = None
    headline: str | None = None
    """The metric that stands for the benchmark in one figure, such as `ndcg@5`."""
    tags: tuple[str, ...] = ()
    questions: str = ""
    """How the questions came to be worded, for the card."""
    limits: str = ""
    """What a user must know before trusting a number, for the card: Markdown, see `points`."""
    annotations: tuple[str, ...] = ()
    """Who marked the gold, in the Hub's words, for the card: `expert-generated`, `crowdsourced` …"""
    derived: str = ""
    """The dataset that the bundle extends, for the card, where it is known by a name of its own."""
    accepts: tuple[str, ...] = ()
    """Endings of single files that are a source by themselves (.jsonl, .csv), besides folders and archives."""
    corpus_only: bool = False
    """A benchmark that only gives documents: its `train.json` is empty until somebody asks questions."""
    flags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The flags that only this benchmark has, as argparse takes them."""
    command: str = ""
    """The words in front of the flags that make the bundle again, for the card, where it is no converter's."""
    asked: Mapping[str, str] = field(default_factory=dict)
    """The questions that every document is asked, by the source's own name for each and in its order."""


def read_info(module: str) -> DatasetInfo:
    """Return what the TOML file beside a converter says: `read_info(__file__)` of cuad.py reads cuad.toml."""
    path = Path(module).with_suffix(".toml")
    fields: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    limits = fields.pop("limits", "")
    return DatasetInfo(
        name=path.stem,
        licence=Licence(**fields.pop("licence")),
        downloads=tuple(Download(**one) for one in fields.pop("downloads", ())),
        limits=points(*limits) if isinstance(limits, tuple) else limits,
        **fields,
    )


def points(*texts: str) -> str:
    """Return texts as a Markdown list."""
    return "\n".join(f"- {text}" for text in texts)


@dataclass(frozen=True)
class RawDocument:
    """A document on its way into the corpus: an official file, or text or HTML to be printed."""

    filename: str
    title: str
    path: Path | None = None
    """The file to copy. Without it, `text` or `html` is printed when `filename` ends in .pdf, else written."""
    text: str | None = None
    """The source's text, which `Quote.spans` count in."""
    text_path: Path | None = None
    """The UTF-8 file that holds `text`, read when it is needed: for corpora too large to hold at once."""
    html: str | None = None
    blocks: tuple[Block, ...] = ()
    """The text as it is printed, where that is not `heading` and `text`."""
    subject: str = ""
    """What the metadata of a printed file says beside its title."""
    heading: str = ""
    """Set above a printed text; the source's own first line usually does."""
    source: str = ""
    """Where the publisher has it."""
    printer: str = ""
    """What printed `path`, where something did."""
    original: Path | None = None
    """The file that it is printed from, by the reader of its kind; read when it is printed."""
    items: tuple[Item, ...] = ()
    """What it came from, for the account."""
    labels: tuple[tuple[str, str], ...] = ()
    """What the source says of it, for `bundle.json`: the days of a law's version."""


def source_text(raw: RawDocument) -> str:
    """Return the source's text, from its file where that is all there is."""
    return decode(raw.text_path) if raw.text is None and raw.text_path is not None else raw.text or ""


@dataclass(frozen=True)
class Quote:
    """A gold passage as the source gives it."""

    filename: str
    text: str | None
    spans: tuple[tuple[int, int], ...] = ()
    """Its offsets in `RawDocument.text`, where the source knows them."""
    labels: tuple[tuple[str, Label], ...] = ()
    """What the source says of this passage alone; the row's labels are added to it."""
    alternatives: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Further places like `spans`, where the converter cannot tell which one is meant."""
    score: float = 1.0
    """Below 1 where the words at `spans` are only similar to the quote."""
    marked: tuple[tuple[int, int], ...] = ()
    """Its offsets in the document as extracted, as a reviewer marked it; they hold while the words are the same."""
    section: bool = False
    """Whether the source cites a heading or a number, and these are the words under it."""
    provision: str = ""
    """The provision that the source names instead of words, `§ 535 BGB`: its text in the document is the gold."""
    acceptable: tuple[str, ...] = ()
    """Provisions of the same document that are as right as this one: they become alternatives."""
    stated: int | None = None
    """The page that the source states, counted from 0 or from 1 as all its quotes together tell; `page` is sure."""
    page: int | None = None
    """The page that the source states for it: it decides between equal places, or is the gold where no words are."""
    answer: bool = False
    """Whether these are the words of the answer: gold where they stand once in the document, and nothing elsewhere."""


@dataclass(frozen=True)
class RawRow:
    """A question; `filename` is the document it is about, which an impossible one has no quote from."""

    id: int
    question: str
    answer: str
    quotes: tuple[Quote, ...] = ()
    filename: str | None = None
    is_impossible: bool = False
    labels: dict[str, Label] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    """The rows of a table that it was read from, for the account."""
    place: str = ""
    """Where it stands in the source, for the list of what is left out."""
    near_misses: tuple[Quote, ...] = ()
    """The same clause as of other days; the label `other_versions` says where each stands."""

    @property
    def files(self) -> list[str]:
        """The documents that it is about, each once."""
        names = (self.filename, *(quote.filename for quote in self.quotes))
        return list(dict.fromkeys(filter(None, names)))

    @property
    def name(self) -> str:
        """What the list of what is left out calls it."""
        return self.place or f"row {self.id}"


@dataclass(frozen=True)
class Benchmark:
    """Everything a converter read."""

    documents: list[RawDocument]
    rows: list[RawRow]
    sha256: dict[str, str]
    """The raw files that decided the content, by name."""
    info: DatasetInfo | None = None
    """What is known of it, where only the source or the command line can say."""
    patches: tuple[PatchEntry, ...] = ()
    """What was applied to it."""
    draft: DraftInfo | None = None
    """How its questions were drafted: then a row whose gold is not located is left out."""
    by_construction: bool = False
    """Whether gold is known by construction: then, too, a row whose gold is not located is left out."""


class Tally:
    """Counts what was left out and why, and what a reader of the bundle should know."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.left_out: dict[str, list[str]] = {}
        self.noted: dict[str, list[str]] = {}
        self._items: dict[Item, str] = {}

    def take(self, items: Iterable[Item]) -> None:
        """Remember what the source gave: each must be kept in the end, or left out for one reason."""
        for item in items:
            self._items.setdefault(item, "")

    def leave_out(self, reason: str, name: str, *, item: Item | None = None) -> None:
        """Count something that a rule or an option leaves out; an item is left out once, for the first reason."""
        if item is not None:
            if self._items.get(item):
                return
            self._items[item] = reason
        self.left_out.setdefault(reason, []).append(printable(name))  # a name may be no UTF-8, which bundle.json is

    def leave_out_all(
        self, reason: str, items: Sequence[Item], *, name: str = "", more: str = "", fault: bool = False
    ) -> None:
        """Leave out everything that a document or a row came from; where that is nothing, itself by its name."""
        detail = f": {more}" if more else ""
        for item in items:
            (self.fault if fault else self.leave_out)(reason, f"{item.name}{detail}", item=item)
        if name and not items:
            self.leave_out(reason, f"{name}{detail}")

    def fault(self, reason: str, name: str, *, item: Item | None = None) -> None:
        """Count something that is wrong with the source; with --strict, stop."""
        if self.strict:
            raise SourceError(f"{name}: {reason} (--strict)")
        self.leave_out(reason, name, item=item)

    def note(self, remark: str, name: str) -> None:
        """Remember a peculiarity that changes nothing in what is kept."""
        self.noted.setdefault(remark, []).append(printable(name))

    def account(self, kept: Iterable[Item]) -> dict[str, Account]:
        """Return how many files and rows were given, kept and left out; one that is neither is a fault of ours."""
        whole = set(kept)
        forgotten = [item for item, reason in self._items.items() if not reason and item not in whole]
        if forgotten:
            raise BundleError(f"{forgotten[0].name}: neither kept nor left out; please report this bug")
        accounts: dict[str, Account] = {}
        for kind in dict.fromkeys(item.kind for item in self._items):
            mine = {item: reason for item, reason in self._items.items() if item.kind == kind}
            lost = Counter(reason for item, reason in mine.items() if item not in whole)
            accounts[kind] = Account(given=len(mine), kept=len(mine) - lost.total(), left_out=dict(lost))
        return accounts


class Converter(Protocol):
    """A module of this folder that can be run with `python -m converters.NAME`.

    It may have `add_arguments(parser)`, for flags that its TOML file cannot give.
    """

    INFO: DatasetInfo

    def read(self, source: Path, options: Namespace, tally: Tally) -> Benchmark:
        """Read the raw files; write nothing."""


BEYOND = "beyond --limit"
IMPOSSIBLE = "no answer in the document (--answerable-only)"


def choose(benchmark: Benchmark, options: Namespace, tally: Tally) -> Benchmark:
    """Return the first documents and the questions about them; every row that is left out is counted."""
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
