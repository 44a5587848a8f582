"""What a run's folder holds: configuration, provenance, means, and a row a question.

The models are the only definition: the evaluation writes through them, `run_folder` reads through them, and the JSON
Schema files beside them are generated from here.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, TypeAdapter
from pydantic.dataclasses import dataclass

from exhibit.schemas.models import Natural, Positive

FORMAT: Literal["exhibit-run/1"] = "exhibit-run/1"
CONFIG, PROVENANCE, SUMMARY, RESULTS, REPORT = (
    "config.json", "provenance.json", "summary.json", "eval_results.jsonl", "report.html",
)  # fmt: skip
BREAKDOWN, INGESTION, CONFIDENCE, EVIDENCE = "breakdown.json", "ingestion.json", "confidence.json", "evidence.json"

Id = int | str
Interval = tuple[FiniteFloat, FiniteFloat]
Score = FiniteFloat | None
"""A metric's value; None where it does not apply, never 0."""


def _known(ends: Any) -> Any:
    """Return an interval; None where the file has [null, null]."""
    if not isinstance(ends, list):
        return ends
    return None if None in ends else tuple(ends)


# ---------------------------------------------------------------- means


@dataclass(frozen=True)
class Estimate:
    """A mean; None, and without an interval, where there is nothing to take it of."""

    mean: FiniteFloat | None
    n: int
    errors: int = 0
    """Questions that failed, which are in no mean."""
    ci95: Annotated[Interval | None, BeforeValidator(_known)] = None
    """None where fewer than two documents tell nothing of a third."""
    datasets: int = 1
    """Of how many datasets' means it is the mean; n and errors are then sums over them."""
    repeats: int = 1
    """How often every question was asked; a question's value is then the mean over its repeats."""
    spread: FiniteFloat | None = None
    """The standard deviation of the repeats' means: how much the figure moves when nothing but chance does."""
    std: FiniteFloat | None = None
    """The standard deviation of the questions' values."""
    pooled: FiniteFloat | None = None
    """Of document-level retrieval mismatch: over all passages, each counting alike."""
    macro: FiniteFloat | None = None
    """Of document-level retrieval mismatch: over documents, each counting alike."""

    def as_json(self) -> dict[str, Any]:
        """Return it as `summary.json` has it."""
        ci95 = [None, None] if self.ci95 is None else list(self.ci95)
        fields = {"mean": self.mean, "n": self.n, "errors": self.errors, "ci95": ci95}
        fields |= {"datasets": self.datasets} if self.datasets > 1 else {}
        fields |= {"repeats": self.repeats, "spread": self.spread} if self.repeats > 1 else {}
        other = {"std": self.std, "pooled": self.pooled, "macro": self.macro}
        return fields | {name: value for name, value in other.items() if value is not None}


Means = dict[str, Estimate]


class _Part(BaseModel):
    # what a later version adds is passed over; what this one writes is what the models name
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


# ---------------------------------------------------------------- a question


class RunGold(_Part):
    """A gold passage: its words, every place where they stand, and how they were located."""

    filename: str | None = None
    text: str | None = None
    places: list[list[tuple[int, int]]] = []
    pages: list[int] = []
    how: str | None = None


class RunPassage(_Part):
    """A retrieved passage; beyond the first ones it has no words, as its place has them."""

    filename: str | None = None
    span: tuple[int, int] | None = None
    page: int | None = None
    score: FiniteFloat | None = None
    text: str | None = None
    told_page: int | None = None
    told_box: list[FiniteFloat] | None = None
    told_size: list[FiniteFloat] | None = None
    told_filename: str | None = None
    """The name that the system gave, where it is not the file's own."""
    also_in: tuple[str, ...] = ()  # a list would be copied for each of 64 passages
    """Other files that have the same words: it cannot be told which one was meant."""
    more: tuple[tuple[int, int], ...] = ()
    """Where its other pieces stand; `span` is the longest."""
    added: tuple[tuple[int, int], ...] = ()
    """The ranges of its text that no document has."""
    misnamed: bool = False
    """Whether another file of the corpus has its words than the one that the system names."""
    unplaced: bool = False
    """Whether its words were looked for, and no place can be told."""


