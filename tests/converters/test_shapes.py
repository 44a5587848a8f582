"""Test sets in users' formats, each about fictional documents, are converted without flags."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader, PdfWriter

from exhibit.converters import Tally, table
from exhibit.converters.tables.gold import NO_LAW
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from tests.conversion import options_of
from tests.evidence.files import pdf, xlsx

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


def written(path: Path, content: Any) -> Path:
    """Write the content in the format of the file: bytes, text, JSON lines, Parquet or one JSON object."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in content), encoding="utf-8")
    elif path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(content), path)
    else:
        path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def lines_of(bundle: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines()]


def golds(bundle: Path) -> list[tuple[str | None, str, str]]:
    """Return the file, the way of matching and the text of each line of gold that belongs to a context."""
    rows = {row["id"]: row for row in json.loads((bundle / TRAIN).read_text(encoding="utf-8"))}
    assert validate(bundle) == []
    return [
        (line["filename"], line["how"], rows[line["id"]]["contexts"][line["context"]].get("text") or "")
        for line in lines_of(bundle)
        if line["context"] is not None
    ]


RENT = "The tenant shall pay a rent of EUR 1,200 a month."
ASK = "What rent is due?"
LEASED, LAWS, REPORT = "harbour-lease.txt", "bootmg.md", "OSTRANDER_2023_AR.pdf"

QUOTED: dict[str, tuple[str, Any]] = {
    "a sheet with a quote": ("t.csv", f'question,answer,file,quote\n{ASK},"EUR 1,200",{LEASED},"{RENT}"\n'),
    "FinanceBench": (
        "t.jsonl",
        [
            {"financebench_id": "f1", "question": ASK, "answer": "x", "justification": "as said"}
            | {"doc_name": "harbour-lease", "evidence": [{"evidence_text": RENT, "evidence_page_num": 0}]}
        ],
    ),
    "DeepEval": (
        "t.json",
        [
            {"input": ASK, "expected_output": "EUR 1,200", "context": [RENT], "source_file": LEASED}
            | {"actual_output": None, "retrieval_context": None}
        ],
    ),
    "LangSmith": (
        "t.jsonl",
        [
            {
                "id": "a1",
                "inputs": {"question": ASK},
                "outputs": {"answer": "EUR 1,200", "quote": RENT, "document": "harbour-lease"},
                "metadata": {"split": "base"},
            }
        ],
    ),
    "Phoenix": (
        "t.json",
        {
            "data": [
                {
                    "input": {"query": ASK},
                    "output": {"response": "EUR 1,200"},
                    "metadata": {"document": LEASED, "gold_context": RENT},
                }
            ]
        },
    ),
    "objects under a name that says nothing": (
        "t.json",
        {"version": 2, "cases": [{"query": ASK, "answer": "x", "spans": [{"quote": RENT, "file": {"name": LEASED}}]}]},
    ),
    "a Parquet file of structs": (
        "t.parquet",
        [{"question": ASK, "answer": "x", "evidence": [{"text": RENT, "document": LEASED, "page": 1}]}],
    ),
    "columns": (
        "t.json",
        {
            "question": [ASK, ASK + " Why?"],
            "answer": ["x", "y"],
            "contexts": [[RENT], [RENT]],
            "filename": [LEASED, LEASED],
        },
    ),
    "rows by id": (
        "t.json",
        {id: {"question": f"{ASK} {id}", "answer": "x", "quote": RENT, "file": LEASED} for id in ("q1", "q2")},
    ),
    "an object in a cell of a sheet": (
        "t.csv",
        f'question,answer,gold\n{ASK},x,"{{""text"": ""{RENT}"", ""filename"": ""{LEASED}""}}"\n',
    ),
}


@pytest.mark.parametrize("shape", QUOTED)
def test_table_locates_quotes_given_in_every_supported_shape(shape, documents, tmp_path, convert):
    name, content = QUOTED[shape]
    bundle = convert("table", "--source", written(tmp_path / name, content), "--documents", documents, "--as", "is")
    assert set(golds(bundle)) == {(LEASED, "exact", RENT)}


