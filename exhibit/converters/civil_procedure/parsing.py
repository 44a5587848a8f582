"""Parses search-index exports and HTML pages in a worker process, so that a hostile file cannot stop the run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from exhibit.converters.benchmark import Block, Item, Style
from exhibit.converters.printing.text_pdf import make_printable as drawable
from exhibit.engine.limits import limit_reading
from exhibit.evidence.files import decode_page
from exhibit.evidence.markup import split_markup
from exhibit.law.names import make_file_key
from exhibit.schemas.errors import DocumentError, escape_surrogates
from exhibit.schemas.parsing import parse_json

Record = Mapping[str, object]

_CHUNK_ID = re.compile(r"_chunk_(\d+)$")
_MOST_DIGITS = 9
"""Most digits of a chunk's number: no document has a billion chunks, and Python refuses to parse 5,000 digits."""
# lines that the exporter added: "Document: …", sometimes "Section: …" over several lines, "Part 1 of 2", a rule
_CHUNK_HEAD = re.compile(r"\ADocument: .*?\nPart \d+ of \d+\n=+\n", re.DOTALL)


@dataclass
class IndexExport:
    """A document that was exported from a search index, as one record or as numbered chunks."""

    key: str
    """The key that the chunks of one document share; empty if records have none."""
    pieces: list[tuple[int, str]] = field(default_factory=list)
    sourcefile: str = ""
    sections: dict[str, None] = field(default_factory=dict)
    url: str = ""
    records: int = 0
    origin: str = ""
    """The file from which it was read."""
    items: list[Item] = field(default_factory=list)
    """The files that contain it, for the account."""

    @property
    def text(self) -> str:
        """The document's text: its chunks in order, without duplicates."""
        ordered = dict.fromkeys(sorted(self.pieces, key=lambda piece: piece[0]))
        return "\n\n".join(text for _, text in ordered)

    def add(self, record: Record) -> None:
        """Add the text and the metadata of one record of the document."""
        # JSON can contain a lone surrogate, which no file can store
        self.sourcefile = self.sourcefile or escape_surrogates(read_string(record, "sourcefile", "document"))
        self.url = self.url or escape_surrogates(read_string(record, "storageUrl", "url"))
        if section := escape_surrogates(read_string(record, "sourcepage")):
            self.sections.setdefault(section)
        self.records += 1
        chunks, first = record.get("chunks"), len(self.pieces)
        # a record with chunks repeats the first chunk as its content
        parts = [c for c in chunks if isinstance(c, dict)] if isinstance(chunks, list) and chunks else [record]
        for place, part in enumerate(parts, first):
            number = _CHUNK_ID.search(read_string(part, "id"))
            if words := escape_surrogates(cut_body(read_string(part, "content"))):
                self.pieces.append((int(number[1]) if number and len(number[1]) <= _MOST_DIGITS else place, words))


class ParsedPage(NamedTuple):
    """An HTML file: its title, its paragraphs and headings, and its whole markup, which is printed to PDF."""

    title: str
    blocks: tuple[Block, ...]
    markup: str


def read_export(path: Path) -> list[IndexExport]:
    """Return the documents of a JSON export; empty if the file is not an export of documents.

    Raise DocumentError if the file cannot be read.
    """
    data = load_json(path)
    exports: dict[str, IndexExport] = {}
    # search results are parts of documents; --from-search reads them
    for record in () if isinstance(data, dict) and "query" in data else read_records(data):
        key = escape_surrogates(make_document_key(record))
        exports.setdefault(key, IndexExport(key)).add(record)
    return list(exports.values())


def load_json(path: Path) -> object:
    """Return the content of a JSON file; raise DocumentError if it cannot be read."""
    try:
        with limit_reading(str(path), path.stat().st_size):
            return parse_json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), where=path.name, error=DocumentError)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error


