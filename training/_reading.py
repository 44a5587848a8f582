"""Reads documents, questions and gold from bundles; the pipeline's own code splits documents into passages."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from exhibit.evidence import Span
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation, Prepared
from exhibit.rag.questions import understand
from exhibit.schemas.bundle import Question
from exhibit.schemas.errors import BundleError, DocumentError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder, open_bundle
from training.questions import LABELS

PRESET = "routed"
"""The preset that splits documents into passages."""


@dataclass(frozen=True)
class Asked:
    """A question of a bundle about one of its documents."""

    filename: str
    kind: str
    """The kind of the question as `source/kind`; empty if it has none."""
    asks: str
    """The words that the pipeline embeds: the question without the document's name."""
    impossible: bool
    gold: tuple[Span, ...] = ()
    group: str = ""
    """The benchmark of the question, in a collection of several benchmarks."""
    answer: str = ""
    """The expected answer in its source's words."""


@dataclass(frozen=True)
class Graded:
    """A query for a clause library (ACORD), with the grade of each clause that lawyers judged for it."""

    text: str
    grades: dict[str, int]
    split: str = ""


@dataclass
class Material:
    """The training data from one bundle: questions about its documents, and search queries for clauses.

    Lawyers graded the clauses for each search query (ACORD).
    """

    source: str
    bundle: BundleFolder
    asked: list[Asked] = field(default_factory=list)
    graded: list[Graded] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def read_material(root: Path) -> Material:
    """Read the questions of a bundle; its documents are read one by one, by `Reader.read`."""
    bundle = open_bundle(root)
    if bundle.info is None:
        raise BundleError(f"{root}: no bundle.json; training needs a converter's bundle with its gold")
    material = Material(bundle.info.name, bundle)
    lines: dict[int | str, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    for question in bundle.questions:
        own = lines[question.id]
        grades = next((line.labels["grades"] for line in own if line.labels.get("grades")), None)
        if isinstance(grades, str):
            split = str(own[0].labels.get("split") or "")
            material.graded.append(Graded(question.question, json.loads(grades), split))
            continue
        material.asked += _read_question(question, own, material)
    return material


def _read_question(question: Question, lines: list[Gold], material: Material) -> Iterator[Asked]:
    files = {line.filename for line in lines if line.filename}
    if len(files) != 1:
        material.skipped["question about no document, or about several"] += 1
        return
    name = files.pop()
    label = LABELS.get(material.source)
    kind = lines[0].labels.get(label) if label else None
    spans = tuple(Span(*span) for line in lines for span in line.spans)
    if not question.is_impossible and not spans:
        material.skipped["answer that is not located"] += 1
        return
    full, group = f"{material.source}/{kind}" if kind else "", str(lines[0].labels.get("benchmark") or "")
    asks = understand(question.question).asks
    yield Asked(name, full, asks, question.is_impossible, spans, group, question.answer)


class Reader:
    """A reader of documents that splits them into passages with the pipeline's own code."""

    def __init__(self) -> None:
        # the same passages without the lexicon, which training does not need
        self._prepare = Preparation(Config.preset(PRESET, routing=False, lexicon=False))

    def read(self, bundle: BundleFolder, filename: str) -> Prepared | None:
        """Return a document split into passages; None if it has no text."""
        try:
            return self._prepare(bundle.files[filename])
        except DocumentError:
            return None


def hash_words(text: str) -> str:
    """Return the sha256 of a document's words; white space between them does not matter."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()
