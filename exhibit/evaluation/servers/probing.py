"""Probe a server with a few questions before a run.

The probe checks that the server runs, that it accepts the key, and where a reply has its answer and
passages.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.servers.polling import list_polls
from exhibit.evaluation.servers.reading import NoAnswerError, Read
from exhibit.evaluation.servers.request_forms import Probed, find_missing_fields, list_requests, list_served_paths
from exhibit.evaluation.servers.shapes import Names, PassagesError, describe, find_words, read_passages, search
from exhibit.evaluation.servers.templates import uses_history
from exhibit.evaluation.target_protocol import TargetOptions
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http_policy import Deadline, HttpError, Retries, UnreachableError

_ASKED = 5
"""A server is rejected when this many questions from all parts of the dataset fail: a filter may refuse one."""
_REFUSED = (401, 403, 407)  # HTTP: not authorised
_NOT_THERE = (404, 405, 410)  # HTTP: no endpoint for questions at this address
_UNFIT = (400, 415, 422)  # HTTP: the request has the wrong form


class Probe:
    """A probe of a server with a few questions of a dataset."""

    def __init__(self, server: Probed, dataset: Dataset, collection: str, options: TargetOptions) -> None:
        self._server, self._collection, self._options = server, collection, options
        self._names = dataset.documents.named
        self._paths = "response_context_jmespath" in server.values
        """Whether the paths to answer and passages can be set with flags."""
        self._questions: frozenset[str] = frozenset()

    def run(self, cases: Sequence[Case]) -> list[str]:
        """Ask a few questions, and return notes on the form of the replies.

        If no question is answered, raise one error that explains the problem.
        """
        self._questions = frozenset(case.question.strip() for case in cases)
        notes = self._note_conversations(cases)
        errors: list[HttpError] = []
        reads: list[Read] = []
        for case in sample_cases(cases):
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
            raise ToolkitError(self._explain_errors(errors, len(sample_cases(cases)))) from errors[0]
        best = next((read for read in reads if read.passages), reads[-1])
        notes += self._check_passages(best)
        if best.shape:
            notes.append(f"{self._server.name}: the replies are read in the format of {best.shape}")
        if best.answer is None and self._server.system.reply.answer is None:
            notes.append(f"{self._server.name}: the replies have passages but no answer: only retrieval is measured")
        elif best.answer is None:
            notes.append(f"{self._server.name}: only retrieval is measured")
        self._server.reader.answers = best.answer is not None
        return notes

    def _ask(self, case: Case, notes: list[str], *, first: bool) -> Read:
        """Return the reply to one question of the probe.

        If the server rejects the form of the request, try other forms: the one that the server's OpenAPI
        description defines or, without a description, the usual ones.
        """
        try:
            return self._ask_with_retries(case, first=first)
        except NoAnswerError as odd:
            return self._ask_polled(case, odd, notes)
        except HttpError as error:
            if error.status not in _UNFIT:
                raise
            before = self._server.template
            for made in list_requests(self._server):
                self._server.template = made.template
                request = json.dumps(made.template, ensure_ascii=False)[:300]
                try:
                    read = self._ask_with_retries(case, first=first)
                except NoAnswerError as odd:  # the request is right, but the reply is not understood yet
                    odd.args = (f"{odd} (asked {made.where}: {request})",)
                    read = self._ask_polled(case, odd, notes)
                except HttpError:
                    continue
                notes.append(f"{self._server.name}: asked {made.where}: {request}")
                return read
            self._server.template = before
            raise

    def _ask_polled(self, case: Case, odd: NoAnswerError, notes: list[str]) -> Read:
        """Return the reply of a server that first returns a task, which must be polled.

        `odd` is the error of the first attempt; raise it again if polling brings no answer.
        """
        for poll in list_polls(odd.reply):
            self._server.poll = poll
            try:
                read = self._ask_with_retries(case, first=False)
            except HttpError:
                continue
            lines = f'[poll]\n{"url" if poll.url else "task"} = "{poll.url or poll.task}"' + (
                f'\npath = "{poll.path}"' if poll.path else ""
            )
            notes.append(f"{self._server.name}: it returns a task, which is polled until it is done; as TOML: {lines}")
            return read
        self._server.poll = None
        raise odd

    def _ask_with_retries(self, case: Case, *, first: bool) -> Read:
        """Return the server's reply to one question of the probe.

        If `first`, the request is retried after a temporary error, but not if the server is unreachable. Other
        questions are never retried.
        """
        deadline = Deadline(self._options.timeout, flag="--timeout")

        def ask_once() -> Read:
            try:
                return self._server.exchange(case, deadline, self._collection)
            except UnreachableError as error:
                error.transient = False
                raise

        # only the first question waits for a busy server: if it stays busy, waiting again would not help
        retries = Retries(self._options.retries if first else 0, self._options.backoff)
        return retries(ask_once, deadline=deadline)

    # ---------------------------------------------------------------- what went wrong

    def _explain_errors(self, errors: list[HttpError], asked: int) -> str:
        """Return a message that explains why a server answered none of the questions."""
        name, error = self._server.name, errors[0]
        if error.status in _REFUSED:
            flags = "--set target_key=VARIABLE, or --set target_header=Authorization=VARIABLE"
            return f"{name}: the server does not accept the key: {error}. Set one with {flags}"
        if error.status in _NOT_THERE:
            served = list_served_paths(self._server)
            others = f"; it has {', '.join(served)}" if served else ""
            return f"{name}: no endpoint for questions at this address: {error}{others}. Check --target-url"
        if error.status in _UNFIT and (missing := find_missing_fields(error)):
            return f"{name}: {error}. {self._supply(missing)}"
        odd = next((one for one in errors if isinstance(one, NoAnswerError) and not one.blank), None)
        if odd is not None:
            return f"{name}: {odd}{self._suggest_paths(odd.reply)}"
        return f"{name}: none of {asked} questions from all parts of the dataset was answered. The first error: {error}"

    def _supply(self, missing: list[str]) -> str:
        """Return a message with the flag that adds the missing fields to the request."""
        wanted = ", ".join(missing)
        if "request" in self._server.values or "input" in self._server.values:
            flag = "request" if "request" in self._server.values else "input"
            body = {field: "{question}" if number == 0 else "…" for number, field in enumerate(missing)}
            return f"The server requires {wanted}: add --set target_{flag}='{json.dumps(body, ensure_ascii=False)}'"
        body = dict.fromkeys(missing, "…")
        return f"The server requires {wanted}: add --set target_parameters='{json.dumps(body, ensure_ascii=False)}'"

    def _suggest_paths(self, reply: Any) -> str:
        """Return a hint that is added to the error message about a reply without a recognised answer.

        The hint gives the command-line flags with which the answer in this reply would be found. If no text of
        the reply looks like an answer, the hint says so. If the kind of server has fixed paths, the hint asks
        whether it is the right kind of server.
        """
        if not self._paths:
            return ". Is this the right kind of server?"
        advice = advise(reply, self._names, self._questions)
        return f". Try {advice.flags}" if advice.flags else ". No text in the reply looks like an answer"

    # ---------------------------------------------------------------- what is odd about a reply

    def _check_passages(self, read: Read) -> list[str]:
        """Return notes on a reply's passages; raise an error if passages are missing or have no text to be scored."""
        name, given = self._server.name, self._server.system.reply.passages
        if given == ("",):
            return []
        advice = advise(read.raw, self._names, self._questions) if self._paths else Advice()
        flag = f"--set target_response_context_jmespath='{advice.passages}'" if advice.passages else ""
        if not read.passages:
            if self._paths and given and read.passages is None:
                message = f"no passages at {given[0]} in the reply: {describe(read.raw)}"
                raise ToolkitError(f"{name}: {message}" + (f". Try {flag}" if flag else ""))
            hint = f"; is it {flag}?" if flag else ""
            return [
                f"{name}: the reply has no passages ({describe(read.raw)}): metrics that need passages cannot be "
                f"measured{hint}"
            ]
        try:
            wordless, known = without_words(read.passages, self._names, read.pages_from)
        except PassagesError:
            return []  # each question reports this itself
        if not wordless:
            return []
        keys = describe(read.passages[0] if isinstance(read.passages, list) else read.passages)
        if flag and known and without_words(search(advice.passages, read.raw), self._names, read.pages_from)[0]:
            flag = ""  # the passages at that path have only names, too
        if flag or not known:
            fits = f"Try {flag}" if flag else "Name their fields in a target file (docs/targets.md)"
            raise ToolkitError(f"{name}: the passages in the reply have no text; the form of one is {keys}. {fits}")
        return [f"{name}: the passages have file names but no text ({keys}): only document metrics are measured"]

    def _note_conversations(self, cases: Sequence[Case]) -> list[str]:
        part = sum(bool(case.history) or case.session is not None for case in cases)
        if not part or uses_history(self._server.template):
            return []
        return [
            f"{part} questions are part of a conversation, but the request has neither {{history}} nor {{session}}: "
            "they are asked without the earlier turns"
        ]


