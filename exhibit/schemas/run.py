"""The models of a run's folder, by which the evaluation writes it, `run_folder` reads it, and JSON Schema is made."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, TypeAdapter
from pydantic.dataclasses import dataclass

from exhibit.schemas.models import Natural, Positive

FORMAT: Literal["exhibit-run/2"] = "exhibit-run/2"
CONFIG, PROVENANCE, SUMMARY, RESULTS, REPORT = (
    "config.json", "provenance.json", "summary.json", "eval_results.jsonl", "report.html",
)  # fmt: skip
BREAKDOWN, INGESTION, CONFIDENCE, EVIDENCE = "breakdown.json", "ingestion.json", "confidence.json", "evidence.json"


class Outcome(StrEnum):
    """The outcome of a question; report, comparison, trend, review, exports and exit codes all derive from it."""

    INVENTED = "invented"  # answered although the documents do not answer
    WRONG = "wrong"
    WRONGLY_REFUSED = "wrongly refused"  # an empty reply also counts as a refusal
    FAILED = "failed"
    MISSED = "missed"  # `missed` and `found` are for systems that return passages and no answer
    NOT_JUDGED = "not judged"
    FOUND = "found"
    RIGHTLY_REFUSED = "rightly refused"
    RIGHT = "right"


ANSWERED_RIGHTLY, AT_MOST = "answered_rightly", "answered_rightly_at_most"
"""The share of answerable questions that are certainly right, and that share if all unjudged answers were right.
Failed questions count in both, so that the denominator never shrinks.
"""
COUNTS_FAILED = frozenset({ANSWERED_RIGHTLY, AT_MOST})
Id = int | str
Interval = tuple[FiniteFloat, FiniteFloat]
MAX_SCORE = 1e15
Score = Annotated[FiniteFloat, Field(ge=-MAX_SCORE, le=MAX_SCORE)] | None
"""A metric's value; None, never 0, if the metric does not apply."""


def _read_interval(ends: Any) -> Any:
    if not isinstance(ends, list):
        return ends
    return None if None in ends else tuple(ends)


@dataclass(frozen=True)
class Estimate:
    """A mean over questions; without values the mean and its interval are None."""

    mean: FiniteFloat | None
    n: int
    errors: int = 0  # The number of questions with a failed reply, which only the shares of right answers include
    ci95: Annotated[Interval | None, BeforeValidator(_read_interval)] = None
    """The 95% confidence interval; None with fewer than two documents, from which no variance can be estimated."""
    datasets: int = 1  # The number of datasets whose means are averaged; `n` and `errors` are sums over these datasets
    repeats: int = 1  # The number of replies to every question; a question's value is the mean over its replies
    spread: FiniteFloat | None = None  # standard deviation between the means of the rounds: variation by chance
    std: FiniteFloat | None = None  # The standard deviation of the questions' values
    pooled: FiniteFloat | None = None  # Document-level retrieval mismatch as the mean over all passages
    macro: FiniteFloat | None = None  # Document-level retrieval mismatch as the mean over documents

    def as_json(self) -> dict[str, Any]:
        ci95 = [None, None] if self.ci95 is None else list(self.ci95)
        fields = {"mean": self.mean, "n": self.n, "errors": self.errors, "ci95": ci95}
        fields |= {"datasets": self.datasets} if self.datasets > 1 else {}
        fields |= {"repeats": self.repeats, "spread": self.spread} if self.repeats > 1 else {}
        other = {"std": self.std, "pooled": self.pooled, "macro": self.macro}
        return fields | {name: value for name, value in other.items() if value is not None}


Means = dict[str, Estimate]


class _Part(BaseModel):
    # ignore fields of a later version; this version writes only the fields of the models
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class RunGold(_Part):
    """A gold passage: its text, every location of the text in the document, and how it was located."""

    filename: str | None = None
    text: str | None = None
    places: list[list[tuple[int, int]]] = []
    pages: list[int] = []
    how: str | None = None


class RunPassage(_Part):
    """A retrieved passage in a run's files; only the first ten passages of a reply are stored with their text."""

    filename: str | None = None
    span: tuple[int, int] | None = None
    page: int | None = None
    score: FiniteFloat | None = None
    text: str | None = None
    told_page: int | None = None
    told_filename: str | None = None  # The file name that the system reported, if it differs from the file's own
    also_in: tuple[str, ...] = ()  # a tuple, because a list would be copied for each of 64 passages
    """Other files that contain the same text: the passage may come from any of them."""
    more: tuple[tuple[int, int], ...] = ()  # The spans of the passage's other pieces; `span` is the longest piece
    pages: tuple[int, ...] = ()  # the pages of all its pieces, if several; `page` is that of the longest piece
    added: tuple[tuple[int, int], ...] = ()  # The spans of the passage's text that no document contains
    misnamed: bool = False  # whether its text is in another file of the corpus than the one that the system named
    unplaced: bool = False  # Whether the passage's text was searched for and not found


