"""ContractNLI: hypotheses become questions, evidence is located in original files and in printed ones.

A printed page makes no network request.
"""

from __future__ import annotations

import json
import shutil
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from exhibit.conversion import main
from exhibit.converters import Benchmark, Tally, contractnli
from exhibit.evidence import read_document
from exhibit.evidence.fold import fold
from exhibit.law.opening import date_of, kind_of, parties_of
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from tests.conversion import chosen
from tests.converters.account import account_of

OFFICIAL = "Marlowe%20Quay%20Mutual%20NDA.pdf"
FORM = "saltmarsh-visitor-nda_v2.pdf"
HTML = "1099001_0000990001-14-000123_d448812dex99d5.htm"
TEXT = "880077_0000880077-99-000042_document_6.txt"
PLACES = {key: column for column, key in enumerate(contractnli.QUESTIONS)}


class Elsewhere(HTTPServer):
    """A web site that records its requests."""

    asked: list[str]


class _Count(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<p>Elsewhere.</p>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    server = Elsewhere(("127.0.0.1", 0), _Count)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def bundle(samples: Path, elsewhere: Elsewhere, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the sample, converted once; its web page refers to a local site that exists."""
    folder = tmp_path_factory.mktemp("contractnli")
    source = shutil.copytree(samples / "contractnli", folder / "source")
    page = source / "contract-nli" / "raw" / HTML
    text = page.read_text(encoding="utf-8")
    assert text.count("127.0.0.1:9/") == 4
    page.write_text(text.replace("127.0.0.1:9/", f"127.0.0.1:{elsewhere.server_port}/"), encoding="utf-8")
    out = folder / "bundle"
    assert main(["contractnli", "--source", str(source), "--out", str(out), "--jobs", "1"]) == 0
    return out


@pytest.fixture
def copy(samples: Path, tmp_path: Path) -> Path:
    """A copy of the sample for tests that damage it."""
    return shutil.copytree(samples / "contractnli" / "contract-nli", tmp_path / "contract-nli")


def read(source: Path, *, strict: bool = False, **options: object) -> tuple[Benchmark, Tally]:
    """Read a source without making a bundle of it, which needs a browser."""
    tally = Tally(strict=strict)
    wanted = {"limit": None, "answerable_only": False, **options}
    benchmark = contractnli.read(source, Namespace(**{"split": "all", **wanted}), tally)
    return chosen(benchmark, tally, limit=wanted["limit"], answerable_only=wanted["answerable_only"]), tally


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def rows_of(bundle: Path) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in json.loads((bundle / TRAIN).read_text(encoding="utf-8"))}


def gold_of(bundle: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines()]


def gold_for(bundle: Path, document: int, key: str) -> list[dict[str, Any]]:
    return [line for line in gold_of(bundle) if line["id"] == document * 17 + PLACES[key]]


# ---------------------------------------------------------------- the sample


def test_the_sample_becomes_the_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("contractnli/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("contractnli/account.json", account_of(bundle))
    lines = []
    for line in gold_of(bundle):
        # where a printed line ends is the browser's choice: so is whether the words stand there as they are
        line["how"] = "folded" if line["how"] == "exact" else line["how"]
        kept = {key: line[key] for key in ("id", "context", "filename", "how", "labels")}
        lines.append(json.dumps(kept, ensure_ascii=False))
    golden("contractnli/gold.jsonl", "\n".join(lines) + "\n")


def test_every_quote_stands_where_gold_says(bundle):
    rows = rows_of(bundle)
    checked = 0
    for line in gold_of(bundle):
        if not line["spans"]:
            continue
        document = read_document(bundle / CORPUS / line["filename"])
        words = "".join(document.text[start:end] for start, end in line["spans"])
        assert fold(words) == fold(rows[line["id"]]["contexts"][line["context"]]["text"])
        checked += 1
    assert checked == 47


def test_choices_become_yes_no_and_impossible(bundle):
    rows = rows_of(bundle)
    answers = {key: rows[place]["answer"] for key, place in PLACES.items()}  # of the first document
    assert answers["nda-4"] == "Yes"
    assert answers["nda-11"] == "No"
    assert answers["nda-18"] == "Not found in provided documents"
    assert rows[PLACES["nda-18"]]["is_impossible"]
    assert rows[PLACES["nda-18"]]["contexts"] == []


def test_of_two_equal_sentences_the_one_the_source_means_is_the_place(bundle):
    line = gold_for(bundle, 0, "nda-17")[1]
    text = read_document(bundle / CORPUS / OFFICIAL).text
    [[start, _]] = line["spans"]
    assert text[:start].rstrip().endswith("B.")
    assert len(line["alternatives"]) == 1


def test_an_official_pdf_is_copied_and_the_rest_is_printed(bundle, samples):
    official = samples / "contractnli" / "contract-nli" / "raw" / OFFICIAL
    assert (bundle / CORPUS / OFFICIAL).read_bytes() == official.read_bytes()
    names = {path.name for path in (bundle / CORPUS).iterdir()}
    assert names == {OFFICIAL, FORM, f"{HTML}.pdf", f"{TEXT}.pdf", "880077_0000880077-01-000008_document_9.txt.pdf"}


def test_a_page_from_the_web_runs_nothing_and_asks_for_nothing(bundle, elsewhere):
    text = read_document(bundle / CORPUS / f"{HTML}.pdf").text
    assert elsewhere.asked == []
    assert "Written by a script" not in text
    assert "Gone." not in text
    assert "(this “Agreement”)" in text
    assert "EX-99" not in text


def test_a_sentence_over_the_end_of_a_typewritten_page_is_found_in_parts(bundle):
    document = read_document(bundle / CORPUS / f"{TEXT}.pdf")
    [line] = gold_for(bundle, 423 + 61, "nda-16")
    assert line["how"] == "parts"
    assert line["pages"] == [1, 2]
    assert "-1-" in document.text[line["spans"][0][1] : line["spans"][1][0]]
    assert "<PAGE>" not in document.text


def test_evidence_is_trimmed_and_blank_evidence_dropped(bundle):
    rows = rows_of(bundle)
    texts = [context.get("text") for row in rows.values() for context in row["contexts"]]
    assert all(text is None or text == text.strip() != "" for text in texts)
    assert len(rows[17 + PLACES["nda-5"]]["contexts"]) == 1  # the other one is blank
    assert len(rows[17 + PLACES["nda-1"]]["contexts"]) == 1  # the other one is the same
    assert rows[17 + PLACES["nda-19"]]["contexts"] == [{"filename": FORM}]
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert len(info["left_out"]["blank evidence"]) == 2
    assert info["noted"]["answer without evidence: only its document is named"] == [f"{FORM}: nda-19"]


def test_the_second_document_of_one_name_is_left_out_and_named(bundle):
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert info["left_out"]["second document of one file name"] == [f"test.json: document 2: {FORM}"]
    assert info["licence"]["redistributable"] is False
    assert "TERMS" in info["licence"]["note"]


def test_titles_name_kind_parties_and_what_tells_them_apart(bundle):
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    titles = {entry["filename"]: entry["title"] for entry in info["documents"]}
    both = "Non-Disclosure and Non-Solicitation Agreement between Fenwick Harbor Bancorp and Dana R. Whitlow"
    assert titles == {
        OFFICIAL: "Mutual Non-Disclosure Agreement between Marlowe Quay Robotics, Inc. and Tern & Gable Limited",
        FORM: "Visitor Non-Disclosure Agreement (saltmarsh-visitor-nda_v2)",
        f"{HTML}.pdf": (
            "Confidentiality and Standstill Agreement between Quillon Biosciences, Inc. "
            "and Ostrey Capital Partners, L.P."
        ),
        f"{TEXT}.pdf": f"{both} dated September 21, 1998",
        "880077_0000880077-01-000008_document_9.txt.pdf": f"{both} dated January 15, 2001",
    }


# ---------------------------------------------------------------- splits and ids


def test_ids_and_titles_do_not_change_with_the_split(samples):
    whole, _ = read(samples / "contractnli")
    rows = {row.id: row for row in whole.rows}
    for split, count in (("train", 34), ("dev", 17), ("test", 34), ("dev,test", 51)):
        part, _ = read(samples / "contractnli", split=split)
        assert len(part.rows) == count
        assert all(rows[row.id] == row for row in part.rows)


def test_ids_do_not_change_when_a_split_is_missing(copy):
    before, _ = read(copy, split="test")
    (copy / "dev.json").unlink()
    (copy / "train.json").unlink()
    after, tally = read(copy)
    # without train.json, nobody else has the name of the sixth document
    assert [row.id for row in after.rows][:34] == [row.id for row in before.rows]
    assert tally.noted["split that the source does not have"] == ["train.json", "dev.json"]


def test_the_id_counts_documents_of_the_release_times_seventeen(samples):
    benchmark, _ = read(samples / "contractnli")
    assert sorted({row.id // 17 for row in benchmark.rows}) == [0, 1, 423, 484, 485]
    assert [row.labels["hypothesis"] for row in benchmark.rows[:17]] == list(contractnli.QUESTIONS)


def test_limit_and_answerable_only(samples):
    benchmark, tally = read(samples / "contractnli", limit=1, answerable_only=True)
    assert [document.filename for document in benchmark.documents] == [OFFICIAL]
    assert len(benchmark.rows) == 15
    assert len(tally.left_out["no answer in the document (--answerable-only)"]) == 2


@pytest.mark.parametrize(("given", "kept"), [("test, train", "train,test"), ("all,dev", "all"), ("dev", "dev")])
def test_splits_are_written_in_the_order_of_the_release(given, kept):
    parser = ArgumentParser()
    contractnli.add_arguments(parser)
    assert parser.parse_args(["--split", given]).split == kept


def test_an_unknown_split_is_a_usage_error(capsys):
    parser = ArgumentParser()
    contractnli.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--split", "valid"])
    assert "no split 'valid'; there are train, dev, test, all" in capsys.readouterr().err


# ---------------------------------------------------------------- what can be wrong


def test_a_folder_without_splits_says_what_was_expected_and_where_it_is(convert, tmp_path, capsys):
    convert("contractnli", "--source", tmp_path, expect=1)
    error = capsys.readouterr().err
    assert "train.json, dev.json, test.json" in error
    assert "https://stanfordnlp.github.io/contract-nli/" in error


def test_a_split_that_was_asked_for_must_be_there(copy):
    (copy / "dev.json").unlink()
    with pytest.raises(SourceError, match=r"no dev\.json"):
        read(copy, split="dev")


def test_a_missing_or_unknown_hypothesis_is_refused(copy):
    edit(copy / "train.json", lambda content: content["labels"].pop("nda-7"))
    with pytest.raises(SourceError, match="lack the hypothesis 'nda-7'"):
        read(copy)
    edit(copy / "train.json", lambda content: content["labels"].update({"nda-7": {}, "nda-99": {}}))
    with pytest.raises(SourceError, match="an unknown hypothesis 'nda-99'"):
        read(copy)


def test_what_is_not_the_release_is_refused(copy):
    (copy / "dev.json").write_text("[1, 2", encoding="utf-8")
    with pytest.raises(SourceError, match=r"dev\.json: not JSON"):
        read(copy)
    (copy / "dev.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SourceError, match="no list under the key 'documents'"):
        read(copy)


def test_two_folders_with_splits_are_refused(copy):
    shutil.copytree(copy, copy.parent / "again")
    with pytest.raises(SourceError, match="several train.json"):
        read(copy.parent)


def test_a_bad_document_is_counted_and_moves_no_id(copy):
    edit(copy / "train.json", lambda content: content["documents"][0].pop("text"))
    benchmark, tally = read(copy, split="train")
    [name] = tally.left_out["document that is not in the release's form"]
    assert name.startswith("train.json: document 0: ('text',)")
    assert {row.id // 17 for row in benchmark.rows} == {1}
    with pytest.raises(SourceError, match="--strict"):
        read(copy, strict=True)


def test_a_bad_document_of_another_split_is_nobodys_business(copy):
    edit(copy / "train.json", lambda content: content["documents"][0].pop("text"))
    _, tally = read(copy, split="dev", strict=True)
    assert tally.left_out == {}


def test_bad_annotations_are_counted(copy):
    def spoil(content: dict[str, Any]) -> None:
        annotations = content["documents"][0]["annotation_sets"][0]["annotations"]
        annotations["nda-4"]["choice"] = "Perhaps"
        del annotations["nda-5"]
        annotations["nda-8"]["spans"].append(999)
        content["documents"][0]["spans"][0] = [5, 5]
        annotations["nda-1"]["spans"] = [0]

    edit(copy / "train.json", spoil)
    benchmark, tally = read(copy, split="train", limit=1)
    assert tally.left_out == {
        "hypothesis without a choice of the three": [f"{OFFICIAL}: nda-5", f"{OFFICIAL}: nda-4"],
        "evidence that is no span of the document": [f"{OFFICIAL}: nda-1: span 0", f"{OFFICIAL}: nda-8: span 999"],
    }
    assert len(benchmark.rows) == 15


def test_two_files_of_one_name_below_raw_are_refused(copy):
    (copy / "raw" / "more").mkdir()
    shutil.copy(copy / "raw" / OFFICIAL, copy / "raw" / "more")
    with pytest.raises(SourceError, match="two files named"):
        read(copy)


def test_without_raw_every_text_is_printed_with_its_offsets(copy):
    shutil.rmtree(copy / "raw")
    benchmark, tally = read(copy)
    assert all(document.path is None and document.html is None for document in benchmark.documents)
    assert tally.noted["no raw/ folder in the source, so texts are printed"] == ["contract-nli"]
    texts = {document.filename: document.text for document in benchmark.documents}
    quotes = [quote for row in benchmark.rows for quote in row.quotes if quote.text]
    assert quotes
    for quote in quotes:
        [(start, end)] = quote.spans
        assert texts[quote.filename][start:end] == quote.text


def test_a_file_that_is_not_utf8_is_read_as_windows_1252(copy):
    (copy / "raw" / TEXT).write_bytes("Non-Disclosure Agreement — “Fenwick”".encode("cp1252"))
    benchmark, _ = read(copy, split="test", limit=1)
    assert "Agreement — “Fenwick”" in benchmark.documents[0].blocks[0].text


def test_a_zip_is_read_too_and_an_official_file_needs_no_browser(convert, copy, tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_BROWSER", "/nowhere")
    archive = shutil.make_archive(str(tmp_path / "contract-nli"), "zip", copy.parent, copy.name)
    bundle = convert("contractnli", "--source", archive, "--split", "train", "--max-documents", "1")
    assert [path.name for path in (bundle / CORPUS).iterdir()] == [OFFICIAL]
    assert len(rows_of(bundle)) == 17


# ---------------------------------------------------------------- the first page


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("MUTUAL NON-DISCLOSURE AGREEMENT\nThis agreement …", "Mutual Non-Disclosure Agreement"),
        ("Exhibit (d)(2)\nExecution Copy\nConfidentiality Agreement\nDear Sirs:", "Confidentiality Agreement"),
        ("ANNEX 2 - Non Disclosure Agreement\nDate:", "Non Disclosure Agreement"),
        ("NON-DISCLOSURE AGREEMENT BETWEEN ALDER COLLEGE AND [PARTY 2]", "Non-Disclosure Agreement"),
        ("NON-DISCLOSURE / CONFIDENTIALITY\nAGREEMENT\nBETWEEN:", "Non-Disclosure / Confidentiality Agreement"),
        ("NETWORK\u00a0CONFIDENTIALITY\u00a0AGREEMENT", "Network Confidentiality Agreement"),
        ("AGREEMENT DATE: JUNE 2, 1999\nCorporate NDA Agreement", "Corporate NDA Agreement"),
        ("THIS NON-DISCLOSURE DEED is made on the date below", "Non-Disclosure Deed"),
        ("May 7, 1997\nDear Ms. Pell:\nYou have asked for information.", "Letter Agreement"),
        ("YOUR DETAILS (PLEASE USE CAPITALS)", ""),
    ],
)
def test_the_kind_of_document(text, kind):
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "parties"),
    [
        ('between Alder, Inc., a Maine corporation ("Alder"), and Birch LLC ("Birch").', ["Alder, Inc.", "Birch LLC"]),
        ('by and between ______ ("Vendor") and ALDER STATE UNIVERSITY ("University")', ["Alder State University"]),
        ("BETWEEN:\n(1) Alder Tools Ltd, 16 Mill Lane, Hull\nand\n(2) ________\nWHEREAS", ["Alder Tools Ltd"]),
        ("Between\nALDER (PTY) LTD (“Alder”)\nAnd\n[INSERT NAME]\n1. INTRODUCTION", ["Alder (PTY) Ltd"]),
        ("between the Alder Board of Health and Welfare (“ABH”) and", ["Alder Board of Health and Welfare"]),
        ('between QBX, of Hull (the "Discloser"), and the undersigned ("Recipient")', ["QBX"]),
        ('among Alder AG ("A"), Birch Corp. ("B"), and Cedar Ltd. ("C")', ["Alder AG", "Birch Corp.", "Cedar Ltd."]),
        ("between the parties named at the end of this document. Hull and York Ltd deliver.", []),
        ("WHEREAS THE PARTIES CONFIRM that", []),
    ],
)  # fmt: skip
def test_the_parties(text, parties):
    assert parties_of(text) == parties


@pytest.mark.parametrize(
    ("text", "date"),
    [("made as of May 10 , 1999 by", "May 10, 1999"), ("on 3rd June 2011,", "3rd June 2011"), ("on ____ 2019", "")],
)
def test_the_date(text, date):
    assert date_of(text) == date


# ---------------------------------------------------------------- the real thing


@pytest.mark.data
@pytest.mark.slow
def test_all_gold_of_the_real_documents_is_found_in_their_prints(data, convert):
    bundle = convert("contractnli", "--source", data / "contractnli", "--jobs", "2")
    gold = [line for line in gold_of(bundle) if line["context"] is not None]
    assert len(gold) > 3000
    assert sum(line["how"] != "absent" for line in gold) >= 0.999 * len(gold)
    # the source's offsets carried over: no other place is in question
    assert sum(not line["alternatives"] for line in gold) >= 0.999 * len(gold)
    titles = [entry["title"] for entry in json.loads((bundle / INFO).read_text(encoding="utf-8"))["documents"]]
    assert sum(" between " in title or " of " in title for title in titles) > 0.6 * len(titles)


def test_a_release_is_found_by_any_of_its_splits(tmp_path, samples):
    sample = next((samples / "contractnli").rglob("*.json")).read_bytes()
    for split in ("dev", "test"):
        folder = tmp_path / split / "deep"
        folder.mkdir(parents=True)
        (folder / f"{split}.json").write_bytes(sample)
        assert list(read(tmp_path / split)[0].sha256) == [f"{split}.json"]
    (tmp_path / "none").mkdir()
    with pytest.raises(SourceError, match=r"no train\.json in it"):
        read(tmp_path / "none")
