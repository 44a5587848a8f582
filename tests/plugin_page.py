"""The example distribution of docs/extending.md, and the documents for its commands."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))


def write_files(folder: Path) -> None:
    """Write the folders `exhibit-leases` and `house` of the page into a folder."""
    [questions] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    house = {"house/faq.json": questions, "house/hearing.trn": "THE COURT\tPlease be seated.\n"}
    package = {f"exhibit-leases/{name}": text for name, text in FILES.items()}
    for name, text in {**package, "exhibit-leases/exhibit_leases/__init__.py": "", **house}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
