"""The settings of a pipeline: those of the index and those of the search. A preset is a named set of both."""

import argparse
import difflib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exhibit.runtime.plugins import load_plugin, plugin_names
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_toml, read_outside

PRESETS = Path(__file__).parent / "presets"
DEFAULT = "routed"
"""The preset with the settings' default values: it has the best recall, see bench/results/legalbenchrag.md."""
WEIGHT = "weight_"
"""The prefix of a weight's name in a flat list of settings: on the command line, `--weight-lexical`."""
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
"""Those of them that a search or an answer uses."""

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]


class FlagModel(BaseModel):
    """Settings; the docstring below each one is also its help text on the command line."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Ingest(FlagModel):
    """The settings that determine an index: with other values it must be built again."""

    ocr: bool = False
    """read pages without text by OCR; it moves offsets: not for bundles whose gold is located, convert with --ocr"""
    ocr_language: str = "en"
    """the language that OCR reads: en, de, cs-CZ …"""
    ocr_engine: str = "auto"
    """the OCR engine, or auto: the first one that is installed and knows the language"""
    hidden_text: Literal["skip", "index"] = "skip"
    """words of a PDF that nobody sees on the page (white, tiny, off it, covered): skip them, or index them"""
    splitter: str = "rcts"
    """how documents are cut into chunks"""
    chunk_size: Positive = 500
    """characters of a chunk, at most"""
    overlap: Annotated[int, Field(ge=0)] = 0
    """characters that a chunk repeats of the one before"""
    augment: Literal["none", "summary"] = "none"
    """what stands in front of a chunk when it is embedded, never in its text: none, or the document's summary"""
    layers: Literal["chunk", "all"] = "chunk"
    """what is embedded: chunks alone, or documents and sections as well (all)"""
    lexicon: bool = True
    """keep the words of chunks, headings and documents beside the vectors; routing needs them"""
    summaries: str = "extractive"
    """what writes the documents' summaries"""
    summary_style: Literal["generic", "expert"] = "generic"
    """the prompt for a language model's summaries: generic, or a specialist's note (expert)"""
    summary_characters: Positive = 150
    """length of a document's summary"""
    summary_llm: str = "same"
    """who writes summaries with summaries = llm, as NAME:MODEL; same = the model of llm; its budget is its own"""
    summary_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """the temperature of that model"""
    summary_tokens: Positive = 150
    """tokens of a summary, at most"""
    summary_shown: Positive = 6000
    """characters of a document that the model is shown"""
    section_characters: Positive = 75
    """length of a section's summary, with layers = all"""
    embedder: str = "legal"
    """texts to vectors, as NAME or NAME:MODEL"""
    store: str = "faiss"
    """the vector store: NAME, or NAME:KIND as in faiss:pq, faiss:fp16, milvus:URI"""


class Weights(FlagModel):
    """The weight of each kind of evidence beside the dense score, in standard deviations; 0 switches it off."""

    lexical: Weight = 0.55
    """the question's words, rare ones first, and by the share of them that stands in one place"""
    heading: Weight = 0.15
    """the question's words in the headings above"""
    neighbours: Weight = 0.2
    """the chunks before and after: an answer is seldom alone, and a chunk's edges are chance"""
    section: Weight = 0.6
    """the best chunk of the section: the rest of a clause follows its best part"""
    likeness: Weight = 1.5
    """the likeness to the first chunks, for those behind them: an answer often goes on elsewhere in like words"""
    summary: Weight = 0.0
    """where a question names no document: the likeness of the document's summary (layers = all)"""
    gist: Weight = 0.0
    """where a question names no document: the likeness of the section's summary (layers = all)"""
    document: Weight = 3.0
    """the document's log-likelihood: in one half as likely a passage must be better by two standard deviations"""


