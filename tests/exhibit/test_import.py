"""`import exhibit` in a checkout, next to user modules with common names; test_wheel tests the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = ("exhibit", "schemas", "rag", "evaluation")


@pytest.mark.parametrize(
    "order",
    [pytest.param(MODULES, id="exhibit first"), pytest.param(MODULES[::-1], id="exhibit last", marks=pytest.mark.slow)],
)
def test_modules_of_the_user_s_own_stand_beside_it(order, tmp_path):
    for name in ("rag", "evaluation"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text("MINE = True", encoding="utf-8")
    (tmp_path / "schemas.py").write_text("MINE = True", encoding="utf-8")
    code = f"import sys\nbefore = list(sys.path)\nimport {', '.join(order)}\nimport exhibit.rag, exhibit.engine\n"
    code += "assert schemas.MINE and rag.MINE and evaluation.MINE and not hasattr(exhibit.rag, 'MINE')\n"
    code += "assert sys.path == before; print(exhibit.load, exhibit.schemas.__file__)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and str(ROOT / "exhibit" / "schemas") in done.stdout, done.stderr
