"""The files of a report: what is drawn, shared or left out, and the little memory that this takes."""

from __future__ import annotations

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path
from weakref import finalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bench.report import make_run
from exhibit.__main__ import main as exhibit
from exhibit.engine import Limits
from exhibit.evidence import Span, read_document
from exhibit.evidence.readers.pdf import find_boxes
from exhibit.schemas import run_folder
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import open_bundle
from exhibit.viewer import write_report
from exhibit.viewer.drawing import Wanted, choose_pages, cut_windows, find_gold_ranges, mark_spans
from exhibit.viewer.listing import CASES, LINES, Catalogue
from exhibit.viewer.matching import OUTCOMES, Facet, find_error_kind
from exhibit.viewer.results import main
from tests.viewer.report_data import block_of, cases_of, make_results, piece


@pytest.fixture(scope="module")
def bundles(report_bundles) -> dict[str, Path]:
    return report_bundles


@pytest.fixture(scope="module")
def results(report_results) -> Path:
    return report_results


@pytest.fixture
def unreported(results, tmp_path) -> Path:
    """The same results without their report."""
    return shutil.copytree(results, tmp_path / "run", ignore=shutil.ignore_patterns("report*"))


@pytest.fixture(scope="module")
def meta(results) -> dict:
    return block_of(results / "report.html", "meta")


def drawn_pages(results: Path, meta: dict) -> dict[tuple[int, int], list]:
    """Return every drawn page: the name of its image, its size, and the marks on it."""
    sheets = {number: piece(results / "report_files", f"d{number}") for number in meta["documents"]}
    return {(n, int(page)): told for n, sheet in sheets.items() for page, told in sheet.get("pages", {}).items()}


# ---------------------------------------------------------------- pages


def test_every_page_that_a_case_shows_is_drawn_once_and_shared(results, meta):
    cases = cases_of(results / "report_files", meta)
    shown = [tuple(page) for case in cases for page in case["sides"][0]["pages"]]
    pages = drawn_pages(results, meta)
    paged = {page for page in shown if page[1]}
    assert len(shown) > len(paged) and paged == set(pages)
    pictures = sorted(path.name for path in (results / "report_files" / "pages").iterdir())
    assert pictures == sorted(told[0] for told in pages.values())
    with Image.open(results / "report_files" / "pages" / pictures[0]) as picture:
        assert picture.width == 830


def test_the_boxes_are_those_of_the_words(results, meta, bundles):
    folder = results / "report_files"
    case = next(c for c in cases_of(folder, meta) if c["dataset"] == "cuad" and c["gold"] and c["gold"][0]["spans"])
    gold = case["gold"][0]
    number = gold["pages"][0]
    filename = piece(folder, "c0")["files"][str(gold["file"])]
    document = read_document(open_bundle(bundles["cuad"]).files[filename])
    start, end = gold["spans"][0]
    expected = [box for box in find_boxes(document, Span(start, end)) if box.page == number]
    lines = drawn_pages(results, meta)[gold["file"], number][3][f"{start}-{end}"]
    assert lines == [[round(v, 1) for v in (b.left, b.top, b.right - b.left, b.bottom - b.top)] for b in expected]


def test_as_many_pages_are_drawn_as_allowed_every_kind_of_failure_first(unreported):
    folder = unreported
    notes: list[str] = []
    write_report(folder, pages=5, say=notes.append)
    told = block_of(folder / "report.html", "meta")
    drawn = drawn_pages(folder, told)
    assert len(list((folder / "report_files" / "pages").iterdir())) == len(drawn) <= 5
    assert re.fullmatch(r"5 of the \d+ pages that cases show are drawn, failures first; .*--pages all.*", notes[0])
    assert notes[0] in (folder / "report.html").read_text(encoding="utf-8")
    texts = [n for n in told["documents"] if "text" in piece(folder / "report_files", f"d{n}")]
    assert len(drawn) + len(texts) == 5
    verdicts = {
        case["sides"][0]["verdict"]
        for case in cases_of(folder / "report_files", told)
        if any(tuple(page) in drawn or page[0] in texts for page in case["sides"][0]["pages"])
    }
    assert len(verdicts - {"answered rightly", "rightly refused"}) > 2, "not five pages of one kind"
    write_report(folder, pages=0)
    assert not (folder / "report_files" / "pages").exists()
    assert block_of(folder / "report.html", "meta")["documents"] == []


