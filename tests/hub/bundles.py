"""A small, valid bundle for the tests of publish and pull, with any names and any licence."""

import random
from collections.abc import Mapping
from pathlib import Path

from exhibit.schemas.bundle import CARD, CORPUS, GOLD, INFO, TRAIN, write_gold, write_info, write_train
from exhibit.schemas.models import (
    FORMAT,
    HOWS,
    BundleInfo,
    Context,
    Counts,
    DocumentEntry,
    FileEntry,
    Gold,
    Licence,
    Row,
    SourceEntry,
    Tool,
)
from exhibit.storage.bundle import sha256_of

CC_BY = Licence(id="cc-by-4.0", name="CC BY 4.0", url="https://creativecommons.org/licenses/by/4.0/")
CLAUSE = "This Charter is governed by the law of Norway."
CARD_TEXT = """---
license: cc-by-4.0
configs:
- config_name: questions
  default: true
  data_files:
  - split: train
    path: train.json
- config_name: gold
  data_files:
  - split: train
    path: gold.jsonl
- config_name: corpus
  data_files:
  - split: train
    path: "extra/corpus-*.bin"
---

# Charters

```python
questions = load_dataset("datasets_out/charters", split="train")
gold = load_dataset("datasets_out/charters", "gold", split="train")
```
"""


def large(seed: str, size: int = 300_000) -> bytes:
    """Return incompressible binary data, which the Hub stores as a large file."""
    return b"%PDF-1.7\n" + random.Random(seed).randbytes(size)


def charter(name: str) -> bytes:
    """Return a charter of two clauses, as text."""
    return f"CHARTER of {name}\n\n1. Law. {CLAUSE}\n\n2. Hire. The hire is due in advance.\n".encode()


def write(
    folder: Path,
    *,
    names: tuple[str, ...] = ("aurora.txt",),
    more: Mapping[str, bytes] | None = None,
    licence: Licence = CC_BY,
    card: str = CARD_TEXT,
) -> Path:
    """Write a bundle with one question about each charter; `more` has further files, by path."""
    files = {f"{CORPUS}/{name}": charter(name) for name in names} | dict(more or {})
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    rows, gold = [], []
    for id, name in enumerate(names):
        question = f"Which law governs the charter of {name}?"
        contexts = [Context(filename=name, text=CLAUSE)]
        rows.append(Row(id=id, question=question, answer="Norwegian law", is_impossible=False, contexts=contexts))
        start = charter(name).decode().index(CLAUSE)
        spans = [(start, start + len(CLAUSE))]
        labels = {"clause": "law"}
        gold.append(
            Gold(id=id, context=0, filename=name, pages=[], spans=spans, alternatives=[], how="exact", labels=labels)
        )
    write_train(rows, folder / TRAIN)
    write_gold(gold, folder / GOLD)
    (folder / CARD).write_text(card, encoding="utf-8")
    _describe(folder, names, licence)
    return folder


def _describe(folder: Path, names: tuple[str, ...], licence: Licence) -> None:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != INFO)
    documents = sorted(path for path in paths if path.parent.name == CORPUS)
    info = BundleInfo(
        format=FORMAT,
        name="charters",
        title="Charters",
        source=SourceEntry(name="Charters of the Northern Line"),
        licence=licence,
        counts=Counts(documents=len(documents), questions=len(names), answerable=len(names), impossible=0,
                      contexts=len(names), located={how: len(names) if how == "exact" else 0 for how in HOWS}),
        left_out={},
        noted={},
        documents=[DocumentEntry(filename=path.name, title=path.stem or "-", characters=path.stat().st_size)
            for path in documents
        ],
        files={
            path.relative_to(folder).as_posix(): FileEntry(sha256=sha256_of(path), bytes=path.stat().st_size)
            for path in paths
        },
        tool=Tool(name="exhibit-rag", version="0"),
        options={},
    )  # fmt: skip
    write_info(info, folder / INFO)


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the content of every file in a folder, by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
