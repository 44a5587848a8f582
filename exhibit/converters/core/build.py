"""Builds a bundle from a benchmark: adds the documents, locates the gold, writes the files and validates them."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from exhibit.converters import (
    PAST_A_LIMIT,
    UNREADABLE,
    Benchmark,
    DatasetInfo,
    Label,
    Quote,
    RawDocument,
    RawRow,
    Tally,
)
from exhibit.converters.core.documents import NOWHERE, Done, QuotePlace, make_tasks, materialise, settle_pages
from exhibit.converters.pages.print import describe_printing, start_printing
from exhibit.engine import Engine, open_engine, read_limits, track
from exhibit.evidence.locate import is_ambiguous
from exhibit.evidence.scan import read_ocr_flags
from exhibit.hub.card import find_sample, write_card
from exhibit.schemas import IMPOSSIBLE_ANSWER, __version__
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, drafts_text, write_gold, write_info, write_train
from exhibit.schemas.errors import LimitError, ServiceError, SourceError, escape_surrogates
from exhibit.schemas.layout import DRAFTS
from exhibit.schemas.models import FORMAT, HOWS, BundleInfo, CardText, Context, Gold, Row, SourceEntry, Tool
from exhibit.schemas.validate import count_gold, describe_file, raise_problems, validate
from exhibit.storage.atomic import make_scratch_folder, remove_below

ABOUT_UNREADABLE = "question about a document that cannot be read"
NOT_UTF8 = "row with half a surrogate pair, which is not a character"
NOT_LOCATED = "passage not found in the document"
Asked = tuple[Row, list[Gold]]  # a question with its lines of gold.jsonl
_MACHINE_OPTIONS = frozenset(
    {"out", "source", "documents", "jobs", "engine", "item_timeout", "item_memory", "force", "strict", "json"}
    | {"delay", "timeout", "refetch"}
    | {"patch"}  # bundle.json records patches by their content
)


def build(info: DatasetInfo, benchmark: Benchmark, tally: Tally, options: Namespace, folder: Path) -> BundleInfo:
    """Write a whole bundle into an empty folder and validate it."""
    # the user chooses the name of a table's bundle: ignore a known dataset with the same name
    text = make_card_text(replace(benchmark.info, derived="") if benchmark.info else info, info.name, options)
    info = benchmark.info or info
    (folder / CORPUS).mkdir()
    items = len(benchmark.documents)
    engine = open_engine(options.engine, jobs=options.jobs, items=items, limits=read_limits(options))
    with make_scratch_folder() as texts:
        done = _materialise_all(benchmark, folder / CORPUS, texts, engine, tally, options)
        rows = [row for row in benchmark.rows if _is_usable(row, benchmark, done, tally)]
        settle_pages(done, (quote for row in rows for quote in row.quotes), tally)
        questions, drafts = list[Asked](), list[Asked]()
        for row in rows:
            unsure = benchmark.draft and row.labels.get("draft") == "unsure"  # a person must review it
            (drafts if unsure else questions).append((_make_row(row, done), list(_make_gold(row, done))))
            for quote in () if unsure else row.quotes:
                _note_gold(row, quote, done[quote.filename].places[quote], tally)
        owners: list[RawDocument | RawRow] = [*rows, *(raw for raw in benchmark.documents if raw.filename in done)]
        account = tally.account(item for owner in owners for item in owner.items)
        # only benchmarks that cite headings have sections, and only tables have answers that replace quotes
        hows = [how for how in HOWS if how not in ("section", "answer")]
        same = ("name", "title", "summary", "licence", "citation", "groups", "headline")
        bundle = BundleInfo(
            **{name: getattr(info, name) for name in same},
            format=FORMAT,
            source=SourceEntry(name=info.benchmark, url=info.url, version=info.version, sha256=benchmark.sha256),
            counts=count_gold([], [], documents=len(done), hows=hows),
            left_out=tally.left_out,
            noted=tally.noted,
            account=account,
            documents=[done[name].entry for name in sorted(done)],
            files={},
            tool=Tool(name="exhibit-rag", version=__version__),
            options=list_content_options(options),
            draft=benchmark.draft,
            printing=describe_printing(document.printer for document in done.values()),
        )
        return write_bundle(bundle, questions, drafts, folder, engine=engine, text=text, texts=texts)


def write_bundle(
    info: BundleInfo, questions: Sequence[Asked], drafts: Sequence[Asked], folder: Path, *, engine: Engine,
    text: CardText, texts: Path | None = None,
) -> BundleInfo:  # fmt: skip
    """Write questions, drafts, card and finally bundle.json, which lists the other files; then validate the bundle."""
    rows, gold = [row for row, _ in questions], [line for _, lines in questions for line in lines]
    write_train(rows, folder / TRAIN)
    write_gold(gold, folder / GOLD)
    counts = count_gold(rows, gold, documents=len(info.documents), hows=info.counts.located)
    info = info.model_copy(update={"counts": counts})
    if info.draft is not None:
        (folder / DRAFTS).write_text(drafts_text(drafts), encoding="utf-8")
        draft = info.draft.model_copy(update={"sure": len(rows), "unsure": len(drafts)})
        info = info.model_copy(update={"draft": draft})
    write_card(info, folder, rows=rows, gold=gold, engine=engine, text=text, texts=texts)
    paths = sorted((path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), key=PurePosixPath)
    info = info.model_copy(update={"files": {path.as_posix(): describe_file(folder / path) for path in paths}})
    write_info(info, folder / INFO)
    problems = validate(folder)
    raise_problems(problems, f"the new bundle has {len(problems)} problems; please report this bug")
    return info


def _materialise_all(
    benchmark: Benchmark, corpus: Path, texts: Path, engine: Engine, tally: Tally, options: Namespace
) -> dict[str, Done]:
    documents = []
    for raw in benchmark.documents:
        if escape_surrogates(raw.filename) == raw.filename:
            documents.append(raw)
        else:
            tally.fault("document's name is not UTF-8; rename it", escape_surrogates(raw.filename), item=raw.file)
    done: dict[str, Done] = {}
    with start_printing(read_limits(options)) as press:
        ocr = read_ocr_flags(options)
        work = make_tasks(documents, benchmark.rows, corpus, press=press, ocr=ocr, texts=texts)
        outcomes = track(engine.map(materialise, work), total=len(documents), label="documents")
        for raw, outcome in zip(documents, outcomes, strict=True):
            name, error = raw.filename, outcome.error
            if isinstance(error, ServiceError):
                raise error  # the store is unreachable, and the document is not to blame
            if error is not None:
                reason = PAST_A_LIMIT if isinstance(error, LimitError) else UNREADABLE
                line = f"{name}: {str(error).removeprefix(f'{raw.original or raw.path or name}: ')}"
                tally.fault(reason, line, item=raw.file)
                tally.leave_out_all(reason, [item for item in raw.items if item.kind == "rows"], more=line)
                remove_below(corpus, name)
                continue
            done[name] = outcome.unwrap()
            for remark in done[name].notes:
                tally.note("remarks on documents", f"{name}: {remark}")
    if not done and (documents or not benchmark.rows):
        reasons = "; ".join(f"{reason}: {', '.join(names[:3])}" for reason, names in tally.left_out.items())
        raise SourceError(f"no document can be used; correct the source: {reasons}")
    return done


def _is_usable(row: RawRow, benchmark: Benchmark, done: dict[str, Done], tally: Tally) -> bool:
    """Return whether a row can be written; if not, count the row as left out."""
    missing = min((name for name in row.files if name not in done), default="")
    labels = [*row.labels.values(), *(label for quote in row.quotes for label in dict(quote.labels).values())]
    words = [row.question, row.answer, *(quote.text for quote in row.quotes), *labels]
    if missing:
        reason = ABOUT_UNREADABLE
    elif any(isinstance(text, str) and escape_surrogates(text) != text for text in words):
        reason = NOT_UTF8
    elif (benchmark.draft or benchmark.by_construction) and not all(
        done[quote.filename].places[quote].spans for quote in row.quotes if quote.text
    ):
        reason, missing = NOT_LOCATED, str(row.filename)
    else:
        return True
    tally.leave_out_all(reason, row.items, name=row.name, more=missing, fault=reason == NOT_UTF8)
    return False


def _find_text(quote: Quote, where: QuotePlace) -> str | None:
    """Return a gold passage's words; None if the row has an answer but no quote, and the answer was not located."""
    return None if quote.answer and where.how == "absent" else quote.text or where.text