def test_only_the_cases_asked_for_have_pages(unreported):
    write_report(unreported, cases=2)
    few = len(list((unreported / "report_files" / "pages").iterdir()))
    assert 0 < few <= 8


def test_documents_that_are_gone_leave_the_words(bundles, tmp_path, capsys):
    copies = {name: tmp_path / name for name in bundles}
    for name, path in bundles.items():
        shutil.copytree(path, copies[name])
    folder = make_results(tmp_path / "run", copies, limit=8)
    shutil.rmtree(copies["cuad"])
    assert exhibit(["results", "report", str(folder)]) == 0
    err = capsys.readouterr().err
    assert f"note: cuad: the pages of its documents are not drawn: {copies['cuad']}: not there" in err
    assert not (folder / "report_files" / "pages").exists()
    shutil.copytree(bundles["cuad"], tmp_path / "elsewhere" / "cuad")
    assert main(["report", str(folder), "--dataset-paths", str(tmp_path / "elsewhere" / "cuad"), "--pages", "all"]) == 0
    assert len(list((folder / "report_files" / "pages").iterdir())) > 0


def test_a_document_that_takes_too_long_is_named_and_the_others_are_drawn(bundles, tmp_path):
    folder = make_results(tmp_path / "run", {"cuad": bundles["cuad"]}, limit=8)
    copy = tmp_path / "cuad"
    shutil.copytree(bundles["cuad"], copy)
    name = next(row.gold[0].filename for row in RunFolder(folder).rows if row.gold)
    next((copy / "corpus").rglob(name)).write_bytes(b"%PDF-1.4 and then nothing that can be read")
    notes: list[str] = []
    write_report(folder, datasets={"cuad": copy}, limits=Limits(60, None), say=notes.append)
    assert any(name in note for note in notes)
    assert len(list((folder / "report_files" / "pages").iterdir())) > 0


def question(**told) -> RunQuestion:
    reply = {"error": "", **told.pop("reply", {})}
    row = {"dataset": "cuad", "id": 1, "question": "q", "truth": "t", "verdict": "answered", "reply": reply, **told}
    return RunQuestion.model_validate_json(json.dumps(row))


def test_gold_that_was_found_elsewhere_is_shown_there():
    passage = {"filename": "a.pdf", "span": [880, 960], "page": 9}
    gold = {"filename": "a.pdf", "places": [[[10, 20]], [[900, 950]]], "pages": [1]}
    row = question(gold=[gold], reply={"passages": [passage]})
    assert choose_pages(row, mark_spans(row)) == [("a.pdf", 9)]
    row = question(gold=[gold], reply={"passages": [{**passage, "span": [300, 400]}]})
    assert choose_pages(row, mark_spans(row)) == [("a.pdf", 1), ("a.pdf", 9)]


def test_the_most_important_pages_are_chosen():
    wanted = Wanted()
    for rank, page in ((7, 1), (0, 2), (3, 3)):
        row = question(reply={"passages": [{"filename": "a.pdf", "span": [1, 2], "page": page}]})
        wanted.ask(row, mark_spans(row), rank=rank)
    assert wanted.choose_pages(2) == {0: [2, 3]} and wanted.choose_pages(None) == {0: [1, 2, 3]} and wanted.pages == 3


# ---------------------------------------------------------------- many cases


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    text = " ".join(f"The party of part {n} shall not assign clause {n * 7}." for n in range(400))
    folder = make_run(tmp_path_factory.mktemp("large") / "run", [text] * 9, cases=620)
    write_report(folder, pages=0)
    return folder


def test_the_list_and_the_cases_are_in_blocks_in_the_same_order(large):
    folder, meta = large / "report_files", block_of(large / "report.html", "meta")
    assert meta["total"] == 620 and (meta["lines"], meta["cases"]) == (LINES, CASES)
    lines = [line for n in range(2) for line in piece(folder, f"i{n}")]
    assert len(lines) == 620 and len(list(folder.glob("c*.js"))) == 13
    cases = cases_of(folder, meta)
    assert len(cases) == 620
    for number in (0, 499, 500, 577, 619):
        assert lines[number][len(meta["facets"])] == cases[number]["id"]
    assert sorted(case["id"] for case in cases) == list(range(620))


