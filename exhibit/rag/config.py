"""The settings of a pipeline: one group for the index, one for the search. A preset is a named set of both."""

import argparse
import difflib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_toml, read_outside

PRESETS = Path(__file__).parent / "presets"
DEFAULT = "routed"
"""The preset whose settings are the default values: it has the best recall, see bench/results/legalbenchrag.md."""
WEIGHT = "weight_"
"""The prefix of a weight's name among the settings: `--weight-lexical` on the command line."""
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
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0)]


class FlagModel(BaseModel):
    """A group of settings; the docstring below each setting is also its help text on the command line."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Ingest(FlagModel):
    """The settings that determine the content of an index: if one changes, the index must be built again."""

    ocr: bool = False
    """read pages without text by OCR; this changes offsets: for a bundle with located gold, use convert --ocr"""
    ocr_language: str = "en"
    """the language of the OCR: en, de, cs-CZ …"""
    ocr_engine: str = "auto"
    """the OCR engine, or auto: the first one that is installed and knows the language"""
    hidden_text: Literal["skip", "index"] = "skip"
    """words of a PDF that no reader sees on the page (white, tiny, outside the page, covered): skip or index them"""
    splitter: str = "rcts"
    """the way to split documents into chunks"""
    chunk_size: Positive = 500
    """the most characters of a chunk"""
    overlap: Annotated[int, Field(ge=0)] = 0
    """the number of characters that a chunk repeats from the one before"""
    augment: Literal["none", "summary"] = "none"
    """the text that is put before a chunk to embed it, but is not part of the chunk: none, or the document's summary"""
    layers: Literal["chunk", "all"] = "chunk"
    """the texts that are embedded: chunks alone, or documents and sections as well (all)"""
    lexicon: bool = True
    """index the words of chunks, headings and document names beside the vectors; routing needs them"""
    summaries: str = "extractive"
    """the summariser of the documents"""
    summary_style: Literal["generic", "expert"] = "generic"
    """the prompt for summaries by a language model: generic, or a specialist's note (expert)"""
    summary_characters: Positive = 150
    """length of a document's summary"""
    summary_llm: str = "same"
    """the language model of the summariser llm, as NAME:MODEL, with its own request limit; same = that of llm"""
    summary_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """the temperature of that model"""
    summary_tokens: Positive = 150
    """the most tokens of a summary"""
    summary_shown: Positive = 6000
    """the number of a document's first characters that are given to the model"""
    section_characters: Positive = 75
    """length of a section's summary, with layers = all"""
    embedder: str = "legal"
    """the embedder, as NAME or NAME:MODEL"""
    store: str = "faiss"
    """the vector store: NAME, or NAME:KIND as in faiss:pq, faiss:fp16, milvus:URI"""


class Weights(FlagModel):
    """The weight of each retrieval signal relative to the dense (vector) score; 0 turns a signal off.

    All scores are in standard deviations, so that they can be added.
    """

    lexical: Weight = 0.55
    """the question's words in a chunk, rare words more; it counts less where no chunk contains most of them"""
    heading: Weight = 0.15
    """the question's words in the headings above the chunk"""
    neighbours: Weight = 0.2
    """the scores of the chunks before and after: an answer often continues in the next chunk"""
    section: Weight = 0.6
    """the score of the best chunk of the section: the rest of a clause follows its best part"""
    likeness: Weight = 1.5
    """for chunks after the first ones: the similarity to the first chunks, since an answer often has similar clauses"""
    summary: Weight = 0.0
    """where a question names no document: the similarity of the document's summary (layers = all)"""
    gist: Weight = 0.0
    """where a question names no document: the similarity of the section's summary (layers = all)"""
    document: Weight = 3.0
    """the document's log-likelihood: a passage of one half as likely must score two standard deviations higher"""


