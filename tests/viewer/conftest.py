"""What several test files of this folder need, made once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from exhibit.viewer import drawing, write_report
from tests.viewer.report_data import make_bundles, make_results


@pytest.fixture(scope="session")
def report_bundles(converted, shared_folder) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and one of text whose every field attacks the page."""
    folder = shared_folder / "report_bundles"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            make_bundles(folder, converted("cuad"))
    return {"cuad": converted("cuad"), "leases": folder / "leases"}


@pytest.fixture(scope="session")
def report_results(report_bundles, shared_folder) -> Path:
    """The results of a made-up run over both, with its report, for all who change nothing there."""
    folder = shared_folder / "report_results" / "first"
    with FileLock(shared_folder / "report_results.lock"):
        if not folder.is_dir():
            write_report(make_results(folder, report_bundles, limit=24))
    return folder


@pytest.fixture(scope="session", autouse=True)
def pages_once() -> Iterator[None]:
    """Let the same pages of the same document be drawn once: reports of the same run were half drawing them again."""
    draw = drawing._drawn
    known: dict[object, tuple[Any, dict[str, bytes]]] = {}

    def remembered(items: list[drawing.Sheets], **how: Any) -> Iterator[tuple[drawing.Sheets, Any]]:
        keys = {item: _content(item, how["limits"]) for item in items}
        rest = draw([item for item in items if keys[item] not in known], **how)
        for item in items:
            if keys[item] in known:
                outcome, pictures = known[keys[item]]
                for name, data in pictures.items():
                    item.folder.mkdir(parents=True, exist_ok=True)
                    (item.folder / name).write_bytes(data)
                yield item, outcome
                continue
            _, outcome = next(rest)
            if keys[item] is not None and isinstance(outcome, dict):
                names = [page[0] for page in outcome.get("pages", {}).values()]
                known[keys[item]] = outcome, {name: (item.folder / name).read_bytes() for name in names}
            yield item, outcome

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "_drawn", remembered)
        yield


def _content(item: drawing.Sheets, limits: object) -> object:
    """Return what decides how a document is drawn; None where it is not to be had here."""
    if not isinstance(item.path, Path) or not item.path.is_file():
        return None
    return hashlib.sha256(item.path.read_bytes()).digest(), item.number, item.filename, item.pages, item.spans, limits
