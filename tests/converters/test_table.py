"""Tables: columns are named or guessed, a cell holds one or several values, and documents are found or downloaded."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from exhibit.converters import Benchmark, Tally, table
from exhibit.converters.table import NO_LAW
from exhibit.converters.tables.documents import QUESTIONS
from exhibit.evidence import read_document
from exhibit.evidence.check import check_gold
from exhibit.evidence.fold import fold
from exhibit.schemas.bundle import INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from tests.conversion import options_of
from tests.converters.account import read_gold, read_rows
from tests.converters.site import Site, serve
from tests.evidence.files import pdf, xlsx

QUESTION = {"question": "Who pays?", "answer": "The tenant.", "document": "lease.txt", "text": "The tenant pays."}


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("table")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two short documents, into which tests write tables."""
    (tmp_path / "lease.txt").write_text("The tenant pays. The landlord repairs.", encoding="utf-8")
    (tmp_path / "terms.md").write_text("Nobody pays.", encoding="utf-8")
    return tmp_path


def read(source: Path, *flags: str | Path, tally: Tally | None = None) -> Benchmark:
    """Read a source without making a bundle, because printing its documents may need a browser."""
    return table.read(source, options_of(table, "--jobs", 1, *flags), tally or Tally())


def write(path: Path, *rows: dict[str, Any]) -> Path:
    """Write rows in the format of the file's suffix."""
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".xlsx":
        cells = [list(rows[0]), *(list(row.values()) for row in rows)]
        path.write_bytes(xlsx(*cells, more={"notes": [["not a question"]]}))
    elif path.suffix == ".json":
        path.write_text(json.dumps({"version": 1, "rows": rows}), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
        path.write_text("\ufeff" + buffer.getvalue(), encoding="utf-8", newline="")
    return path


def quotes(benchmark: Benchmark) -> list[list[tuple[str, str | None]]]:
    return [[(quote.filename, quote.text) for quote in row.quotes] for row in benchmark.rows]


def test_table_locates_passages_in_printed_and_copied_documents(bundle):
    rows = read_rows(bundle)
    documents = {path.name: read_document(path).text for path in (bundle / "corpus").iterdir()}
    printed = {"harbour-lease.txt.pdf", "staff-handbook.md.pdf", "mooring-terms.html.pdf"}
    assert set(documents) == {*printed, "Notice of 12 September.PDF"}
    found = [line for line in read_gold(bundle) if line["spans"]]
    assert len(found) == 9
    for line in found:
        (span,) = line["spans"]
        words = rows[line["id"]]["contexts"][line["context"]]["text"]
        assert fold(documents[line["filename"]][slice(*span)]) == fold(words)


def test_table_reads_name_title_and_licence_from_flags(convert, samples):
    flags = ["--name", "harbour", "--title", "Harbour papers", "--licence", "CC-BY-4.0", "--redistributable"]
    bundle = convert("table", "--source", samples / "table", "--as", "is", *flags)
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert (info["name"], info["title"]) == ("harbour", "Harbour papers")
    assert info["licence"]["id"] == "cc-by-4.0"
    assert info["licence"]["redistributable"] is True
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "exhibit convert table --source samples/table --as is" in card
    assert "\nlicense: cc-by-4.0\n" in card
    assert "--title 'Harbour papers'" in card
    assert "Please cite" not in card


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "xlsx", "parquet"])
def test_table_reads_the_same_questions_from_every_format(folder, ending):
    rows = [QUESTION, {**QUESTION, "question": 'Who "repairs"?', "text": "The landlord repairs."}]
    benchmark = read(write(folder / f"table.{ending}", *rows))
    assert [(row.id, row.question) for row in benchmark.rows] == [(0, "Who pays?"), (1, 'Who "repairs"?')]
    assert quotes(benchmark) == [[("lease.txt.pdf", "The tenant pays.")], [("lease.txt.pdf", "The landlord repairs.")]]


