"""Features of every conversion: the card's command, gold from answers, counts of exclusions, and linear run time."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit.conversion import main
from exhibit.converters.civil_procedure.corpus import restore_full_name
from exhibit.converters.squad import make_names
from exhibit.converters.statutes import OUT_OF_RANGE, SAME_DAY
from exhibit.converters.tables.documents import Shelf
from exhibit.hub.card import _format_command, find_sample

LEASE = "The tenant shall pay the rent on the first day of each month, without any deduction or set-off whatsoever."


def read_command(card: str) -> list[str]:
    line = next(line for line in card.splitlines() if line.startswith("exhibit convert "))
    return shlex.split(line)[2:]


def test_card_prints_a_command_that_reproduces_the_bundle(convert, samples, tmp_path, monkeypatch):
    name = "acord"
    bundle = convert(name, "--source", samples / name, "--max-documents", "3", "--split", "train")
    converter, *words = read_command((bundle / "README.md").read_text(encoding="utf-8"))
    assert converter == name and words[-2:] == ["--out", f"datasets_out/{name}"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(samples)
    assert main([name, *words, "--jobs", "1"]) == 0
    again = tmp_path / "datasets_out" / name
    assert (again / "train.json").read_bytes() == (bundle / "train.json").read_bytes()


def test_card_of_a_sample_has_the_licence_of_the_project(convert, samples):
    card = (convert("squad", "--source", samples / "squad") / "README.md").read_text(encoding="utf-8")
    assert "An invented sample" in card and "license: apache-2.0" in card
    assert "--source samples/squad" in card and "@inproceedings" not in card and "The project Exhibit" in card


def test_find_sample_recognises_only_a_folder_of_the_samples(samples, tmp_path):
    assert find_sample(samples / "cuad") == "samples/cuad" and find_sample(samples / "scans") == "samples/scans"
    assert find_sample(samples) == find_sample(tmp_path / "samples" / "cuad") == find_sample(None) == ""


def test_card_command_leaves_out_empty_flags():
    bundle = SimpleNamespace(name="draft", options={"topic": "", "impossible": 0, "ocr": True, "strict": False})
    assert _format_command(bundle, "exhibit draft FOLDER") == (
        "exhibit draft FOLDER --impossible 0 --ocr --out datasets_out/draft"
    )


def test_statutes_converter_counts_excluded_versions_by_reason(convert, tmp_path):
    law = "# Hafengesetz\n\n## § 1 Begriff\n\nEin Hafen ist ein Ort für Schiffe und Boote, die {} sind oder waren.\n"
    folder = tmp_path / "laws" / "harbour"
    folder.mkdir(parents=True)
    for day, words in {"2019-01-01": "hier", "2020-01-01": "dort", "2021-01-01": "fort"}.items():
        (folder / f"{day}.md").write_text(law.format(words), encoding="utf-8")
    same_day = "---\neffective_date: 2020-01-01\n---\n" + law.format("neu")
    (tmp_path / "laws" / "harbour.md").write_text(same_day, encoding="utf-8")
    bundle = convert("statutes", "--source", tmp_path / "laws", "--from", "2020-06-01")
    account = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["account"]["files"]
    assert account == {"given": 4, "kept": 2, "left_out": {SAME_DAY: 1, OUT_OF_RANGE: 1}}


def test_table_adds_gold_for_an_answer_copied_from_a_clause(convert, tmp_path):
    documents = tmp_path / "contracts"
    documents.mkdir()
    (documents / "Café Lease, Inc. & Co.txt").write_text(f"LEASE\n\n{LEASE}\n\nThe law of Norway governs.", "utf-8")
    (documents / "other.txt").write_text("Another contract with other words.", encoding="utf-8")
    answers = {
        "When is rent due?": LEASE,
        "Which law?": "The law of Norway",
        "Any set-off?": LEASE.replace("deduction", "deducton"),
    }
    contract = {"expected_contract_ids": ["Caf__ Lease__Inc__Co"]}
    rows = [{"question": question, "ground_truth": answer, **contract} for question, answer in answers.items()]
    (tmp_path / "set.json").write_text(json.dumps(rows), encoding="utf-8")
    bundle = convert("table", "--source", tmp_path / "set.json", "--documents", documents)
    gold = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["filename"] for line in gold] == ["Café Lease, Inc. & Co.txt.pdf"] * 3
    assert [(line["how"], line["score"]) for line in gold[:2]] == [("answer", 1.0), ("absent", None)]
    assert gold[2]["how"] == "answer" and gold[2]["spans"] == gold[0]["spans"]
    train = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    assert [row["contexts"][0].get("text") for row in train[:2]] == [LEASE, None]


@pytest.mark.parametrize(
    ("name", "file"),
    [("Soci__t__ G__n__rale", "Société Générale.pdf"), ("A__B", "A & B.pdf"), ("Soci__t__", None), ("x__y", None)],
)
def test_find_named_finds_a_file_if_underscores_replace_special_characters(name, file, tmp_path):
    for known in ("Société Générale.pdf", "A & B.pdf", "C.pdf"):
        (tmp_path / known).write_bytes(b"%PDF-")
    found = Shelf(tmp_path / "t.csv", tmp_path, True, None).find_named(name)
    assert (found[0] if found else None) == file


def test_restore_full_name_completes_truncated_name_in_linear_time():
    assert restore_full_name("Part 36_ Offers_", "Offers: to settle") == "Part 36: Offers: to settle"
    assert len(restore_full_name("a" * 400_000 + "_ b", "a" * 400_000)) == 400_003


def test_squad_gives_unique_names_to_20000_contexts_with_same_title():
    names = make_names(["Decision"] * 20_000)
    assert names[0] == "Decision_0000.pdf" and len(set(names)) == 20_000


def test_docs_example_converter_runs_from_a_file(tmp_path, convert):
    page = (Path(__file__).parents[2] / "docs" / "converters.md").read_text(encoding="utf-8")
    code = next(part for part in page.split("```python\n") if part.startswith('"""My benchmark')).partition("```")[0]
    record = page.partition("```json\n")[2].partition("```")[0]
    file, source = tmp_path / "mine.py", tmp_path / "release"
    (source / "texts").mkdir(parents=True)
    file.write_text(code, encoding="utf-8")
    rows = [*json.loads(record), {"question": "Who?", "answer": "x", "document": "none.txt", "quote": "x"}]
    (source / "questions.json").write_text(json.dumps(rows), encoding="utf-8")
    (source / "texts" / "lease.txt").write_text("LEASE\n\nThe tenant shall pay the rent.", encoding="utf-8")
    bundle = convert(str(file), "--source", source, "--short")
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["counts"]["located"]["exact"] == 1
    assert info["left_out"] == {"document is missing": ["question 1: none.txt"]}
    assert (info["licence"]["id"], info["licence"]["redistributable"]) == ("cc0-1.0", True)
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert "exhibit convert mine.py --source PATH --short --out datasets_out/mine" in card


def test_convert_refuses_missing_converter_file_or_file_without_read_function(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("INFO = None\n", encoding="utf-8")
    assert main([str(tmp_path / "mine.py"), "--out", str(tmp_path / "out")]) == 1
    assert "has no read; see the example in docs/converters.md" in capsys.readouterr().err
    assert main([str(tmp_path / "none.py"), "--out", str(tmp_path / "out")]) == 1
    assert "no such file" in capsys.readouterr().err


def test_convert_summary_names_unreadable_documents_and_missing_files(convert, tmp_path, capsys):
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "lease.txt").write_text(LEASE, encoding="utf-8")
    (documents / "broken.pdf").write_bytes(b"junk")
    table = tmp_path / "q.csv"
    table.write_text(f'question,answer,document\nWhen?,"{LEASE}",lease.txt\n', encoding="utf-8")
    convert("table", "--source", table, "--documents", documents)
    shown = capsys.readouterr().out
    assert "left out: document cannot be read" in shown and "broken.pdf: not a PDF" in shown
    convert("table", "--source", table, out="without", expect=1)
    assert "no questions left; 1 × no such file" in (error := capsys.readouterr().err) and "lease.txt" in error
