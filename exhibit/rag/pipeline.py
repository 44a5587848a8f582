"""The pipeline: index a folder, search it, and answer questions from it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any

from exhibit.engine import Limits, open_engine
from exhibit.evidence import Span
from exhibit.evidence.read import NamedFile, list_folder, with_attachments
from exhibit.law.structure import cut
from exhibit.models.embedders import CachedEmbedder
from exhibit.models.llms import LLM
from exhibit.models.protocols import Embedder
from exhibit.models.reader import EMBEDDER
from exhibit.models.rerankers import Reranker
from exhibit.rag.answerers import Answer, AnswerContext, answer_all, assemble
from exhibit.rag.answerers.reader import can_read
from exhibit.rag.config import DEFAULT, Config
from exhibit.rag.index import PAGE, START, Index, index_kind, open_index
from exhibit.rag.ingest import Report, ingest
from exhibit.rag.passages import complete_sentences, move_to_front
from exhibit.rag.protocols import Retrieved
from exhibit.rag.retrieve import Parts, retrieve
from exhibit.rag.summaries import Summariser
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError, escape_surrogates
from exhibit.storage.atomic import list_left_out, replace_folder
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location, Remote, list_file, list_files

_MAX_PARAGRAPH_CHARS = 2000  # most characters of a § that an answer quotes


@dataclass(frozen=True)
class Answered:
    retrieved: Retrieved
    context: AnswerContext
    answer: Answer


class Pipeline:
    """Turns documents into cited answers; docs/rag.md has an example."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        cache: Path | None = None,
        engine: str = "local",
        jobs: int | None = None,
        limits: Limits | None = None,
        embedder: Embedder | None = None,
        llm: LLM | None = None,
        timeout: float | None = None,
    ) -> None:
        """Make a pipeline; `embedder` and `llm` replace the models of the config.

        `cache` is the folder of cached vectors. `jobs` is the number of workers. `limits` limit the time and memory for
        one document. `timeout` limits the seconds for one prompt or request to a server's model, including retries.
        """
        self.config = config or Config.preset(DEFAULT)
        self._cache = cache or find_cache_folder()
        self._engine, self._jobs, self._limits = engine, jobs, limits or Limits()
        self._index: Index | None = None
        self._built: Path | None = None  # the folder of the index that was built here; the first question opens it
        self._given_embedder, self._given_llm, self._timeout = embedder, llm, timeout

    def index(
        self,
        source: Location | Iterable[Location],
        folder: Path,
        *,
        force: bool = False,
        sha256: Mapping[Location, str] | None = None,
    ) -> Report:
        """Build an index of a folder, a file or several files, local or at a URL; a failure leaves no index.

        If a file's checksum differs from the one in `sha256`, no index is built. Vectors are cached, so after an
        interruption the next run computes only the missing vectors.
        """
        paths = find_files(source) if isinstance(source, Path | Remote) else list(source)
        if not paths:
            raise BundleError(f"{source}: the folder has no files; give a folder of documents, or one document")
        if self._index is not None:
            self._index.close()  # this may be the index that is replaced
        self._index = self._built = None
        name, dimensions = self.embedder.name, self.embedder.dimensions
        with (
            replace_folder(folder, force=force, kind=index_kind(self.config.store)) as partial,
            closing(Index(partial, self.config, embedder=name, dimensions=dimensions)) as index,
        ):
            report = self._ingest(paths, index, sha256=sha256)
            if isinstance(source, Path) and source.is_dir():
                left = tuple(f"{path}: a {why}" for path, why in list_left_out(source))
                report = replace(report, set_aside=(*report.set_aside, *map(escape_surrogates, left)))
            if not len(index):
                reasons = "; ".join(dict.fromkeys(report.set_aside[:3])) or "no text"
                raise BundleError(f"no document could be indexed: {reasons}")
            index.save()
        self._built = folder
        return report

    def open(self, folder: Path) -> "Pipeline":
        """Open an index for later questions and return self; raise an error if it was built with another embedder."""
        index = open_index(folder, self.config)
        if index.embedder != self.embedder.name:
            raise BundleError(
                f"{folder}: built with the embedder {index.embedder}, but the embedder is now {self.embedder.name}; "
                f"give {index.embedder} with --embedder, or build the index again"
            )
        self._index, self._built = index, None
        return self

    def add(self, *paths: Location) -> Report:
        with self.opened.change():
            return self._ingest(paths, self.opened)

    def remove(self, filename: str) -> None:
        with self.opened.change():
            self.opened.remove(filename)

    @property
    def opened(self) -> Index:
        if self._index is None:
            if self._built is None:
                raise BundleError("no index is open: call index() or open() first")
            self._index = open_index(self._built, self.config)
        return self._index

    def _ingest(
        self, paths: Collection[Location], index: Index, *, sha256: Mapping[Location, str] | None = None
    ) -> Report:
        engine = open_engine(self._engine, jobs=self._jobs, items=len(paths), limits=self._limits)
        has_summary_llm = self.config.summary_llm != "same"  # another model for summaries has its own request limit
        llm = self._open_llm(self.config.summary_llm) if has_summary_llm else self.llm
        module, argument = load_plugin("exhibit.rag.summaries", self.config.summaries)
        summarise: Summariser = module.open(argument, config=self.config, llm=llm)
        return ingest(paths, index, engine=engine, embedder=self.embedder, summarise=summarise, sha256=sha256)

    def text(self, filename: str) -> str | None:
        return self.opened.text_of(self.opened.entry(filename).number) if filename in self.opened else None

    def chunk_spans(self, filename: str) -> list[Span]:
        if filename not in self.opened:
            return []
        index = self.opened
        rows = index.find_rows(index.chunk_keys([index.entry(filename).number]))
        return [Span(*row) for row in index.table[rows, START:PAGE].tolist()]

    def search(
        self, questions: Sequence[str], *, depth: int | None = None, documents: Collection[str] | None = None
    ) -> list[Retrieved]:
        """Return each question's passages from all files or from `documents`; `depth` replaces the config's depth."""
        config = self.config if depth is None else self.config.model_copy(update={"depth": depth})
        only = None if documents is None else tuple(self.opened.entry(name).number for name in documents)
        return retrieve(questions, Parts(self.opened, self.embedder, config, self.reranker, only))

    def answer(self, questions: Sequence[str]) -> list[Answered]:
        return self.answer_from(self.search(questions))

    def answer_from(self, searched: Sequence[Retrieved]) -> list[Answered]:
        searched = [self._complete(retrieved) for retrieved in searched]
        contexts = [self._make_context(retrieved) for retrieved in searched]
        answers = answer_all([(r.question, c) for r, c in zip(searched, contexts, strict=True)], self.config, self.llm)
        return [
            Answered(
                self._rank_answer_first(retrieved, context, answer), context, _add_version(answer, retrieved, context)
            )
            for retrieved, context, answer in zip(searched, contexts, answers, strict=True)
        ]

    def _complete(self, retrieved: Retrieved) -> Retrieved:
        if not retrieved.selected or not self.config.reads:
            return retrieved
        best = self.opened.entry(retrieved.selected[0].document)
        if not can_read(retrieved.question, best.profile.kind):
            return retrieved
        return replace(retrieved, beside=tuple(complete_sentences(retrieved.selected, retrieved.ranked, self.opened)))

    def _rank_answer_first(self, retrieved: Retrieved, context: AnswerContext, answer: Answer) -> Retrieved:
        """Rank the reader's best quote first, unless the answer cites the passage that is already first.

        The reader judges passages better than the search.
        """
        sources = {source.number: source for source in context.sources}
        if not answer.best or any(retrieved.ranked[0].contains(sources[cited]) for cited in answer.citations):
            return retrieved
        number, quote = max(answer.best, key=lambda part: part[1].end - part[1].start)
        start = sources[number].span.start
        words = replace(sources[number], span=Span(start + quote.start, start + quote.end))
        ranked = move_to_front(words, retrieved.ranked, self.opened)
        selected = [hit for hit in ranked if any(chosen.contains(hit) for chosen in retrieved.selected)]
        return replace(retrieved, ranked=tuple(ranked), selected=tuple(selected))

    def _make_context(self, retrieved: Retrieved) -> AnswerContext:
        hits = [*retrieved.selected, *retrieved.beside]
        summaries = {hit.document: self.opened.entry(hit.document).summary for hit in hits}
        context = assemble(hits, summaries=summaries, budget=self.config.budget_tokens)
        context = replace(context, asks=retrieved.query.asks, confidence=retrieved.confidence)
        if not context.sources:
            return context
        best, vector = self.opened.entry(context.sources[0].document), None
        if self.config.reads and self.embedder.name.startswith(EMBEDDER):
            vector = retrieved.vector
            if vector is None:
                [vector] = self.embedder.embed([context.asks], role="query")
        return replace(context, kind=best.profile.kind, characters=best.characters, vector=vector)

    @cached_property
    def embedder(self) -> Embedder:
        inner: Embedder = self._given_embedder or self._open("exhibit.models.embedders", self.config.embedder)
        return CachedEmbedder(inner, self._cache / "vectors")

    @cached_property
    def reranker(self) -> Reranker | None:
        return None if self.config.reranker == "none" else self._open("exhibit.models.rerankers", self.config.reranker)

    @cached_property
    def llm(self) -> LLM | None:
        if self._given_llm is not None or self.config.llm == "none":
            return self._given_llm
        return self._open_llm(self.config.llm)

    def _open(self, package: str, name: str) -> Any:
        module, argument = load_plugin(package, name)
        opening: Callable[..., Any] = module.open
        timed = self._timeout and "timeout" in signature(opening).parameters
        return opening(argument, timeout=self._timeout) if timed else opening(argument)

    def _open_llm(self, name: str) -> LLM:
        module, argument = load_plugin("exhibit.models.llms", name)
        options = {"cache": self._cache / "llm", "timeout": self._timeout, "top_p": self.config.top_p}
        llm: LLM = module.open(argument, {**options, "max_requests": self.config.max_requests})
        return llm


