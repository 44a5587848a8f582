"""Further wordings of each kind of question in the benchmarks: some for training, others only for testing.

Each kind of question also has the benchmark's own wording.
"""

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
    """The wordings of one kind of question, such as `Governing Law` in CUAD.

    `own` is the benchmark's wording. Models are trained on the wordings in `train`, and never on those in
    `test`.
    """

    own: str
    train: tuple[str, ...]
    test: tuple[str, ...]


def read_wordings(source: str) -> dict[str, Wordings]:
    """Return, for each kind of question, the benchmark's wording and our wordings for training and for tests."""
    path = FOLDER / f"{source}.toml"
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    own = OWN[source]
    if told.keys() != own.keys():
        odd = sorted(told.keys() ^ own.keys())
        raise ToolkitError(f"{path}: its kinds differ from those of converters.{source}: {odd[0]!r}; add or rename it")
    return {kind: Wordings(own[kind], tuple(told[kind]["train"]), tuple(told[kind]["test"])) for kind in own}


def read_queries(source: str) -> dict[str, tuple[str, ...]]:
    """Return further wordings of a benchmark's queries for training, as `{query: wordings}`.

    The result is empty if the benchmark has no file of wordings.
    """
    path = FOLDER / f"{source}.toml"
    told = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {query: tuple(words["train"]) for query, words in told.items()}
