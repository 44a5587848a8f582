"""The Python examples of docs/tutorial.md run in order in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

from tests.rag.models import link_models

PAGE = (
    (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8").partition("## From Python")[2]
)


def test_tutorial_python_examples_run_and_write_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXHIBIT_CACHE", str(link_models(tmp_path / "cache")))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/tutorial.md", "exec"), names)
    assert "nowhere: no such folder" in capsys.readouterr().out
    assert (tmp_path / "results" / "after" / "report.html").is_file()
