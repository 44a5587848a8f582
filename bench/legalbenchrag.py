"""Measures presets on LegalBench-RAG, and prints them beside the figures of published papers.

    python -m bench.legalbenchrag [--presets naive,routed] [--full] [--words free] [--page FILE]

Precision and recall are by characters, with the method of the benchmark's own code. DRM is the share of
passages from a document without gold. Published figures are in bench/papers, one file per paper.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.table import ROOT, Table, exhibit, find_data, publish, read_json
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

KS = (1, 2, 4, 8, 16, 32, 64)
DATASETS = {"ALL": "ALL", "privacy_qa": "PrivacyQA", "contractnli": "ContractNLI", "maud": "MAUD", "cuad": "CUAD"}
METRICS = {"char_precision": "precision", "char_recall": "recall", "drm": "DRM"}
HEADLINE = (("char_precision", 1), ("char_recall", 8), ("char_recall", 64), ("drm", 8))
PRESETS = "naive,rcts,sac,sac-multilayer,routed,careful"
SEED = 20240819
"""The seed that draws the questions of a short run (`--limit`)."""
FREE = ROOT / "bench" / "free_questions.json"
"""200 of mini's questions, reworded by people, by the SHA-256 of the published question. No model was trained on them,
but weights of the retrieval were chosen by results on them."""
_NAMED = re.compile(r"\s*consider\s+[^;]*\w[^;]*;\s*(?P<question>.*\w.*)", re.IGNORECASE | re.DOTALL)


def unname(question: str) -> str:
    """Return a question of the form `Consider the X; Y` without its document's name."""
    match = _NAMED.fullmatch(question)
    return match["question"][0].upper() + match["question"][1:] if match else question


def reword(question: str, words: str) -> str | None:
    """Return a question in other words; None if it is left out."""
    if words == "free":
        return _read_free().get(hashlib.sha256(question.encode()).hexdigest())
    return unname(question) if words == "unnamed" else question


@cache
def _read_free() -> dict[str, str]:
    questions: dict[str, str] = read_json(FREE)
    return questions


# ---------------------------------------------------------------- bundles and runs


def make_bundle(source: Path, out: Path, options: argparse.Namespace) -> Path:
    """Return the bundle for these options; convert it unless it exists already."""
    plain = out / "bundles" / f"legalbenchrag-{'full' if options.full else 'mini'}"
    if not plain.is_dir():
        flags = [] if options.full else ["--mini"]
        exhibit("convert", "legalbenchrag", "--source", source, "--out", plain, *flags)
    if options.words == "own":
        return plain
    # one name for all wordings, so that they share one index
    folder: Path = out / "bundles" / options.words / plain.name
    shutil.rmtree(folder, ignore_errors=True)
    write_reworded(plain, folder, options.words)
    return folder


def write_reworded(plain: Path, folder: Path, words: str) -> None:
    """Write a copy of a bundle with its questions in other words, except questions that `reword` leaves out."""
    folder.mkdir(parents=True)
    for path in plain.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    rows = read_json(plain / "train.json")
    asked = [{**row, "question": question} for row in rows if (question := reword(row["question"], words))]
    if not asked:
        raise ToolkitError(f"{plain}: has none of the questions that {FREE.name} rewords")
    kept = {row["id"] for row in asked}
    lines = [line for line in _read_lines(plain / "gold.jsonl") if json.loads(line)["id"] in kept]
    info = read_json(plain / "bundle.json")
    texts = {"train.json": json.dumps(asked), "gold.jsonl": "".join(lines)}
    for name, text in texts.items():
        data = text.encode()
        info["files"][name] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    for name, text in {**texts, "bundle.json": json.dumps(info)}.items():
        (folder / name).unlink()
        (folder / name).write_text(text, encoding="utf-8")


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


class Run(NamedTuple):
    """A finished run: its preset, and the mean and interval of each metric in per cent, by dataset."""

    preset: str
    figures: Mapping[str, Mapping[str, tuple[float, tuple[float, float] | None]]]
    questions: int

    def format(self, metric: str, k: int, dataset: str = "ALL") -> str:
        """Return a mean for a table, with its 95% interval."""
        figure = self.figures.get(dataset, {}).get(f"{metric}@{k}")
        if figure is None:
            return "–"
        ends = f" [{figure[1][0]:.1f}, {figure[1][1]:.1f}]" if figure[1] else ""
        return f"{figure[0]:.1f}{ends}"


def measure(preset: str, bundle: Path, out: Path, limit: int | None) -> Run:
    """Run a preset, written `NAME[:SETTING=VALUE…]`, on a bundle, or continue its run; return its figures."""
    name, *settings = preset.split(":")
    runs = out / "runs" / bundle.parent.name / bundle.name
    chosen = ["--limit", limit, "--sample-seed", SEED] if limit else []
    folder = runs / (preset.replace("/", "_") + (f"-{limit}" if limit else ""))
    flags = [word for setting in settings for word in ("--set", setting)]
    flags += ["--set", "parity=legalbenchrag", "--set", "report_cases=0"]
    exhibit(
        "evaluate", bundle, "--preset", name, "--llm", "none", "--metrics", "char_precision,char_recall,drm",
        "--output-dir", runs, "--run-name", folder.name, "--resume", *chosen, *flags,
    )  # fmt: skip
    return read_run(preset, folder)


