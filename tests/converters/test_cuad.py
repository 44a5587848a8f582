"""CUAD: the sample source becomes exactly this bundle, and it contains every documented quirk."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from exhibit.converters.cuad import QUESTIONS, main, split_party_names
from exhibit.evidence.check import check_gold
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.bundle import GOLD, TRAIN
from exhibit.schemas.validate import validate
from tests.converters.account import account_of


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


def load(bundle: Path) -> tuple[dict, dict, dict]:
    rows = {row["id"]: row for row in json.loads((bundle / TRAIN).read_text(encoding="utf-8"))}
    gold = {}
    for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        gold[record["id"], record["context"]] = record
    return rows, gold, json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))


def row_of(bundle_rows: dict, row: int, clause: str) -> dict:
    return bundle_rows[row * 41 + list(QUESTIONS).index(clause)]


def test_the_sample_becomes_the_golden_bundle(converted, golden):
    bundle = converted("cuad")
    assert validate(bundle) == []
    golden("cuad/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("cuad/account.json", account_of(bundle))
    golden("cuad/gold.jsonl", (bundle / GOLD).read_text(encoding="utf-8"))


def test_every_contract_finds_its_pdf_and_every_quote_but_one_its_place(converted):
    bundle = converted("cuad", "--keep-ambiguous")
    _, gold, info = load(bundle)
    assert info["counts"]["documents"] == 6 and "no PDF for the contract" not in info["left_out"]
    assert [len(info["noted"][r]) for r in info["noted"] if "similar name" in r] == [1]
    assert sum(line["how"] == "absent" and line["context"] is not None for line in gold.values()) == 1
    assert check_gold(bundle)[1] == []
    assert {line["how"] for line in gold.values()} == {"exact", "folded", "parts", "fuzzy", "absent"}


def test_ids_answers_and_impossible_rows(converted):
    rows, gold, info = load(converted("cuad"))
    assert all(row["question"].startswith("Consider the ") for row in rows.values())
    blank = row_of(rows, 1, "Effective Date")
    assert not blank["is_impossible"] and blank["answer"] == "; ".join(c["text"] for c in blank["contexts"])
    yes = row_of(rows, 2, "Uncapped Liability")
    assert yes["is_impossible"] and yes["answer"] == IMPOSSIBLE_ANSWER and yes["contexts"] == []
    line = gold[yes["id"], None]
    assert line["filename"] and line["how"] == "absent" and line["labels"]["answer"] == "Yes"
    assert len(next(names for remark, names in info["noted"].items() if "answer without a quote" in remark)) == 2
    assert {"clause", "contract", "answer"} == set(line["labels"])


def test_a_quote_that_occurs_twice_keeps_both_places(converted):
    rows, gold, _ = load(converted("cuad"))
    twice = row_of(rows, 1, "Non-Compete")
    assert len(gold[twice["id"], 0]["alternatives"]) == 1


def test_ambiguous_contracts_are_left_out_and_named(converted):
    _, _, info = load(converted("cuad"))
    [names] = [names for reason, names in info["left_out"].items() if "ambiguous" in reason]
    assert [name.split("_")[0] for name in names] == ["CORVANEBIOLOGICSINC", "BRAMBLEWICKCAREGROUPINC"]


def test_an_amendment_is_not_ambiguous(source, convert):
    def amend(rows):
        rows[5][rows[0].index("Document Name-Answer")] = "SECOND AMENDMENT TO COLLABORATION AGREEMENT"

    edit(source, amend)
    _, _, info = load(convert("cuad", "--source", source))
    assert any("CORVANE" in document["filename"] for document in info["documents"])


def test_filters_never_renumber(convert, converted, samples):
    rows, _, _ = load(converted("cuad", "--keep-ambiguous"))
    fewer, _, info = load(
        convert("cuad", "--source", samples / "cuad", "--answerable-only", "--max-documents", "3", out="some")
    )
    assert len(info["documents"]) == 3 and not any(row["is_impossible"] for row in fewer.values())
    assert all(rows[identity] == row for identity, row in fewer.items())


def test_the_bytes_depend_on_nothing_but_source_and_options(convert, samples, source):
    one = convert("cuad", "--source", samples / "cuad", "--engine", "serial", out="one")
    two = convert("cuad", "--source", source, "--jobs", "2", out="two")
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)


def test_no_two_documents_share_a_title(source, convert):
    def same(rows):
        for clause in ("Document Name-Answer", "Parties-Answer", "Agreement Date-Answer"):
            rows[2][rows[0].index(clause)] = rows[1][rows[0].index(clause)]

    edit(source, same)
    _, _, info = load(convert("cuad", "--source", source))
    titles = [document["title"] for document in info["documents"]]
    assert len(set(titles)) == len(titles) == 4


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
def test_party_names(answer, names):
    assert split_party_names(answer) == names


# ---------------------------------------------------------------- bad input


def drop_column(rows):
    index = rows[0].index("Insurance")
    for row in rows:
        del row[index]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_column, "no column 'Insurance' (1 missing); is this Contract Understanding"),
        (lambda rows: rows.__delitem__(slice(1, None)), "no rows"),
        (lambda rows: rows[1].pop(), "record 2 has 82 fields, but the header has 83"),
    ],
)
def test_a_broken_table_is_a_clear_error(source, convert, capsys, change, message):
    edit(source, change)
    bundle = convert("cuad", "--source", source, expect=1)
    assert message in capsys.readouterr().err and not bundle.exists()


def test_a_wrong_encoding_is_a_clear_error(source, convert, capsys):
    path = source / "master_clauses.csv"
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1", "replace"))
    convert("cuad", "--source", source, expect=1)
    assert "master_clauses.csv: not a CSV file in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("cell", ["['unclosed", "{'a': 1}", "[1, 2]", "__import__('os').system('touch /tmp/x')"])
def test_a_cell_that_is_no_list_is_counted(source, convert, capsys, cell):
    edit(source, lambda rows: rows[1].__setitem__(rows[0].index("Insurance"), cell))
    rows, _, info = load(convert("cuad", "--source", source, out="loose"))
    assert len(rows) == 4 * 41 - 1
    assert [names for reason, names in info["left_out"].items() if "not a list of quotes" in reason]
    convert("cuad", "--source", source, "--strict", out="strict", expect=1)
    assert "--strict" in capsys.readouterr().err


def test_a_pdf_that_is_a_text_file_is_counted(source, convert, capsys):
    pdf = next(source.rglob("TESSALINE*.pdf"))
    pdf.write_text("This Agreement is not a PDF")
    bundle = convert("cuad", "--source", source, out="loose")
    rows, _, info = load(bundle)
    assert len(rows) == 3 * 41 and not (bundle / "corpus" / pdf.name).exists() and validate(bundle) == []
    [[name]] = [names for reason, names in info["left_out"].items() if reason == "document cannot be read"]
    assert name == f"{pdf.name}: not a PDF, it starts with b'This Agreeme'; is the file name's extension right?"
    convert("cuad", "--source", source, "--strict", out="strict", expect=1)
    assert "not a PDF" in capsys.readouterr().err


def test_a_missing_pdf_is_counted(source, convert):
    next(source.rglob("TESSALINE*.pdf")).unlink()
    _, _, info = load(convert("cuad", "--source", source))
    [name] = info["left_out"]["no PDF for the contract"]
    assert name.startswith("TESSALINE")


def test_a_second_row_for_one_pdf_is_counted(source, convert):
    edit(source, lambda rows: rows.append(rows[1]))
    rows, _, info = load(convert("cuad", "--source", source))
    assert len(rows) == 4 * 41
    assert len(info["left_out"]["second row for a PDF that another row has"]) == 1


def test_two_pdfs_with_one_name_are_an_error(source, convert, capsys):
    pdf = next(source.rglob("TESSALINE*.pdf"))
    shutil.copy(pdf, pdf.parents[1] / pdf.name)
    convert("cuad", "--source", source, expect=1)
    assert "two files named" in capsys.readouterr().err


def test_a_link_becomes_a_file_and_one_to_elsewhere_no_document(source, convert, tmp_path):
    pdf = next(source.rglob("TESSALINE*.pdf"))
    pdf.rename(tmp_path / "kept.pdf")
    pdf.symlink_to(tmp_path / "kept.pdf")
    other = next(source.rglob("HARROWGATE*.pdf"))
    other.unlink()
    other.symlink_to("/etc/passwd")
    bundle = convert("cuad", "--source", source)
    _, _, info = load(bundle)
    copied = bundle / "corpus" / pdf.name
    assert copied.is_file() and not copied.is_symlink()
    assert "not a PDF" in info["left_out"]["document cannot be read"][0]


def test_strict_stops_at_a_quote_that_is_not_there(convert, samples, capsys):
    convert("cuad", "--source", samples / "cuad", "--keep-ambiguous", "--strict", expect=1)
    assert "quote not found in the document; fix the source, or remove --strict" in capsys.readouterr().err


def test_an_empty_source_says_what_was_expected(tmp_path, convert, capsys):
    (tmp_path / "nothing").mkdir()
    convert("cuad", "--source", tmp_path / "nothing", expect=1)
    error = capsys.readouterr().err
    assert "no master_clauses.csv in it; expected CUAD_v1/" in error and "zenodo.org" in error


def test_the_table_at_the_end(convert, samples, capsys):
    convert("cuad", "--source", samples / "cuad")
    out = capsys.readouterr().out
    for line in (
        "documents",
        "questions",
        "answerable",
        "impossible",
        "located",
        "exact",
        "left out: ambiguous",
        "time",
    ):
        assert line in out
    assert "131  (100.00%)" in out


def test_help_teaches(capsys):
    import exhibit.converters.cuad as module

    with pytest.raises(SystemExit, match="0"):
        main(module, ["--help"])
    out = capsys.readouterr().out
    assert "python -m converters.cuad --source samples/cuad --out datasets_out/cuad" in out
    assert "--keep-ambiguous" in out and "CC BY 4.0" in out


# ---------------------------------------------------------------- the real thing


def quotes_located_in_text(root: Path) -> tuple[int, int]:
    """Return the number of quotes in the release that are located in its text files, and the number of all quotes."""
    from exhibit.converters.cuad import quotes_of, read_table
    from exhibit.converters.raw.titles import pair_files
    from exhibit.evidence import locate, read_document

    table = root / "master_clauses.csv"
    records = read_table(table, table.read_bytes())
    pairs = pair_files([record["Filename"] for record in records], sorted((root / "full_contract_txt").iterdir()))
    assert len(pairs.files) == len(records)
    found = total = 0
    for row, path in pairs.files.items():
        document = read_document(path)
        quotes = [quote for clause in QUESTIONS for quote in quotes_of(records[row][clause])]
        total += len(quotes)
        found += sum(bool(locate(quote, document)) for quote in quotes)
    return found, total


@pytest.mark.data
@pytest.mark.slow
def test_cuad_itself(data, convert):
    root = data / "cuad" / "CUAD_v1"
    bundle = convert("cuad", "--source", root, "--keep-ambiguous", "--jobs", "2")
    counts = load(bundle)[2]["counts"]
    assert counts["documents"] == 200 and counts["questions"] == 200 * 41
    assert counts["located"]["absent"] <= 0.005 * counts["contexts"]
    assert check_gold(bundle)[1] == []
    found, total = quotes_located_in_text(root)
    assert found == total > 4800


@pytest.mark.data
def test_a_few_contracts_of_cuad_itself(data, convert):
    bundle = convert("cuad", "--source", data / "cuad" / "CUAD_v1", "--max-documents", "12", "--jobs", "2")
    assert load(bundle)[2]["counts"]["located"]["absent"] == 0
    assert check_gold(bundle)[1] == []
