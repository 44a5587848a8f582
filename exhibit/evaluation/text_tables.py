"""Tables for the terminal: means, groups of questions, the analysis of a run, and the differences of two runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from exhibit.evaluation.metrics import OTHER_NAMES, choose_headlines, describe_metric
from exhibit.evaluation.runs import ALL, RunResults, kinds_of
from exhibit.evaluation.statistics import Difference, Overlap, Table, summarise_by, summarise_run
from exhibit.runtime.command import align_rows
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults, parse_toml, read_text
from exhibit.schemas.run import Estimate, Outcome

Columns = Mapping[str, Mapping[str, Estimate]]  # means by dataset, run or group of questions
Bound = Annotated[str, Field(pattern=r"^(>=|<=|>|<)\s*-?[0-9]+(\.[0-9]+)?$")]


class Bands(BaseModel):
    """The bounds for a good and for a poor value of a metric; a value between these bounds is acceptable."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    good: Bound
    poor: Bound

    def band(self, value: float) -> Literal["Good", "Acceptable", "Poor"]:
        if _holds(self.good, value):
            return "Good"
        return "Poor" if _holds(self.poor, value) else "Acceptable"


def _holds(bound: str, value: float) -> bool:
    number = float(bound.lstrip("<=> "))
    beyond = value > number if bound.startswith(">") else value < number
    return beyond or (value == number and "=" in bound)


Scale = Mapping[str, Bands]  # the bands of each metric that has bands


def find_bands(scale: Scale, metric: str) -> Bands | None:
    """Return a metric's bands, or None; bands for `char_recall` also apply to `char_recall@8`."""
    return scale.get(metric) or scale.get(metric.partition("@")[0])


def read_scale(path: Path | None = None) -> Scale:
    """Return the bands of a TOML file; by default, or for the path `seed`, those of a file of this package."""
    here = Path(__file__)
    file = here.with_name("bands_seed.toml") if path == Path("seed") else path or here.with_name("bands.toml")
    try:
        scale = TypeAdapter(dict[str, Bands]).validate_python(parse_toml(read_text(file), where=file))
    except ValidationError as error:
        advice = 'write good = "> 0.8" and poor = "< 0.5", and nothing else'
        raise ToolkitError(f"{file}: {format_faults(error)}; {advice}") from error
    return {OTHER_NAMES.get(name, name): bands for name, bands in scale.items()}


def choose_metrics(summary: Iterable[str], requested: Sequence[str] = ()) -> list[str]:
    """Return the metrics of a table: the requested metrics, else those of a short table."""
    summary = list(summary)
    named = [name for name in summary if name in requested or name.partition("@")[0] in requested]
    return (named if requested else choose_headlines(summary)) or summary


def table_of(columns: Columns, metrics: Sequence[str], *, width: int = 80) -> str:
    """Return a table of means, with a column per dataset or run; if it is too wide, each column becomes a block."""
    lines = align_rows(_make_mean_rows(columns, metrics))
    if max(map(len, lines)) > width:
        lines = []
        for name, means in columns.items():
            _, *rows = _make_mean_rows({name: means}, [metric for metric in metrics if metric in means])
            lines += [_format_head(name, means), *(f"  {line}" for line in align_rows(rows))]
    if any(_format_head(name, means) != name for name, means in columns.items()):
        lines.append("The mean over several datasets is the mean of their means: each dataset has the same weight.")
    failed = {name: max((estimate.errors for estimate in means.values()), default=0) for name, means in columns.items()}
    if counts := ", ".join(f"{name}: {count}" for name, count in failed.items() if count):
        lines.append(f"failed questions, which count as not right and are excluded from every other mean: {counts}")
    return "\n".join(lines)


def _make_mean_rows(columns: Columns, metrics: Sequence[str]) -> list[list[str]]:
    rows, scale = [["", *(_format_head(name, means) for name, means in columns.items())]], read_scale()
    for name in metrics:
        bands = find_bands(scale, name)
        rows.append([_format_title(name), *(format_cell(name, means.get(name), bands) for means in columns.values())])
    return rows


def format_cell(name: str, estimate: Estimate | None, bands: Bands | None = None) -> str:
    """Return a mean with its interval, standard deviation, spread over rounds, n, failures and quality band."""
    failed = f", {estimate.errors} failed" if estimate and estimate.errors else ""
    if estimate is None or estimate.mean is None:
        return f"–{failed}"
    figure = describe_metric(name).figure
    parts = [figure(estimate.mean)]
    parts += [f"[{', '.join(map(figure, estimate.ci95))}]"] if estimate.ci95 else []
    parts += [f"SD {figure(estimate.std)}"] if estimate.std is not None and estimate.datasets == 1 else []
    parts += [f"±{figure(estimate.spread)} over {estimate.repeats} rounds"] if estimate.spread is not None else []
    parts += [f"({f'{estimate.datasets} datasets' if estimate.datasets > 1 else f'n {estimate.n}'}{failed})"]
    return " ".join([*parts, *([bands.band(estimate.mean).lower()] if bands else [])])


def _format_head(name: str, means: Mapping[str, Estimate]) -> str:
    datasets = max((estimate.datasets for estimate in means.values()), default=1)
    return f"{name} (mean of {datasets} datasets)" if datasets > 1 else name


