"""What several test files of this folder need, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evaluation.report_data import make_bundles


@pytest.fixture(scope="session")
def report_bundles(converted, tmp_path_factory) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and one of text whose every field attacks the page."""
    return make_bundles(tmp_path_factory.mktemp("bundles"), converted("cuad"))
