"""Many short texts printed at once and taken apart again: a browser takes as long for one clause as for twenty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exhibit.converters._benchmark import RawDocument
from exhibit.converters._print import Printer
from exhibit.converters._typeset import html_from_text
from exhibit.schemas.errors import DocumentError
from exhibit.storage.scratch import scratch_folder
from exhibit.storage.whole import whole

if TYPE_CHECKING:
    from pypdf import PdfReader
    from pypdf.generic import Destination


def print_together(printer: Printer, documents: Sequence[RawDocument], corpus: Path) -> None:
    """Print each document to a PDF of its own, by way of one print with all of them."""
    from pypdf import PdfReader, PdfWriter  # a tenth of a second, which most commands and workers can spare

    pages = [html_from_text(document.text or "", title=document.heading) for document in documents]
    with scratch_folder() as folder:
        path = folder / "together.pdf"
        printer.print_html(_join(pages), path)
        reader = PdfReader(path)
        starts = [*_starts(reader, len(documents)), len(reader.pages)]
        for number, document in enumerate(documents):
            writer = PdfWriter()
            # the index is on a page of its own at the very front
            for page in range(starts[number], starts[number + 1]):
                writer.add_page(reader.pages[page])
            with whole(corpus / document.filename) as partial, partial.open("wb") as file:
                writer.write(file)


def _join(pages: Sequence[str]) -> str:
    """Return one page with all: an index with a link to each, so that the print knows where each begins."""
    parts = [_parts(page) for page in pages]
    bodies = [body for _, body, _ in parts]
    index = "".join(f'<a href="#{_anchor(number)}">{number}</a> ' for number in range(len(pages)))
    rest = "".join(
        f'<div id="{_anchor(number)}" style="break-before: page">{body}</div>' for number, body in enumerate(bodies)
    )
    head, _, tail = parts[0]
    return f"{head}<div>{index}</div>{rest}{tail}"


def _parts(page: str) -> tuple[str, str, str]:
    """Return a page to the end of its `<body>` tag, what is in it, and the rest."""
    close = page.rfind("</body>")
    begin = page.find(">", max(page.rfind("<body", 0, max(close, 0)), 0), max(close, 0)) + 1
    if close < 0 or "<body" not in page[:begin]:
        raise DocumentError("a typeset page without <body>…</body> cannot be printed together with others")
    return page[:begin], page[begin:close], page[close:]


def _anchor(number: int) -> str:
    return f"document-{number}"


def _starts(reader: PdfReader, count: int) -> list[int]:
    """Return the page, from 0, on which each document begins."""
    places = reader.named_destinations
    anchors = [places.get(f"/{_anchor(number)}") or places.get(_anchor(number)) for number in range(count)]
    starts = [_page_number(reader, place) for place in anchors if place is not None]
    if len(starts) < count or starts != sorted(set(starts)):
        raise DocumentError(f"documents printed together cannot be told apart: {len(starts)} of {count} have a place")
    return starts


def _page_number(reader: PdfReader, place: Destination) -> int:
    number = reader.get_destination_page_number(place)
    return -1 if number is None else number
