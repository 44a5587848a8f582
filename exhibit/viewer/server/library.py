"""The bundles and runs below the served folders; nothing outside them can be addressed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exhibit.evaluation.documents import Documents
from exhibit.evaluation.runs import RunResults
from exhibit.evidence import Document
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, read_info, read_text
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.run import CONFIG, SUMMARY, Estimate
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import list_corpus_files
from exhibit.storage.locations import Location
from exhibit.viewer.report import headline_of

_DEEPEST = 3  # levels below a served folder in which bundles and runs are searched
_MOST = 2000  # folders that are listed: more would not be read
JOURNAL = "journal.jsonl"
"""The file that grows by one line per reply during a run."""

State = Literal["finished", "unchecked", "unfinished", "damaged"]
"""`unchecked`: finished, and the figures are still being compared with the rows."""


class BundleLine(NamedTuple):
    """A bundle in the list of all bundles, or the reason why it cannot be read."""

    key: str
    folder: Path
    info: BundleInfo | None
    fault: str = ""
    """The reason why the bundle cannot be read."""


@dataclass(frozen=True)
class RunLine:
    """One run in the viewer's list of runs.

    It has the run's state, the tested system (`target`), the datasets, and the mean of the main metric.
    """

    key: str
    folder: Path
    state: State
    name: str
    started: str = ""
    target: str = ""
    datasets: tuple[str, ...] = ()
    metric: str = ""
    headline: Estimate | None = None
    failed: int = 0
    asked: int = 0
    fault: str = ""


class QuestionLine(NamedTuple):
    """A question in the list of questions that the server shows for a bundle."""

    id: int | str
    question: str
    answer: str
    document: str
    is_impossible: bool
    labels: dict[str, Any]


class GoldLine(NamedTuple):
    """The pages and spans of a question's gold in one document."""

    id: int | str
    pages: list[int]
    spans: list[tuple[int, int]]


@dataclass(frozen=True)
class BundleIndex:
    """The data of a bundle that the server's pages show.

    The bundle's files are read without validation, because validating 20,000 rows would take seconds.
    """

    root: Path
    info: BundleInfo | None
    files: dict[str, Location]
    questions: list[QuestionLine]
    gold: dict[str, list[GoldLine]]
    """The gold by document."""


class ServedFolders:
    """Finds bundles and runs below the served folders, and opens them by key."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Store the real paths of the folders, so that a link that is added later is not followed."""
        self.folders = [folder.resolve() for folder in folders]
        self._checked: dict[tuple[Path, tuple[float, ...]], RunLine] = {}
        self._checking = ThreadPoolExecutor(1, thread_name_prefix="runs")
        self._asked: set[tuple[Path, tuple[float, ...]]] = set()

    def list_bundles(self) -> list[BundleLine]:
        """Return every bundle, sorted by name."""
        lines = [_make_bundle_line(folder) for folder in self._find_folders(_is_bundle)]
        return sorted(lines, key=lambda line: line.folder.name.lower())

    def runs(self) -> list[RunLine]:
        """Return every run, the newest first."""
        lines = [self._run_line(folder) for folder in self._find_folders(_is_run)]
        return sorted(lines, key=lambda line: (line.started, line.name), reverse=True)

    def _run_line(self, folder: Path) -> RunLine:
        """Return the line of a run in the list of runs.

        The run's figures are computed in the background, and are missing from the line until then.
        """
        key = folder, _get_stamp(folder)
        line = self._checked.get(key) or _read_unchecked_line(*key)
        if line.state == "unchecked" and key not in self._asked:
            self._asked.add(key)
            self._checking.submit(self._check, key, line)
        return line

    def _check(self, key: tuple[Path, tuple[float, ...]], line: RunLine) -> None:
        self._checked[key] = _check_line(line)

    def bundle(self, key: str) -> BundleIndex:
        """Return the bundle with this key; it is read again only when its files changed."""
        folder = self.folder(key, _is_bundle)
        return _open_bundle(folder, _get_stamp(folder))

    def document(self, key: str, name: str) -> Document:
        """Return a document of a bundle; raise an error where it does not exist or cannot be read."""
        folder = self.folder(key, _is_bundle)
        document = _get_documents(folder, _get_stamp(folder)).get(name)
        if document is None:
            raise ToolkitError(f"{name}: no such document in this bundle, or it cannot be read")
        return document

    def folder(self, key: str, kind: Any = None) -> Path:
        """Return the folder of a bundle or a run by its key; raise an error where there is none."""
        for folder in self._find_folders(kind or (lambda place: _is_bundle(place) or _is_run(place))):
            if key_of(folder) == key:
                return folder
        raise ToolkitError("there is no such bundle or run; it may have been moved")

    def is_inside(self, path: Path) -> bool:
        """Return whether a path, after links are resolved, is inside one of the served folders."""
        return any(path.resolve().is_relative_to(folder) for folder in self.folders)

    def _find_folders(self, kind: Any) -> Iterator[Path]:
        count = 0
        for root in self.folders:
            for folder in _walk(root, _DEEPEST):
                if kind(folder):
                    yield folder
                    count += 1
                    if count >= _MOST:
                        return