class Search(FlagModel):
    """The settings of searching and answering: they can change from question to question."""

    depth: Positive = 64
    """the number of passages that are ranked; metrics at smaller k are prefixes of this"""
    k: Positive = 6
    """the most passages that an answer is made from"""
    min_chunks: Annotated[int, Field(ge=0)] = 0
    """the number of passages that are kept below the threshold, before the budget is applied"""
    layer_documents: Annotated[int, Field(ge=0)] = 0
    """with layers = all and routing off: the number of documents that are searched first, by summaries; 0 = off"""
    layer_sections: Annotated[int, Field(ge=0)] = 0
    """with layers = all and routing off: the number of sections in them whose chunks are searched; 0 = off"""
    method: Literal["dense", "bm25", "tfidf"] = "dense"
    """with routing off: the score of chunks, by their vectors (dense) or by their words (bm25, tfidf)"""
    candidates: Positive = 2
    """documents are chosen by the first `candidates` x k passages"""
    document_limit: Annotated[int, Field(ge=0)] = 0
    """the most documents that passages come from; 0 = any number"""
    document_max: Share = 0.6
    """a document's score is this share of its best passage's score …"""
    document_mean: Share = 0.4
    """… and this share of the mean score of its passages"""
    threshold: Share | None = None
    """passages that score lower than the best by more than this are not used for the answer; none = all are"""
    budget: Positive = 2500
    """the most tokens of context"""
    routing: bool = True
    """choose documents by the names in the question, then passages in them by combined scores"""
    filenames: bool = True
    """use the files' names to choose the documents that a question means"""
    most_documents: Positive = 8
    """the most documents that are searched; for a question that names none, all documents are searched"""
    weights: Weights = Weights()
    """the weight of each kind of evidence"""
    trim_first: bool = True
    """cut the first passage down to the sentences that answer: precise, at a cost in recall at small k"""
    candidate_chunks: Positive = 256
    """where any document may answer: the number of chunks that each kind of evidence proposes"""
    passage_size: Positive = 500
    """the most characters of a passage that is formed around the chunks that answer"""
    reranker: str = "none"
    """the reranker of the first passages: none, NAME or NAME:MODEL, as in http:URL"""
    rerank: Positive = 32
    """the number of passages that the reranker scores"""
    reader_passages: Positive = 6
    """the most passages that the reader model reads for an answer; it stops early when it is confident"""
    refuse_below: Share | None = 0.3
    """with the reader or a reranker: questions whose answer is less probable are refused; none = none are"""
    hyde_weight: Share = 0.0
    """with an LLM: how far the question's vector moves towards that of an imagined passage (HyDE); 0 = off"""
    llm: str = "none"
    """the language model of answers, as NAME:MODEL; none = answers are sentences of the documents"""
    answerer: str = "auto"
    """the answerer; auto = llm when there is a language model, else reader"""
    cite: Literal["numbers", "places"] = "numbers"
    """citations as numbers, with a list below of document, section and page; or as places: [Part 36#page=3]"""
    max_requests: Positive | None = None
    """the most requests to a language model; a question beyond them gets an error, not an answer"""
    max_cost: Annotated[float, Field(gt=0)] | None = None
    """the most that the requests may cost in all, computed from price-in and price-out"""
    price_in: Annotated[float, Field(ge=0)] | None = None
    """the price of a million tokens of input"""
    price_out: Annotated[float, Field(ge=0)] | None = None
    """the price of a million tokens of output, in the same currency"""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.1
    """the language model's temperature"""
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    """the share of the likeliest words that the language model draws from; none = the default of its server"""
    max_tokens: Positive = 1000
    """the most tokens of an answer"""


