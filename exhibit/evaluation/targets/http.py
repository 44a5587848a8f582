"""A server under test, known by its address or described by a TOML file (docs/targets.md).

With only an address, the server's `openapi.json` names the field of the question; else three common bodies are tried.
"""

import json
import re
import time
from bisect import bisect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import httpx

from exhibit.converters.pages.fetch import NO_ADDRESS, flaw_of
from exhibit.engine import track
from exhibit.evaluation import replies, server_files
from exhibit.evaluation.cases import Case, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.replies import Parts, ReplyError, search
from exhibit.evaluation.server_files import DocumentInterface, ServerSettings, Step, fill, fill_path
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions, ask_all, choose_probed, count_only
from exhibit.evaluation.targets.builtin import renumber
from exhibit.evidence import Span
from exhibit.rag.answerers import answer_all, assemble
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.protocols import Hit
from exhibit.schemas.errors import ToolkitError
from exhibit.storage import http
from exhibit.storage.http import Deadline, HttpError, Retries, UnreachableError, strip_address
from exhibit.storage.locations import fetch_file

_REFUSED = (401, 403, 407)  # HTTP: not authorised
_ABSENT = (404, 405, 410)
_FAULT = 500  # the status with which many servers answer a body of an unexpected form
Answered = tuple[Parts, Reply]  # a reply, also by parts


