"""A bundle in a notebook: its questions, gold and documents as tables, and its gold drawn on the page."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from PIL import Image

from exhibit.evidence.show import draw_row
from exhibit.hub.pull import fetch, is_repository, parse_address
from exhibit.hub.tables import make_gold_records
from exhibit.runtime.command import print_note
from exhibit.runtime.plugins import list_plugins
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.bundle import BundleFolder as Contents
from exhibit.storage.bundle import mirror_bundle, open_bundle
from exhibit.storage.locations import parse_location

if TYPE_CHECKING:
    import datasets
    import pandas
from collections.abc import Iterable, Sequence
from html import escape

DEFAULT_OUT = Path("datasets_out")
"""The default folder of conversions."""
What = Literal["questions", "gold", "documents"]
Records = list[dict[str, Any]]

_QUESTION = ("id", "question", "answer", "is_impossible", "contexts")
_GOLD = ("id", "context", "filename", "pages", "spans", "alternatives", "how", "score")
_DOCUMENT = ("filename", "title", "pages", "characters", "source", "ocr")


@dataclass(frozen=True)
class Bundle:
    """A bundle; its files are read, and its tables made, at their first use."""

    root: Path
    """The folder of the bundle, or of the small files of a remote one."""
    address: str
    """The address of the bundle, as the user gave it."""

    @cached_property
    def bundle(self) -> Contents:
        """The content of the bundle's files, in the form that the evaluation uses."""
        return open_bundle(self.root)

    @cached_property
    def questions(self) -> pandas.DataFrame:
        """One row per question of `train.json`; `contexts` is a list of file names and quotes."""
        return self._make_frame("questions")

    @cached_property
    def gold(self) -> pandas.DataFrame:
        """One row per line of `gold.jsonl`; the source's labels are columns `label_…`."""
        return self._make_frame("gold")

    @cached_property
    def documents(self) -> pandas.DataFrame:
        """One row per document of the corpus: title, pages, characters, source."""
        return self._make_frame("documents")

    def dataset(self, what: What = "questions") -> datasets.Dataset:
        """Return one of the tables `questions`, `gold` and `documents` as a Hugging Face `datasets.Dataset`."""
        columns, records = self._make_records(what)
        if what == "documents":  # a struct that is empty in every row cannot be stored
            records = [{**record, "ocr": [*record["ocr"].items()]} for record in records]
        made: datasets.Dataset = import_extra("datasets").Dataset.from_dict(
            {column: [record[column] for record in records] for column in columns}
        )
        return made

    def show(self, row: int, *, scale: float = 1.5) -> Image.Image:
        """Return an image of the pages with a question's gold, one below the other."""
        pictures = [drawn.picture for drawn in draw_row(self.root, row, scale=scale)]
        if len(pictures) == 1:
            return pictures[0]
        size = max(picture.width for picture in pictures), sum(picture.height for picture in pictures)
        sheet, top = Image.new("RGB", size, "white"), 0
        for picture in pictures:
            sheet.paste(picture, (0, top))
            top += picture.height
        return sheet

    def __repr__(self) -> str:
        counts = f"{len(self.bundle.questions):,} questions, {len(self.bundle.files):,} documents"
        return f"<bundle {self.address}: {counts}>"

    def _repr_html_(self) -> str:
        info = self.bundle.info
        rows = [
            ["title", info.title if info else self.root.name],
            ["questions", f"{len(self.bundle.questions):,}"],
            ["  impossible", f"{sum(question.is_impossible for question in self.bundle.questions):,}"],
            ["documents", f"{len(self.bundle.files):,}"],
            ["located gold", f"{sum(bool(line.spans) for line in self.bundle.gold):,}"],
            ["licence", info.licence.name if info else "not said"],
        ]
        return format_html_table([[self.address, ""], *rows])

    def _make_frame(self, what: What) -> pandas.DataFrame:
        columns, records = self._make_records(what)
        made: pandas.DataFrame = import_extra("pandas").DataFrame(records, columns=columns)
        return made

    def _make_records(self, what: What) -> tuple[list[str], Records]:
        if what == "questions":
            return list(_QUESTION), [_make_question_record(asdict(question)) for question in self.bundle.questions]
        if what == "gold":
            return _make_gold_records(self.bundle)
        if what == "documents":
            return list(_DOCUMENT), _make_document_records(self.bundle)
        raise ToolkitError(f"no table {what!r}; the tables are questions, gold, documents")


