"""Exhibit's pipeline as a target; an index is reused while settings and documents stay the same."""

import hashlib
import logging
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case, Passage, Reply
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.targets import Ingestion, NumberedReply, TargetOptions
from exhibit.law.citations import rewrite_citations
from exhibit.rag.config import PLUGINS
from exhibit.rag.index import FORMAT, MANIFEST
from exhibit.rag.pipeline import Answered, Pipeline
from exhibit.rag.protocols import Hit, Retrieved
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import lock_folder
from exhibit.storage.bundle import sha256_of
from exhibit.storage.locations import Location

_log = logging.getLogger(__name__)
_AT_ONCE = 32  # questions per batch: enough to embed them together, few to repeat after an interruption
# passages ranked if files have grades: after ungraded files are left out, ten graded files must remain; on ACORD,
# nDCG@10 is 39.8 with 64 passages of `rcts`, 52.4 with 256, and 54.0 with 500 and with 1,000
GRADED_DEPTH = 500


def open(argument: str | None, options: TargetOptions) -> "Builtin":
    if argument:
        raise ToolkitError(f"--target builtin takes no argument, but got {argument!r}")
    for kind in ("splitter", "store", "embedder", "llm"):
        if (name := getattr(options.config, kind)) != "none":
            load_plugin(PLUGINS[kind], name)
    return Builtin(options)


class Builtin:
    name = "builtin"
    exact = True

    def __init__(self, options: TargetOptions) -> None:
        self._options = options
        same = ("cache", "engine", "jobs", "limits", "embedder", "llm")
        parts: dict[str, Any] = {name: getattr(options, name) for name in same}
        # if the user gives no value, OPENAI_TIMEOUT or the model's default of one minute applies
        timeout = options.timeout if options.timeout != TargetOptions.timeout else None
        self._pipeline = Pipeline(options.config, timeout=timeout, **parts)
        self.text, self.chunks = self._pipeline.text, self._pipeline.chunk_spans
        self._sha256: dict[Location, str] = {}  # the checksums of the documents, which determine the name of the index

    def probe(self, dataset: Dataset, cases: Sequence[Case]) -> list[str]:
        return []

    def ingest(self, dataset: Dataset) -> Ingestion:
        folder = self.index_folder(dataset)
        # the lock file is beside the folder, because the folder is replaced as a whole
        folder.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"{folder}: another run is building this index; waiting until it is done"
        with lock_folder(folder.with_name(f"{folder.name}.turn"), busy=waiting, say=_log.warning):
            if self._options.ingest != "fresh" and (folder / MANIFEST).is_file():
                return self._reuse(dataset, folder)
            paths = [path for _, path in sorted(dataset.files.items())]
            report = self._pipeline.index(paths, folder, force=True, sha256=self._sha256)
        speed = report.pages / report.seconds if report.seconds and report.pages else None
        return Ingestion(
            files=len(paths), pages=report.pages, pages_per_second=speed, chunks=report.chunks, seconds=report.seconds,
            set_aside=_strip_folders(report.set_aside, dataset),
        )  # fmt: skip

    def index_folder(self, dataset: Dataset) -> Path:
        config = self._options.config
        self._sha256 = {path: sha256_of(path) for path in dataset.files.values()}
        parts = [FORMAT, config.ingest_hash, self._pipeline.embedder.name]
        parts += [f"{name}\0{self._sha256[path]}" for name, path in sorted(dataset.files.items())]
        digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        name = re.sub(r"[^\w.-]", "_", dataset.name)
        return self._options.cache / "indexes" / f"{name}-{digest}"

    def _reuse(self, dataset: Dataset, folder: Path) -> Ingestion:
        """Add the documents that an existing index lacks, and return its ingestion record."""
        index = self._pipeline.open(folder).opened
        missing = [path for name, path in sorted(dataset.files.items()) if name not in index]
        # a document may have been skipped because of a lower limit or a busy machine
        aside = _strip_folders(self._pipeline.add(*missing).set_aside if missing else (), dataset)
        pages = sum(entry.pages or 0 for entry in index.documents)
        return Ingestion(files=len(dataset.files), pages=pages, chunks=len(index), set_aside=aside)

    def ask(self, dataset: Dataset, cases: Sequence[Case]) -> Iterator[NumberedReply]:
        self._pipeline.open(self.index_folder(dataset))
        graded = any(case.grades for case in cases)
        depth = max(GRADED_DEPTH, self._options.config.depth) if graded else None
        for start in range(0, len(cases), _AT_ONCE):
            questions = [case.question for case in cases[start : start + _AT_ONCE]]
            yield from map(NumberedReply, count(start), self._make_replies(questions, depth))

    def _make_replies(self, questions: Sequence[str], depth: int | None) -> list[Reply]:
        began = time.monotonic()
        results = self._pipeline.search(questions, depth=depth)
        searched = (time.monotonic() - began) / len(results)
        if not self._options.answers:
            return [_make_reply(retrieved, seconds=searched) for retrieved in results]
        answered = self._pipeline.answer_from(results)
        each = (time.monotonic() - began) / len(results) - searched
        return [_make_answered_reply(item, searched + item.answer.usage.get("seconds", each)) for item in answered]


