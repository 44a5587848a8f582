"""The bundles, runs and reviews of the served folders; nothing outside them can be addressed."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from exhibit.evaluation.journal import JOURNAL
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.placement import Documents
from exhibit.evaluation.runs import RunResults
from exhibit.evidence import Document
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, read_info
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.review import REVIEW, AddedQuestion, Review, Sample, read_review
from exhibit.schemas.run import CONFIG, SUMMARY
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import lock_folder, write_whole
from exhibit.storage.bundle import BundleFolder, list_corpus_files, open_bundle

_MAX_DEPTH = 3  # levels below a served folder in which bundles and runs are searched
MAX_NAME_CHARS = 80  # most characters of a reviewer's name
_MAX_FOLDERS = 2000  # most folders that are listed: nobody would read more

Result = TypeVar("Result")


def remember(size: int, work: Callable[[Path], Result]) -> Callable[[Path], Result]:
    """Return `work` with a cache of its results for `size` folders; if a folder changes, `work` is called again."""

    @lru_cache(maxsize=size)
    def compute(folder: Path, _: tuple[float, ...]) -> Result:
        return work(folder)

    def look_up(folder: Path) -> Result:
        paths = [folder / name for name in (TRAIN, INFO, GOLD, CONFIG, SUMMARY)]
        return compute(folder, tuple(path.stat().st_mtime if path.exists() else 0.0 for path in paths))

    return look_up


class BundleLine(NamedTuple):
    key: str
    folder: Path
    info: BundleInfo | None = None
    fault: str = ""  # the reason why it cannot be read


class RunLine(NamedTuple):
    key: str
    folder: Path
    name: str
    finished: bool = False
    started: str = ""
    target: str = ""
    datasets: tuple[str, ...] = ()
    fault: str = ""  # the reason why it cannot be read


class QuestionLine(NamedTuple):
    id: int | str
    question: str
    answer: str
    document: str
    is_impossible: bool
    searched: str  # the question, its document and its labels, in lower case


class Library:
    """Finds bundles and runs below the served folders, and opens them by key."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Store the real paths of the folders, so that a link that is added later is not followed."""
        self.folders = [folder.resolve() for folder in folders]

    def list_bundles(self) -> list[BundleLine]:
        lines = map(_list_bundle, self._find_folders(_is_bundle))
        return sorted(lines, key=lambda line: line.folder.name.lower())

    def list_runs(self) -> list[RunLine]:
        lines = map(_list_run, self._find_folders(_is_run))
        return sorted(lines, key=lambda line: (line.started, line.name), reverse=True)

    def open_bundle(self, key: str) -> BundleFolder:
        return _open_bundle(self.find_folder(key, _is_bundle))

    def open_document(self, key: str, name: str) -> Document:
        document = _open_documents(self.find_folder(key, _is_bundle)).get(name)
        if document is None:
            raise ToolkitError(f"{name}: no such document in this bundle, or it cannot be read")
        return document

    def describe_run(self, key: str) -> str:
        """Return a run's result in words; raise an error if its summary does not match its rows."""
        return _describe_run(self.find_folder(key, _is_run))

    def find_folder(self, key: str, kind: Callable[[Path], bool] | None = None) -> Path:
        """Return the folder of a bundle or a run by its key; raise an error if there is none."""
        for folder in self._find_folders(kind or (lambda path: _is_bundle(path) or _is_run(path))):
            if key_of(folder) == key:
                return folder
        raise ToolkitError("no bundle or run has this name; it may have been moved")

    def _find_folders(self, kind: Callable[[Path], bool]) -> list[Path]:
        return [path for root in self.folders for path in _walk(root, _MAX_DEPTH) if kind(path)][:_MAX_FOLDERS]


