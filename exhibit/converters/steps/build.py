"""Builds a bundle from a benchmark: adds the documents, locates the gold, writes the files and validates them."""

import shutil
from argparse import Namespace
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from exhibit.converters.benchmark import (
    PAST_A_LIMIT,
    UNREADABLE,
    Benchmark,
    DatasetInfo,
    Item,
    Label,
    RawDocument,
    RawRow,
    Tally,
)
from exhibit.converters.printing.press import PdfPrinter, describe_printing
from exhibit.converters.steps.description import finish, list_content_options, make_card_text
from exhibit.converters.steps.families import FAMILY, mark_families
from exhibit.converters.steps.materialise import NOWHERE, Done, QuotePlace, SharedDocuments, make_tasks, materialise
from exhibit.converters.steps.pages import settle_pages
from exhibit.engine import Engine, Outcome, open_engine, read_limits, track
from exhibit.evidence.place import is_ambiguous
from exhibit.evidence.scan import read_ocr_flags
from exhibit.hub.card import write_card
from exhibit.schemas import IMPOSSIBLE_ANSWER, Context, Gold, Row, __version__
from exhibit.schemas.bundle import CORPUS, GOLD, TRAIN, drafts_text, write_gold, write_train
from exhibit.schemas.errors import LimitError, ServiceError, SourceError, ToolkitError, escape_surrogates
from exhibit.schemas.layout import DRAFTS, LONGEST_NAME
from exhibit.schemas.models import FORMAT, HOWS, BundleInfo, Counts, DocumentEntry, DraftInfo, SourceEntry, Tool
from exhibit.storage.removal import remove_below

ORIGINALS = "originals"
"""The folder of a bundle for the files from which its documents were printed."""
_TEXTS = "texts.partial"
"""A temporary folder for the documents' texts, until the tables are written."""
ABOUT_UNREADABLE = "question about a document that cannot be read"


def build(
    info: DatasetInfo,
    benchmark: Benchmark,
    tally: Tally,
    options: Namespace,
    folder: Path,
    shared: SharedDocuments | None = None,
) -> BundleInfo:
    """Write a whole bundle into an empty folder and validate it.

    A document that `shared` already has from another bundle is copied instead of being printed to PDF again.
    """
    converter = info.name  # the bundle of a table has the name that its user gives it
    info = benchmark.info or info
    (folder / CORPUS).mkdir()
    jobs, items = options.jobs, len(benchmark.documents)
    engine = open_engine(options.engine, jobs=jobs, items=items, limits=read_limits(options))
    shared = shared or SharedDocuments(folder / _TEXTS, folder / CORPUS, ())
    shared.texts.mkdir(exist_ok=True)
    done = _materialise_all(benchmark, folder / CORPUS, engine, tally, options, shared)
    if not benchmark.by_construction:  # a bundle made by rule has its own labels for amendments
        done = mark_families(done, tally)
    rows = [row for row in benchmark.rows if _is_answerable(row, done, tally) and _is_sound(row, tally)]
    if benchmark.draft or benchmark.by_construction:
        rows = [row for row in rows if _is_located(row, done, tally)]
    given = rows
    if benchmark.draft:
        rows = _set_drafts_apart(given, done, folder)
    settle_pages(done, (quote for row in rows for quote in row.quotes), tally)
    questions = [_make_row(row, done) for row in rows]
    write_train(questions, folder / TRAIN)
    gold = list(_make_gold(rows, done))
    write_gold(gold, folder / GOLD)
    _note_absent(gold, questions, tally)
    _note_provisions(rows, done, tally)
    _note_hidden(gold, tally)
    kept = [raw for raw in benchmark.documents if raw.filename in done]
    if options.keep_originals:
        _keep_originals(kept, folder)
    bundle = _describe(info, benchmark, tally, options, questions, gold, [done[name].entry for name in sorted(done)])
    kept_items = [item for items in (*(raw.items for raw in kept), *(row.items for row in given)) for item in items]
    bundle = bundle.model_copy(update={"account": tally.account(kept_items)})
    # the name of a table is not the name of a dataset
    text = make_card_text(replace(info, derived="") if benchmark.info else info, converter)
    bundle = write_card(bundle, folder, rows=questions, gold=gold, engine=engine, text=text, texts=shared.texts)
    remove_below(folder, _TEXTS)
    printers = describe_printing(one.printer for one in done.values())
    return finish(bundle.model_copy(update={"printing": printers}), folder)


