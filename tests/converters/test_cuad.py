"""CUAD: the sample contains every documented irregularity and is converted as expected."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from exhibit.converters import Tally, cuad
from exhibit.converters.core.command import main
from exhibit.converters.cuad import QUESTIONS, quotes_of, split_party_names
from exhibit.evidence.check import check_gold
from tests.conversion import options_of
from tests.converters.account import read_gold, read_rows


@pytest.fixture
def source(samples, tmp_path) -> Path:
    """A copy of the sample that a test may break."""
    return shutil.copytree(samples / "cuad" / "CUAD_v1", tmp_path / "CUAD_v1")


def edit(source: Path, change) -> None:
    path = source / "master_clauses.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def load(bundle: Path) -> tuple[dict, list[dict], dict]:
    return read_rows(bundle), read_gold(bundle), json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))


def test_cuad_pairs_contracts_with_pdfs_and_marks_only_a_missing_quote_as_absent(converted):
    bundle = converted("cuad", "--keep-ambiguous")
    _, gold, info = load(bundle)
    assert info["counts"]["documents"] == 6 and "no PDF for the contract, or another row has it" not in info["left_out"]
    assert [len(info["noted"][r]) for r in info["noted"] if "similar name" in r] == [1]
    assert sum(line["how"] == "absent" and line["context"] is not None for line in gold) == 1
    assert check_gold(bundle)[1] == []
    assert {line["how"] for line in gold} == {"exact", "folded", "parts", "fuzzy", "absent"}


def test_cuad_filters_do_not_change_question_ids(convert, converted, samples):
    rows, _, _ = load(converted("cuad", "--keep-ambiguous"))
    fewer, _, info = load(
        convert("cuad", "--source", samples / "cuad", "--answerable-only", "--max-documents", "3", out="some")
    )
    assert len(info["documents"]) == 3 and not any(row["is_impossible"] for row in fewer.values())
    assert all(rows[identity] == row for identity, row in fewer.items())


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ('Acme Inc. ("Buyer"); BOLT LTD. ("Seller")', ["Acme Inc.", "Bolt Ltd."]),
        ('A Corp ("A"); B Corp ("B")("Party" and collectively as "Parties")', ["A Corp", "B Corp"]),
        ('A Corp ("A"); B Corp ("B"); A and B (each a "Party" and together the "Parties")', ["A Corp", "B Corp"]),
        ('X and Y (collectively "XY"); Z LLC', ["X and Y", "Z LLC"]),
        ("", []),
    ],
)
def test_split_party_names_returns_each_party(answer, names):
    assert split_party_names(answer) == names


@pytest.mark.parametrize(
    ("cell", "quotes"),
    [("", []), ("[]", []), ("['It\\'s due.', \"a\", \"a\", ' ']", ["It's due.", "a"]), ("[1]", None), ("[", None)],
)
def test_cuad_quotes_cell_must_be_a_list_literal(cell, quotes):
    if quotes is None:
        with pytest.raises(ValueError, match="not"):
            quotes_of(cell)
    else:
        assert quotes_of(cell) == quotes


def test_cuad_includes_amendments_and_counts_malformed_cells(source):
    def change(rows):
        rows[5][rows[0].index("Document Name-Answer")] = "SECOND AMENDMENT TO COLLABORATION AGREEMENT"
        rows[1][rows[0].index("Insurance")] = "no list"

    edit(source, change)
    tally = Tally()
    benchmark = cuad.read(source, options_of(cuad), tally)
    assert any("CORVANE" in document.filename for document in benchmark.documents)
    assert [len(names) for reason, names in tally.left_out.items() if "not a list of quotes" in reason] == [1]
    assert len(benchmark.rows) == 5 * len(QUESTIONS) - 1
    assert len({document.title for document in benchmark.documents}) == 5


def drop_column(rows):
    index = rows[0].index("Insurance")
    for row in rows:
        del row[index]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_column, "no column 'Insurance' (1 missing); is this Contract Understanding"),
        (lambda rows: rows.__delitem__(slice(1, None)), "the table has no rows"),
        (lambda rows: rows[1].pop(), "record 2 has 82 fields, but the header has 83"),
    ],
)
def test_cuad_reports_a_broken_table_and_writes_no_bundle(source, convert, capsys, change, message):
    edit(source, change)
    bundle = convert("cuad", "--source", source, expect=1)
    assert message in capsys.readouterr().err and not bundle.exists()


def test_cuad_help_shows_an_example_command_the_flags_and_the_licence(capsys):
    import exhibit.converters.cuad as module

    with pytest.raises(SystemExit, match="0"):
        main(module, ["--help"])
    out = capsys.readouterr().out
    assert "exhibit convert cuad --source samples/cuad --out datasets_out/cuad" in out
    assert "--keep-ambiguous" in out and "CC BY 4.0" in out
