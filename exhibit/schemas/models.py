"""The models of `train.json`, `gold.jsonl` and `bundle.json`, from which the JSON Schema files are generated."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from exhibit.schemas.layout import HOWS, IMPOSSIBLE_ANSWER, How

__all__ = ["HOWS", "IMPOSSIBLE_ANSWER", "How"]  # used through this module

FORMAT: Literal["exhibit-bundle/1"] = "exhibit-bundle/1"


def _check_basename(name: str) -> str:
    if name in {".", ".."} or "/" in name or "\0" in name:
        raise ValueError("must be a plain file name, not a path")
    if len(name.encode("utf-8", "surrogatepass")) > 255:
        raise ValueError("is longer than 255 bytes, which file systems do not allow")
    return name


def _check_inside(path: str) -> str:
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise ValueError("must be a relative path inside the bundle")
    return path


def _check_order(span: tuple[int, int]) -> tuple[int, int]:
    if span[0] >= span[1]:
        raise ValueError("the start must be before the end")
    return span


# `\S` anywhere: JSON Schema and pydantic both search for a pattern without anchors.
NonBlank = Annotated[str, Field(pattern=r"\S")]
Filename = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_check_basename)]
BundlePath = Annotated[str, Field(min_length=1), AfterValidator(_check_inside)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Offsets = Annotated[tuple[Natural, Natural], AfterValidator(_check_order)]


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Context(StrictModel):
    filename: Filename
    text: str | None = None


class Row(StrictModel):
    """One question of `train.json`: these five fields and no others."""

    id: Natural
    question: NonBlank
    answer: NonBlank
    is_impossible: bool
    contexts: list[Context]

    @model_validator(mode="after")
    def _impossible_has_no_passage(self) -> "Row":
        if self.is_impossible and any(c.text for c in self.contexts):
            raise ValueError("is_impossible is true, but a context has text")
        return self


class Gold(StrictModel):
    """One line of `gold.jsonl`: the location of a gold passage of `train.json` in the document's text."""

    id: Natural
    context: Natural | None
    filename: Filename | None
    pages: list[Positive]
    spans: list[Offsets]
    alternatives: list[Annotated[list[Offsets], Field(min_length=1)]]
    how: How
    score: Annotated[Annotated[float, Field(ge=0, le=1)] | None, Field(validate_default=True)] = 1.0
    labels: dict[str, str | int | float | bool | None] = {}

    @field_validator("score")
    @classmethod
    def _none_where_absent(cls, value: float | None, info: ValidationInfo) -> float | None:
        return None if info.data.get("how") == "absent" else value

    @model_validator(mode="after")
    def _found_means_somewhere(self) -> "Gold":
        if (self.how == "absent") == bool(self.spans):
            raise ValueError("must have no spans if `how` is 'absent', and at least one span otherwise")
        if self.score is None and self.spans:
            raise ValueError("must have a score if the passage was found")
        if self.context is not None and self.filename is None:
            raise ValueError("must have a filename if it has a context")
        return self


class DraftedRow(Row):
    """One line of `drafts.jsonl`: a question that a person has not yet reviewed, with its proposed locations."""

    gold: list[Gold]

    @property
    def row(self) -> Row:
        return Row(**{name: getattr(self, name) for name in Row.model_fields})


class FileEntry(StrictModel):
    sha256: Sha256
    bytes: Natural


class DocumentEntry(StrictModel):
    filename: Filename
    title: str
    pages: Natural | None = None
    characters: Natural
    source: str = ""
    ocr: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}  # mean confidence of OCR on each page, by page number
    labels: dict[str, str] = {}  # The source's metadata of the document, such as the dates of a law's version


