"""The settings of a pipeline: a group for the index and a group for the search. A preset is a named set of both."""

import argparse
import difflib
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import LARGEST_FILE, format_faults, parse_toml, read_text

PRESETS = Path(__file__).parent / "presets"
DEFAULT = "routed"
"""The preset whose settings are the default values: it has the best recall, see bench/results/legalbenchrag.md."""
PLUGINS = {
    "ocr_engine": "exhibit.evidence.ocr",
    "splitter": "exhibit.rag.splitters",
    "summaries": "exhibit.rag.summaries",
    "embedder": "exhibit.models.embedders",
    "store": "exhibit.rag.stores",
    "reranker": "exhibit.models.rerankers",
    "llm": "exhibit.models.llms",
    "answerer": "exhibit.rag.answerers",
}
"""The settings whose value is the name of a plug-in file: the help lists these files."""
ASKED = ("embedder", "store", "reranker", "llm", "answerer")
"""The settings among PLUGINS that a search or an answer uses."""

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Price = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=0, le=2)]


class Ingest(BaseModel):
    """The settings that determine the content of an index: if a setting changes, the index must be built again.

    The docstring below each setting is also its help text on the command line.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    ocr: bool = False
    """read pages without text by OCR; for a bundle with located gold use convert --ocr, because OCR changes offsets"""
    ocr_language: str = "en"
    """the language of the OCR: en, de, cs-CZ …"""
    ocr_engine: str = "auto"
    """the OCR engine, or auto: the first installed engine that knows the language"""
    hidden_text: Literal["skip", "index"] = "skip"
    """skip or index the words of a PDF that are invisible on the page (white, tiny, outside the page, covered)"""
    splitter: str = "rcts"
    """the way to split documents into chunks"""
    chunk_size: Positive = 500
    """the maximum size of a chunk, in characters"""
    overlap: Count = 0
    """the number of characters that a chunk repeats from the previous chunk"""
    augment: Literal["none", "summary"] = "none"
    """the text that is put before a chunk to embed it, but is not part of the chunk: none, or the document's summary"""
    layers: Literal["chunk", "all"] = "chunk"
    """chunk: only chunks are embedded; all: documents and sections too"""
    lexicon: bool = True
    """index the words of chunks, headings and document names beside the vectors; method = dense does not need them"""
    summaries: str = "extractive"
    """the summariser of the documents; llm:expert asks the language model for a specialist's summary"""
    summary_llm: str = "same"
    """the language model of the summariser llm, as NAME:MODEL, with its own request limit; same = the model of llm"""
    summary_temperature: Temperature = 0.0
    """the temperature of the summary model"""
    summary_tokens: Positive = 150
    """the maximum number of tokens in a summary"""
    summary_input_characters: Positive = 6000
    """how many of a document's first characters the summary model reads"""
    embedder: str = "legal"
    """the embedder, as NAME or NAME:MODEL"""
    store: str = "faiss"
    """the vector store: faiss, or milvus:URI"""


class Search(BaseModel):
    model_config = Ingest.model_config

    depth: Positive = 64
    """the number of passages that are ranked; a metric at k uses the first k of them"""
    k: Positive = 6
    """the maximum number of passages that an answer is made from"""
    method: Literal["routed", "dense", "bm25", "tfidf"] = "routed"
    """routed: documents that the question names, then passages; dense: chunks by vectors; bm25 or tfidf: by words"""
    layer_documents: Count = 0
    """with layers = all and method = dense: the number of documents that are searched first, by summaries; 0 = off"""
    layer_sections: Count = 0
    """with layers = all and method = dense: then the number of their sections whose chunks are searched; 0 = off"""
    document_limit: Count = 0
    """with method = dense: the maximum number of documents that passages come from; 0 = no limit"""
    threshold: Share | None = None
    """passages whose score is below the best by more than this are not used for the answer; none = all are used"""
    min_chunks: Count = 0
    """with a threshold: the number of first passages that are used even below the threshold"""
    budget_tokens: Positive = 2500
    """the maximum number of tokens in the context"""
    reranker: str = "none"
    """the reranker of the first passages: none, NAME or NAME:MODEL"""
    rerank: Positive = 32
    """the number of passages that the reranker scores"""
    # chosen with the reranker `legal` on 20 CUAD contracts that no benchmark uses, in CUAD's wording: 84% of the
    # questions without an answer were refused there, and 13% of those with one; on 128 of these questions `teacher`
    # gives 83% and 4%
    refuse_below: Share | None = 0.3
    """with the reader or a reranker: refuse a question if its answer is less probable than this; none = never"""
    llm: str = "none"
    """the language model of answers, as NAME:MODEL; none = answers are sentences of the documents"""
    answerer: str = "auto"
    """the answerer; auto = llm when there is a language model, else reader"""
    max_requests: Positive | None = None
    """the maximum number of requests to a language model; further questions get an error, not an answer"""
    price_in: Price | None = None
    """the price of a million tokens of input"""
    price_out: Price | None = None
    """the price of a million tokens of output, in the same currency"""
    temperature: Temperature = 0.1
    """the language model's temperature"""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """the language model's top_p (nucleus sampling); none = the default of its server"""
    max_tokens: Positive = 1000
    """the maximum number of tokens in an answer"""