def test_table_counts_malformed_lines_without_changing_ids_of_other_rows(folder):
    path = folder / "table.jsonl"
    path.write_text(f'{{"question": \n["a list"]\n{json.dumps(QUESTION)}\n', encoding="utf-8")
    tally = Tally()
    assert [row.id for row in read(path, tally=tally).rows] == [2]
    assert [len(lines) for lines in tally.left_out.values()] == [2]
    with pytest.raises(SourceError, match="line 1"):
        read(path, tally=Tally(strict=True))


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.json", b"{", "not JSON"),
        ("t.json", b'{"a": [], "b": []}', "one such list"),
        ("t.json", b'["a"]', "list of objects"),
        ("t.yaml", b"a: [", "not YAML"),
        ("t.csv", b"question,question\n", "two columns named 'question'"),
        ("t.csv", b"question,answer\nwho \x00\x01\xff,x\n", "no text in any known encoding"),
        ("t.xlsx", b"PK\x03\x04 nothing", "damaged"),
        ("t.parquet", b"PAR1 nothing", "not a Parquet file"),
    ],
)
def test_table_refuses_a_file_that_is_not_a_table(tmp_path, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=complaint):
        read(tmp_path / name)


def test_table_detects_and_notes_encodings_other_than_utf8(folder):
    lines = "question;answer;document\nWho pays the café?;The tenant – £400;lease.txt\n"
    path = folder / "table.csv"
    for encoding in ("cp1252", "utf-16"):
        path.write_bytes(lines.encode(encoding))
        tally = Tally()
        (row,) = read(path, tally=tally).rows
        assert (row.question, row.answer) == ("Who pays the café?", "The tenant – £400")
        assert tally.noted["table is not UTF-8"] == [f"table.csv: read as {encoding}"]


def test_table_guesses_columns_and_prints_the_guess(folder, capsys):
    names = ("Prompt", "Ground Truth", "Doc_Name", "Evidence")
    benchmark = read(write(folder / "t.jsonl", dict(zip(names, QUESTION.values(), strict=True))))
    assert quotes(benchmark) == [[("lease.txt.pdf", "The tenant pays.")]]
    shown = "question = Prompt (by its name), answer = Ground Truth (by its name), document = Doc_Name (by its name)"
    assert shown in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "flags", "complaint"),
    [
        (QUESTION, ["--answer", "reply"], "no column 'reply' for --answer"),
        ({"question": "Who?", "where": "lease.txt"}, [], "no column of answers, passages, provisions or documents"),
        ({"question": "Who?", "answer": "x", "where": "lease.txt"}, [], "no row names a document"),
    ],
)
def test_table_error_for_missing_columns_lists_existing_columns(folder, row, flags, complaint):
    with pytest.raises(SourceError, match=complaint) as error:
        read(write(folder / "t.jsonl", row), *flags)
    assert f"(its columns: {', '.join(row)})" in str(error.value)


def test_table_uses_numeric_ids_unchanged_and_merges_rows_with_the_same_id(folder):
    rows = [
        {"id": 40, **QUESTION, "note": "a"},
        {"id": 7, **QUESTION, "question": "Who repairs?"},
        {"id": 40, **QUESTION, "text": "Nobody pays.", "document": "terms.md", "answer": "Nobody.", "note": "b"},
        {"id": 40, **QUESTION, "question": "Something else?"},
    ]
    tally = Tally()
    benchmark = read(write(folder / "t.jsonl", *rows), tally=tally)
    assert [(row.id, row.answer) for row in benchmark.rows] == [(40, "The tenant."), (7, "The tenant.")]
    assert quotes(benchmark)[0] == [("lease.txt.pdf", "The tenant pays."), ("terms.md.pdf", "Nobody pays.")]
    assert benchmark.rows[0].labels == {"note": "a"}
    assert benchmark.rows[0].quotes[1].labels == (("note", "b"),)
    assert tally.left_out == {"another question under the id of an earlier row": ["line 7: 40"]}
    assert tally.noted["another answer under the same id: the first is kept"] == ["line 5: 40"]