def test_words_that_cases_share_are_there_once(large):
    block = piece(large / "report_files", "c5")
    passages = [one["text"] for case in block["cases"] for one in case["sides"][0]["passages"]]
    assert len(block["texts"]) == len(set(block["texts"])) < len(passages)


def test_rows_are_read_one_at_a_time(large, monkeypatch):
    alive: list[int] = []
    held: set[int] = set()
    parse = run_folder._of_dataset

    def parsed(*given):
        row = parse(*given)
        held.add(id(row))
        finalize(row, held.discard, id(row))
        alive.append(len(held))
        return row

    monkeypatch.setattr(run_folder, "_of_dataset", parsed)
    write_report(large, pages=0)
    assert len(alive) == 3 * 620, "each row three times: for the means, to count, and to write"
    assert max(alive) <= 3 + len(OUTCOMES), "one at a time, and the worst of each kind"


def test_the_page_itself_stays_small(large):
    assert (large / "report.html").stat().st_size < 400_000


def test_a_failed_question_has_no_score_even_where_minus_one_was_written(bundles, results, tmp_path):
    row = json.loads((results / "leases" / "eval_results.jsonl").read_text(encoding="utf-8").split("\n")[-2])
    assert row["verdict"] == "failed"
    row["scores"] = dict.fromkeys(row["scores"], -1)
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / "eval_results.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "config.json").write_text('{"datasets": {"leases": {}}}', encoding="utf-8")
    write_report(tmp_path, datasets={"leases": bundles["leases"]})
    told = block_of(tmp_path / "report.html", "meta")
    assert piece(tmp_path / "report_files", "i0")[0][len(told["facets"]) + told["fields"].index("found")] is None
    assert cases_of(tmp_path / "report_files", told)[0]["sides"][0]["scores"] == []


def test_missing_and_damaged_results_are_named(tmp_path):
    with pytest.raises(ToolkitError, match="is not a run of evaluate_rag.py"):
        write_report(tmp_path)
    (tmp_path / "config.json").write_text('{"datasets": {"cuad": {}, "maud": {}}}', encoding="utf-8")
    with pytest.raises(ToolkitError, match="no results of cuad, maud; the run was stopped"):
        write_report(tmp_path)
    for name in ("cuad", "maud"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "eval_results.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(
        ToolkitError, match="cuad/eval_results.jsonl: .*: not in the format that evaluate_rag.py writes: question"
    ):
        write_report(tmp_path)


# ---------------------------------------------------------------- what a list can be narrowed by


def test_a_label_that_names_questions_is_searched_and_not_offered():
    catalogue = Catalogue([Facet("dataset", "Dataset")])
    labels = [{"clause": f"c{n % 3}", "title": f"title {n}"} for n in range(400)]
    for one in labels:
        catalogue.count(["cuad"], one)
    told = catalogue.as_json()
    assert [one["name"] for one in told["labels"]] == ["clause"] and told["labels"][0]["counts"] == [134, 133, 133]
    assert catalogue.make_line(["cuad"], [7], labels[7]) == [0, 7, [0, 1], "title 7"]


def test_errors_of_one_kind_are_one_kind():
    told = [find_error_kind([question(reply={"error": f"timed out after {n} s\n at 10.0.0.{n}"})]) for n in (3, 44)]
    assert told[0] == told[1] == "timed out after … s at ….….….…" and find_error_kind([question(), None]) == ""


# ---------------------------------------------------------------- laws


def spans(most: int = 60):
    return st.tuples(st.integers(0, most), st.integers(1, most)).map(lambda pair: Span(pair[0], pair[0] + pair[1]))


@given(spans(), st.lists(spans(), max_size=4))
def test_ranges_say_of_every_character_whether_it_is_gold(passage, gold):
    ranges = find_gold_ranges(passage, gold)
    said = {passage.start + at for start, end in ranges for at in range(start, end)}
    assert said == {at for at in range(*passage) if any(g.start <= at < g.end for g in gold)}
    assert all(one[1] < other[0] for one, other in pairwise(ranges)), "neighbours are joined"


@given(st.text("ab ", min_size=1, max_size=200), st.lists(spans(), max_size=4))
def test_windows_hold_the_words_around_every_span(text, wanted):
    inside = [span for span in wanted if span.end <= len(text)]
    found = cut_windows(text, inside, around=5)
    assert all(text[start : start + len(words)] == words for start, words in found)
    assert all(any(start <= s.start and s.end <= start + len(words) for start, words in found) for s in inside)
