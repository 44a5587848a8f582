"""This project's own pipeline: one index a dataset, kept between runs while settings and documents stay the same."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rag.answerers import Answerer, open_answerer
from rag.cases import Case, Passage, Reply
from rag.evaluation.datasets import Dataset
from rag.index import MANIFEST, open_index
from rag.language.citations import find_citations
from rag.pipeline import Pipeline
from rag.plugins import load_plugin
from rag.retrieval.state import Retrieved
from rag.seams import Answer, Context, Hit, Source
from rag.targets import Asked, Ingestion, TargetOptions
from schemas.bundle import sha256_of
from schemas.errors import BundleError, ToolkitError

_SEARCHED = 256
"""Questions searched at once."""
_ANSWERED = 16
"""Questions put to a language model at once: what a stopped run may have to ask again, from the model's cache."""
_TOLD = "ingestion.json"


def open(argument: str | None, options: TargetOptions) -> Builtin:
    """Return the target; what it is made of comes from the config."""
    if argument:
        raise ToolkitError(f"--target builtin takes no argument, not {argument!r}; use --preset and the other settings")
    _check(options)
    return Builtin(options)


def _check(options: TargetOptions) -> None:
    """Raise one error that names every part there is not."""
    config = options.config
    wanted = {"splitter": config.splitter, "store": config.store}
    wanted |= {} if options.embedder else {"embedder": config.embedder}
    wanted |= {} if options.llm or config.llm == "none" else {"llm": config.llm}
    problems = []
    if options.skip_ingestion and options.force_ingestion:
        problems.append("--skip-ingestion and --force-ingestion contradict each other")
    for kind, name in wanted.items():
        try:
            load_plugin(f"rag.{kind}s", name)
        except ToolkitError as error:
            problems.append(str(error))
    if problems:
        raise ToolkitError("\n".join(problems))


class Builtin:
    """The pipeline that a config describes."""

    name = "builtin"
    exact = True

    def __init__(self, options: TargetOptions) -> None:
        self._options = options
        self._pipeline = Pipeline(
            options.config, cache=options.cache, jobs=options.threads, embedder=options.embedder, llm=options.llm
        )
        self._index: Path | None = None

    # ---------------------------------------------------------------- the index

    def ingest(self, dataset: Dataset) -> Ingestion:
        """Open the index of these documents and settings, built first where there is none."""
        folder = self.index_folder(dataset)
        if self._options.force_ingestion or not (folder / MANIFEST).is_file():
            if self._options.skip_ingestion:
                raise BundleError(
                    f"{folder}: no index of {dataset.name} with these settings; leave out --skip-ingestion"
                )
            return self._build(dataset, folder)
        self._pipeline.open(folder)
        return _told(folder, dataset)

    def index_folder(self, dataset: Dataset) -> Path:
        """Return where the index is kept: its name changes with every setting and document that decides it."""
        config = self._options.config
        parts = [config.ingest_hash, self._pipeline.embedder.name]
        parts += [f"{name}\0{sha256_of(path)}" for name, path in sorted(dataset.files.items())]
        digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = re.sub(r"[^\w.-]", "_", dataset.name)
        return self._options.cache / "indexes" / f"{name}-{digest}"

    def _build(self, dataset: Dataset, folder: Path) -> Ingestion:
        paths = [path for _, path in sorted(dataset.files.items())]
        report = self._pipeline.index(paths, folder, force=True)
        speed = report.pages / report.seconds if report.seconds and report.pages else None
        set_aside = tuple(_without_folders(reason, dataset) for reason in report.set_aside)
        done = Ingestion(len(paths), report.pages, speed, report.chunks, report.seconds, set_aside)
        (folder / _TOLD).write_text(json.dumps(done.as_json(), ensure_ascii=False), encoding="utf-8")
        return done

    # ---------------------------------------------------------------- questions

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[Asked]:
        """Yield the replies in order; questions are searched in batches, and answered as they come."""
        self._pipeline.open(self.index_folder(dataset))
        for start in range(0, len(cases), _SEARCHED):
            batch = cases[start : start + _SEARCHED]
            began = time.monotonic()
            found = self._pipeline.search([case.question for case in batch])
            each = (time.monotonic() - began) / len(batch)
            for position, reply in enumerate(self._replies(found, each), start):
                yield Asked(position, reply)

    def _replies(self, found: Sequence[Retrieved], search_seconds: float) -> Iterator[Reply]:
        if not self._options.answers:
            for retrieved in found:
                yield _reply(retrieved, seconds=search_seconds)
            return
        answerer = open_answerer(self._options.config, llm=self._pipeline.llm)
        # one at a time where no model is asked, so that each answer's own time is known
        size = 1 if self._pipeline.llm is None else _ANSWERED
        for start in range(0, len(found), size):
            batch = found[start : start + size]
            for retrieved, (context, answer, seconds) in zip(batch, self._answer(answerer, batch), strict=True):
                yield _answered(retrieved, context, answer, search_seconds + seconds)

    def _answer(self, answerer: Answerer, batch: Sequence[Retrieved]) -> list[tuple[Context, Answer, float]]:
        began = time.monotonic()
        contexts = [self._pipeline.context(retrieved) for retrieved in batch]
        answers = answerer.answer_all([(r.question, context) for r, context in zip(batch, contexts, strict=True)])
        each = (time.monotonic() - began) / len(batch)
        return [
            (context, answer, answer.usage.get("seconds", each))
            for context, answer in zip(contexts, answers, strict=True)
        ]


