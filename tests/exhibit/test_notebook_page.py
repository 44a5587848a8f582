"""docs/notebook.ipynb runs from top to bottom, in plain Python and in Jupyter, and its stored output is right."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import exhibit

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
MOST = 1 << 20
"""The most bytes of the notebook with its pictures."""


def code_cells() -> list[dict[str, Any]]:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def outputs(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [output.get("data", {}) for cell in cells for output in cell["outputs"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the layout of this project: an empty docs/ folder beside the samples."""
    shutil.copytree(ROOT / "samples" / "cuad", tmp_path / "samples" / "cuad")
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def test_notebook_contains_every_call_of_notebook_api():
    text = "\n".join("".join(cell["source"]) for cell in code_cells())
    calls = ("exhibit.load(", "bundle.show(33", "exhibit.convert(", "exhibit.evaluate(", "exhibit.compare(")
    assert all(call in text for call in (*calls, "bundle.questions", "bundle.gold", "bundle.dataset("))


@pytest.mark.slow
def test_notebook_cells_run_in_order(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
    # with one contract and no model, the cells call the same functions and are quick
    monkeypatch.setattr(exhibit, "convert", partial(exhibit.convert, max_documents=1, jobs=1))
    run, quick = (exhibit.evaluate, {"embedder": "hashing", "threads": 1, "limit": 8, "report_cases": 0, "llm": "none"})
    monkeypatch.setattr(exhibit, "evaluate", lambda path, **more: run(path, **{**more, **quick}))
    names: dict[str, Any] = {}
    # one contract gives no interval, and the last cell prints an interval
    for cell in code_cells()[:-1]:
        exec("".join(cell["source"]), names)
    assert len(names["bundle"].questions) == names["made"].info.counts.questions == 41
    assert names["bundle"].show(33).width > 500
    assert names["compared"].overlap.asked == len(names["usual"].rows) == 8


def test_notebook_file_contains_output_of_its_cells():
    cells = code_cells()
    assert NOTEBOOK.stat().st_size < MOST
    assert all(cell["outputs"] for cell in cells[1:]), "every cell but the imports shows something"
    shown = outputs(cells)
    [picture] = [data["image/png"] for data in shown if "image/png" in data]
    page = Image.open(io.BytesIO(base64.b64decode("".join(picture)))).convert("RGB")
    # gold is drawn in colour on a black and white page: a marked page has coloured pixels
    marked = sum(count for count, colour in page.getcolors(page.width * page.height) if max(colour) - min(colour) > 60)
    assert marked > 500
    assert sum("<table" in "".join(data.get("text/html", "")) for data in shown) >= 4
    told = json.dumps(json.loads(NOTEBOOK.read_text(encoding="utf-8")), ensure_ascii=False)
    assert not re.search(r'file:///|"/(home|tmp|work|root|Users)/|Traceback', told)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "run once, from the top"


@pytest.mark.slow
@pytest.mark.extra
def test_jupyter_runs_notebook_from_top_to_bottom(folder):
    from docs.notebook import execute  # this import needs the extras notebook and test

    book = execute(NOTEBOOK, folder)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    kinds = [sorted(set(data) - {"text/plain"}) for data in outputs(cells)]
    assert kinds == [sorted(set(data) - {"text/plain"}) for data in outputs(code_cells())]
    assert (folder / "results" / "notebook-usual" / "report.html").is_file()
