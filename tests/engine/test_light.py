"""Workers find the functions of the program that starts them, and an import loads no library that it does not need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
from dataclasses import dataclass
from functools import partial
from math import sqrt as root
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

{guard}
    Path("ran.txt").open("a").write("x")
    print([outcome.unwrap() for outcome in open_engine("local", jobs=2).map({work})])
"""
# a script without a guard, such as one copied from a notebook
PLAIN, GUARDED = "if True:", 'if __name__ == "__main__":'


@pytest.mark.parametrize(
    ("start", "guard", "work", "printed"),
    [
        ("program.py", PLAIN, "float, [1, 4]", "[1.0, 4.0]"),
        ("program.py", PLAIN, "root, [1, 4]", "[1.0, 2.0]"),
        ("program.py", GUARDED, "add, [Pair(1, 2)]", "[Pair(one=3, other=0)]"),
        ("-m program", GUARDED, "add, [Pair(1, 2)]", "[Pair(one=3, other=0)]"),
        ("-m program", GUARDED, "partial(scaled, 3), [5]", "[15]"),
        ("-m program", GUARDED, "str, [Pair(4, 5)]", "['Pair(one=4, other=5)']"),
    ],
)
def test_workers_call_functions_of_a_program_without_running_the_program_again(tmp_path, start, guard, work, printed):
    (tmp_path / "program.py").write_text(PROGRAM.format(guard=guard, work=work))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *start.split()]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == printed, done.stderr
    assert (tmp_path / "ran.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        # printing, scans, tables and downloads need these libraries, which would take 30 MB in each worker
        ("exhibit.converters.core.documents", "playwright pypdf pyarrow httpx jinja2"),
        ("exhibit.rag", "faiss onnxruntime torch numpy pypdfium2"),
        ("exhibit.converters.cuad, evaluate_rag, exhibit.rag.__main__", "ray"),
    ],
)
def test_imports_load_no_heavy_library(modules, heavy):
    code = f"import sys, {modules}; print(sorted(set({heavy.split()}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
