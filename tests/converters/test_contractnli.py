"""ContractNLI hypotheses become questions, and evidence is located in original and in printed files.

A printed page makes no network request.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from exhibit.conversion import main
from exhibit.converters import contractnli
from exhibit.evidence import read_document
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.errors import SourceError
from tests.conversion import read_source
from tests.converters.account import FIELDS, compare_golden, read_gold
from tests.converters.site import Site, serve

OFFICIAL = "Marlowe%20Quay%20Mutual%20NDA.pdf"
HTML = "1099001_0000990001-14-000123_d448812dex99d5.htm"
TEXT = "880077_0000880077-99-000042_document_6.txt"
PLACES = {key: column for column, key in enumerate(contractnli.QUESTIONS)}


@pytest.fixture(scope="module")
def other_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A web site that records its requests."""
    with serve(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def bundle(samples: Path, other_site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the sample, converted once; its web page refers to a running local site."""
    folder = tmp_path_factory.mktemp("contractnli")
    source = shutil.copytree(samples / "contractnli", folder / "source")
    page = source / "contract-nli" / "raw" / HTML
    text = page.read_text(encoding="utf-8")
    assert text.count("127.0.0.1:9/") == 4
    page.write_text(text.replace("127.0.0.1:9/", f"127.0.0.1:{other_site.port}/"), encoding="utf-8")
    out = folder / "bundle"
    assert main(["contractnli", "--source", str(source), "--out", str(out), "--jobs", "1"]) == 0
    return out


@pytest.fixture
def copy(samples: Path, tmp_path: Path) -> Path:
    """A copy of the sample for tests that damage it."""
    return shutil.copytree(samples / "contractnli" / "contract-nli", tmp_path / "contract-nli")


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def gold_for(bundle: Path, document: int, key: str) -> list[dict[str, Any]]:
    return [line for line in read_gold(bundle) if line["id"] == document * 17 + PLACES[key]]


def test_contractnli_sample_converts_to_golden_bundle(bundle, golden):
    compare_golden("contractnli", bundle, golden, FIELDS)


def test_contractnli_gold_of_a_repeated_sentence_is_the_annotated_occurrence(bundle):
    line = gold_for(bundle, 0, "nda-17")[1]
    text = read_document(bundle / CORPUS / OFFICIAL).text
    [[start, _]] = line["spans"]
    assert text[:start].rstrip().endswith("B.")
    assert len(line["alternatives"]) == 1


def test_contractnli_prints_html_without_running_scripts_or_sending_requests(bundle, other_site):
    text = read_document(bundle / CORPUS / f"{HTML}.pdf").text
    assert not other_site.asked
    assert "Written by a script" not in text
    assert "Gone." not in text
    assert "(this “Agreement”)" in text
    assert "EX-99" not in text


def test_contractnli_locates_a_sentence_across_a_page_break_of_a_text_filing(bundle):
    document = read_document(bundle / CORPUS / f"{TEXT}.pdf")
    [line] = gold_for(bundle, 423 + 61, "nda-16")
    assert line["how"] == "parts"
    assert line["pages"] == [1, 2]
    assert "-1-" in document.text[line["spans"][0][1] : line["spans"][1][0]]
    assert "<PAGE>" not in document.text


def test_contractnli_counts_a_malformed_document_without_changing_other_row_ids(copy):
    edit(copy / "train.json", lambda content: content["documents"][0].pop("text"))
    benchmark, tally = read_source(contractnli, copy, "--split", "train")
    [name] = tally.left_out["record that is not in the release's format"]
    assert name.startswith("train.json 0: text: ")
    assert {row.id // 17 for row in benchmark.rows} == {1} and len(benchmark.documents) == 1
    with pytest.raises(SourceError, match="--strict"):
        read_source(contractnli, copy, strict=True)


def test_contractnli_prints_texts_with_unchanged_offsets_when_raw_folder_is_missing(copy):
    shutil.rmtree(copy / "raw")
    benchmark, tally = read_source(contractnli, copy)
    assert all(document.path is None and document.html is None for document in benchmark.documents)
    assert tally.noted["no raw/ folder in the source, so texts are printed"] == ["contract-nli"]
    texts = {document.filename: document.text for document in benchmark.documents}
    quotes = [quote for row in benchmark.rows for quote in row.quotes if quote.text]
    assert quotes
    for quote in quotes:
        [(start, end)] = quote.spans
        assert texts[quote.filename][start:end] == quote.text