def sample_cases(cases: Sequence[Case]) -> list[Case]:
    """Return a few cases from all parts of the dataset, the first case among them."""
    places = {round(number * (len(cases) - 1) / (_ASKED - 1)) for number in range(_ASKED)}
    return [cases[place] for place in sorted(places)]


_NAMING = re.compile(r"file|doc|title|name|source|url|path", re.IGNORECASE)
_DEEPEST_REPLY = 6
"""The levels of a reply that are searched: the deepest known format has its passages at the fourth."""
_SENTENCE = 3
"""A text with at least this many words may be a passage or an answer."""


class Advice(NamedTuple):
    """The paths of the answer and of the passages in a reply; empty if none was found."""

    answer: str = ""
    passages: str = ""

    @property
    def flags(self) -> str:
        """The found paths of the answer and the passages, as `--set` flags that a user can copy into the command."""
        answer = f"--set target_response_answer_jmespath='{self.answer}'" if self.answer else ""
        passages = f"--set target_response_context_jmespath='{self.passages}'" if self.passages else ""
        return " ".join(filter(None, (answer, passages)))


def advise(reply: Any, names: Names, questions: Collection[str] = ()) -> Advice:
    """Return the likely paths of the answer and of the passages in a reply, each tested on the reply.

    The text of a question is never taken for an answer.
    """
    lists = [(path, value) for path, value in _walk(reply) if isinstance(value, list) and value and path]
    passages = next((fit for path, value in lists if (fit := _find_passage_path(reply, path, value, names))), "")
    inside = passages.partition("[")[0] if passages else None
    texts = [(path, value) for path, value in _walk(reply) if isinstance(value, str) and " " in value.strip()]
    texts = [(path, value) for path, value in texts if not inside or not path.startswith(f"{inside}[")]
    texts = [(path, value) for path, value in texts if value.strip() not in questions and not names(value)]
    answer = max(texts, key=lambda pair: len(pair[1]), default=("", ""))[0]
    return Advice(answer if answer and find_words([answer], reply) else "", passages)