class Search(FlagModel):
    """The settings of searching and answering: they can change from question to question."""

    depth: Positive = 64
    """how many passages are ranked; metrics at smaller k are prefixes of this"""
    k: Positive = 6
    """the most passages that an answer is made from"""
    min_chunks: Annotated[int, Field(ge=0)] = 0
    """the number of passages that are kept below the threshold, before the budget is applied"""
    layer_documents: Annotated[int, Field(ge=0)] = 0
    """with layers = all and routing off: so many documents are searched first, by their summaries; 0 = not at all"""
    layer_sections: Annotated[int, Field(ge=0)] = 0
    """with layers = all and routing off: so many sections in these, by theirs; chunks come from them; 0 = not at all"""
    method: Literal["dense", "bm25", "tfidf"] = "dense"
    """with routing off: what ranks chunks, their vectors or their words (lexicon)"""
    candidates: Positive = 2
    """documents are chosen by the first `candidates` x k passages"""
    document_limit: Annotated[int, Field(ge=0)] = 0
    """passages come from so many documents at most; 0 = from any"""
    document_max: Share = 0.6
    """a document's score: this share of its best passage …"""
    document_mean: Share = 0.4
    """… and this share of the mean of its passages"""
    threshold: Share | None = None
    """passages that score lower than the best by more than this are not used for the answer; none = all are"""
    budget: Positive = 2500
    """tokens of context"""
    routing: bool = True
    """choose documents by what the question names, then passages in them by fused evidence"""
    filenames: bool = True
    """whether a file's name may say which document is meant"""
    most_documents: Positive = 8
    """so many documents are looked into at most; a question that names none may find its answer in any"""
    weights: Weights = Weights()
    """what each kind of evidence counts"""
    trim_first: bool = True
    """cut the first passage down to the sentences that answer: precise, at a cost in recall at small k"""
    candidate_chunks: Positive = 256
    """where any document may answer: so many chunks are compared by either kind of evidence"""
    passage_size: Positive = 500
    """characters of a passage that is formed around what answers, at most"""
    reranker: str = "none"
    """the reranker of the first passages: none, NAME or NAME:MODEL, as in http:URL"""
    rerank: Positive = 32
    """how many passages the reranker scores"""
    reader_passages: Positive = 4
    """the most passages that the reader model reads for an answer; it stops early when it is confident"""
    refuse_below: Share | None = 0.3
    """with the reader or a reranker: questions whose answer is less probable are refused; none = none are"""
    hyde_weight: Share = 0.0
    """with an LLM: how far the question's vector moves towards a passage that it imagines; 0 = not at all"""
    llm: str = "none"
    """who writes answers, as NAME:MODEL; none = sentences of the documents"""
    answerer: str = "auto"
    """how answers are made; auto = llm when there is one, else reader"""
    cite: Literal["numbers", "places"] = "numbers"
    """numbers, with a list below of document, section and page; or places, as in [Part 36#page=3]"""
    max_requests: Positive | None = None
    """the most requests to a language model; a question beyond them gets an error, not an answer"""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """the most that the requests may cost, computed from price-in and price-out"""
    price_in: Annotated[float, Field(ge=0)] | None = None
    """what a million tokens of input cost"""
    price_out: Annotated[float, Field(ge=0)] | None = None
    """what a million tokens of output cost, in the same currency"""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.1
    """the language model's temperature"""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """the share of the likeliest words that the language model draws from; none = as its server has it"""
    max_tokens: Positive = 1000
    """tokens of an answer, at most"""