def read_page(path: Path) -> ParsedPage:
    """Return the title of an HTML file, its paragraphs and headings, and its whole markup."""
    data = path.read_bytes()
    with limit_reading(str(path), len(data)):
        markup = decode_page(data)
        return ParsedPage(*_read_title_and_blocks(markup), markup)


# ---------------------------------------------------------------- exports


def read_records(data: object) -> Iterator[Record]:
    """Yield the records of an export, which may be one record, a list of records, or a search reply with a list."""
    if isinstance(data, list):
        for item in data:
            yield from read_records(item)
    elif isinstance(data, dict):
        if "content" in data or "chunks" in data:
            yield data
        for name in ("value", "results", "documents"):
            if isinstance(data.get(name), list):
                yield from read_records(data[name])


def read_string(record: Record, *names: str) -> str:
    """Return the first of the named fields that contains text; an empty string if there is none."""
    values = (record.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def make_document_key(record: Record) -> str:
    """Return the key that the chunks of one document share, which is made from their ids.

    `sourcefile` is only the fallback, because twelve practice directions share the value `51Z`.
    """
    return _CHUNK_ID.sub("", read_string(record, "parent_id", "id")) or read_string(record, "sourcefile", "document")


def cut_body(content: str) -> str:
    """Return the text of an exported chunk without the header lines that the export program added."""
    return _CHUNK_HEAD.sub("", content).strip()


# ---------------------------------------------------------------- pages


_EDGES = frozenset("p div li ul ol table tr section article blockquote pre br dt dd h1 h2 h3 h4 h5 h6".split())
"""Tags that begin or end a paragraph."""
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())


def _read_title_and_blocks(markup: str) -> tuple[str, tuple[Block, ...]]:
    """Return a page's title, and its paragraphs and headings."""
    title, inside = "", ""
    tag: Style = "p"
    blocks: list[Block] = []
    words: list[str] = []

    def end_block() -> None:
        line = " ".join(" ".join(words).split())
        words.clear()
        if line:
            blocks.append(Block(tag, line))

    for kind, value in split_markup(markup):
        if kind == "text":
            if inside == "title":
                title = title or value
            elif inside not in ("script", "style"):
                words.append(value)
            continue
        if value in _EDGES:
            end_block()
            tag = "h2" if kind == "start" and value in _HEADINGS else "p"
        inside = value if kind == "start" else ""
    end_block()
    return title, tuple(blocks)


_SEPARATOR = "---"
"""The exporter's mark before each heading."""
_LONGEST_HEADING = 150  # characters: a longer line is a sentence
_OPEN_END = re.compile(r"[.;:,–-]$|\b(and|or)$")


def blocks_of(title: str, text: str) -> list[Block]:
    """Return the blocks to print to PDF: a document's name, then its text, paragraph by paragraph."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", drawable(text)) if part.strip()]
    blocks = [Block("h1", title)]
    if paragraphs and make_file_key(heading_of(text)).startswith(make_file_key(title)):
        # the text begins with its own title; printing both would repeat it
        blocks = [Block("h1", paragraphs.pop(0))]
    after_separator = False
    for paragraph in paragraphs:
        if paragraph == _SEPARATOR:
            after_separator = True
            continue
        blocks.append(Block("h2" if _is_heading(paragraph, after_separator) else "p", paragraph))
        after_separator = False
    return blocks


def heading_of(text: str) -> str:
    """Return the first paragraph of a text if it is a single line that is short enough for a title; else empty."""
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].strip()
    return first if len(first) <= 2 * _LONGEST_HEADING and "\n" not in first else ""


def _is_heading(paragraph: str, after_separator: bool) -> bool:
    if len(paragraph) > _LONGEST_HEADING or "\n" in paragraph or _OPEN_END.search(paragraph):
        return False
    # exports in chunks have no separators; there a line in capitals is a heading
    shouted = paragraph.isupper() and len(paragraph) > 8
    return shouted or (after_separator and not re.match(r"[\d(•£]", paragraph))
