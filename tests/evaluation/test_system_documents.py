"""Parsed texts and chunks as other tools write them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from exhibit.evaluation.system_documents import read_chunks, read_parsed, read_parsed_folder
from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError

WORDS = "The Ferryman carries the mail across the sound on every weekday that the wind allows."
TABLE = [["Cargo", "Fare"], ["Sheep", "3 crowns"], ["Piano", "40 crowns"]]
HTML = "<table>" + "".join(f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in TABLE) + "</table>"


def named(name: str) -> str | None:
    return "ferry.pdf" if Path(name).stem.split(".")[0].lower() == "ferry" else None


MINERU = [
    {"type": "text", "text": WORDS, "page_idx": 0},
    {"type": "table", "table_caption": ["Fares"], "table_body": HTML, "table_footnote": [], "page_idx": 0},
    {"type": "text", "text": "Signed at the jetty.", "page_idx": 1},
]
UNSTRUCTURED = [
    {"type": "NarrativeText", "text": WORDS, "metadata": {"page_number": 1, "filename": "ferry.pdf"}},
    {"type": "Table", "text": "Cargo Fare …", "metadata": {"page_number": 1, "text_as_html": HTML}},
    {"type": "NarrativeText", "text": "Signed at the jetty.", "metadata": {"page_number": 2}},
]
MARKER = {
    "block_type": "Document",
    "children": [
        {"block_type": "Page", "html": "<content-ref/>", "page": 1,
         "children": [{"html": f"<p>{WORDS}</p>"}, {"html": HTML}]},
        {"block_type": "Page", "page": 2, "children": [{"html": "<p>Signed at the jetty.</p>"}]},
    ],
}  # fmt: skip
ROWS_OF_MARKDOWN = "| Sheep | 3 crowns |\n| Piano | 40 crowns |"
LLAMAPARSE = {
    "pages": [
        {"page": 1, "text": "another form", "md": f"{WORDS}\n\n| Cargo | Fare |\n|---|---|\n" + ROWS_OF_MARKDOWN},
        {"page": 2, "md": "Signed at the jetty."},
    ]
}


@pytest.mark.parametrize("form", [MINERU, UNSTRUCTURED, MARKER, LLAMAPARSE])
def test_read_parsed_reads_parser_json_in_order_with_pages(form: object, tmp_path: Path) -> None:
    path = tmp_path / "ferry.json"
    path.write_text(json.dumps(form), encoding="utf-8")
    document = read_parsed(path, "ferry.pdf")
    at = [document.text.index(words) for words in (WORDS, "Sheep", "Piano", "40 crowns", "Signed at the jetty.")]
    assert at == sorted(at)
    assert "<" not in document.text
    assert [page.number for page in document.pages] == [1, 2]
    assert document.pages_of(Span(at[0], at[0] + 3)) == [1]
    assert document.pages_of(Span(at[-1], at[-1] + 3)) == [2]


def test_read_parsed_splits_text_into_pages_at_form_feed(tmp_path: Path) -> None:
    (tmp_path / "ferry.txt").write_text(f"{WORDS}\fSigned at the jetty.", encoding="utf-8")
    assert len(read_parsed(tmp_path / "ferry.txt", "ferry.pdf").pages) == 2
    (tmp_path / "ferry.md").write_text(f"# Ferry\n\n<!-- image -->\n\n{WORDS}", encoding="utf-8")
    document = read_parsed(tmp_path / "ferry.md", "ferry.pdf")
    assert document.pages == ()
    assert "image" not in document.text
    assert WORDS in document.text


def test_read_parsed_rejects_json_without_text_or_nested_too_deep(tmp_path: Path) -> None:
    (tmp_path / "ferry.json").write_text('{"version": 3, "pages": []}', encoding="utf-8")
    with pytest.raises(ToolkitError, match="markdown"):
        read_parsed(tmp_path / "ferry.json", "ferry.pdf")
    (tmp_path / "ferry.json").write_text('{"children": [' * 480 + "]}" * 480, encoding="utf-8")
    with pytest.raises(ToolkitError, match="too deep"):
        read_parsed(tmp_path / "ferry.json", "ferry.pdf")


def test_read_parsed_folder_lists_other_files_and_rejects_two_texts_of_document(tmp_path: Path) -> None:
    (tmp_path / "ferry").mkdir()
    (tmp_path / "ferry" / "ferry.md").write_text(WORDS, encoding="utf-8")
    (tmp_path / "lighthouse.md").write_text("Lamps.", encoding="utf-8")
    (tmp_path / "ferry.png").write_bytes(b"x")
    texts, left_out = read_parsed_folder(tmp_path, named)
    assert texts["ferry.pdf"].text == WORDS and left_out == ["ferry.png", "lighthouse.md"]
    (tmp_path / "ferry.txt").write_text(WORDS, encoding="utf-8")
    with pytest.raises(ToolkitError, match="remove one of them"):
        read_parsed_folder(tmp_path, named)
    with pytest.raises(ToolkitError, match="no such folder"):
        read_parsed_folder(tmp_path / "nowhere", named)


ROWS: list[dict[str, object]] = [
    {"text": WORDS, "filename": "ferry.pdf", "start": 0, "end": len(WORDS)},
    {"page_content": WORDS, "metadata": {"source": "/data/ferry.pdf"}},
    {"chunk_text": WORDS, "document": "ferry.pdf", "char_start": 4, "char_end": 9},
]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_read_chunks_finds_text_file_and_span_by_known_keys(
    row: dict[str, object], ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"chunks.{ending}"
    if ending == "parquet":
        parquet.write_table(pa.Table.from_pylist([row]), path)
    else:
        path.write_text(json.dumps(row if ending == "jsonl" else [row]), encoding="utf-8")
    (chunk,) = read_chunks(path, named)
    assert (chunk.text, chunk.filename) == (WORDS, "ferry.pdf")
    start = row.get("start", row.get("char_start"))
    assert (chunk.span.start if chunk.span else None) == start


@pytest.mark.parametrize(("text", "why"), [('{"text": ""}', "no chunk has text"), ("not JSON", "not JSON")])
def test_read_chunks_rejects_missing_file_and_file_without_chunks(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "chunks.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(ToolkitError, match=why):
        read_chunks(tmp_path / "chunks.jsonl", named)
    with pytest.raises(ToolkitError, match="no such file"):
        read_chunks(tmp_path / "nothing.jsonl", named)
