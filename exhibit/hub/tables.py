"""The Parquet files that `datasets` and the Hub's viewer read: questions, gold, and the corpus with its PDFs.

`datasets` reads all configs of a repository with one builder, chosen for the first config. Only the Parquet
builder supports both nested questions and PDFs: JSON cannot contain bytes, and `datasets` resolves a path
in JSON from the working folder. The tables therefore contain the PDFs once more. They are not compressed
there, so that the Hub's storage recognises the same bytes and stores them only once.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from huggingface_hub import DatasetCard, DatasetCardData

from exhibit.engine import Engine, track
from exhibit.evidence import read_document
from exhibit.law.language import language_of
from exhibit.schemas.bundle import CARD, CORPUS
from exhibit.schemas.models import BundleInfo, Gold, Licence, Row
from exhibit.storage.locations import Location, read_start

PARQUET = "parquet"
_GROUP_BYTES = 32 << 20
"""Bytes of a row group: it is in memory at once, and the viewer downloads it to show a page of rows."""
_SHARD_BYTES = 500 << 20  # bytes of a file: the size that `datasets` itself uses for uploads
_HEAD_BYTES = 1 << 20  # of a card, with its header
_LANGUAGE_CHARS = 4000  # characters of a document whose language is detected
_LANGUAGE_SHARE = 0.1  # a language of fewer documents is not named: it may be a wrong guess

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
    """A config (a table of rows) of a dataset on the Hugging Face Hub, as the dataset card lists it."""

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
) -> tuple[list[HubConfig], list[str]]:
    """Write the tables into `parquet/`; return their configs, the default one first, and the documents' languages."""
    (folder / PARQUET).mkdir()
    configs = []
    if rows:
        configs.append(write_parquet(folder, "questions", QUESTIONS, (row.model_dump() for row in rows)))
        configs.append(write_parquet(folder, "gold", make_gold_schema(gold), make_gold_records(gold)))
    corpus, languages = _write_corpus(bundle, folder, engine, texts)
    return [*configs, corpus], languages


def write_parquet(folder: Path, name: str, schema: Any, records: Iterable[dict[str, Any]]) -> HubConfig:
    """Write records as the Parquet file `name`; return its entry for the YAML header of the dataset card."""
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
    """Return the Arrow schema of the gold table."""
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


def _write_corpus(bundle: BundleInfo, folder: Path, engine: Engine, texts: Path | None) -> tuple[HubConfig, list[str]]:
    files = [folder / CORPUS / document.filename for document in bundle.documents]
    has_pdf = any(_is_pdf(file) for file in files)
    schema = pa.schema({**_CORPUS, "pdf": _PDF} if has_pdf else _CORPUS)
    languages: Counter[str] = Counter()

    def make_records() -> Iterator[dict[str, Any]]:
        tracked = track(_read_texts(files, engine, texts), total=len(files), label="tables")
        for document, file, text in zip(bundle.documents, files, tracked, strict=True):
            if text.strip():
                languages[language_of(text[:_LANGUAGE_CHARS])] += 1
            record = {**document.model_dump(), "licence": bundle.licence.name, "text": text}
            if has_pdf:
                record["pdf"] = {"bytes": file.read_bytes(), "path": file.name} if _is_pdf(file) else None
            yield record

    size = _write_shards(folder / PARQUET, schema, make_records())
    shown = [language for language, count in languages.most_common() if count >= _LANGUAGE_SHARE * len(files)]
    path = f"{PARQUET}/corpus-*.parquet"
    return HubConfig("corpus", path, describe_features(schema), len(files), size, has_pdf), shown


def _read_texts(files: Sequence[Path], engine: Engine, texts: Path | None) -> Iterator[str]:
    """Yield the text of each file; only files whose text is not in `texts` are read."""
    known = [texts / file.name if texts and (texts / file.name).is_file() else None for file in files]
    read = engine.map(_read_text, [file for file, text in zip(files, known, strict=True) if text is None])
    for text in known:
        yield next(read).unwrap() if text is None else text.read_bytes().decode("utf-8")


def _read_text(file: Path) -> str:
    return read_document(file).text.encode("utf-8", "replace").decode("utf-8")


def _is_pdf(file: Path) -> bool:
    return b"%PDF-" in read_start(file, 1024)


