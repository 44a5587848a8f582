"""MAUD's release as files: the table of excerpts, the label files, and the agreements as text."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from exhibit.converters._benchmark import DatasetInfo, Tally
from exhibit.converters._maud.text import definition_key
from exhibit.converters._source import unpack
from exhibit.schemas.errors import SourceError
from exhibit.storage.scratch import scratch_folder

MAE = "MAE Definition"
"""The deal point that tells whose a row is."""

_MAIN = "main.csv"
_LABEL_FILES = ("MAUD_train.csv", "MAUD_dev.csv", "MAUD_test.csv")
_LABEL_COLUMNS = ("contract_name", "text", "text_type", "question", "answer")
_MADE_UP = frozenset({"abridged", "rare_answers"})
"""Label rows on texts that were shortened or written for the label files: they say nothing of an agreement."""
_LONGEST_CELL = 1 << 24
"""A covenant quoted in full is longer than the csv module allows by itself."""


@dataclass
class Labels:
    """The label files: whose the definitions are, and what experts ticked."""

    owners: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Agreements by the key of their MAE definition."""
    verbatim: set[str] = field(default_factory=set)
    """The MAE definitions as they stand."""
    answers: dict[tuple[str, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Answers by question, for each agreement and deal point."""


@dataclass(frozen=True)
class Release:
    """Everything the release holds, read."""

    rows: list[dict[str, str]]
    """The rows of main.csv by column."""
    labels: Labels
    texts: dict[str, str]
    """The agreements by name, `contract_7`; characters as they are, since offsets count the BOM too."""
    sha256: dict[str, str]


def read_release(source: Path, info: DatasetInfo, columns: Collection[str], tally: Tally) -> Release:
    """Read the release from maud-main/, its data/, or data.zip in either."""
    wanted = f"expected {info.expects}, from {info.url}"
    with _data_folder(source, wanted) as data:
        paths = [data / "raw" / _MAIN, *(data / name for name in _LABEL_FILES)]
        missing = next((path for path in paths if not path.is_file()), None)
        if missing:
            raise SourceError(f"{missing}: no such file; {wanted}")
        tables = {path.name: path.read_bytes() for path in paths}
        texts = {path.name: path.read_bytes() for path in sorted((data / "contracts").glob("contract_*.txt"))}
        if not texts:
            raise SourceError(f"{data / 'contracts'}: no contract_N.txt in it; {wanted}")
    return Release(
        rows=_table(_MAIN, tables[_MAIN], columns),
        labels=_labels(row for name in _LABEL_FILES for row in _table(name, tables[name], _LABEL_COLUMNS)),
        texts=dict(_decoded(texts, tally)),
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in (tables | texts).items()},
    )


@contextmanager
def _data_folder(source: Path, wanted: str) -> Iterator[Path]:
    """Yield the folder that holds raw/main.csv; the repository has it packed, as data.zip."""
    folders = sorted(path.parent.parent for path in source.glob(f"**/raw/{_MAIN}"))
    packed = [] if folders else sorted(source.glob("**/data.zip"))
    if len(folders) > 1:
        raise SourceError(f"{source}: several raw/{_MAIN}, in {folders[0]} and {folders[1]}; pass one maud-main folder")
    if folders:
        yield folders[0]
    elif packed:
        with scratch_folder() as folder:
            unpack(packed[0], folder)
            with _data_folder(folder, wanted) as data:
                yield data
    else:
        raise SourceError(f"{source}: no raw/{_MAIN} in it; {wanted}")


def _labels(records: Iterable[dict[str, str]]) -> Labels:
    labels = Labels()
    for record in records:
        if record.get("data_type") in _MADE_UP:
            continue
        contract = Path(record["contract_name"]).stem
        point = " ".join(record["text_type"].split())
        if point == MAE:
            labels.owners[definition_key(record["text"])].add(contract)
            labels.verbatim.add(record["text"])
        asked = [record["question"], record.get("subquestion", "")]
        question = ", ".join(part for part in asked if part and part != "<NONE>")
        labels.answers[contract, point][question] = record["answer"]
    return labels


def _decoded(texts: dict[str, bytes], tally: Tally) -> Iterator[tuple[str, str]]:
    for name, data in texts.items():
        try:
            yield Path(name).stem, data.decode("utf-8")
        except UnicodeDecodeError as error:
            tally.fault("agreement is not UTF-8", f"{name}: byte {error.start}")


def _table(name: str, data: bytes, wanted: Collection[str]) -> list[dict[str, str]]:
    """Return the rows by column; headers with their spaces made single, missing ones refused."""
    csv.field_size_limit(_LONGEST_CELL)
    try:
        records = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{name}: not a CSV file in UTF-8: {error}; get it again") from error
    # the release has two spaces in one header: "Fiduciary exception:  Board determination (no-shop)"
    header = [" ".join(cell.split()) for cell in records[0]] if records else []
    missing = [column for column in wanted if column not in header]
    if missing:
        raise SourceError(f"{name}: no column {missing[0]!r} ({len(missing)} missing); is this MAUD's {name}?")
    uneven = next((n for n, record in enumerate(records, 1) if record and len(record) != len(header)), None)
    if uneven is not None:
        raise SourceError(f"{name}: record {uneven} has {len(records[uneven - 1])} fields, the header {len(header)}")
    return [dict(zip(header, record, strict=True)) for record in records[1:] if record]