class Server:
    """A server under test; every failure becomes a reply with an error, and the run continues."""

    exact = False

    def __init__(self, wanted: str, argument: str | None, options: TargetOptions, settings: ServerSettings) -> None:
        self._options, self.values = options, settings.model_dump()
        name, system = Path(wanted).stem, server_files.describe_system(wanted, settings)
        self.system, self.paths = system, system.reply
        url = _parse_url(settings.url or argument or system.url)
        self.url = str(url.copy_with(username=None, password=None))
        self.name = f"{name}:{strip_address(self.url)}"
        self._place = self.name.removeprefix("http:") if name == "http" else self.name
        headers = server_files.read_headers(system, settings)
        hidden = [*headers.values(), url.username, url.password, *url.params.values()]
        server_files.hide_secrets(settings.model_dump(mode="json", exclude={"header", "key"}), "", hidden)
        self.client = http.HttpClient(headers, connections=options.threads, secrets=http.Secrets(hidden))
        self._method = "GET" if "{question}" in self.url else system.ask.method or "POST"
        answers = options.answers and options.config.llm != "none" and self.paths.answer == ("",)
        self.add_answer = _make_answerer(options) if answers else None  # for a search server
        self.name += f" + {options.config.llm}" if answers else ""
        self._known = system.ask.body is not None or self._method == "GET"
        chat = {"messages": server_files.MESSAGES, "context": "{parameters}"}
        plain = [{field: "{question}", "...": "{parameters}"} for field in ("question", "query")]
        # the bodies that the server may accept; after the probe, the one that it accepts
        self._bodies = [system.ask.body] if self._known else [chat, *plain] if settings.parameters else [*plain, chat]
        self._marks_end = False  # whether a stream has had an end mark
        self._answers: bool | None = None  # whether the probe's reply has an answer; None before the probe
        if options.ingest and not system.ingest:
            raise ToolkitError(f"{self._place}: the target has no upload of documents; remove --ingest")
        setting = system.ingest.setting if system.ingest and options.ingest else ""
        # the file's own default does not count: documents and keys go only to hosts that the user has named
        if setting and setting not in settings.model_fields_set:
            raise ToolkitError(f"{self._place}: uploads go to a second server; name it with --set target_{setting}=URL")

    def _exchange(self, case: Case, body: Any, deadline: Deadline, dataset: Dataset) -> Answered:
        """Ask a question once; raise an error if there is no valid reply."""
        collection, labels = self.collection(dataset), case.labels
        values = {**self.values, "question": case.question, "as_of": labels.get("as_of"), "collection": collection}
        path, url = fill_path(self.system.ask.path, values), fill_path(self.url, values)
        sent = None if self._method == "GET" else fill(body, values)
        kind, data = self._send(self._method, url, path, sent, deadline=deadline)
        if kind in http.STREAMED or data.lstrip().startswith(b"data:"):
            lines = data.decode("utf-8", "replace").split("\n")
            parts = replies.join_events(http.read_events(lines), self.paths, self._check)
        else:
            parts = replies.find_parts(self._parse(data), self.paths)
        self._marks_end |= parts.ended is True
        if parts.ended is False and self._marks_end:
            raise HttpError("the stream of the reply ended before its end mark", transient=True)
        if parts.blank and self._answers:  # the system answered other questions, but not this one
            parts = replace(parts, answer="")
        only_passages = parts.passages and not self._answers and not self.paths.answer
        if parts.answer is None and self.paths.answer != ("",) and not only_passages:
            expected_keys = f" at {' or '.join(self.paths.answer)}" if self.paths.answer else ""
            raise ReplyError(f"no answer in the reply{expected_keys}; its form is {replies.describe(parts.raw)}")
        reply = replies.make_reply(parts, names=dataset.documents.named, paths=self.paths)
        selected = len(reply.passages) if self.paths.selected and reply.answer else None
        return parts, replace(reply, selected=selected)

    def _parse(self, data: bytes) -> Any:
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            words = self.client.secrets.words(data)
            raise HttpError(f"the reply is not JSON: {words}" if data.strip() else "the reply is empty") from None
        self._check(reply)
        return reply

    def _check(self, reply: Any, event: str = "") -> None:
        stated = reply if event == "error" else search(self.paths.error, reply) if self.paths.error else None
        if error := stated or (reply.get("error") if isinstance(reply, Mapping) else None):
            text = self.client.secrets.words(error if isinstance(error, str) else json.dumps(error))
            raise HttpError(f"the server reports an error: {text}", transient=bool(stated))

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        body = self._bodies[0]

        def ask_once(case: Case, deadline: Deadline) -> Reply:
            _, reply = self._exchange(case, body, deadline, dataset)
            return self.add_answer(case, reply) if self.add_answer else reply

        try:
            yield from ask_all(cases, ask_once, self._options)
        finally:
            self.client.close()

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask a few questions, once per run; if documents must be uploaded first, `ingest` asks them instead."""
        return [] if self._answers is not None or self._options.ingest else self._ask_some(dataset, cases)

    def _ask_some(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        """Ask a few questions and return notes on the replies; if no question is answered, raise one error."""
        notes, paths = list[str](), list[str]()
        if not self._known:
            described, paths = self._read_description()
            self._known, self._bodies = True, [described] if described else self._bodies
            if described:
                notes.append(f"the request follows the server's /openapi.json: {_shorten(described)}")
        tried, errors, answered = self._bodies, list[HttpError](), list[Answered]()
        for case in choose_probed(cases):
            # only the first question waits for a busy server: if the server stays busy, waiting again would not help
            answered += self._try_bodies(case, dataset, 0 if errors else self._options.retries, errors)
            if answered and (answered[-1][1].passages or self.paths.passages == ("",) or len(answered) > 1):
                break
        if not answered:
            raise ToolkitError(self._explain(errors, paths)) from errors[0]
        if tried[0] != self._bodies[0]:
            notes.append(f"the server answers requests of the form {_shorten(self._bodies[0])}")
        parts, reply = next((pair for pair in answered if pair[1].passages), answered[-1])
        self._answers = parts.answer is not None
        if self.paths.answer is None and parts.ended is None:
            notes.append(replies.describe_parts(parts.raw))
        if parts.answer is None:
            notes.append("the replies have passages but no answer: only retrieval is measured")
        return [f"{self._place}: {note}" for note in (*notes, *self._check_passages(parts, reply, dataset))]

    def _try_bodies(self, case: Case, dataset: Dataset, times: int, errors: list[HttpError]) -> list[Answered]:
        """Ask a question with each body that the server may accept, and store the first body that it answers."""
        deadline = Deadline(self._options.timeout, flag="--timeout")
        for body in self._bodies:

            def exchange(body: Any = body) -> Answered:
                try:
                    return self._exchange(case, body, deadline, dataset)
                except UnreachableError as error:  # do not wait for a server that may not run
                    raise ToolkitError(f"{error}. Is the server running, and is --target-url right?") from error

            try:
                answered = [Retries(times, self._options.backoff)(exchange, deadline=deadline)]
            except HttpError as error:
                errors.append(error)
                if error.status in (*_REFUSED, *_ABSENT) or (error.transient and error.status != _FAULT):
                    break
            else:
                self._bodies = [body]
                return answered
        return []

    def _read_description(self) -> tuple[Any, list[str]]:
        parts = urlsplit(self.url)
        deadline, url = Deadline(10.0), f"{parts.scheme}://{parts.netloc}"
        try:
            openapi = self.fetch("GET", url, "/openapi.json", deadline=deadline)
        except HttpError:  # a server that does not answer is reported when the questions are asked
            return None, []
        return server_files.make_body(openapi, parts.path.rstrip("/")), search("keys(paths)", openapi) or []

    def _explain(self, errors: Sequence[HttpError], paths: Sequence[str]) -> str:
        error = next((error for error in errors if isinstance(error, ReplyError)), errors[0])
        if error.status in _REFUSED:
            flags = "--set target_key=VARIABLE, or --set target_header=Authorization=VARIABLE"
            return f"{self._place}: the server does not accept the key: {error}. Set a key with {flags}"
        if error.status in _ABSENT:
            others = f"; it has {', '.join(paths[:10])}" if paths else ""
            return f"{self._place}: no endpoint for questions at this address: {error}{others}. Check --target-url"
        sent = " or ".join(map(_shorten, self._bodies))
        body = '--set target_request=\'{"question": "{question}"}\''
        path = "the path of the answer as --set target_response_answer_jmespath=PATH"
        advice = "" if self.system.ask.path else f". Write the body as {body} and {path}"
        return f"{self._place}: no question was answered. Sent: {sent}. Received: {error}{advice}"

    def _check_passages(self, parts: Parts, reply: Reply, dataset: Dataset) -> list[str]:
        """Return notes on a reply's passages; raise an error if they have neither text nor a known file."""
        form, path = replies.describe(parts.raw), self.values["response_context_jmespath"]
        if path and parts.passages is None:
            raise ToolkitError(f"{self._place}: no passages at {path} in the reply: {form}; correct this JMESPath")
        if self.paths.passages == ("",) or any(passage.text.strip() or passage.span for passage in reply.passages):
            return []
        if not reply.passages:
            return [f"the reply has no passages ({form}): metrics that need passages cannot be measured"]
        if any(passage.filename in dataset.files for passage in reply.passages):
            return [f"the passages have file names but no text ({form}): only document metrics are measured"]
        fault = f"passages without text, of the form {form}: name their fields in a target file (docs/targets.md)"
        raise ToolkitError(f"{self._place}: Sent: {_shorten(self._bodies[0])}. Received: {fault}")

    def collection(self, dataset: Dataset) -> str:
        return str(self.values.get("collection") or re.sub(r"\W", "_", dataset.name))  # as vector stores require

    def ingest(self, dataset: Dataset) -> Ingestion:
        if not (interface := self.system.ingest) or not self._options.ingest:
            return count_only(dataset, self._options)
        try:
            done = _Collection(self, interface, dataset, self._options).upload_missing()
        except HttpError as error:
            raise ToolkitError(f"{dataset.name}: its documents cannot be uploaded to the system: {error}") from error
        return done.model_copy(update={"notes": self._ask_some(dataset, dataset.cases)})

    def _send(self, method: str, url: str, path: str, body: Any = None, **given: Any) -> tuple[str, bytes]:
        """Return the content type and the body of a response; an HTTP error names the path that failed."""
        base = url.rstrip("/") if path else url
        version = re.match(r"/v\d+(?=/)", path)  # join …/v1 and /v1/x without a second /v1
        address = base + (path[version.end() :] if version and base.endswith(version[0]) else path)
        try:
            with self.client.send(method, address, body, **given) as response:
                response.check()
                return response.kind, response.read()
        except HttpError as error:
            named = path.partition("?")[0]
            if named and error.status is not None and not str(error).startswith(named):
                error.args = (f"{named}: {error}",)
            raise

    def fetch(self, method: str, url: str, path: str, body: Any = None, **given: Any) -> Any:
        """Send a request and return the reply's JSON; None if the reply is empty."""
        _, data = self._send(method, url, path, body, **given)
        return self._parse(data) if data.strip() else None


