"""Systems under test, and how questions are asked of them.

A target is a server (`http`, or a system with a TOML file), the built-in pipeline, a Python function, a file of
predictions, or a module of another distribution (docs/extending.md). `probe`, `ingest` and `ask` are called in this
order for each dataset. The optional methods `text(filename)` and `chunks(filename)` return a document's text and the
spans of its chunks.
"""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from exhibit.engine import Limits
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.replies import FileNamer, describe, find_parts, read_reply
from exhibit.evaluation.server_files import list_systems, settings_of
from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.rag.config import Config
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.runtime.secrets import scrub
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults
from exhibit.schemas.run import Ingestion as Ingestion
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.http import Deadline, HttpError, Retries


@dataclass(frozen=True)
class TargetOptions:
    """The options of every target; `Settings` explains the options that are also settings of the run."""

    config: Config = field(default_factory=Config)
    answers: bool = True  # whether the built-in pipeline answers or only retrieves
    cache: Path = field(default_factory=find_cache_folder)
    threads: int = 4
    engine: str = "local"
    jobs: int | None = None
    limits: Limits = field(default_factory=Limits)
    timeout: float = 60.0  # seconds for one question, including retries and pauses
    retries: int = 5
    backoff: float = 0.5  # the seconds before the first retry; each later pause is twice as long
    ingest: Literal["auto", "fresh"] | None = None
    count_pages: bool = False  # whether a target without ingestion should count the pages of the corpus
    embedder: Embedder | None = None  # replaces the embedder of the config
    llm: LLM | None = None  # replaces the language model of the config
    function: Callable[..., Any] | None = None  # the function that the target `function` calls with each question


class NumberedReply(NamedTuple):
    position: int
    reply: Reply


class Target(Protocol):
    """The interface of a system under test."""

    name: str
    exact: bool  # whether passages have spans in the documents as this project reads them, so that no search is needed

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask a few questions before any work and return notes; raise ToolkitError if none could be answered."""

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Prepare the documents of a dataset in the system, and return a record of the files, pages and chunks."""

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield one reply for each case as it arrives, in any order; a failure is a reply with an error."""


def choose_probed(cases: Sequence[Case]) -> Sequence[Case]:
    return cases[:: max(1, len(cases) // 5)][:5]  # five, because a content filter may refuse a single question


def count_only(dataset: Dataset, options: TargetOptions) -> Ingestion:
    """Return the ingestion record of a target that does not ingest documents: only the corpus size."""
    pages = sum(len(document.pages) for document in dataset.documents.all()) if options.count_pages else None
    return Ingestion(files=len(dataset.files), pages=pages)


def list_targets() -> list[str]:
    return sorted({*list_plugins(__name__), *list_systems()})


def find_target(wanted: str) -> tuple[Callable[..., Target], type[BaseModel] | None]:
    """Return the function that opens a target, by `NAME[:ARGUMENT]` or TOML file, and the model of its settings."""
    name, _, argument = (wanted, "", "") if wanted.endswith(".toml") else wanted.partition(":")
    name = name if wanted.endswith(".toml") else name.replace("-", "_")
    if wanted.endswith(".toml") or name in ("http", *list_systems()):
        return partial(load_plugin(__name__, "http")[0].Server, name, argument or None), settings_of(name)
    if name == "function":
        return Function, None
    if name in ("predictions", "recheck"):
        return partial(load_plugin(__name__, "predictions")[0].Predictions, Path(argument), kind=name), None
    if name not in list_plugins(__name__):
        names = ", ".join(other.replace("_", "-") for other in list_targets())
        raise ToolkitError(f"no target {name!r}; the targets are {names}, or a file of your own: FILE.toml")
    module = load_plugin(__name__, name)[0]
    return partial(module.open, argument or None), getattr(module, "SETTINGS", None)


def open_target(wanted: str, options: TargetOptions, given: Mapping[str, Any] | None = None) -> Target:
    """Open the target that `NAME[:ARGUMENT]` or a TOML file names; `given` has the target's settings."""
    settings = read_target_settings(wanted, given or {})
    return find_target(wanted)[0](options, *([] if settings is None else [settings]))


def read_target_settings(wanted: str, given: Mapping[str, Any]) -> BaseModel | None:
    """Return a target's validated settings; raise one error that lists all unknown, or all invalid, settings."""
    model = find_target(wanted)[1]
    known = {} if model is None else model.model_fields
    if unknown := [f"target_{key}" for key in given if key not in known]:
        names = ", ".join(f"target_{key}" for key in known) or "none"
        raise ToolkitError(f"{', '.join(unknown)}: not a setting of the target {wanted}; its settings are {names}")
    try:
        return None if model is None else model.model_validate(dict(given))
    except ValidationError as error:
        raise ToolkitError(format_faults(error, under="target_")) from error