def _find_passage_path(reply: Any, path: str, items: list[Any], names: Names) -> str:
    """Return a JMESPath that reads the items of a list as passages; empty if the items are not passages.

    The list is at `path` in the reply. The result selects the text of each item and, if possible, its file
    name.
    """
    first = items[0]
    if isinstance(first, str):
        return path if len(first.split()) >= _SENTENCE or names(first) else ""
    if not isinstance(first, Mapping):
        return ""
    texts = [(key, value) for key, value in _walk(first) if isinstance(value, str)]
    long = [(key, value) for key, value in texts if len(value.split()) >= _SENTENCE and not names(value)]
    if not long:
        return ""
    text = max(long, key=lambda pair: len(pair[1]))[0]
    known = [key for key, value in texts if names(value)] + [
        key for key, _ in texts if key != text and _NAMING.search(key.rpartition(".")[2])
    ]
    fields = f"text: {text}" + (f", filename: {known[0]}" if known else "")
    for fit in (path, f"{path}[].{{{fields}}}"):
        if _is_good(search(fit, reply), names, first, text, named=bool(known)):
            return fit
    return ""


def _is_good(given: Any, names: Names, first: Mapping[str, Any], text: str, *, named: bool) -> bool:
    try:
        read = read_passages(given, names=names)
    except PassagesError:
        return False
    return bool(read) and read[0].text == search(text, first) and (not named or read[0].filename is not None)


def without_words(given: Any, names: Names, pages_from: int) -> tuple[bool, bool]:
    """Return two flags: all passages lack both text and position; some passage names a known file.

    The first flag is False if there are no passages.
    """
    read: tuple[Passage, ...] = read_passages(given, names=names, pages_from=pages_from)
    wordless = bool(read) and not any(one.text.strip() or one.span for one in read)
    return wordless, any(one.filename and names(one.filename) for one in read)


def _walk(value: Any, path: str = "", depth: int = _DEEPEST_REPLY) -> Iterator[tuple[str, Any]]:
    """Yield every value of a reply with its path; only the first two items of a list."""
    if path:
        yield path, value
    if not depth:
        return
    if isinstance(value, Mapping):
        for key, held in value.items():
            name = str(key) if re.fullmatch(r"[A-Za-z_]\w*", str(key), re.ASCII) else '"' + str(key) + '"'
            yield from _walk(held, f"{path}.{name}" if path else name, depth - 1)
    elif isinstance(value, list):
        for index, held in enumerate(value[:2]):
            yield from _walk(held, f"{path}[{index}]", depth - 1)