def key_of(folder: Path) -> str:
    """Return the key that stands for a folder in the server's URLs: 16 hex digits of the SHA-256 of its path."""
    return hashlib.sha256(str(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _walk(folder: Path, deep: int) -> Iterator[Path]:
    """Yield a folder and its subfolders down to a depth; links and the contents of bundles and runs are skipped."""
    if folder.is_symlink() or not folder.is_dir():
        return
    yield folder
    if not deep or _is_bundle(folder) or _is_run(folder):
        return
    try:
        below = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return
    for path in below:
        yield from _walk(path, deep - 1)


def _is_bundle(folder: Path) -> bool:
    return (folder / TRAIN).is_file() and (folder / CORPUS).is_dir() and not folder.name.endswith(".partial")


def _is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and not (folder / TRAIN).exists()


def _get_stamp(folder: Path) -> tuple[float, ...]:
    """Return the modification times of the files that define a bundle or a run."""
    names = (TRAIN, INFO, "gold.jsonl", CONFIG, SUMMARY)
    return tuple((folder / name).stat().st_mtime if (folder / name).exists() else 0.0 for name in names)


@lru_cache(maxsize=4)  # bundles: one of 500 contracts takes some 30 MB
def _open_bundle(folder: Path, stamp: tuple[float, ...]) -> BundleIndex:
    gold: dict[str, list[GoldLine]] = {}
    named: dict[Any, tuple[str, dict[str, Any]]] = {}
    try:
        if (folder / GOLD).is_file():
            with (folder / GOLD).open(encoding="utf-8") as file:  # line by line: all of them as objects take 60 MB
                for line in map(json.loads, filter(str.strip, file)):
                    name = line["filename"] or ""
                    spans = [(start, end) for start, end in line["spans"]]
                    gold.setdefault(name, []).append(GoldLine(line["id"], line["pages"], spans))
                    named.setdefault(line["id"], (name, line["labels"]))
        rows = json.loads(read_text(folder / TRAIN))
        questions = [_make_question_line(number, row, named) for number, row in enumerate(rows)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BundleError(
            f"{folder}: is damaged ({type(error).__name__}); find the place with: exhibit validate {folder}"
        ) from error
    return BundleIndex(folder, _get_info(folder, stamp), list_corpus_files(folder), questions, gold)


def _make_question_line(number: int, row: dict[str, Any], named: dict[Any, tuple[str, dict[str, Any]]]) -> QuestionLine:
    id = row.get("id", row.get("query_id", number))
    name, labels = named.get(id, ("", {}))
    contexts = [one for one in row.get("contexts") or () if isinstance(one, dict)]
    document = next((one["filename"] for one in contexts if one.get("filename")), name)
    return QuestionLine(id, row["question"], row.get("answer") or "", document, bool(row.get("is_impossible")), labels)


@lru_cache(maxsize=2)
def _get_documents(folder: Path, stamp: tuple[float, ...]) -> Documents:
    return Documents(_open_bundle(folder, stamp).files)


def _make_bundle_line(folder: Path) -> BundleLine:
    try:
        info = _get_info(folder, _get_stamp(folder))
    except (ToolkitError, OSError) as error:
        return BundleLine(key_of(folder), folder, None, str(error))
    return BundleLine(key_of(folder), folder, info)


@lru_cache(maxsize=_MOST)
def _get_info(folder: Path, stamp: tuple[float, ...]) -> BundleInfo | None:  # noqa: ARG001
    return read_info(folder / INFO) if (folder / INFO).is_file() else None


@lru_cache(maxsize=_MOST)
def _read_unchecked_line(folder: Path, stamp: tuple[float, ...]) -> RunLine:  # noqa: ARG001
    """Return a run as an entry of the list of runs, without reading its results.

    Only the config and other small files are read, so the entry has no metric values.
    """
    key = key_of(folder)
    try:
        run = RunFolder(folder)
        return RunLine(
            key,
            folder,
            "unchecked" if (folder / SUMMARY).is_file() else "unfinished",
            run.name,
            started=run.provenance.started,
            target=str(run.settings.get("target_url") or run.settings.get("preset") or run.config.target),
            datasets=tuple(run.config.datasets),
        )
    except (ToolkitError, OSError, ValueError) as error:
        return RunLine(key, folder, "damaged", folder.name, fault=str(error).splitlines()[0])


def _check_line(line: RunLine) -> RunLine:
    """Return a run's line in the list of runs, with the run's main figure computed from its rows.

    If the run's summary does not match its rows, the state of the line is `damaged`.
    """
    try:
        run = RunResults(line.folder)
        first = next(iter(run.datasets), "")
        means = run.means
        metric = headline_of(run, first, run.means_of(first)) if first else None
        asked, failed = max(((one.n + one.errors, one.errors) for one in means.values()), default=(0, 0))
        headline = means.get(metric) if metric else None
        return replace(line, state="finished", metric=metric or "", headline=headline, failed=failed, asked=asked)
    except (ToolkitError, OSError, ValueError) as error:
        return replace(line, state="damaged", fault=str(error).splitlines()[0])


def count_journal_lines(folder: Path) -> int:
    """Return the number of replies that a running evaluation has so far."""
    count = 0
    for path in folder.glob(f"*/{JOURNAL}"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                count += sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    return count