def _make_answerer(options: TargetOptions) -> Callable[[Case, Reply], Reply]:
    """Return a function that adds the answer of the options' language model to the reply of a search server."""
    config, llm = options.config, Pipeline(options.config, cache=options.cache, llm=options.llm).llm

    def add_answer(case: Case, reply: Reply) -> Reply:
        starts = list(accumulate((len(passage.text) + 1 for passage in reply.passages), initial=0))[: config.k]
        hits = [
            Hit(item.filename or item.told_filename or "", Span(at, at + len(item.text)), item.text, item.score or 0.0,
                page=item.told_page)
            for at, item in zip(starts, reply.passages, strict=False)
        ]  # fmt: skip
        context = assemble(hits, summaries={}, budget=config.budget_tokens)
        [answer] = answer_all([(case.question, context)], config, llm)
        ranks = {source.number: bisect(starts, source.span.start) for source in context.sources}
        read = tuple(ranks.values())
        reply = replace(reply, usage=dict(answer.usage), selected=len(read), context=read)
        if answer.error:
            return replace(reply, error=answer.error)
        return replace(reply, answer=renumber(answer.text, ranks))

    return add_answer


class _Collection:
    """The documents of a dataset in a server: its files are uploaded, listed and deleted."""

    def __init__(self, server: Server, interface: DocumentInterface, dataset: Dataset, options: TargetOptions) -> None:
        self._interface, self._dataset, self._options, self._fetch = interface, dataset, options, server.fetch
        self._values, setting = {**server.values, "collection": server.collection(dataset)}, interface.setting
        self._url = str(_parse_url(server.values[setting], name=f"target_{setting}")) if setting else server.url

    def _call(self, step: Step, *, file: Path | None = None, name: str = "") -> Any:
        values = {**self._values, "name": name}
        deadline, sent = Deadline(self._options.timeout, flag="--timeout"), dict[str, Any]()
        if file is not None:
            fields = {key: v if isinstance(v, str) else json.dumps(v) for key, v in fill(step.form, values).items()}
            form = httpx.Request("POST", "http://form", files={step.file: (name, file.read_bytes())}, data=fields)
            sent = {"content": form.read(), "headers": {"Content-Type": form.headers["content-type"]}}
            deadline = Deadline(600.0)  # a system that parses a long file before it answers takes minutes
        method = step.method or ("POST" if file or step.body is not None else "GET")
        path, body = fill_path(step.path, values), fill(step.body, values)
        send = partial(self._fetch, method, self._url, path, body, deadline=deadline, **sent)
        return Retries(self._options.retries, self._options.backoff)(send, deadline=deadline)

    def _list_names(self, step: Step) -> set[str]:
        items = search(step.items, self._call(step)) or []
        if not isinstance(items, list):
            raise HttpError(f"{step.items} in the reply is not a list: {replies.describe(items)}")
        return {PurePosixPath(str(search(step.name, item))).name for item in items}

    def _list_files(self) -> set[str] | None:
        """Return the files of the collection; None if there is no collection, or if the server cannot list files."""
        step, find = self._interface.list, self._interface.find
        if step is None or (find and self._values["collection"] not in self._list_names(find)):
            return None
        return self._list_names(step)

    def _delete(self, names: Collection[str]) -> None:
        """Delete the collection or, if the step names a file, each of these files."""
        step, files = self._interface.delete, self._list_files()
        if step is None:
            raise HttpError("the system cannot delete documents; remove --ingest fresh")
        single = "{name}" in f"{step.path} {step.body}"
        for name in () if files is None else sorted(files.intersection(names)) if single else [""]:
            self._call(step, name=name)

    def upload_missing(self) -> Ingestion:
        dataset, interface = self._dataset, self._interface
        names = {PurePosixPath(name).name: name for name in dataset.files}
        began, refused = time.monotonic(), dict[str, str]()
        if self._options.ingest == "fresh":
            self._delete(names)
        files = self._list_files()
        if files is None and interface.create:
            self._call(interface.create)
        missing = [name for name in names if name not in (files or ())]
        for name in track(missing, total=len(missing), label=f"{dataset.name}: upload", unit="file"):
            with fetch_file(dataset.files[names[name]]) as path:
                if fault := self._upload(path, name):
                    refused[name] = fault
        if (files := self._list_files()) is None:  # without a list, uploaded files count as ready
            files = set(names) - refused.keys()
        absent = "not among the system's documents"
        aside = [f"{name}: {refused.get(name, absent)}" for name in names if name not in files]
        if aside and len(aside) == len(names):
            fault = f"none of the {len(names)} files is ready in the system. The first file and the reason: {aside[0]}"
            raise ToolkitError(f"{dataset.name}: {fault}")
        seconds, pages = time.monotonic() - began if missing else None, count_only(dataset, self._options).pages
        speed = pages / seconds if pages and seconds and not aside else None
        count = len(names) - len(aside)
        return Ingestion(files=count, pages=pages, pages_per_second=speed, seconds=seconds, set_aside=aside)

    def _upload(self, path: Path, name: str) -> str:
        """Upload a file; return why the server refused it, or an empty text; raise if every upload would fail."""
        step = self._interface.add
        try:
            reply = self._call(step, file=path, name=name)
        except HttpError as error:
            if isinstance(error, UnreachableError) or error.status in _REFUSED:
                raise
            return str(error)
        return str(search(step.error, reply) or "") if step.error else ""


def _shorten(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)[:200]


def _parse_url(address: str, *, name: str = "--target-url") -> httpx.URL:
    if flaw_of(address) == NO_ADDRESS:
        raise ToolkitError(f"{name} {address!r} is not an address; an example is http://localhost:8000/ask")
    return httpx.URL(address)
