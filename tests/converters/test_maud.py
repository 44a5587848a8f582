"""MAUD: rows are matched to agreements by a definition, excerpts are located in order, agreements are printed."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from exhibit.conversion import main
from exhibit.converters import Benchmark, Tally, maud
from exhibit.converters.raw.maud_release import find_excerpts, read_cell, titles_of
from exhibit.evidence import Document, read_document
from exhibit.evidence.fold import fold
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from exhibit.storage.bundle import open_bundle
from tests.converters.account import account_of

POINTS = list(maud.QUESTIONS)
NORDVIK, PULSEWELL, TALLOW, QUILLON = 0, 4, 2, 3


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("maud")


@pytest.fixture
def source(samples: Path, tmp_path: Path) -> Path:
    """A copy of the sample for tests that damage it."""
    return shutil.copytree(samples / "maud" / "maud-main", tmp_path / "maud-main")


def read(source: Path, *, limit: int | None = None, strict: bool = False) -> tuple[Benchmark, Tally]:
    """Read a source without making a bundle of it, which needs a browser."""
    tally = Tally(strict=strict)
    return maud.read(source, Namespace(limit=limit), tally), tally


def place(text: str, *excerpts: str) -> list[tuple[str | None, int]]:
    """Return, for each excerpt, the text between the last `|` and its match, and the number of other matches.

    The text is None if the excerpt has no match.
    """
    document = Document("contract_0.txt", text)
    found = find_excerpts(read_cell(" <omitted> ".join(excerpts)), document)
    return [(text[: e.match.span.start].rsplit("|", 1)[-1] if e.match else None, len(e.others)) for e in found]


# ---------------------------------------------------------------- the bundle


def test_the_sample_becomes_the_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("maud/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("maud/account.json", account_of(bundle))
    lines = [json.loads(line) for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines()]
    # offsets depend on the browser's version, these fields do not
    kept = [
        {name: line[name] for name in ("id", "context", "filename", "how", "score", "labels")}
        | {"alternatives": len(line["alternatives"])}
        for line in lines
    ]
    golden("maud/gold.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept))


def test_gold_holds_the_words_of_its_quote_on_the_printed_page(bundle):
    opened = open_bundle(bundle)
    documents = {name: read_document(path) for name, path in opened.files.items()}
    quotes = {(row.id, n): context.text for row in opened.questions for n, context in enumerate(row.contexts)}
    checked = 0
    for line in opened.gold:
        if line.how in {"folded", "parts", "exact"}:
            for spans in ([list(span) for span in line.spans], *line.alternatives):
                words = " ".join(documents[line.filename].text[slice(*span)] for span in spans)
                assert fold(words, loose=True) == fold(quotes[line.id, line.context], loose=True)
            checked += 1
    assert checked == 44


def test_what_is_left_out_is_counted_and_named(bundle):
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    left_out = {reason: names for reason, names in info["left_out"].items() if "no excerpt" not in reason}
    assert left_out == {
        "no row for the agreement": ["contract_30.txt"],
        "second row for an agreement that another row has": ["Pulsewell, Inc._Alderbrook Inc..pdf: contract_127.txt"],
        "none of the excerpts stands in the agreement's text: it is another one's": ["contract_149.txt"],
    }
    rows = json.loads((bundle / TRAIN).read_text(encoding="utf-8"))
    empty = info["left_out"]["no excerpt for the deal point"]
    assert len(empty) == 4 * 25 - len(rows)
    assert 'contract_7.pdf: Agreement includes a "Back-Door" MAE' in empty
    assert info["noted"]["reported as bad by users of the release"] == [
        "contract_88.txt: its text ends early",
        "contract_149.txt: its text is not this agreement's",
    ]
    assert not any(row["is_impossible"] for row in rows)


def test_every_character_of_the_agreements_is_printed(bundle, samples):
    for path in sorted((bundle / "corpus").iterdir()):
        text = (samples / "maud/maud-main/data/contracts" / f"{path.stem}.txt").read_text(encoding="utf-8")
        assert fold(read_document(path).text, loose=True) == fold(text, loose=True)


# ---------------------------------------------------------------- rows and their agreements


def test_the_definition_ties_a_row_to_its_agreement_whatever_the_anonymous_name_says(samples):
    benchmark, _ = read(samples / "maud")
    contracts = {row.id // 25: row.filename for row in benchmark.rows}
    assert contracts == {
        NORDVIK: "contract_7.pdf",
        TALLOW: "contract_12.pdf",  # not in the label files: its text has the definition
        QUILLON: "contract_88.pdf",
        PULSEWELL: "contract_127.pdf",
    }


def test_a_row_that_no_agreement_has_the_definition_of_is_counted(source):
    path = source / "data/raw/main.csv"
    path.write_text(
        path.read_text(encoding="utf-8").replace("“Tallow Creek Material", "“Tallow Brook Material"), "utf-8"
    )
    benchmark, tally = read(source)
    assert "contract_12.pdf" not in {row.filename for row in benchmark.rows}
    reason = "no agreement has the row's MAE definition, or several do"
    assert tally.left_out[reason] == ["Tallow_Creek_Bancorp_Brookmere_Financial_Group.pdf"]


@pytest.mark.parametrize("name", ["contract_11", "contract_13"])
def test_a_definition_that_two_agreements_have_is_given_to_neither(source, name):
    """The order of the two agreements does not matter; a row of the wrong agreement would have wrong gold."""
    contracts = source / "data" / "contracts"
    shutil.copy(contracts / "contract_12.txt", contracts / f"{name}.txt")
    benchmark, tally = read(source)
    assert not {"contract_12.pdf", f"{name}.pdf"} & {row.filename for row in benchmark.rows}
    reason = "no agreement has the row's MAE definition, or several do"
    assert tally.left_out[reason] == ["Tallow_Creek_Bancorp_Brookmere_Financial_Group.pdf"]
    assert {"contract_12.txt", f"{name}.txt"} <= set(tally.left_out["no row for the agreement"])


def test_a_definition_that_the_labels_give_to_two_agreements_is_looked_for_in_their_texts(source):
    path = source / "data" / "MAUD_train.csv"
    text = path.read_text(encoding="utf-8")
    again = text.partition("\n")[2].replace("contract_7.pdf", "contract_88.pdf")
    path.write_text(text + again, encoding="utf-8")
    benchmark, _ = read(source)
    assert {row.filename for row in benchmark.rows if row.id // 25 == NORDVIK} == {"contract_7.pdf"}


def test_an_agreement_without_a_text_is_counted(source):
    (source / "data/contracts/contract_7.txt").unlink()
    _, tally = read(source)
    name = "Nordvik Optics Corporation_Halcyon Ridge Holdings, Inc..pdf: contract_7.txt"
    assert tally.left_out["no text for the agreement"] == [name]


def test_experts_answers_go_to_the_labels_but_not_those_on_shortened_texts(samples):
    benchmark, _ = read(samples / "maud")
    labels = {row.id: row.labels for row in benchmark.rows}
    mae = labels[NORDVIK * 25 + POINTS.index("MAE Definition")]
    assert mae["answers"] == "MAE applies to: Target; Carve-outs, Act of God: Yes"
    assert mae["pages"] == "Pages 6-7"
    assert labels[QUILLON * 25 + POINTS.index("MAE Definition")]["answers"] == "MAE applies to: Either party"
    assert labels[NORDVIK * 25 + POINTS.index("No-Shop")]["answers"] is None


def test_a_limit_changes_neither_ids_nor_titles(samples):
    everything, _ = read(samples / "maud")
    first, _ = read(samples / "maud", limit=1)
    assert first.rows == [row for row in everything.rows if row.filename == "contract_7.pdf"]
    assert [document.title for document in first.documents] == [everything.documents[0].title]


def test_strict_stops_at_the_broken_row(samples):
    with pytest.raises(SourceError, match="second row"):
        read(samples / "maud", strict=True)


# ---------------------------------------------------------------- cells and excerpts


@pytest.mark.parametrize(
    ("cell", "excerpts", "pages"),
    [
        ("Words. (Page 18)", ("Words.",), "Page 18"),
        ("Words.  (Pages 27-28) ", ("Words.",), "Pages 27-28"),
        ("One (Page 3)<omitted>two (Pages 3, 5 and 6)", ("One", "two"), "Page 3; Pages 3, 5 and 6"),
        ("as shown (Page 4) above", ("as shown (Page 4) above",), ""),
        ("One < omitted > . <omitted> One", ("One", "."), ""),
        (" (Page 12)", (), "Page 12"),
        ("N/A", (), ""),
        ("", (), ""),
    ],
)
def test_a_cell_is_cleaned_of_page_marks_and_split(cell, excerpts, pages):
    assert (read_cell(cell).excerpts, read_cell(cell).pages) == (excerpts, pages)


@pytest.mark.parametrize(
    ("text", "excerpts", "places"),
    [
        ("|a twice said|Head|c twice said|Tail|e twice said|", ("Head", "twice said", "Tail"), ["", "c ", ""]),
        ("|a twice said|Head|c twice said|", ("Head", "twice said"), ["", "c "]),
        ("|a twice said|Tail|c twice said|", ("twice said", "Tail"), ["a ", ""]),
    ],
)
def test_the_order_of_excerpts_decides_between_places(text, excerpts, places):
    assert place(text, *excerpts) == [(before, 0) for before in places]


def test_the_nearest_place_is_first_and_the_others_are_kept_where_order_does_not_decide():
    text = "|contents 5.2 Conditions 44|body 5.2 Conditions of Closing|x|the covenants were kept|y|"
    found = find_excerpts(read_cell("5.2 Conditions<omitted>the covenants were kept"), Document("c.txt", text))
    assert [text[: e.match.span.start].rsplit("|", 1)[-1] for e in found] == ["body ", ""]
    assert [len(e.others) for e in found] == [1, 0]
    assert place("|a said twice|b said twice|", "said twice") == [("a ", 1)]


def test_excerpts_out_of_order_are_found_each_by_itself():
    assert place("|second part|x|first part|", "first part", "second part") == [("", 0), ("", 0)]


def test_an_excerpt_that_says_less_of_the_same_is_dropped():
    found = find_excerpts(
        read_cell("the board may change its view<omitted>may change its view"),
        Document("c.txt", "Here the board may change its view. Elsewhere it may not."),
    )
    assert [e.text for e in found] == ["the board may change its view"]


def test_excerpts_with_nothing_between_them_are_one():
    found = find_excerpts(read_cell("One.<omitted>Two."), Document("c.txt", "x One.\n\n Two. y"))
    assert [(e.text, e.match.span) for e in found] == [("One.\nTwo.", (2, 13))]


def test_an_absent_excerpt_stays_without_hurting_the_others():
    assert place("|Head|x|Tail|", "Head", "never written", "Tail") == [("", 0), (None, 0), ("", 0)]


# ---------------------------------------------------------------- titles


@pytest.mark.parametrize(
    ("page", "title"),
    [
        (
            "\ufeffExhibit 2.1\n\nAGREEMENT AND PLAN OF MERGER\n\nby and among\n\nACME, INC.,\n\nBIRCH SUB LLC\n\n"
            "and\n\nCEDAR BANK AND TRUST COMPANY\n\nDated as of May 1, 2021",
            "Agreement and Plan of Merger among Acme, Inc., Birch Sub LLC and Cedar Bank and Trust Company",
        ),
        (
            "Ex. 2.1   MERGER AGREEMENT   dated as of   MAY 1, 2021   between   ACME, INC.   AND   mBIRCH N.V.   _____",
            "Merger Agreement between Acme, Inc. and mBIRCH N.V.",
        ),
        (
            "AGREEMENT AND PLAN OF REORGANIZATION By and Between ACME, INC. And BIRCH BANCORP June 1, 2021 CONTENTS",
            "Agreement and Plan of Reorganization between Acme, Inc. and Birch Bancorp",
        ),
        (
            "AMENDED AND RESTATED AGREEMENT AND PLAN OF MERGER\nAMONG\nACME PLC, an Irish public limited company,\n"
            "ACME US INC.\nOAK MERGER SUB, INC.,\na Delaware corporation,\nFIR LP\nand\n"
            "(SOLELY FOR PURPOSES OF Section 2)\nELM CORP.\nDated as of May 1, 2021\nAcme plc is a company.",
            "Amended and Restated Agreement and Plan of Merger among Acme plc, Acme US Inc., Fir LP and Elm Corp.",
        ),
        ("Some other paper", "Merger Agreement between Birch and Acme"),
    ],
)
def test_the_title_is_read_from_the_first_page(page, title):
    assert next(titles_of(page, deal="Birch_Acme.pdf", stem="contract_0")) == title


def test_titles_go_from_plain_to_precise():
    page = "AGREEMENT AND PLAN OF MERGER between OAK and ELM DATED AS OF MAY 1, 2021"
    assert list(titles_of(page, deal="", stem="contract_5"))[1:] == [
        "Agreement and Plan of Merger between Oak and Elm dated May 1, 2021",
        "Agreement and Plan of Merger between Oak and Elm dated May 1, 2021 (contract_5)",
    ]


# ---------------------------------------------------------------- sources


def test_the_repository_with_its_packed_data_is_a_source(samples, tmp_path):
    data = samples / "maud/maud-main/data"
    (tmp_path / "maud-main").mkdir()
    with zipfile.ZipFile(tmp_path / "maud-main/data.zip", "w") as packed:
        for path in sorted(p for p in data.rglob("*") if p.is_file()):
            packed.write(path, Path("data") / path.relative_to(data))
    assert read(tmp_path)[0] == read(data)[0] == read(samples / "maud")[0]


def test_a_folder_of_something_else_is_refused_by_what_it_lacks(tmp_path, capsys):
    assert main(["maud", "--source", str(tmp_path), "--out", str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    assert "no raw/main.csv" in error
    assert maud.INFO.url in error


@pytest.mark.parametrize("name", ["MAUD_dev.csv", "contracts"])
def test_a_missing_file_is_named(source, name):
    path = source / "data" / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(SourceError, match=f"{name}.*{re.escape(maud.INFO.url)}"):
        read(source)


def test_a_missing_column_is_named(source):
    path = source / "data/raw/main.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("FTR Triggers", "FTR", 1), encoding="utf-8")
    with pytest.raises(SourceError, match="main.csv: no column 'FTR Triggers'"):
        read(source)


def test_two_releases_in_one_folder_are_refused(source):
    shutil.copytree(source / "data", source / "copy")
    with pytest.raises(SourceError, match="several raw/main.csv"):
        read(source)


# ---------------------------------------------------------------- on real data


@pytest.mark.data
@pytest.mark.slow
def test_nearly_all_real_excerpts_are_located_in_the_text(data):
    benchmark, _ = read(data / "maud")
    quotes = [quote for row in benchmark.rows for quote in row.quotes]
    assert len(quotes) > 800
    assert sum(bool(quote.spans) for quote in quotes) >= 0.99 * len(quotes)
    assert len({document.title for document in benchmark.documents}) == len(benchmark.documents) == 48


@pytest.mark.data
@pytest.mark.slow
def test_spans_equal_those_of_legalbenchrag(data):
    benchmark, _ = read(data / "maud")
    names = {document.text: document.filename for document in benchmark.documents}
    ours = Counter(
        (row.filename, tuple(span for q in row.quotes for span in map(tuple, q.spans))) for row in benchmark.rows
    )
    folder = data / "legalbenchrag"
    tests = json.loads((folder / "benchmarks/maud.json").read_text(encoding="utf-8"))["tests"]
    theirs: Counter[tuple[str, tuple[tuple[int, int], ...]]] = Counter()
    for test in tests:
        paths = {snippet["file_path"] for snippet in test["snippets"]}
        assert len(paths) == 1
        text = (folder / "corpus" / paths.pop()).read_bytes().decode("utf-8")
        theirs[names[text], tuple(trimmed(text, *snippet["span"]) for snippet in test["snippets"])] += 1
    assert sum(theirs.values()) == 194
    assert theirs - ours == Counter()


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    words = text[start:end]
    return start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())


@pytest.mark.data
@pytest.mark.slow
def test_gold_that_is_in_the_text_is_in_the_printed_pdf(data, convert):
    bundle = open_bundle(convert("maud", "--source", data / "maud", "--max-documents", "6"))
    located = [line for line in bundle.gold if line.how != "absent"]
    assert len(located) >= 0.999 * len(bundle.gold) > 60
    rows = {(row.id, n): context.text for row in bundle.questions for n, context in enumerate(row.contexts)}
    documents = {name: read_document(path) for name, path in bundle.files.items()}
    for line in located:
        words = " ".join(documents[line.filename].text[slice(*span)] for span in line.spans)
        assert fold(words, loose=True) == fold(rows[line.id, line.context], loose=True)
