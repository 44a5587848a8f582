"""Output of pages and commands for three small runs, exact to the last figure.

It covers plots, tables, lists, cases and text.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from exhibit.evaluation.bands import read_scale
from exhibit.evaluation.confidence import describe
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import summarise, summarise_run
from exhibit.evaluation.verdicts import STAGES
from exhibit.viewer.metric_tables import make_metric_rows, run_columns
from exhibit.viewer.plots import make_plots
from exhibit.viewer.report import write_headlines
from exhibit.viewer.results import main
from exhibit.viewer.review.__main__ import main as review
from exhibit.viewer.trend.changes import make_series, read_runs
from exhibit.viewer.trend.index import draw
from tests.viewer.report_data import block_of, piece

DEPTHS = (1, 2, 4, 8)
VERDICTS = (
    "answered", "refused though answerable", "wrong document", "right document, wrong passage", "answered",
    "failed", "answered though impossible", "retrieved but not used", "answered", "figures that no passage has",
)  # fmt: skip
TEXT = "The lease of the mill is made here. The rent is due in advance on the first of May. The keys are kept. " * 9


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in value) if isinstance(value, list) else json.dumps(value)
    path.write_text(text, encoding="utf-8")


def a_row(dataset: str, id: int, turn: int) -> dict[str, Any]:
    verdict = VERDICTS[(id + turn) % len(VERDICTS)]
    impossible = VERDICTS[id % len(VERDICTS)] == "answered though impossible" or id == 8
    if impossible != (verdict == "answered though impossible") and verdict != "failed":
        verdict = ("answered" if id == 8 else "answered though impossible") if impossible else "wrong document"
    failed, refused = verdict == "failed", "refused" in verdict or id == 8
    level = round(0.3 + 0.07 * (id % 7) - 0.05 * turn * (1 + id % 3), 4)
    scores: dict[str, float | None] = {
        **{f"char_recall@{k}": level + 0.05 * at for at, k in enumerate(DEPTHS)},
        **{f"char_precision@{k}": level / k for k in DEPTHS},
        **{f"document_hit@{k}": float(id % 4 > 0) for k in DEPTHS},
        **{f"drm@{k}": float(id % 4 == 0) for k in DEPTHS},
        "answer_f1": level + 0.1,
        "answered_rightly": float(id % 5 < 3 and not refused),
        "latency": 0.2 * (id + 1),
    }
    start = TEXT.index("The rent", 100 * (id % 5))
    passages = [
        {
            "filename": f"{dataset}-{id % 3}.txt",
            "span": [at, at + 47],
            "score": 0.9 - at / 999,
            "text": TEXT[at : at + 47],
        }
        for at in (start - 20, start + 30, 0)
    ]
    reply = {
        "error": f"HTTP 50{id % 3}: away at 10:0{id}" if failed else "",
        "answer": None if failed else "not found in the documents" if refused else "In advance [1].",
        "refused": refused, "citations": [1], "passages": [] if failed else passages, "selected": 2,
        "seconds": 0.2 * (id + 1), "confidence": round(0.05 + 0.09 * id, 2),
        "usage": {"tokens_in": 10.0 * id, "tokens_out": 2.0},
    }  # fmt: skip
    gold = {"filename": f"{dataset}-{id % 3}.txt", "text": TEXT[start : start + 47], "how": "exact"}
    return {
        "id": id, "question": f"When is the rent of {dataset} {id} due?", "truth": "In advance.",
        "is_impossible": impossible, "filename": f"{dataset}-{id % 3}.txt",
        "labels": {"clause": ("rent", "keys")[id % 2], "group": id % 3},
        "gold": [] if impossible else [{**gold, "places": [[[start, start + 47]]], "pages": []}], "reply": reply,
        "scores": {name: None if failed else value for name, value in scores.items()}, "verdict": verdict,
        "stage": STAGES.get(verdict), "evidence": "It was not asked." if failed else f"Passage {id} shows it.",
    }  # fmt: skip


def a_run(root: Path, turn: int, *, k: int = 6) -> Path:
    """A run over two datasets of text; each turn is a little worse than the one before."""
    folder, tables = root / f"run-{turn}", []
    for dataset, count in (("mills", 14), ("fords", 9)):
        bundle = root / "bundles" / dataset
        for number in range(3):
            (bundle / "corpus").mkdir(parents=True, exist_ok=True)
            (bundle / "corpus" / f"{dataset}-{number}.txt").write_text(TEXT, encoding="utf-8")
        rows = [a_row(dataset, id, turn) for id in range(count)]
        write(bundle / "train.json", {"rows": []})
        names = list(rows[0]["scores"])
        table = Table(
            dataset,
            [row["id"] for row in rows],
            [row["filename"] for row in rows],
            {name: [row["scores"][name] for row in rows] for name in names},
            failed=[int(bool(row["reply"]["error"])) for row in rows],
            labels=[row["labels"] for row in rows],
        )
        tables.append(table)
        write(folder / dataset / "eval_results.jsonl", rows)
        write(folder / dataset / "summary.json", {name: one.as_json() for name, one in summarise(table).items()})
        known = [(row["reply"]["confidence"], not row["is_impossible"]) for row in rows]
        write(folder / dataset / "confidence.json", describe(known))
    write(folder / "summary.json", {name: one.as_json() for name, one in summarise_run(tables).items()})
    datasets = {name: {"path": str(root / "bundles" / name), "groups": None} for name in ("mills", "fords")}
    write(
        folder / "config.json",
        {"format": "exhibit-run/1", "version": "0.1.0", "target": "builtin", "preset": "sac",
         "config": {"embedder": "minilm", "k": k}, "datasets": datasets, "measured": {"parity": "", "ks": DEPTHS}},
    )  # fmt: skip
    write(
        folder / "provenance.json",
        {"started": f"2026-03-0{turn + 1}T09:30:00+00:00", "version": "0.1.0", "commit": f"{turn}" * 40,
         "changed_files": turn, "machine": {"system": "Linux", "processor": "x", "cores": 8, "python": "3.12.4"},
         "data": {name: {"bundle.json": f"{turn // 2}" * 64, "train.json": "a" * 64} for name in datasets}},
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    root = tmp_path_factory.mktemp("shown") / "runs"
    return [a_run(root, turn, k=6 - turn) for turn in range(3)]


def plain_text(page: Path) -> str:
    """Return a page's text and the coordinates of its graphics, line by line, without scripts and style."""
    text = re.sub(r"(?s)<(script|style|head)\b.*?</\1>", "", page.read_text(encoding="utf-8"))
    text = re.sub(r"<(?:rect|path|line|circle|polyline|polygon|text)\b([^>]*)>", r"\n{\1}\n", text)
    lines = (" ".join(line.split()) for line in unescape(re.sub(r"<[^>]*>", "\n", text)).split("\n"))
    return "".join(f"{line}\n" for line in lines if line)


