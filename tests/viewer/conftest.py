"""Fixtures that several test files of this folder share."""

from pathlib import Path

import pytest
from filelock import FileLock

from exhibit.viewer.report import write_report
from tests.viewer.report_data import make_bundles, make_results


@pytest.fixture(scope="session")
def report_bundles(converted, shared_folder) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and a text bundle whose questions, answers and labels attack the page."""
    folder = shared_folder / "report_bundles"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            make_bundles(folder, converted("cuad"))
    return {"cuad": converted("cuad"), "leases": folder / "leases"}


@pytest.fixture(scope="session")
def report_results(report_bundles, shared_folder) -> Path:
    """The results of an invented run over `report_bundles`, with its report; tests must not change these files."""
    folder = shared_folder / "report_results" / "first"
    with FileLock(shared_folder / "report_results.lock"):
        if not folder.is_dir():
            write_report(make_results(folder, report_bundles, limit=24))
    return folder
