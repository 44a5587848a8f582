"""Bundles become packs: excluded documents, answers of questions, and reading of a written pack."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.training.material import contract, write_contracts, write_library
from training.gather import Excluded, gather, main, make_document_key, read_names, read_wordings
from training.pack import ROLES, list_rows, load_pack


def write_list(path: Path, *names: str) -> Path:
    rows = "".join(f"cuad\ttexts\t{name}\n" for name in names)
    path.write_text(f"benchmark\twhere\tdocument\n{rows}", encoding="utf-8")
    return path


def test_gather_excludes_listed_documents_and_documents_that_repeat_their_text(tmp_path: Path) -> None:
    root = write_contracts(tmp_path / "cuad")
    copied = root / "corpus" / "birch.txt"
    copied.write_text("A cover page.\n\n" + contract("alder", "Norway"), encoding="utf-8")
    excluded = Excluded(read_names(write_list(tmp_path / "list.tsv", "Alder.PDF")))
    pack = gather([root], excluded=excluded)
    assert [document["name"] for document in pack.documents] == ["cedar.txt", "dogwood.txt", "elm.txt", "fir.txt"]
    assert pack.notes["skipped"]["cuad: document on the list"] == 1
    assert pack.notes["skipped"]["cuad: document that repeats one on the list"] == 1


def test_make_document_key_is_equal_for_a_pdf_and_a_text_of_the_same_name() -> None:
    assert make_document_key("ACME_INC 01-EX.10 Agreement.PDF") == make_document_key("acme inc_01_EX 10-Agreement.txt")
    assert make_document_key("NDA%20two.pdf") == make_document_key("NDA two.pdf")


def test_gather_marks_passages_with_gold_as_positives(tmp_path: Path) -> None:
    pack = gather([write_contracts(tmp_path / "cuad")], excluded=Excluded())
    assert pack.kinds == ["cuad/Governing Law", "cuad/Expiration Date", "cuad/Insurance"]
    assert len(pack.rows) == 18
    assert pack.rows[:, 3].sum() == 6
    for row, passage, count in pack.positives.tolist():
        document, start, end, *_ = pack.passages[passage].tolist()
        assert document == pack.rows[row, 0]
        spans = pack.gold[pack.gold[:, 0] == row, 1:]
        assert count == sum(max(0, min(end, high) - max(start, low)) for low, high in spans.tolist()) > 0
    roles = [ROLES[role] for kind, role in pack.queries[:, 1:].tolist() if kind == 0]
    wordings = read_wordings("cuad")["Governing Law"]
    assert (roles.count("own"), roles.count("train")) == (1, len(wordings["train"]))
    assert roles.count("test") == len(wordings["test"]) == 12


def test_gather_records_whole_sentences_around_each_passage(tmp_path: Path) -> None:
    root = write_contracts(tmp_path / "cuad", names=("alder",))
    text = (root / "corpus" / "alder.txt").read_text(encoding="utf-8")
    pack = gather([root], excluded=Excluded())
    cut = {
        text[start:end].strip(): text[low:high].strip()
        for (_, start, end, *_), (low, high) in zip(pack.passages.tolist(), pack.sentences.tolist(), strict=True)
    }
    law = "This Agreement is governed by the law of Norway and no other"
    assert cut[law] == f"{law}."
    lists = [whole for passage, whole in cut.items() if "Alder Ltd keeps records of" in passage]
    assert lists and all(whole.endswith(".") for whole in lists)


def test_gather_pairs_each_heading_with_the_passage_below(tmp_path: Path) -> None:
    pack = gather([write_contracts(tmp_path / "cuad", names=("alder",))], excluded=Excluded())
    text = contract("alder", "Norway")
    shown = {text[start:end].strip()[:20] for _, start, end, *_ in pack.passages[pack.headings[:, 1]].tolist()}
    assert any(words.startswith("The price is due") or "Payment" in words for words in shown)
    assert "1. Term and Expiry" not in shown


def test_gather_reads_the_grade_of_each_clause_from_a_clause_library(tmp_path: Path) -> None:
    pack = gather([write_library(tmp_path / "acord")], excluded=Excluded())
    names = [document["name"] for document in pack.documents]
    given = {(names[document], grade) for query, document, grade in pack.grades.tolist() if query == 0}
    assert given == {("cap.txt", 4), ("indirect.txt", 2), ("law.txt", 0), ("notice.txt", 0)}
    assert not len(pack.headings)


def test_gather_command_writes_a_pack_that_load_pack_reads_unchanged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, out = write_contracts(tmp_path / "cuad"), tmp_path / "pack.npz"
    exclude = write_list(tmp_path / "list.tsv", "alder.txt")
    assert main(["--bundles", str(root), "--exclude", str(exclude), "--out", str(out), "--dev", "0.5"]) == 0
    pack = load_pack(out)
    expected = gather([root], excluded=Excluded(read_names(exclude)), dev=0.5)
    assert {document["split"] for document in pack.documents} == {"train", "dev"}
    assert np.array_equal(pack.tokens, expected.tokens)
    assert np.array_equal(pack.passages, expected.passages)
    assert pack.documents == expected.documents
    assert "left out: cuad: document on the list: 1" in capsys.readouterr().out


def test_list_rows_marks_as_answer_a_passage_that_contains_a_whole_gold_span(tmp_path: Path) -> None:
    pack = gather([write_contracts(tmp_path / "cuad")], excluded=Excluded())
    number = list_rows(pack)[0].number
    numbers = range(*pack.passages_of(int(pack.rows[number, 0])).indices(len(pack.passages)))
    large = max(numbers[1:], key=lambda passage: int(pack.passages[passage, 2] - pack.passages[passage, 1]))
    start, end = int(pack.passages[numbers[0], 1]), int(pack.passages[large, 2])
    short, long = (start, start + 3), (end - 4, end + 9999)  # most of the long span is after the passage
    counts = np.array([[number, numbers[0], 3], [number, large, 4]])
    for spans in ((short, long), (long, short)):
        changed = replace(pack, gold=np.array([[number, *span] for span in spans]), positives=counts)
        [row] = [row for row in list_rows(changed) if len(row.answers)]
        assert row.answers.tolist() == [numbers[0]]
