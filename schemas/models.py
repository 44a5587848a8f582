"""What a bundle's three files hold: `train.json`, `gold.jsonl` and `bundle.json`.

These models are the only definition; the JSON Schema files beside them are generated from here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from exhibit.schemas.hows import HOWS as HOWS
from exhibit.schemas.hows import How as How

FORMAT: Literal["exhibit-bundle/1"] = "exhibit-bundle/1"
IMPOSSIBLE_ANSWER = "Not found in provided documents"


def _basename(name: str) -> str:
    if name in {".", ".."} or "/" in name or "\0" in name:
        raise ValueError("must be a plain file name, not a path")
    if len(name.encode("utf-8", "surrogatepass")) > 255:
        raise ValueError("is longer than 255 bytes, more than a file system can hold")
    return name


def _inside(path: str) -> str:
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise ValueError("must be a relative path inside the bundle")
    return path


def _ordered(span: tuple[int, int]) -> tuple[int, int]:
    if span[0] >= span[1]:
        raise ValueError("must have its start before its end")
    return span


# `\S` somewhere: JSON Schema and pydantic both search a pattern, neither anchors it.
NonBlank = Annotated[str, Field(pattern=r"\S")]
Filename = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_basename)]
BundlePath = Annotated[str, Field(min_length=1), AfterValidator(_inside)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Natural = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Offsets = Annotated[tuple[Natural, Natural], AfterValidator(_ordered)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Context(_Model):
    """One gold passage: the file it stands in and, where the source gives it, its words."""

    filename: Filename
    text: str | None = None


class Row(_Model):
    """One question of `train.json`: these five fields and no others."""

    id: Natural
    question: NonBlank
    answer: NonBlank
    is_impossible: bool
    contexts: list[Context]

    @model_validator(mode="after")
    def _impossible_has_no_passage(self) -> Row:
        if self.is_impossible and any(c.text for c in self.contexts):
            raise ValueError("is_impossible is true, yet a context has text")
        return self


class Gold(_Model):
    """One line of `gold.jsonl`: where a context of `train.json` stands in the document as extracted."""

    id: Natural
    context: Natural | None
    filename: Filename | None
    pages: list[Positive]
    spans: list[Offsets]
    alternatives: list[list[Offsets]]
    how: How
    score: Annotated[float, Field(ge=0, le=1)] = 1.0
    labels: dict[str, str | int | float | bool | None] = {}

    @model_validator(mode="after")
    def _found_means_somewhere(self) -> Gold:
        if (self.how == "absent") == bool(self.spans):
            raise ValueError("has spans exactly when how is not 'absent'")
        if self.context is not None and self.filename is None:
            raise ValueError("a context has a filename")
        return self


class FileEntry(_Model):
    """A file of the bundle, by content."""

    sha256: Sha256
    bytes: Natural


class DocumentEntry(_Model):
    """What is known of one document of the corpus."""

    filename: Filename
    title: str
    pages: Natural | None = None
    characters: Natural
    source: str = ""
    ocr: dict[str, Annotated[float, Field(ge=0, le=1)]] = {}
    """The pages that OCR read, by number, with how sure it was of their words."""


class Licence(_Model):
    """Under what terms the source may be used, and whether it may be passed on."""

    id: NonBlank
    name: NonBlank
    url: str = ""
    redistributable: bool = True
    note: str = ""


class SourceEntry(_Model):
    """The raw benchmark a bundle was made from."""

    name: NonBlank
    url: str = ""
    version: str = ""
    sha256: dict[str, Sha256] = {}


class Counts(_Model):
    """The bundle in figures."""

    documents: Natural
    questions: Natural
    answerable: Natural
    impossible: Natural
    contexts: Natural
    located: dict[How, Natural]


class Account(_Model):
    """What became of the files of a folder, or of the rows of a table: each is kept, or left out for one reason."""

    given: Natural
    kept: Natural
    left_out: dict[str, Natural]

    @model_validator(mode="after")
    def _adds_up(self) -> Account:
        if self.given != self.kept + sum(self.left_out.values()):
            raise ValueError("given is not the sum of kept and left_out")
        return self


class Tool(_Model):
    """The program that wrote the bundle."""

    name: NonBlank
    version: NonBlank


class Printing(_Model):
    """What the documents that the source gives as text or HTML were printed with."""

    browser: NonBlank
    fonts: dict[str, Sha256]


class PatchEntry(_Model):
    """A patch that was applied: which file, and how much of the gold it changed."""

    name: NonBlank
    sha256: Sha256
    about: str
    documents: Natural
    questions: Natural
    corrections: Natural


class BundleInfo(_Model):
    """`bundle.json`: where a bundle comes from, what is in it, and what is not."""

    format: Literal["exhibit-bundle/1"]
    name: NonBlank
    title: NonBlank
    summary: str = ""
    source: SourceEntry
    licence: Licence
    citation: str = ""
    counts: Counts
    groups: str | None = None
    left_out: dict[str, list[str]]
    noted: dict[str, list[str]]
    account: dict[Literal["files", "rows"], Account] = {}
    documents: list[DocumentEntry]
    files: dict[BundlePath, FileEntry]
    tool: Tool
    printing: Printing | None = None
    options: dict[str, str | int | float | bool | None]
    patches: list[PatchEntry] = []
    """Corrections by reviewers that were applied to the source's gold, in order."""
