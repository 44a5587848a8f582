"""A bundle with a patch applied, where its raw source is not at hand: the same result as a converter's `--patch`."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from exhibit.converters._benchmark import DatasetInfo
from exhibit.converters._build import ORIGINALS
from exhibit.converters._patches import CORRECTED, UNFIT
from exhibit.engine import open_engine, track
from exhibit.evidence import Document, Span, fold
from exhibit.evidence.guard import read_within
from exhibit.hub.card import CardText, write_card
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, Question, write_gold, write_info, write_train
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import HOWS, BundleInfo, Context, Counts, FileEntry, Gold, PatchEntry, Row
from exhibit.schemas.plugins import load_plugin, plugin_names
from exhibit.schemas.review import Correction, MarkedPassage, Patch, gold_digest
from exhibit.schemas.validate import validate
from exhibit.storage.bundle import Bundle, open_bundle, sha256_of
from exhibit.storage.locations import fetched
from exhibit.storage.upload import check_out, opened_out

Labels = dict[str, str | int | float | bool | None]


@dataclass
class Changed:
    """A bundle's questions and gold, changed, and what a reader should know of it."""

    rows: list[Row] = field(default_factory=list)
    gold: list[Gold] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    noted: dict[str, list[str]] = field(default_factory=dict)
    corrected: int = 0


def write_changed(
    bundle: Bundle, info: BundleInfo, changed: Changed, out: Path, extra: Mapping[str, str], *, force: bool
) -> None:
    """Write a bundle with other rows and gold, and further files of text; it appears whole or not at all."""
    check_out(out, force=force)
    _write(bundle, _counted(info, changed, frozenset()), changed, out, force=force, extra=extra)


def apply_patch(patch: Patch, path: Path, root: Path, out: Path, *, force: bool = False) -> PatchEntry:
    """Write the bundle with the patch applied; it appears whole or not at all."""
    check_out(out, force=force)
    bundle = open_bundle(root)
    info = bundle.info
    if info is None:
        raise BundleError(f"{root}: no {INFO}; a patch is for a bundle that a converter made")
    if info.name != patch.dataset:
        raise BundleError(f"{path}: is for {patch.dataset}, and {root} is {info.name}")
    changed = _change(bundle, patch)
    aside = {document.filename for document in patch.documents} & bundle.files.keys()
    entry = PatchEntry(
        name=path.name,
        sha256=sha256_of(path),
        about=patch.about,
        documents=len(aside),
        questions=len(bundle.questions) - len(changed.rows),
        corrections=changed.corrected,
    )
    if not any((entry.documents, entry.questions, entry.corrections)):
        raise BundleError(f"{path}: nothing in it fits {root}; was it applied already?")
    _write(bundle, _described(info, changed, aside, patch, entry), changed, out, force=force)
    return entry


def _change(bundle: Bundle, patch: Patch) -> Changed:
    aside = {document.filename: document.reason for document in patch.documents}
    dropped = {question.id: question.reason for question in patch.questions}
    fixes = {fix.id: fix for fix in patch.corrections}
    lines: dict[int, list[Gold]] = {}
    for line in bundle.gold:
        lines.setdefault(line.id, []).append(line)
    changed = Changed()
    for question in bundle.questions:
        row = row_of(question)
        mine = lines.get(row.id, [])
        files = [line.filename for line in mine] + [context.filename for context in row.contexts]
        reason = dropped.get(row.id) or next((aside[name] for name in files if name in aside), None)
        if reason:
            changed.left_out.setdefault(f"set aside by a patch: {reason}", []).append(f"row {row.id}")
            continue
        if row.id in fixes:
            row, mine = _fixed(row, mine, fixes[row.id], bundle, changed)
        changed.rows.append(row)
        changed.gold += mine
    return changed


def row_of(question: Question) -> Row:
    """Return a question as train.json has it."""
    return Row(
        id=int(question.id),
        question=question.question,
        answer=question.answer,
        is_impossible=question.is_impossible,
        contexts=[Context(filename=str(c.filename), text=c.text) for c in question.contexts],
    )


def _fixed(
    row: Row, lines: Sequence[Gold], fix: Correction, bundle: Bundle, changed: Changed
) -> tuple[Row, list[Gold]]:
    if fix.was != gold_digest((context.filename, context.text) for context in row.contexts):
        changed.noted.setdefault(UNFIT, []).append(f"row {row.id}")
        return row, list(lines)
    changed.corrected += 1
    by = f"row {row.id}: by {', '.join(fix.reviewers)}" + (f": {fix.reason}" if fix.reason else "")
    changed.noted.setdefault(CORRECTED, []).append(by)
    answer = fix.answer or ("" if row.is_impossible else row.answer) or " […] ".join(c.text for c in fix.contexts)
    return mended(row, lines, fix.contexts, answer, dict(lines[0].labels) if lines else {}, bundle)