def as_lines(value: Any) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    return re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def test_the_plots_of_a_run(runs, golden):
    seconds = [0.2 * (id + 1) for id in range(14)] + [9.0]
    plots = [asdict(plot) | {"summary": plot.summary} for plot in make_plots(RunResults(runs[1]), seconds)]
    golden("viewer/plots.json", as_lines(rounded(plots)))
    assert [plot["title"] for plot in plots][:3] == ["Precision and recall", "The right document", "By benchmark"]


def test_the_report_of_a_run_in_words_and_its_list_and_cases(runs, golden):
    assert main(["report", str(runs[1]), "--jobs", "1"]) == 0
    golden("viewer/report.txt", plain_text(runs[1] / "report.html").replace(str(runs[1].parent), "RUNS"))
    meta = block_of(runs[1] / "report.html", "meta")
    pieces = sorted(path.stem for path in (runs[1] / "report_files").glob("*.js"))
    shown = {name: piece(runs[1] / "report_files", name) for name in pieces}
    golden("viewer/report.json", as_lines(rounded({"meta": {**meta, "words": 0}, **shown})))
    assert meta["total"] == 23


def test_two_runs_compared_in_words(runs, golden, capsys):
    out = runs[2] / "compare.html"
    assert main(["compare", str(runs[0]), str(runs[2]), "--jobs", "1", "--out", str(out)]) == 0
    golden("viewer/compare.txt", plain_text(out))
    assert "worse" in plain_text(out)


def test_what_commands_print_of_runs(runs, golden, capsys, tmp_path):
    printed = []
    for words in (
        ["summary", str(runs[0])], ["summary", *map(str, runs), "--all"], ["summary", str(runs[0]), "--json"],
        ["diff", str(runs[0]), str(runs[1])], ["diff", str(runs[0]), str(runs[2]), "--all"],
        ["diff", str(runs[2]), str(runs[0]), "--fail-on-regression"], ["diff", str(runs[0]), str(runs[1]), "--json"],
        ["card", str(runs[0])], ["report", str(runs[0]), "--export", str(tmp_path / "a.csv")],
    ):  # fmt: skip
        code = main(words)
        printed.append(f"{words[0]} {code}\n{capsys.readouterr().out}")
    printed.append((tmp_path / "a.csv").read_text(encoding="utf-8-sig"))
    text = "\n".join(printed).replace(str(runs[0].parent), "RUNS").replace(str(tmp_path), "OUT")
    golden("viewer/commands.txt", re.sub(r"\d+\.\d{7,}", lambda match: f"{float(match[0]):.6f}", text))


