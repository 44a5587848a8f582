"""Compare a bundle's files with bundle.json, and find the questions that cannot be scored on these files."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from exhibit.evaluation.documents import Documents
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.storage.bundle import BundleFolder, sha256_of
from exhibit.storage.locations import Location

_LISTED = 3  # file names in one message
_ALLOW = "--set allow_changed_corpus=true"
_CHANGED = f"not the file that {INFO} records (sha256 differs), so its gold may be anywhere"


@dataclass(frozen=True)
class CorpusFiles:
    """The documents that an evaluation uses, and the differences between the files and bundle.json."""

    used: Mapping[str, Location]
    digests: Mapping[str, str]
    """The sha256 of each document in use, and of train.json, gold.jsonl and bundle.json."""
    changed: tuple[str, ...] = ()
    """Files whose content differs from the record in bundle.json."""
    stray: tuple[str, ...] = ()
    """Files that bundle.json does not list."""
    closed: tuple[str, ...] = ()
    """Files that this user has no permission to open."""


def find_changed_tables(bundle: BundleFolder) -> list[str]:
    """Return an error message for each of `train.json` and `gold.jsonl` that was changed.

    A file is changed if its sha256 differs from the one in bundle.json.
    """
    recorded = bundle.info.files if bundle.info else {}
    return [
        f"{bundle.address}/{name}: not the file that {INFO} records (sha256 differs): convert the bundle again, or "
        f"score it as it is with {_ALLOW}"
        for name in (TRAIN, GOLD)
        if name in recorded and _compute_digest(bundle.root / name) != recorded[name].sha256
    ]


def check_files(bundle: BundleFolder, files: Mapping[str, Location], *, allow_changed: bool) -> CorpusFiles:
    """Compare the files with their checksums in bundle.json, and return the files to use.

    Files that bundle.json does not list are used only with `allow_changed`.
    """
    recorded = _read_recorded(bundle)
    digests = {name: _compute_digest(path) for name, path in sorted(files.items())}
    stray = tuple(name for name in digests if recorded and name not in recorded)
    closed = tuple(name for name in digests if not digests[name])
    changed = tuple(name for name in digests if digests[name] not in ("", recorded.get(name, digests[name])))
    taken = {name: path for name, path in files.items() if name not in closed}
    used = {name: path for name, path in taken.items() if allow_changed or name not in stray}
    own = {name: sha256_of(bundle.root / name) for name in (INFO, TRAIN, GOLD) if (bundle.root / name).is_file()}
    return CorpusFiles(used, own | {f"{CORPUS}/{name}": digests[name] for name in sorted(used)}, changed, stray, closed)


def _compute_digest(path: Location) -> str:
    """Return the sha256 of a file; empty where the file cannot be opened."""
    try:
        return sha256_of(path)
    except OSError:
        return ""


def _read_recorded(bundle: BundleFolder) -> dict[str, str]:
    """Return the sha256 of each document that bundle.json lists; empty without a bundle.json."""
    entries = bundle.info.files.items() if bundle.info else ()
    return {PurePosixPath(name).name: entry.sha256 for name, entry in entries if name.startswith(f"{CORPUS}/")}


# ---------------------------------------------------------------- questions that cannot be scored


def check_questions(
    bundle: BundleFolder,
    files: CorpusFiles,
    ends: Mapping[int | str, Mapping[str, int]],
    documents: Documents,
    *,
    allow_changed: bool,
    needs_documents: bool,
) -> tuple[dict[int | str, str], tuple[str, ...]]:
    """Return the questions that cannot be scored, as a mapping from id to reason, and the warnings.

    The reason is a changed or missing document, or gold beyond the end of its document. `ends` maps each
    question to its documents, and each document to the end offset of its last gold passage.
    """
    entries = bundle.info.documents if bundle.info else []
    lengths = {entry.filename: entry.characters for entry in entries if entry.filename not in files.changed}
    here = files.used if needs_documents else bundle.files
    refused: dict[int | str, str] = {}
    lost: dict[str, dict[str, set[int | str]]] = {}

    def measure_length(name: str) -> int | None:
        if name not in lengths and (document := documents.get(name)):
            lengths[name] = len(document.text)
        return lengths.get(name)

    for id, last in ends.items():
        for name in sorted(last):
            if reason := _explain_unusable(name, bundle, files, here, allow_changed):
                why = reason if reason == _CHANGED else f"{reason}, so no system can find it there"
                refused.setdefault(id, f"{name}: {why}")
                lost.setdefault(reason, {}).setdefault(name, set()).add(id)
        for name, end in last.items():
            if id not in refused and end and (long := measure_length(name)) is not None and end > long:
                refused[id] = (
                    f"{name}: the gold ends at character {end}, but the document has {long}; convert the bundle again"
                )
    return refused, tuple(_make_warnings(bundle, files, len(ends), refused, lost, allow_changed))


def _explain_unusable(
    name: str, bundle: BundleFolder, files: CorpusFiles, here: Collection[str], allow_changed: bool
) -> str:
    """Return the reason why no question about a document can be scored; empty if there is no such reason.

    `here` has the names of the documents that are available.
    """
    if name in files.changed and not allow_changed:
        return _CHANGED
    if name in here or not bundle.files:
        return ""
    if name in files.closed:
        return "not readable by this user"
    by_type = name in bundle.files and name not in files.stray
    return "left out by their type (--file-type)" if by_type else "not in corpus/"


def _make_warnings(
    bundle: BundleFolder,
    files: CorpusFiles,
    cases: int,
    refused: Mapping[int | str, str],
    lost: Mapping[str, Mapping[str, set[int | str]]],
    allow_changed: bool,
) -> Iterator[str]:
    if files.changed:
        what = "scored nevertheless" if allow_changed else "failed"
        yield (
            f"{bundle.address}: {len(files.changed)} files differ from {INFO} ({_list_names(files.changed)}); their "
            f"questions are {what} ({_ALLOW})"
        )
    if files.stray:
        what = "used nevertheless" if allow_changed else "left out"
        listed = f"{len(files.stray)} files that {INFO} lacks ({_list_names(files.stray)})"
        yield f"{bundle.address}: {listed} are {what} ({_ALLOW})"
    for why, names in sorted(lost.items()):
        if why != _CHANGED:
            count = len(set().union(*names.values()))
            yield (
                f"{bundle.address}: the gold of {count} of {cases} questions is in {len(names)} files that are "
                f"{why}: {_list_names(sorted(names))}; they are failed"
            )
    beyond = sum("the gold ends at character" in reason for reason in refused.values())
    if beyond:
        yield f"{bundle.address}: {beyond} questions have gold beyond the end of their document; they are failed"
    known = {question.id for question in bundle.questions}
    stray = sum(line.id not in known for line in bundle.gold)
    if stray:
        yield f"{bundle.address}: {stray} lines of {GOLD} have an id that {TRAIN} does not have; they are left out"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (" …" if len(names) > _LISTED else "")
