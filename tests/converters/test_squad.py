"""The SQuAD format: samples become bundles, and our export converts back to the same bundle."""

import json
from pathlib import Path

import pytest

from exhibit.conversion import main
from exhibit.converters import Tally, squad
from exhibit.hub import exports
from exhibit.schemas.errors import SourceError
from tests.conftest import Convert
from tests.conversion import options_of
from tests.converters.account import account_of, read_gold, read_rows


def test_squad_sample_converts_to_a_bundle(converted: Convert, golden):
    bundle = converted("squad")
    golden("squad/account.json", account_of(bundle))
    assert list(read_rows(bundle)) == [0, 1, 2, 3, 4]
    assert read_gold(bundle)[0]["labels"] == {"source_id": "q1"}
    assert sorted(path.name for path in (bundle / "corpus").iterdir()) == [
        "Alder_Quay_lease.pdf", "Judgment_in_Ferris_v_Pell_1.pdf", "Judgment_in_Ferris_v_Pell_2.pdf",
    ]  # fmt: skip
    assert all(line["spans"] for line in read_gold(bundle) if line["context"] is not None)
    noted = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["noted"]
    assert noted == {"answer that is not at its offset: located by its words": ["question q5"]}


def test_squad_converter_reads_legalquad(converted: Convert):
    bundle = converted("legalquad")
    assert list(read_rows(bundle)) == [101, 102]
    assert {line["filename"] for line in read_gold(bundle)} == {"context_0000.pdf", "context_0001.pdf"}


@pytest.mark.parametrize("name", ["squad", "legalquad"])
def test_squad_export_converts_back_to_the_same_rows_and_gold(name: str, converted: Convert, tmp_path: Path):
    """Line breaks may differ, because a SQuAD answer must occur in its context character by character."""
    bundle = converted(name)
    assert exports.main([str(bundle), "--to", "squad", "--out", str(tmp_path / "export")]) == 0
    source = next((tmp_path / "export").rglob("squad.json"))
    flags = ["--source", str(source), "--out", str(tmp_path / "again"), "--jobs", "1"]
    assert main(["squad", *flags, "--documents", str(bundle / "corpus")]) == 0
    again = tmp_path / "again"
    folded = [json.loads(json.dumps(list(read_rows(f).values())).replace("\\n", " ")) for f in (again, bundle)]
    assert folded[0] == folded[1]
    places = [[line[key] for key in ("filename", "spans", "pages")] for line in read_gold(again)]
    assert places == [[line[key] for key in ("filename", "spans", "pages")] for line in read_gold(bundle)]


def question(id: object, **fields: object) -> dict[str, object]:
    answers = [{"text": "The rent", "answer_start": 0}]
    return {"id": id, "question": f"What is due ({id})?", "answers": answers, **fields}


def test_squad_counts_malformed_rows_and_reads_valid_rows(tmp_path: Path):
    odd = [
        None, "words", 7,
        question(1, answers="The rent"), question(2, answers=[None]), question(3, is_impossible="maybe"),
        question(4, question=None), question(5, answers={"text": ["The rent"]}),
    ]  # fmt: skip
    sound = [
        question("a", is_impossible="false"), question(6, is_impossible="True", answers=[]), question(True),
        question(7, is_impossible=0), question(8, answers=[{"text": "The rent", "answer_start": -8}]),
    ]  # fmt: skip
    paragraphs = [{"context": "The rent is due.", "qas": [*odd, *sound]}, None, {"qas": []}, {"context": "x", "qas": 5}]
    record = {"data": [{"title": "Lease", "paragraphs": paragraphs}, [], {"title": "Sublease", "paragraphs": {}}]}
    (tmp_path / "a.json").write_text(json.dumps(record), encoding="utf-8")
    tally = Tally()
    benchmark = squad.read(tmp_path / "a.json", options_of(squad, "--source", tmp_path), tally)
    assert [(row.question, row.is_impossible) for row in benchmark.rows] == [
        ("What is due (a)?", False), ("What is due (6)?", True), ("What is due (True)?", False),
        ("What is due (7)?", False), ("What is due (8)?", False),
    ]  # fmt: skip
    malformed = tally.left_out.pop("record that is not in the release's format")
    assert len(malformed) == 5 + 8 and not tally.left_out, "5 malformed paragraphs and 8 malformed questions"
    kept = [item for entry in (*benchmark.documents, *benchmark.rows) for item in entry.items]
    assert tally.account(kept)["rows"].given == len(odd) + len(sound)
    with pytest.raises(SourceError, match="--strict"):
        squad.read(tmp_path / "a.json", options_of(squad, "--source", tmp_path), Tally(strict=True))