def _reply(retrieved: Retrieved, *, seconds: float) -> Reply:
    passages = tuple(
        Passage(hit.text, hit.chunk.document, hit.chunk.span, round(hit.score, 6), hit.chunk.page)
        for hit in retrieved.ranked
    )
    return Reply(passages=passages, selected=len(retrieved.selected), seconds=seconds)


def _answered(retrieved: Retrieved, context: Context, answer: Answer, seconds: float) -> Reply:
    found = _reply(retrieved, seconds=seconds)
    if answer.error:
        return replace(found, error=answer.error, usage=dict(answer.usage))
    ranks = {source.number: _rank(source, retrieved.ranked) for source in context.sources}
    return replace(found, answer=renumber(answer.text, ranks), usage=dict(answer.usage))


def _rank(source: Source, ranked: Sequence[Hit]) -> int:
    """Return the rank (from 1) of the passage that a source is, or was cut from."""
    span = source.hit.chunk.span
    for rank, hit in enumerate(ranked, 1):
        own = hit.chunk.span
        if hit.chunk.document == source.document and own.start <= span.start and span.end <= own.end:
            return rank
    return source.number


def renumber(text: str, ranks: dict[int, int]) -> str:
    """Return an answer whose citations are ranks: a source's own number skips passages that say the same."""
    if all(number == rank for number, rank in ranks.items()):
        return text
    for citation in reversed(find_citations(text)):
        written = text[citation.span.start : citation.span.end]
        new = re.sub(r"\d+", lambda match: str(ranks.get(int(match[0]), int(match[0]))), written)
        text = text[: citation.span.start] + new + text[citation.span.end :]
    return text


def _told(folder: Path, dataset: Dataset) -> Ingestion:
    """Return what was told when the index was built, or what the index itself tells."""
    try:
        told = json.loads((folder / _TOLD).read_text(encoding="utf-8"))
        return Ingestion(**{**told, "set_aside": tuple(told["set_aside"])})
    except (OSError, ValueError, KeyError, TypeError):
        index = open_index(folder)
        missing = tuple(f"{name}: not in the index" for name in sorted(dataset.files) if name not in index)
        pages = sum(entry.pages or 0 for entry in index.documents)
        return Ingestion(len(dataset.files), pages, chunks=len(index), set_aside=missing)


def _without_folders(reason: str, dataset: Dataset) -> str:
    """Return why a document was set aside, with its name and not where it lies on this machine."""
    for name, path in dataset.files.items():
        if str(path) in reason:
            return reason.replace(str(path), name)
    return reason
