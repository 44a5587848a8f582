"""Applies reviewers' corrections of the gold to a bundle, and writes bundles with changed questions."""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from exhibit.converters import DatasetInfo, Label, Quote, Tally
from exhibit.converters.core.build import Asked, make_card_text, write_bundle
from exhibit.converters.core.documents import NOWHERE, Finder
from exhibit.engine import open_engine, track
from exhibit.evidence.read import read_within
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.bundle import CORPUS, INFO
from exhibit.schemas.errors import BundleError, SourceError
from exhibit.schemas.models import BundleInfo, CardText, Context, Gold, PatchEntry, Row
from exhibit.schemas.review import MarkedPassage, Patch, digest_gold, read_patch
from exhibit.schemas.validate import read_drafts
from exhibit.storage.atomic import replace_folder
from exhibit.storage.bundle import BundleFolder, open_bundle, sha256_of
from exhibit.storage.locations import check_out, fetch_file

SHIPPED = "shipped"  # the flag's value for the patch or the list of addresses that is shipped with a converter
_KNOWN = Path(__file__).parents[1] / "_known"
CORRECTED = "gold corrected by review"
UNFIT = "correction not applied: the gold has changed since the review"
ELSEWHERE = "question or document of a patch that the bundle does not have"


def find_patch(name: str, info: DatasetInfo) -> Path:
    if name != SHIPPED or Path(name).exists():
        return Path(name)
    path = _KNOWN / f"{info.name}.json"
    if not path.is_file():
        raise SourceError(f"--patch {SHIPPED}: no patch is shipped for {info.name}; give a file, or leave --patch out")
    return path