def _write_shards(folder: Path, schema: Any, records: Iterable[dict[str, Any]]) -> int:
    """Write documents into row groups and files of limited size; return their size in memory, in bytes."""
    columns = [name for name in schema.names if name not in {"pdf", "text"}]
    # PDFs are already compressed; left unchanged, the Hub recognises the same bytes in corpus/
    compression = {**dict.fromkeys([*columns, "text"], "zstd"), "pdf.bytes": "none", "pdf.path": "none"}
    how = {"compression": compression, "use_dictionary": columns, "write_statistics": columns}
    total = written = number = 0
    writer: Any = None
    for group, size in _group_by_size(records):
        if writer is None or written >= _SHARD_BYTES:
            if writer is not None:
                writer.close()
            path = folder / f"corpus-{number:05}.parquet"
            writer, number, written = pq.ParquetWriter(path, schema, **how), number + 1, 0
        table = pa.Table.from_pylist(group, schema=schema)
        writer.write_table(table)
        total, written = total + table.nbytes, written + size
    writer.close()
    return total


def _group_by_size(records: Iterable[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Yield the records in groups with their sizes; one empty group if there are no records."""
    group: list[dict[str, Any]] = []
    size = groups = 0
    for record in records:
        group.append(record)
        size += len(record["text"]) + len((record.get("pdf") or {}).get("bytes", b""))
        if size >= _GROUP_BYTES:
            yield group, size
            group, size, groups = [], 0, groups + 1
    if group or not groups:
        yield group, size


# ---------------------------------------------------------------- features


def describe_features(schema: Any) -> list[dict[str, Any]]:
    """Return the columns of an Arrow schema in the form that the YAML header of a dataset card declares."""
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
    bundle: BundleInfo,
    configs: Sequence[HubConfig],
    *,
    languages: Sequence[str],
    tags: Sequence[str],
    annotations: Sequence[str],
    derived: str,
) -> str:
    """Return the YAML header of the dataset card: licence, language, tags, tables and their columns."""
    has_questions = bundle.counts.questions > 0
    has_pages = any(document.pages for document in bundle.documents)
    words = [*tags, "rag", "retrieval-augmented-generation", *(["pdf"] if has_pages else [])]
    licence: dict[str, Any] = _describe_licence(bundle.licence)
    data = DatasetCardData(
        **licence,
        language=list(languages) or None,
        multilinguality=("multilingual" if len(languages) > 1 else "monolingual") if languages else None,
        pretty_name=_without_surrogates(bundle.title),
        task_categories=["question-answering", "text-retrieval"] if has_questions else ["text-retrieval"],
        task_ids=["closed-domain-qa", "document-retrieval"] if has_questions else ["document-retrieval"],
        annotations_creators=list(annotations) or None,
        source_datasets=[f"extended|other-{derived}"] if derived else None,
        tags=[_without_surrogates(tag) for tag in dict.fromkeys(words)],
        size_categories=find_size_category(bundle.counts.questions or bundle.counts.documents),
        configs=[
            {
                "config_name": config.name,
                **({"default": True} if not index else {}),
                "data_files": [{"split": "train", "path": config.path}],
            }
            for index, config in enumerate(configs)
        ],
        dataset_info=[
            {
                "config_name": config.name,
                "features": config.features,
                "splits": [{"name": "train", "num_bytes": config.bytes, "num_examples": config.rows}],
            }
            for config in configs
        ],
    )
    return f"{data.to_yaml()}\n"


def read_languages(root: Location) -> list[str]:
    """Return the languages that the card of a bundle states, as codes; English if it states none."""
    try:
        text = read_start(root / CARD, _HEAD_BYTES).decode("utf-8", "replace")
        head = DatasetCard(text).data.to_dict()  # type: ignore[no-untyped-call]
    except (OSError, ValueError):
        head = {}
    return list(head.get("language") or ["en"])


def _without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def find_size_category(rows: int) -> str:
    """Return the Hub's size category for a number of rows, such as `1K<n<10K`."""
    names = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M"]
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def _describe_licence(licence: Licence) -> dict[str, Any]:
    """Return the licence as the Hub's identifier, or as `other` with a name that the Hub accepts."""
    if licence.id.lower() in LICENCES - {"other"}:
        return {"license": licence.id.lower()}
    name = re.sub(r"[^a-z0-9.]+", "-", licence.name.lower()).strip("-.") or "unnamed"
    link = {"license_link": licence.url} if licence.url else {}
    return {"license": "other", "license_name": name, **link}