def key_of(folder: Path) -> str:
    """Return the key that identifies a folder in the server's URLs: 16 hex digits of the SHA-256 of its path."""
    return hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Yield a folder and its subfolders down to a depth; links and the contents of bundles and runs are skipped."""
    if folder.is_symlink() or not folder.is_dir():
        return
    yield folder
    if depth and not _is_bundle(folder) and not _is_run(folder):
        for path in sorted(folder.glob("[!.]*")):  # glob skips folders that cannot be read
            yield from _walk(path, depth - 1)


def _is_bundle(folder: Path) -> bool:
    return (folder / TRAIN).is_file() and (folder / CORPUS).is_dir() and not folder.name.endswith(".partial")


def _is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and not (folder / TRAIN).exists()


def _make_bundle_line(folder: Path) -> BundleLine:
    try:
        return BundleLine(key_of(folder), folder, read_info(folder / INFO) if (folder / INFO).is_file() else None)
    except (ToolkitError, OSError) as error:
        return BundleLine(key_of(folder), folder, fault=str(error))


def _make_run_line(folder: Path) -> RunLine:
    line = RunLine(key_of(folder), folder, folder.name)
    try:
        run = RunFolder(folder)
        target = str(run.settings.get("target_url") or run.settings.get("preset") or run.config.target)
        line = line._replace(name=run.name, finished=(folder / SUMMARY).is_file(), started=run.provenance.started)
        return line._replace(target=target, datasets=tuple(run.config.datasets))
    except (ToolkitError, OSError, ValueError) as error:
        return line._replace(fault=str(error).splitlines()[0])


_open_bundle = remember(4, open_bundle)  # a bundle of 500 contracts takes some 100 MB
_open_documents = remember(2, lambda folder: Documents(list_corpus_files(folder)))
_describe_run = remember(_MAX_FOLDERS, lambda folder: describe_result(RunResults(folder).tables.values()))
_list_bundle, _list_run = remember(_MAX_FOLDERS, _make_bundle_line), remember(_MAX_FOLDERS, _make_run_line)


def list_questions(bundle: BundleFolder) -> list[QuestionLine]:
    """Return the questions of a bundle, each with the document that is named in its contexts or its gold."""
    gold = {line.id: line for line in reversed(bundle.gold)}
    lines = []
    for row in bundle.questions:
        passage = gold.get(row.id) if isinstance(row.id, int) else None
        names = [context.filename for context in row.contexts if context.filename]
        document = names[0] if names else (passage and passage.filename) or ""
        searched = " ".join([row.question, document, *map(str, passage.labels.values() if passage else ())]).lower()
        lines.append(QuestionLine(row.id, row.question, row.answer, document, row.is_impossible, searched))
    return lines


def count_replies(folder: Path) -> int:
    """Return how many questions of a running evaluation have a reply; a question that was asked twice counts once."""
    known = set()
    for path in folder.glob(f"*/{JOURNAL}"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                # the id is the first field of a line, and the last line may be incomplete
                known |= {(path, line.partition(b', "question"')[0]) for line in file if line.endswith(b"\n")}
    return len(known)


# ---------------------------------------------------------------- reviews


def find_review_folder(folder: Path) -> Path:
    """Return the folder of the reviews: inside a run, but beside a bundle, whose files have checksums."""
    return folder.with_name(f"{folder.name}-review") if (folder / TRAIN).is_file() else folder / "review"


def make_review_path(folder: Path, review: str, reviewer: str) -> Path:
    """Return the path of a reviewer's file for one review; a digest in the file name distinguishes similar names."""
    name = re.sub(r"\W+", "-", reviewer.lower()).strip("-")[:40] or "reviewer"
    digest = hashlib.sha256(json.dumps([review, reviewer]).encode()).hexdigest()[:8]
    return folder / f"review-{name}-{digest}.json"


def list_reviews(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("review-*.json")) if path.is_file() and not path.is_symlink()]


def save_review(folder: Path, review: Review) -> Review:
    """Add judgments and new questions to the reviewer's file, replace older judgments, and return the file's content.

    A lock ensures that two browser tabs do not write the file at the same time.
    """
    path = make_review_path(folder, review.review, review.reviewer)
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(path, busy=f"{path}: is being written", say=lambda _: None):
        before = read_review(path) if path.exists() else review.model_copy(update={"cases": [], "added": []})
        cases = {(case.dataset, case.id): case for case in [*before.cases, *review.cases]}
        update = {"cases": list(cases.values()), "added": [*before.added, *review.added]}
        after = before.model_copy(update=update)
        write_whole(path, after.model_dump_json(indent=1) + "\n")
    return after


def begin_review(review: str, bundle: str, reviewer: str, question: AddedQuestion) -> Review:
    """Return a new review of a bundle with one added question; raise if the reviewer's name is empty or too long."""
    name = " ".join(reviewer.split())
    if not name or len(name) > MAX_NAME_CHARS:
        raise ToolkitError("enter your name first: it identifies your review")
    about = {"format": REVIEW, "review": review, "run": bundle, "of": "bundle", "reviewer": name, "cases": []}
    return Review.model_validate({**about, "sample": Sample(size=0, of=0, seed=1, by=[]), "added": [question]})
