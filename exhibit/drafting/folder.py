"""Drafts questions about a folder of documents; the drafts of each finished document are cached."""

import json
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter

from exhibit.converters import Benchmark, DatasetInfo, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.command import main as convert
from exhibit.converters.core.titles import choose_unique_titles, join_names
from exhibit.converters.pages.chromium import NEEDED, needs_missing_browser
from exhibit.converters.pages.fetch import Policy
from exhibit.converters.tables.documents import Shelf
from exhibit.drafting.drafts import Draft, construct_questions, digest, word_question
from exhibit.drafting.generated import Generator
from exhibit.drafting.playbook import Asker, Playbook, choose_playbook, find_playbooks, only_mentions_agreement
from exhibit.engine import open_engine, read_limits, track
from exhibit.evidence.scan import choose_ocr, read_ocr_flags
from exhibit.law.profile import Profile
from exhibit.models.reader import shared_reader
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation, Prepared
from exhibit.rag.pipeline import Pipeline
from exhibit.runtime.command import Parser, guarded
from exhibit.schemas.errors import SourceError, ToolkitError
from exhibit.schemas.models import DraftInfo, Licence
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import Cache, find_cache_folder, key_of

INFO = DatasetInfo(
    name="draft",
    title="Drafted questions",
    benchmark="A folder of documents",
    summary="""Questions that a program drafted on somebody's own documents, each with a passage that was located on its
        page. No expert wrote them: docs/draft.md has the error rates of drafts that no person has reviewed.""",
    licence=Licence(
        id="other",
        name="the terms of each document",
        redistributable=False,
        note="The documents belong to their owner: only the owner may share this bundle.",
    ),
    command="exhibit draft FOLDER",
    expects="documents: PDF, Word, mail, text, and all other kinds that have a reader",
    tags=("legal", "drafted"),
    questions="""A program drafted the questions: from playbooks, with passages that our models found, and from
        definitions, headings and parties of the documents, whose passages are known by construction.""",
    limits="""
        - Drafted gold is not expert gold: a passage may be wrong, or be only one of several answers.
        - A row is impossible if our models are sure that the document has no answer.
        - Unsure drafts are in drafts.jsonl until a person reviews them; they are not scored.""",
    annotations=("machine-generated",),
)

