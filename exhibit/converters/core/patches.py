"""Applies reviewers' corrections of the gold: while a source is read, or to an existing bundle."""

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from exhibit.converters.core.benchmark import Benchmark, DatasetInfo, Label, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.build import ORIGINALS, counts_of, finish, gold_of, make_card_text
from exhibit.converters.core.documents import NOWHERE, find_marked_place
from exhibit.engine import open_engine, track
from exhibit.evidence.read import read_within
from exhibit.hub.card import CardText, write_card
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, Question, drafts_text, write_gold, write_train
from exhibit.schemas.errors import BundleError, SourceError
from exhibit.schemas.layout import DRAFTS
from exhibit.schemas.models import BundleInfo, Context, Gold, PatchEntry, Row
from exhibit.schemas.review import Correction, MarkedPassage, Patch, digest_gold, read_patch
from exhibit.schemas.validate import read_drafts
from exhibit.storage.atomic import replace_folder
from exhibit.storage.bundle import BundleFolder, open_bundle, sha256_of
from exhibit.storage.locations import check_out, fetch_file

SHIPPED = "shipped"  # the value of a flag for the patch, or the list of addresses, that comes with a converter
_KNOWN = Path(__file__).parents[1] / "_known"
CORRECTED = "gold corrected by review"
UNFIT = "correction not applied: the gold has changed since the review"
ELSEWHERE = "in a patch, and not in the source as it was read"


def apply_patches(benchmark: Benchmark, info: DatasetInfo, names: Sequence[str], tally: Tally) -> Benchmark:
    """Return the benchmark with patches applied in order."""
    for name in names:
        path = Path(name)
        if name == SHIPPED and not path.exists():
            path = _KNOWN / f"{info.name}.json"
            if not path.is_file():
                raise SourceError(
                    f"--patch {SHIPPED}: no patch is shipped for {info.name}; give a patch file, or leave --patch out"
                )
        patch, wanted = read_patch(path), (benchmark.info or info).name
        if patch.dataset != wanted:
            raise SourceError(f"{path}: is a patch for {patch.dataset}, but this is {wanted}; give another patch")
        benchmark = _apply(benchmark, patch, path, tally)
    return benchmark


def _apply(benchmark: Benchmark, patch: Patch, path: Path, tally: Tally) -> Benchmark:
    aside = {document.filename: document.reason for document in patch.documents}
    dropped = {question.id: question.reason for question in patch.questions}
    fixes = {fix.id: fix for fix in patch.corrections}
    known, ids = {raw.filename for raw in benchmark.documents}, {row.id for row in benchmark.rows}
    unknown = [name for name in aside if name not in known]
    for name in [*unknown, *(f"question {id}" for id in (*dropped, *fixes) if id not in ids)]:
        tally.note(ELSEWHERE, f"{path.name}: {name}")
    documents = []
    for raw in benchmark.documents:
        if raw.filename in aside:
            tally.leave_out_all(f"set aside by a patch: {aside[raw.filename]}", raw.items, name=raw.filename)
        else:
            documents.append(raw)
    rows: list[RawRow] = []
    applied = 0
    for row in benchmark.rows:
        reason = dropped.get(row.id) or next((aside[name] for name in row.files if name in aside), None)
        if reason:
            tally.leave_out_all(f"set aside by a patch: {reason}", row.items, name=row.name)
            continue
        fixed = _fix_row(row, fixes.get(row.id), tally)
        applied += fixed is not row
        rows.append(fixed)
    entry = PatchEntry(
        name=path.name,
        sha256=sha256_of(path),
        about=patch.about,
        documents=len(benchmark.documents) - len(documents),
        questions=len(benchmark.rows) - len(rows),
        corrections=applied,
    )
    return replace(benchmark, documents=documents, rows=rows, patches=(*benchmark.patches, entry))


def _fix_row(row: RawRow, fix: Correction | None, tally: Tally) -> RawRow:
    """Return the row with the corrected gold; unchanged if its gold is no longer the gold that was reviewed."""
    if fix is None:
        return row
    if fix.was != digest_gold((quote.filename, quote.text) for quote in row.quotes):
        if tally.strict:
            raise SourceError(f"{row.name}: {UNFIT}; leave the correction out of the patch, or remove --strict")
        tally.note(UNFIT, row.name)
        return row
    tally.note(CORRECTED, f"{row.name}: by {', '.join(fix.reviewers)}" + (f": {fix.reason}" if fix.reason else ""))
    quotes = tuple(Quote(c.filename, c.text, marked=tuple((s, e) for s, e in c.spans)) for c in fix.contexts)
    return replace(
        row,
        quotes=quotes,
        is_impossible=fix.is_impossible,
        answer=fix.answer or ("" if row.is_impossible else row.answer) or " […] ".join(c.text for c in fix.contexts),
        filename=quotes[0].filename if quotes else next(iter(row.files), None),
    )


# ---------------------------------------------------------------- patches of a bundle


@dataclass
class ChangedBundle:
    """The questions and gold of a bundle after a change, with the items that were left out and the notes."""

    rows: list[Row] = field(default_factory=list)
    gold: list[Gold] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    noted: dict[str, list[str]] = field(default_factory=dict)


