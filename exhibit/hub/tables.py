"""The Parquet files that `datasets` and the Hub's viewer read: questions, gold, and the corpus with its PDFs.

`datasets` reads all configs of a repository with one builder, chosen for the first config. Only the Parquet
builder supports both nested questions and PDFs: JSON cannot contain bytes, and `datasets` resolves a path
in JSON from the working folder. The tables therefore contain the PDFs once more. They are not compressed
there, so that the Hub's storage recognises the same bytes and stores them only once.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from exhibit.engine import Engine, track
from exhibit.evidence import read_document
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.models import BundleInfo, DocumentEntry, Gold, Licence, Row
from exhibit.storage.locations import read_start

PARQUET = "parquet"
_GROUP_BYTES = 32 << 20
"""Bytes of a row group: it is in memory at once, and the viewer downloads it to show a page of rows."""
_SHARD_BYTES = 500 << 20
"""Bytes of a file: the size that `datasets` itself uses for uploads."""

_PDF = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_TEXT, _NUMBER = pa.string(), pa.int64()
_SPANS = pa.list_(pa.list_(_NUMBER))
_CONTEXTS = pa.list_(pa.struct([("filename", _TEXT), ("text", _TEXT)]))
QUESTIONS = pa.schema(
    {"id": _NUMBER, "question": _TEXT, "answer": _TEXT, "is_impossible": pa.bool_(), "contexts": _CONTEXTS}
)
_PLACE = {"filename": _TEXT, "pages": pa.list_(_NUMBER), "spans": _SPANS, "alternatives": pa.list_(_SPANS)}
GOLD = {"id": _NUMBER, "context": _NUMBER, **_PLACE, "how": _TEXT, "score": pa.float64()}
_COUNTED = {"filename": _TEXT, "title": _TEXT, "pages": _NUMBER, "characters": _NUMBER}
_CORPUS = {**_COUNTED, "source": _TEXT, "licence": _TEXT, "text": _TEXT}


@dataclass(frozen=True)
class HubConfig:
    """A config (a table of rows) of a dataset on the Hugging Face Hub, as the dataset card lists it.

    It has its name, the path of its files, its features for the library `datasets`, and its number of rows.
    """

    name: str
    path: str
    features: list[dict[str, Any]]
    rows: int
    bytes: int
    """The size of the rows in memory, in bytes."""
    pdf: bool = False


def write_tables(
    bundle: BundleInfo,
    folder: Path,
    *,
    rows: Sequence[Row],
    gold: Sequence[Gold],
    engine: Engine,
    texts: Path | None = None,
) -> list[HubConfig]:
    """Write the tables into `parquet/` and return their configs, the default config first.

    A bundle without questions has only the config `corpus`.

    Args:
        texts: a folder with texts that were already extracted, as UTF-8 under the documents' names; the
            documents of these texts are not read again.
    """
    (folder / PARQUET).mkdir()
    configs = []
    with _give_memory_back():
        if rows:
            configs.append(write_parquet(folder, "questions", QUESTIONS, (row.model_dump() for row in rows)))
            configs.append(write_parquet(folder, "gold", make_gold_schema(gold), make_gold_records(gold)))
        configs.append(_write_corpus(bundle, folder, engine, texts))
    return configs


@contextmanager
def _give_memory_back() -> Iterator[None]:
    """Make Arrow return memory to the system at once within the block.

    Arrow's own memory pool keeps 100 MB after 50 MB of PDFs.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def write_parquet(folder: Path, name: str, schema: Any, records: Iterable[dict[str, Any]]) -> HubConfig:
    """Write records as the Parquet file `name`; return its entry for the YAML header of the dataset card.

    The entry has the table's name, path, columns, number of rows and size.
    """
    path = f"{PARQUET}/{name}.parquet"
    # a thousand rows at a time: Python objects take ten times the memory of a table
    parts = [schema.empty_table()]
    rest = iter(records)
    while some := list(islice(rest, 1000)):
        parts.append(pa.Table.from_pylist(some, schema=schema))
    table = pa.concat_tables(parts).combine_chunks()
    pq.write_table(table, folder / path, compression="zstd")
    return HubConfig(name, path, describe_features(schema), len(table), table.nbytes)


# ---------------------------------------------------------------- gold