class RunReply(_Part):
    """What the system answered, from which passages; `error` where it did not."""

    answer: str | None = None
    refused: bool = False
    citations: list[int] = []
    passages: list[RunPassage] = []
    selected: int | None = None
    context: list[int] | None = None
    """The numbers of the passages that the answer was made from, where that is known."""
    reranked: list[int] | None = None
    """The numbers of the passages that the reranker kept, in its order, where that is known."""
    seconds: FiniteFloat | None = None
    error: str
    usage: dict[str, FiniteFloat | None] = {}
    first_token: FiniteFloat | None = None
    confidence: FiniteFloat | None = None


class RunRepeat(_Part):
    """One of several times that a question was asked."""

    answer: str | None = None
    seconds: FiniteFloat | None = None
    error: str
    scores: dict[str, Score] = {}


class RunQuestion(_Part):
    """A question as a run leaves it: gold, reply, scores and verdict."""

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
    verdict: str
    stage: str | None = None
    evidence: str = ""
    lost_at: str | None = None
    """The earliest stage that loses one of its gold passages; None where no stage that is known does."""
    gold_stages: list[dict[str, Any]] = []
    """What is known of each gold passage, stage by stage."""
    answer_reason: str = ""
    """Why the reply was called right or wrong, or was not judged."""
    notes: list[str] = []
    """What is missing to judge it by."""
    repeats: list[RunRepeat] = []

    @property
    def document(self) -> str:
        """The document that it is about; where none is known, one of its own: those of one are drawn together."""
        return self.filename or f"\0{self.id}"

    @property
    def key(self) -> tuple[str, Id]:
        """What tells it from every other question of the run."""
        return self.dataset, self.id


# ---------------------------------------------------------------- what the run is about


class RunDataset(_Part):
    """A dataset as it was when the run began."""

    path: str = ""
    origin: str | None = None
    questions: Natural | None = None
    files: Natural | None = None
    groups: str | None = None
    train_sha256: str | None = None
    changed_files: list[str] = []
    headline: str | None = None
    """The metric that sums the benchmark up, where its converter names one."""
    draft: str = ""
    """What every figure on questions that a program drafted must say beside it."""


class Measured(_Part):
    """What was measured, and how."""

    metrics: list[str] = []
    ks: list[Positive] = []
    k: Positive | None = None
    judge: str | None = None
    parity: str | None = None
    count_added: bool = False
    prompts: dict[str, Any] = {}


class RunConfig(_Part):
    """`config.json`: what was asked for; settings of the system are kept under their own names."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)

    format: Literal["exhibit-run/1"] = FORMAT
    version: str = ""
    target: str | None = None
    config: dict[str, Any] = {}
    datasets: dict[str, RunDataset]
    measured: Measured = Measured()


class Machine(_Part):
    """What a run ran on."""

    system: str
    processor: str
    cores: int | None
    python: str


class Provenance(_Part):
    """`provenance.json`: when, at which commit, on which machine, over which version of the data."""

    started: str = ""
    version: str = ""
    commit: str | None = None
    changed_files: int | None = None
    machine: Machine | None = None
    data: dict[str, dict[str, str | None]] = {}
    """The sha256 of the files that the run was read from, by dataset."""
    inputs: dict[str, str | None] = {}
    """The same of other files that decide the replies, such as one of predictions."""


class Ingestion(_Part):
    """`ingestion.json`: what the system read of a dataset."""

    files: int | None = None
    pages: int | None = None
    chunks: int | None = None
    seconds: FiniteFloat | None = None
    pages_per_second: FiniteFloat | None = None
    set_aside: list[str] = []
    notes: Annotated[list[str], Field(exclude=True)] = []
    """What is worth saying of the system now that it has the documents."""


class Confidence(_Part):
    """`confidence.json`: what the confidence beside the answers is worth."""

    questions: int = 0
    answerable: int = 0
    auroc: FiniteFloat | None = None
    calibration: list[dict[str, FiniteFloat]] = []
    risk_at_coverage: list[dict[str, FiniteFloat]] = []
    weighted: dict[str, FiniteFloat] = {}
    """Means in which every question counts by the confidence beside its reply."""


class MissingEvidence(_Part):
    """`evidence.json`: what a dataset's questions and passages lack to be judged by, counted, and in words."""

    questions: int = 0
    lacking: dict[str, int] = {}
    passages: int = 0
    passages_lacking: dict[str, int] = {}
    examples: list[str] = []
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
}
"""The files of a run, in its folder or in those of its datasets, beside the rows."""