def _make_reply(retrieved: Retrieved, *, seconds: float) -> Reply:
    ranks = {(hit.document, hit.span): rank for rank, hit in enumerate(retrieved.ranked, 1)}
    chosen = (ranks.get((hit.document, hit.span)) for hit in retrieved.selected)
    return Reply(
        passages=tuple(map(_make_passage, _list_passages(retrieved))),
        selected=len(retrieved.selected),
        context=tuple(rank for rank in chosen if rank is not None),
        retrieved=None if retrieved.before is None else tuple(map(_make_passage, retrieved.before)),
        cut_by=retrieved.cut_by,
        seconds=seconds,
        confidence=None if retrieved.confidence is None else round(retrieved.confidence, 6),
    )


def _list_passages(retrieved: Retrieved) -> list[Hit]:
    """Return the ranked passages, then the adjacent text that answers use but no ranked passage contains."""
    return [*retrieved.ranked, *(hit for hit in retrieved.beside if not _find_ranks(hit, retrieved.ranked))]


def _make_passage(hit: Hit) -> Passage:
    return Passage(hit.text, hit.document, hit.span, round(hit.score, 6), hit.page)


def _make_answered_reply(result: Answered, seconds: float) -> Reply:
    """Return the pipeline's answer as a reply whose citations are ranks of passages."""
    reply, answer = _make_reply(result.retrieved, seconds=seconds), result.answer
    if answer.error:
        return replace(reply, error=answer.error, usage=dict(answer.usage))
    passages = _list_passages(result.retrieved)
    ranks = {source.number: _find_ranks(source, passages) or [source.number] for source in result.context.sources}
    return replace(
        reply,
        answer=renumber(answer.text, {number: ranks_of_source[0] for number, ranks_of_source in ranks.items()}),
        context=tuple(dict.fromkeys(chain(*ranks.values()))),
        cut_by="budget" if result.context.left_out else reply.cut_by,
        usage=dict(answer.usage),
        confidence=reply.confidence if answer.confidence is None else round(answer.confidence, 6),
    )


def _find_ranks(hit: Hit, ranked: Sequence[Hit]) -> list[int]:
    """Return the rank, from 1, of the first passage that contains a hit, or the ranks of passages inside the hit."""
    whole = [rank for rank, other in enumerate(ranked, 1) if other.contains(hit)]
    parts = (rank for rank, other in enumerate(ranked, 1) if hit.contains(other))
    return whole[:1] or list(parts)


def renumber(text: str, ranks: dict[int, int]) -> str:
    """Return an answer in which each cited source's number is replaced by its rank; a number without a rank stays."""
    if all(number == rank for number, rank in ranks.items()):
        return text

    def rank(match: re.Match[str]) -> str:
        return str(ranks.get(int(match[0]), match[0]))

    return rewrite_citations(text, lambda written, _: re.sub(r"\d+", rank, written))


def _strip_folders(reasons: Iterable[str], dataset: Dataset) -> list[str]:
    """Return why documents were skipped, with their file names instead of their paths on this machine."""
    names = {str(path): name for name, path in dataset.files.items()}
    paths = [(reason, next((path for path in names if path in reason), "")) for reason in reasons]
    return [reason.replace(path, names[path]) if path else reason for reason, path in paths]
