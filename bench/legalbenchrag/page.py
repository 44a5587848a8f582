"""Writes the results page: every figure on it is read from the runs' own files, and none is copied by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.legalbenchrag.caveats import wrap_text, write_caveats, write_provenance
from bench.legalbenchrag.comparison import (
    compare_with_method,
    format_number,
    format_signed,
    is_comparable,
    make_marks,
    measure_falls,
    score_of,
)
from bench.legalbenchrag.curves import draw
from bench.legalbenchrag.names import DATASETS, METRICS
from bench.legalbenchrag.papers import Paper, find_best, read_papers
from bench.legalbenchrag.runs import Condition, Figure, Measured, measure_longest_passage
from exhibit.evaluation.metrics import KS
from exhibit.evaluation.statistics import Difference
from exhibit.schemas.errors import ToolkitError

PLAIN = Condition()
HEADLINE = (("precision", 1), ("recall", 8), ("recall", 64), ("drm", 8))
"""The metrics of a run's one-line summary."""
_SIZES = {"mini": "LegalBench-RAG-mini", "full": "the whole of LegalBench-RAG"}
_TYPES = {"txt": "the texts as published", "pdf": "the texts printed to PDF, gold located in print"}
_WORDINGS = {
    "original": "questions as published",
    "reworded": "questions reworded by rule (`python -m bench.reword`)",
    "free": "200 of the questions in free words, written by hand (`python -m bench.reword --free`)",
    "unnamed": "questions that name no document (`python -m bench.reword --unnamed`)",
}

_EMBEDDERS = {
    "minilm": " (all-MiniLM-L6-v2, 22 million parameters, 8-bit arithmetic on a processor, no key)",
    "legal": " (all-MiniLM-L6-v2 with an adapter of ours, see models.md; 8-bit arithmetic on a processor, no key)",
    "hashing": " (words hashed, nothing learned: for a test of the command, not of retrieval)",
}

Groups = Sequence[tuple[Condition, Sequence[Measured]]]


def write_page(groups: Groups, path: Path) -> None:
    """Write the page of the LegalBench-RAG results in Markdown, and its pictures in `images/` beside the page."""
    if not groups:
        raise ToolkitError(f"{path}: not written: there is no finished run; run without --limit first")
    images = path.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    for condition, runs in groups:
        if _has_picture(condition):
            picture = draw(runs, _choose_papers(runs), title=_format_title(condition))
            (images / _name_picture(condition)).write_text(picture, encoding="utf-8", newline="\n")
    text = "\n".join(_write_lines(groups)) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_lines(groups: Groups) -> Iterator[str]:
    first = groups[0][1][0]
    yield "# LegalBench-RAG, beside the published figures"
    yield ""
    yield f"Written by `python -m bench.legalbenchrag`, version {first.config['version']}: run it again, do not edit."
    yield "Precision and recall are by characters, counted as the benchmark's own code counts them; DRM is the share of"
    yield "passages from a document without gold, of which less is better. ALL is the mean of the four datasets' means."
    yield "Values are per cent; below them stand 95% intervals from a bootstrap over documents."
    yield ""
    yield from _write_facts(groups)
    for condition, runs in groups:
        yield from _write_section(condition, runs)
    yield from _write_falls(groups)
    yield from write_caveats(groups)
    yield from write_provenance(read_papers())


def _write_facts(groups: Groups) -> Iterator[str]:
    everything = [run for _, runs in groups for run in runs]
    names = sorted({str(run.config["config"]["embedder"]) for run in everything})
    longest = max(measure_longest_passage(run) for run in everything)
    yield f"- Embedder: {', '.join(f'`{name}`{_EMBEDDERS.get(name, str())}' for name in names)}."
    yield f"- The longest passage that any run retrieved has {longest} characters; the published ones have 500."
    yield "- One search space: every question is searched in all files of all four datasets."
    yield "- No part is trained on the benchmark. The constants of `routed` were chosen with the mini set in view, so"
    guide = "[retrieval.md](../../docs/retrieval.md)"
    yield f"  its figures there are not held out: {guide} says how, and how much each matters."
    yield ""


