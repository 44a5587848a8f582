"""Export formats: one module each, with the format's name and a function `write(export, folder)`."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from exhibit.evidence.read import read_within
from exhibit.schemas.bundle import GOLD, Question, read_text
from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder
from exhibit.storage.locations import fetch_file

PLAIN = (".txt", ".md", ".text")
"""Suffixes of documents that are plain text."""

Words = dict[tuple[str, int, int], str]
"""The document's text at each gold span: by file name, start and end."""


class Cut(NamedTuple):
    """A located piece of a gold passage: its location, and the document's text there."""

    filename: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Export:
    """A bundle during its export to another format, with the items left out and the notes so far."""

    bundle: BundleFolder
    texts: Path | None = None
    """A folder with the extracted text of each document; if None, the documents are read."""
    left_out: dict[str, list[str]] = field(default_factory=dict)
    noted: dict[str, list[str]] = field(default_factory=dict)

    def leave_out(self, reason: str, name: object) -> None:
        """Count an item that the format cannot express."""
        self.left_out.setdefault(reason, []).append(str(name))

    def note(self, remark: str, name: object) -> None:
        """Record a remark about an item of the export, such as a question id; the summary prints all remarks."""
        self.noted.setdefault(remark, []).append(str(name))

    @property
    def name(self) -> str:
        """The bundle's name, which may differ from its folder's name."""
        return self.bundle.info.name if self.bundle.info else self.bundle.root.resolve().name

    def title_of(self, filename: str) -> str:
        """Return a document's title, or its file name without the suffix."""
        entries = self.bundle.info.documents if self.bundle.info else []
        return next((entry.title for entry in entries if entry.filename == filename), "") or Path(filename).stem

    def documents(self, words: Words) -> Iterator[tuple[str, str]]:
        """Yield each document's name and text, one at a time.

        Before a document is yielded, the text of each of its gold spans is stored in `words` under
        `(filename, start, end)`.
        """
        spans: dict[str, set[tuple[int, int]]] = defaultdict(set)
        for line in self.bundle.gold:
            spans[line.filename or ""].update(line.spans)
        for filename in sorted(self.bundle.files):
            text = self._text_of(filename)
            for start, end in spans[filename]:
                if end > len(text):
                    raise BundleError(
                        f"{filename}: gold at {start}-{end}, but the text has only {len(text)} characters"
                    )
                words[filename, start, end] = text[start:end]
            yield filename, text

    def gold(self) -> dict[int | str, list[Gold]]:
        """Return the lines of gold.jsonl by question id; raise if there are questions but no lines."""
        if self.bundle.questions and not self.bundle.gold:
            raise BundleError(
                f"{self.bundle.root / GOLD}: missing or empty; this format needs the locations of the gold"
            )
        lines: dict[int | str, list[Gold]] = defaultdict(list)
        for line in self.bundle.gold:
            lines[line.id].append(line)
        return lines

    def cut_gold(self, question: Question, lines: Iterable[Gold], words: Words) -> list[Cut]:
        """Return the location and text of each span of a question's gold, in order.

        Gold passages without a location are recorded as left out.
        """
        pieces: list[Cut] = []
        for line in lines:
            filename = line.filename or ""
            if line.context is not None and not line.spans:
                self.leave_out("passage without a place in the document", f"{question.id}: {filename}")
            pieces += [Cut(filename, start, end, words[filename, start, end]) for start, end in line.spans]
        return pieces

    def _text_of(self, filename: str) -> str:
        """Return the text to which a document's gold offsets refer."""
        path = self.bundle.files[filename]
        if self.texts is not None and path.suffix.lower() not in PLAIN:
            path = self.texts / fit_name(filename, ".txt")
            if not path.is_file():
                raise BundleError(f"{path}: missing; {self._advise()}")
        if path.suffix.lower() in PLAIN:
            with fetch_file(path) as here:
                text = read_text(here)
        else:
            # as evidence.text writes it: UTF-8 cannot encode a lone surrogate
            text = read_within(path).text.encode("utf-8", "replace").decode("utf-8")
        entries = self.bundle.info.documents if self.bundle.info else []
        said = next((entry.characters for entry in entries if entry.filename == filename), len(text))
        if said != len(text):
            raise BundleError(f"{path}: has {len(text)} characters, but bundle.json says {said}; {self._advise()}")
        return text

    def _advise(self) -> str:
        if self.texts is None:
            return "the documents are not those that the gold was located in: convert the bundle again"
        return f"run exhibit text {self.bundle.root} --out {self.texts} --force, or leave out --texts"


class Format(Protocol):
    """The protocol of a module that writes an export format."""

    def write(self, export: Export, folder: Path) -> None:
        """Write the bundle of `export` into an empty folder, in this format."""


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSON Lines, one at a time."""
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write_qrels(folder: Path, relevant: Mapping[str, Mapping[str, int]]) -> None:
    """Write the relevant documents or passages of each query in BEIR's format."""
    (folder / "qrels").mkdir()
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="") as out:
        # minimal quoting is what BEIR's own reader undoes, for names with a quotation mark
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(["query-id", "corpus-id", "score"])
        for query, scores in relevant.items():
            table.writerows([query, name, score] for name, score in scores.items())
