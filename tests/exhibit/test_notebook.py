"""The interface for notebooks, and docs/notebook.ipynb, which runs from top to bottom with its stored output."""

import asyncio
import base64
import io
import json
import re
import shutil
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

import exhibit
from exhibit import conversion
from tests.rag.bundles import write_bundle


@pytest.fixture
def converted(samples, tmp_path):
    return exhibit.convert("cuad", source=samples / "cuad", out=tmp_path / "cuad", max_documents=1, jobs=1)


def test_convert_result_shows_counts_and_loads_bundle(converted):
    assert re.search(r"^documents +1$", repr(converted), re.MULTILINE)
    bundle = converted.load()
    assert list(bundle.documents["filename"]) == [entry.filename for entry in converted.info.documents]
    assert len(bundle.questions) == converted.info.counts.questions
    assert set(bundle.gold["how"]) <= {"exact", "folded", "parts", "fuzzy", "absent"}
    assert bundle.gold["label_clause"].notna().all()
    dataset = bundle.dataset()
    assert dataset.column_names == ["id", "question", "answer", "is_impossible", "contexts"]
    assert len(bundle.dataset("gold")) == len(bundle.gold) and len(bundle.dataset("documents")) == 1
    located = bundle.gold[bundle.gold["how"] != "absent"].iloc[0]
    picture = bundle.show(int(located["id"]), scale=0.5)
    assert picture.width > 200 and picture.height > 300
    assert "cuad" in repr(bundle)


def test_load_describes_bundle_without_metadata_and_reports_missing_folder_or_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_bundle(tmp_path / "leases")
    bundle = exhibit.load(folder)
    documents = bundle.documents
    assert list(documents["filename"]) == sorted(path.name for path in (folder / "corpus").iterdir())
    assert documents["title"].isna().all() and list(documents["ocr"]) == [{}] * len(documents)
    asked = len(bundle.questions)
    assert repr(bundle) == f"<bundle {folder}: {asked} questions, {len(documents)} documents>"
    with pytest.raises(exhibit.ToolkitError, match="no table 'colours'; the tables are questions, gold, documents"):
        bundle.dataset("colours")
    with pytest.raises(exhibit.ToolkitError, match="no such folder; name a bundle's folder, or one of none; exhib"):
        exhibit.load("cuad")
    write_bundle(tmp_path / "datasets_out" / "cuad")
    assert exhibit.load("cuad").address == "datasets_out/cuad"
    with pytest.raises(exhibit.ToolkitError, match="or one of datasets_out/cuad"):
        exhibit.load("nowhere")


def test_bundle_show_joins_pages_of_gold_into_single_image(tmp_path, monkeypatch):
    pages = [Image.new("RGB", (30, 20), "red"), Image.new("RGB", (40, 10), "blue")]
    asked = []
    drawn = [("lease.pdf", number, page) for number, page in enumerate(pages, 1)]
    monkeypatch.setattr(
        "exhibit.bundles.draw_row", lambda root, row, *, scale: asked.append((root, row, scale)) or drawn
    )
    bundle = exhibit.load(write_bundle(tmp_path / "leases"))
    sheet = bundle.show(3)
    assert asked == [(tmp_path / "leases", 3, 1.5)] and sheet.size == (40, 30)
    assert [sheet.getpixel(at) for at in ((0, 0), (29, 19), (0, 20), (39, 29))] == [(255, 0, 0)] * 2 + [(0, 0, 255)] * 2
    assert sheet.getpixel((39, 0)) == (255, 255, 255)
    del drawn[1]
    assert bundle.show(3, scale=0.5) is pages[0] and asked[1][2] == 0.5


def test_convert_rejects_unknown_option_or_converter(samples, tmp_path, capsys):
    with pytest.raises(exhibit.ToolkitError, match="unrecognized arguments: --colour red; see exhibit convert cuad"):
        exhibit.convert("cuad", source=samples / "cuad", out=tmp_path / "x", colour="red")
    with pytest.raises(exhibit.ToolkitError, match="no converter 'cuda'; the converters are .*cuad"):
        exhibit.convert("cuda")
    assert capsys.readouterr().err == ""