def read_asked(bundle: BundleFolder) -> tuple[list[Asked], list[Asked]]:
    """Return the questions and the unreviewed drafts of a bundle, each with its gold."""
    lines: dict[int, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    rows = [Row.model_validate(question, from_attributes=True, strict=False) for question in bundle.questions]
    drafts = read_drafts(bundle.root, bundle.files, [row.id for row in rows])
    return [(row, lines[row.id]) for row in rows], [(draft.row, draft.gold) for draft in drafts]


def apply_patches(
    paths: Sequence[Path], root: Path, out: Path, *, force: bool = False, strict: bool = False,
    must_fit: bool = False, text: CardText | None = None,
) -> BundleInfo:  # fmt: skip
    """Write a bundle with patches applied in order; with `must_fit`, a patch that changes nothing raises an error."""
    bundle = open_bundle(root)
    info = bundle.info
    if info is None:
        raise BundleError(f"{root}: no {INFO}; patches apply only to bundles that a converter made")
    questions, drafts = read_asked(bundle)
    tally = Tally(strict=strict)
    for path in paths:
        patch = read_patch(path)
        if patch.dataset != info.name:
            raise SourceError(f"{path}: is a patch for {patch.dataset}, not for {info.name}; give another patch")
        aside = {document.filename: document.reason for document in patch.documents}
        documents = [document for document in info.documents if document.filename not in aside]
        known = {document.filename for document in info.documents}
        for name, reason in aside.items():
            if name in known:
                tally.leave_out(f"set aside by a patch: {reason}", name)
            else:
                tally.note(ELSEWHERE, f"{path.name}: {name}")
        named = {question.id for question in patch.questions} | {fix.id for fix in patch.corrections}
        for id in sorted(named - {row.id for row, _ in (*questions, *drafts)}):
            tally.note(ELSEWHERE, f"{path.name}: question {id}")
        before, noted = len(questions) + len(drafts), len(tally.noted.get(CORRECTED, ()))
        questions, drafts = (_correct(pairs, patch, aside, bundle, tally) for pairs in (questions, drafts))
        entry = PatchEntry(
            name=path.name,
            sha256=sha256_of(path),
            about=patch.about,
            documents=len(info.documents) - len(documents),
            questions=before - len(questions) - len(drafts),
            corrections=len(tally.noted.get(CORRECTED, ())) - noted,
        )
        if must_fit and not any((entry.documents, entry.questions, entry.corrections)):
            raise BundleError(f"{path}: none of its corrections matches {root}; was the patch applied already?")
        info = info.model_copy(update={"documents": documents, "patches": [*info.patches, entry]})
    return write_changed(bundle, info, questions, drafts, tally, out, force=force, text=text)


def _correct(
    pairs: Sequence[Asked], patch: Patch, aside: dict[str, str], bundle: BundleFolder, tally: Tally
) -> list[Asked]:
    """Return the questions that a patch keeps, with corrected gold; `aside` has the reason for each excluded file."""
    dropped = {question.id: question.reason for question in patch.questions}
    fixes = {fix.id: fix for fix in patch.corrections}
    kept: list[Asked] = []
    for row, gold in pairs:
        name, fix = f"question {row.id}", fixes.get(row.id)
        reason = dropped.get(row.id) or next((aside[f] for line in gold if (f := line.filename) in aside), None)
        if reason:
            tally.leave_out(f"set aside by a patch: {reason}", name)
            continue
        if fix is not None and fix.was == digest_gold((context.filename, context.text) for context in row.contexts):
            reviewers = ", ".join(fix.reviewers)
            tally.note(CORRECTED, f"{name}: by {reviewers}" + (f": {fix.reason}" if fix.reason else ""))
            answer = fix.answer or ("" if row.is_impossible else row.answer)
            answer = answer or " […] ".join(passage.text for passage in fix.contexts)
            row, gold = replace_gold(row, gold, fix.contexts, answer, dict(gold[0].labels) if gold else {}, bundle)
        elif fix is not None:
            tally.note(UNFIT, name, fault=True)
        kept.append((row, gold))
    return kept


def replace_gold(
    row: Row, lines: Sequence[Gold], passages: Sequence[MarkedPassage], answer: str, labels: dict[str, Label],
    bundle: BundleFolder,
) -> Asked:  # fmt: skip
    """Return a row with corrected gold, and its lines of gold.jsonl; without passages, the row becomes impossible."""
    if not passages:
        name = next((line.filename for line in lines if line.filename), None)
        impossible = {"answer": IMPOSSIBLE_ANSWER, "is_impossible": True, "contexts": []}
        return row.model_copy(update=impossible), [NOWHERE.make_gold(row.id, None, name, labels)]
    gold = []
    for at, passage in enumerate(passages):
        name = passage.filename
        if name not in bundle.files:
            missing = f"the document {name} is not in {bundle.root}/{CORPUS}; is this the right bundle?"
            raise BundleError(f"question {row.id}: {missing}")
        marked = Quote(name, passage.text, marked=tuple(passage.spans))
        # a document that was read or printed again may have the words at different offsets
        place = Finder("", read_within(bundle.files[name])).place(marked)
        gold.append(place.make_gold(row.id, at, name, labels))
    contexts = [Context(filename=passage.filename, text=passage.text) for passage in passages]
    return row.model_copy(update={"answer": answer, "is_impossible": False, "contexts": contexts}), gold


def write_changed(
    bundle: BundleFolder, info: BundleInfo, questions: Sequence[Asked], drafts: Sequence[Asked], tally: Tally,
    out: Path, *, force: bool, text: CardText | None = None,
) -> BundleInfo:  # fmt: skip
    """Write a copy of a bundle with other questions and, if it is a drafted bundle, with the drafts in `waiting`."""
    check_out(out, force=force)
    old, new = info.left_out, tally.left_out
    left_out = {reason: [*old.get(reason, ()), *new.get(reason, ())] for reason in {**old, **new}}
    info = info.model_copy(update={"left_out": left_out, "noted": {**info.noted, **tally.noted}})
    documents = [document.filename for document in info.documents]
    if text is None:
        text = CardText(converter="table")  # if no converter has this name, it is the name of a table
        if info.name in list_plugins("exhibit.converters"):
            text = make_card_text(load_plugin("exhibit.converters", info.name)[0].INFO, info.name)
    with replace_folder(out, force=force) as folder:
        (folder / CORPUS).mkdir()
        for name in track(documents, total=len(documents), label="documents"):
            with fetch_file(bundle.files[name]) as local_path:
                shutil.copyfile(local_path, folder / CORPUS / name)
        engine = open_engine("local", jobs=1, items=len(documents))
        return write_bundle(info, questions, drafts, folder, engine=engine, text=text)
