"""Documents printed in a process of their own: a page that never ends is set aside, and the browser replaced."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import NamedTuple

from exhibit.converters._benchmark import RawDocument
from exhibit.converters._office import office_page
from exhibit.converters._print import Printer
from exhibit.converters._together import print_together
from exhibit.converters._typeset import html_from_text
from exhibit.engine import Desk, Limits
from exhibit.engine.watch import programs_watched
from exhibit.evidence.printable import Printable
from exhibit.evidence.readers.text import decode
from exhibit.schemas.errors import DocumentError
from exhibit.storage.scratch import scratch_folder

BATCH = 200
"""Documents that are printed at once: 200 clauses take 0.6 s in one print, 11.7 s one by one (two cores)."""
_USUAL = Limits()


class Press:
    """Prints documents one after another; its browser is started by the first, and known afterwards."""

    def __init__(self, limits: Limits = _USUAL) -> None:
        self._limits = limits
        self._stack = ExitStack()
        self._desk: Desk[_Sheet, _Printed] | None = None
        self._folder = Path()
        self.browsers: set[str] = set()

    def __enter__(self) -> Press:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def print(self, raw: RawDocument, corpus: Path) -> tuple[str, ...]:
        """Print a document, read from its original where it has one, into the corpus; return the reader's remarks."""
        return self._print((raw,), corpus).notes

    def print_short(self, documents: Iterable[RawDocument], corpus: Path) -> Iterator[RawDocument]:
        """Yield the documents in order; the short ones are printed into the corpus already, many at a time."""
        for short, group in groupby(documents, key=_is_short):
            for batch in _batches(group) if short else ():
                try:
                    self._print(tuple(batch), corpus)
                except DocumentError:
                    yield from batch  # one of them spoils it for all: they are printed one by one
                    continue
                yield from (replace(document, path=corpus / document.filename) for document in batch)
            yield from group

    def _print(self, documents: tuple[RawDocument, ...], corpus: Path) -> _Printed:
        if self._desk is None:
            # what a browser leaves that had to be killed goes with the folder
            self._folder = self._stack.enter_context(scratch_folder())
            self._desk = Desk(_print_sheet, limits=self._limits)
            self._stack.callback(self._desk.close)
            self._stack.callback(self._end_browser)
        printed = self._desk.hand(_Sheet(documents, corpus.absolute(), self._folder, self._limits))
        self.browsers.add(printed.browser)
        return printed

    def _end_browser(self) -> None:
        if self._desk is not None:
            self._desk.hand(_Sheet((), self._folder, self._folder, self._limits))


@dataclass(frozen=True)
class _Sheet:
    """What is printed at once: each document to a file of its own; none ends the browser."""

    documents: tuple[RawDocument, ...]
    corpus: Path
    folder: Path
    """For what the browser keeps while it runs."""
    limits: Limits

    def __str__(self) -> str:
        """Return what an error calls it."""
        first = self.documents[0] if self.documents else None
        return str(first.original or first.filename) if first else "the end of printing"


class _Printed(NamedTuple):
    browser: str
    notes: tuple[str, ...] = ()


def source_text(raw: RawDocument) -> str | None:
    """Return the source's text, from its file where that is all there is."""
    return raw.text if raw.text is not None or raw.text_path is None else decode(raw.text_path)


def _is_short(document: RawDocument) -> bool:
    return document.short and document.path is None and document.filename.lower().endswith(".pdf")


def _batches(documents: Iterable[RawDocument]) -> Iterator[list[RawDocument]]:
    rest = iter(documents)
    for first in rest:
        yield list(chain([first], islice(rest, BATCH - 1)))


# ---------------------------------------------------------------- in the process that prints


_running: list[Printer] = []
"""The browser of this process, kept from sheet to sheet."""


def _print_sheet(sheet: _Sheet) -> _Printed:
    if not sheet.documents:
        while _running:
            _running.pop().__exit__(None, None, None)
        return _Printed("")
    page = _page(sheet.documents[0]) if len(sheet.documents) == 1 else None
    if not _running:
        os.environ["TMPDIR"] = tempfile.tempdir = str(sheet.folder)
        _running.append(Printer().__enter__())
    (printer,) = _running
    with programs_watched(sheet.limits, str(sheet)):
        if page is None:
            print_together(printer, sheet.documents, sheet.corpus)
        else:
            printer.print_html(page.html, sheet.corpus / sheet.documents[0].filename)
    return _Printed(printer.browser, page.notes if page else ())


def _page(raw: RawDocument) -> Printable:
    if raw.original is not None:
        return office_page(raw.original)
    if raw.typeset is not None:
        return Printable(raw.typeset())
    return Printable(raw.html or html_from_text(source_text(raw) or "", title=raw.heading))