def read_run(preset: str, folder: Path) -> Run:
    """Return the figures of a run from its summary files."""
    [breakdown] = folder.glob("*/breakdown.json")
    means = {"ALL": read_json(folder / "summary.json"), **read_json(breakdown).get("benchmark", {})}
    figures = {
        dataset: {metric: _read_figure(told) for metric, told in metrics.items() if told["mean"] is not None}
        for dataset, metrics in means.items()
    }
    return Run(preset, figures, max(told["n"] for told in means["ALL"].values()))


def _read_figure(values: Mapping[str, Any]) -> tuple[float, tuple[float, float] | None]:
    low, high = values["ci95"]
    return 100 * values["mean"], None if low is None else (100 * low, 100 * high)


# ---------------------------------------------------------------- tables


def read_papers() -> list[dict[str, Any]]:
    """Return the published figures of each paper as a dict: per cent by method, metric, dataset and k."""
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "bench/papers").glob("*.toml"))]


def list_published(metric: str, dataset: str) -> Iterator[tuple[str, bool, list[float]]]:
    """Yield each published curve of a metric: its title, whether it is for our questions, and a value for each k."""
    for paper in read_papers():
        for method in paper["method"]:
            if values := method.get(metric.removeprefix("char_"), {}).get(dataset):
                sample = "" if paper["same_set"] else " (another sample)"
                yield f"*{method['name']}, {paper['authors']}{sample}*", paper["same_set"], values


def make_headline(runs: Sequence[Run], *, comparable: bool) -> Table:
    """Return the table of the main metrics over all datasets, published figures first."""
    published: dict[str, dict[str, list[float]]] = {}
    for metric in METRICS if comparable else ():
        for title, _, values in list_published(metric, "ALL"):
            published.setdefault(title, {})[metric] = values
    rows = [
        [title, *(f"{values[metric][KS.index(k)]:.1f}" if metric in values else "–" for metric, k in HEADLINE)]
        for title, values in published.items()
    ]
    rows += [[f"`{run.preset}`", *(run.format(metric, k) for metric, k in HEADLINE)] for run in runs]
    return Table("All datasets", ["", *(f"{METRICS[metric]}@{k}" for metric, k in HEADLINE)], rows)


def make_dataset_table(runs: Sequence[Run], dataset: str, *, comparable: bool) -> Table:
    """Return precision and recall at each k on one dataset; values above the best published value are marked."""
    rows: list[list[str]] = []
    for metric, name in list(METRICS.items())[:2]:
        curves = [values for _, same, values in list_published(metric, dataset) if same] if comparable else []
        best = [max(values) for values in zip(*curves, strict=True)] if curves else []
        if best:
            rows.append([name, "*best published*", *(f"{value:.1f}" for value in best)])
        for run in runs:
            cells = []
            for number, k in enumerate(KS):
                figure = run.figures.get(dataset, {}).get(f"{metric}@{k}")
                mark = "" if not best or figure is None else " ▲" if figure[0] > best[number] else " ▽"
                cells.append("–" if figure is None else f"{figure[0]:.1f}{mark}")
            rows.append([name, f"`{run.preset}`", *cells])
    return Table(DATASETS[dataset], ["", "", *(f"k = {k}" for k in KS)], rows)


def write_notes() -> Iterator[str]:
    """Yield the notes of the page: what the figures do not show, and where the published figures come from."""
    yield "- Every question is searched in all files of all four datasets; 95% intervals: bootstrap over documents."
    yield "- `legal` and its reranker were trained on other documents of CUAD, ContractNLI and MAUD, none of them here;"
    yield "  the constants of `routed` were chosen with the mini set in view. The papers' embedders are larger."
    yield "- The questions name their document; `--words unnamed` measures them without, `--words free` in free words."
    for paper in read_papers():
        names = ", ".join(method["name"] for method in paper["method"])
        yield f"- *{names}*: {paper['authors']}, [{paper['paper']}]({paper['url']}), {paper['date']}, {paper['place']}."


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Convert LegalBench-RAG, run the presets on it, and print their figures beside the published ones."""
    parser = argparse.ArgumentParser(prog="python -m bench.legalbenchrag", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--source", type=Path, metavar="DIR", help="benchmarks/ and corpus/ (default: EXHIBIT_DATA)")
    add("--full", action="store_true", help="all 6,889 questions instead of LegalBench-RAG-mini's 776")
    add("--presets", default=PRESETS, metavar="NAME,…", help=f"NAME[:SETTING=VALUE…] each (default: {PRESETS})")
    add("--words", choices=["own", "free", "unnamed"], default="own", help="the wording of the questions")
    add("--limit", type=int, metavar="N", help="only N questions, drawn by a fixed seed")
    add("--out", type=Path, default=Path("results/legalbenchrag"), metavar="DIR", help="bundles and runs")
    add("--page", type=Path, metavar="FILE", help="also write the tables to this Markdown file")
    options = parser.parse_args(argv)
    bundle = make_bundle(find_data("legalbenchrag", options.source), options.out, options)
    runs = [measure(preset, bundle, options.out, options.limit) for preset in options.presets.split(",")]
    comparable = runs[0].questions == 776 and options.words == "own"
    tables = [make_headline(runs, comparable=comparable)]
    tables += [make_dataset_table(runs, dataset, comparable=comparable) for dataset in DATASETS]
    publish(options.page, "LegalBench-RAG, ours and published (per cent)", tables, list(write_notes()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
