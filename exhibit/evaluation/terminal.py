"""Means and differences as a terminal shows them: every mean with its interval, its n and what failed."""

import operator
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Any, Literal

from exhibit.evaluation import statistics
from exhibit.evaluation.metrics import about, named, shortened
from exhibit.evaluation.records import kinds_of, read_tables
from exhibit.evaluation.statistics import mean
from exhibit.runtime.command import aligned
from exhibit.schemas.bundle import read_text
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_toml, read_beside
from exhibit.schemas.run_folder import RunFolder

ALL = "ALL"


def shown_metrics(
    summary: Mapping[str, statistics.Estimate | statistics.Difference], asked: Sequence[str] = ()
) -> list[str]:
    """Return the metrics that a table shows: those asked for, or those that tell most."""
    if asked:
        wanted = set(map(named, asked))
        return [name for name in summary if {name, name.partition("@")[0]} & wanted] or list(summary)
    return shortened(summary) or list(summary)


def table_of(columns: Mapping[str, Mapping[str, statistics.Estimate]], metrics: Sequence[str]) -> str:
    """Return means with their intervals, a row a metric and a column a dataset or run."""
    return "\n".join([*aligned(mean_rows(columns, metrics)), *mean_notes(columns)])


def mean_rows(columns: Mapping[str, Mapping[str, statistics.Estimate]], metrics: Sequence[str]) -> list[list[str]]:
    """Return the cells of such a table, its head first."""
    head, scale = ["", *(_head(name, means) for name, means in columns.items())], read_scale()
    rows = []
    for name in metrics:
        cells = (cell(name, means.get(name), scale.of(column, name)) for column, means in columns.items())
        rows.append([_title(name), *cells])
    return [head, *rows]


def mean_notes(columns: Mapping[str, Mapping[str, statistics.Estimate]]) -> list[str]:
    """Return what a reader of such a table must know: how means of datasets are taken, and what failed."""
    lines = []
    if any(_datasets(means) > 1 for means in columns.values()):
        lines.append("A mean over several datasets is the mean of their means: each dataset counts alike.")
    failed = {name: max((one.errors for one in means.values()), default=0) for name, means in columns.items()}
    if any(failed.values()):
        counts = ", ".join(f"{name}: {count}" for name, count in failed.items() if count)
        lines.append(f"failed questions, which are in no mean: {counts}")
    return lines


def cell(name: str, estimate: statistics.Estimate | None, bands: "Bands | None" = None) -> str:
    """Return a mean, its interval in brackets, its standard deviation, what it is taken over, what failed, its band."""
    failed = f", {estimate.errors} failed" if estimate and estimate.errors else ""
    if estimate is None or estimate.mean is None:
        return f"–{failed}"
    metric = about(name)
    mean = metric.figure(estimate.mean)
    ends = f" [{', '.join(map(metric.figure, estimate.ci95))}]" if estimate.ci95 else ""
    over = f"{estimate.datasets} datasets" if estimate.datasets > 1 else f"n {estimate.n}"
    spread = f" ±{metric.figure(estimate.spread)} over {estimate.repeats} runs" if estimate.spread is not None else ""
    std = f" SD {metric.figure(estimate.std)}" if estimate.std is not None and estimate.datasets == 1 else ""
    band = f" {bands.band(estimate.mean).lower()}" if bands else ""
    return f"{mean}{ends}{std}{spread} ({over}{failed}){band}"


def _head(name: str, means: Mapping[str, statistics.Estimate]) -> str:
    datasets = _datasets(means)
    return f"{name} (mean of {datasets} datasets)" if datasets > 1 else name


def _datasets(means: Mapping[str, statistics.Estimate]) -> int:
    return max((estimate.datasets for estimate in means.values()), default=1)


def _title(name: str) -> str:
    """Return a metric's name with its unit and, where less is better, an arrow that says so."""
    metric = about(name)
    sign = f" {metric.sign}" if metric.sign else ""
    return f"{name}{sign}{' ↓' if metric.better == 'less' else ''}"


# ---------------------------------------------------------------- two runs