# ---------------------------------------------------------------- one condition


def _write_section(condition: Condition, runs: Sequence[Measured]) -> Iterator[str]:
    told = runs[0].told
    yield f"## {_format_title(condition)}"
    yield ""
    yield f"`{command_of(condition, runs)}`"
    yield ""
    yield f"{told['questions']:,} questions, {told['files']:,} files; {_describe_condition(condition)}."
    if not runs[0].is_whole:
        yield "This is not the whole published set, so nothing here can be compared with published figures."
    yield ""
    yield from _write_headline(runs)
    if is_comparable(runs):
        yield ""
        yield from _write_verdicts(runs)
    if _has_picture(condition):
        yield ""
        yield f"![Precision, recall and DRM over k, ours and published](images/{_name_picture(condition)})"
    yield ""
    if condition.wording == "original" and condition.filenames:
        for dataset in DATASETS:
            yield from _write_tables(condition, runs, dataset)
    else:
        yield from _write_by_dataset(runs)


def _write_by_dataset(runs: Sequence[Measured]) -> Iterator[str]:
    """Yield the lines of a short table: the headline metrics of each run on each dataset."""
    yield _format_row("", ["dataset", *(f"{METRICS[metric]}@{k}" for metric, k in HEADLINE)])
    yield _format_rule(len(HEADLINE) + 1)
    for run in runs:
        for dataset, title in DATASETS.items():
            if dataset != "ALL" and dataset in run.means:
                yield _format_row(
                    f"`{run.label}`", [title, *(_format_cell(run.figure(m, dataset, k)) for m, k in HEADLINE)]
                )
    yield ""


def _write_headline(runs: Sequence[Measured]) -> Iterator[str]:
    names = [f"{METRICS[metric]}@{k}" for metric, k in HEADLINE]
    yield _format_row("ALL", names)
    yield _format_rule(len(names))
    for paper in _choose_papers(runs):
        for method in paper.method:
            curves = [method.find_curve(metric, "ALL") for metric, _ in HEADLINE]
            cells = [format_number(c[KS.index(k)]) if c else "–" for c, (_, k) in zip(curves, HEADLINE, strict=True)]
            yield _format_row(f"*{paper.format_title(method)}*", cells)
    for run in runs:
        yield _format_row(f"`{run.label}`", [_format_cell(run.figure(metric, "ALL", k)) for metric, k in HEADLINE])


def _write_verdicts(runs: Sequence[Measured]) -> Iterator[str]:
    yield "▲ marks what is above the best value published for the same dataset and k (see the end for what is known by"
    yield "dataset), ▽ what is not. In how many places, dataset × k × precision or recall, a preset is above it:"
    yield ""
    others = [(paper, method) for paper in read_papers() if not paper.same_set for method in paper.method]
    for run in runs:
        won, places, lost = score_of(run)
        few = 2 * won > places and lost  # if it is above nearly nowhere, a list of the other places is useless
        yield from wrap_text(f"- `{run.label}`: {won} of {places}" + (f"; not {'; '.join(lost)}" if few else ""))
        for paper, method in others:
            yield f"  ({paper.format_title(method)}: better in {', '.join(compare_with_method(run, method))})"


def _write_tables(condition: Condition, runs: Sequence[Measured], dataset: str) -> Iterator[str]:
    yield f"### {_format_title(condition)}: {DATASETS[dataset]}"
    yield ""
    for metric, name in METRICS.items():
        if not any(run.figure(metric, dataset, KS[0]) for run in runs):
            continue
        yield _format_row(f"{name}@k", [f"k = {k}" for k in KS])
        yield _format_rule(len(KS))
        for paper in _choose_papers(runs):
            for method in paper.method:
                curve = method.find_curve(metric, dataset)
                if curve:
                    yield _format_row(f"*{paper.format_title(method)}*", [format_number(value) for value in curve])
        highest = find_best(metric, dataset) if is_comparable(runs) else None
        for run in runs:
            signs = make_marks(run, metric, dataset, highest)
            cells = [_format_cell(run.figure(metric, dataset, k), sign) for k, sign in zip(KS, signs, strict=True)]
            yield _format_row(f"`{run.label}`", cells)
        yield ""