class Config(Search, Ingest):
    """All settings of a pipeline; the default values are the default preset."""

    @model_validator(mode="before")
    @classmethod
    def _gather_weights(cls, given: Any) -> Any:
        """Accept flat names, which flags use: move `weight_lexical` to `weights.lexical`, and so on."""
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
            raise ValueError(
                "layer_documents and layer_sections need an index with all layers: set layers to all as well"
            )
        return self

    @property
    def reads(self) -> bool:
        """Whether answers come from the reader (the extractive question-answering model)."""
        return self.answerer == "reader" or (self.answerer == "auto" and self.llm == "none")

    @property
    def ingest(self) -> dict[str, Any]:
        """The settings that determine the content of an index."""
        return {name: getattr(self, name) for name in Ingest.model_fields}

    @property
    def ingest_hash(self) -> str:
        """A digest of the settings that determine the content of an index."""
        return hashlib.sha256(json.dumps(self.ingest, sort_keys=True).encode()).hexdigest()[:16]

    def get_setting(self, name: str) -> Any:
        """Return the value of a setting by its flat name: `get_setting("weight_lexical")` is `weights.lexical`."""
        return getattr(self.weights, name.removeprefix(WEIGHT)) if name.startswith(WEIGHT) else getattr(self, name)

    def with_own(self, own: Mapping[str, Any], *, where: str) -> "Config":
        """Return the config of an index in which the user's settings (`own`) replace those of the index.

        An index may come from another person, and must not decide where questions and keys are sent. So raise an
        error if a setting of the index names a plug-in that may use a server, and the user did not give this
        setting.
        """
        for name in ASKED:
            value = getattr(self, name)
            if name not in own and not _is_local(name, value):
                choice = f"--{name} {value}" if name in Ingest.model_fields else f"--{name} {value}, or --{name} none"
                raise ToolkitError(
                    f"{where}: the index was built with {name} = {value!r}, which may send questions to a server; "
                    f"only you can allow that: add {choice}"
                )
        said_again = {name for name in own if name in Ingest.model_fields and own[name] == getattr(self, name)}
        return self.with_search(**{name: value for name, value in own.items() if name not in said_again})

    def with_search(self, **settings: Any) -> "Config":
        """Return this config with changed search settings; raise on a setting that would need another index."""
        fixed = sorted(set(settings) & set(Ingest.model_fields))
        if fixed:
            raise ToolkitError(f"{', '.join(fixed)}: set when the index was built; build the index again to change it")
        return Config.parse({**self.model_dump(), **settings})

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> "Config":
        """Return a preset by name or by the path of a TOML file, with some settings replaced."""
        path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
        if not path.exists():
            near = difflib.get_close_matches(name, list_presets(), n=1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ToolkitError(
                f"no preset {name!r}; {meant}there are {', '.join(list_presets())}, or pass a .toml file"
            )
        settings = parse_toml(read_outside(path), where=path)
        for key, value in settings.items():
            # a file may come from another person: it must not decide where questions and keys are sent
            if "://" in str(value) and overrides.get(key) != value:
                raise ToolkitError(
                    f"{path}: {key} = {value!r} names a server, and only you can allow that: add --{key} {value}"
                )
        return cls.parse({**settings, **overrides}, where=str(path))

    @classmethod
    def parse(cls, settings: Mapping[str, Any], *, where: str = "config") -> "Config":
        """Return a config from settings; raise one error that names every invalid setting."""
        try:
            return cls.model_validate(dict(settings))
        except ValidationError as error:
            faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise ToolkitError(f"{where}: {faults}; settings are {', '.join(describe_settings())}") from error


def _is_local(setting: str, value: str) -> bool:
    """Return whether the plug-in that a setting names needs no server, as declared in the plug-in (`LOCAL`).

    Return False if the plug-in cannot be loaded or does not declare it; return True for `none` and `auto`.
    """
    if value in ("none", "auto"):
        return True
    try:
        module, _ = load_plugin(PLUGINS[setting], value)
    except ToolkitError:
        return False
    return bool(getattr(module, "LOCAL", False))


def list_presets() -> list[str]:
    """Return the names of the presets that the project ships."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def describe_settings(settings: type[FlagModel] = Config) -> dict[str, str]:
    """Return the help text of every setting, with its default; weights have flat names such as `weight_lexical`."""
    texts: dict[str, str] = {}
    for name, field in settings.model_fields.items():
        if name == "weights":
            texts |= {f"{WEIGHT}{weight}": text for weight, text in describe_settings(Weights).items()}
        else:
            texts[name] = f"{field.description} (default: {'none' if field.default is None else field.default})"
    return texts


def add_setting_flags(group: Any, settings: type[FlagModel] = Config, *, but: frozenset[str] = frozenset()) -> None:
    """Add a flag with help for every setting; a flag that the user omits is absent from the parsed result."""
    for name, text in describe_settings(settings).items():
        if name not in but:
            flag = f"--{name.replace('_', '-')}"
            if name in PLUGINS:
                names = ", ".join(file.replace("_", "-") for file in list_plugins(PLUGINS[name]))
                text = f"{text}; there are {names}"
            group.add_argument(flag, metavar="X", default=argparse.SUPPRESS, help=text.replace("%", "%%"))


def choose_given_settings(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings among parsed flags; the value `none` becomes None for a setting that may be None."""
    unset = {name for name, field in Config.model_fields.items() if field.default is None}
    return {
        name: None if value == "none" and name in unset else value
        for name, value in flags.items()
        if name in describe_settings()
    }
