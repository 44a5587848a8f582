"""The interface of a target (a system under test), the options that all targets share, and numbered replies."""

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
from exhibit.storage.cache import find_cache_folder


@dataclass(frozen=True)
class TargetOptions:
    """The options of every target; each target reads those that it needs."""

    config: Config = field(default_factory=Config)
    answers: bool = True
    """Whether the built-in pipeline answers, or only retrieves."""
    cache: Path = field(default_factory=find_cache_folder)
    threads: int = 4
    """The number of requests at the same time."""
    engine: str = "local"
    jobs: int | None = None
    """The runner of the built-in pipeline's own work, and its number of workers; None = all processors."""
    limits: Limits = field(default_factory=Limits)
    """The limits of time and memory for one document."""
    timeout: float = 60.0
    """Seconds for one question, from the connection to the last byte, with retries and pauses."""
    retries: int = 5
    backoff: float = 0.5
    """The number of retries, and the seconds before the first one; each later pause is twice as long."""
    ingest: Literal["auto", "never", "fresh"] | None = None
    """Whether missing documents are uploaded, no documents are uploaded, or all are uploaded again.

    None: the default.
    """
    delete_collection: bool = False
    """Whether a server's documents will be deleted after the run."""
    count_pages: bool = False
    """Whether a target without ingestion should count the pages of the corpus."""
    embedder: Embedder | None = None
    llm: LLM | None = None
    """Components that replace those of the config."""
    function: Callable[..., Any] | None = None
    """The function that the target `function` calls with each question."""


class NumberedReply(NamedTuple):
    """The position of a case in the list of questions, and its reply."""

    position: int
    reply: Reply


class Target(Protocol):
    """The interface of a system under test."""

    name: str
    exact: bool
    """Whether the passages have spans in the documents as this project reads them, so that no search is needed."""

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Check the system before documents are ingested and questions are asked; return notes for the user.

        The probe checks that the server runs, that it accepts the key, and that the replies have an answer and
        passages. It may ask some of the questions; these replies are not stored. Raise ToolkitError, in one clear
        line, if no question could be answered.
        """

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Prepare the documents of a dataset in the system, and return a record of the files, pages and chunks."""

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield one reply for each case as it arrives, in any order; a failure is a reply with an error."""


def count_only(dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return the ingestion record of a target that does not ingest the documents itself: only the corpus size."""
    pages = sum(len(document.pages) for document in dataset.documents.all()) if options.count_pages else None
    return Ingestion(files=len(dataset.files), pages=pages)
