"""Parsed texts and chunks as other tools write them."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from exhibit.evaluation.stages import read_chunks, read_parsed_folder
from exhibit.schemas.errors import ToolkitError

WORDS = "The Ferryman carries the mail across the sound on every weekday that the wind allows."


def resolve_name(name: str) -> str | None:
    return "ferry.pdf" if Path(name).stem.split(".")[0].lower() == "ferry" else None


def test_read_parsed_folder_blanks_markup(tmp_path: Path) -> None:
    (tmp_path / "ferry.md").write_text(f"# Ferry\n\n<!-- image -->\n\n{WORDS}", encoding="utf-8")
    text = read_parsed_folder(tmp_path, resolve_name)[0]["ferry.pdf"].text
    assert "image" not in text and WORDS in text


def test_read_parsed_folder_rejects_two_texts_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "ferry").mkdir()
    (tmp_path / "ferry" / "ferry.md").write_text(WORDS, encoding="utf-8")
    (tmp_path / "lighthouse.md").write_text("Lamps.", encoding="utf-8")
    (tmp_path / "ferry.png").write_bytes(b"x")
    texts, left_out = read_parsed_folder(tmp_path, resolve_name)
    assert texts["ferry.pdf"].text == WORDS and left_out == ["ferry.png", "lighthouse.md"]
    (tmp_path / "ferry.txt").write_text(WORDS, encoding="utf-8")
    with pytest.raises(ToolkitError, match="remove one of them"):
        read_parsed_folder(tmp_path, resolve_name)
    with pytest.raises(ToolkitError, match="no such folder"):
        read_parsed_folder(tmp_path / "nowhere", resolve_name)


ROWS: list[dict[str, object]] = [
    {"text": WORDS, "filename": "ferry.pdf", "start": 0, "end": len(WORDS)},
    {"page_content": WORDS, "metadata": {"source": "/data/ferry.pdf"}},
    {"chunk_text": WORDS, "document": "ferry.pdf", "char_start": 4, "char_end": 9},
]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_read_chunks_reads_text_filename_and_span_from_known_keys(
    row: dict[str, object], ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"chunks.{ending}"
    if ending == "parquet":
        parquet.write_table(pa.Table.from_pylist([row]), path)
    else:
        path.write_text(json.dumps(row if ending == "jsonl" else [row]), encoding="utf-8")
    (chunk,) = read_chunks(path, resolve_name)
    assert (chunk.text, chunk.filename) == (WORDS, "ferry.pdf")
    start = row.get("start", row.get("char_start"))
    assert (chunk.span.start if chunk.span else None) == start


@pytest.mark.parametrize(("text", "why"), [('{"text": ""}', "no chunk has text"), ("not JSON", "not JSON")])
def test_read_chunks_rejects_missing_file_and_file_without_chunks(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "chunks.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(ToolkitError, match=why):
        read_chunks(tmp_path / "chunks.jsonl", resolve_name)
    with pytest.raises(ToolkitError, match="no such file"):
        read_chunks(tmp_path / "nothing.jsonl", resolve_name)
