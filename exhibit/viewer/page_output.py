"""Write a page about runs: with a folder of data files and images beside it, or everything in a single file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path

from exhibit.engine import Limits, track
from exhibit.evaluation.datasets import find_datasets
from exhibit.evaluation.runs import RunResults
from exhibit.schemas.bundle import CORPUS, TRAIN
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import FolderKind, make_scratch_folder, replace_folder, write_whole
from exhibit.storage.locations import is_url, keep_recent_files
from exhibit.storage.removal import identity_of, remove_folder
from exhibit.viewer.drawing import PAGES, Drawings, Record, Wanted, draw
from exhibit.viewer.listing import (
    IMAGES,
    Catalogue,
    Inlined,
    PieceWriter,
    as_json,
    fields_of,
    labels_of,
    make_brief,
    write_piece,
)
from exhibit.viewer.matching import Matching
from exhibit.viewer.page import format_page, read_words

PIECES = FolderKind("the pieces of a page", lambda folder: (folder / "i0.js").is_file())
SINGLE_BUDGET = 30_000_000
"""The most characters of pieces in a single file: a browser opens it in about a second, and it can be mailed."""
_SCRIPTS = ("build.js", "pieces.js", "case.js", "list.js", "export.js", "keys.js")

Body = Callable[[Matching, Record, list[str]], str]
"""A function that makes the page's body from the counted questions, the script's data and the notes."""


@dataclass(frozen=True)
class View:
    """The options for writing an HTML page about runs, such as its language and the number of drawn pages."""

    datasets: Mapping[str, Path] | None = None
    """The bundles by name; without them, those that the runs name."""
    pages: int | None = PAGES
    """The largest number of drawn pages, faults first; None: all."""
    cases: int | None = None
    """The number of questions whose pages are drawn; None: all."""
    single_file: bool = False
    jobs: int | None = None
    limits: Limits | None = None
    language: str = "en"
    """The language of the page's own texts."""
    say: Callable[[str], None] | None = None
    """Called with the reason for each page that is not drawn."""

    def write(self, runs: Sequence[RunResults], path: Path, title: str, body: Body) -> Path:
        """Write the page from the files of the runs, one row at a time, and return its path."""
        notes: list[str] = []
        matching = Matching(runs)
        roots = find_dataset_roots(runs, say=notes.append) if self.datasets is None else self.datasets
        path.unlink(missing_ok=True)  # new pieces do not fit an old page
        out = path.with_name(f"{path.stem}_files")
        with make_scratch_folder() if self.single_file else replace_folder(out, force=True, kind=PIECES) as pieces:
            wanted = Wanted()
            meta = self._bind(matching, pieces, wanted)

            def put(number: int, content: Record) -> None:
                write_piece(pieces, f"d{number}", content)

            with keep_recent_files():  # remote documents are downloaded once
                images, most = pieces / IMAGES, self.pages
                drawn = draw(wanted, roots, images, put, most=most, jobs=self.jobs, limits=self.limits)
            notes += [*drawn.faults, *_note_not_drawn(drawn)]
            meta |= {"documents": drawn.documents, "folder": None if self.single_file else out.name}
            blocks = _inline_pieces(meta, pieces) if self.single_file else _link_pieces(meta, pieces)
            text = body(matching, meta, notes)
            frame = format_page(
                title, text, scripts=_SCRIPTS, data=blocks, pieces=not self.single_file, language=self.language
            )
            write_whole(path, frame)
        if self.single_file and PIECES.is_one(out):
            remove_folder(out, identity_of(out))
        for note in notes:
            (self.say or (lambda _: None))(note)
        return path

    def _bind(self, matching: Matching, pieces: Path, wanted: Wanted) -> Record:
        """Write the question list of the report and the details of each question as data files; return metadata.

        The metadata (a dict) is for the script of the report page: runs, filters, metrics and translations. Each
        question is read twice: first to sort the list, then to write the files.
        """
        catalogue = Catalogue(matching.make_facets())
        for sides in matching.scan():
            catalogue.count(matching.values(sides), labels_of(next(filter(None, sides))))
        most = 0 if self.pages == 0 else self.cases
        numbers = range(len(matching))
        drawn = set(numbers if most is None else nsmallest(most, numbers, key=lambda at: (matching.ranks[at], at)))
        writer = PieceWriter(pieces, catalogue, wanted)
        read = track(matching, total=len(matching), label="report", unit="question")
        for number, sides in enumerate(read):
            labels = labels_of(next(filter(None, sides)))
            line = catalogue.make_line(matching.values(sides), make_brief(sides), labels)
            writer.add(sides, line, rank=matching.ranks[number] if number in drawn else None)
        runs = [run.name for run in matching.runs]
        kind = "compare" if matching.several else "report"
        shared = {"kind": kind, "runs": runs, "fields": fields_of(runs), "tones": matching.tones}
        return writer.close() | shared | {"language": self.language, "words": read_words(self.language)}


def _inline_pieces(meta: Record, pieces: Path) -> dict[str, str]:
    """Return the data blocks of a single-file page: its metadata, and as many data files and images as fit."""
    inlined = Inlined(pieces, budget=SINGLE_BUDGET)
    meta |= {"whole": min(meta["total"], inlined.cases * meta["cases"]), "pictures_left_out": inlined.pages_left_out}
    return {"meta": as_json(meta), **inlined.blocks}


def _link_pieces(meta: Record, pieces: Path) -> dict[str, str]:
    """Return the data to embed in an HTML page that loads its other data from files in a folder.

    The embedded data is the metadata and the first lines of the question list, which are thus shown at once.
    """
    meta |= {"whole": meta["total"], "pictures_left_out": 0}
    return {"meta": as_json(meta), "piece-i0": (pieces / "i0.js").read_text(encoding="ascii").split('"')[-2]}


def _note_not_drawn(drawn: Drawings) -> list[str]:
    if drawn.pages >= drawn.wanted:
        return []
    return [
        f"{drawn.pages:,} of the {drawn.wanted:,} pages that cases show are drawn, failures first; the others are "
        "shown as text (--pages all draws them)"
    ]


def find_dataset_roots(
    runs: Sequence[RunFolder], *, given: Iterable[str] = (), say: Callable[[str], None]
) -> dict[str, Path]:
    """Return the bundle folder of each dataset: the given one, else the one that a run recorded.

    `say` is called with a message for each missing bundle.
    """
    folders, notes, problems = find_datasets(list(given)) if given else ({}, [], [])
    if problems:
        raise ToolkitError("\n".join(problems))
    for note in notes:
        say(note)
    roots: dict[str, Path] = {}
    for run in runs:
        for name, entry in run.config.datasets.items():
            if name in folders:
                roots[name] = folders[name]
            elif name not in roots:
                root, gone = _find_root(entry.origin, entry.path)
                if root is not None:
                    roots[name] = root
                else:
                    say(
                        f"{name}: the pages of its documents are not drawn: {gone}; name its folder with "
                        "--dataset-paths"
                    )
    return roots


def _find_root(*addresses: str | None) -> tuple[Path | None, str]:
    """Return the folder of a bundle on this machine, or None and the reason why it is missing.

    A run may come from another machine, so its addresses are not trusted: no URL is opened, and only a folder
    with the files of a bundle is accepted.
    """
    here = [Path(address) for address in addresses if address and not is_url(address)]
    root = next((path for path in here if (path / TRAIN).is_file() and (path / CORPUS).is_dir()), None)
    named = next(filter(None, addresses), "its folder")
    return root, "" if root else f"{named}: {'not on this machine' if is_url(named) else 'not there'}"
