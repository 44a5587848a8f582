"""A Python function under test: `exhibit.evaluate(bundle, target=function)`, plain or async, in this process.

It is called with a question, and with `history`, `session` and `as_of` where it has parameters of these names. It
returns the answer as a text, or an object or a mapping with `answer` and `passages`, or what `shapes.toml` knows.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.servers.shapes import Names, describe, recognise
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, ask_all, count_only
from exhibit.evaluation.targets.predictions import read_row
from exhibit.runtime.secrets import scrub
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http_policy import Deadline, HttpError

_DEEPEST = 6
"""Objects inside objects that are looked into: a passage's metadata is at the third."""
_TRIED = 3
"""Questions, spread over the set, that may fail before a function is given up."""


def open(_argument: str | None, options: TargetOptions) -> "Function":
    """Return the function that was given."""
    if options.function is None:
        raise ToolkitError("--target function is for Python: exhibit.evaluate(bundle, target=my_function)")
    return Function(options.function, options)


class Function:
    """Calls a function; whatever it raises fails its question alone."""

    exact = False

    def __init__(self, function: Callable[..., Any], options: TargetOptions) -> None:
        self._function, self._options = function, options
        named = getattr(function, "__qualname__", type(function).__qualname__)
        self.name = f"function:{named}"
        try:
            self._takes = set(inspect.signature(function).parameters) & {"history", "session", "as_of"}
        except (TypeError, ValueError):  # built in, or written in C
            self._takes = set()

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask one question; others where it fails."""
        errors = []
        for case in cases[:: max(1, len(cases) // _TRIED)][:_TRIED]:
            try:
                reply = self._ask(case, Deadline(self._options.timeout, flag="--timeout"), dataset.documents.named)
            except HttpError as error:
                errors.append(str(error))
                continue
            if reply.error:
                errors.append(reply.error)
                continue
            none = f"{self.name}: a reply without passages: what needs them cannot be measured"
            return [] if reply.passages else [none]
        raise ToolkitError(f"{self.name}: none of {len(errors)} questions was answered. The first error: {errors[0]}")

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Say what the corpus is: the function has its own copy."""
        return count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        """Yield replies as they come, several questions being asked at once."""
        names = dataset.documents.named
        yield from ask_all(cases, lambda case, deadline: self._ask(case, deadline, names), self._options)

    def _ask(self, case: Case, deadline: Deadline, names: Names) -> Reply:
        history = [turn._asdict() for turn in case.history]
        parameters = {"history": history, "session": case.session, "as_of": case.labels.get("as_of")}
        try:
            result = self._function(case.question, **{name: parameters[name] for name in self._takes})
            if inspect.isawaitable(result):
                result = self._awaited(result, deadline)
        except HttpError:
            raise
        except Exception as error:  # the function's own, whatever it is
            raise HttpError(scrub(" ".join(f"{type(error).__name__}: {error}".split()))[:300]) from error
        return read_result(result, names)

    def _awaited(self, result: Any, deadline: Deadline) -> Any:
        async def wait() -> Any:
            return await result

        waiting: Coroutine[Any, Any, Any] = wait()
        future = asyncio.run_coroutine_threadsafe(waiting, self._loop)
        try:
            return future.result(deadline.left)
        except TimeoutError:
            future.cancel()
            raise deadline.passed() from None

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """One loop for all questions, in a thread of its own: async clients belong to the loop they began in."""
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop


def read_result(result: Any, names: Names) -> Reply:
    """Return what a function gave as a reply; raise HttpError where there is none in it."""
    if isinstance(result, Reply):
        return result
    if isinstance(result, str | tuple):
        answer, *passages = (result,) if isinstance(result, str) else result
        result = {"answer": answer, "passages": passages[0] if passages else []}
    plain = _plain(result)
    shape = recognise(plain)
    if shape is None:
        raise HttpError(f"the function gave no answer: {describe(plain)}")
    return read_row(plain, shape, names)


def _plain(value: Any, depth: int = _DEEPEST) -> Any:
    """Return objects as mappings of their public attributes, and tuples as lists."""
    if value is None or isinstance(value, str | int | float) or not depth:
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(held, depth - 1) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held, depth - 1) for held in value]
    fields = getattr(value, "__dict__", None) or {
        name: getattr(value, name) for name in getattr(value, "__slots__", ()) if hasattr(value, name)
    }
    return {key: _plain(held, depth - 1) for key, held in fields.items() if not key.startswith("_")}