def apply_patch(patch: Patch, path: Path, root: Path, out: Path, *, force: bool = False) -> PatchEntry:
    """Write the bundle `root` to `out`, with the patch applied to its questions and drafts."""
    bundle = open_bundle(root)
    info = bundle.info
    if info is None:
        raise BundleError(f"{root}: no {INFO}; a patch is for a bundle that a converter made")
    if info.name != patch.dataset:
        raise BundleError(f"{path}: is a patch for {patch.dataset}, but {root} is {info.name}; give another patch")
    lines: dict[int, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    documents = [RawDocument(document.filename, document.title) for document in info.documents]
    asked = [(row_of(question), lines[int(question.id)]) for question in bundle.questions]
    drafts = read_drafts(root, bundle.files, [row.id for row, _ in asked])
    asked += [(draft.row, draft.gold) for draft in drafts]
    rows = {row.id: _make_raw_row(row, gold) for row, gold in asked}
    tally = Tally()
    result = _apply(Benchmark(documents, list(rows.values()), {}), patch, path, tally)
    [entry] = result.patches
    if not any((entry.documents, entry.questions, entry.corrections)):
        raise BundleError(f"{path}: nothing in it fits {root}; was it applied already?")
    changed = ChangedBundle(left_out=tally.left_out, noted=tally.noted)
    passages = {fix.id: fix.contexts for fix in patch.corrections}
    after = {row.id: row for row in result.rows}
    unsure, waiting = {draft.id for draft in drafts}, []
    for row, gold in asked:
        fixed = after.get(row.id)
        if fixed is None:
            continue  # the tally counts it
        better = row, gold
        if fixed is not rows[row.id]:
            better = replace_gold(row, gold, passages[row.id], fixed.answer, fixed.labels, bundle)
        if row.id in unsure:
            waiting.append(better)
            continue
        changed.rows.append(better[0])
        changed.gold += better[1]
    kept = {raw.filename for raw in result.documents}
    left = [document for document in info.documents if document.filename in kept]
    info = info.model_copy(update={"patches": [*info.patches, entry], "documents": left})
    extra = {}
    if info.draft is not None:
        counts = {"sure": len(changed.rows), "unsure": len(waiting)}
        info = info.model_copy(update={"draft": info.draft.model_copy(update=counts)})
        extra = {DRAFTS: drafts_text(waiting)}
    write_changed(bundle, info, changed, out, extra, force=force)
    return entry


def _make_raw_row(row: Row, gold: Sequence[Gold]) -> RawRow:
    return RawRow(
        id=row.id,
        question=row.question,
        answer=row.answer,
        quotes=tuple(Quote(context.filename, context.text) for context in row.contexts),
        filename=next((line.filename for line in gold if line.filename), None),
        is_impossible=row.is_impossible,
        labels=dict(gold[0].labels) if gold else {},
    )


def row_of(question: Question) -> Row:
    """Return a question as a row of train.json."""
    return Row(
        id=int(question.id),
        question=question.question,
        answer=question.answer,
        is_impossible=question.is_impossible,
        contexts=[Context(filename=str(c.filename), text=c.text) for c in question.contexts],
    )


def replace_gold(
    row: Row,
    lines: Sequence[Gold],
    passages: Sequence[MarkedPassage],
    answer: str,
    labels: dict[str, Label],
    bundle: BundleFolder,
) -> tuple[Row, list[Gold]]:
    """Return a row with corrected gold, and its lines of gold.jsonl; without passages, it becomes impossible."""
    if not passages:
        name = next((line.filename for line in lines if line.filename), None)
        impossible = {"answer": IMPOSSIBLE_ANSWER, "is_impossible": True, "contexts": []}
        return row.model_copy(update=impossible), [gold_of(row.id, None, name, NOWHERE, labels)]
    gold = []
    for at, passage in enumerate(passages):
        name = passage.filename
        if name not in bundle.files:
            raise BundleError(
                f"question {row.id}: the document {name} is not in {bundle.root}/{CORPUS}; is this the right bundle?"
            )
        place = find_marked_place(passage.text, passage.spans, read_within(bundle.files[name]))
        if place is None:
            raise BundleError(
                f"question {row.id}: {name} has other words at {passage.spans} than the correction; "
                "run the bundle's converter with --patch instead"
            )
        gold.append(gold_of(row.id, at, name, place, labels))
    contexts = [Context(filename=passage.filename, text=passage.text) for passage in passages]
    return row.model_copy(update={"answer": answer, "is_impossible": False, "contexts": contexts}), gold


def write_changed(
    bundle: BundleFolder, info: BundleInfo, changed: ChangedBundle, out: Path, extra: Mapping[str, str], *, force: bool
) -> None:
    """Write a copy of a bundle with changed rows and gold, and with extra text files."""
    check_out(out, force=force)
    left_out = {reason: list(names) for reason, names in info.left_out.items()}
    for reason, names in changed.left_out.items():
        left_out.setdefault(reason, []).extend(names)
    counts = counts_of(changed.rows, changed.gold, documents=len(info.documents), hows=info.counts.located)
    info = info.model_copy(update={"counts": counts, "left_out": left_out, "noted": {**info.noted, **changed.noted}})
    names = [document.filename for document in info.documents]
    with replace_folder(out, force=force) as folder:
        (folder / CORPUS).mkdir()
        for name in track(names, total=len(names), label="documents"):
            with fetch_file(bundle.files[name]) as here:
                shutil.copyfile(here, folder / CORPUS / name)
        if (bundle.root / ORIGINALS).is_dir():
            shutil.copytree(bundle.root / ORIGINALS, folder / ORIGINALS)
        write_train(changed.rows, folder / TRAIN)
        write_gold(changed.gold, folder / GOLD)
        for name, text in extra.items():
            (folder / name).write_text(text, encoding="utf-8")
        engine = open_engine("local", jobs=1, items=len(names))
        card = CardText(converter="table")  # a name that no converter has is the name of a table
        if info.name in list_plugins("exhibit.converters"):
            card = make_card_text(load_plugin("exhibit.converters", info.name)[0].INFO, info.name)
        write_card(info, folder, rows=changed.rows, gold=changed.gold, engine=engine, text=card)
        finish(info, folder)
