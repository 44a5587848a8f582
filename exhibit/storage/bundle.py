"""Opens bundles: from a folder, or from a URL with the small files copied to the cache."""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.runtime.command import Parser, add_json, guarded, print_error, print_note, print_results
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, ORIGIN, TRAIN, Question, read_gold, read_info, read_questions
from exhibit.schemas.errors import BundleError, DocumentError, ToolkitError
from exhibit.schemas.models import BundleInfo, FileEntry, Gold
from exhibit.schemas.run import CONFIG, SUMMARY
from exhibit.schemas.run_folder import RunFolder
from exhibit.schemas.validate import sha256_of as digest_of
from exhibit.schemas.validate import validate
from exhibit.storage import locations
from exhibit.storage.atomic import list_files, remove_below
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location, Remote, fetch, fetch_file, origin_of, parse_location


@dataclass(frozen=True)
class BundleFolder:
    root: Path
    questions: tuple[Question, ...]
    files: dict[str, Location]
    gold: tuple[Gold, ...] = ()
    info: BundleInfo | None = None
    labels: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The bundle's path or, for the cached copy of a remote bundle, its URL."""
        return str(origin_of(self.root) or self.root)


def open_bundle(root: Path) -> BundleFolder:
    if not root.is_dir():
        what = f"a file; name the bundle's folder, such as {root.parent}" if root.exists() else "no such folder"
        raise BundleError(f"{root}: {what}")
    problems: list[str] = []

    def read_part(read: Callable[[], Any], default: Any) -> Any:
        try:
            return read()
        except BundleError as error:
            problems.append(str(error))
            return default

    questions = read_part(lambda: read_questions(root / TRAIN), ())
    files = read_part(lambda: list_corpus_files(root), {})
    gold: tuple[Gold, ...] = read_part(lambda: tuple(read_gold(root / GOLD)), ()) if (root / GOLD).is_file() else ()
    info = read_part(lambda: read_info(root / INFO), None) if (root / INFO).is_file() else None
    if problems:
        raise BundleError("\n".join(problems))
    labels = {line.id: dict(line.labels) for line in reversed(gold)}
    return BundleFolder(root, questions, files, gold, info, labels)


def describe_missing_parts(bundle: BundleFolder) -> list[str]:
    contexts = [context for question in bundle.questions for context in question.contexts]
    lacks = {
        "no bundle.json: the bundle's files cannot be checked against their recorded checksums": bundle.info is None,
        "no gold.jsonl: the evaluation searches for the gold passages, and there are no labels": not bundle.gold,
        "no question names a passage or a document: only the answers are scored": not contexts,
        "no context has a text: only documents and answers are scored": contexts
        and not any(context.text for context in contexts),
    }
    return [words for words, lacking in lacks.items() if lacking]


def list_corpus_files(root: Path) -> dict[str, Location]:
    origin = origin_of(root)
    corpus = root / CORPUS if origin is None else origin / CORPUS
    if origin is None and not corpus.is_dir():  # type: ignore[union-attr]
        raise BundleError(f"{corpus}: no such folder; put the documents of the bundle into it")
    files: dict[str, Location] = {}
    twice = []
    for path in list_files(root / CORPUS) if origin is None else _list_remote_files(root, origin):
        other = files.setdefault(path.name, path)
        if other is not path:
            twice.append(
                f"{corpus}: two files have the same name {path.name!r}: {other} and {path}; rename one of them"
            )
    if twice:
        raise BundleError("\n".join(twice))
    return files


def _list_remote_files(root: Path, origin: Remote) -> Iterator[Location]:
    for name, entry in sorted(read_info(root / INFO).files.items()):
        if name.startswith(f"{CORPUS}/"):
            yield Remote((origin / name).url, entry.sha256, entry.bytes)


def sha256_of(path: Location) -> str:
    if isinstance(path, Remote) and path.sha256 is not None:
        return path.sha256
    with fetch_file(path) as local_path:
        return digest_of(local_path)


