"""What a pipeline is made of: a preset file, with single settings overruled."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from schemas.errors import ToolkitError

PRESETS = Path(__file__).parent / "presets"
DEFAULT = "routed"
"""What is used when no preset is named: the one that finds most, see docs/legalbenchrag.md."""

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]


class Config(BaseModel):
    """The whole recipe. `ingest` settings decide the index; the others can change from question to question."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # ---- ingest
    ocr: bool = False
    """Read pages without text by OCR. It moves offsets: not for bundles whose gold is located; convert with --ocr."""
    ocr_language: str = "en"
    """The language that OCR reads: `en`, `de`, `cs-CZ` …"""
    ocr_engine: str = "auto"
    """What reads it: a plug-in of `evidence.ocr`, or `auto`, the first that is installed and knows the language."""
    splitter: str = "rcts"
    size: Positive = 500
    overlap: Annotated[int, Field(ge=0)] = 0
    augment: Literal["none", "summary"] = "summary"
    """What stands in front of a chunk when it is embedded; never in its text."""
    layers: Literal["chunk", "all"] = "chunk"
    """Which layers are embedded: chunks alone, or documents and sections as well."""
    lexicon: bool = False
    """Whether the words of chunks, headings and documents are kept beside the vectors, for `routing`."""
    summaries: str = "extractive"
    summary_style: Literal["generic", "expert"] = "generic"
    summary_characters: Positive = 150
    section_characters: Positive = 75
    embedder: str = "minilm"
    store: str = "faiss"

    # ---- retrieve
    depth: Positive = 64
    """How many passages are ranked; metrics at smaller k are prefixes of this."""
    k: Positive = 6
    """How many of them an answer is made from, at most."""
    candidates: Positive = 2
    """Documents are chosen by the first `candidates` x k passages."""
    documents: Annotated[int, Field(ge=0)] = 0
    """Passages come from so many documents at most; 0 = from any."""
    document_max: Share = 0.6
    document_mean: Share = 0.4
    """A document's score: this share of its best passage, and this of their mean."""
    threshold: Share | None = None
    """Passages that score lower than the best one by more than this are not used for the answer."""
    budget: Positive = 2500
    """Tokens of context."""

    # ---- route: choose documents by what the question names, passages in them by fused evidence
    routing: bool = False
    filenames: bool = True
    """Whether a file's name may say which document is meant."""
    mass: Annotated[float, Field(gt=0, le=1)] = 0.99
    """Documents are kept, likeliest first, until they have this share of the likelihood …"""
    most_documents: Positive = 8
    """… or are so many; a question that names none may find its answer in any."""
    weight_lexical: Weight = 0.5
    weight_heading: Weight = 0.15
    weight_neighbours: Weight = 0.2
    weight_section: Weight = 0.6
    weight_document: Weight = 3.0
    """What each kind of evidence counts beside the dense one, in standard deviations; 0 switches it off."""
    tight: bool = True
    """Whether the first passage is cut down to the sentences that answer."""
    pool: Positive = 256
    """Where any document may answer: so many chunks are compared by either kind of evidence."""
    limit: Positive = 500
    """Characters of a passage that is formed around what answers, at most."""
    reranker: str = "none"
    """A second look at the first passages: words, cross_encoder:MODEL, http:URL."""
    rerank: Positive = 32
    """How many passages it looks at."""
    imagine: Share = 0.0
    """With an LLM: how far the question's vector moves towards a passage that it imagines; 0 = not at all."""

    # ---- answer
    llm: str = "none"
    answerer: str = "auto"
    """extractive or llm; auto = llm when there is one."""
    max_requests: Positive | None = None
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """Caps on what a language model may be asked and may cost; what is over them is an error, not an answer."""
    price_in: Annotated[float, Field(ge=0)] | None = None
    price_out: Annotated[float, Field(ge=0)] | None = None
    """What a million tokens cost, in and out: `max_cost` is reckoned with these, in the same currency."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.1
    max_tokens: Positive = 1000

    @model_validator(mode="after")
    def _route_needs_words(self) -> Config:
        if self.routing and not self.lexicon:
            raise ValueError("routing needs an index with words: set lexicon to true as well")
        return self

    @property
    def ingest_hash(self) -> str:
        """A digest of every setting that decides what is in an index."""
        wanted = {name: getattr(self, name) for name in INGEST}
        return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()[:16]

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Config:
        """Return a preset by name or by the path of a TOML file, with settings overruled."""
        path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
        if not path.is_file():
            raise ToolkitError(f"no preset {name!r}; there are {', '.join(preset_names())}, or pass a .toml file")
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ToolkitError(f"{path}: not TOML: {error}") from error
        return cls.parse({**settings, **overrides}, where=str(path))

    @classmethod
    def parse(cls, settings: dict[str, Any], *, where: str = "config") -> Config:
        """Return a config from settings; raise one error that names each bad one."""
        try:
            return cls.model_validate(settings)
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ToolkitError(f"{where}: {faults}; settings are {', '.join(cls.model_fields)}") from error


INGEST = (
    "ocr", "ocr_language", "ocr_engine",
    "splitter", "size", "overlap", "augment", "layers", "lexicon", "summaries", "summary_style", "summary_characters",
    "section_characters", "embedder", "store",
)  # fmt: skip


def preset_names() -> list[str]:
    """Return the presets that come with the project."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))