def load(place: Path | str) -> Bundle:
    """Open a bundle: a folder, a benchmark's name, the Hub (`hf://OWNER/NAME@REVISION`) or a store (`s3://`, `gs://`).

    A benchmark's name, such as "cuad", means the bundle that its converter writes by default, in `datasets_out/`.
    """
    address = str(place)
    if is_repository(address):
        repo_id, revision = parse_address(address)
        fetched = fetch(repo_id, revision=revision, say=print_note)
        return Bundle(fetched.folder, fetched.address)
    converted = DEFAULT_OUT / address
    if address in list_plugins("exhibit.converters") and not Path(address).exists():
        if not converted.is_dir():
            raise ToolkitError(f"{converted}: no such folder; convert the benchmark with exhibit.convert({address!r})")
        return Bundle(converted, str(converted))
    root = mirror_bundle(parse_location(address))
    if not root.is_dir():
        raise ToolkitError(
            f"{root}: no such folder; name a bundle's folder, or one of {', '.join(_list_converted()) or 'none'}"
        )
    return Bundle(root, address)


def _list_converted() -> list[str]:
    """Return the paths of the folders in `datasets_out/`."""
    return sorted(path.as_posix() for path in DEFAULT_OUT.glob("*") if path.is_dir())


# ---------------------------------------------------------------- rows


def _make_question_record(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "contexts": list(record["contexts"])}


def _make_gold_records(bundle: Contents) -> tuple[list[str], Records]:
    """Return the columns and rows of the gold; a label with values of several types becomes text."""
    names = list(dict.fromkeys(name for line in bundle.gold for name in line.labels))
    records = []
    for line in make_gold_records(bundle.gold):
        spans, places = [list(span) for span in line["spans"]], line["alternatives"]
        fields = {**line, "spans": spans, "alternatives": [[list(span) for span in place] for place in places]}
        labels = {f"label_{name}": line["labels"].get(name) for name in names}
        records.append({name: fields[name] for name in _GOLD} | labels)
    return [*_GOLD, *(f"label_{name}" for name in names)], records


def _make_document_records(bundle: Contents) -> Records:
    if bundle.info is None:  # a folder without bundle.json: only its file names are known
        unknown = dict.fromkeys(_DOCUMENT, None)
        return [{**unknown, "filename": name, "ocr": {}} for name in sorted(bundle.files)]
    return [entry.model_dump() for entry in bundle.info.documents]


def import_extra(module: str) -> Any:
    """Import an optional module and return it; if it is not installed, raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ToolkitError(f"{module} is not installed; run pip install 'exhibit-rag[notebook]'") from None


def format_html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an HTML table, the first as its header."""
    head, *body = ([escape(cell) for cell in row] for row in rows)
    top = "".join(f"<th scope='col'>{cell}</th>" for cell in head)
    lines = [f"<tr><th scope='row'>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in body]
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def format_html_paragraphs(lines: Iterable[str]) -> str:
    """Return each line as an HTML paragraph."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def format_html_link(path: Path, label: str) -> str:
    """Return an HTML link to a file.

    It is relative for a file below the current folder, because a notebook's server serves only its own folder.
    """
    here = Path.cwd()
    whole = path.resolve()
    address = whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.as_uri()
    return f'<p><a href="{escape(address)}">{escape(label)}</a></p>'