PROVISIONS: dict[str, tuple[str, Any, list[tuple[str, str]]]] = {
    "norm ids below `queries`": (
        "t.json",
        {
            "queries": [
                {
                    "query": "Wer wartet?",
                    "expected_norm_ids": ["bootmg-2", "bootmg-2a"],
                    "expected_answer_contains": ["Vermieter"],
                }
            ]
        },
        [(LAWS, "§ 2 Pflichten"), (LAWS, "§ 2a Kaution")],
    ),
    "citations with the law": (
        "t.jsonl",
        [
            {
                "question": "Wer trägt die Kosten?",
                "answer": "Er.",
                "expected_citations": "§ 2 Abs. 1 Satz 2 BootMG; § 1 BootMG",
            }
        ],
        [(LAWS, "Er trägt die Kosten"), (LAWS, "§ 1 Anwendungsbereich")],
    ),
    "a workbook with sections": (
        "t.xlsx",
        xlsx(["Question", "Expected section", "Contract"], ["How can it end?", "Section 2.02(b)", "harbour-lease"]),
        [(LEASED, "(b) at once where")],
    ),
    "a schedule and an article": (
        "t.csv",
        f'question,gold_citations,doc\nWho reads?,"Schedule 1, para 2",{LEASED}\nWhat?,Article I,{LEASED}\n',
        [(LEASED, "2. One electricity meter"), (LEASED, "ARTICLE I")],
    ),
    "law and article in an object": (
        "t.jsonl",
        [{"question": "Кога?", "answer": "30", "relevant_articles": [{"law_id": "ports_act", "article": "Чл. 155."}]}],
        [("ports_act.txt", "Чл. 155. Таксата")],
    ),
    "a column known by its cells": (
        "t.jsonl",
        [{"question": "Kaution?", "answer": "x", "fundstelle": "§ 2a BootMG"}],
        [(LAWS, "§ 2a Kaution")],
    ),
}


@pytest.mark.parametrize("shape", PROVISIONS)
def test_table_locates_named_provisions_with_their_text(shape, documents, tmp_path, convert):
    name, content, expected = PROVISIONS[shape]
    bundle = convert("table", "--source", written(tmp_path / name, content), "--documents", documents, "--as", "is")
    found = golds(bundle)
    assert [(file, how) for file, how, _ in found] == [(file, "section") for file, _ in expected]
    for (_, _, text), (_, begins) in zip(found, expected, strict=True):
        assert text.startswith(begins)
    assert all(line["labels"]["provision"] for line in lines_of(bundle))


def test_table_notes_provisions_that_are_absent_or_of_no_document(documents, tmp_path, convert):
    rows = [
        {"question": "a", "answer": "x", "citations": ["§ 77 BootMG"]},
        {"question": "b", "answer": "x", "citations": ["§ 3 StGB"]},
        {"question": "c", "answer": "x", "citations": ["Section 2.01"]},
        {"question": "d", "answer": "x", "citations": ["§ 2a BootMG"]},
    ]
    bundle = convert("table", "--source", written(tmp_path / "t.jsonl", rows), "--documents", documents, "--as", "is")
    noted = json.loads((bundle / INFO).read_text(encoding="utf-8"))["noted"]
    assert noted["provision is not in the document"] == ["line 1: § 77 BootMG in bootmg.md"]
    assert noted["provision of a law that is not in the documents"] == ["line 2: § 3 StGB"]
    assert noted[NO_LAW] == ["line 3: Section 2.01"]
    assert [how for _, how, _ in golds(bundle)] == ["absent", "section"]