def _materialise_all(
    benchmark: Benchmark, corpus: Path, engine: Engine, tally: Tally, options: Namespace, shared: SharedDocuments
) -> dict[str, Done]:
    quotes = shared.quotes_of(benchmark)
    documents = [raw for raw in benchmark.documents if _is_writable(raw, tally)]
    known = {raw.filename: shared.place(raw, quotes.get(raw.filename, ()), corpus) for raw in documents}
    missing = [raw for raw in documents if known[raw.filename] is None]
    done: dict[str, Done] = {}
    with PdfPrinter(read_limits(options)) as press:
        work = make_tasks(missing, quotes, corpus, press=press, ocr=read_ocr_flags(options), texts=shared.texts)
        outcomes = track(engine.map(materialise, work), total=len(missing), label="documents")
        for raw in documents:
            name = raw.filename
            before = known[name]
            outcome = next(outcomes) if before is None else Outcome(before)
            if isinstance(outcome.error, ServiceError):
                raise outcome.error  # a store that is unreachable is not the fault of the document
            if outcome.error is not None:
                _leave_out(raw, outcome.error, tally)
                remove_below(corpus, name)
                continue
            done[name] = outcome.unwrap()
            shared.keep(raw, done[name])
            for remark in done[name].notes:
                tally.note("remarks on documents", f"{name}: {remark}")
    if not done and (documents or not benchmark.rows):
        reasons = "; ".join(f"{reason}: {', '.join(names[:3])}" for reason, names in tally.left_out.items())
        raise SourceError(f"no document could be used: {reasons}")
    return done


def _leave_out(raw: RawDocument, error: ToolkitError, tally: Tally) -> None:
    line = f"{raw.filename}: {str(error).removeprefix(f'{raw.original or raw.path or raw.filename}: ')}"
    reason = PAST_A_LIMIT if isinstance(error, LimitError) else UNREADABLE
    tally.fault(reason, line, item=_file_of(raw))
    tally.leave_out_all(reason, [item for item in raw.items if item.kind == "rows"], more=line)


def _file_of(raw: RawDocument) -> Item | None:
    return next((item for item in raw.items if item.kind == "files"), None)


def _keep_originals(documents: Sequence[RawDocument], folder: Path) -> None:
    """Copy the files from which documents were printed; the corpus has only the printed PDFs."""
    originals = folder / ORIGINALS
    for raw in documents:
        if raw.original is not None:
            originals.mkdir(exist_ok=True)
            shutil.copyfile(raw.original, originals / raw.original.name)


def _is_answerable(row: RawRow, done: dict[str, Done], tally: Tally) -> bool:
    missing = min((name for name in row.files if name not in done), default=None)
    if missing:
        tally.leave_out_all(ABOUT_UNREADABLE, row.items, name=f"row {row.id}", more=missing)
    return missing is None


def _is_writable(raw: RawDocument, tally: Tally) -> bool:
    """Return whether a document's name is valid in train.json and as a file name; if not, count the document."""
    if len(raw.filename.encode("utf-8", "surrogatepass")) > LONGEST_NAME:
        tally.fault(f"document's name has more than {LONGEST_NAME} bytes; rename it", raw.filename, item=_file_of(raw))
        return False
    if escape_surrogates(raw.filename) == raw.filename:
        return True
    tally.fault("document's name is not UTF-8; rename it", escape_surrogates(raw.filename), item=_file_of(raw))
    return False


def _is_sound(row: RawRow, tally: Tally) -> bool:
    """Return whether a row's texts can be written as UTF-8; if they cannot, count the row as left out."""
    labels = [*row.labels.values(), *(label for quote in row.quotes for label in dict(quote.labels).values())]
    words = [row.question, row.answer, *(quote.text for quote in row.quotes), *labels]
    try:
        " ".join(text for text in words if isinstance(text, str)).encode()
    except UnicodeEncodeError:
        reason = "row with half a surrogate pair, which is no character"
        tally.leave_out_all(reason, row.items, name=f"row {row.id}", fault=True)
        return False
    return True


