"""Measures the report of a large run: the time and memory of writing it, its size, its first paint, and opening a case.

    python -m bench.report [--cases 20000] [--open 7000] [--keep FOLDER]

Documents are cut from the texts of LegalBench-RAG if they are available, else from the samples; questions, rankings,
answers and scores are invented. Times are the browser's own, on a page opened from disk without a server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from bench._table import ROOT, find_corpus_folder, find_cuad_folder, print_table, read_texts
from exhibit.converters.printing.browser import launch_options
from exhibit.evaluation.records import make_summary_json, read_tables
from exhibit.evaluation.statistics import summarise_run
from exhibit.evidence import Span, read_document
from exhibit.runtime.command import guarded
from exhibit.viewer.drawing import Sheets, draw_sheets

DOCUMENTS, CHARACTERS = 510, 50_000
"""The number of documents and the characters of each, as in CUAD."""
ASKED = 41
"""The number of questions about each document, as in CUAD."""
CHUNK, DEPTH, QUOTED = 500, 64, 10
VERDICTS = ("answered",) * 6 + (
    "wrong document", "right document, wrong passage", "retrieved but not used", "failed",
)  # fmt: skip
KS = (1, 2, 4, 8, 16, 32, 64)


def make_run(folder: Path, texts: Sequence[str], *, cases: int, seed: int = 1) -> Path:
    """Write the result files of an invented run, always the same for one seed; return its folder."""
    chance = random.Random(seed)
    path = folder / "contracts" / "eval_results.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w", encoding="utf-8") as file:
        for number in range(cases):
            file.write(json.dumps(_make_row(number, texts, chance), ensure_ascii=False) + "\n")
    config = {"preset": "made up", "top_k": 8, "datasets": {"contracts": {"path": "gone", "questions": cases}}}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    means = make_summary_json(summarise_run(read_tables(folder)))
    for place in (folder, path.parent):
        (place / "summary.json").write_text(json.dumps(means), encoding="utf-8")
    return folder


def cut_documents(texts: Sequence[str]) -> list[str]:
    """Return as many documents as CUAD has, cut from some texts one after another."""
    whole = "\n".join(texts)
    starts = [number * CHARACTERS % max(1, len(whole) - CHARACTERS) for number in range(DOCUMENTS)]
    return [whole[start : start + CHARACTERS] for start in starts]


def _make_row(number: int, texts: Sequence[str], chance: random.Random) -> dict[str, Any]:
    document = number // ASKED % len(texts)
    text, name = texts[document], f"contract_{document:03}.pdf"
    start = chance.randrange(0, len(text) - 900)
    gold = [start, start + chance.randrange(120, 800)]
    verdict = VERDICTS[chance.randrange(len(VERDICTS))]
    error = f"the server at 10.0.0.{number % 9} closed the connection after {number % 50} s"
    quoted = text[gold[0] : gold[1]]
    asked = " ".join(text[gold[0] : gold[0] + 160].split())
    return {
        "id": number,
        "question": f"Consider contract {document}; what does it provide on clause {number % ASKED}, such as: {asked}?",
        "truth": quoted[:300],
        "is_impossible": False,
        "filename": name,
        "labels": {"clause": f"clause {number % ASKED}", "contract": name, "title": f"Contract {document}"},
        "gold": [
            {"filename": name, "text": quoted, "places": [[gold]], "pages": [gold[0] // 3000 + 1], "how": "exact"}
        ],
        "reply": {
            "answer": None if verdict == "failed" else f"{quoted[:280]} [1]",
            "refused": False,
            "citations": [1],
            "passages": [] if verdict == "failed" else list(_make_passages(document, start, texts, chance)),
            "selected": 8,
            "seconds": round(chance.random(), 4),
            "error": error if verdict == "failed" else "",
            "usage": {},
        },
        "scores": {
            f"{m}@{k}": round(chance.random(), 6) for m in ("char_recall", "char_precision", "drm", "ndcg") for k in KS
        },
        "verdict": verdict,
        "stage": None,
        "evidence": "Passage 1 is the first to touch the gold.",
    }  # fmt: skip


def _make_passages(document: int, start: int, texts: Sequence[str], chance: random.Random) -> Iterator[dict[str, Any]]:
    for rank in range(DEPTH):
        # seven of ten passages are from the right document, as with a good retriever
        other = document if rank == 0 or chance.random() < 0.7 else chance.randrange(len(texts))
        text = texts[other]
        first = (start if rank == 0 else chance.randrange(0, len(text) - CHUNK)) // CHUNK * CHUNK
        yield {
            "filename": f"contract_{other:03}.pdf",
            "span": [first, first + CHUNK],
            "page": first // 3000 + 1,
            "score": round(1 - rank / 70, 5),
            **({"text": text[first : first + CHUNK]} if rank < QUOTED else {}),
        }


# ---------------------------------------------------------------- in a browser


class Took(NamedTuple):
    """A duration in milliseconds in a browser: wall-clock time, and processor time of the web page's thread."""

    clock: float
    work: float


def first_paint(browser: Browser, report: Path) -> Took:
    """Return the time from opening a report to the browser's first contentful paint.

    The time is read when the report's list of questions is in the page. If nothing is painted by then, the time
    until then is returned.
    """
    page, work = _open_page(browser)
    page.goto(report.resolve().as_uri(), wait_until="commit")
    page.wait_for_selector(".line .question", state="attached")
    told = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()")
    took = Took(float(told), work())
    page.close()
    return took