def make_gold_schema(gold: Iterable[Gold], columns: Mapping[str, Any] = GOLD) -> Any:
    """Return the Arrow schema of the gold table.

    The column `labels` is a struct with a field for each label. The field is boolean, integer or float if all
    values of the label are, otherwise text. Without any labels, the column is left out.
    """
    kinds: dict[str, set[type]] = {}
    for line in gold:
        for name, value in line.labels.items():
            kinds.setdefault(name, set()).update(() if value is None else (type(value),))
    labels = pa.struct([(name, _label_type(kind)) for name, kind in kinds.items()])
    # Parquet cannot store a struct without fields
    return pa.schema({**columns, "labels": labels} if kinds else columns)


def _label_type(kinds: set[type]) -> Any:
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    return pa.float64() if kinds in ({float}, {int, float}) else pa.string()


def make_gold_records(gold: Sequence[Gold]) -> Iterator[dict[str, Any]]:
    """Yield the lines of gold as records that match `make_gold_schema`."""
    labels = make_gold_schema(gold, {}).types[:1]
    texts = {field.name for kind in labels for field in kind if pa.types.is_string(field.type)}
    for line in gold:
        shown = {
            name: str(value) if name in texts and value is not None else value for name, value in line.labels.items()
        }
        yield {**line.model_dump(), "labels": shown}


# ---------------------------------------------------------------- corpus


def _write_corpus(bundle: BundleInfo, folder: Path, engine: Engine, texts: Path | None) -> HubConfig:
    files = [folder / CORPUS / document.filename for document in bundle.documents]
    pdfs = any(_is_pdf(file) for file in files)
    schema = pa.schema({**_CORPUS, "pdf": _PDF} if pdfs else _CORPUS)
    writer = _Shards(folder / PARQUET, schema)
    tracked = track(_read_texts(files, engine, texts), total=len(files), label="tables")
    for document, file, text in zip(bundle.documents, files, tracked, strict=True):
        writer.add(_make_document(document, bundle, text, file, pdfs))
    writer.close()
    return HubConfig("corpus", f"{PARQUET}/corpus-*.parquet", describe_features(schema), len(files), writer.bytes, pdfs)


def _make_document(entry: DocumentEntry, bundle: BundleInfo, text: str, file: Path, pdfs: bool) -> dict[str, Any]:
    record = {**entry.model_dump(), "licence": bundle.licence.name, "text": text}
    if pdfs:
        record["pdf"] = {"bytes": file.read_bytes(), "path": entry.filename} if _is_pdf(file) else None
    return record


def _read_texts(files: Sequence[Path], engine: Engine, texts: Path | None) -> Iterator[str]:
    """Yield the text of each file; only files whose text is not in `texts` are read."""
    known = [texts / file.name if texts and (texts / file.name).is_file() else None for file in files]
    read = engine.map(_read_text, [file for file, text in zip(files, known, strict=True) if text is None])
    for text in known:
        yield next(read).unwrap() if text is None else text.read_bytes().decode("utf-8")


def _read_text(file: Path) -> str:
    """Return the text that gold offsets refer to; a lone surrogate, which cannot be stored, becomes a question mark."""
    return read_document(file).text.encode("utf-8", "replace").decode("utf-8")


def _is_pdf(file: Path) -> bool:
    return b"%PDF-" in read_start(file, 1024)


