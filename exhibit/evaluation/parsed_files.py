"""Read the output of other systems from files: parsed texts, one file per document, and chunks, one per row.

Parsed texts are plain text, Markdown or HTML, or the JSON of Docling, MinerU, Unstructured, Marker or LlamaParse, with
or without pages. Chunks are JSONL, JSON, CSV or Parquet with the usual field names (`servers/shapes.toml`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.converters.benchmark import Tally
from exhibit.converters.raw.records import read_records
from exhibit.evaluation.cases import Passage
from exhibit.evaluation.servers.shapes import Names, PassagesError, read_passages
from exhibit.evidence import Document, Page, Span
from exhibit.evidence.parser_markup import blank_markup
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import parse_json, read_outside, read_regular
from exhibit.storage.atomic import list_files

_TEXTS = (".txt", ".text", ".md", ".markdown", ".mmd", ".html", ".htm")
_ENDINGS = (*_TEXTS, ".json")
_PARTS = ("pages", "elements", "content_list", "children", "items", "documents", "result", "data")
"""The JSON fields that contain the elements of a file or of an element."""
_WORDS = ("md", "markdown", "md_content", "text", "content", "html", "page_content", "latex")
"""The JSON fields that contain the text of an element, in order of preference."""
_PAGE_FROM_0, _PAGE_FROM_1 = ("page_idx", "page_index"), ("page_number", "page_no", "page")
_DEEPEST = 40
"""The deepest nesting of elements that is read; Marker and Docling have up to six levels."""


class TextElement(NamedTuple):
    """The text of an element of a parsed document, and its page where the parser reports it."""

    page: int | None
    text: str


@dataclass(frozen=True)
class ParsedFolder:
    """The parsed texts of a folder by corpus file, and the files that were not read, with the reason."""

    texts: dict[str, Document]
    left_out: dict[str, str] = field(default_factory=dict)


def read_parsed_folder(folder: Path, names: Names) -> ParsedFolder:
    """Read the parsed texts of a folder and its subfolders; `names` maps the name of a file to a corpus file."""
    if not folder.is_dir():
        raise SourceError(f"{folder}: no such folder; --parsed takes NAME=FOLDER with one file per document")
    found: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for path in list_files(folder):
        shown = path.relative_to(folder).as_posix()
        filename = names(path.name)
        if path.suffix.lower() not in _ENDINGS:
            left_out[shown] = f"not one of {', '.join(_ENDINGS)}"
        elif filename is None:
            left_out[shown] = "its name matches no document of the bundle"
        elif filename in found:
            raise SourceError(
                f"{folder}: {found[filename].name} and {path.name} both match {filename}; remove one of them"
            )
        else:
            found[filename] = path
    if not found:
        raise SourceError(
            f"{folder}: none of its {len(left_out)} files has the name of a document of the bundle; "
            "name each file after its document"
        )
    return ParsedFolder({name: read_parsed(path, name) for name, path in found.items()}, left_out)


def read_parsed(path: Path, filename: str) -> Document:
    """Return a parsed text as a document, with blanks in place of the markup, and with pages if the file has them."""
    text = read_outside(path, error=SourceError)
    if path.suffix.lower() != ".json":
        return join_pages(filename, text.split("\f")) if "\f" in text else _make_document(filename, text, ())
    try:
        elements = list(_list_elements(parse_json(text, where=path, error=SourceError), None, 0))
    except RecursionError:
        raise SourceError(f"{path}: its elements are nested too deeply") from None
    if not elements:
        raise SourceError(f"{path}: contains no text; the fields {', '.join(_WORDS)} were searched")
    pages = [(page, "\n\n".join(one.text for one in group)) for page, group in groupby(elements, key=lambda e: e.page)]
    if any(page is None for page, _ in pages):
        return _make_document(filename, "\n\n".join(text for _, text in pages), ())
    return join_pages(filename, [text for _, text in pages], [page or 1 for page, _ in pages])


def join_pages(filename: str, texts: Iterable[str], numbers: Iterable[int] | None = None) -> Document:
    """Join the texts of pages into one document with page boundaries, so that running headers can be recognised."""
    pages, start, kept = [], 0, list(texts)
    for number, text in zip(numbers or range(1, len(kept) + 1), kept, strict=True):
        pages.append(Page(number, Span(start, start + len(text)), 0, 0))
        start += len(text) + 1
    return _make_document(filename, "\n".join(kept), tuple(pages))


def _make_document(filename: str, text: str, pages: tuple[Page, ...]) -> Document:
    return Document(filename, blank_markup(text), pages)


# ---------------------------------------------------------------- JSON


def _list_elements(given: Any, page: int | None, depth: int) -> Iterator[TextElement]:
    """Yield the elements of a parser's JSON in reading order."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(given, list):
        for one in given:
            yield from _list_elements(one, page, depth + 1)
    elif isinstance(given, str) and given.strip():
        yield TextElement(page, given)
    elif isinstance(given, Mapping):
        page = _find_page(given, page)
        if isinstance(given.get("texts"), list) and isinstance(given.get("body"), Mapping):
            yield from _list_docling_elements(given, given["body"], depth)
        elif words := _get_words(given):
            yield TextElement(page, words)
        else:
            for name in _PARTS:
                if isinstance(given.get(name), list | Mapping):
                    yield from _list_elements(given[name], page, depth + 1)


