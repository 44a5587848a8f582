"""Documents printed in a process of their own: one that never ends is set aside, and a browser replaced."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from exhibit.converters._benchmark import RawDocument, source_text
from exhibit.converters._office import office_page
from exhibit.converters._print import Printer
from exhibit.converters._text_pdf import Block, needs_browser, print_blocks, printer_name
from exhibit.converters._typeset import html_from_text
from exhibit.engine import Limits, OneWorker
from exhibit.engine.programs import programs_watched
from exhibit.evidence.printable import Printable
from exhibit.evidence.read import has_page, read_document
from exhibit.evidence.readers import html
from exhibit.storage.scratch import scratch_folder

_USUAL = Limits()


class Press:
    """Prints documents one after another; a browser is started by the first that needs it."""

    def __init__(self, limits: Limits = _USUAL) -> None:
        self._limits = limits
        self._stack = ExitStack()
        self._worker: OneWorker[_Sheet, _Printed] | None = None
        self._folder = Path()
        self.printers: set[str] = set()

    def __enter__(self) -> Press:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def print(self, raw: RawDocument, corpus: Path) -> tuple[str, ...]:
        """Print a document, read from its original where it has one, into the corpus; return the reader's remarks."""
        printed = self._print(raw, corpus)
        self.printers.add(printed.printer)
        return printed.notes

    def _print(self, raw: RawDocument, corpus: Path) -> _Printed:
        if self._worker is None:
            # what a browser leaves that had to be killed goes with the folder
            self._folder = self._stack.enter_context(scratch_folder())
            self._worker = OneWorker(_print_sheet, limits=self._limits)
            self._stack.callback(self._worker.close)
            self._stack.callback(self._end_browser)
        return self._worker.run(_Sheet(raw, corpus.absolute(), self._folder, self._limits))

    def _end_browser(self) -> None:
        if self._worker is not None:
            self._worker.run(_Sheet(None, self._folder, self._folder, self._limits))


@dataclass(frozen=True)
class _Sheet:
    """What is printed at once; without a document the browser ends."""

    document: RawDocument | None
    corpus: Path
    folder: Path
    """For what the browser keeps while it runs."""
    limits: Limits

    def __str__(self) -> str:
        """Return what an error calls it."""
        return str(self.document.original or self.document.filename) if self.document else "the end of printing"


class _Printed(NamedTuple):
    printer: str
    notes: tuple[str, ...] = ()


# ---------------------------------------------------------------- in the process that prints


_running: list[Printer] = []
"""The browser of this process, kept from sheet to sheet."""


def _print_sheet(sheet: _Sheet) -> _Printed:
    raw = sheet.document
    if raw is None:
        while _running:
            _running.pop().__exit__(None, None, None)
        return _Printed("")
    path = sheet.corpus / raw.filename
    text = _text(raw)
    if text is not None:
        print_blocks(text.blocks, path, title=raw.title)
        return _Printed(printer_name(), text.notes)
    page = office_page(raw.original) if raw.original else Printable(raw.html or _text_page(raw))
    if not _running:
        os.environ["TMPDIR"] = tempfile.tempdir = str(sheet.folder)
        _running.append(Printer().__enter__())
    (printer,) = _running
    with programs_watched(sheet.limits, str(sheet)):
        printer.print_html(page.html, path)
    return _Printed(f"Chromium {printer.browser}", page.notes)


class _Text(NamedTuple):
    blocks: Sequence[Block]
    notes: tuple[str, ...] = ()


def _text(raw: RawDocument) -> _Text | None:
    """Return a document that is printed without a browser, and the remarks of its reader; None for any other."""
    if raw.html is not None:
        return None
    if raw.original is None:
        text = _Text(_blocks(raw))
    elif raw.original.suffix.lower() in html.SUFFIXES or has_page(raw.original):
        return None
    else:
        document = read_document(raw.original)
        text = _Text([Block("p", document.text)], document.notes)
    return None if any(needs_browser(block.text) for block in text.blocks) else text


def _blocks(raw: RawDocument) -> Sequence[Block]:
    heading = [Block("h1", raw.heading)] if raw.heading else []
    return raw.blocks or [*heading, Block("p", source_text(raw))]


def _text_page(raw: RawDocument) -> str:
    return html_from_text("\n\n".join(block.text for block in _blocks(raw)))