def _make_row(row: RawRow, done: dict[str, Done]) -> Row:
    return Row(
        id=row.id,
        question=row.question,
        answer=IMPOSSIBLE_ANSWER if row.is_impossible else row.answer,
        is_impossible=row.is_impossible,
        contexts=[
            Context(
                filename=quote.filename,
                # an answer that stands for a passage, and is not found, gives no passage
                text=None
                if quote.answer and done[quote.filename].places[quote].how == "absent"
                else quote.text or done[quote.filename].places[quote].text,
            )
            for quote in row.quotes
        ],
    )


def _is_located(row: RawRow, done: dict[str, Done], tally: Tally) -> bool:
    """Return whether every quoted passage of a row was located in its document.

    If not, record the row in `tally` as left out.
    """
    if all(done[quote.filename].places[quote].spans for quote in row.quotes if quote.text):
        return True
    reason = "passage not found in the document"
    tally.leave_out_all(reason, row.items, name=f"row {row.id}", more=str(row.filename))
    return False


def _set_drafts_apart(rows: Sequence[RawRow], done: dict[str, Done], folder: Path) -> list[RawRow]:
    """Write the rows with uncertain gold to drafts.jsonl, where a person must review them; return the other rows."""
    unsure = [row for row in rows if row.labels.get("draft") == "unsure"]
    text = drafts_text((_make_row(row, done), _make_gold([row], done)) for row in unsure)
    (folder / DRAFTS).write_text(text, encoding="utf-8")
    return [row for row in rows if row.labels.get("draft") != "unsure"]


def _make_gold(rows: Sequence[RawRow], done: dict[str, Done]) -> Iterator[Gold]:
    """Yield the lines of gold.jsonl: one per gold passage of each row.

    A row without gold passages has one line, which holds its labels.
    """
    for row in rows:
        if not row.quotes:
            yield gold_of(row.id, None, row.filename, NOWHERE, {**row.labels, **_label_family(row.filename, done)})
        for index, quote in enumerate(row.quotes):
            place = done[quote.filename].places[quote]
            family = _label_family(quote.filename, done)
            labels = {**row.labels, **family, **_label_near_misses(row, done), **dict(quote.labels)}
            yield gold_of(row.id, index, quote.filename, place, labels)


def _label_family(filename: str | None, done: dict[str, Done]) -> dict[str, Label]:
    own = done[filename].entry.labels if filename in done else {}
    return {FAMILY: own[FAMILY]} if FAMILY in own else {}


def _label_near_misses(row: RawRow, done: dict[str, Done]) -> dict[str, Label]:
    """Return the label `other_versions`: where the same clause is in versions of the document from other days.

    A location has the form `file#start-end`. The result is an empty dictionary if there are no locations.
    """
    places = [
        f"{quote.filename}#{start}-{end}"
        for quote in row.near_misses
        if quote.filename in done
        for start, end in done[quote.filename].places[quote].spans
    ]
    return {"other_versions": " ".join(places)} if places else {}


def gold_of(id: int, context: int | None, filename: str | None, place: QuotePlace, labels: dict[str, Label]) -> Gold:
    """Return a line of gold.jsonl: the gold of question `id`, located at `place` in the file `filename`.

    If words of the gold are invisible on the page, the label `hidden` states the reason.
    """
    fields = {"id": id, "context": context, "filename": filename, **vars(place)}
    hidden = fields.pop("hidden")
    del fields["text"], fields["remark"], fields["not_accepted"]
    return Gold.model_validate({**fields, "labels": {**labels, "hidden": hidden} if hidden else labels})


def _note_hidden(gold: Sequence[Gold], tally: Tally) -> None:
    """Record a note for each line of gold.jsonl whose gold has words that are invisible on the page."""
    for line in gold:
        if "hidden" in line.labels:
            name = f"{line.filename}: row {line.id}: {line.labels['hidden']}"
            tally.note("gold with words that nobody sees on the page", name)