def _find_page(element: Mapping[str, Any], page: int | None) -> int | None:
    """Return an element's page number, from 1; if the element has none, return `page`, its parent's page number."""
    origin = element.get("prov") or element.get("metadata") or {}
    origin = origin[0] if isinstance(origin, list) and origin else origin
    for fields in (element, origin if isinstance(origin, Mapping) else {}):
        for names, first in ((_PAGE_FROM_0, 1), (_PAGE_FROM_1, 0)):
            number = next((fields[name] for name in names if type(fields.get(name)) is int), None)
            if number is not None:
                return int(number) + first
    return page


def _get_words(element: Mapping[str, Any]) -> str:
    """Return the text of an element of a parser's JSON output; for a table, with its caption and footnotes.

    The result is empty if the element has child elements, because these contain the text.
    """
    if isinstance(element.get("table_body"), str):  # MinerU
        parts = (element.get("table_caption"), [element["table_body"]], element.get("table_footnote"))
        return "\n".join(str(line) for part in parts if part for line in (part if isinstance(part, list) else [part]))
    metadata = element.get("metadata")
    if isinstance(metadata, Mapping) and isinstance(metadata.get("text_as_html"), str):  # Unstructured
        return str(metadata["text_as_html"])
    if any(isinstance(element.get(name), list) and element[name] for name in _PARTS):
        return ""
    return next((element[name] for name in _WORDS if isinstance(element.get(name), str) and element[name].strip()), "")


def _list_docling_elements(whole: Mapping[str, Any], node: Mapping[str, Any], depth: int) -> Iterator[TextElement]:
    """Yield the elements of a Docling document in the order of its body."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(node.get("data"), Mapping):
        rows = node["data"].get("grid") or [node["data"].get("table_cells") or []]
        lines = (" | ".join(str(cell.get("text", "")) for cell in row if isinstance(cell, Mapping)) for row in rows)
        yield TextElement(_find_page(node, None), "\n".join(f"| {line} |" for line in lines))
    elif isinstance(node.get("text"), str) and node["text"].strip():
        yield TextElement(_find_page(node, None), node["text"])
    for child in node.get("children") or ():
        parts = str(child.get("$ref") or child.get("cref") or "").split("/") if isinstance(child, Mapping) else []
        items = whole.get(parts[1]) if len(parts) == 3 else None
        if isinstance(items, list) and parts[2].isdecimal() and int(parts[2]) < len(items):
            yield from _list_docling_elements(whole, items[int(parts[2])], depth + 1)


# ---------------------------------------------------------------- chunks


def read_chunks(path: Path, names: Names) -> tuple[Passage, ...]:
    """Return the chunks of a file in order; `names` maps a chunk's file name to a corpus file."""
    if not path.is_file():
        raise SourceError(
            f"{path}: no such file; --chunks takes a JSONL, JSON, CSV or Parquet file with one chunk per row"
        )
    records = read_records(path, read_regular(path, most=None), Tally(strict=True), accounted=False)
    try:
        chunks = read_passages([record.cells for record in records], names=names)
    except PassagesError as error:
        raise SourceError(f"{path}: {error}; a chunk must be an object with its text in `text`") from error
    if not any(chunk.text.strip() or chunk.span for chunk in chunks):
        raise SourceError(
            f"{path}: no chunk has text or offsets; the fields `text`, `content`, `page_content` … were searched"
        )
    return chunks
