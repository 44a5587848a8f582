"""Validates a bundle's folder and reports every problem with its file, row and field."""

import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import CARD, CORPUS, DRAFTS, GOLD, INFO, ORIGIN, TRAIN
from exhibit.schemas.models import HOWS, BundleInfo, Context, Counts, DraftedRow, FileEntry, Gold, Row
from exhibit.schemas.parsing import list_faults, numbered_lines, read_text

_ROWS = TypeAdapter(list[Row])
Result = TypeVar("Result")
Line = TypeVar("Line", Gold, DraftedRow)
_SHOWN = 20  # most problems of one file that an error lists: they fit on one screen


def validate(root: Path, *, elsewhere: Mapping[str, FileEntry] | None = None) -> list[str]:
    """Return every problem of a bundle with its file, row and field; empty if it is valid."""
    if not root.is_dir():
        what = f"a file; name the bundle's folder, such as {root.parent}" if root.exists() else "no such folder"
        return [what]
    parts = (TRAIN, CORPUS, GOLD, DRAFTS, INFO)
    if not elsewhere and not any((root / name).exists() for name in parts) and any(root.iterdir()):
        return [advise_drafting(root)]
    problems: list[str] = []
    files, names = _list_files(root, elsewhere or {}, problems)
    rows = _check_train(root, names, problems)
    count = len(problems)
    gold = _read_lines(root / GOLD, Gold, problems)
    if len(problems) > count:
        gold = None
    if rows is not None and gold is not None:
        problems += (f"{GOLD}: {line}{fault}" for line, fault in _check_agreement(rows, gold))
    _check_drafts(root, names, {row.id for row in rows or ()}, problems)
    info = _read(root / INFO, lambda: BundleInfo.model_validate_json(read_text(root / INFO)), problems)
    if info is not None:
        problems += check_checksums(files, info)
        if rows is not None:
            problems += _check_counts(rows, gold, names, info)
    if CARD not in files:
        problems.append(f"{CARD}: missing; every bundle needs a dataset card")
    return problems


def advise_drafting(folder: Path) -> str:
    """Return the message for a folder of documents that was named where a bundle is needed."""
    command = f"exhibit draft {shlex.quote(str(folder))} --out {shlex.quote(f'datasets_out/{folder.resolve().name}')}"
    return f"documents without questions ({TRAIN}); draft questions first: {command}"


def _list_files(
    root: Path, elsewhere: Mapping[str, FileEntry], problems: list[str]
) -> tuple[dict[str, FileEntry], set[str]]:
    files = dict(elsewhere)
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root).as_posix()
        if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
            problems.append(f"{inside}: a link that leads out of the bundle")
        elif path.is_file():
            files[inside] = describe_file(path)
    first: dict[str, str] = {}
    for inside in sorted(name for name in files if name.startswith(f"{CORPUS}/")):
        if first.setdefault(Path(inside).name, inside) != inside:
            problems.append(f"{inside}: same basename as {first[Path(inside).name]}")
    if not first and not (root / CORPUS).is_dir():
        problems.append(f"{CORPUS}/: no such folder")
    return files, set(first)


def _read(path: Path, parse: Callable[[], Result], problems: list[str], row: str = "") -> Result | None:
    """Return the parsed content of a file or a row; if it is invalid, return None and add to `problems`."""
    try:
        return parse()
    except BundleError as error:
        problems.append(f"{path.name}: {str(error).removeprefix(f'{path}: ')}")
    except ValidationError as error:
        faults = ((path.name, row or where, field, message) for where, field, message in list_faults(error))
        problems += (": ".join(filter(None, fault)) for fault in faults)
    return None


def _read_lines(path: Path, model: type[Line], problems: list[str]) -> dict[int, Line] | None:
    lines = _read(path, lambda: list(numbered_lines(path)), problems)
    if lines is None:
        return None
    parsed = {n: _read(path, partial(model.model_validate_json, text), problems, f"line {n}") for n, text in lines}
    return {number: line for number, line in parsed.items() if line is not None}


def _check_train(root: Path, names: set[str], problems: list[str]) -> list[Row] | None:
    path = root / TRAIN
    rows = _read(path, lambda: _ROWS.validate_json(read_text(path)), problems)
    seen: dict[int, int] = {}
    for index, row in enumerate(rows or ()):
        if seen.setdefault(row.id, index) != index:
            problems.append(f"{TRAIN}: row {index}: id: {row.id} is also the id of row {seen[row.id]}")
        for position, context in enumerate(row.contexts):
            if context.filename not in names:
                where = f"{TRAIN}: row {index} (id {row.id}): contexts.{position}.filename"
                problems.append(f"{where}: no file {context.filename!r} under {CORPUS}/")
    return rows


def read_drafts(root: Path, names: Collection[str], taken: Collection[int]) -> list[DraftedRow]:
    """Return the drafted questions that a person has not yet reviewed; raise BundleError with every problem."""
    problems: list[str] = []
    drafts = _check_drafts(root, names, taken, problems)
    raise_problems(problems, f"{root}: the drafts have {len(problems)} problems")
    return drafts


