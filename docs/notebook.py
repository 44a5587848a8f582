"""Runs docs/notebook.ipynb and saves its outputs: `python -m docs.notebook` (extras notebook and test).

Tables, text and PNG pictures are saved. Progress (stderr) and the JPEG form of each picture are not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
LONGEST = 600
"""The timeout of a cell in seconds: a cell takes a few seconds, or more on a busy machine."""


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook's cells in order, in a new kernel whose working folder is `folder`; return the notebook."""
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(
        book, timeout=LONGEST, resources={"metadata": {"path": str(folder)}}, record_timing=False, kernel_name="python3"
    )
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                output.get("data", {}).pop("image/jpeg", None)
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return book


if __name__ == "__main__":
    nbformat.write(execute(NOTEBOOK, NOTEBOOK.parent), NOTEBOOK)
