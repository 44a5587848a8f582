"""A fixture for the tests of readers."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """A function that writes a file into the test's folder."""

    def write_file(name: str, data: bytes | str) -> Path:
        (tmp_path / name).write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
        return tmp_path / name

    return write_file