def raise_problems(problems: Sequence[str], message: str) -> None:
    """Raise a BundleError that lists the first problems below the message, if there are any."""
    if problems:
        raise BundleError("\n".join([f"{message}:", *(f"  {problem}" for problem in problems[:_SHOWN])]))


def _check_drafts(root: Path, names: Collection[str], taken: Collection[int], problems: list[str]) -> list[DraftedRow]:
    drafts = _read_lines(root / DRAFTS, DraftedRow, problems) if os.path.lexists(root / DRAFTS) else None
    seen = set(taken)
    for number, draft in (drafts or {}).items():
        faults = [f"id: {draft.id} is also the id of another question"] if draft.id in seen else []
        files = {context.filename for context in draft.contexts} | {gold.filename or "" for gold in draft.gold}
        faults += [f"filename: no file {name!r} under {CORPUS}/" for name in sorted(files - {"", *names})]
        agreement = _check_agreement([draft], dict(enumerate(draft.gold)))
        faults += [f"gold: {fault}".replace(TRAIN, "the row") for _, fault in agreement]
        problems += [f"{DRAFTS}: line {number}: {fault}" for fault in faults]
        seen.add(draft.id)
    return list((drafts or {}).values())


def _check_agreement(rows: Sequence[Row], gold: Mapping[int, Gold]) -> Iterator[tuple[str, str]]:
    """Yield the differences between the lines of gold.jsonl and the contexts of train.json, compared in order."""
    expected: list[tuple[int, int | None, Context | None]] = []
    for row in rows:
        expected += [(row.id, index, context) for index, context in enumerate(row.contexts)]
        if not row.contexts:
            expected.append((row.id, None, None))
    for (identity, index, context), (number, line) in zip(expected, gold.items(), strict=False):
        where = f"line {number}: "
        if (line.id, line.context) != (identity, index):
            message = f"id: is row {line.id}, context {line.context}; expected row {identity}, context {index}"
            yield where, f"{message} (train.json's order)"
            return  # all later lines are shifted and would only repeat this problem
        if context is not None and line.filename != context.filename:
            yield where, f"filename: {line.filename!r}, but train.json says {context.filename!r}"
        if context is not None and line.how != "absent" and not context.text:
            yield where, "spans: has a location, but the context has no text"
        if context is None and line.spans:
            yield where, "spans: has a location, but the row has no context"
    if len(expected) != len(gold):
        yield "", f"{len(gold)} lines; train.json needs {len(expected)}"


def check_checksums(files: Mapping[str, FileEntry], info: BundleInfo) -> Iterator[str]:
    """Yield the differences between files and their entries in bundle.json."""
    for name, entry in info.files.items():
        if name not in files:
            yield f"{INFO}: files: {name}: recorded, but there is no such file"
        elif files[name] != entry:
            yield f"{INFO}: files: {name}: the content differs from the recorded size or sha256"
    for name in sorted(files):
        if name not in {INFO, ORIGIN} and name not in info.files and not name.startswith(".cache/"):
            yield f"{INFO}: files: {name}: in the bundle, but not recorded"


def _check_counts(
    rows: Sequence[Row], gold: Mapping[int, Gold] | None, names: Collection[str], info: BundleInfo
) -> Iterator[str]:
    counts = count_gold(rows, (gold or {}).values(), documents=len(names), hows=info.counts.located)
    recorded = _flatten_counts(info.counts)
    for name, number in _flatten_counts(counts).items():
        is_known = gold is not None or not name.startswith("located")
        if is_known and recorded.get(name, 0) != number:
            yield f"{INFO}: counts: {name}: {recorded.get(name, 0)}, but the bundle has {number}"
    listed = {document.filename for document in info.documents}
    for name in sorted(listed ^ set(names)):
        message = "listed, but not under corpus/" if name in listed else "under corpus/, but not listed"
        yield f"{INFO}: documents: {name}: {message}"


def _flatten_counts(counts: Counts) -> dict[str, int]:
    located = {f"located.{how}": number for how, number in counts.located.items()}
    return counts.model_dump(exclude={"located"}) | located


def count_gold(rows: Sequence[Row], gold: Iterable[Gold], *, documents: int, hows: Collection[str]) -> Counts:
    """Return the counts for bundle.json; each method of location in `hows` is listed, even if it located nothing."""
    impossible = sum(row.is_impossible for row in rows)
    # a context that only names a file has no quote that could be located
    quotes = {(row.id, index) for row in rows for index, context in enumerate(row.contexts) if context.text}
    located = Counter(line.how for line in gold if (line.id, line.context) in quotes)
    return Counts(
        documents=documents,
        questions=len(rows),
        answerable=len(rows) - impossible,
        impossible=impossible,
        contexts=sum(len(row.contexts) for row in rows),
        located={how: located[how] for how in HOWS if located[how] or how in hows},
    )


def describe_file(path: Path) -> FileEntry:
    return FileEntry(sha256=sha256_of(path), bytes=path.stat().st_size)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