AskOne = Callable[[Case, Deadline], Reply]  # ask one question once; raise HttpError if there is no reply


def ask_with_retries(case: Case, ask: AskOne, retries: Retries, options: TargetOptions) -> Reply:
    """Return a reply, with the time of the last attempt as its latency; with an error if every attempt fails."""
    deadline = Deadline(options.timeout, flag="--timeout")

    def ask_once() -> Reply:
        began = time.monotonic()
        reply = ask(case, deadline)
        return reply if reply.seconds is not None else replace(reply, seconds=time.monotonic() - began)

    try:
        return retries(ask_once, deadline=deadline)
    except HttpError as error:
        return Reply(error=f"{error} (asked {error.tries} times)" if error.tries > 1 else str(error))


def ask_all(cases: Sequence[Case], ask: AskOne, options: TargetOptions) -> Iterator[NumberedReply]:
    """Yield replies as they arrive; `options.threads` questions are asked at the same time."""
    stopped = threading.Event()
    # after three questions in a row have failed with all retries, later questions are asked only once
    retries = Retries(options.retries, options.backoff, in_vain=3, stopped=stopped)
    pool, waiting, asked = ThreadPoolExecutor(options.threads), enumerate(cases), dict[Future[Reply], int]()

    def submit(count: int) -> None:
        for position, case in islice(waiting, count):
            asked[pool.submit(ask_with_retries, case, ask, retries, options)] = position

    try:
        submit(2 * options.threads)  # so that each thread has its next question when a reply arrives
        while asked:
            done, _ = wait(asked, return_when=FIRST_COMPLETED)
            submit(len(done))
            for future in sorted(done, key=asked.__getitem__):
                yield NumberedReply(asked.pop(future), future.result())
    finally:
        stopped.set()  # threads stop waiting for a busy server
        pool.shutdown(wait=False, cancel_futures=True)


class Function:
    """A Python function under test, plain or async, in this process; an exception fails only its question.

    It gets a question, and `as_of` if it has this parameter; it returns a text, or what `evaluation.replies` can read.
    """

    exact = False

    def __init__(self, options: TargetOptions) -> None:
        if options.function is None:
            raise ToolkitError("--target function works from Python only: exhibit.evaluate(bundle, target=my_function)")
        self._options, self._function = options, options.function
        self.name = f"function:{getattr(self._function, '__qualname__', type(self._function).__qualname__)}"
        self._takes_date = "as_of" in inspect.signature(self._function).parameters

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        errors, ask = [], partial(self._ask, dataset.documents.named)
        for case in choose_probed(cases):
            reply = ask_with_retries(case, ask, Retries(0, 0.0), self._options)
            if not reply.error:
                note = f"{self.name}: the reply has no passages: metrics that need passages cannot be measured"
                return [] if reply.passages else [note]
            errors.append(reply.error)
        raise ToolkitError(f"{self.name}: none of {len(errors)} questions was answered. The first error: {errors[0]}")

    def ingest(self, dataset: Dataset) -> Ingestion:
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        yield from ask_all(cases, partial(self._ask, dataset.documents.named), self._options)

    def _ask(self, names: FileNamer, case: Case, deadline: Deadline) -> Reply:
        date = {"as_of": case.labels.get("as_of")} if self._takes_date else {}
        try:
            result = self._function(case.question, **date)
            if inspect.iscoroutine(result):
                result = self._run(result, deadline)
            return _read_result(result, names)
        except HttpError:
            raise
        except Exception as error:  # of the function itself, or of an object that it returns
            raise HttpError(scrub(" ".join(f"{type(error).__name__}: {error}".split()))[:300]) from error

    def _run(self, coroutine: Any, deadline: Deadline) -> Any:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(deadline.left)
        except TimeoutError:
            future.cancel()
            raise deadline.make_error() from None

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """One event loop for all questions, because an async client belongs to the loop that made it."""
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop


def _read_result(result: Any, names: FileNamer) -> Reply:
    if isinstance(result, Reply):
        return result
    if isinstance(result, str | tuple):
        answer, *passages = (result,) if isinstance(result, str) else result
        result = {"answer": answer, "passages": passages[0] if passages else []}
    plain = to_jsonable_python(
        result, by_alias=False, bytes_mode="base64", fallback=lambda given: getattr(given, "__dict__", {})
    )
    parts = find_parts(plain)
    if parts.answer is None and not parts.passages and parts.blank != "empty":
        raise HttpError(f"the function must return an answer, but returned {describe(plain)}")
    return read_reply(plain, names)
