"""docs/tutorial.md, followed in an empty folder, ends with an evaluation of ten user documents."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.loopback import chat
from tests.evaluation.loopback import serving as rag_serving

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
TEN = 10
MINUTES = 10
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.mark.slow
def test_tutorial_commands_evaluate_ten_documents_without_browser(tmp_path):
    """Needs only the base install, without a browser."""
    (tmp_path / "contracts").mkdir()
    for path in sorted((ROOT / "training" / "lessons" / "documents").glob("*-*.md"))[:TEN]:
        shutil.copy(path, tmp_path / "contracts" / f"{path.stem}.txt")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['playwright'] = None\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "hidden"), str(ROOT)])}
    before = os.times()
    with rag_serving() as server:
        server.reply = lambda question: chat("Not found in provided documents", [{"content": question, "file": "a.md"}])
        for line in COMMANDS[1:]:
            words = shlex.split(line.replace("http://localhost:8000/ask", server.url))
            done = subprocess.run(
                [sys.executable, "-m", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode in (0, 1 if words[1] == "doctor" else 0), f"{line}\n{done.stdout}\n{done.stderr}"
    used = os.times()
    assert sum(used[2:4]) - sum(before[2:4]) < MINUTES * 60, "seconds of processor time"
    assert "recall@10" in done.stdout and (tmp_path / "results" / "mine" / "report.html").is_file()
