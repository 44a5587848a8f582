"""Tests in several processes: what each says is reported, and none is lost in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

_FILES = {
    "test_good.py": "import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_n(n): print('spoken', n)\n",
    "test_wrong.py": "def test_sum():\n    print('what it printed')\n    assert 1 + 1 == 3\n",
    "test_ends.py": "import os\ndef test_before(): pass\ndef test_ends(): os._exit(7)\n",
    "test_teardown.py": "import pytest\n@pytest.fixture\ndef torn():\n    yield\n    raise OSError('torn')\n"
    "def test_torn(torn): pass\n",
}


def _run(folder: Path, *flags: str) -> tuple[int, str]:
    folder.joinpath("pytest.ini").write_text("[pytest]\naddopts = -q\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.testers", *flags, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_what_the_processes_say_is_reported_and_one_that_ends_is_named(tmp_path: Path) -> None:
    for name, text in _FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    code, printed = _run(tmp_path, "--testers", "2")
    assert code == 1
    assert "2 failed, 22 passed, 1 error" in printed
    assert "assert (1 + 1) == 3" in printed
    assert "what it printed" in printed
    assert "spoken" not in printed
    assert "OSError: torn" in printed
    assert "test_ends.py ended with 7" in printed


def test_after_a_failure_all_processes_stop_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text(_FILES["test_wrong.py"] + "#" * 200, encoding="utf-8")
    (tmp_path / "test_waits.py").write_text("import time\ndef test_waits(): time.sleep(100)\n", encoding="utf-8")
    code, printed = _run(tmp_path, "--testers", "2", "-x")
    assert code == 1
    assert "1 failed in" in printed
