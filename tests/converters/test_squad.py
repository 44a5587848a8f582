"""SQuAD's form: what the samples become, and that our own export comes back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exhibit.conversion import main
from exhibit.converters import Tally, squad
from exhibit.hub import export
from exhibit.schemas.errors import SourceError
from tests.conftest import Convert
from tests.conversion import options_of
from tests.converters.account import account_of


def rows(bundle: Path) -> list[dict[str, object]]:
    data: list[dict[str, object]] = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    return data


def gold(bundle: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_sample_becomes_a_bundle(converted: Convert, golden):
    bundle = converted("squad")
    golden("squad/account.json", account_of(bundle))
    assert [row["id"] for row in rows(bundle)] == [0, 1, 2, 3, 4]
    assert gold(bundle)[0]["labels"] == {"source_id": "q1"}
    assert sorted(path.name for path in (bundle / "corpus").iterdir()) == [
        "Alder_Quay_lease.pdf", "Judgment_in_Ferris_v_Pell_1.pdf", "Judgment_in_Ferris_v_Pell_2.pdf",
    ]  # fmt: skip
    assert all(line["spans"] for line in gold(bundle) if line["context"] is not None)
    noted = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["noted"]
    assert noted == {"answer that does not stand at its offset: located by its words": ["question q5"]}


def test_legalquad_is_the_same_form(converted: Convert):
    bundle = converted("legalquad")
    assert [row["id"] for row in rows(bundle)] == [101, 102]
    assert {line["filename"] for line in gold(bundle)} == {"context_0000.pdf", "context_0001.pdf"}


@pytest.mark.parametrize("name", ["squad", "legalquad"])
def test_our_export_comes_back_as_it_was(name: str, converted: Convert, tmp_path: Path):
    """But for the line breaks of the page: an answer of SQuAD's form stands in its context to the letter."""
    bundle = converted(name)
    assert export.main([str(bundle), "--to", "squad", "--out", str(tmp_path / "export")]) == 0
    source = next((tmp_path / "export").rglob("squad.json"))
    flags = ["--source", str(source), "--out", str(tmp_path / "again"), "--jobs", "1"]
    assert main(["squad", *flags, "--documents", str(bundle / "corpus")]) == 0
    again = tmp_path / "again"
    folded = [json.loads(json.dumps(rows(one)).replace("\\n", " ")) for one in (again, bundle)]
    assert folded[0] == folded[1]
    places = [[line[key] for key in ("filename", "spans", "pages")] for line in gold(again)]
    assert places == [[line[key] for key in ("filename", "spans", "pages")] for line in gold(bundle)]


def test_a_file_of_another_form_is_one_error(tmp_path: Path):
    (tmp_path / "a.json").write_text('{"data": [{"x": 1}]}', encoding="utf-8")
    with pytest.raises(SourceError, match="not in SQuAD's form"):
        squad.read(tmp_path / "a.json", options_of(squad, "--source", tmp_path), Tally())
