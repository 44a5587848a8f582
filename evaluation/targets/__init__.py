"""Systems under test: one file each; its name is its name on the command line (`--target http`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from engine import Limits
from engine.llms import LLM
from evaluation.cases import Case, Reply
from evaluation.datasets import Dataset
from rag.config import Config
from rag.seams import Embedder
from schemas.plugins import load_plugin
from storage.cache import cache_folder


@dataclass(frozen=True)
class TargetOptions:
    """What a target can be told; each reads what it needs."""

    config: Config = field(default_factory=Config)
    answers: bool = True
    """Whether the built-in pipeline answers, or only retrieves."""
    cache: Path = field(default_factory=cache_folder)
    threads: int = 4
    """Requests at once."""
    engine: str = "local"
    jobs: int | None = None
    """What runs the built-in pipeline's own work, and with how many workers; None = all processors."""
    limits: Limits = field(default_factory=Limits)
    """What one document may take."""
    timeout: float = 60.0
    """Seconds for one reply, from the first byte sent to the last received."""
    retries: int = 3
    backoff: float = 1.0
    """How often a server that says it is busy is asked again, and the seconds before the first time."""
    skip_ingestion: bool = False
    force_ingestion: bool = False
    count_pages: bool = False
    """Whether a target that ingests nothing itself should count the pages of the corpus."""
    embedder: Embedder | None = None
    llm: LLM | None = None
    """Parts used instead of those that the config names."""
    url: str = ""
    request: Any = None
    """The body of a request, with `{question}` and `{parameters}` to be filled in; None = a chat message."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    answer_path: str | None = None
    context_path: str | None = None
    """JMESPath expressions into the response; None = where chat servers put them."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header to the name of the environment variable that holds its value."""
    stream: bool = False


@dataclass(frozen=True)
class Ingestion:
    """What became of a dataset's documents; None where the target does not tell."""

    files: int
    pages: int | None = None
    pages_per_second: float | None = None
    chunks: int | None = None
    seconds: float | None = None
    set_aside: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as `ingestion.json` has it."""
        return {**asdict(self), "set_aside": list(self.set_aside)}


class Asked(NamedTuple):
    """A case's place in the list that was asked, and the reply to it."""

    position: int
    reply: Reply


class Target(Protocol):
    """A RAG system. A module in `evaluation/targets/` has `open(argument, options) -> Target`."""

    name: str
    exact: bool
    """Whether its passages have spans of the documents as this project reads them, and so need not be looked for."""

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Make a dataset's documents ready to be asked about."""

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[Asked]:
        """Yield one reply a case as it comes, in any order; a failure is a reply with an error."""


def open_target(wanted: str, options: TargetOptions) -> Target:
    """Return the target that `NAME[:ARGUMENT]` names."""
    module, argument = load_plugin(__name__, wanted)
    return cast(Target, module.open(argument, options))


def count_only(dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return the ingestion of a target that has read the documents elsewhere."""
    pages = sum(len(document.pages) for document in dataset.documents.all()) if options.count_pages else None
    return Ingestion(files=len(dataset.files), pages=pages)
