"""The models of an expert's review, and of the gold patch that is made from it.

A review is the file that the review page saves: judgments and corrected gold, by one person. A converter applies a
patch on its next run: corrected gold, and questions and documents to exclude, each with its reason.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import Filename, Natural, NonBlank, Offsets, Sha256
from exhibit.schemas.parsing import faults_in, read_regular

REVIEW: Literal["exhibit-review/1"] = "exhibit-review/1"
PATCH: Literal["exhibit-patch/1"] = "exhibit-patch/1"
_HEAD = 400  # bytes at the start of a file, which state its kind
_LARGEST = 50_000_000
"""Size limit in bytes of a review or a patch: a thousand corrections are a megabyte."""

Judgment = Literal["right", "wrong", "unclear"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class MarkedPassage(_Model):
    """Words of a document that answer a question: offsets in the extracted text, and the words themselves."""

    filename: Filename
    spans: list[Offsets]
    text: NonBlank


class Better(_Model):
    """The corrected gold: passages, or that the documents do not answer; and the answer, if it was wrong."""

    contexts: list[MarkedPassage] = []
    is_impossible: bool = False
    answer: str = ""
    question: str = ""
    """A better wording of the question, if a program drafted it."""

    @model_validator(mode="after")
    def _either(self) -> "Better":
        if self.is_impossible and self.contexts:
            raise ValueError("is_impossible is true, yet there are passages")
        return self

    @property
    def says_something(self) -> bool:
        """Whether it changes the passages."""
        return self.is_impossible or bool(self.contexts)


class ReviewedCase(_Model):
    """One person's judgment of one question; None for a field without judgment."""

    dataset: NonBlank
    id: int | str
    gold: Judgment | None = None
    answer: Judgment | None = None
    comment: str = ""
    better: Better = Better()
    was: Sha256 | None = None
    """`gold_digest` of the judged gold: if a draft now proposes other words, the judgment is void."""


class AddedQuestion(_Model):
    """A question that a reviewer wrote: its answer, and the words of a document that support it."""

    question: NonBlank
    answer: str = ""
    """The answer that an expert would write; without it the marked words are the answer."""
    contexts: list[MarkedPassage] = []
    filename: Filename | None = None
    """The document that the question is about, if nothing in the document answers it."""
    comment: str = ""
    """A comment, for example the reply that a user complained about."""

    @property
    def is_impossible(self) -> bool:
        """Whether the documents do not answer it."""
        return not self.contexts


class Sample(_Model):
    """How the questions were sampled."""

    size: Natural
    of: Natural
    seed: int
    by: list[str]


class Review(_Model):
    """One person's review of a sample of a run."""

    format: Literal["exhibit-review/1"]
    review: NonBlank
    """The same in all files that one page saved."""
    of: Literal["run", "bundle"] | None = None
    """The kind of thing that was reviewed: a run, or a bundle."""
    run: NonBlank
    """The name of the run or of the bundle."""
    reviewer: NonBlank
    sample: Sample
    cases: list[ReviewedCase]
    added: list[AddedQuestion] = []

    @model_validator(mode="after")
    def _once(self) -> "Review":
        _no_twins("the case", [f"{case.dataset} {case.id}" for case in self.cases])
        return self


class SetAsideDocument(_Model):
    """A document to exclude, with all questions about it."""

    filename: Filename
    reason: NonBlank


class SetAsideQuestion(_Model):
    """A question to exclude."""

    id: Natural
    reason: NonBlank


class Correction(_Model):
    """The corrected gold of a question; it is applied only if the gold is still the reviewed one."""

    id: Natural
    was: Sha256
    """`gold_digest` of the contexts to replace."""
    contexts: list[MarkedPassage]
    is_impossible: bool = False
    answer: NonBlank | None = None
    """The expected answer if it changes too; an impossible question has the default refusal."""
    reviewers: Annotated[list[NonBlank], Field(min_length=1)]
    reason: str = ""

    @model_validator(mode="after")
    def _either(self) -> "Correction":
        if self.is_impossible == bool(self.contexts):
            raise ValueError("has contexts exactly when is_impossible is false")
        return self


class Patch(_Model):
    """Corrections to one benchmark's gold."""

    format: Literal["exhibit-patch/1"]
    dataset: NonBlank
    """The bundle's `name` in bundle.json: `cuad`, `maud` …"""
    about: NonBlank
    """The reason for this patch, in a sentence."""
    documents: list[SetAsideDocument] = []
    questions: list[SetAsideQuestion] = []
    corrections: list[Correction] = []

    @model_validator(mode="after")
    def _once(self) -> "Patch":
        _no_twins("the document", [document.filename for document in self.documents])
        _no_twins("the question", [str(q.id) for q in self.questions] + [str(c.id) for c in self.corrections])
        return self


def _no_twins(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name} occurs more than once")
        seen.add(name)


def gold_digest(contexts: Iterable[tuple[str | None, str | None]]) -> str:
    """Return the sha256 of a question's gold: its files and their words, in order, white space ignored."""
    quotes = [[filename, " ".join((text or "").split())] for filename, text in contexts]
    return hashlib.sha256(json.dumps(quotes, ensure_ascii=True).encode("ascii")).hexdigest()


Kind = TypeVar("Kind", Review, Patch)


def is_review(path: Path) -> bool:
    """Return whether a file states that it is a review, not a patch."""
    try:
        with path.open("rb") as file:
            return REVIEW.encode() in file.read(_HEAD)
    except OSError:
        return False


def read_review(path: Path) -> Review:
    """Return a review; raise one error that names every fault of the file."""
    return _read(path, Review)


def read_patch(path: Path) -> Patch:
    """Return a patch; raise one error that names every fault of the file."""
    return _read(path, Patch)


def _read(path: Path, model: type[Kind]) -> Kind:
    try:
        if path.stat().st_size > _LARGEST:
            raise SourceError(f"{path}: over {_LARGEST // 1_000_000} MB, which is no {model.__name__.lower()}")
        return model.model_validate_json(read_regular(path, most=_LARGEST))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise SourceError(f"{path}: no {model.__name__.lower()}: {faults_in(error, most=5)}") from error