def is_regression(name: str, difference: statistics.Difference, asked: Sequence[str] = ()) -> bool:
    """Return whether a metric is worse by more than chance; one that depends on the machine only where it is asked."""
    if not about(name).gate and name not in asked:
        return False
    change = difference.mean
    return change is not None and difference.beyond_chance and about(name).improves(change) is False


def diff_lines(
    differences: Mapping[str, statistics.Difference], metrics: Sequence[str], overlap: statistics.Overlap
) -> list[str]:
    """Return two runs' table in lines, and what is not compared."""
    return [*aligned(diff_rows(differences, metrics, overlap)), *not_compared(overlap)]


def diff_rows(
    differences: Mapping[str, statistics.Difference], metrics: Sequence[str], overlap: statistics.Overlap
) -> list[list[str]]:
    """Return a row a metric: before, after, the change with its interval, n, and an arrow where it is beyond chance.

    The first row is how many questions failed: more than before is worse, whatever the means of the others are.
    """
    rows = [["", "before", "after", "change", "n", ""], _failures(overlap)]
    for name in metrics:
        difference = differences[name]
        metric = about(name)
        if difference.first is None or difference.second is None or difference.mean is None:
            rows.append([_title(name), "–", "–", "–", "0", ""])
            continue
        ends = f" [{', '.join(metric.figure(end, signed=True) for end in difference.ci95)}]" if difference.ci95 else ""
        change = f"{metric.figure(difference.mean, signed=True)}{ends}"
        before, after = metric.figure(difference.first), metric.figure(difference.second)
        rows.append([_title(name), before, after, change, str(difference.n), _direction(name, difference)])
    return rows


def _failures(overlap: statistics.Overlap) -> list[str]:
    change = overlap.failed_after - overlap.failed_before
    direction = "=" if not change else "▲ worse" if change > 0 else "▼ better"
    row = ["failed questions ↓", str(overlap.failed_before), str(overlap.failed_after), f"{change:+d}"]
    return [*row, str(overlap.asked), direction]


def not_compared(overlap: statistics.Overlap) -> list[str]:
    """Return what is not compared: questions that one run did not ask, or did not get an answer to."""
    lines = []
    if overlap.answered < overlap.asked:
        lines.append(f"compared over the {overlap.answered} of {overlap.asked} questions that both runs answered")
    for count, which in ((overlap.only_before, "first"), (overlap.only_after, "second")):
        if count:
            lines.append(f"{count} questions are in the {which} run alone and are left out")
    return lines


def _direction(name: str, difference: statistics.Difference) -> str:
    change = difference.mean or 0.0
    if not change:
        return "="
    arrow = "▲" if change > 0 else "▼"
    if not difference.beyond_chance:
        return f"{arrow} within chance"
    good = about(name).improves(change)
    return arrow if good is None else f"{arrow} {'better' if good else 'worse'}"


Band = Literal["Good", "Acceptable", "Poor"]

DEFAULT = Path(__file__).with_name("bands.toml")
_DATASETS = "datasets"
OTHER_NAMES: dict[str, dict[str, str]] = read_beside(__file__, "other_tools.toml")
"""Names that other tools, and earlier versions, have for our metrics and settings."""
_BOUND = re.compile(r"\s*(>=|<=|>|<)\s*(-?[0-9]+(?:\.[0-9]+)?)\s*")
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Bound:
    """A side of a number: `> 0.8`."""

    sign: str
    value: float

    @classmethod
    def parse(cls, text: object, *, where: str) -> "Bound":
        """Return a bound; raise an error that shows how one is written."""
        match = _BOUND.fullmatch(text) if isinstance(text, str) else None
        if not match:
            raise ToolkitError(f'{where}: {text!r} is no bound; write "> 0.8", ">= 1.0" or "< 0.5"')
        return cls(match[1], float(match[2]))

    def holds(self, value: float) -> bool:
        """Return whether a value lies on this side."""
        return _SIGNS[self.sign](value, self.value)

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}"


@dataclass(frozen=True)
class Bands:
    """The two bounds of a metric; what lies between them is acceptable."""

    good: Bound
    poor: Bound

    def band(self, value: float) -> Band:
        """Return what a value is called."""
        if self.good.holds(value):
            return "Good"
        return "Poor" if self.poor.holds(value) else "Acceptable"


