"""Other wordings of each kind of question of the benchmarks: some for training, the others only for testing."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from exhibit.converters import contractnli, cuad, maud
from exhibit.schemas.errors import ToolkitError

FOLDER = Path(__file__).parent / "wordings"
OWN = {"cuad": cuad.QUESTIONS, "contractnli": contractnli.QUESTIONS, "maud": maud.QUESTIONS}
"""The converter's wording of each kind of question, by benchmark."""
LABELS = {"cuad": "clause", "contractnli": "hypothesis", "maud": "deal_point"}
"""The label in gold.jsonl that names the kind of a question."""


@dataclass(frozen=True)
class Wordings:
    """The wordings of one kind of question."""

    own: str
    train: tuple[str, ...]
    test: tuple[str, ...]


def read_wordings(source: str) -> dict[str, Wordings]:
    """Return the wordings of each kind of question of a benchmark."""
    path = FOLDER / f"{source}.toml"
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    own = OWN[source]
    if told.keys() != own.keys():
        odd = sorted(told.keys() ^ own.keys())
        raise ToolkitError(f"{path}: its kinds differ from those of converters.{source}: {odd[0]!r}; add or rename it")
    return {kind: Wordings(own[kind], tuple(told[kind]["train"]), tuple(told[kind]["test"])) for kind in own}


def read_queries(source: str) -> dict[str, tuple[str, ...]]:
    """Return, for each query to the clause library, further wordings for training; empty if there are none."""
    path = FOLDER / f"{source}.toml"
    told = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {query: tuple(words["train"]) for query, words in told.items()}