def open_times(browser: Browser, report: Path, keys: Sequence[str]) -> dict[str, list[Took]]:
    """Return the times to show each case, under two keys.

    `by a link` has the times in a new page, and `in an open page` those in a page that is already loaded.
    """
    fresh, then = [], []
    for key in keys:
        page, work = _open_page(browser)
        page.add_init_script(_WATCH)
        page.goto(f"{report.resolve().as_uri()}#{key}", wait_until="commit")
        page.wait_for_selector(f"article[data-key='{key}']", state="attached")
        fresh.append(Took(float(page.evaluate("window.caseThere")), work()))
        page.close()
    page, work = _open_page(browser)
    page.goto(report.resolve().as_uri())
    page.wait_for_function("() => arrivedLines === META.total")
    for key in keys:
        before = work()
        then.append(Took(float(page.evaluate(_OPEN, key)), work() - before))
    page.close()
    return {"by a link": fresh, "in an open page": then}


def _open_page(browser: Browser) -> tuple[Page, Callable[[], float]]:
    """Return a new browser page, and a function that returns the processor milliseconds of its thread."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def work() -> float:
        told = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(told["TaskDuration"])

    return page, work


_WATCH = """new MutationObserver((_, watch) => {
  if (!document.querySelector('article.case')) return;
  window.caseThere = performance.now();
  watch.disconnect();
}).observe(document, { childList: true, subtree: true })"""
_OPEN = """key => new Promise(done => {
  const started = performance.now();
  const watch = new MutationObserver(() => {
    if (document.querySelector('article.case')?.dataset.key !== key) return;
    watch.disconnect();
    requestAnimationFrame(() => done(performance.now() - started));
  });
  watch.observe(document.getElementById('case'), { childList: true });
  location.hash = key;
})"""


_DRAW = """
import sys, time
from pathlib import Path
from bench._table import measure_peak_memory
from exhibit.viewer import write_report
started = time.perf_counter(), time.process_time()
write_report(Path(sys.argv[1]), datasets={"contracts": Path("gone")}, pages=0)
print(time.perf_counter() - started[0], time.process_time() - started[1])
print(measure_peak_memory())
"""


class Drawing(NamedTuple):
    """The cost of writing a report: wall-clock seconds, processor seconds, and megabytes of memory."""

    clock: float
    work: float
    memory: float


def draw_apart(folder: Path) -> tuple[Path, Drawing]:
    """Write a report in a separate process; return its path, and the time and memory that this took."""
    done = subprocess.run(
        [sys.executable, "-c", _DRAW, str(folder)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return folder / "report.html", Drawing(*map(float, done.stdout.split()))


def measure_page_cost(folder: Path, scratch: Path, *, documents: int = 10, pages: int = 10) -> tuple[int, float, float]:
    """Render pages of a folder's PDFs; return their number, and the milliseconds and kilobytes per page."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".pdf")
    started, drawn = time.process_time(), 0
    for number, path in enumerate(paths[:: max(1, len(paths) // documents)][:documents]):
        document = read_document(path)
        spans = tuple(Span(start, start + CHUNK) for start in range(0, len(document.text), CHUNK))
        first = tuple(page.number for page in document.pages[:pages])
        draw_sheets(Sheets(number, path.name, path, first, spans, scratch))
        drawn += len(first)
    work = time.process_time() - started
    return drawn, 1000 * work / max(1, drawn), size_of(scratch)[0] / 1000 / max(1, drawn)


def size_of(folder: Path) -> tuple[int, int]:
    """Return the bytes of a folder and the number of its files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files), len(files)


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Write an invented run and its report, open the report in a browser, and print the times and sizes."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.report", description=__doc__.split("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--cases", type=int, default=20_000, metavar="N")
    parser.add_argument("--open", type=int, default=7000, metavar="ID", help="the case that the link opens")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the run to this folder, and keep it")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch) / "run"
        make_run(folder, cut_documents(read_texts(find_corpus_folder(None))), cases=options.cases)
        report, drawn = draw_apart(folder)
        size, files = size_of(folder / "report_files")
        page_size = report.stat().st_size
        keys = [f"contracts/{number}" for number in (options.open, options.cases // 2, options.cases - 1, 1)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(**launch_options(Path(scratch)))
            paint = sorted(first_paint(browser, report) for _ in range(5))
            times = open_times(browser, report, keys)
            browser.close()
        pages, page_work, page_bytes = measure_page_cost(find_cuad_folder(None), Path(scratch) / "pages")
    seconds, work, memory = drawn
    rows: list[tuple[str, str, str]] = [
        ("drawing it", f"{seconds:.0f} s", f"{work:.0f} s ({1000 * work / options.cases:.2f} ms a case)"),
        ("first paint, median of 5", f"{paint[2].clock:.0f} ms", f"{paint[2].work:.0f} ms"),
    ]
    for how, took in times.items():
        slowest = max(took)
        rows.append((f"a case {how}, slowest of {len(took)}", f"{slowest.clock:.0f} ms", f"{slowest.work:.0f} ms"))
    load = f"{os.getloadavg()[0]:.1f} programs at once on {os.cpu_count()} cores"
    print_table(f"A report of {options.cases:,} cases ({load})", ("what", "by the clock", "work of its own"), rows)
    print(f"\nmemory at its peak while drawing: {memory:.0f} MB; report.html {page_size / 1e6:.2f} MB; ", end="")
    print(f"its folder, without page images: {size / 1e6:.1f} MB in {files} files")
    print(
        f"a page's picture with all boxes: {page_work:.0f} ms of work, {page_bytes:.0f} kB ({pages} pages of contracts)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
