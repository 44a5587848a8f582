"""Systems under test: a TOML file in `systems/` or of your own (`--target my-system.toml`), or a Python file here.

Most systems are a file that says what is asked, where answer and passages are, and how documents are taken
(docs/targets.md; `systems/langserve.toml` is a short one, `systems/nvidia.toml` one with documents). Code is needed
only where there is no server: a Python file in this folder is a target when it has

    class MySettings(BaseModel):            # what it can be told beyond `TargetOptions`; may be left out
        url: str = Field("", description="where questions are posted")
    SETTINGS = MySettings

    def open(argument: str | None, options: TargetOptions, settings: MySettings) -> Target: ...

`url` is then the flag `--target-url`, the key `target_url` of a config file, and a line of `--help`; a target without
SETTINGS is opened as `open(argument, options)`. `argument` is what follows the colon of `--target NAME:ARGUMENT`.

The target itself has `probe`, `ingest` and `ask`, which are called in this order for each dataset, and may have
`forget`, which deletes what `ingest` gave the system, and `text(filename)`, which returns a document's text where it
has that at hand.
"""

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from pydantic import BaseModel, ValidationError

from exhibit.engine import Limits
from exhibit.evaluation.cases import Case, Reply, Turn
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.servers.shapes import PassagesError
from exhibit.evaluation.servers.system import settings_of, system_names
from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.rag.config import Config
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import faults_in
from exhibit.schemas.plugins import load_plugin, plugin_names
from exhibit.schemas.run import Ingestion as Ingestion
from exhibit.storage.cache import cache_folder
from exhibit.storage.exchanges import Deadline, HttpError, Retries


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


def target_names() -> list[str]:
    """Return the targets that can be named: files of systems, and Python files."""
    return sorted({*plugin_names(__name__), *system_names()})


def is_system(wanted: str) -> str | None:
    """Return the system that `NAME[:ADDRESS]` or `FILE.toml` names; None where it is a Python file."""
    name = wanted if wanted.endswith(".toml") else wanted.partition(":")[0].replace("-", "_")
    return name if wanted.endswith(".toml") or name in system_names() else None


def open_target(wanted: str, options: TargetOptions, given: Mapping[str, Any] | None = None) -> Target:
    """Return the target that `NAME[:ARGUMENT]` or a TOML file names, with its own settings."""
    settings = read_target_settings(wanted, given or {})
    system = is_system(wanted)
    if system is not None:
        server = import_module("exhibit.evaluation.servers.server").Server
        return cast(Target, server(system, wanted.removeprefix(system).lstrip(":") or None, options, settings))
    module, argument = load_plugin(__name__, wanted)
    opened = module.open(argument, options) if settings is None else module.open(argument, options, settings)
    return cast(Target, opened)


def _settings_model(wanted: str) -> type[BaseModel] | None:
    system = is_system(wanted)
    if system is not None:
        return settings_of(system)
    if wanted.partition(":")[0].replace("-", "_") not in plugin_names(__name__):
        names = ", ".join(name.replace("_", "-") for name in target_names() if name != "function")
        raise ToolkitError(f"no target {wanted.partition(':')[0]!r}; there are {names}, or a file of yours: FILE.toml")
    module, _ = load_plugin(__name__, wanted)
    return cast("type[BaseModel] | None", getattr(module, "SETTINGS", None))


def read_target_settings(wanted: str, given: Mapping[str, Any]) -> BaseModel | None:
    """Return a target's own settings, None where it has none; raise one error that names each that is wrong."""
    model = _settings_model(wanted)
    name = wanted if wanted.endswith(".toml") else wanted.partition(":")[0]
    known = {} if model is None else model.model_fields
    unknown = [f"--target-{key.replace('_', '-')}" for key in given if key not in known]
    if unknown:
        there = ", ".join(f"--target-{key.replace('_', '-')}" for key in known) or "none"
        raise ToolkitError(f"{', '.join(unknown)}: not for the target {name}; its settings are {there}")
    if model is None:
        return None
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise ToolkitError(faults_in(error, under="target_")) from error


def target_settings() -> dict[str, type[BaseModel]]:
    """Return the settings that each target says it has, by its name."""
    models = {name: _settings_model(name) for name in target_names()}
    return {name: model for name, model in models.items() if model is not None}


def count_only(dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return the ingestion of a target that has read the documents elsewhere."""
    pages = sum(len(document.pages) for document in dataset.documents.all()) if options.count_pages else None
    return Ingestion(files=len(dataset.files), pages=pages)


AskOne = Callable[[Case, Deadline], Reply]
"""Asks one question once; raises HttpError or PassagesError when there is no reply."""

_IN_VAIN = 3
"""Questions in a row that a failing server may cost all their tries; those after them are asked once."""


def _patiently(case: Case, ask: AskOne, retries: Retries, options: TargetOptions) -> Reply:
    """Return a reply; whatever goes wrong is one with an error.

    Its seconds are those of the try that gave it: waiting for a busy server is not latency.
    """
    deadline = Deadline(options.timeout, flag="--timeout")
    began = 0.0

    def once() -> Reply:
        nonlocal began
        began = time.monotonic()
        return ask(case, deadline)

    try:
        reply = retries(once, deadline=deadline)
    except (PassagesError, HttpError) as error:
        tries = getattr(error, "tries", 1)
        reply = Reply(error=f"{error} (asked {tries} times)" if tries > 1 else str(error))
    return reply if reply.seconds is not None else replace(reply, seconds=time.monotonic() - began)


def ask_all(cases: Sequence[Case], ask: AskOne, options: TargetOptions) -> Iterator[NumberedReply]:
    """Yield a reply a case as they come, `options.threads` questions being asked at once.

    The turns of a conversation (`labels.session`) are asked one after another, each with those before it.
    """
    stopped = threading.Event()
    retries = Retries(options.retries, options.backoff, in_vain=_IN_VAIN, stopped=stopped)
    conversations, taking = iter(_conversations(cases)), threading.Lock()
    # bounded: replies that nobody has taken yet must not pile up
    replies: queue.Queue[NumberedReply | BaseException | None] = queue.Queue(maxsize=4 * options.threads)

    def work() -> None:
        try:
            while not stopped.is_set():
                with taking:
                    turns = next(conversations, ())
                said: tuple[Turn, ...] = ()
                for position in turns:
                    case = replace(cases[position], history=cases[position].history or said)
                    reply = _patiently(case, ask, retries, options)
                    replies.put(NumberedReply(position, reply))
                    said = (*said, Turn("user", case.question), Turn("assistant", reply.answer or ""))
                if not turns:
                    break
        except BaseException as error:  # a bug must not look like a run without questions
            replies.put(error)
        replies.put(None)

    running = max(1, min(options.threads, len(cases)))
    for _ in range(running):
        threading.Thread(target=work, daemon=True).start()
    try:
        while running:
            item = replies.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                running -= 1
            else:
                yield item
    finally:
        stopped.set()  # whoever waits for a busy server gives up, and whoever waits for room in the queue has it now
        while not replies.empty():
            replies.get()


def _conversations(cases: Sequence[Case]) -> Iterable[Sequence[int]]:
    """Return the positions of the cases, those of one session together and in order."""
    if all(case.session is None for case in cases):
        return ((position,) for position in range(len(cases)))
    sessions: dict[str, list[int]] = defaultdict(list)
    for position, case in enumerate(cases):
        sessions[f"\0{position}" if case.session is None else case.session].append(position)
    return list(sessions.values())