# ---------------------------------------------------------------- comparisons of two conditions


def _write_falls(groups: Groups) -> Iterator[str]:
    rows = list(measure_falls(groups))
    if not rows:
        return
    yield "## What other wordings cost"
    yield ""
    yield "The same questions, asked as published and in other words; paired by question, ALL, in points, with 95%"
    yield "intervals of the change. *Reworded* questions name their document in one of twelve other ways; 200 *free*"
    yield "ones were written by hand as other people would ask, document and question alike; *unnamed* ones do not"
    yield "name it: where several documents could answer, no system can know which is meant."
    yield ""
    yield _format_row("", ["questions", *(f"{METRICS[metric]}@{k}" for metric, k in HEADLINE)])
    yield _format_rule(len(HEADLINE) + 1)
    for condition, label, changes in rows:
        cells = [_change(changes.get(_format_metric(metric, k))) for metric, k in HEADLINE]
        files = "" if condition.filenames else ", no file names"
        kind = "" if condition[:2] == PLAIN[:2] else f" ({condition.size}, {condition.file_type})"
        yield _format_row(f"`{label}`{kind}", [f"{condition.wording}{files}", *cells])
    yield ""


def _format_metric(metric: str, k: int) -> str:
    return f"{metric if metric == 'drm' else f'char_{metric}'}@{k}"


def _change(difference: Difference | None) -> str:
    if difference is None or difference.first is None or difference.second is None or difference.mean is None:
        return "–"
    ends = (
        f"<br><sub>{format_signed(difference.ci95[0])} to {format_signed(difference.ci95[1])}</sub>"
        if difference.ci95
        else ""
    )
    return f"{100 * difference.first:.1f} → {100 * difference.second:.1f} (**{format_signed(difference.mean)}**){ends}"


# ---------------------------------------------------------------- words and cells


def _choose_papers(runs: Sequence[Measured]) -> Sequence[Paper]:
    return read_papers() if is_comparable(runs) else ()


def _format_title(condition: Condition) -> str:
    parts = [_SIZES[condition.size], "PDF" if condition.file_type == "pdf" else "text"]
    parts += [] if condition.wording == "original" else [condition.wording]
    parts += [] if condition.filenames else ["no file names"]
    return ", ".join(parts)


def command_of(condition: Condition, runs: Sequence[Measured]) -> str:
    """Return the command line, `python -m bench.legalbenchrag …`, that repeats these runs on the same data."""
    words = ["python -m bench.legalbenchrag --source DIR", "--presets", ",".join(run.label for run in runs)]
    words += ["--full"] * (condition.size == "full") + ["--file-type pdf"] * (condition.file_type == "pdf")
    words += ["--no-filenames"] * (not condition.filenames)
    words += [] if condition.wording == "original" else [f"--{condition.wording}"]
    return " ".join(words + ([f"--limit {condition.limit}"] if condition.limit else []))


def _describe_condition(condition: Condition) -> str:
    names = "" if condition.filenames else "; every file renamed to a number"
    drawn = f"; a quick look at {condition.limit} questions drawn at random" if condition.limit else ""
    return f"{_TYPES[condition.file_type]}, {_WORDINGS[condition.wording]}{names}{drawn}"


def _has_picture(condition: Condition) -> bool:
    return condition.wording == "original"


def _name_picture(condition: Condition) -> str:
    return f"legalbenchrag-{condition.name.removesuffix('-original')}.svg"


def _format_cell(figure: Figure | None, sign: str = "") -> str:
    if figure is None:
        return "–"
    ends = f"<br><sub>{format_number(figure.ci95[0])}–{format_number(figure.ci95[1])}</sub>" if figure.ci95 else ""
    return f"**{format_number(figure.mean)}**{f' {sign}' if sign else ''}{ends}"


def _format_row(first: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([first.replace('|', chr(92) + '|'), *cells])} |"


def _format_rule(columns: int) -> str:
    return "|---" * (columns + 1) + "|"
