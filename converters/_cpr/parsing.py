"""Exports and pages of a CPR corpus, parsed in a worker: a hostile one is stopped there, and the others go on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from exhibit.converters._text_pdf import Block, Style
from exhibit.converters._text_pdf import printable as drawable
from exhibit.engine.limits import reading
from exhibit.evidence.markup import pieces
from exhibit.law.names import file_key
from exhibit.schemas.errors import DocumentError, printable
from exhibit.schemas.parsing import parse_json

Record = Mapping[str, object]

_CHUNK_ID = re.compile(r"_chunk_(\d+)$")
_MOST_DIGITS = 9
"""Of a chunk's number: no document has a billion chunks, and Python reads no number of 5,000 digits."""
# "Document: …", sometimes "Section: …" over several lines, "Part 1 of 2", a rule: the exporter's, not the rulebook's
_CHUNK_HEAD = re.compile(r"\ADocument: .*?\nPart \d+ of \d+\n=+\n", re.DOTALL)


class Part(NamedTuple):
    """A piece of a document's text, and its number; where it has none, its place in its record."""

    text: str
    number: int
    numbered: bool


class Exported(NamedTuple):
    """A record of an export: which document it is of, and what it says of it."""

    key: str
    """What the chunks of one document share; empty where the record does not say."""
    sourcefile: str
    url: str
    section: str
    parts: tuple[Part, ...]


class Page(NamedTuple):
    """An HTML file: what it is titled, its paragraphs and headings, and all of it as it will be printed."""

    title: str
    blocks: tuple[Block, ...]
    markup: str


def read_export(path: Path) -> list[Exported]:
    """Return the records of a JSON file, none where it is no export of documents; raise DocumentError."""
    data = load_json(path)
    if isinstance(data, dict) and "query" in data:
        return []  # what a search found is parts of documents, for --from-search
    return [_exported(record) for record in records(data)]


def load_json(path: Path) -> object:
    """Return what a JSON file holds; raise DocumentError where it cannot be read."""
    try:
        with reading(str(path), path.stat().st_size):
            return parse_json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), where=path.name, error=DocumentError)
    except OSError as error:
        raise DocumentError(f"{path}: cannot be read: {error.strerror}") from error


def read_page(path: Path) -> Page:
    """Return an HTML file cut into paragraphs and headings."""
    data = path.read_bytes()
    with reading(str(path), len(data)):
        try:
            markup = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            markup = data.decode("cp1252", "replace")  # what browsers take a page for that does not say
        return Page(*_title_and_blocks(markup), markup)


# ---------------------------------------------------------------- exports


def records(data: object) -> Iterator[Record]:
    """Yield the records of an export: one, a list of them, or a search reply's list under a name."""
    if isinstance(data, list):
        for item in data:
            yield from records(item)
    elif isinstance(data, dict):
        if "content" in data or "chunks" in data:
            yield data
        for name in ("value", "results", "documents"):
            if isinstance(data.get(name), list):
                yield from records(data[name])


def string(record: Record, *names: str) -> str:
    """Return the first of these fields that holds words."""
    values = (record.get(name) for name in names)
    return next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")


def document_key(record: Record) -> str:
    """Return what the chunks of one document share; `sourcefile` comes last, as twelve directions are "51Z" in it."""
    return _CHUNK_ID.sub("", string(record, "parent_id", "id")) or string(record, "sourcefile", "document")


def body(content: str) -> str:
    """Return a chunk's own words, without the lines that the exporter set above them."""
    return _CHUNK_HEAD.sub("", content).strip()


def _exported(record: Record) -> Exported:
    sourcefile, url = string(record, "sourcefile", "document"), string(record, "storageUrl", "url")
    # JSON can say half a surrogate pair, which no file can hold
    key, section = printable(document_key(record)), printable(string(record, "sourcepage"))
    return Exported(key, printable(sourcefile), printable(url), section, tuple(_parts(record)))


def _parts(record: Record) -> Iterator[Part]:
    chunks = record.get("chunks")
    # a record with chunks repeats the first of them as its content
    parts = [c for c in chunks if isinstance(c, dict)] if isinstance(chunks, list) and chunks else [record]
    for place, part in enumerate(parts):
        number = _CHUNK_ID.search(string(part, "id"))
        words = printable(body(string(part, "content")))
        numbered = number is not None and len(number.group(1)) <= _MOST_DIGITS
        if words:
            yield Part(words, int(number.group(1)) if number and numbered else place, numbered)


# ---------------------------------------------------------------- pages


_EDGES = frozenset("p div li ul ol table tr section article blockquote pre br dt dd h1 h2 h3 h4 h5 h6".split())
"""Tags that begin or end a paragraph."""
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())


def _title_and_blocks(markup: str) -> tuple[str, tuple[Block, ...]]:
    """Return what a page is titled, and its paragraphs and headings."""
    title, inside = "", ""
    tag: Style = "p"
    blocks: list[Block] = []
    words: list[str] = []

    def end_block() -> None:
        line = " ".join(" ".join(words).split())
        words.clear()
        if line:
            blocks.append(Block(tag, line))

    for kind, value in pieces(markup):
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
"""The export's own mark before each heading."""
_LONGEST_HEADING = 150  # characters: what is longer is a sentence
_OPEN_END = re.compile(r"[.;:,–-]$|\b(and|or)$")


def blocks_of(title: str, text: str) -> list[Block]:
    """Return a document's name and its text, paragraph by paragraph, as they are printed."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", drawable(text)) if part.strip()]
    blocks = [Block("h1", title)]
    if paragraphs and file_key(heading_of(text)).startswith(file_key(title)):
        # the text brings its own title; printing both would repeat it
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
    """Return a text's first line when it is short enough to be its title, else nothing."""
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].strip()
    return first if len(first) <= 2 * _LONGEST_HEADING and "\n" not in first else ""


def _is_heading(paragraph: str, after_separator: bool) -> bool:
    if len(paragraph) > _LONGEST_HEADING or "\n" in paragraph or _OPEN_END.search(paragraph):
        return False
    # chunked exports have lost the separators; a line in capitals is still a heading there
    shouted = paragraph.isupper() and len(paragraph) > 8
    return shouted or (after_separator and not re.match(r"[\d(•£]", paragraph))
