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
from exhibit.hub.tables import make_gold_table
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.bundle import BundleFolder as Contents
from exhibit.storage.bundle import mirror_bundle, open_bundle
from exhibit.storage.locations import parse_location

if TYPE_CHECKING:
    import datasets
    import pandas

DEFAULT_OUT = Path("datasets_out")  # the default folder of conversions
What = Literal["questions", "gold", "documents"]
Records = list[dict[str, Any]]

_QUESTION = ("id", "question", "answer", "is_impossible", "contexts")
_GOLD = ("id", "context", "filename", "pages", "spans", "alternatives", "how", "score")
_DOCUMENT = ("filename", "title", "pages", "characters", "source", "ocr")


@dataclass(frozen=True)
class Bundle:
    """A bundle, whose files are read and whose tables are made at their first use."""

    root: Path  # the folder of the bundle or, for a remote bundle, of its small files
    address: str  # the address of the bundle, as the user gave it

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
        if what == "documents":  # leave out a struct that is empty in every row, which cannot be stored
            records = [{**record, "ocr": [*record["ocr"].items()]} for record in records]
        made: datasets.Dataset = import_extra("datasets").Dataset.from_dict(
            {column: [record[column] for record in records] for column in columns}
        )
        return made

    def show(self, row: int, *, scale: float = 1.5) -> Image.Image:
        """Return an image of the pages with a question's gold, one below the other."""
        pictures = [picture for _, _, picture in draw_row(self.root, row, scale=scale)]
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

    def _make_frame(self, what: What) -> pandas.DataFrame:
        columns, records = self._make_records(what)
        made: pandas.DataFrame = import_extra("pandas").DataFrame(records, columns=columns)
        return made

    def _make_records(self, what: What) -> tuple[list[str], Records]:
        info, gold = self.bundle.info, self.bundle.gold
        if what == "questions":
            rows = map(asdict, self.bundle.questions)
            return list(_QUESTION), [{**row, "contexts": list(row["contexts"])} for row in rows]
        if what == "gold":
            labels = {f"label_{name}": name for line in gold for name in line.labels}
            lines = make_gold_table(gold).to_pylist()
            named = [{column: line["labels"][name] for column, name in labels.items()} for line in lines]
            fields = [{name: line[name] for name in _GOLD} for line in lines]
            return [*_GOLD, *labels], [field | other for field, other in zip(fields, named, strict=True)]
        if what == "documents":
            unknown = dict.fromkeys(_DOCUMENT, None)  # without bundle.json, only the file names are known
            names: Records = [{**unknown, "filename": name, "ocr": {}} for name in sorted(self.bundle.files)]
            return list(_DOCUMENT), [entry.model_dump() for entry in info.documents] if info else names
        raise ToolkitError(f"no table {what!r}; the tables are questions, gold, documents")


def load(place: Path | str) -> Bundle:
    """Open a bundle: a folder, `hf://OWNER/NAME@REVISION`, `s3://…`, `gs://…`, or a name in `datasets_out/`."""
    address = str(place)
    if is_repository(address):
        repo_id, revision = parse_address(address)
        fetched = fetch(repo_id, revision=revision)
        return Bundle(fetched.folder, fetched.address)
    if Path(address).name == address and not Path(address).exists() and (DEFAULT_OUT / address).is_dir():
        address = str(DEFAULT_OUT / address)
    root = mirror_bundle(parse_location(address))
    if not root.is_dir():
        known = ", ".join(sorted(path.as_posix() for path in DEFAULT_OUT.glob("*") if path.is_dir())) or "none"
        advice = f"name a bundle's folder, or one of {known}; exhibit.convert makes a bundle from a benchmark"
        raise ToolkitError(f"{root}: no such folder; {advice}")
    return Bundle(root, address)


def import_extra(module: str) -> Any:
    """Import an optional module and return it; if it is missing, raise an error with the command that installs it."""
    try:
        return import_module(module)
    except ImportError:
        raise ToolkitError(f"{module} is not installed; run pip install 'exhibit-rag[notebook]'") from None