def test_convert_passes_keyword_arguments_as_options_of_the_converter(converted, tmp_path, monkeypatch):
    arguments = []
    monkeypatch.setattr(conversion.command, "convert", lambda _, options: arguments.append(options) or converted.info)
    monkeypatch.chdir(tmp_path)
    clock = iter([10.0, 12.5])
    monkeypatch.setattr(conversion.time, "monotonic", lambda: next(clock))
    made = exhibit.convert("cuad")
    assert (str(made.out), made.seconds) == ("datasets_out/cuad", 2.5) and "2.5 s" in repr(made)
    usual = vars(arguments[0])
    assert str(usual["out"]) == "datasets_out/cuad" and not usual["force"] and not usual["strict"]
    assert not usual["ocr"] and not usual["answerable_only"] and usual["patch"] == []
    monkeypatch.undo()
    monkeypatch.setattr(conversion.command, "convert", lambda _, options: arguments.append(options) or converted.info)
    flags = {"force": True, "strict": True, "ocr": True, "answerable_only": True, "jobs": 3, "engine": "serial"}
    exhibit.convert("cuad", out=tmp_path / "x", patch=["a.jsonl", "b.jsonl"], titles="llm", **flags)
    given = vars(arguments[1])
    assert {name: given[name] for name in flags} == flags and given["titles"] == "llm"
    assert given["patch"] == ["a.jsonl", "b.jsonl"] and str(given["out"]) == str(tmp_path / "x")


def test_convert_runs_in_thread_with_running_event_loop(converted, samples, tmp_path, monkeypatch):
    """Playwright and the page fetcher each start an event loop, which fails in a thread that already runs one."""

    async def fetched() -> object:
        return converted.info

    async def cell() -> exhibit.Conversion:
        return exhibit.convert("cuad", source=samples / "cuad", out=tmp_path / "x")

    monkeypatch.setattr(conversion.command, "convert", lambda *given: asyncio.run(fetched()))
    assert asyncio.run(cell()).info == converted.info