VERSION = 14  # increase it when the code drafts other questions: older cached drafts are then not used


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    books = "playbooks, by name or file, separated by commas (default: by kind of document; see --playbooks)"
    add("--playbook", default="", metavar="NAMES", help=books)
    share = "the largest share of unanswerable questions among the scored questions (default: a third)"
    add("--impossible", type=float, default=1 / 3, metavar="SHARE", help=share)
    add("--llm", default="none", metavar="NAME", help="a language model that drafts further questions: openai:MODEL")
    add("--topic", default="", metavar="WORDS", help="the topic of the language model's questions")


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a folder, draft questions about every document, and propose their gold."""
    if not source.is_dir():
        raise SourceError(f"{source}: no such folder; give the folder of the documents")
    if not 0 <= options.impossible <= 1:
        raise SourceError(f"--impossible {options.impossible}: not a share; give a number from 0 to 1, such as 0.33")
    shelf = Shelf(source, source, as_pdf=True, policy=Policy())
    found = shelf.find([], tally).values()
    for raw in filter(needs_missing_browser, found):
        tally.leave_out_all(NEEDED, raw.items)
    documents = [raw for raw in found if not needs_missing_browser(raw)]
    drafted, models, unread = _draft_all(documents, options, tally)
    if not drafted:
        unread += [f"{name}: {NEEDED}" for name in tally.left_out.get(NEEDED, ())]
        raise SourceError(f"{source}: none of its {len(unread)} documents can be read: {'; '.join(unread)}")
    titles = _make_titles(drafted)
    rows = [row for document in drafted for row in _make_rows(document, titles[document.filename])]
    rows = _cap_impossible(rows, options.impossible, tally)
    if not rows:
        kinds = ", ".join(sorted({document.profile.kind or "unknown" for document in drafted}))
        counted = f"{len(drafted)} documents of these kinds: {kinds}"
        raise SourceError(f"{source}: no question was drafted: {counted}; write a playbook (docs/draft.md)")
    for document in drafted:
        if not document.playbook:
            kind = document.profile.kind or "of no known kind"
            tally.note("no playbook suits the document", f"{document.filename}: {kind}")
    draft = DraftInfo(playbooks=sorted({document.playbook for document in drafted} - {""}), models=models)
    named = [replace(raw, title=titles.get(raw.filename, raw.title)) for raw in documents]
    sha256 = {file.name: sha256_of(file.path) for file in shelf.files}
    name, about = options.out.name, source.resolve().name
    command = f"exhibit draft {shlex.quote(about)}"
    info = replace(INFO, name=name, title=f"Drafted questions: {name}", benchmark=about, command=command)
    return Benchmark(named, rows, sha256, info=info, draft=draft)


@dataclass(frozen=True)
class Drafted:
    filename: str
    profile: Profile
    playbook: str
    drafts: tuple[Draft, ...]


_DRAFTED = TypeAdapter(Drafted)


def prepare_document(preparation: Preparation, path: Path) -> tuple[Prepared, list[Draft]]:
    """Read a document, find its sections, split it into chunks, and make questions from its text."""
    prepared = preparation(path)
    assert prepared.whole is not None  # only a summarised document has none, and drafting makes no summaries
    return replace(prepared, whole=None, words=None), construct_questions(*prepared.whole, prepared.entry.profile)


def open_asker(pipeline: Pipeline) -> Asker:
    assert pipeline.reranker is not None  # the pipeline for drafting has one
    return Asker(pipeline.embedder, shared_reader(), pipeline.reranker)


def _draft_all(
    documents: Sequence[RawDocument], options: Namespace, tally: Tally
) -> tuple[list[Drafted], list[str], list[str]]:
    playbooks = find_playbooks([name for name in options.playbook.split(",") if name])
    # the levels of confidence were chosen with this reranker
    pipeline = Pipeline(Config.preset("routed", reranker="legal", llm=options.llm))
    config = pipeline.config.model_copy(update={"lexicon": False})  # drafting needs no lexicon
    prepare = partial(prepare_document, Preparation(config, None, read_ocr_flags(options)))
    asker, llm = open_asker(pipeline), pipeline.llm
    generator = Generator(llm, asker, options.topic) if llm is not None else None
    cache = Cache(find_cache_folder() / "drafts.sqlite")
    books = json.dumps([playbook.model_dump() for playbook in playbooks], sort_keys=True)
    chosen = books, str(VERSION), str(options.ocr), options.llm, options.topic
    paths = {raw.filename: path for raw in documents if (path := raw.original or raw.path)}
    keys = {name: key_of(sha256_of(path), path.name, *chosen) for name, path in paths.items()}
    stored = cache.get(keys.values())
    known = {name: _DRAFTED.validate_json(stored[key]) for name, key in keys.items() if key in stored}
    new = {name: path for name, path in paths.items() if name not in known}
    engine = open_engine(options.engine, jobs=options.jobs, items=len(new), limits=read_limits(options))
    outcomes = track(engine.map(prepare, new.values()), total=len(new), label="drafts")
    unread: list[str] = []
    for name, outcome in zip(new, outcomes, strict=True):
        if outcome.error is not None:
            unread.append(f"{name}: {str(outcome.error).removeprefix(f'{paths[name]}: ')}")
        else:
            known[name] = _draft(name, *outcome.unwrap(), playbooks, asker, generator)
            cache.put({keys[name]: _DRAFTED.dump_json(known[name])})
    for why, count in generator.dropped.items() if generator else ():
        tally.note(f"drafted by the language model and discarded: {why}", f"{count} questions")
    models = [asker.embedder.name, asker.reranker.name, asker.reader.name, *([llm.name] if llm is not None else [])]
    return [known[name] for name in paths if name in known], models, unread


def _draft(
    filename: str, prepared: Prepared, made: list[Draft], playbooks: Sequence[Playbook], asker: Asker,
    generator: Generator | None,
) -> Drafted:  # fmt: skip
    prepared = replace(prepared, entry=replace(prepared.entry, filename=filename))
    text, profile = prepared.text, prepared.entry.profile
    playbook = choose_playbook(playbooks, profile, text)
    answered = asker.ask(playbook, prepared) if playbook else []
    generated = generator.draft(prepared) if generator else []
    drafts = tuple(
        replace(draft, filename=filename, words=tuple(text[span.start : span.end] for span in draft.spans))
        for draft in (*made, *answered, *generated)
    )
    if only_mentions_agreement(profile, text):  # its title names an agreement
        profile = replace(profile, title=Path(filename.removesuffix(".pdf")).stem)
    return Drafted(filename, profile, playbook.name if playbook else "", drafts)


def _cap_impossible(rows: Sequence[RawRow], share: float, tally: Tally) -> list[RawRow]:
    """Return the rows without impossible questions beyond a share: refusing everything must not score well."""
    impossible = sorted((row for row in rows if row.is_impossible), key=lambda row: digest(str(row.id), "capped"))
    answered = sum(row.labels["draft"] == "sure" for row in rows)
    most = len(impossible) if share >= 1 else int(answered * share / (1 - share) + 1e-9)
    dropped = {row.id for row in impossible[most:]}
    if dropped:
        tally.note(f"impossible questions beyond the share of {share:.2f} (--impossible)", f"{len(dropped)} questions")
    return [row for row in rows if row.id not in dropped]


# titles that do not distinguish one document from another
_GENERIC = re.compile(r"(?:the |this |letter )?(?:agreement|contract|amendment|addendum|letter|deed)", re.IGNORECASE)


def _make_titles(drafted: Iterable[Drafted]) -> dict[str, str]:
    """Return a unique title for each document: its name and, where needed, its parties, its date or its file name."""
    candidates: dict[str, list[str]] = {}
    for document in drafted:
        profile = document.profile
        plain = profile.title or Path(document.filename).stem
        parties = f"{plain} between {join_names(profile.parties)}" if profile.parties else plain
        dated = f"{parties} of {profile.date}" if profile.date else parties
        called = [plain, parties, dated, f"{plain} ({Path(document.filename).stem})"]
        candidates[document.filename] = list(dict.fromkeys(name for name in called if not _GENERIC.fullmatch(name)))
    return choose_unique_titles(candidates)


def _make_rows(document: Drafted, title: str) -> Iterator[RawRow]:
    for draft in document.drafts:
        labels: dict[str, Label] = {"drafted": draft.kind, "draft": draft.status, "asks_for": draft.name}
        labels |= {"confidence": draft.confidence, **draft.labels}
        quotes = tuple(
            Quote(document.filename, text, marked=((span.start, span.end),))
            for span, text in zip(draft.spans, draft.words, strict=True)
        )
        id, answer = int(draft.key[:12], 16), " ".join(" ".join(draft.words).split())
        absent = draft.status == "absent"
        yield RawRow(id, word_question(draft, title), answer, quotes, document.filename, absent, labels)


@guarded()
def main(argv: Sequence[str]) -> int:
    """Draft a bundle from a folder; the first argument may be the folder, without `--source`."""
    words = list(argv)
    if words and not words[0].startswith("-"):
        words = ["--source", *words]  # the first argument is the folder
    return convert(sys.modules[__name__], add_ocr(words))


def add_ocr(words: list[str]) -> list[str]:
    """Return the arguments, and add `--ocr` if an OCR engine is installed, because many folders contain scans."""
    if not any(word.startswith("--ocr") for word in words):
        with suppress(ToolkitError):
            choose_ocr()
            return [*words, "--ocr"]
    return words


@guarded()
def playbook_main(argv: Sequence[str]) -> int:
    """List the playbooks, or check a playbook and show its questions."""
    parser = Parser(prog="exhibit draft --playbooks", description="List the playbooks, or check your own.")
    parser.add_argument("playbook", nargs="*", metavar="NAME|FILE.toml", help="show the questions of these playbooks")
    options = parser.parse_args(argv)
    playbooks = find_playbooks(options.playbook)
    for playbook in playbooks:
        print(f"{playbook.name}: {playbook.title}")
        print(f"  {len(playbook.questions)} questions, for {', '.join(playbook.kinds)}")
        for question in playbook.questions if options.playbook else []:
            print(f"  {question.name}: {question.ask}")
    return 0
