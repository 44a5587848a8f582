"""Gold against its corpus: a question whose document is not the one its gold was located in is failed, not scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from exhibit.evaluation.cases import Case
from exhibit.evaluation.documents import Documents
from exhibit.schemas.bundle import CORPUS
from exhibit.storage.bundle import Bundle, sha256_of
from exhibit.storage.locations import Location

_LISTED = 3  # file names in one message


@dataclass(frozen=True)
class Soundness:
    """What is wrong between a bundle's gold and its corpus."""

    changed: tuple[str, ...] = ()
    """Files that are not those of bundle.json."""
    refused: Mapping[int | str, str] = field(default_factory=dict)
    """By the id of a question: why it is failed."""
    warnings: tuple[str, ...] = ()


def check_corpus(
    bundle: Bundle, files: Mapping[str, Location], cases: Sequence[Case], documents: Documents, *, allow_changed: bool
) -> Soundness:
    """Compare the files with their checksums, and the gold's spans with the lengths of the documents."""
    changed = tuple(sorted(_changed(bundle, files)))
    refused: dict[int | str, str] = {}
    lengths = _Lengths(bundle, documents, changed)
    for case in cases:
        reason = _reason(case, () if allow_changed else changed, lengths)
        if reason:
            refused[case.id] = reason
    return Soundness(changed, refused, tuple(_warnings(bundle, changed, refused, allow_changed)))


def _changed(bundle: Bundle, files: Mapping[str, Location]) -> Iterator[str]:
    if bundle.info is None:
        return
    recorded = {
        PurePosixPath(name).name: entry.sha256
        for name, entry in bundle.info.files.items()
        if name.startswith(f"{CORPUS}/")
    }
    for name, path in files.items():
        # a remote file is checked against its checksum whenever it is fetched
        if isinstance(path, Path) and name in recorded and sha256_of(path) != recorded[name]:
            yield name


class _Lengths:
    """How many characters each document has: as recorded, or as it is read where nothing is."""

    def __init__(self, bundle: Bundle, documents: Documents, changed: Sequence[str]) -> None:
        entries = bundle.info.documents if bundle.info else []
        self._known = {entry.filename: entry.characters for entry in entries if entry.filename not in changed}
        self._documents = documents

    def of(self, filename: str) -> int | None:
        if filename not in self._known:
            document = self._documents.get(filename)
            if document is None:
                return None
            self._known[filename] = len(document.text)
        return self._known[filename]


def _reason(case: Case, changed: Sequence[str], lengths: _Lengths) -> str:
    names = {gold.filename for gold in case.gold} | {case.filename}
    for name in changed:
        if name in names:
            return f"{name}: not the file that bundle.json records (sha256 differs), so its gold may be anywhere"
    for gold in case.gold:
        ends = [span.end for place in gold.places for span in place]
        length = lengths.of(gold.filename) if ends and gold.filename else None
        if length is not None and max(ends) > length:
            return f"{gold.filename}: gold up to character {max(ends)} of a document of {length}; convert it again"
    return ""


def _warnings(
    bundle: Bundle, changed: Sequence[str], refused: Mapping[int | str, str], allow_changed: bool
) -> Iterator[str]:
    if changed:
        listed = ", ".join(changed[:_LISTED]) + (" …" if len(changed) > _LISTED else "")
        what = "scored all the same" if allow_changed else "failed"
        yield (
            f"{bundle.address}: {len(changed)} files are not those of bundle.json ({listed}); "
            f"their questions are {what} (--allow-changed-corpus)"
        )
    beyond = sum("gold up to character" in reason for reason in refused.values())
    if beyond:
        yield f"{bundle.address}: {beyond} questions have gold beyond the end of its document; they are failed"
    known = {question.id for question in bundle.questions}
    stray = sum(line.id not in known for line in bundle.gold)
    if stray:
        yield f"{bundle.address}: {stray} lines of gold.jsonl have an id that train.json does not have; left out"