def _format_title(name: str) -> str:
    metric = describe_metric(name)
    return f"{name}{f' {metric.sign}' if metric.sign else ''}{' ↓' if metric.better == 'less' else ''}"


_MAX_KINDS = 20  # a label with more values than this identifies single questions, not kinds of questions


def format_analysis(folder: Path, *, metrics: Sequence[str], width: int) -> list[str]:
    """Return a finished run as lines of text: its questions, and the means in all and by kind of question."""
    run = RunResults(folder)
    tables = list(run.tables.values())
    labels = [row for table in tables for row in table.labels]
    lines = [*format_distribution(labels), ""]
    lines += table_of(run.columns, choose_metrics(run.means, metrics), width=width).splitlines()
    for label in kinds_of(labels, most=_MAX_KINDS):
        lines += ["", f"BY {label.upper()}", *format_comparison(tables, label, metrics=metrics, width=width)]
    return lines


def format_distribution(labels: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [f"questions: {len(labels)}"]
    for label in kinds_of(labels, most=_MAX_KINDS):
        counts = Counter(_format_value(row, label) for row in labels)
        width = max(map(len, counts))
        shares = ((value, count, 100 * count / len(labels)) for value, count in sorted(counts.items()))
        lines += [f"{label}:", *(f"  {value:<{width}}  {count:>6}  {share:5.1f}%" for value, count, share in shares)]
    return lines


def format_comparison(tables: Sequence[Table], label: str, *, metrics: Sequence[str], width: int) -> list[str]:
    """Return the lines of a table of mean scores, with one column for each value of a label."""
    having = [table for table in tables if any(labels.get(label) is not None for labels in table.labels)]
    if not having:
        seen = ", ".join(dict.fromkeys(name for table in tables for labels in table.labels for name in labels))
        raise ToolkitError(f"no question has a label {label!r}; the labels are {seen or 'none'}")
    columns: dict[str, Mapping[str, Estimate]] = {}
    for table in having:
        sizes = Counter(_format_value(labels, label) for labels in table.labels)
        for value, means in summarise_by(table, label).items():
            name = value or "none"
            head = f"{table.name}: {name}" if len(having) > 1 else name
            columns[f"{head} ({_count_questions(sizes[name])})"] = means
        if len(having) == 1:
            columns[f"{ALL} ({_count_questions(len(table.ids))})"] = summarise_run([table])
    names = choose_metrics(dict.fromkeys(name for means in columns.values() for name in means), metrics)
    return table_of(columns, names, width=width).splitlines()


def _format_value(labels: Mapping[str, Any], label: str) -> str:
    return "none" if labels.get(label) is None else str(labels[label])


def _count_questions(number: int) -> str:
    return f"{number} question{'' if number == 1 else 's'}"


def diff_lines(differences: Mapping[str, Difference], metrics: Sequence[str], overlap: Overlap) -> list[str]:
    """Return the lines of a table that compares two runs, and notes on the questions that are not compared.

    The first row has the numbers of failed questions, because more failures are worse even if the means improve.
    """
    before, after = overlap.failed_before, overlap.failed_after
    direction = "=" if before == after else "▲ worse" if after > before else "▼ better"
    rows = [["", "before", "after", "change", "n", ""]]
    rows += [["failed questions ↓", str(before), str(after), f"{after - before:+d}", str(overlap.asked), direction]]
    for name in metrics:
        difference, metric = differences[name], describe_metric(name)
        values = ["–", "–", "–", "0", ""]
        if difference.mean is not None:
            ends = ", ".join(metric.figure(end, signed=True) for end in difference.ci95 or ())
            parts = [metric.figure(difference.mean, signed=True), f"[{ends}]" if ends else "", difference.chance]
            values = [metric.figure(difference.first), metric.figure(difference.second), " ".join(filter(None, parts))]
            values += [str(difference.n), _format_direction(name, difference)]
        rows.append([_format_title(name), *values])
    lines = [*align_rows(rows), *describe_not_compared(overlap)]
    if any(differences[name].mean and not differences[name].ci95 for name in metrics):
        lines.append("no interval: the questions are about fewer than ten documents, too few to estimate chance")
    return lines


def _format_direction(name: str, difference: Difference) -> str:
    change = difference.mean or 0.0
    if not change:
        return "="
    arrow = "▲" if change > 0 else "▼"
    if not difference.beyond_chance:
        return f"{arrow} {'within chance' if difference.ci95 else 'no interval'}"
    good = describe_metric(name).improves(change)
    return arrow if good is None else f"{arrow} {'better' if good else 'worse'}"


def format_outcome_counts(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return a line for each outcome in two runs, with its number of questions before and after."""
    rows = [[f"  {outcome}", str(before.get(outcome, 0)), str(after.get(outcome, 0))] for outcome in Outcome]
    return align_rows([row for row in rows if row[1:] != ["0", "0"]])


def describe_not_compared(overlap: Overlap) -> list[str]:
    lines = []
    if overlap.answered < overlap.asked:
        lines.append(f"compared over the {overlap.answered} of {overlap.asked} questions that both runs answered")
    only = {"first": overlap.only_before, "second": overlap.only_after}
    missing = "questions of the {} run are left out: the other lacks them or has other words, answer, gold or documents"
    return lines + [f"{number} {missing.format(which)}" for which, number in only.items() if number]
