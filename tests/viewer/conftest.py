"""What several test files of this folder need, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhibit.viewer import write_report
from tests.viewer.report_data import make_bundles, make_results


@pytest.fixture(scope="session")
def report_bundles(converted, tmp_path_factory) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and one of text whose every field attacks the page."""
    return make_bundles(tmp_path_factory.mktemp("bundles"), converted("cuad"))


@pytest.fixture(scope="session")
def report_results(report_bundles, tmp_path_factory) -> Path:
    """The results of a made-up run over both, with its report, for all who change nothing there."""
    folder = make_results(tmp_path_factory.mktemp("results") / "first", report_bundles, limit=24)
    write_report(folder)
    return folder