def mirror_bundle(root: Location) -> Path:
    if isinstance(root, Path):
        return root
    cache = find_cache_folder() / "bundles"
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=cache) as scratch:
        partial = Path(scratch) / "bundle"
        partial.mkdir()
        try:
            digest = fetch(root / INFO, partial / INFO)
        except DocumentError as error:
            raise BundleError(
                f"{root}: no {INFO} in it; name a bundle, or finish its upload: {INFO} is uploaded last"
            ) from error
        identity = hashlib.sha256(f"{root}\n{digest}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        folder = cache / (re.sub(r"[^\w.-]", "_", root.name) + f"-{identity}")
        info = read_info(partial / INFO)
        if not _is_complete(folder, info):
            _fetch_rest(root, partial, info)
            remove_below(cache, folder.name)  # an incomplete or damaged copy
            try:
                partial.rename(folder)
            except OSError:
                if not (folder / ORIGIN).is_file():  # otherwise another run has already written the same folder
                    raise
        return folder


def _fetch_rest(root: Remote, folder: Path, info: BundleInfo) -> None:
    for name in (TRAIN, GOLD):
        entry = info.files.get(name)
        if entry is None:
            raise BundleError(f"{root}: the list of files in {INFO} lacks {name}; write the bundle again")
        try:
            fetch(Remote((root / name).url, entry.sha256, entry.bytes), folder / name)
        except DocumentError as error:
            raise BundleError(str(error)) from error
    (folder / ORIGIN).write_text(json.dumps({"url": root.url.rstrip("/")}), encoding="utf-8")


def _is_complete(folder: Path, info: BundleInfo) -> bool:
    return (folder / ORIGIN).is_file() and all(
        (folder / name).is_file() and name in info.files and digest_of(folder / name) == info.files[name].sha256
        for name in (TRAIN, GOLD)
    )


def validate_at(root: Location) -> list[str]:
    if isinstance(root, Path):
        return validate(root)
    elsewhere = {
        name: FileEntry(sha256=sha256_of(root / name), bytes=size)
        for name, size in locations.list_files(root).items()
        if name not in {TRAIN, GOLD, INFO}  # the local mirror has these files
    }
    return validate(mirror_bundle(root), elsewhere=elsewhere)


def _list_run_faults(run: RunFolder) -> list[str]:
    """Return the first fault of a run: an invalid file or row, or a metric of the rows that their summary lacks."""
    try:
        for row in run.rows:
            stored = run.read_file(SUMMARY, row.dataset)
            for name in row.scores if stored else ():
                if name not in stored:
                    return [f"{row.dataset}/{SUMMARY}: {name}: is in the rows, but not in the summary"]
    except BundleError as error:
        return [str(error).removeprefix(f"{run.folder}/")]
    return []


def _list_faults(root: Location, *, minimal: bool) -> list[str]:
    if isinstance(root, Path) and (root / CONFIG).is_file() and not (root / INFO).is_file():
        return _list_run_faults(RunFolder(root))
    if not minimal:
        return validate_at(root)
    try:
        bundle = open_bundle(mirror_bundle(root))
    except BundleError as error:
        return str(error).splitlines()
    for lack in describe_missing_parts(bundle):
        print_note(f"{root}: {lack}")
    return []


class CheckedBundle(NamedTuple):
    faults: Sequence[str]
    summary: str
    record: dict[str, Any]


def check_each(bundles: Sequence[Location], check: Callable[[Location], CheckedBundle], *, as_json: bool) -> int:
    failed, records = False, []
    for root in bundles:
        if len(bundles) > 1 and isinstance(root, Path) and (root.is_file() or root.name.endswith(".partial")):
            print_note(f"{root}: is not a bundle's folder; skipped")  # `datasets_out/*` also matches such folders
            continue
        try:
            faults, summary, record = check(root)
        except ToolkitError as error:
            print_error(error)
            failed = True
            continue
        failed |= bool(faults)
        records.append({"bundle": str(root), **record})
        if not as_json:
            print_results(None, "\n".join(f"{root}: {line}" for line in (*faults, summary)), as_json=False)
    if as_json:
        print_results(records, "", as_json=True)
    return 1 if failed else 0


@guarded()
def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="exhibit validate",
        description="Checks bundles and runs against their schemas, and prints every problem.",
        epilog="example: exhibit validate datasets_out/*",
    )
    parser.add_argument(
        "bundles",
        nargs="+",
        type=parse_location,
        metavar="DIR",
        help="the folder or URL of a bundle, or a run's folder",
    )
    parser.add_argument(
        "--minimal",
        action="store_true",
        help="check only the files that an evaluation needs: corpus/ and a train.json in any accepted format",
    )
    add_json(parser)
    options = parser.parse_args(argv)

    def validate_one(root: Location) -> CheckedBundle:
        faults = _list_faults(root, minimal=options.minimal)
        outcome = f"{len(faults)} problem{'s' * (len(faults) > 1)}" if faults else "sound"
        return CheckedBundle(faults, outcome, {"sound": not faults, "problems": faults})

    return check_each(options.bundles, validate_one, as_json=options.json)