class Config(Search, Ingest):
    """All settings of a pipeline; the default values are the default preset."""

    @model_validator(mode="before")
    @classmethod
    def _gather_weights(cls, given: Any) -> Any:
        """Accept `weight_lexical` for `weights.lexical`: flags use this form."""
        if not isinstance(given, Mapping):
            return given
        single = {name.removeprefix(WEIGHT): given[name] for name in given if name.startswith(WEIGHT)}
        rest = {name: value for name, value in given.items() if not name.startswith(WEIGHT)}
        if not single:
            return rest
        weights = rest.get("weights", {})
        whole = weights.model_dump() if isinstance(weights, Weights) else weights
        return {**rest, "weights": {**whole, **single}}

    @model_validator(mode="after")
    def _route_needs_words(self) -> "Config":
        if (self.routing or self.method != "dense") and not self.lexicon:
            raise ValueError("routing needs an index with a lexicon: set lexicon to true as well")
        searched = self.layer_documents or self.layer_sections or self.weights.summary or self.weights.gist
        if searched and self.layers != "all":
            raise ValueError("a search of layers needs an index that has them: set layers to all as well")
        return self

    @property
    def reads(self) -> bool:
        """Whether the reader model answers: then it also decides about refusals, and one process holds the model."""
        return self.answerer == "reader" or (self.answerer == "auto" and self.llm == "none")

    @property
    def ingest(self) -> dict[str, Any]:
        """The settings that determine the content of an index."""
        return {name: getattr(self, name) for name in Ingest.model_fields}

    @property
    def ingest_hash(self) -> str:
        """A digest of the settings that determine the content of an index."""
        return hashlib.sha256(json.dumps(self.ingest, sort_keys=True).encode()).hexdigest()[:16]

    def single(self, name: str) -> Any:
        """Return the value of a setting by the name of its flag."""
        return getattr(self.weights, name.removeprefix(WEIGHT)) if name.startswith(WEIGHT) else getattr(self, name)

    def with_own(self, own: Mapping[str, Any], *, where: str) -> "Config":
        """Return the config of an index with the user's settings applied; the user must name every remote part.

        An index may come from another person: its settings must not decide where questions and keys are sent.
        """
        for name in ASKED:
            value = getattr(self, name)
            if name not in own and not _is_local(name, value):
                choice = f"--{name} {value}" if name in Ingest.model_fields else f"--{name} {value}, or --{name} none"
                raise ToolkitError(
                    f"{where}: made with {name} = {value!r}, which may send questions elsewhere; an index does not "
                    f"decide that: add {choice}"
                )
        said_again = {name for name in own if name in Ingest.model_fields and own[name] == getattr(self, name)}
        return self.with_search(**{name: value for name, value in own.items() if name not in said_again})

    def with_search(self, **settings: Any) -> "Config":
        """Return this config with changed search settings; raise on a setting that would need another index."""
        fixed = sorted(set(settings) & set(Ingest.model_fields))
        if fixed:
            raise ToolkitError(f"{', '.join(fixed)}: decided when the index was built; build it again to change that")
        return Config.parse({**self.model_dump(), **settings})

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> "Config":
        """Return a preset by name or by the path of a TOML file, with some settings replaced."""
        path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
        if not path.exists():
            near = difflib.get_close_matches(name, preset_names(), n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ToolkitError(
                f"no preset {name!r}; {meant}there are {', '.join(preset_names())}, or pass a .toml file"
            )
        settings = parse_toml(read_outside(path), where=path)
        for key, value in settings.items():
            # a file may come from another person: it must not decide where questions and keys are sent
            if "://" in str(value) and overrides.get(key) != value:
                raise ToolkitError(f"{path}: {key} = {value!r}: a server is for you to name: add --{key} {value}")
        return cls.parse({**settings, **overrides}, where=str(path))

    @classmethod
    def parse(cls, settings: Mapping[str, Any], *, where: str = "config") -> "Config":
        """Return a config from settings; raise one error that names every invalid setting."""
        try:
            return cls.model_validate(dict(settings))
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ToolkitError(f"{where}: {faults}; settings are {', '.join(setting_help())}") from error


def _is_local(setting: str, value: str) -> bool:
    """Return whether a plug-in declares that it uses only installed software, whatever its argument is."""
    if value in ("none", "auto"):
        return True
    try:
        module, _ = load_plugin(PLUGINS[setting], value)
    except ToolkitError:
        return False
    return bool(getattr(module, "LOCAL", False))


def preset_names() -> list[str]:
    """Return the names of the presets that the project ships."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def setting_help(settings: type[FlagModel] = Config) -> dict[str, str]:
    """Return the help text of every setting by its flat name: its meaning and its default."""
    texts: dict[str, str] = {}
    for name, field in settings.model_fields.items():
        if name == "weights":
            texts |= {f"{WEIGHT}{weight}": text for weight, text in setting_help(Weights).items()}
        else:
            texts[name] = f"{field.description} (default: {'none' if field.default is None else field.default})"
    return texts


def add_setting_flags(group: Any, settings: type[FlagModel] = Config, *, but: frozenset[str] = frozenset()) -> None:
    """Add a flag with help for every setting; a flag that the user omits is absent from the parsed result."""
    for name, text in setting_help(settings).items():
        if name not in but:
            flag = f"--{name.replace('_', '-')}"
            if name in PLUGINS:
                names = ", ".join(file.replace("_", "-") for file in plugin_names(PLUGINS[name]))
                text = f"{text}; there are {names}"
            group.add_argument(flag, metavar="X", default=argparse.SUPPRESS, help=text.replace("%", "%%"))


def given_settings(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings among parsed flags; the value `none` clears an optional setting."""
    unset = {name for name, field in Config.model_fields.items() if field.default is None}
    return {
        name: None if value == "none" and name in unset else value
        for name, value in flags.items()
        if name in setting_help()
    }
