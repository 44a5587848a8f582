"""What a system under test is: the protocol of a target, the options that every target gets, its replies."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from exhibit.engine import Limits
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.rag.config import Config
from exhibit.schemas.run import Ingestion
from exhibit.storage.cache import cache_folder


@dataclass(frozen=True)
class TargetOptions:
    """What every target is told; each reads what it needs."""

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
    """Seconds for one question, from connecting to the last byte, repetitions and pauses included."""
    retries: int = 5
    backoff: float = 0.5
    """How often a failing server is asked again, and the seconds before the first time; each pause is twice as long."""
    ingest: Literal["auto", "never", "fresh"] | None = None
    """Whether the system is given the documents it lacks, must have them, or gets them anew; None: as is usual."""
    delete_collection: bool = False
    """Whether a server's documents will be deleted after the run."""
    count_pages: bool = False
    """Whether a target that ingests nothing itself should count the pages of the corpus."""
    embedder: Embedder | None = None
    llm: LLM | None = None
    """Parts used instead of those that the config names."""
    function: Callable[..., Any] | None = None
    """What the target `function` calls with each question."""


class NumberedReply(NamedTuple):
    """A case's place in the list that was asked, and the reply to it."""

    position: int
    reply: Reply


class Target(Protocol):
    """A RAG system."""

    name: str
    exact: bool
    """Whether its passages have spans of the documents as this project reads them, and so need not be looked for."""

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Return what is worth a note; raise ToolkitError, in one clear line, when no question could be answered.

        It comes before anything is ingested or asked: is there a server, does it take the key, are answer and passages
        where they are looked for? It may ask one of the questions; their replies are not kept.
        """

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Make a dataset's documents ready to be asked about."""

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield one reply a case as it comes, in any order; a failure is a reply with an error."""


def count_only(dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return the ingestion of a target that has read the documents elsewhere."""
    pages = sum(len(document.pages) for document in dataset.documents.all()) if options.count_pages else None
    return Ingestion(files=len(dataset.files), pages=pages)