def test_evaluate_result_shows_figures_and_compare_shows_differences(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    folder = write_bundle(tmp_path / "<leases>")
    fixed = {"embedder": "hashing", "output_dir": tmp_path / "results", "report_cases": 0, "threads": 1}
    before = exhibit.evaluate(folder, run_name="before", top_k=1, **fixed)
    after = exhibit.evaluate([folder], run_name="after", **fixed)
    assert "recall" in repr(before) and "failed" not in repr(before) and f"report: {before.report}" in repr(before)
    assert before.questions.loc[("<leases>", 0), "outcome"] and len(before.questions) == len(before.rows)
    row = before.summary.loc[("recall@10", "<leases>")]
    assert row["mean"] == before.means["recall@10"].mean
    assert row[["low", "high"]].isna().all(), "the documents are too few for an interval"
    compared = exhibit.compare(before, after.folder)
    assert compared.overlap.asked == len(before.rows)
    assert ["before", "after", "change", "n"] in [line.split() for line in repr(compared).splitlines()]
    assert set(compared.regressions) <= set(compared.differences)
    with pytest.raises(exhibit.ToolkitError, match="no such run"):
        exhibit.compare(tmp_path / "nowhere", after)
    with pytest.raises(exhibit.ToolkitError, match="evaluate.*: limitt"):
        exhibit.evaluate(folder, limitt=3)


def test_evaluate_on_two_datasets_adds_figures_for_all_datasets_and_reports_failures(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    folders = [write_bundle(tmp_path / name) for name in ("alder", "birch")]

    def answer(question: str) -> str:
        if "Alder" in question:
            raise ValueError("out of order")
        return "The law of Norway."

    fixed = {"output_dir": tmp_path / "results", "report_cases": 0, "threads": 1, "max_failures": 1.0}
    run = exhibit.evaluate(folders, target=answer, metrics="answer_length", run_name="two", **fixed)
    failed = [row for row in run.rows if row.reply.error]
    assert f"{len(failed)} of {len(run.rows)} questions failed. The first: " in repr(run) and failed
    assert "out of order" in repr(run) and "ALL" in repr(run)
    assert _datasets_of(run) == {"alder", "birch", "ALL"}
    row = run.questions.loc[("alder", failed[0].id)]
    assert "out of order" in row["error"]
    assert (row["file"], row["question"]) == (failed[0].filename, failed[0].question)
    single = exhibit.evaluate(exhibit.load(folders[0]), target=answer, metrics="answer_length", run_name="one", **fixed)
    assert _datasets_of(single) == {"alder"} and "ALL" not in repr(single)
    two = exhibit.evaluate(folders[1], target=answer, metrics="answer_f1", run_name="other", **fixed)
    with pytest.raises(exhibit.ToolkitError, match="exists already; continue it"):
        exhibit.evaluate(folders[1], target=answer, metrics="answer_f1", run_name="other", **fixed)
    with pytest.raises(exhibit.ToolkitError, match="have no dataset and metric in common"):
        exhibit.compare(single, two)


def _datasets_of(run: exhibit.Run) -> set[str]:
    return {dataset for metric, dataset in run.summary.index if metric == "answer_length"}


@pytest.mark.parametrize(("module", "ask"), [("pandas", lambda b: b.questions), ("datasets", lambda b: b.dataset())])
def test_missing_library_error_names_notebook_extra(module, ask, tmp_path, monkeypatch):
    bundle = exhibit.load(write_bundle(tmp_path / "leases"))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(exhibit.ToolkitError, match=rf"{module} is not installed; run pip .*exhibit-rag\[notebook\]"):
        ask(bundle)


def test_exhibit_module_lists_public_names_and_refuses_unknown_names():
    assert {"load", "convert", "evaluate", "compare"} < set(dir(exhibit))
    with pytest.raises(AttributeError, match="the names are Bundle, Comparison"):
        exhibit.lod  # noqa: B018


def test_load_fetches_hub_bundle_at_revision_and_shows_the_address(tmp_path, monkeypatch):
    folder = write_bundle(tmp_path / "leases")
    asked = []

    def fetch(repo_id, *, revision):
        asked.append((repo_id, revision))
        return SimpleNamespace(folder=folder, address="hf://me/leases@abc")

    monkeypatch.setattr("exhibit.bundles.fetch", fetch)
    bundle = exhibit.load("hf://me/leases@v1")
    assert asked == [("me/leases", "v1")] and len(bundle.bundle.questions) == 9 and "hf://me/leases@abc" in repr(bundle)


ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
MOST = 1 << 20
"""The most bytes of the notebook with its pictures."""


def code_cells() -> list[dict[str, Any]]:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def outputs(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [output.get("data", {}) for cell in cells for output in cell["outputs"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the layout of this project: an empty docs/ folder beside the samples."""
    shutil.copytree(ROOT / "samples" / "cuad", tmp_path / "samples" / "cuad")
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def test_notebook_contains_every_call_of_notebook_api():
    text = "\n".join("".join(cell["source"]) for cell in code_cells())
    calls = ("exhibit.load(", "bundle.show(33", "exhibit.convert(", "exhibit.evaluate(", "exhibit.compare(")
    assert all(call in text for call in (*calls, "bundle.questions", "bundle.gold", "bundle.dataset("))


@pytest.mark.slow
def test_notebook_cells_run_in_order(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
    # with one contract and no model, the cells call the same functions and are quick
    monkeypatch.setattr(exhibit, "convert", partial(exhibit.convert, max_documents=1, jobs=1))
    run, quick = (exhibit.evaluate, {"embedder": "hashing", "threads": 1, "limit": 8, "report_cases": 0, "llm": "none"})
    monkeypatch.setattr(exhibit, "evaluate", lambda path, **more: run(path, **{**more, **quick}))
    names: dict[str, Any] = {}
    # one contract gives no interval, and the last cell prints an interval
    for cell in code_cells()[:-1]:
        exec("".join(cell["source"]), names)
    assert len(names["bundle"].questions) == names["made"].info.counts.questions == 41
    assert names["bundle"].show(33).width > 500
    assert names["compared"].overlap.asked == len(names["usual"].rows) == 8


def test_notebook_file_contains_output_of_its_cells():
    cells = code_cells()
    assert NOTEBOOK.stat().st_size < MOST
    assert all(cell["outputs"] for cell in cells[1:]), "every cell except the imports has output"
    shown = outputs(cells)
    [picture] = [data["image/png"] for data in shown if "image/png" in data]
    page = Image.open(io.BytesIO(base64.b64decode("".join(picture)))).convert("RGB")
    # gold is drawn in colour on a black and white page: a marked page has coloured pixels
    marked = sum(count for count, colour in page.getcolors(page.width * page.height) if max(colour) - min(colour) > 60)
    assert marked > 500
    assert sum("<table" in "".join(data.get("text/html", "")) for data in shown) >= 4
    notebook = json.dumps(json.loads(NOTEBOOK.read_text(encoding="utf-8")), ensure_ascii=False)
    assert not re.search(r'file:///|"/(home|tmp|work|root|Users)/|Traceback', notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), "cells ran in order"


@pytest.mark.slow
@pytest.mark.extra
def test_jupyter_runs_notebook_from_top_to_bottom(folder):
    from docs.notebook import execute  # this import needs the extras notebook and test

    book = execute(NOTEBOOK, folder)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    kinds = [sorted(set(data) - {"text/plain"}) for data in outputs(cells)]
    assert kinds == [sorted(set(data) - {"text/plain"}) for data in outputs(code_cells())]
    assert (folder / "results" / "notebook-usual" / "report.html").is_file()