@pytest.mark.parametrize(
    ("document", "text", "expected"),
    [
        ("lease.txt", ["The tenant pays.", "", "The tenant pays."], [("lease.txt.pdf", "The tenant pays.")]),
        (["lease.txt", "terms.md"], [], [("lease.txt.pdf", None), ("terms.md.pdf", None)]),
        (["lease.txt", "terms.md"], ["a", "b"], [("lease.txt.pdf", "a"), ("terms.md.pdf", "b")]),
        (
            "lease.txt",
            [{"content": "-", "quote": "a"}, "[sic] b"],
            [("lease.txt.pdf", "a"), ("lease.txt.pdf", "[sic] b")],
        ),
        ("['lease.txt', 'terms.md']", '["a", "b"]', [("lease.txt.pdf", "a"), ("terms.md.pdf", "b")]),
    ],
)
def test_table_reads_several_documents_and_passages_from_a_cell(folder, document, text, expected):
    row = {**QUESTION, "document": document, "text": text}
    assert quotes(read(write(folder / "t.jsonl", row))) == [expected]


def test_table_counts_incomplete_rows_by_reason(folder):
    rows = [
        QUESTION,
        {**QUESTION, "question": " "},
        {**QUESTION, "document": ["lease.txt", "terms.md"]},
        {**QUESTION, "document": None},
        {**QUESTION, "document": None, "text": None},
        {**QUESTION, "answer": None, "text": None},
        {**QUESTION, "impossible": "perhaps"},
    ]
    tally = Tally()
    assert len(read(write(folder / "t.jsonl", *rows), tally=tally).rows) == 1
    assert tally.left_out == {
        "the row has no question": ["line 3"],
        "1 passages, but 2 documents; name one document, or one for each passage": ["line 5"],
        "passage without a document": ["line 7"],
        "row names no document": ["line 9"],
        "row without an answer or a passage": ["line 11"],
        "the cell that marks impossible questions must be yes or no": ["line 13"],
    }


def test_table_drops_passages_of_impossible_questions(folder):
    rows = [{**QUESTION, "impossible": False}, {**QUESTION, "impossible": True}, {**QUESTION, "impossible": "1"}]
    path = write(folder / "t.jsonl", *rows)
    tally = Tally()
    benchmark = read(path, tally=tally)
    assert [(row.is_impossible, len(row.quotes), row.filename) for row in benchmark.rows] == [
        (False, 1, "lease.txt.pdf"),
        (True, 0, "lease.txt.pdf"),
        (True, 0, "lease.txt.pdf"),
    ]
    assert tally.noted["impossible question with passages: they are ignored"] == ["line 3", "line 5"]


def test_table_finds_documents_by_path_name_or_similar_name(tmp_path):
    documents = tmp_path / "documents"
    (documents / "deep").mkdir(parents=True)
    for name in ("deep/Lease & Licence.txt", "Terms.md", "Verre-Élor agreement of 2019.txt", "spare.txt"):
        (documents / name).write_text("The tenant pays.", encoding="utf-8")
    lease = "Lease & Licence.txt.pdf"
    names = {
        "deep/Lease & Licence.txt": lease,
        "/elsewhere/Lease & Licence.txt": lease,
        "lease_licence": lease,
        "C:\\files\\Terms": "Terms.md.pdf",
        "Verre-_lor agreement of 2019.pdf": "Verre-Élor agreement of 2019.txt.pdf",
    }
    rows = [{**QUESTION, "document": name} for name in [*names, "nowhere.txt"]]
    tally = Tally()
    benchmark = read(write(tmp_path / "t.jsonl", *rows), "--documents", documents, tally=tally)
    assert [row.quotes[0].filename for row in benchmark.rows] == list(names.values())
    assert tally.left_out == {"document is not in the folder": ["line 11: nowhere.txt"]}
    assert "spare.txt.pdf" in [document.filename for document in benchmark.documents], "unused documents are included"
    assert tally.noted["document paired with a file of a similar name"] == [
        "Verre-_lor agreement of 2019.pdf -> Verre-Élor agreement of 2019.txt"
    ]


@pytest.mark.parametrize("name", ["questions.csv", "sub/questions.xlsx", "questions.jsonl"])
def test_table_excludes_the_table_file_from_the_documents(folder, name, monkeypatch):
    (folder / "sub").mkdir()
    source = write(folder / name, QUESTION)
    monkeypatch.chdir(folder)
    for given in (source, Path(name)):  # the same file by its absolute and by its relative path
        tally = Tally()
        benchmark = read(given, "--documents", folder, tally=tally)
        assert len(benchmark.documents) == 2
        assert tally.left_out == {QUESTIONS: [name]}