class Config(Search, Ingest):
    @model_validator(mode="after")
    def _check_effective(self) -> "Config":
        """Raise an error for a setting that has no effect or cannot work with the other settings."""
        layered, worded = self.layer_documents or self.layer_sections, self.method != "dense"
        faults = {
            f"method = {self.method} needs an index with a lexicon: set lexicon to true": worded and not self.lexicon,
            "layer_documents and layer_sections need layers = all": layered and self.layers != "all",
            "document_limit, layer_documents and layer_sections have an effect only with method = dense": worded
            and (layered or self.document_limit),
            "ocr_language and ocr_engine have an effect only with ocr = true": not self.ocr
            and self._changes("ocr_language", "ocr_engine"),
            "summary_llm has an effect only with summaries = llm": self.summaries == "extractive"
            and self._changes("summary_llm"),
            "rerank has an effect only with a reranker": self.reranker == "none" and self._changes("rerank"),
            "min_chunks has an effect only with a threshold": self.min_chunks and self.threshold is None,
        }
        if any(faults.values()):
            raise ValueError("; ".join(fault for fault, holds in faults.items() if holds))
        return self

    def _changes(self, *names: str) -> bool:
        return any(getattr(self, name) != Config.model_fields[name].default for name in names)

    @property
    def reads(self) -> bool:
        return self.answerer == "reader" or (self.answerer == "auto" and self.llm == "none")

    @property
    def ingest(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Ingest.model_fields}

    @property
    def ingest_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.ingest, sort_keys=True).encode()).hexdigest()[:16]

    def with_overrides(self, overrides: Mapping[str, Any], *, where: str) -> "Config":
        """Return an index's config, with the user's settings (`overrides`) in place of the stored settings.

        An index may come from another person and must not decide where questions and keys are sent. So a
        plug-in that may use a server is an error unless the user names it. A setting that would need another
        index is also an error.
        """
        for name in ASKED:
            value = getattr(self, name)
            if name not in overrides and not _is_local(name, value):
                raise ToolkitError(
                    f"{where}: the index was built with {name} = {value!r}, which may send questions to a server; "
                    f"to allow this, add --{name} {value}"
                )
        changed = {name: value for name, value in overrides.items() if value != getattr(self, name)}
        if fixed := sorted(set(changed) & set(Ingest.model_fields)):
            raise ToolkitError(f"{', '.join(fixed)}: fixed when the index was built; to change this, build it again")
        return Config.parse({**self.model_dump(), **changed})

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> "Config":
        """Return a preset by name or by the path of a TOML file, with some settings replaced."""
        path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
        if not path.exists():
            near = "".join(f"did you mean {match}? " for match in difflib.get_close_matches(name, list_presets(), n=1))
            raise ToolkitError(f"no preset {name!r}; {near}choose one of {', '.join(list_presets())}, or a .toml file")
        settings = parse_toml(read_text(path, error=ToolkitError, most=LARGEST_FILE), where=path)
        for key, value in settings.items():
            # a file may come from another person: it must not decide where questions and keys are sent
            if "://" in str(value) and overrides.get(key) != value:
                raise ToolkitError(f"{path}: {key} = {value!r} names a server; to allow this, add --{key} {value}")
        cls.parse(settings, where=str(path))  # report faults of the file separately from faults of the user's settings
        return cls.parse({**settings, **overrides}, where="settings")

    @classmethod
    def parse(cls, settings: Mapping[str, Any], *, where: str = "config") -> "Config":
        try:
            return cls.model_validate(dict(settings))
        except ValidationError as error:
            unknown = any(e["type"] == "extra_forbidden" for e in error.errors())
            known = f"; settings are {', '.join(describe_settings())}" if unknown else ""
            raise ToolkitError(f"{where}: {format_faults(error)}{known}") from error


def _is_local(setting: str, value: str) -> bool:
    """Return whether a setting's plug-in declares (with `LOCAL`) that it needs no server."""
    with suppress(ToolkitError):
        return value in ("none", "auto") or getattr(load_plugin(PLUGINS[setting], value)[0], "LOCAL", False)
    return False


def list_presets() -> list[str]:
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def describe_settings() -> dict[str, str]:
    return {
        name: f"{field.description} (default: {'none' if field.default is None else field.default})"
        for name, field in Config.model_fields.items()
    }


def add_setting_flags(group: Any, *, but: frozenset[str] = frozenset()) -> None:
    for name, text in describe_settings().items():
        if name not in but:
            if name in PLUGINS:
                names = ", ".join(file.replace("_", "-") for file in list_plugins(PLUGINS[name]))
                text = f"{text}; one of {names}"
            flag = f"--{name.replace('_', '-')}"
            group.add_argument(flag, metavar="X", default=argparse.SUPPRESS, help=text.replace("%", "%%"))


def choose_given_settings(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings among parsed flags; the value `none` becomes None for a setting that may be None."""
    fields = Config.model_fields
    return {
        name: None if value == "none" and type(None) in get_args(fields[name].annotation) else value
        for name, value in flags.items()
        if name in fields
    }