def _note_absent(gold: Sequence[Gold], rows: Sequence[Row], tally: Tally) -> None:
    """Record a note for each quote that was not found in its document, and for one of few words and many locations.

    With `--strict`, raise SourceError for a quote that was not found.
    """
    words = {row.id: row.contexts for row in rows}
    for line in gold:
        if line.context is not None and line.how == "absent":
            quote = words[line.id][line.context].text
            if not quote:
                continue  # a file without a quote: nothing to locate
            name = f"{line.filename}: row {line.id}: {quote[:80]!r}"
            if tally.strict:
                raise SourceError(f"{name}: quote not found in the document; fix the source, or remove --strict")
            tally.note("quote not found in the document (kept in train.json, marked absent in gold.jsonl)", name)
        elif line.context is not None and is_ambiguous(
            quote := words[line.id][line.context].text or "", 1 + len(line.alternatives)
        ):
            name = f"{line.filename}: row {line.id}: {quote!r} on {1 + len(line.alternatives)} places"
            tally.note("ambiguous gold: few words on many places", name)


def _note_provisions(rows: Sequence[RawRow], done: dict[str, Done], tally: Tally) -> None:
    """Record a note for each provision that is absent or ambiguous in its document.

    Both the provisions of the gold and the alternatives that a row accepts are checked. With `--strict`, raise
    SourceError for a provision of the gold that has no location.
    """
    for row in rows:
        for quote in row.quotes:
            for accepted in done[quote.filename].places[quote].not_accepted:
                tally.note("accepted provision is absent or ambiguous", f"{row.name}: {accepted} in {quote.filename}")
            remark = done[quote.filename].places[quote].remark
            if remark:
                name = f"{row.name}: {quote.provision} in {quote.filename}"
                if tally.strict and not done[quote.filename].places[quote].spans:
                    raise SourceError(f"{name}: provision {remark}; fix the source, or remove --strict")
                tally.note(f"provision {remark}", name)


def _describe(
    info: DatasetInfo,
    benchmark: Benchmark,
    tally: Tally,
    options: Namespace,
    rows: Sequence[Row],
    gold: Sequence[Gold],
    documents: list[DocumentEntry],
) -> BundleInfo:
    # only a benchmark that cites headings has sections, and only a table has answers that stand for quotes
    hows = [how for how in HOWS if how not in ("section", "answer")]
    return BundleInfo(
        format=FORMAT,
        name=info.name,
        title=info.title,
        summary=info.summary,
        source=SourceEntry(name=info.benchmark, url=info.url, version=info.version, sha256=benchmark.sha256),
        licence=info.licence,
        citation=info.citation,
        counts=counts_of(rows, gold, documents=len(documents), hows=hows),
        groups=info.groups,
        headline=info.headline,
        left_out=tally.left_out,
        noted=tally.noted,
        documents=documents,
        files={},
        tool=Tool(name="exhibit-rag", version=__version__),
        options=list_content_options(options),
        patches=list(benchmark.patches),
        draft=_draft_info(benchmark, rows),
    )


def counts_of(rows: Sequence[Row], gold: Sequence[Gold], *, documents: int, hows: Collection[str]) -> Counts:
    """Return the counts for bundle.json.

    Locating methods in `hows` are always listed; other methods are listed only if they located a passage.
    """
    impossible = sum(row.is_impossible for row in rows)
    words = {row.id: row.contexts for row in rows}
    # a file without a quote counts as a context, but not as a quote that was missed
    located = Counter(line.how for line in gold if line.context is not None and words[line.id][line.context].text)
    return Counts(
        documents=documents,
        questions=len(rows),
        answerable=len(rows) - impossible,
        impossible=impossible,
        contexts=sum(len(row.contexts) for row in rows),
        located={how: located[how] for how in HOWS if located[how] or how in hows},
    )


def _draft_info(benchmark: Benchmark, rows: Sequence[Row]) -> DraftInfo | None:
    if benchmark.draft is None:
        return None
    unsure = sum(row.labels.get("draft") == "unsure" for row in benchmark.rows)
    return benchmark.draft.model_copy(update={"sure": len(rows), "unsure": unsure})