def test_table_refuses_document_paths_outside_the_folder(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("The tenant pays.", encoding="utf-8")
    (inner / "link.txt").symlink_to(secret)
    names = ["../secret.txt", str(secret), "link.txt"]
    tally = Tally()
    path = write(inner / "t.jsonl", *({**QUESTION, "document": name} for name in names))
    assert read(path, tally=tally).rows == []
    places = [f"line {2 * number + 1}: {name}" for number, name in enumerate(names)]
    assert tally.left_out["path leads out of the table's folder; pass the file's folder with --documents"] == places


@pytest.fixture
def site(samples: Path, tmp_path: Path) -> Iterator[Site]:
    """A site on this machine that has one PDF."""
    (tmp_path / "papers").mkdir()
    shutil.copyfile(samples / "table/documents/Notice of 12 September.PDF", tmp_path / "papers/notice of break.pdf")
    with serve(tmp_path) as running:
        yield running


def test_table_downloads_documents_named_by_url(folder, site, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    page = f"{site.url}/papers/notice%20of%20break.pdf"
    rows = [QUESTION, {**QUESTION, "document": page}, {**QUESTION, "document": f"{site.url}/gone.pdf"}]
    path = write(folder / "t.jsonl", *rows)
    tally = Tally()
    benchmark = read(path, "--allow-private", "--delay", "0", tally=tally)
    assert [row.quotes[0].filename for row in benchmark.rows] == ["lease.txt.pdf", "notice%20of%20break.pdf"]
    assert benchmark.documents[1].source == page
    assert benchmark.documents[1].path is not None
    gone = f"line 5: {site.url}/gone.pdf (HTTP 404 not found)"
    assert tally.left_out["document could not be fetched"] == [gone]
    refused = Tally()
    assert len(read(path, "--delay", "0", "--refetch", tally=refused).rows) == 1, "a loopback address is refused"


NOTICE = "Either party may end this lease by ninety days' notice in writing."
TERM = "The term of this lease is five years from the first day of May 2021."


@pytest.fixture
def leases(tmp_path: Path) -> Path:
    """A folder with three leases, two of which have the same clause."""
    documents = tmp_path / "leases"
    documents.mkdir()
    for name, text in (("Alder.txt", f"{NOTICE} The rent is £900."), ("Birch.txt", TERM), ("Cedar.txt", TERM)):
        (documents / name).write_text(f"Lease. {text} The end of {name}. A lease.", encoding="utf-8")
    return documents


HEAD = ["No.", "What the client asks", "Expected", "Agreement", "Clause relied on"]


def test_table_reads_a_sheet_with_merged_cells_and_empty_rows(leases, tmp_path):
    rows = [["Lease review, May 2026"], [], HEAD, [1, "How is it ended?", "90 days", "Alder", NOTICE],
            [2, "What is the rent?", "£900", None, "The rent is £900."], [],
            [3, "How long?", "5 years", "birch.TXT", TERM], [4, None, "x", "Cedar", TERM]]  # fmt: skip
    path = write_content(tmp_path / "q.xlsx", xlsx(*rows, merged=("A1:E1", "D4:D5")))
    tally = Tally()
    flags = ["--documents", leases, "--question", "What the client asks", "--answer", "Expected"]
    benchmark = read(path, *flags, tally=tally)
    assert quotes(benchmark) == [
        [("Alder.txt.pdf", NOTICE)], [("Alder.txt.pdf", "The rent is £900.")], [("Birch.txt.pdf", TERM)],
    ]  # fmt: skip
    assert tally.left_out == {"the row has no question": ["row 8"]}, "rows are counted from 1, like in Excel"
    assert tally.noted["row above the header of the table"] == ["q.xlsx: row 1: Lease review, May 2026"]
    guesses = tally.noted["column guessed from its name or its cells"]
    assert {"document = Agreement", "text = Clause relied on"} <= set(guesses)
    copy = tmp_path / "q.csv"
    text = "\n".join(",".join("" if cell is None else f'"{cell}"' for cell in row) for row in rows)
    copy.write_text(text.replace('"£900",,', '"£900","Alder",'), encoding="utf-8")
    assert quotes(read(copy, *flags)) == quotes(benchmark), "a .csv file gives the same quotes"


def test_table_assigns_passage_to_the_only_document_that_contains_the_text(leases, tmp_path):
    tally = Tally()
    row = {"user_input": "How is it ended?", "reference": "By notice"}
    row |= {"reference_contexts": [f"<1-hop>\n\n{NOTICE}", TERM]}
    lost = {"user_input": "Who signs?", "reference": "Alder", "reference_contexts": ["of another edition"]}
    benchmark = read(write(tmp_path / "goldens.json", row, lost), "--documents", leases, tally=tally)
    assert quotes(benchmark) == [[("Alder.txt.pdf", NOTICE)], []] and benchmark.rows[0].answer == "By notice"
    [ambiguous] = tally.noted["passage that names no document and is in several documents: it is not gold"]
    assert ambiguous.startswith("row 1: 'The term")
    assert len(tally.noted["passage that names no document and is in no document"]) == 1


LEASE = """HARBOUR LEASE

between Brackwater Moorings Ltd and Ostrander Boats Inc.

ARTICLE I
DEFINITIONS

Section 1.01 Berth. "Berth" means berth 14 on the north quay.

Section 1.02 Term. The term begins on 1 May 2023 and lasts three years.

ARTICLE II
RENT AND NOTICE

Section 2.01 Rent. The tenant shall pay a rent of EUR 1,200 a month.

Section 2.02 Notice. Either party may end this lease
(a) by notice in writing of ninety days, or
(b) at once where the other party is insolvent.

SCHEDULE 1
FITTINGS

1. Two fenders and a gangway.

2. One electricity meter, which the landlord reads.
"""
LAW = """# Gesetz über die Vermietung von Booten (BootMG)

## § 1 Anwendungsbereich

Dieses Gesetz gilt für die Vermietung von Booten an Verbraucher.

## § 2 Pflichten des Vermieters

(1) Der Vermieter hat das Boot seetüchtig zu übergeben. Er trägt die Kosten der Wartung.

(2) Mängel sind unverzüglich zu beheben.

## § 2a Kaution

Die Kaution darf eine Monatsmiete nicht übersteigen.
"""
STATUTE = """Закон за пристанищата

Чл. 154. Пристанището се управлява от държавата.

Чл. 155. Таксата се плаща в срок от тридесет дни.

Чл. 156. Нарушенията се наказват с глоба.
"""
PAGES = [
    "Annual report of Ostrander Boats Inc. Revenue was EUR 4.2 million in total.",
    "Results by quarter. The order book grew by eleven per cent.",
    "Summary. Revenue was EUR 4.2 million in total. The board thanks the crew.",
]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A contract, two laws and a report of three pages."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "harbour-lease.txt").write_text(LEASE, encoding="utf-8")
    (folder / "bootmg.md").write_text(LAW, encoding="utf-8")
    (folder / "ports_act.txt").write_text(STATUTE, encoding="utf-8")
    writer = PdfWriter()
    for page in PAGES:
        writer.add_page(PdfReader(io.BytesIO(pdf(page))).pages[0])
    writer.write(folder / "OSTRANDER_2023_AR.pdf")
    return folder


def write_content(path: Path, content: Any) -> Path:
    """Write content to a file: bytes and text unchanged, a list as rows, and any other value as JSON."""
    if isinstance(content, list):
        return write(path, *content)
    data = content if isinstance(content, str | bytes) else json.dumps(content, ensure_ascii=False)
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


@pytest.fixture
def convert_content(convert, documents: Path, tmp_path: Path):
    """A function that writes content to a file of this name and converts it; the documents are copied unchanged."""

    def run(name: str, content: Any) -> Path:
        source = write_content(tmp_path / name, content)
        return convert("table", "--source", source, "--documents", documents, "--as", "is")

    return run


def list_gold(bundle: Path) -> list[tuple[str | None, str, str]]:
    """Return the file, the match method and the text of each line of gold that belongs to a context."""
    rows = read_rows(bundle)
    assert validate(bundle) == []
    return [
        (line["filename"], line["how"], rows[line["id"]]["contexts"][line["context"]].get("text") or "")
        for line in read_gold(bundle)
        if line["context"] is not None
    ]


RENT = "The tenant shall pay a rent of EUR 1,200 a month."
ASK = "What rent is due?"
LEASED, LAWS = "harbour-lease.txt", "bootmg.md"

ROW_BY_ID = f"{{question: {ASK}, answer: x, quote: '{RENT}', file: {LEASED}}}"
QUOTED: dict[str, tuple[str, Any]] = {
    "a sheet with a quote": ("t.csv", f'question,answer,file,quote\n{ASK},"EUR 1,200",{LEASED},"{RENT}"\n'),
    "semicolons in an answer": ("t.csv", f'question,answer,file,quote\n{ASK},a; b; c; d; e; f,{LEASED},"{RENT}"\n'),
    "semicolons between cells": ("t.csv", f'Leases, 2024\nquestion;answer;quote\n{ASK};1, 2, 3, 4;"{RENT}"\n'),
    "FinanceBench": ("t.jsonl", [{
        "financebench_id": "f1", "question": ASK, "answer": "x", "justification": "as said",
        "doc_name": "harbour-lease", "evidence": [{"evidence_text": RENT, "evidence_page_num": 0}]}]),
    "DeepEval": ("t.json", [{
        "input": ASK, "expected_output": "EUR 1,200", "context": [RENT], "source_file": LEASED, "actual_output": None,
        "retrieval_context": None}]),
    "LangSmith": ("t.jsonl", [{
        "id": "a1", "inputs": {"question": ASK}, "metadata": {"split": "base"},
        "outputs": {"answer": "EUR 1,200", "quote": RENT, "document": "harbour-lease"}}]),
    "Phoenix": ("t.json", {"data": [{
        "input": {"query": ASK}, "output": {"response": "EUR 1,200"},
        "metadata": {"document": LEASED, "gold_context": RENT}}]}),
    "objects in a field with an unknown name": ("t.json", {"version": 2, "cases": [{
        "query": ASK, "answer": "x", "spans": [{"quote": RENT, "file": {"name": LEASED}}]}]}),
    "a Parquet file of structs": ("t.parquet", [{
        "question": ASK, "answer": "x", "evidence": [{"text": RENT, "document": LEASED, "page": 1}]}]),
    "columns": ("t.json", {
        "question": [ASK, ASK + " Why?"], "answer": ["x", "y"], "contexts": [[RENT]] * 2, "filename": [LEASED] * 2}),
    "rows by id": ("t.yaml", f"q1: {ROW_BY_ID}\nq2: {ROW_BY_ID}\n"),
    "an object in a cell of a sheet": (
        "t.csv", f'question,answer,gold\n{ASK},x,"{{""text"": ""{RENT}"", ""filename"": ""{LEASED}""}}"\n'),
}  # fmt: skip


@pytest.mark.parametrize("shape", QUOTED)
def test_table_locates_quotes_in_every_supported_column_format(shape, convert_content):
    name, content = QUOTED[shape]
    bundle = convert_content(name, content)
    assert set(list_gold(bundle)) == {(LEASED, "exact", RENT)}


PROVISIONS: dict[str, tuple[str, Any, list[tuple[str, str]]]] = {
    "norm ids below `queries`": ("t.json", {"queries": [{
        "query": "Wer wartet?", "expected_norm_ids": ["bootmg-2", "bootmg-2a"],
        "expected_answer_contains": ["Vermieter"]}]},
        [(LAWS, "§ 2 Pflichten"), (LAWS, "§ 2a Kaution")]),
    "citations with the law": ("t.jsonl", [{
        "question": "Wer trägt die Kosten?", "answer": "Er.",
        "expected_citations": "§ 2 Abs. 1 Satz 2 BootMG; § 1 BootMG"}],
        [(LAWS, "Er trägt die Kosten"), (LAWS, "§ 1 Anwendungsbereich")]),
    "a workbook with sections": (
        "t.xlsx",
        xlsx(["Question", "Expected section", "Contract"], ["How can it end?", "Section 2.02(b)", "harbour-lease"]),
        [(LEASED, "(b) at once where")]),
    "a schedule and an article": (
        "t.csv",
        f'question,gold_citations,doc\nWho reads?,"Schedule 1, para 2",{LEASED}\nWhat?,Article I,{LEASED}\n',
        [(LEASED, "2. One electricity meter"), (LEASED, "ARTICLE I")]),
    "law and article in an object": ("t.jsonl", [{
        "question": "Кога?", "answer": "30", "relevant_articles": [{"law_id": "ports_act", "article": "Чл. 155."}]}],
        [("ports_act.txt", "Чл. 155. Таксата")]),
    "a column recognised by its cells": (
        "t.jsonl", [{"question": "Kaution?", "answer": "x", "fundstelle": "§ 2a BootMG"}], [(LAWS, "§ 2a Kaution")]),
}  # fmt: skip


@pytest.mark.parametrize("shape", PROVISIONS)
def test_table_locates_named_provisions_with_their_text(shape, convert_content):
    name, content, expected = PROVISIONS[shape]
    bundle = convert_content(name, content)
    found = list_gold(bundle)
    assert [(file, how) for file, how, _ in found] == [(file, "section") for file, _ in expected]
    for (_, _, text), (_, begins) in zip(found, expected, strict=True):
        assert text.startswith(begins)
    assert all(line["labels"]["provision"] for line in read_gold(bundle))


def test_table_adds_a_note_for_cited_provisions_that_no_document_contains(convert_content):
    rows = [
        {"question": "a", "answer": "x", "citations": ["§ 77 BootMG"]},
        {"question": "b", "answer": "x", "citations": ["§ 3 StGB"]},
        {"question": "c", "answer": "x", "citations": ["Section 2.01"]},
        {"question": "d", "answer": "x", "citations": ["§ 2a BootMG"]},
    ]
    bundle = convert_content("t.jsonl", rows)
    noted = json.loads((bundle / INFO).read_text(encoding="utf-8"))["noted"]
    assert noted["provision is not in the document"] == ["line 1: § 77 BootMG in bootmg.md"]
    assert noted["provision of a law that is not in the documents"] == ["line 3: § 3 StGB"]
    assert noted[NO_LAW] == ["line 5: Section 2.01"]
    assert [how for _, how, _ in list_gold(bundle)] == ["absent", "section"]


@pytest.mark.parametrize("first", [0, 1])
def test_table_infers_whether_page_numbers_start_at_0_or_1(first, convert_content):
    stated = {
        "The order book grew by eleven per cent.": 1,
        "Revenue was EUR 4.2 million in total.": 2,
        "The board thanks the crew.": 2,
        None: 1,
    }
    rows = [
        {
            "question": "What?",
            "answer": words or "This long answer is worded by a person, so that no page of the report contains it.",
            "evidence": [{"evidence_text": words, "doc_name": "OSTRANDER_2023_AR", "evidence_page_num": page + first}],
        }
        for words, page in stated.items()
    ]
    bundle = convert_content("t.jsonl", rows)
    assert [(line["pages"], line["alternatives"]) for line in read_gold(bundle)] == [([n], []) for n in (2, 3, 3, 2)]
    (note,) = json.loads((bundle / INFO).read_text(encoding="utf-8"))["noted"]["page numbers of the source"]
    assert note.startswith(f"counted from {first}, as ")


def test_table_reads_promptfoo_assertions_as_required_and_forbidden_words(convert_content):
    text = """
description: leases
prompts: [p.txt]
providers: [http]
tests:
  - vars: {question: How long is the notice?, document: harbour-lease.txt, since: 2024-05-01}
    assert:
      - {type: icontains, value: ninety days}
      - {type: contains-any, value: [in writing, written]}
      - {type: not-contains, value: thirty days}
      - {type: latency, threshold: 900}
  - vars: {question: Who wins the cup?, document: harbour-lease.txt}
    assert: [{type: is-refusal}]
"""
    bundle = convert_content("promptfooconfig.yaml", text)
    first, _ = read_gold(bundle)
    assert json.loads(first["labels"]["must_contain"]) == ["ninety days", ["in writing", "written"]]
    assert json.loads(first["labels"]["must_not_contain"]) == ["thirty days"]
    assert first["labels"]["vars.since"] == "2024-05-01"
    rows = json.loads((bundle / TRAIN).read_text(encoding="utf-8"))
    assert [row["is_impossible"] for row in rows] == [False, True]
    noted = json.loads((bundle / INFO).read_text(encoding="utf-8"))["noted"]
    assert noted["assertion of a type that is not read"] == ["row 1: latency"]


@pytest.mark.parametrize(
    ("fields", "impossible"),
    [
        ({"must_refuse": True}, True),
        ({"expected_block": "false"}, False),
        ({"answerable": False}, True),
        ({"should_answer": "yes"}, False),
        ({"expected_verdict": "refuse"}, True),
        ({"expected_verdict": "answer"}, False),
    ],
)
def test_table_recognises_impossible_questions_under_many_field_names(fields, impossible, documents, tmp_path):
    rows = [{"question": "Who?", "answer": "x", "document": LEASED, **fields}]
    (row,) = read(write_content(tmp_path / "t.jsonl", rows), "--documents", documents).rows
    assert row.is_impossible is impossible


def test_table_replaces_multiple_choice_letter_with_the_words_of_the_option(documents, tmp_path):
    row = {"input": [{"role": "user", "content": "Which rent?"}], "choices": ["EUR 900", "EUR 1,200"], "target": "B"}
    rows = [{**row, "id": "i1", "metadata": {"document": LEASED}}]
    (row,) = read(write_content(tmp_path / "samples.jsonl", rows), "--documents", documents).rows
    assert (row.question, row.answer, row.labels["label"]) == ("Which rent?", "EUR 1,200", "EUR 1,200")
    assert json.loads(str(row.labels["options"])) == ["EUR 900", "EUR 1,200"]


def test_table_reads_grades_and_sections_accepted_as_alternatives(convert_content):
    graded = [{"law": "BootMG", "section": f"§ {number}", "relevance": grade} for number, grade in ((2, 3), (1, 0))]
    accepted = ["§ 2a BootMG", "§ 77 BootMG", "ports_act.txt"]
    rows = [
        {"question": "Pflichten?", "answer": "x", "relevant_sections": graded, "acceptable_sections": accepted},
        {"question": ASK, "answer": "x", "document": LEASED, "text": RENT, "acceptable_sections": ["Section 1.02"]},
    ]
    bundle = convert_content("t.jsonl", rows)
    line, quoted = read_gold(bundle)
    assert (quoted["how"], quoted["labels"]["accepted"], len(quoted["alternatives"])) == ("exact", "Section 1.02", 1)
    assert line["labels"]["grade"] == 3 and line["labels"]["provision"] == "§ 2"
    ((start, end),) = line["alternatives"][0]
    text = (bundle / "corpus" / LAWS).read_text(encoding="utf-8")
    assert "Kaution" in text[start - 10 : end + 10] and "Mängel" not in text[start:end]
    noted = json.loads((bundle / INFO).read_text(encoding="utf-8"))["noted"]
    assert noted["accepted alternative not located, or ambiguous"] == ["line 1: § 77 BootMG in bootmg.md"]
    assert check_gold(bundle) == (2, [])


def test_table_error_for_unknown_columns_suggests_flags_that_work(documents, tmp_path, convert):
    rows = [{"ask": ASK, "reply": "EUR 1,200", "wording": RENT, "where": LEASED, "n": 1}]
    source = write_content(tmp_path / "t.jsonl", rows)
    with pytest.raises(SourceError, match="which column is the question") as error:
        read(source)
    assert str(error.value).count("--question") == 3 and "--question ask" in str(error.value)
    flags = ["--question", "ask", "--answer", "reply", "--document", "where"]
    with pytest.raises(SourceError, match="no known field for .* passage .*; name it: --text evidence.wording$"):
        rows = [{"question": ASK, "where": LEASED, "evidence": [{"wording": RENT, "page": 1}]}]
        read(write_content(tmp_path / "o.jsonl", rows))
    flags += ["--text", "wording"]
    bundle = convert("table", "--source", source, "--documents", documents, "--as", "is", *flags)
    assert list_gold(bundle) == [(LEASED, "exact", RENT)]
