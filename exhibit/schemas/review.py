"""The models of an expert's review, which the review page saves, and of the patch of the gold that is made from it."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import Filename, Natural, NonBlank, Offsets, Sha256, StrictModel
from exhibit.schemas.parsing import LARGEST_FILE, format_faults, read_text

REVIEW: Literal["exhibit-review/1"] = "exhibit-review/1"
PATCH: Literal["exhibit-patch/1"] = "exhibit-patch/1"

Judgment = Literal["right", "wrong", "unclear"]


class MarkedPassage(StrictModel):
    """A passage of a document that answers a question: its offsets in the extracted text, and its words."""

    filename: Filename
    spans: list[Offsets]
    text: NonBlank


class Better(StrictModel):
    """A reviewer's correction of a question: the right answer, and the right passages."""

    contexts: list[MarkedPassage] = Field(default=[])
    is_impossible: bool = False
    answer: str = ""
    question: str = ""  # A better wording of the question, if a program drafted it

    @model_validator(mode="after")
    def _either(self) -> "Better":
        if self.is_impossible and self.contexts:
            raise ValueError("is_impossible is true, but there are passages")
        return self

    @property
    def has_correction(self) -> bool:
        """Whether the correction gives other gold passages, or states that no passage answers the question."""
        return self.is_impossible or bool(self.contexts)


class ReviewedCase(StrictModel):
    """One person's judgment of one question; a field without judgment is None."""

    dataset: NonBlank
    id: int | str
    gold: Judgment | None = None
    answer: Judgment | None = None
    comment: str = ""
    better: Better = Better()
    was: Sha256 | None = None  # `digest_gold` of the judged gold; if a draft has other passages, the judgment is void


class AddedQuestion(StrictModel):
    """A question that a reviewer wrote: its answer, and the passage that supports the answer."""

    question: NonBlank
    answer: str = ""  # The answer that an expert would write; if empty, the marked passage is the answer
    contexts: list[MarkedPassage] = Field(default=[])
    filename: Filename | None = None  # The document that the question is about, if the document does not answer it
    comment: str = ""  # A comment, for example the reply that a user complained about

    @property
    def is_impossible(self) -> bool:
        return not self.contexts


class Sample(StrictModel):
    """A sample of a run's questions: `size` of the run's `of` questions, stratified by `by` and drawn with `seed`."""

    size: Natural
    of: Natural
    seed: int
    by: list[str]


class Review(StrictModel):
    """One person's review of a sample of a run."""

    format: Literal["exhibit-review/1"]
    review: NonBlank  # The identity of the review; it is the same in all files that one review page saved
    of: Literal["run", "bundle"] | None = None  # The kind of thing that was reviewed: a run, or a bundle
    run: NonBlank  # The name of the run or of the bundle
    reviewer: NonBlank
    sample: Sample
    cases: list[ReviewedCase]
    added: list[AddedQuestion] = Field(default=[])

    @model_validator(mode="after")
    def _once(self) -> "Review":
        _refuse_twins("the case", [f"{case.dataset} {case.id}" for case in self.cases])
        return self


class SetAsideDocument(StrictModel):  # with all questions about it
    filename: Filename
    reason: NonBlank


class SetAsideQuestion(StrictModel):
    id: Natural
    reason: NonBlank


class Correction(StrictModel):
    """The corrected gold of a question; it is applied only if the question still has the gold that was reviewed."""

    id: Natural
    was: Sha256  # `digest_gold` of the contexts to replace
    contexts: list[MarkedPassage]
    is_impossible: bool = False
    answer: NonBlank | None = None  # None if it is unchanged; an impossible question has the default refusal
    reviewers: Annotated[list[NonBlank], Field(min_length=1)]
    reason: str = ""

    @model_validator(mode="after")
    def _either(self) -> "Correction":
        if self.is_impossible == bool(self.contexts):
            raise ValueError("must have contexts if is_impossible is false, and none if it is true")
        return self


class Patch(StrictModel):
    """Corrections to the gold of one benchmark."""

    format: Literal["exhibit-patch/1"]
    dataset: NonBlank  # The bundle's `name` in bundle.json: `cuad`, `maud` …
    about: NonBlank  # The reason for this patch, in a sentence
    documents: list[SetAsideDocument] = Field(default=[])
    questions: list[SetAsideQuestion] = Field(default=[])
    corrections: list[Correction] = Field(default=[])

    @model_validator(mode="after")
    def _once(self) -> "Patch":
        _refuse_twins("the document", [document.filename for document in self.documents])
        _refuse_twins("the question", [str(q.id) for q in self.questions] + [str(c.id) for c in self.corrections])
        return self


def _refuse_twins(what: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{what} {name} occurs more than once")


def digest_gold(contexts: Iterable[tuple[str | None, str | None]]) -> str:
    """Return the sha256 of a question's gold: its files and texts in order, without regard to white space."""
    quotes = [[filename, " ".join((text or "").split())] for filename, text in contexts]
    return hashlib.sha256(json.dumps(quotes, ensure_ascii=True).encode("ascii")).hexdigest()


Kind = TypeVar("Kind", Review, Patch)


def is_review(path: Path) -> bool:
    """Return whether the start of a file states that it is a review, not a patch."""
    with path.open("rb") as file:
        return REVIEW.encode() in file.read(400)


def read_review(path: Path) -> Review:
    return _read(path, Review)


def read_patch(path: Path) -> Patch:
    return _read(path, Patch)


def _read(path: Path, model: type[Kind]) -> Kind:
    try:
        return model.model_validate_json(read_text(path, error=SourceError, most=LARGEST_FILE))
    except ValidationError as error:
        raise SourceError(f"{path}: is not a valid {model.__name__.lower()}: {format_faults(error, most=5)}") from error