def _add_version(answer: Answer, retrieved: Retrieved, context: AnswerContext) -> Answer:
    """Name the version of the law in a note; if no language model has answered, answer with the cited provisions."""
    if answer.error or not retrieved.selected:
        return answer
    if retrieved.named and (answer.refused or not answer.usage):
        sources = context.sources[: retrieved.named]
        texts = [f"“{cut(' '.join(s.text.split()), _MAX_PARAGRAPH_CHARS)}” [{s.number}]" for s in sources]
        answer = replace(answer, text="\n\n".join(texts), citations=tuple(s.number for s in sources), refused=False)
    if not retrieved.note or answer.refused:
        return answer
    return replace(answer, text=f"{answer.text}\n({retrieved.note})")


def find_files(source: Location) -> list[Location]:
    """Return the files of a folder and the attachments of mails in order; readers report unreadable files later."""
    if isinstance(source, Remote):
        files: list[Location] = [Remote((source / name).url, bytes=size) for name, size in list_files(source).items()]
        if files or list_file(source) is not None:
            return files or [source]
    elif source.is_file():
        return [file.path for file in with_attachments([NamedFile(source, source.name)])]
    elif source.is_dir():
        return [file.path for file in list_folder(source)]
    raise BundleError(f"{source}: no such file or folder; check the path or the address")
