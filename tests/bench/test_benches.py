"""The benches run on the samples, print their tables and compute correct values."""

import json
import os

import numpy as np
import pytest

from bench import answers, conversion, legalbenchrag, scale
from bench.table import Table, measure_tree_memory, publish
from exhibit.__main__ import main as exhibit
from tests.conftest import SAMPLES


def test_publish_writes_a_page_with_title_tables_and_notes(tmp_path, capsys):
    publish(tmp_path / "page.md", "Figures", [Table("Speed", ["", "s"], [["ours", 1.5]])], ["- A note."])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.startswith("# Figures\n") and "| ours | 1.5 |" in page and page.endswith("- A note.\n")
    assert "ours  1.5" in capsys.readouterr().out


def test_measure_tree_memory_includes_the_process_itself():
    assert measure_tree_memory(os.getpid()) > 10_000_000


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Consider the NDA between A and B; does it survive?", "Does it survive?"),
        ("Is it governed by the law of Norway?", "Is it governed by the law of Norway?"),
    ],
)
def test_unname_removes_the_document_name_from_a_question(question, expected):
    assert legalbenchrag.unname(question) == expected


def test_file_of_reworded_questions_has_200_different_questions():
    questions = json.loads(legalbenchrag.FREE.read_text(encoding="utf-8"))
    assert len(questions) == len(set(questions.values())) == 200
    assert legalbenchrag.reword("Nobody asked this?", "free") is None


def test_dataset_table_compares_results_with_the_best_published_value():
    figures = {"ALL": {f"char_precision@{k}": (7.0, (6.0, 8.0)) for k in legalbenchrag.KS}}
    run = legalbenchrag.Run("naive", figures, 776)
    table = legalbenchrag.make_dataset_table([run], "ALL", comparable=True)
    [best] = [row for row in table.rows if row[:2] == ["precision", "*best published*"]]
    [ours] = [row for row in table.rows if row[:2] == ["precision", "`naive`"]]
    assert best[2] == "7.9" and ours[2] == "7.0 ▽" and ours[-1] == "7.0 ▲"
    headline = legalbenchrag.make_headline([run], comparable=True)
    assert ["`naive`", "7.0 [6.0, 8.0]", "–", "–", "–"] in [list(row) for row in headline.rows]


@pytest.mark.slow
def test_legalbenchrag_bench_measures_questions_with_and_without_document_names(tmp_path, capsys):
    words = ["--source", str(SAMPLES / "legalbenchrag"), "--presets", "bm25", "--out", str(tmp_path)]
    assert legalbenchrag.main([*words, "--page", str(tmp_path / "page.md")]) == 0
    assert "| `bm25` |" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert legalbenchrag.main([*words, "--words", "unnamed"]) == 0
    rows = json.loads((tmp_path / "bundles/unnamed/legalbenchrag-mini/train.json").read_text(encoding="utf-8"))
    assert rows and not any(row["question"].startswith("Consider") for row in rows)


def test_held_out_list_contains_a_file_name_in_any_letter_case(tmp_path):
    (tmp_path / "list.tsv").write_text("benchmark\twhere\tdocument\ncuad\tx\tALPHA-Supply Agreement.PDF\n", "utf-8")
    assert answers.make_key("Alpha-Supply Agreement.pdf") in answers.read_held_out(tmp_path / "list.tsv")
    assert answers.read_held_out(tmp_path / "none.tsv") == set()


def test_make_tables_counts_answers_by_outcome(tmp_path, converted, monkeypatch):
    run = ["evaluate", str(converted("privacyqa")), "--preset", "bm25", "--limit", "3", "--jobs", "1"]
    assert exhibit([*run, "--output-dir", str(tmp_path), "--run-name", "run"]) == 0
    outcomes, metrics = answers.make_tables("privacyqa", tmp_path / "run")
    assert sum(row[1] for row in outcomes.rows) == 3
    assert "answer_f1" in [row[0] for row in metrics.rows]


@pytest.mark.slow
def test_answers_bench_converts_and_evaluates_cuad_contracts(tmp_path, monkeypatch, capsys):
    contract = next((SAMPLES / "cuad").rglob("BRAMBLEWICK*.PDF"))
    questions = [
        {
            "id": "linen",
            "question": "For how long shall the agreement be renewed?",
            "answer": "two (2) years",
            "document": contract.name,
            "text": "renewed for one additional period of two (2) years",
        }
    ]
    (tmp_path / "data/ohr").mkdir(parents=True)
    (tmp_path / "data/ohr/questions.jsonl").write_text("".join(map(json.dumps, questions)) + "\n", "utf-8")
    (tmp_path / "data/cuad").symlink_to(SAMPLES / "cuad")
    monkeypatch.setenv("EXHIBIT_DATA", str(tmp_path / "data"))
    assert answers.main(["ohr", "--preset", "bm25", "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "ohr, bm25: outcomes of 1 questions" in shown and "char_recall@8" in shown
    gold = json.loads((tmp_path / "out/bundles/ohr/gold.jsonl").read_text(encoding="utf-8"))
    assert gold["filename"] == contract.name and gold["spans"]


def test_measure_conversion_locates_every_quote_of_the_sample(monkeypatch):
    monkeypatch.setattr(conversion, "find_data", lambda name, given=None: SAMPLES / name)
    [name, documents, _, located, *_] = conversion.measure_conversion("cuad", 1)
    found, total = located.split(" of ")
    assert (name, documents) == ("cuad", 4) and found == total
    table = conversion.compare_locating(conversion.read_quotes(SAMPLES / "cuad" / "CUAD_v1", 2))
    figures = {row[0]: row[1] for row in table.rows}
    assert figures["our text, `locate`"] >= figures["our text, one expression per quote"] > 0


def test_repeat_documents_writes_13_files_with_different_content(tmp_path):
    paths = scale.repeat_documents(scale.CONTRACTS, 13, tmp_path)
    assert len(paths) == len({path.read_bytes() for path in paths}) == 13


def test_make_mixture_returns_clustered_vectors_of_unit_length():
    vectors = scale.make_mixture(400, 32, 1)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.sort((vectors @ vectors.T).ravel())[-401] > 0.8


@pytest.mark.slow
def test_scale_bench_prints_a_row_for_the_corpus_size_and_vector_store(capsys):
    words = ["--documents", "6", "--jobs", "1", "--rows", "1000", "--stores", "faiss"]
    assert scale.main(words) == 0
    printed = capsys.readouterr().out
    assert "Indexing, then asking" in printed and "faiss  1,000" in printed
    assert printed.rstrip().endswith("1.000")