def test_runs_over_time_in_words_and_plots(runs, golden, capsys, tmp_path):
    page, summary, checks = tmp_path / "index.html", tmp_path / "summary.md", tmp_path / "junit.xml"
    flags = ["--out", str(page), "--summary", str(summary), "--junit", str(checks)]
    gates = ["--fail-on", "regression", "--fail-on", "mills:answer_f1 < 0.5", "--fail-on", "failed > 0.1"]
    code = main(["index", str(runs[0].parent), *flags, *gates])
    text = "\n".join([str(code), capsys.readouterr().out, summary.read_text("utf-8"), checks.read_text("utf-8")])
    for place, name in ((str(tmp_path), "OUT"), (str(runs[0].parent), "RUNS"), (runs[0].parent.as_uri(), "RUNS")):
        text = text.replace(place, name)
    golden("viewer/trend.txt", text + plain_text(page))
    found, _ = read_runs(runs[0].parent)
    numbers = {run.name: at for at, run in enumerate(found, 1)}
    series, scale = make_series(found), read_scale()
    metrics = ("char_recall@8", "drm@8", "answer_f1", "latency", "char_precision@1")
    plots = [draw(one, name, numbers, [], scale.of(one.dataset, name)) for one in series for name in metrics]
    golden("viewer/trend.json", as_lines(rounded([asdict(plot) for plot in plots if plot])))


def test_the_rows_of_a_report(runs, golden):
    run = RunResults(runs[2])
    rows = make_metric_rows(run_columns(run), None, read_scale())
    told = [[row.metric, [list(one) for one in row.cells]] for row in rows]
    golden("viewer/rows.json", as_lines(rounded({"rows": told, "headlines": write_headlines(run)})))


def reviewed(folder: Path, run: Path, data: dict[str, Any], reviewer: str, judge: Any) -> Path:
    cases = [{"dataset": one["dataset"], "id": one["id"], **judge(at, one)} for at, one in enumerate(data["cases"])]
    path = folder / f"review-{reviewer}.json"
    about = {name: value for name, value in data["about"].items() if name != "drafted"}
    write(path, {**about, "run": run.name, "reviewer": reviewer, "cases": cases})
    return path


def test_a_review_is_drawn_read_and_counted(runs, golden, capsys, tmp_path):
    assert review(["make", str(runs[0]), "--sample", "14", "--seed", "3", "--out", str(tmp_path / "page.html")]) == 0
    data = block_of(tmp_path / "page.html", "data")
    made = capsys.readouterr().out.replace(str(tmp_path), "OUT")
    start = TEXT.index("The keys")

    def better(one: dict[str, Any]) -> dict[str, Any]:
        name = (one["gold"] or [{"filename": f"{one['dataset']}-0.txt"}])[0]["filename"]
        context = {"filename": name, "spans": [[start, start + 18]], "text": TEXT[start : start + 18]}
        return {"contexts": [context], "is_impossible": False, "answer": ""}

    def ada(at: int, one: dict[str, Any]) -> dict[str, Any]:
        if at % 4 == 1:
            return {"gold": "wrong", "answer": "wrong", "better": better(one), "comment": "The  keys."}
        return {"gold": ("right", "right", "wrong", "unclear")[at % 4], "answer": ("right", "wrong")[at % 2]}

    def ben(at: int, one: dict[str, Any]) -> dict[str, Any]:
        if at % 8 == 1:
            return {"gold": "wrong", "better": better(one)}
        return {"gold": ("right", "wrong", "right")[at % 3], "answer": "right", "comment": f"No. {at}"}

    files = [reviewed(tmp_path, runs[0], data, name, judge) for name, judge in (("Ada", ada), ("Ben", ben))]
    out = tmp_path / "reviewed"
    flags = ["--run", str(runs[0]), "--out", str(out), "--set-aside-wrong"]
    assert review(["read", *map(str, files), *flags]) == 0
    told = capsys.readouterr().out.replace(str(tmp_path), "OUT")
    kept = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob("*.json"))}
    golden("viewer/review.txt", f"{made}\n{told}")
    sheets = {key: {**one, "words": [*one["words"][:9], *one["words"][-9:]]} for key, one in data["sheets"].items()}
    golden("viewer/review.json", as_lines(rounded({"page": {**data, "sheets": sheets}, **kept})))
    assert "corrected: " in told and "kappa" in told
