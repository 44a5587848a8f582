"""Workers import only the modules that their task needs, not the whole program that started them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from exhibit.engine import open_engine

@dataclass(frozen=True)
class Pair:
    one: int
    other: int

def add(pair):
    return Pair(pair.one + pair.other, 0)

def scaled(factor, number):
    return factor * number

if __name__ == "__main__":
    work = {"function": (add, [Pair(1, 2)]), "partial": (partial(scaled, 3), [5]),
            "item": (str, [Pair(4, 5)])}[sys.argv[1]]
    print([outcome.unwrap() for outcome in open_engine("local", jobs=1).map(*work)])
"""


@pytest.mark.parametrize(
    ("what", "printed"),
    [("function", "[Pair(one=3, other=0)]"), ("partial", "[15]"), ("item", "['Pair(one=4, other=5)']")],
)
def test_worker_imports_program_module_started_with_python_m(tmp_path, what, printed):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "program", what]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == printed, done.stderr


def test_documents_module_imports_no_heavy_library():
    """Printing, scans, tables and downloads need these libraries, which would take 30 MB in each worker."""
    heavy = "{'playwright', 'pypdf', 'pyarrow', 'httpx', 'jinja2'} & set(sys.modules)"
    code = f"import sys, exhibit.converters.core.documents; print(sorted({heavy}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