@pytest.mark.parametrize("first", [0, 1])
def test_table_counts_pages_from_0_if_a_row_states_page_0(first, documents, tmp_path, convert):
    stated = {
        "Annual report of Ostrander Boats Inc.": 0,
        "The order book grew by eleven per cent.": 1,
        "Revenue was EUR 4.2 million in total.": 2,
    }
    rows = [
        {
            "question": "What?",
            "answer": "x",
            "evidence": [{"evidence_text": words, "doc_name": "OSTRANDER_2023_AR", "evidence_page_num": page + first}],
        }
        for words, page in stated.items()
    ]
    bundle = convert("table", "--source", written(tmp_path / "t.jsonl", rows), "--documents", documents, "--as", "is")
    assert [(line["pages"], line["alternatives"]) for line in lines_of(bundle)] == [([1], []), ([2], []), ([3], [])]


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
    options = options_of(table, "--jobs", 1, "--documents", documents)
    (row,) = table.read(written(tmp_path / "t.jsonl", rows), options, Tally()).rows
    assert row.is_impossible is impossible


def test_table_replaces_multiple_choice_letter_with_the_words_of_the_option(documents, tmp_path):
    rows = [
        {
            "input": [{"role": "user", "content": "Which rent?"}],
            "choices": ["EUR 900", "EUR 1,200"],
            "target": "B",
            "id": "i1",
            "metadata": {"document": LEASED},
        }
    ]
    options = options_of(table, "--jobs", 1, "--documents", documents)
    (row,) = table.read(written(tmp_path / "samples.jsonl", rows), options, Tally()).rows
    assert (row.question, row.answer, row.labels["label"]) == ("Which rent?", "EUR 1,200", "EUR 1,200")
    assert json.loads(str(row.labels["options"])) == ["EUR 900", "EUR 1,200"]


def test_table_reads_grades_of_sections(documents, tmp_path, convert):
    rows = [
        {
            "question": "Pflichten?",
            "answer": "x",
            "relevant_sections": [
                {"law": "BootMG", "section": "§ 2", "relevance": 3},
                {"law": "BootMG", "section": "§ 1", "relevance": 0},
            ],
        }
    ]
    bundle = convert("table", "--source", written(tmp_path / "t.jsonl", rows), "--documents", documents, "--as", "is")
    (line,) = lines_of(bundle)
    assert line["labels"]["grade"] == 3 and line["labels"]["provision"] == "§ 2"
    assert line["alternatives"] == []


def test_table_reads_beir_folder_as_documents_and_graded_gold(tmp_path, convert):
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    written(folder / "corpus.jsonl", [{"_id": "c1", "title": "Rent", "text": RENT}, {"_id": "c2", "text": "No pets."}])
    written(folder / "queries.jsonl", [{"_id": "q1", "text": ASK}, {"_id": "q2", "text": "Pets?"}])
    written(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\nq1\tc1\t3\nq1\tc2\t0\nq2\tc9\t1\n")
    bundle = convert("table", "--source", folder)
    (line,) = lines_of(bundle)
    assert (line["filename"], line["labels"]["grade"], line["labels"]["id"]) == ("c1.pdf", 3, "q1")
    assert json.loads((bundle / INFO).read_text(encoding="utf-8"))["left_out"] == {
        "query whose judged documents are all missing": ["q2"]
    }


# ---------------------------------------------------------------- what is not understood


def test_table_error_for_unknown_columns_suggests_flags_that_work(documents, tmp_path, convert):
    rows = [{"ask": ASK, "reply": "EUR 1,200", "wording": RENT, "where": LEASED, "n": 1}]
    source = written(tmp_path / "t.jsonl", rows)
    with pytest.raises(SourceError, match="which column is the question") as error:
        table.read(source, options_of(table, "--jobs", 1), Tally())
    assert str(error.value).count("--question") == 3 and "--question ask" in str(error.value)
    flags = ["--question", "ask", "--answer", "reply", "--text", "wording", "--document", "where"]
    bundle = convert("table", "--source", source, "--documents", documents, "--as", "is", *flags)
    assert golds(bundle) == [(LEASED, "exact", RENT)]
