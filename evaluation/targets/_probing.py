"""A question or two before a run: is anybody there, is the key taken, are answer and passages where they are sought?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from exhibit.evaluation.cases import Case
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets._advice import Advice, advise, without_words
from exhibit.evaluation.targets._passages import PassagesError
from exhibit.evaluation.targets._reading import NoAnswerError, Read, Reader
from exhibit.evaluation.targets._schema import Described, made_request, missing_fields, served_paths
from exhibit.evaluation.targets._shapes import describe
from exhibit.evaluation.targets._templates import uses_history
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import Deadline, HttpError, Retries, UnreachableError

_ASKED = 5
"""Questions, spread over the set, that may fail before a server is given up: one may be filtered, five not."""
_REFUSED = (401, 403, 407)  # HTTP: who asks may not
_NOT_THERE = (404, 405, 410)  # HTTP: nothing takes questions there
_UNFIT = (400, 415, 422)  # HTTP: the request is not as the server wants it


class Probed(Described, Protocol):
    """A server as far as the probe needs it."""

    name: str
    template: Any
    reader: Reader

    def exchange(self, case: Case, deadline: Deadline, collection: str = "") -> Read: ...


class Probe:
    """Tries a server on a few questions of a dataset."""

    def __init__(self, server: Probed, dataset: Dataset, collection: str, options: TargetOptions) -> None:
        self._server, self._collection, self._options = server, collection, options
        self._names = dataset.documents.named
        self._paths = "response_context_jmespath" in server.values
        """Whether the paths to answer and passages can be given as flags."""

    def run(self, cases: Sequence[Case]) -> list[str]:
        """Return notes on how the server replies; raise one error that says what is wrong where it does not."""
        notes = self._conversation_note(cases)
        errors: list[HttpError] = []
        reads: list[Read] = []
        for case in spread(cases):
            try:
                reads.append(self._ask(case, notes, first=not errors))
            except UnreachableError as error:
                raise ToolkitError(f"{error}. Is the server running, and is --target-url right?") from error
            except HttpError as error:
                errors.append(error)
                continue
            if reads[-1].passages or self._server.system.reply.passages == ("",) or len(reads) > 1:
                break
        if not reads:
            raise ToolkitError(self._why(errors, len(spread(cases)))) from errors[0]
        best = next((read for read in reads if read.passages), reads[-1])
        notes += self._passages_notes(best)
        if best.shape:
            notes.append(f"{self._server.name}: the reply is read as that of {best.shape}")
        if best.answer is None and self._server.system.reply.answer is None:
            notes.append(f"{self._server.name}: the reply has passages and no answer: only retrieval is measured")
        elif best.answer is None:
            notes.append(f"{self._server.name}: only retrieval is measured")
        self._server.reader.answers = best.answer is not None
        return notes

    def _ask(self, case: Case, notes: list[str], *, first: bool) -> Read:
        """Return a reply; a request that does not fit is made anew from what the server says of itself."""
        try:
            return self._patiently(case, first=first)
        except HttpError as error:
            made = made_request(self._server) if error.status in _UNFIT else None
            if made is None:
                raise
            where, before = made.where, self._server.template
            self._server.template = made.template
            try:
                read = self._patiently(case, first=first)
            except HttpError:
                self._server.template = before
                raise error from None
            notes.append(f"{self._server.name}: asked as its {where} says: {json.dumps(made.template)[:300]}")
            return read

    def _patiently(self, case: Case, *, first: bool) -> Read:
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

    # ---------------------------------------------------------------- what went wrong

    def _why(self, errors: list[HttpError], asked: int) -> str:
        """Return what is wrong with a server that answered none of the questions."""
        name, error = self._server.name, errors[0]
        if error.status in _REFUSED:
            flags = "--target-key VARIABLE, or --target-header Authorization=VARIABLE"
            return f"{name}: the server refuses the key: {error}. Give one with {flags}"
        if error.status in _NOT_THERE:
            served = served_paths(self._server)
            others = f"; it has {', '.join(served)}" if served else ""
            return f"{name}: nothing takes questions at this address: {error}{others}. Check --target-url"
        if error.status in _UNFIT and (missing := missing_fields(error)):
            return f"{name}: {error}. {self._supply(missing)}"
        odd = next((one for one in errors if isinstance(one, NoAnswerError) and not one.blank), None)
        if odd is not None:
            return f"{name}: {odd}{self._fitting(odd.reply)}"
        return f"{name}: none of {asked} questions, spread over the set, was answered. The first error: {error}"

    def _supply(self, missing: list[str]) -> str:
        """Return which flag gives a server the fields that it misses."""
        wanted = ", ".join(missing)
        if "request" in self._server.values or "input" in self._server.values:
            flag = "request" if "request" in self._server.values else "input"
            body = {field: "{question}" if number == 0 else "…" for number, field in enumerate(missing)}
            return f"It wants {wanted}: give --target-{flag} '{json.dumps(body, ensure_ascii=False)}'"
        body = dict.fromkeys(missing, "…")
        return f"It wants {wanted}: give --target-parameters '{json.dumps(body, ensure_ascii=False)}'"

    def _fitting(self, reply: Any) -> str:
        """Return the paths that were tried on this reply and fit it."""
        if not self._paths:
            return ". Is it the right kind of server?"
        advice = advise(reply, self._names)
        return f". These would fit: {advice.flags}" if advice.flags else ". No text in it looks like an answer"

    # ---------------------------------------------------------------- what is odd about a reply

    def _passages_notes(self, read: Read) -> list[str]:
        """Return what is to be said of a reply's passages; raise where they have no words that could be judged."""
        name, given = self._server.name, self._server.system.reply.passages
        if given == ("",):
            return []
        advice = advise(read.raw, self._names) if self._paths else Advice()
        flag = f"--target-response-context-jmespath '{advice.passages}'" if advice.passages else ""
        if not read.passages:
            if self._paths and given and read.passages is None:
                told = f"no passages at {given[0]} of the reply: {describe(read.raw)}"
                raise ToolkitError(f"{name}: {told}" + (f". This would fit: {flag}" if flag else ""))
            hint = f"; is it {flag}?" if flag else ""
            return [
                f"{name}: a reply without passages ({describe(read.raw)}): what needs them cannot be measured{hint}"
            ]
        try:
            wordless, known = without_words(read.passages, self._names, read.pages_from)
        except PassagesError:
            return []  # each question says so itself
        if not wordless:
            return []
        keys = describe(read.passages[0] if isinstance(read.passages, list) else read.passages)
        if flag or not known:
            fits = (
                f". This would fit: {flag}"
                if flag
                else ". Say in a target file (docs/targets.md) which fields they are"
            )
            raise ToolkitError(f"{name}: the passages of the reply have no text: {keys}{fits}")
        return [f"{name}: the passages have names and no text ({keys}): only documents are measured"]

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
