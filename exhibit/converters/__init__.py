"""Converters, one module per benchmark, and the classes of their output: documents, questions with gold, and counts."""

import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from exhibit.schemas.errors import BundleError, SourceError, escape_surrogates
from exhibit.schemas.models import Account, CardText, DraftInfo
from exhibit.schemas.models import Licence as Licence

Label = str | int | float | bool | None
Spans = tuple[tuple[int, int], ...]
Style = Literal["h1", "h2", "p", "pre"]
ItemKind = Literal["files", "rows"]

UNREADABLE = "document cannot be read"
PAST_A_LIMIT = "document exceeds a limit of time, memory or nesting"
BEYOND = "beyond --max-documents"


class Block(NamedTuple):
    """A block of a printed document: the document's name, a heading, a paragraph, or preformatted text."""

    style: Style
    text: str


class Item(NamedTuple):
    """A file or a table row of the source; a conversion must either keep each item or count it as left out."""

    kind: ItemKind
    name: str


class Download(NamedTuple):
    url: str
    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class DatasetInfo(CardText):
    """The description of a benchmark, known before it is read, and used for the dataset card."""

    name: str
    title: str  # the bundle's name on the Hub
    benchmark: str  # the source's own name
    summary: str
    expects: str  # the files that the source must contain
    licence: Licence  # the licence, or its short name, such as `cc0-1.0`
    url: str = ""
    version: str = ""
    citation: str = ""
    downloads: tuple[Download, ...] = ()
    by_hand: str = ""  # how to get a source that cannot be downloaded
    groups: str | None = None
    headline: str | None = None  # the benchmark's main metric, such as `ndcg@5`
    accepts: tuple[str, ...] = ()  # suffixes of single files that can be a source, besides folders and archives
    splits: tuple[str, ...] = ()  # the values of the label `split`, from which --split chooses
    corpus_only: bool = False  # the benchmark has no questions

    def __post_init__(self) -> None:
        licence: object = self.licence
        if isinstance(licence, str):
            slug = licence.strip().lower()
            terms = Licence(id=slug, name=licence.strip(), redistributable=bool(_OPEN.fullmatch(slug)))
            object.__setattr__(self, "licence", terms)
        for name in ("summary", "by_hand", "questions", "limits"):
            # without indentation, and each paragraph and each list item on one line
            text = re.sub(r"\n +(?!- | )", " ", getattr(self, name).strip())
            object.__setattr__(self, name, re.sub(r"\n +(?=- )", "\n", text))


def list_questions(text: str) -> dict[str, str]:
    """Return each question by its name in the source; each line of `text` has the form `NAME = question`."""
    lines = re.sub(r"\n {8,}", " ", text).splitlines()
    return dict(line.strip().split(" = ", 1) for line in lines if line.strip())


# only licences known as open allow copies of the documents
_OPEN = re.compile(r"cc0-1\.0|cc-by(-sa)?-\d\.\d|mit|apache-2\.0|bsd-[23]-clause|odc-by|pddl|unlicense")

CC_BY = Licence(
    id="cc-by-4.0", name="CC BY 4.0", url="https://creativecommons.org/licenses/by/4.0/", redistributable=True
)


@dataclass(frozen=True)
class RawDocument:
    """A document for the corpus: an official file to copy, or text, blocks or HTML to print to PDF."""

    filename: str
    title: str
    path: Path | None = None  # the file to copy; if None, the content is printed (.pdf) or written
    text: str | None = None  # the source's text, to which `Quote.spans` refer
    own_text: bool = False  # whether `Quote.spans` refer to the text that is extracted from `path`
    html: str | None = None
    blocks: tuple[Block, ...] = ()
    subject: str = ""  # the subject in the metadata of a printed file
    source: str = ""  # the publisher's address
    printer: str = ""  # the program that printed `path`
    original: Path | None = None  # the file to print; the reader of its kind reads it
    items: tuple[Item, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()  # labels for `bundle.json`, such as the days of a law's version

    def __str__(self) -> str:
        return str(self.original or self.path or self.filename)

    @property
    def file(self) -> Item | None:
        return next((item for item in self.items if item.kind == "files"), None)


@dataclass(frozen=True)
class Quote:
    filename: str
    text: str | None
    spans: Spans = ()  # the quote's spans in `RawDocument.text`
    labels: tuple[tuple[str, Label], ...] = ()  # labels of this passage; the row's labels are added
    alternatives: tuple[Spans, ...] = ()
    score: float = 1.0  # below 1 if the words at `spans` are only similar
    marked: Spans = ()  # a reviewer's spans in the extracted document, valid while the words there are the same
    section: bool = False  # whether this is the text below a heading or number that the source cites
    # the provision that the source cites without a quote, such as `§ 535 BGB`: its text in the document is the gold
    provision: str = ""
    acceptable: tuple[str, ...] = ()  # provisions of the same document that are equally right
    # the page in the source, counted from 0 or from 1 (see `settle_pages`); without words, the page is the gold
    page: int | None = None
    answer: bool = False  # whether this is the expected answer: a short answer is gold only if it occurs exactly once


@dataclass(frozen=True)
class RawRow:
    """A question as a converter read it; an impossible question must name its document in `filename`."""

    id: int
    question: str
    answer: str
    quotes: tuple[Quote, ...] = ()
    filename: str | None = None
    is_impossible: bool = False
    labels: Mapping[str, Label] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    place: str = ""  # the position in the source, for the list of skipped items
    near_misses: tuple[Quote, ...] = ()  # the same clause in versions of other days

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(filter(None, (self.filename, *(quote.filename for quote in self.quotes)))))

    @property
    def name(self) -> str:
        return self.place or f"question {self.id}"