@dataclass(frozen=True)
class Scale:
    """The bands of all metrics, and those that a dataset has of its own."""

    general: Mapping[str, Bands]
    own: Mapping[str, Mapping[str, Bands]]

    def of(self, dataset: str, metric: str) -> Bands | None:
        """Return a metric's bands; those of `char_recall@8` may stand under `char_recall`."""
        for bands in (self.own.get(dataset, {}), self.general):
            bands_of_metric = bands.get(metric) or bands.get(metric.partition("@")[0])
            if bands_of_metric:
                return bands_of_metric
        return None


def read_scale(path: Path | None = None) -> Scale:
    """Return the bands of a file, or those that are shipped."""
    file = path or DEFAULT
    content = parse_toml(read_text(file).removeprefix("\ufeff"), where=file)
    own = content.pop(_DATASETS, {})
    if not isinstance(own, dict):
        raise ToolkitError(f"{file}: {_DATASETS}: must be tables, such as [datasets.cuad.answer_f1]")
    return Scale(
        _read(content, file, ""), {name: _read(table, file, f"{_DATASETS}.{name}.") for name, table in own.items()}
    )


def _read(content: Any, file: Path, under: str) -> dict[str, Bands]:
    bands: dict[str, Bands] = {}
    for name, bounds in dict(content).items() if isinstance(content, dict) else ():
        where = f"{file}: {under}{name}"
        if not isinstance(bounds, dict) or set(bounds) != {"good", "poor"}:
            raise ToolkitError(f'{where}: needs good = "> 0.8" and poor = "< 0.5", and nothing else')
        good, poor = (Bound.parse(bounds[key], where=f"{where}.{key}") for key in ("good", "poor"))
        if good.sign[0] == poor.sign[0]:
            raise ToolkitError(f"{where}: good and poor lie on the same side ({good}, {poor})")
        bands[OTHER_NAMES["metrics"].get(str(name), str(name))] = Bands(good, poor)
    return bands


SOURCE_TYPE = "source_type"
"""The label that `--all` compares by: what sort of law a question is about."""
_MOST_KINDS = 20
"""A label with more values than this says what a question is, not of what kind."""
_WEAKEST = 10  # a screen has no room for more
_ANSWERED = ("Answers", "Citations")


def analysis_lines(folder: Path, *, metrics: Sequence[str] = ()) -> list[str]:
    """Return what a finished run was asked, how it did in all and by each kind of question, and where it did worst."""
    run = RunFolder(folder)
    tables = read_tables(run)
    columns = {table.name: statistics.summarise(table) for table in tables}
    columns |= {ALL: statistics.summarise_run(tables)} if len(tables) > 1 else {}
    names = shown_metrics({name: one for means in columns.values() for name, one in means.items()}, metrics)
    asked = sum(len(table.ids) for table in tables)
    failed = sum(table.errors for table in tables)
    lines = [f"{folder.name}: {asked} questions of {_count(len(tables), 'dataset')}, {failed} failed"]
    lines += ["", "WHAT WAS ASKED", *distribution_lines([labels for table in tables for labels in table.labels])]
    lines += ["", "IN ALL", *table_of(columns, names).splitlines()]
    for label in question_kinds([labels for table in tables for labels in table.labels]):
        lines += ["", f"BY {label.upper()}", *comparison_lines(tables, label, metrics=metrics)]
    verdicts = Counter(row.verdict for row in run.rows).most_common()
    lines += ["", "WHAT BECAME OF THE QUESTIONS", *(f"  {verdict:<28} {count:>6}" for verdict, count in verdicts)]
    lines += _flagged(tables)
    return lines + _weakest(tables, run)