class RunReply(_Part):
    """The system's answer and its passages, or `error` if there is no answer."""

    answer: str | None = None
    refused: bool = False
    citations: list[int] = []
    passages: list[RunPassage] = []
    selected: int | None = None
    context: list[int] | None = None  # The numbers of the passages that the answer used, if known
    reranked: list[int] | None = None  # the passages that the reranker kept, in its order; None if unknown
    seconds: FiniteFloat | None = None
    error: str
    usage: dict[str, FiniteFloat | None] = {}
    confidence: FiniteFloat | None = None


class RunRepeat(_Part):
    answer: str | None = None
    seconds: FiniteFloat | None = None
    error: str
    scores: dict[str, Score] = {}
    outcome: Outcome


class RunQuestion(_Part):
    """A question in a run: gold, reply, scores and outcome."""

    dataset: str = ""
    id: Id
    question: str
    truth: str
    is_impossible: bool = False
    filename: str | None = None
    labels: dict[str, Any] = {}
    gold: list[RunGold] = []
    reply: RunReply
    scores: dict[str, Score] = {}
    outcome: Outcome
    reason: str = ""  # The reason for the outcome, in a sentence
    supported: bool | None = None  # whether the passages cited, or used for the answer, contain gold; None if unknown
    lost_at: str | None = None  # The earliest stage that loses one of the gold passages; None if no known stage does
    gold_stages: list[dict[str, Any]] = []  # The stages that each gold passage reached, as far as they are known
    notes: list[str] = []  # Notes on data that the question or its reply lacks
    repeats: list[RunRepeat] = []

    @property
    def document(self) -> str:
        """The document, by which the bootstrap resamples questions; if unknown, a name that no other question has."""
        return self.filename or f"\0{self.id}"

    @property
    def failed(self) -> bool:
        """Whether any reply to the question is an error."""
        return any(reply.error for reply in self.repeats) or bool(self.reply.error)

    @property
    def key(self) -> tuple[str, Id]:
        return self.dataset, self.id


class RunDataset(_Part):
    path: str = ""
    origin: str | None = None
    questions: Natural | None = None
    files: Natural | None = None
    groups: str | None = None
    train_sha256: str | None = None
    changed_files: list[str] = []
    headline: str | None = None  # The benchmark's main metric, if its converter names one
    draft: str = ""  # The caveat to print beside every figure on questions that a program drafted


class Measured(_Part):
    metrics: list[str] = []
    ks: list[Positive] = []
    k: Positive | None = None
    judge: str | None = None
    parity: str | None = None
    parsed: str | None = None  # The folder of the texts that the system extracted, if given
    chunks: str | None = None  # The file of the system's chunks, if given
    prompts: dict[str, Any] = {}


class RunConfig(_Part):
    """`config.json`: the requested configuration; extra fields are allowed for the settings of the tested system."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    format: Literal["exhibit-run/2"] = FORMAT
    version: str = ""
    target: str | None = None
    config: dict[str, Any] = {}
    datasets: dict[str, RunDataset]
    measured: Measured = Measured()


class Provenance(_Part):
    """`provenance.json`: the time, the commit, the machine and the versions of the data."""

    started: str = ""
    version: str = ""
    commit: str | None = None
    changed_files: int | None = None
    machine: dict[str, str | int | None] | None = None  # operating system, processor, cores and Python
    data: dict[str, dict[str, str | None]] = {}  # The sha256 of the dataset files that the run read, by dataset
    inputs: dict[str, str | None] = {}  # sha256 of other files that determine replies, such as a predictions file


class Ingestion(_Part):
    """`ingestion.json`: the documents of a dataset that the system ingested."""

    files: int | None = None
    pages: int | None = None
    chunks: int | None = None
    seconds: FiniteFloat | None = None
    pages_per_second: FiniteFloat | None = None
    set_aside: list[str] = []
    notes: Annotated[list[str], Field(exclude=True)] = []  # Notes on the system after ingestion


class Confidence(_Part):
    """`confidence.json`: the means of metrics, weighted by the confidence of the answers."""

    questions: int = 0
    answerable: int = 0
    weighted: dict[str, FiniteFloat] = {}  # Means in which a question's weight is the confidence of its answer


class MissingEvidence(_Part):
    """`evidence.json`: sentences that count the questions and passages without the data that a metric needs."""

    lines: list[str] = []


QUESTION = TypeAdapter(RunQuestion)
FILES: dict[str, TypeAdapter[Any]] = {
    CONFIG: TypeAdapter(RunConfig),
    PROVENANCE: TypeAdapter(Provenance),
    SUMMARY: TypeAdapter(Means),
    BREAKDOWN: TypeAdapter(dict[str, dict[str, Means]]),
    INGESTION: TypeAdapter(Ingestion),
    CONFIDENCE: TypeAdapter(Confidence),
    EVIDENCE: TypeAdapter(MissingEvidence),
}  # The files of a run other than the rows, in the run's folder or in a dataset's folder
