"""The Parquet files that `datasets` and the Hub's viewer read: questions, gold, and the corpus with its PDFs.

`datasets` reads all configs of a repository with one builder, and only the Parquet builder supports both nested
questions and PDFs. The tables contain a second copy of the PDFs, uncompressed, so that the Hub's storage recognises the
same bytes and stores them only once.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exhibit.engine import Engine, track
from exhibit.evidence import read_document
from exhibit.law.language import language_of
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.models import BundleInfo, Gold, Row
from exhibit.storage.locations import read_start

PARQUET = "parquet"
_GROUP_BYTES = 32 << 20  # bytes of a row group, which a writer holds in memory and the Hub's viewer downloads whole
_LANGUAGE_CHARS = 4000  # characters of a document from which its language is detected
_LANGUAGE_SHARE = 0.1  # least share of documents in a listed language; a lower share may be a wrong guess

_PDF = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_PDF_FEATURE = {"huggingface": json.dumps({"info": {"features": {"pdf": {"_type": "Pdf"}}}})}
"""Schema metadata, by which `datasets` opens the column `pdf` as PDFs; it infers the other columns' types."""
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


def write_tables(
    bundle: BundleInfo, folder: Path, *, rows: Sequence[Row], gold: Sequence[Gold], engine: Engine,
    texts: Path | None = None,
) -> tuple[dict[str, str], list[str], bool]:  # fmt: skip
    """Write the tables; return their paths by config (the default first), the languages, and if there are PDFs."""
    (folder / PARQUET).mkdir()
    tables = {}
    if rows:
        tables["questions"] = pa.Table.from_pylist([row.model_dump() for row in rows], schema=QUESTIONS)
        tables["gold"] = make_gold_table(gold)
    configs = {name: f"{PARQUET}/{name}.parquet" for name in (*tables, "corpus")}
    for name, table in tables.items():
        pq.write_table(table, folder / configs[name], compression="zstd")
    return configs, *_write_corpus(bundle, folder, configs["corpus"], engine, texts)


def make_gold_table(gold: Sequence[Gold]) -> Any:
    """Return the gold as a table; a label has the type of its values, or text if their types differ."""
    names = list(dict.fromkeys(name for line in gold for name in line.labels))
    fields = {name: _infer_type([line.labels.get(name) for line in gold]) for name in names}
    records = [line.model_dump() for line in gold]
    for record in records:
        for name, value in record["labels"].items():
            record["labels"][name] = str(value) if fields[name] == _TEXT and value is not None else value
    # Parquet cannot store a struct without fields
    return pa.Table.from_pylist(records, schema=pa.schema({**GOLD, "labels": pa.struct(fields)} if fields else GOLD))


def _infer_type(values: list[Any]) -> Any:
    try:
        kind = pa.infer_type(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return _TEXT
    return _TEXT if kind == pa.null() else kind


def _write_corpus(
    bundle: BundleInfo, folder: Path, path: str, engine: Engine, texts: Path | None
) -> tuple[list[str], bool]:
    """Write the documents in row groups of limited size; return their languages, and whether some are PDFs."""
    files = [folder / CORPUS / document.filename for document in bundle.documents]
    is_pdf = [b"%PDF-" in read_start(file, 1024) for file in files]
    schema = pa.schema({**_CORPUS, "pdf": _PDF}, metadata=_PDF_FEATURE) if any(is_pdf) else pa.schema(_CORPUS)
    columns = [name for name in schema.names if name not in {"pdf", "text"}]
    # PDFs are already compressed; left unchanged, the Hub recognises the same bytes in corpus/
    compression = {**dict.fromkeys([*columns, "text"], "zstd"), "pdf.bytes": "none", "pdf.path": "none"}
    languages: Counter[str] = Counter()
    group, size = list[dict[str, Any]](), 0
    with pq.ParquetWriter(
        folder / path, schema, compression=compression, use_dictionary=columns, write_statistics=columns
    ) as writer:
        tracked = track(_read_texts(files, engine, texts), total=len(files), label="tables")
        for document, file, pdf, text in zip(bundle.documents, files, is_pdf, tracked, strict=True):
            if text.strip():
                languages[language_of(text[:_LANGUAGE_CHARS])] += 1
            if size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_pylist(group, schema=schema))
                group, size = [], 0
            data = file.read_bytes() if pdf else b""
            content = {"bytes": data, "path": file.name} if pdf else None
            group.append({**document.model_dump(), "licence": bundle.licence.name, "text": text, "pdf": content})
            size += len(text) + len(data)
        writer.write_table(pa.Table.from_pylist(group, schema=schema))
    shown = [language for language, count in languages.most_common() if count >= _LANGUAGE_SHARE * len(files)]
    return shown, any(is_pdf)


def _read_texts(files: Sequence[Path], engine: Engine, texts: Path | None) -> Iterator[str]:
    known = [texts / file.name if texts and (texts / file.name).is_file() else None for file in files]
    read = engine.map(_read_text, [file for file, text in zip(files, known, strict=True) if text is None])
    for text in known:
        yield next(read).unwrap() if text is None else text.read_bytes().decode("utf-8")


def _read_text(file: Path) -> str:
    return without_surrogates(read_document(file).text)


def without_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