def distribution_lines(labels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how many questions there are of each kind, label by label."""
    lines = [f"questions: {len(labels)}"]
    for label in question_kinds(labels):
        counts = Counter(_value(row, label) for row in labels)
        lines.append(f"{label}:")
        width = max(map(len, counts))
        lines += [
            f"  {value:<{width}}  {count:>6}  {100 * count / len(labels):5.1f}%"
            for value, count in sorted(counts.items())
        ]
    return lines


def comparison_lines(tables: Sequence[statistics.Table], label: str, *, metrics: Sequence[str] = ()) -> list[str]:
    """Return one table with a column for each value of a label; raise where no question has it."""
    having = [table for table in tables if any(labels.get(label) is not None for labels in table.labels)]
    if not having:
        seen = ", ".join(dict.fromkeys(name for table in tables for labels in table.labels for name in labels))
        raise ToolkitError(f"no question has a label {label!r}; there are {seen or 'none'}")
    columns: dict[str, Mapping[str, statistics.Estimate]] = {}
    for table in having:
        sizes = Counter(_value(labels, label) for labels in table.labels)
        for value, means in statistics.summarise_by(table, label).items():
            name = value or _WITHOUT
            head = f"{table.name}: {name}" if len(having) > 1 else name
            columns[f"{head} ({_count(sizes[name], 'question')})"] = means
        if len(having) == 1:
            columns[f"{ALL} ({_count(len(table.ids), 'question')})"] = statistics.summarise(table)
    names = shown_metrics({name: one for means in columns.values() for name, one in means.items()}, metrics)
    measured = [name for name in names if any(m.get(name) and m[name].mean is not None for m in columns.values())]
    return table_of(columns, measured).splitlines()


_WITHOUT = "none"


def question_kinds(labels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the labels that sort questions into kinds, the source type first."""
    return sorted(kinds_of(labels, most=_MOST_KINDS), key=lambda name: name != SOURCE_TYPE)


def flag_lines(tables: Sequence[statistics.Table], below: float) -> list[str]:
    """Return which answers are flagged for review, or that no reply tells how sure it is."""
    flags = [value for table in tables for value in table.values.get("flagged", ()) if value is not None]
    if not flags:
        return [f"--flag-below {below:g}: no reply tells its confidence, so nothing is flagged"]
    lines = [f"{sum(map(bool, flags))} of {len(flags)} answers have a confidence below {below:g}: flagged for review"]
    return lines + [f"  {name}: {', '.join(ids)}" for name, ids in _flags(tables) if ids]


def _flagged(tables: Sequence[statistics.Table]) -> list[str]:
    if not any(value is not None for table in tables for value in table.values.get("flagged", ())):
        return []
    return ["", "FLAGGED FOR REVIEW", *(f"{name}: {', '.join(ids) or 'none'}" for name, ids in _flags(tables))]


def _flags(tables: Iterable[statistics.Table]) -> Iterator[tuple[str, list[str]]]:
    for table in tables:
        flags = table.values.get("flagged", ())
        ids = [str(id) for id, flag in zip(table.ids, flags, strict=False) if flag]
        yield table.name, [*ids[:_WEAKEST], *([f"… and {len(ids) - _WEAKEST} more"] if len(ids) > _WEAKEST else [])]


def _weakest(tables: Sequence[statistics.Table], run: RunFolder) -> list[str]:
    """Return the questions with the lowest mean of the shares that tell of the answer, else of the retrieval."""
    names = dict.fromkeys(name for table in tables for name in table.values)
    shares = [name for name in names if about(name).unit == "share" and about(name).better == "more"]
    chosen = [name for name in shares if about(name).group in _ANSWERED] or shares
    answered = (row for row in run.rows if not row.reply.error)
    scored = ((mean(row.scores.get(name) for name in chosen), row) for row in answered)
    weakest = nsmallest(_WEAKEST, (one for one in scored if one[0] is not None), key=lambda one: one[0] or 0.0)
    if not weakest:
        return []
    lines = ["", "WEAKEST ANSWERS (mean of their shares for answers and citations, confidence, question)"]
    for score, row in weakest:
        sure = row.reply.confidence
        question = textwrap.shorten(row.question, 80, placeholder=" …")
        lines.append(f"  {score:.3f}  {'–' if sure is None else f'{sure:.2f}':>4}  {row.id}: {question}")
    return lines


def _value(labels: Mapping[str, Any], label: str) -> str:
    value = labels.get(label)
    return _WITHOUT if value is None else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
