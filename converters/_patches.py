"""Reviewers' corrections applied to a benchmark as it was read: the same for every converter, each one counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from exhibit.converters._benchmark import Benchmark, DatasetInfo, Item, Quote, RawRow, Tally
from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import PatchEntry
from exhibit.schemas.review import Correction, Patch, gold_digest, read_patch
from exhibit.schemas.validate import sha256_of

SHIPPED = "shipped"
"""The word for the patch that comes with a converter."""
_KNOWN = Path(__file__).parent / "_known"
CORRECTED = "gold corrected by review"
UNFIT = "correction not applied: the gold is not what was reviewed"
ELSEWHERE = "in a patch, and not in the source as it was read"


def patched(benchmark: Benchmark, info: DatasetInfo, names: Sequence[str], tally: Tally) -> Benchmark:
    """Return the benchmark with patches applied in their order."""
    for name in names:
        path = _path(name, info)
        patch = read_patch(path)
        wanted = (benchmark.info or info).name
        if patch.dataset != wanted:
            raise SourceError(f"{path}: is for {patch.dataset}, and this is {wanted}")
        benchmark = _apply(benchmark, patch, path, tally)
    return benchmark


def _path(name: str, info: DatasetInfo) -> Path:
    if name != SHIPPED or Path(name).exists():
        return Path(name)
    path = _KNOWN / f"{info.name}.json"
    if not path.is_file():
        raise SourceError(f"--patch {SHIPPED}: nothing is known to be wrong with {info.name}'s source; give a file")
    return path


def _apply(benchmark: Benchmark, patch: Patch, path: Path, tally: Tally) -> Benchmark:
    aside = {document.filename: document.reason for document in patch.documents}
    dropped = {question.id: question.reason for question in patch.questions}
    fixes = {fix.id: fix for fix in patch.corrections}
    _note_strangers(benchmark, aside, [*dropped, *fixes], path, tally)
    documents = []
    for raw in benchmark.documents:
        if raw.filename in aside:
            _leave_out(f"set aside by a patch: {aside[raw.filename]}", raw.filename, raw.items, tally)
        else:
            documents.append(raw)
    rows: list[RawRow] = []
    applied = 0
    for row in benchmark.rows:
        reason = dropped.get(row.id) or next((aside[name] for name in _files(row) if name in aside), None)
        if reason:
            _leave_out(f"set aside by a patch: {reason}", row.place or f"row {row.id}", row.items, tally)
            continue
        fixed = _fixed(row, fixes.get(row.id), tally)
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


def _fixed(row: RawRow, fix: Correction | None, tally: Tally) -> RawRow:
    """Return the row with the gold that reviewers gave it; as it is where they saw another one."""
    if fix is None:
        return row
    name = row.place or f"row {row.id}"
    if fix.was != gold_digest((quote.filename, quote.text) for quote in row.quotes):
        if tally.strict:
            raise SourceError(f"{name}: {UNFIT} (--strict)")
        tally.note(UNFIT, name)
        return row
    tally.note(CORRECTED, f"{name}: by {', '.join(fix.reviewers)}" + (f": {fix.reason}" if fix.reason else ""))
    quotes = tuple(Quote(c.filename, c.text, marked=tuple((s, e) for s, e in c.spans)) for c in fix.contexts)
    return replace(
        row,
        quotes=quotes,
        is_impossible=fix.is_impossible,
        answer=fix.answer or ("" if row.is_impossible else row.answer) or " […] ".join(c.text for c in fix.contexts),
        filename=quotes[0].filename if quotes else row.filename or next(iter(_files(row)), None),
    )


def _files(row: RawRow) -> list[str]:
    return [name for name in (row.filename, *(quote.filename for quote in row.quotes)) if name]


def _leave_out(reason: str, name: str, items: Sequence[Item], tally: Tally) -> None:
    for item in items:
        tally.leave_out(reason, item.name, item=item)
    if not items:
        tally.leave_out(reason, name)


def _note_strangers(
    benchmark: Benchmark, aside: dict[str, str], questions: Sequence[int], path: Path, tally: Tally
) -> None:
    """Note what a patch names and the source does not have: it was left out before, or the patch is another's."""
    known = {raw.filename for raw in benchmark.documents}
    ids = {row.id for row in benchmark.rows}
    for name in [*(name for name in aside if name not in known), *(f"row {id}" for id in questions if id not in ids)]:
        tally.note(ELSEWHERE, f"{path.name}: {name}")
