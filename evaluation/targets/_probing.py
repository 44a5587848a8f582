"""A question or two before a run: is anybody there, is the key taken, are answer and passages where they are sought?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._fields import PassagesError, describe, read_passages
from exhibit.evaluation.targets._reading import NoAnswerError, Read, Reader
from exhibit.evaluation.targets._system import System, uses_history
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.exchanges import Deadline, HttpError, Retries, UnreachableError

_ASKED = 5
"""Questions, spread over the set, that may fail before a server is given up: one may be filtered, five not."""
_REFUSED = (401, 403, 407)  # HTTP: who asks may not
_NOT_THERE = (404, 405, 410)  # HTTP: nothing takes questions there
_UNFIT = (400, 415, 422)  # HTTP: the request is not as the server wants it


class Probed(Protocol):
    """A server as far as the probe needs it."""

    name: str
    system: System
    values: dict[str, Any]
    template: Any
    reader: Reader

    def exchange(self, case: Case, deadline: Deadline, collection: str = "") -> Read: ...


class Probe:
    """Tries a server on a few questions of a dataset."""

    def __init__(self, server: Probed, dataset: Dataset, collection: str, options: TargetOptions) -> None:
        self._server, self._collection, self._options = server, collection, options
        self._names = dataset.documents.named
        flags = "--target-response-answer-jmespath and --target-response-context-jmespath"
        settable = "response_context_jmespath" in server.values
        self._advice = f"Say where they are with {flags}" if settable else "Is it the right kind of server?"

    def run(self, cases: Sequence[Case]) -> list[str]:
        """Return notes on how the server replies; raise one error that says what is wrong where it does not."""
        name, reply = self._server.name, self._server.system.reply
        notes = self._conversation_note(cases)
        errors: list[HttpError] = []
        reads: list[Read] = []
        for case in spread(cases):
            try:
                reads.append(self._ask(case, first=not errors))
            except UnreachableError as error:
                raise ToolkitError(f"{error}. Is the server running, and is --target-url right?") from error
            except HttpError as error:
                errors.append(error)
                continue
            if reads[-1].passages or reply.passages == ("",) or len(reads) > 1:
                break
        if not reads:
            raise ToolkitError(self._why(errors, len(spread(cases)))) from errors[0]
        best = next((read for read in reads if read.passages), reads[-1])
        notes += [] if reply.passages == ("",) else self._passages_notes(best)
        if best.shape:
            notes.append(f"{name}: the reply is read as that of {best.shape}")
        if best.answer is None:
            notes.append(f"{name}: the reply has passages and no answer: only retrieval is measured")
        self._server.reader.answers = best.answer is not None
        return notes

    def _ask(self, case: Case, *, first: bool) -> Read:
        """Return a reply, asked for again while that may help; nobody is waited for who is not there."""
        deadline = Deadline(self._options.timeout, flag="--timeout")

        def once() -> Read:
            try:
                return self._server.exchange(case, deadline, self._collection)
            except UnreachableError as error:
                error.transient = False
                raise

        # a busy server is waited for once: one that stays busy for the first question is asked the others in vain
        retries = Retries(self._options.retries if first else 0, self._options.backoff)
        return retries(once, deadline=deadline)

    def _why(self, errors: list[HttpError], asked: int) -> str:
        """Return what is wrong with a server that answered none of the questions."""
        name, error = self._server.name, errors[0]
        if error.status in _REFUSED:
            flags = "--target-key VARIABLE, or --target-header Authorization=VARIABLE"
            return f"{name}: the server refuses the key: {error}. Give one with {flags}"
        if error.status in _NOT_THERE:
            return f"{name}: nothing takes questions at this address: {error}. Check --target-url"
        if error.status in _UNFIT and (missing := missing_fields(error)):
            flag = next((name for name in ("request", "input") if name in self._server.values), "parameters")
            return f"{name}: {error}. It wants {', '.join(missing)}: give them with --target-{flag}"
        odd = next((one for one in errors if isinstance(one, NoAnswerError) and not one.blank), None)
        if odd is not None:
            return f"{name}: {odd}. {self._advice}"
        return f"{name}: none of {asked} questions, spread over the set, was answered. The first error: {error}"

    def _passages_notes(self, read: Read) -> list[str]:
        """Return what is to be said of a reply's passages; raise where they have no words that could be judged."""
        name, given = self._server.name, self._server.system.reply.passages
        if not read.passages:
            if "response_context_jmespath" in self._server.values and given and read.passages is None:
                raise ToolkitError(f"{name}: no passages at {given[0]} of the reply: {describe(read.raw)}")
            return [f"{name}: a reply without passages ({describe(read.raw)}): what needs them cannot be measured"]
        try:
            passages = read_passages(read.passages, names=self._names, pages_from=read.pages_from)
        except PassagesError:
            return []  # each question says so itself
        if any(one.text.strip() or one.span for one in passages):
            return []
        keys = describe(read.passages[0] if isinstance(read.passages, list) else read.passages)
        if any(one.filename and self._names(one.filename) for one in passages):
            return [f"{name}: the passages have names and no text ({keys}): only documents are measured"]
        fits = "Say in a target file (docs/targets.md) which fields they are"
        raise ToolkitError(f"{name}: the passages of the reply have no text: {keys}. {fits}")

    def _conversation_note(self, cases: Sequence[Case]) -> list[str]:
        part = sum(bool(case.history) or case.session is not None for case in cases)
        if not part or uses_history(self._server.template):
            return []
        return [
            f"{part} questions are part of a conversation, and the request has neither {{history}} nor {{session}}: "
            "they are asked alone"
        ]


def spread(cases: Sequence[Case]) -> list[Case]:
    """Return a few cases from all over the set, its first among them."""
    places = {round(number * (len(cases) - 1) / (_ASKED - 1)) for number in range(_ASKED)}
    return [cases[place] for place in sorted(places)]


def missing_fields(error: HttpError) -> list[str]:
    """Return the fields that a server says it misses: `loc` of FastAPI's and pydantic's errors."""
    try:
        faults = json.loads(error.body)["detail"]
        places = [fault["loc"] for fault in faults if "missing" in str(fault.get("type", "missing"))]
        names = [".".join(str(part) for part in place if part != "body") for place in places]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
    return [name for name in dict.fromkeys(names) if name]