class _Shards:
    """Writes documents into row groups and files of limited size; one row group is in memory at a time."""

    def __init__(self, folder: Path, schema: Any) -> None:
        self._folder, self._schema = folder, schema
        self._path = folder
        self._files = 0
        self._writer: Any = None
        self._written = 0
        self._group: list[dict[str, Any]] = []
        self._held = 0
        self.bytes = 0

    def add(self, record: dict[str, Any]) -> None:
        """Add a document's record; the records are written when enough bytes are collected."""
        self._group.append(record)
        self._held += len(record["text"]) + len((record.get("pdf") or {}).get("bytes", b""))
        if self._held >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the remaining documents; write an empty corpus as a table without rows."""
        if self._group or not self._files:
            self._flush()
        self._end_file()

    def _end_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer, self._written = None, 0

    def _flush(self) -> None:
        if self._writer is None:
            self._path = self._folder / f"corpus-{self._files:05}.parquet"
            columns = [name for name in self._schema.names if name not in {"pdf", "text"}]
            self._writer = pq.ParquetWriter(
                self._path,
                self._schema,
                # PDFs are already compressed; left unchanged, the Hub recognises the same bytes in corpus/
                compression={**dict.fromkeys([*columns, "text"], "zstd"), "pdf.bytes": "none", "pdf.path": "none"},
                use_dictionary=columns,
                write_statistics=columns,
            )
            self._files += 1
        table = pa.Table.from_pylist(self._group, schema=self._schema)
        self._group.clear()  # clear before writing: the writer holds a copy of the documents
        self._writer.write_table(table)
        self.bytes += table.nbytes
        self._written += self._held
        self._held = 0
        if self._written >= _SHARD_BYTES:
            self._end_file()


# ---------------------------------------------------------------- features


def describe_features(schema: Any) -> list[dict[str, Any]]:
    """Return the columns of an Arrow schema in the form that the YAML header of a dataset card declares.

    Each column is a dict with its name and its type.
    """
    return [{"name": field.name, **_describe_feature(field.type)} for field in schema]


def _describe_feature(kind: Any) -> dict[str, Any]:
    if kind == _PDF:
        return {"dtype": "pdf"}
    if pa.types.is_struct(kind):
        return {"struct": describe_features(kind)}
    if not pa.types.is_list(kind):
        return {"dtype": str(kind).replace("double", "float64")}
    item = kind.value_type
    if pa.types.is_struct(item):
        return {"list": describe_features(item)}
    inner = _describe_feature(item)
    return {"list": inner.get("dtype", inner)}


# ---------------------------------------------------------------- the card's YAML header


LICENCES = frozenset(Path(__file__).with_name("licences.txt").read_text(encoding="ascii").split())
"""The licence identifiers that the Hub knows; it refuses a card with any other identifier."""


def format_head(
    bundle: BundleInfo, configs: Sequence[HubConfig], *, tags: Sequence[str], annotations: Sequence[str], derived: str
) -> str:
    """Return the YAML header of the dataset card: licence, language, tags, tables and their columns."""
    asked = bundle.counts.questions > 0
    paged = any(document.pages for document in bundle.documents)
    fields: dict[str, Any] = {
        **_describe_licence(bundle.licence),
        "language": ["en"],
        "multilinguality": ["monolingual"],
        "pretty_name": bundle.title,
        "task_categories": ["question-answering", "text-retrieval"] if asked else ["text-retrieval"],
        "task_ids": ["closed-domain-qa", "document-retrieval"] if asked else ["document-retrieval"],
    }
    if annotations:
        fields["annotations_creators"] = list(annotations)
    if derived:
        fields["source_datasets"] = [f"extended|other-{derived}"]
    words = [*tags, "rag", "retrieval-augmented-generation", *(["pdf"] if paged else [])]
    fields["tags"] = list(dict.fromkeys(words))
    fields["size_categories"] = [find_size_category(bundle.counts.questions or bundle.counts.documents)]
    fields["configs"] = [_describe_config(config, default=not index) for index, config in enumerate(configs)]
    fields["dataset_info"] = [
        {
            "config_name": config.name,
            "features": config.features,
            "splits": [{"name": "train", "num_bytes": config.bytes, "num_examples": config.rows}],
        }
        for config in configs
    ]
    return dump(fields)


def find_size_category(rows: int) -> str:
    """Return the Hub's size category for a number of rows, such as `1K<n<10K`."""
    names = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M"]
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def _describe_config(config: HubConfig, *, default: bool) -> dict[str, Any]:
    return {
        "config_name": config.name,
        **({"default": True} if default else {}),
        "data_files": [{"split": "train", "path": config.path}],
    }


def _describe_licence(licence: Licence) -> dict[str, str]:
    """Return the licence as the Hub's identifier, or as `other` with a name that the Hub accepts."""
    if licence.id in LICENCES - {"other"}:
        return {"license": licence.id}
    name = re.sub(r"[^a-z0-9.]+", "-", licence.name.lower()).strip("-.") or "unnamed"
    link = {"license_link": licence.url} if licence.url else {}
    return {"license": "other", "license_name": name, **link}


_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[a-z][a-z0-9_]*", re.IGNORECASE)


class _Quoting(yaml.SafeDumper):
    """A YAML dumper that quotes every text that YAML could parse as another type."""

    def ignore_aliases(self, _: Any) -> bool:
        """Return True, so that a repeated value is written in full each time and not as a YAML alias."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    whole = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return dumper.represent_str(whole) if _PLAIN.fullmatch(text) else dumper.represent_scalar(_STRING, whole, style='"')


_STRING = "tag:yaml.org,2002:str"
_Quoting.add_representer(str, _represent_text)


def dump(value: dict[str, Any]) -> str:
    """Return a mapping as YAML, with its keys in their order."""
    return str(yaml.dump(value, Dumper=_Quoting, sort_keys=False, allow_unicode=True, width=math.inf))
