"""A Python function under test: `exhibit.evaluate(bundle, target=function)`, plain or async, in this process.

The function gets a question, and `as_of` if it has a parameter with this name. It returns the answer as a text, as an
object or mapping with `answer` and `passages`, or in any form that `evaluation.replies` can read.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from pydantic_core import to_jsonable_python

from exhibit.evaluation import targets
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.replies import FileNamer, describe, find_parts, read_reply
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions
from exhibit.runtime.secrets import scrub
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline, HttpError, Retries


def open(_argument: str | None, options: TargetOptions) -> "Function":
    if options.function is None:
        raise ToolkitError("--target function works from Python only: exhibit.evaluate(bundle, target=my_function)")
    return Function(options.function, options)


class Function:
    """A target that calls a Python function; an exception fails only the question that caused it."""

    exact = False

    def __init__(self, function: Callable[..., Any], options: TargetOptions) -> None:
        self._function, self._options = function, options
        self.name = f"function:{getattr(function, '__qualname__', type(function).__qualname__)}"
        self._takes_date = "as_of" in inspect.signature(function).parameters

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        errors, ask = [], partial(self._ask, dataset.documents.named)
        for case in targets.choose_probed(cases):
            reply = targets.ask_with_retries(case, ask, Retries(0, 0.0), self._options)
            if not reply.error:
                note = f"{self.name}: the reply has no passages: metrics that need passages cannot be measured"
                return [] if reply.passages else [note]
            errors.append(reply.error)
        raise ToolkitError(f"{self.name}: none of {len(errors)} questions was answered. The first error: {errors[0]}")

    def ingest(self, dataset: Dataset) -> Ingestion:
        return targets.count_only(dataset, self._options)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        yield from targets.ask_all(cases, partial(self._ask, dataset.documents.named), self._options)

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