@dataclass(frozen=True)
class Benchmark:
    documents: list[RawDocument]
    rows: list[RawRow]
    sha256: dict[str, str]  # checksums of the raw files that determine the content
    info: DatasetInfo | None = None  # the description, if it depends on the source or the command line
    draft: DraftInfo | None = None  # how the questions were drafted; rows without located gold are omitted
    by_construction: bool = False  # whether gold is known by construction; rows without located gold are then omitted


class Tally:
    """Counts the skipped items by reason, and collects notes for the users of the bundle."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.left_out: dict[str, list[str]] = {}
        self.noted: dict[str, list[str]] = {}
        self._items: dict[Item, str] = {}

    def take(self, items: Iterable[Item]) -> None:
        """Record items of the source; `account` later checks that each was kept or left out."""
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
        """Count all items of a document or a question as left out; if it has no items, count `name`."""
        count = self.fault if fault else self.leave_out
        detail = f": {more}" if more else ""
        for item in items:
            count(reason, f"{item.name}{detail}", item=item)
        if name and not items:
            count(reason, f"{name}{detail}")

    def fault(self, reason: str, name: str, *, item: Item | None = None) -> None:
        """Count a faulty item of the source as left out; with --strict, raise SourceError instead."""
        self._check(reason, name)
        self.leave_out(reason, name, item=item)

    def _check(self, reason: str, name: str) -> None:
        if self.strict:
            raise SourceError(f"{name}: {reason}; fix the source, or remove --strict")

    def note(self, remark: str, name: str, *, fault: bool = False) -> None:
        """Record something unusual in the source, but keep the item; with --strict, raise if `fault` is true."""
        if fault:
            self._check(remark, name)
        self.noted.setdefault(remark, []).append(escape_surrogates(name))

    def account(self, kept: Iterable[Item]) -> dict[ItemKind, Account]:
        """Return, by kind, the numbers of items that were kept and left out; raise if an item was forgotten."""
        whole = set(kept)
        if forgotten := [item for item, reason in self._items.items() if not reason and item not in whole]:
            raise BundleError(f"{forgotten[0].name}: this item was neither kept nor left out; please report this bug")
        accounts: dict[ItemKind, Account] = {}
        for kind in dict.fromkeys(item.kind for item in self._items):
            reasons = {item: reason for item, reason in self._items.items() if item.kind == kind}
            lost = Counter(reason for item, reason in reasons.items() if item not in whole)
            accounts[kind] = Account(given=len(reasons), kept=len(reasons) - lost.total(), left_out=dict(lost))
        return accounts


class Converter(Protocol):
    """A module that `exhibit convert NAME` runs; it may have `add_arguments(parser)` for additional flags."""

    INFO: DatasetInfo

    def read(self, source: Path, options: Namespace, tally: Tally) -> Benchmark: ...


def choose(benchmark: Benchmark, options: Namespace, tally: Tally) -> Benchmark:
    split = vars(options).get("split") or "all"
    ours = [row for row in benchmark.rows if split in ("all", row.labels.get("split"))]
    aside = {row.filename for row in benchmark.rows} - {row.filename for row in ours}
    candidates = [document for document in benchmark.documents if document.filename not in aside]
    documents = candidates[: options.max_documents]
    names = {document.filename for document in documents}
    for document in candidates[len(documents) :]:
        tally.leave_out_all(BEYOND, document.items)
    rows = []
    for row in benchmark.rows:
        if split not in ("all", row.labels.get("split")):
            tally.leave_out_all("part of another split (--split)", row.items, name=row.name)
        elif row.is_impossible and options.answerable_only:
            tally.leave_out_all("no answer in the document (--answerable-only)", row.items, name=row.name)
        elif options.max_documents is not None and not names.issuperset(row.files):
            tally.leave_out_all(BEYOND, row.items, name=row.name)
        else:
            rows.append(row)
    return replace(benchmark, documents=documents, rows=rows)