def _make_row(row: RawRow, done: dict[str, Done]) -> Row:
    contexts = [
        Context(filename=quote.filename, text=_find_text(quote, done[quote.filename].places[quote]))
        for quote in row.quotes
    ]
    answer = IMPOSSIBLE_ANSWER if row.is_impossible else row.answer
    return Row(id=row.id, question=row.question, answer=answer, is_impossible=row.is_impossible, contexts=contexts)


def _make_gold(row: RawRow, done: dict[str, Done]) -> Iterator[Gold]:
    """Yield one line per gold passage; a row without gold has one line with its labels."""
    if not row.quotes:
        yield NOWHERE.make_gold(row.id, None, row.filename, dict(row.labels))
    misses = [
        (quote.filename, done[quote.filename].places[quote]) for quote in row.near_misses if quote.filename in done
    ]
    near = " ".join(f"{name}#{start}-{end}" for name, place in misses for start, end in place.spans)
    for index, quote in enumerate(row.quotes):
        labels = {**row.labels, **({"other_versions": near} if near else {}), **dict(quote.labels)}
        yield done[quote.filename].places[quote].make_gold(row.id, index, quote.filename, labels)


def _note_gold(row: RawRow, quote: Quote, where: QuotePlace, tally: Tally) -> None:
    """Record a note if gold was not found, is ambiguous or is invisible; with --strict, raise if it was not found."""
    text, places = _find_text(quote, where) or "", 1 + len(where.alternatives)
    name = f"{quote.filename}: question {row.id}"
    if text and where.how == "absent":
        remark = "quote not found in the document (kept in train.json, marked absent in gold.jsonl)"
        tally.note(remark, f"{name}: {text[:80]!r}", fault=True)
    elif is_ambiguous(text, places):
        tally.note("ambiguous gold: few words with many locations", f"{name}: {text!r} has {places} locations")
    if where.hidden:
        tally.note("gold with words that are invisible on the page", f"{name}: {where.hidden}")
    if where.remark:
        cited = f"{row.name}: {(quote.provision or text)[:80]} in {quote.filename}"
        tally.note(where.remark, cited, fault=not where.spans)
    for accepted in where.not_accepted:
        tally.note("accepted alternative not located, or ambiguous", f"{row.name}: {accepted} in {quote.filename}")


def list_content_options(options: Namespace) -> dict[str, Label]:
    """Return the options of a conversion that affect the bundle's content, to record them in bundle.json."""
    chosen = {name: value for name, value in sorted(vars(options).items()) if name not in _MACHINE_OPTIONS}
    ocr = read_ocr_flags(options)
    if ocr is not None:
        chosen["ocr_engine"] = ocr.engine  # record the engine, because `auto` may choose another engine elsewhere
    else:
        chosen = {name: value for name, value in chosen.items() if not name.startswith("ocr")}
    return chosen


def make_card_text(info: DatasetInfo, converter: str, options: Namespace | None = None) -> CardText:
    """Return the dataset card's texts that are not in the bundle's files, such as the command that makes the bundle."""
    given = vars(options or Namespace())
    sample = find_sample(given.get("source"))
    source = sample or ("" if info.downloads else "PATH")
    command = [f"exhibit convert {converter}", *([f"--source {source}"] if source else [])]
    command += ["--documents DIR"] if given.get("documents") else []
    command += [f"--patch {' '.join(Path(name).name for name in given['patch'])}"] if given.get("patch") else []
    return replace(info, converter=converter, command=info.command or " ".join(command), sample=sample)