def mended(
    row: Row, lines: Sequence[Gold], passages: Sequence[MarkedPassage], answer: str, labels: Labels, bundle: Bundle
) -> tuple[Row, list[Gold]]:
    """Return a row with better gold, and its lines; without passages nothing in the documents answers."""
    if not passages:
        name = next((line.filename for line in lines if line.filename), None)
        nowhere = Gold(
            id=row.id, context=None, filename=name, pages=[], spans=[], alternatives=[], how="absent", labels=labels
        )
        return row.model_copy(update={"answer": IMPOSSIBLE_ANSWER, "is_impossible": True, "contexts": []}), [nowhere]
    gold = [_gold_line(row.id, at, context, labels, bundle) for at, context in enumerate(passages)]
    contexts = [Context(filename=context.filename, text=context.text) for context in passages]
    return row.model_copy(update={"answer": answer, "is_impossible": False, "contexts": contexts}), gold


def _gold_line(id: int, at: int, context: MarkedPassage, labels: Labels, bundle: Bundle) -> Gold:
    if context.filename not in bundle.files:
        raise BundleError(f"row {id}: {context.filename} is not in {bundle.root}/{CORPUS}")
    document = read_within(bundle.files[context.filename])
    words = " ".join(document.text[start:end] for start, end in context.spans)
    if not context.spans or fold(words, loose=True) != fold(context.text, loose=True):
        raise BundleError(
            f"row {id}: {context.filename} has other words at {context.spans}; run its converter with --patch"
        )
    return Gold(
        id=id,
        context=at,
        filename=context.filename,
        pages=_pages(document, context),
        spans=list(context.spans),
        alternatives=[],
        how="parts" if len(context.spans) > 1 else "exact" if words == context.text else "folded",
        labels=labels,
    )


def _pages(document: Document, context: MarkedPassage) -> list[int]:
    return sorted({number for span in context.spans for number in document.pages_of(Span(*span))})


# ---------------------------------------------------------------- writing


def _described(info: BundleInfo, changed: Changed, aside: set[str], patch: Patch, entry: PatchEntry) -> BundleInfo:
    left_out = {reason: list(names) for reason, names in info.left_out.items()}
    for document in patch.documents:
        if document.filename in aside:
            left_out.setdefault(f"set aside by a patch: {document.reason}", []).append(document.filename)
    told = info.model_copy(update={"left_out": left_out, "patches": [*info.patches, entry]})
    return _counted(told, changed, aside)


def _counted(info: BundleInfo, changed: Changed, aside: Set[str]) -> BundleInfo:
    """Return what bundle.json says of other rows and gold."""
    words = {row.id: row.contexts for row in changed.rows}
    located = Counter(
        line.how for line in changed.gold if line.context is not None and words[line.id][line.context].text
    )
    impossible = sum(row.is_impossible for row in changed.rows)
    documents = [document for document in info.documents if document.filename not in aside]
    left_out = {reason: list(names) for reason, names in info.left_out.items()}
    for reason, names in changed.left_out.items():
        left_out.setdefault(reason, []).extend(names)
    counts = Counts(
        documents=len(documents),
        questions=len(changed.rows),
        answerable=len(changed.rows) - impossible,
        impossible=impossible,
        contexts=sum(len(row.contexts) for row in changed.rows),
        located={how: located[how] for how in HOWS if located[how] or how in info.counts.located},
    )
    update = {"counts": counts, "left_out": left_out, "noted": {**info.noted, **changed.noted}, "documents": documents}
    return info.model_copy(update=update)


def _write(
    bundle: Bundle,
    info: BundleInfo,
    changed: Changed,
    out: Path,
    *,
    force: bool,
    extra: Mapping[str, str] | None = None,
) -> None:
    names = [document.filename for document in info.documents]
    with opened_out(out, force=force) as place:
        folder = place.folder
        (folder / CORPUS).mkdir()
        for name in track(names, total=len(names), label="documents"):
            with fetched(bundle.files[name]) as here:
                shutil.copyfile(here, folder / CORPUS / name)
        if (bundle.root / ORIGINALS).is_dir():
            shutil.copytree(bundle.root / ORIGINALS, folder / ORIGINALS)
        write_train(changed.rows, folder / TRAIN)
        write_gold(changed.gold, folder / GOLD)
        for name, text in (extra or {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        engine = open_engine("local", jobs=1, items=len(names))
        write_card(info, folder, rows=changed.rows, gold=changed.gold, engine=engine, text=_card_text(info), out=place)
        paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        ordered = sorted(paths.items(), key=lambda item: PurePosixPath(item[0]))
        files = {name: FileEntry(sha256=sha256_of(path), bytes=path.stat().st_size) for name, path in ordered}
        write_info(info.model_copy(update={"files": files}), folder / INFO)
        problems = validate(folder)
        if problems:
            listing = "\n".join(f"  {problem}" for problem in problems[:20])
            raise BundleError(
                f"the corrected bundle breaks {len(problems)} promises; please report this bug:\n{listing}"
            )


def _card_text(info: BundleInfo) -> CardText:
    """Return what the converter says that no file of the bundle does; a table's bundle is called as its user likes."""
    if info.name not in plugin_names("exhibit.converters"):
        return CardText(converter="table")
    told: DatasetInfo = load_plugin("exhibit.converters", info.name)[0].INFO
    return CardText(
        tags=told.tags,
        questions=told.questions,
        limits=told.limits,
        annotations=told.annotations,
        converter=info.name,
        derived=told.derived,
    )
