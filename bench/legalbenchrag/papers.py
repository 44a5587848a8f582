"""Published figures with their sources: one TOML file per paper, in `papers/`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from exhibit.evaluation.metrics import KS
from exhibit.schemas.errors import ToolkitError

FOLDER = Path(__file__).parent / "papers"
ALL = "ALL"
"""The mean of the four datasets' means."""

Curve = Annotated[list[Annotated[float, Field(ge=0, le=100)]], Field(min_length=len(KS), max_length=len(KS))]
"""Percentages, one for each k."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Method(_Model):
    """A published method, with its values at each k for each metric and dataset."""

    name: str
    precision: dict[str, Curve] = {}
    recall: dict[str, Curve] = {}
    drm: dict[str, Curve] = {}

    def find_curve(self, metric: str, dataset: str) -> Curve | None:
        """Return the method's values of a metric at each k on a dataset; None if they were not published."""
        known: dict[str, Curve] = getattr(self, metric)
        return known.get(dataset)


class Paper(_Model):
    """The source of published figures, and how comparable they are."""

    key: str
    authors: str
    paper: str
    url: str
    date: str
    place: str
    set: str
    same_set: bool
    """Whether its questions and documents are those of LegalBench-RAG-mini."""
    embedder: str
    passages: str
    note: str
    method: list[Method]

    def format_title(self, method: Method) -> str:
        """Return a method's name for tables, followed by the authors of the paper.

        `(another sample)` is added if the paper does not use the questions and documents of LegalBench-RAG-mini.
        """
        return f"{method.name}, {self.authors}{'' if self.same_set else ' (another sample)'}"


@cache
def read_papers() -> tuple[Paper, ...]:
    """Return the published figures of every paper in `papers/`, in the order of the file names."""
    return tuple(read_paper(path) for path in sorted(FOLDER.glob("*.toml")))


def read_paper(path: Path) -> Paper:
    """Read a paper and its figures from a TOML file; raise an error if the file is not valid."""
    try:
        return Paper.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise ToolkitError(
            f"{path}: not a file of published figures: {error}; compare it with the other files in papers/"
        ) from error


def find_best(metric: str, dataset: str, papers: Sequence[Paper] | None = None) -> list[float] | None:
    """Return, for each k, the highest value that a paper reports on the questions of LegalBench-RAG-mini.

    None if no paper has values of this metric on this dataset.
    """
    curves = [
        curve
        for paper in (read_papers() if papers is None else papers)
        if paper.same_set
        for method in paper.method
        if (curve := method.find_curve(metric, dataset)) is not None
    ]
    return [max(values) for values in zip(*curves, strict=True)] if curves else None