class Licence(StrictModel):
    """The terms under which the source may be used, and whether it may be redistributed."""

    id: NonBlank
    name: NonBlank
    url: str = ""
    redistributable: bool = True
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class CardText:
    """The parts of a dataset card that the bundle's files do not provide, such as tags and known limitations."""

    tags: tuple[str, ...] = ()
    questions: str = ""  # how the questions were written
    limits: str = ""  # known limitations, in Markdown
    annotations: tuple[str, ...] = ()  # who annotated the gold, in the Hub's terms, such as `expert-generated`
    derived: str = ""  # the dataset that the bundle extends
    converter: str = ""  # the converter of the bundle, if its name differs from the bundle's
    command: str = ""  # the command, without flags, that makes the bundle again, if no converter makes it
    sample: str = ""  # the project's sample from which the bundle is made, as in `samples/cuad`


class SourceEntry(StrictModel):
    name: NonBlank
    url: str = ""
    version: str = ""
    sha256: dict[str, Sha256] = {}


class Counts(StrictModel):
    documents: Natural
    questions: Natural
    answerable: Natural
    impossible: Natural
    contexts: Natural
    located: dict[How, Natural]


class Account(StrictModel):
    """How many files of a folder, or rows of a table, were given, how many kept, and how many left out by reason."""

    given: Natural
    kept: Natural
    left_out: dict[str, Natural]

    @model_validator(mode="after")
    def _adds_up(self) -> "Account":
        if self.given != self.kept + sum(self.left_out.values()):
            raise ValueError("given must be the sum of kept and left_out")
        return self


class Tool(StrictModel):
    name: NonBlank
    version: NonBlank


class Printing(StrictModel):
    """The programs that printed the documents for which the source has only text or HTML."""

    printer: NonBlank = "unknown"  # the programs and their versions; earlier bundles have the field `browser` instead
    browser: str | None = None
    fonts: dict[str, Sha256]


class PatchEntry(StrictModel):
    name: NonBlank
    sha256: Sha256
    about: str
    documents: Natural
    questions: Natural
    corrections: Natural


class DraftInfo(StrictModel):
    """How a program drafted the questions of a bundle, and the result of their review."""

    playbooks: list[str] = []
    models: list[str] = []
    sure: Natural = 0  # Questions in `train.json`: the program is sure of their passage, or that they have none
    unsure: Natural = 0  # Questions in `drafts.jsonl` that a person has not yet reviewed
    reviewed: Natural = 0  # Questions of `train.json` that a person judged
    judged_sure: Natural = 0  # Sure drafts that a person judged, right or wrong
    wrong: Natural = 0  # Sure drafts that a person found wrong

    def words(self, questions: int) -> str:
        """Return the caveat to print with every result on a drafted bundle."""
        line = f"drafted, {self.reviewed:,} of {questions:,} reviewed by a person"
        if not self.judged_sure:
            return f"{line}; no person has checked how many drafts are wrong"
        low, high = compute_wilson(self.wrong, self.judged_sure)
        share = self.wrong / self.judged_sure
        return f"{line}; {share:.0%} of the sure drafts that were judged are wrong (95%: {low:.0%} to {high:.0%})"


def compute_wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the 95% confidence interval of a proportion by Wilson's formula, which is valid for few observations."""
    z, share = 1.96, part / whole
    middle, spread = share + z * z / (2 * whole), z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole**2))
    scale = 1 + z * z / whole
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


class BundleInfo(StrictModel):
    """`bundle.json`: the bundle's source, its content, and what was left out."""

    format: Literal["exhibit-bundle/1"]
    name: NonBlank
    title: NonBlank
    summary: str = ""
    source: SourceEntry
    licence: Licence
    citation: str = ""
    counts: Counts
    groups: str | None = None
    headline: str | None = None  # The benchmark's main metric, such as `ndcg@5`; if None, the evaluation chooses one
    left_out: dict[str, list[str]]
    noted: dict[str, list[str]]
    account: dict[Literal["files", "rows"], Account] = {}
    documents: list[DocumentEntry]
    files: dict[BundlePath, FileEntry]
    tool: Tool
    printing: Printing | None = None
    options: dict[str, str | int | float | bool | None]
    patches: list[PatchEntry] = []  # Corrections by reviewers that were applied to the source's gold, in order
    draft: DraftInfo | None = None  # how a program drafted the questions, if one did, and how many were reviewed
