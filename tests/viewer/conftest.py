"""Fixtures that several test files of this folder share."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from exhibit.engine import Limits
from exhibit.evidence.document import Page
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import write_whole
from exhibit.viewer import drawing
from exhibit.viewer.report import write_report
from tests.viewer.report_data import make_bundles, make_results


@pytest.fixture(scope="session")
def report_bundles(converted, shared_folder) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and a text bundle with an attack on the page in every field."""
    folder = shared_folder / "report_bundles"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            make_bundles(folder, converted("cuad"))
    return {"cuad": converted("cuad"), "leases": folder / "leases"}


@pytest.fixture(scope="session")
def report_results(report_bundles, shared_folder) -> Path:
    """The results of an invented run over both bundles, with its report; tests must not change it."""
    folder = shared_folder / "report_results" / "first"
    with FileLock(shared_folder / "report_results.lock"):
        if not folder.is_dir():
            write_report(make_results(folder, report_bundles, limit=24))
    return folder


@pytest.fixture(scope="session", autouse=True)
def pages_once(shared_folder) -> Iterator[None]:
    """Draw each page of a document only once, in this process; repeated drawing took half the time of reports.

    Documents that are remote or have limits are still drawn by workers.
    """
    draw, picture = drawing._draw_items, drawing._draw_picture
    folder = shared_folder / "pages"
    folder.mkdir(exist_ok=True)

    def drawn(items: list[drawing.Sheets], **how: Any) -> Iterator[tuple[drawing.Sheets, Any]]:
        if how["limits"] != Limits() or not all(isinstance(item.path, Path) and item.path.is_file() for item in items):
            yield from draw(items, **how)
            return
        for item in items:
            try:
                yield item, sheets_of(item)
            except ToolkitError as error:
                yield item, error

    def sheets_of(item: drawing.Sheets) -> dict[str, Any]:
        known = folder / f"{_digest(item.path.read_bytes(), item.number, item.filename, item.pages, item.spans)}.pickle"
        if known.is_file():
            told: dict[str, Any] = pickle.loads(known.read_bytes())
            for number in told.get("pages", {}):
                remembered(item, number)
            return told
        told = drawing.draw_sheets(item)
        write_whole(known, pickle.dumps(told))
        return told

    def remembered(sheets: drawing.Sheets, page: Page | int) -> str | None:
        number = page if isinstance(page, int) else page.number
        key = _digest(sheets.path.read_bytes(), number)
        if known := next(folder.glob(f"{key}.*"), None):
            name = f"{sheets.number}-{number}{known.suffix}"
            sheets.folder.mkdir(parents=True, exist_ok=True)
            (sheets.folder / name).write_bytes(known.read_bytes())
            return name
        name = picture(sheets, page)
        if name is not None:
            write_whole(folder / f"{key}{Path(name).suffix}", (sheets.folder / name).read_bytes())
        return name

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "_draw_items", drawn)
        patch.setattr(drawing, "_draw_picture", remembered)
        yield


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
