"""The pipeline: index a folder, search it, and answer questions from it."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from pathlib import Path

from exhibit.engine import Limits, open_engine
from exhibit.evidence import Span
from exhibit.evidence.read import NamedFile, list_folder, with_attachments
from exhibit.models.embedders import CachedEmbedder, VectorCache
from exhibit.models.llms import LLM, choose_counter
from exhibit.models.protocols import Embedder
from exhibit.models.rerankers import Reranker
from exhibit.rag.answerers import open_answerer
from exhibit.rag.answerers.reader import can_read
from exhibit.rag.config import DEFAULT, Config
from exhibit.rag.database import RECORD, index_kind
from exhibit.rag.index import Index
from exhibit.rag.ingest import Report, ingest
from exhibit.rag.live_index import open_for_questions
from exhibit.rag.protocols import Answer, AnswerContext, QueryVector
from exhibit.rag.questions import understand
from exhibit.rag.retrieval.amendments import choose_in_force, strip_asked_day, with_changes
from exhibit.rag.retrieval.completion import complete_sentences
from exhibit.rag.retrieval.disagreement import with_disagreement
from exhibit.rag.retrieval.routed import retrieve
from exhibit.rag.retrieval.stages import Parts, Retrieved, assemble
from exhibit.rag.retrieval.statutes import with_version
from exhibit.rag.saved_index import open_index
from exhibit.rag.summaries import open_summariser
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import BundleError, ToolkitError, escape_surrogates
from exhibit.storage.atomic import list_left_out, replace_folder
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location, Remote, list_file, list_files


@dataclass(frozen=True)
class Answered:
    """A question with the retrieved passages and the answer."""

    retrieved: Retrieved
    context: AnswerContext
    answer: Answer


class Pipeline:
    """Turns documents into cited answers.

    >>> pipeline = Pipeline(Config.preset("routed"))
    >>> pipeline.index(Path("samples/cuad"), Path("index"))
    >>> pipeline.search(["Who may terminate?"])[0].ranked[0].text
    """

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
        heard: Callable[[str], object] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Make a pipeline; the parts passed here replace those that the config names.

        Args:
            config: the settings; those of the default preset if it is None.
            cache: the folder of cached vectors; the user's cache folder if it is None.
            engine: the engine that runs the workers, `local`, `serial` or `ray`.
            jobs: the number of workers.
            limits: the time and memory for one document; two minutes and 2 GiB by default.
            embedder: an open embedder, in place of the config's.
            llm: an open language model, in place of the config's.
            heard: receives the language model's reply piece by piece, as it arrives.
            timeout: the seconds for one prompt to a language model, and for one request to an embedder or a reranker
                on a server, with all retries. Without it, each reply has a minute, or the seconds in OPENAI_TIMEOUT.
        """
        self.config = config or Config.preset(DEFAULT)
        self._cache = cache or find_cache_folder()
        self._engine, self._jobs, self._limits = engine, jobs, limits or Limits()
        self._index: Index | None = None
        self._built: Path | None = None
        """The folder of the index that was built here; the first question opens it."""
        self._given_embedder = embedder
        self._given_llm = llm
        self._heard = heard
        self._timeout = timeout

    # ---------------------------------------------------------------- the index

    def index(
        self,
        source: Location | Iterable[Location],
        folder: Path,
        *,
        force: bool = False,
        sha256: Mapping[Location, str] | None = None,
    ) -> Report:
        """Build an index of a folder, of one file, or of several files, local or at a URL; a failure leaves no index.

        If a file's checksum differs from the one in `sha256`, no index is built. Vectors are cached, so that a run
        after an interrupted one computes only the missing vectors. While vectors are computed, other processes can
        search the index: they call `open` with `unfinished`.
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
            report = self._ingest(paths, index, askable=True, sha256=sha256)
            if isinstance(source, Path) and source.is_dir():
                left = tuple(f"{path}: a {why}" for path, why in list_left_out(source))
                report = replace(report, set_aside=(*report.set_aside, *map(escape_surrogates, left)))
            if not len(index):
                raise BundleError(
                    f"{source}: no document could be indexed: {'; '.join(report.set_aside[:3]) or 'no text'}"
                )
            index.save()
            (partial / RECORD).unlink()
        self._built = folder
        return report

    def open(self, folder: Path, *, unfinished: bool = False) -> "Pipeline":
        """Open an index for the questions that follow, and return self.

        With `unfinished`, the index may still be under construction by another process. Raise an error if the index
        was built with another embedder.
        """
        index = open_for_questions(folder, self.config) if unfinished else open_index(folder, self.config)
        if index.embedder != self.embedder.name:
            raise BundleError(
                f"{folder}: built with the embedder {index.embedder}, but the embedder is now {self.embedder.name}; "
                "give the first one with --embedder, or build the index again"
            )
        self._index, self._built = index, None
        return self

    def add(self, *paths: Location) -> Report:
        """Add documents to the open index and save it."""
        with self._open_built.change():
            return self._ingest(paths, self._open_built)

    def remove(self, filename: str) -> None:
        """Remove a document from the open index and save it."""
        with self._open_built.change():
            self._open_built.remove(filename)

    @property
    def _open_built(self) -> Index:
        if self._index is None:
            if self._built is None:
                raise BundleError("no index is open: call index() or open() first")
            self._index = open_index(self._built, self.config)
        return self._index

    def _ingest(
        self,
        paths: Collection[Location],
        index: Index,
        *,
        askable: bool = False,
        sha256: Mapping[Location, str] | None = None,
    ) -> Report:
        engine = open_engine(self._engine, jobs=self._jobs, items=len(paths), limits=self._limits)
        return ingest(
            paths,
            index,
            self.config,
            engine=engine,
            embedder=self.embedder,
            summarise=open_summariser(self.config, llm=self.summary_llm),
            askable=askable,
            sha256=sha256 or {},
        )

    # ---------------------------------------------------------------- questions

    def search(
        self, questions: Sequence[str], *, depth: int | None = None, documents: Collection[str] | None = None
    ) -> list[Retrieved]:
        """Return the retrieved passages of each question.

        `depth` replaces the number of passages in the config. `documents` are the names of the files to search; by
        default all files are searched.
        """
        parts = self._parts(self.config if depth is None else self.config.model_copy(update={"depth": depth}))
        if documents is not None:
            parts = replace(parts, only=tuple(self._open_built.entry(name).number for name in documents))
        return [choose_in_force(one, self._open_built) for one in retrieve(questions, parts)]

    def _parts(self, config: Config) -> Parts:
        llm = self.llm if config.hyde_weight else None
        if config.hyde_weight and llm is None:
            raise ToolkitError("--hyde-weight needs a language model: give --llm openai:MODEL as well")
        return Parts(self._open_built, self.embedder, config, self._tokens, self.reranker, llm)

    def answer(self, questions: Sequence[str]) -> list[Answered]:
        """Return an answer to each question, with citations that were checked."""
        return self.answer_from(self.search(questions))

    def answer_from(self, searched: Sequence[Retrieved]) -> list[Answered]:
        """Return an answer to each question from its retrieved passages."""
        if self.config.reads:
            searched = [self.complete(retrieved) for retrieved in searched]
        contexts = [self.context(retrieved) for retrieved in searched]
        answers = open_answerer(self.config, llm=self.llm).answer_all(
            [(strip_asked_day(retrieved), context) for retrieved, context in zip(searched, contexts, strict=True)]
        )
        return [
            Answered(retrieved, context, self._annotate(answer, retrieved, context))
            for retrieved, context, answer in zip(searched, contexts, answers, strict=True)
        ]

    def complete(self, retrieved: Retrieved) -> Retrieved:
        """Return the retrieved passages with the text that completes the sentences of the selected ones.

        Text that an amendment has changed is left out. Nothing is added if the reader model does not answer.
        """
        if not retrieved.selected:
            return retrieved
        index = self._open_built
        if not can_read(retrieved.question, index.entry(retrieved.selected[0].chunk.document).profile.kind):
            return retrieved
        beside = tuple(complete_sentences(retrieved.selected, retrieved.ranked, index))
        in_force = choose_in_force(Retrieved(retrieved.question, beside, beside), index).ranked
        return replace(retrieved, beside=tuple(hit for hit in beside if hit in in_force))

    def _annotate(self, answer: Answer, retrieved: Retrieved, context: AnswerContext) -> Answer:
        """Return an answer with three kinds of notes added where they apply.

        They state the version of a law, a different value in another document or clause, and the amendment that
        changed a cited section.
        """
        answer = with_disagreement(with_version(answer, retrieved, context), context, self._open_built)
        return with_changes(answer, retrieved, context)

    def context(self, retrieved: Retrieved) -> AnswerContext:
        """Return the numbered sources for the answer to a question."""
        context = assemble(
            retrieved.question,
            [*retrieved.selected, *retrieved.beside],
            summaries=self.summaries(retrieved),
            budget=self.config.budget,
            tokens=self._tokens,
            confidence=retrieved.confidence,
        )
        if not context.sources:
            return context
        best = self._open_built.entry(context.sources[0].document)
        context = replace(context, kind=best.profile.kind, characters=best.characters)
        if not self.config.reads:
            return context
        [vector] = self.embedder.embed([understand(retrieved.question).asks], role="query")
        return replace(context, asked=QueryVector(self.embedder.name, vector))

    def summaries(self, retrieved: Retrieved) -> dict[str, str]:
        """Return the summary of each document that the selected passages of a question come from, by file name."""
        names = {hit.chunk.document for hit in retrieved.selected}
        return {name: self._open_built.entry(name).summary for name in sorted(names)}

    def text(self, filename: str) -> str | None:
        """Return a document's text as it was indexed; None if the open index has no such document."""
        return self._open_built.read_document_text(filename) if filename in self._open_built else None

    def chunk_spans(self, filename: str) -> list[Span]:
        """Return the spans of a document's chunks in its text, in order.

        Empty if the open index has no such document.
        """
        return self._open_built.list_chunk_spans(filename) if filename in self._open_built else []

    # ---------------------------------------------------------------- parts, opened at their first use

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder, with a cache of its vectors."""
        inner = self._given_embedder
        if inner is None:
            module, argument = load_plugin("exhibit.models.embedders", self.config.embedder)
            inner = module.open(argument, **self._patience(module.open))
        return CachedEmbedder(inner, VectorCache(self._cache / "vectors", inner))

    @cached_property
    def llm(self) -> LLM | None:
        """The language model, if there is one."""
        if self._given_llm is not None or self.config.llm == "none":
            return self._given_llm
        return self._open_llm(self.config.llm, {"heard": self._heard} if self._heard else {})

    @cached_property
    def summary_llm(self) -> LLM | None:
        """The language model that writes summaries: the model of the answers, or the one that `summary_llm` names.

        A separate model has its own counts of requests and cost against the limits in the config.
        """
        return self.llm if self.config.summary_llm == "same" else self._open_llm(self.config.summary_llm, {})

    def _open_llm(self, name: str, options: Mapping[str, object]) -> LLM:
        module, argument = load_plugin("exhibit.models.llms", name)
        patience = {"timeout": self._timeout, "total": self._timeout} if self._timeout else {}
        llm: LLM = module.open(argument, {"cache": self._cache / "llm", **options, **patience, **self._caps(argument)})
        return llm

    def _caps(self, model: str | None) -> dict[str, object]:
        """Return the options for a language model from the config: top_p, the request and cost limits, and the
        prices.
        """
        config = self.config
        if config.max_cost is not None and (config.price_in is None or config.price_out is None):
            raise ToolkitError(
                "--max-cost needs --price-in and --price-out, the prices of a million tokens of input and output"
            )
        model = model or os.environ.get("OPENAI_MODEL") or ""
        prices = {model: (config.price_in or 0.0, config.price_out or 0.0)} if config.max_cost is not None else {}
        drawn = {} if config.top_p is None else {"top_p": config.top_p}
        return {**drawn, "max_requests": config.max_requests, "max_cost": config.max_cost, "prices": prices}

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranker, if there is one."""
        if self.config.reranker == "none":
            return None
        module, argument = load_plugin("exhibit.models.rerankers", self.config.reranker)
        reranker: Reranker = module.open(argument, **self._patience(module.open))
        return reranker

    def _patience(self, opening: Callable[..., object]) -> dict[str, float]:
        """Return `{"timeout": seconds}` if the function `opening` takes a timeout and one is set, else an empty
        dict.
        """
        return {"timeout": self._timeout} if self._timeout and "timeout" in signature(opening).parameters else {}

    @cached_property
    def _tokens(self) -> Callable[[str], int]:
        model = self.config.llm.partition(":")[2] or None
        return choose_counter(model)


def find_files(source: Location, *, suffixes: Sequence[str] = ()) -> list[Location]:
    """Return every file of a folder in order, with the attachments of mails; or the one file that is given.

    Unreadable files are included: reading them later raises an error that names them.
    """
    if isinstance(source, Remote):
        files: Sequence[Location] = _remote_files(source)
    elif source.is_file():
        return [file.path for file in with_attachments([NamedFile(source, source.name)])]
    elif source.is_dir():
        files = [file.path for file in list_folder(source)]
    else:
        raise BundleError(f"{source}: no such file or folder; check the path")
    return [path for path in files if not suffixes or path.suffix.lower().lstrip(".") in suffixes]


def _remote_files(source: Remote) -> list[Location]:
    files = list_files(source)
    if not files and list_file(source) is not None:
        return [source]
    if not files:
        raise BundleError(f"{source}: no such file or folder; check the address")
    return [Remote((source / name).url, bytes=listed.bytes) for name, listed in files.items()]
