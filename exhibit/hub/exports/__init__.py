"""Export formats: one module each, with the format's name and a function `write(export, folder)`."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.evidence.read import read_within
from exhibit.schemas.bundle import GOLD, Question
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import DocumentEntry, Gold
from exhibit.storage.bundle import BundleFolder


class Cut(NamedTuple):
    """A located piece of a gold passage: its location and the document's text there."""

    filename: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Export:
    """A bundle during its export to another format, with the items left out and the notes so far."""

    bundle: BundleFolder
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The items that the format cannot express, by reason."""
    noted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The items of each remark, such as question ids."""

    @property
    def name(self) -> str:
        """The bundle's name, which may differ from its folder's name."""
        return self.bundle.info.name if self.bundle.info else self.bundle.root.resolve().name

    @cached_property
    def _entries(self) -> dict[str, DocumentEntry]:
        return {entry.filename: entry for entry in self.bundle.info.documents} if self.bundle.info else {}

    def title_of(self, filename: str) -> str:
        """Return a document's title, or its file name without the suffix."""
        entry = self._entries.get(filename)
        return (entry.title if entry else "") or Path(filename).stem

    def documents(self) -> Iterator[tuple[str, str]]:
        """Yield each document's name and the text to which its gold offsets refer, one at a time."""
        for filename, path in sorted(self.bundle.files.items()):
            # UTF-8 cannot encode a lone surrogate
            text = read_within(path).text.encode("utf-8", "replace").decode("utf-8")
            recorded = self._entries[filename].characters if filename in self._entries else len(text)
            if recorded != len(text):
                raise BundleError(
                    f"{path}: has {len(text)} characters, but bundle.json says {recorded}; the documents are not those "
                    "that the gold was located in: convert the bundle again"
                )
            yield filename, text

    @cached_property
    def gold(self) -> dict[int | str, list[Gold]]:
        """The lines of gold.jsonl by question id; raise if there are questions but no lines."""
        if self.bundle.questions and not self.bundle.gold:
            raise BundleError(
                f"{self.bundle.root / GOLD}: missing or empty; this format needs the locations of the gold"
            )
        lines: dict[int | str, list[Gold]] = defaultdict(list)
        for line in self.bundle.gold:
            lines[line.id].append(line)
        return lines

    def cut_gold(self, question: Question, texts: Mapping[str, str]) -> list[Cut]:
        """Return the pieces of a question's gold in order; passages without a location are recorded as left out."""
        pieces: list[Cut] = []
        for line in self.gold[question.id]:
            filename = line.filename or ""
            if line.context is not None and not line.spans:
                self.left_out["passage that is not located in the document"].append(f"{question.id}: {filename}")
            for start, end in line.spans:
                if end > len(texts[filename]):
                    raise BundleError(f"{filename}: gold at {start}-{end} is past the end of the text")
                pieces.append(Cut(filename, start, end, texts[filename][start:end]))
        return pieces


def write_json(path: Path, content: Mapping[str, Any], *, indent: int | None = 1) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
