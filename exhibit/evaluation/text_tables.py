"""Format means and differences as text: each mean with its interval, its n and the failures, within a given width."""

from collections.abc import Container, Mapping, Sequence

from exhibit.evaluation import statistics
from exhibit.evaluation.bands import Bands, read_scale
from exhibit.evaluation.metrics import CEILING, K, choose_headlines, describe_metric
from exhibit.runtime.command import align_rows
from exhibit.schemas.run import Outcome

ALL = "ALL"
NARROW = 80  # columns that every terminal has


def choose_metrics(
    summary: Mapping[str, statistics.Estimate | statistics.Difference], asked: Sequence[str] = ()
) -> list[str]:
    """Return the metrics that a table shows: the requested ones or, if none is requested, those of a short table."""
    if asked:
        wanted = set(asked)
        return [name for name in summary if {name, name.partition("@")[0]} & wanted] or list(summary)
    names, found = choose_headlines(summary) or list(summary), f"recall@{K}"
    ceiling = ceiling_of(found, summary)
    if ceiling and found in names:
        names.insert(names.index(found) + 1, ceiling)
    return names


def ceiling_of(metric: str, known: Container[str]) -> str | None:
    """Return the name of the metric that is the upper limit of `metric`; None if there is none in `known`.

    Only recall has such a limit: the share of gold that the chunks contain or, if that is unknown, the share
    that the parsed texts contain.
    """
    if metric != f"recall@{K}":
        return None
    return next((name for stage in ("chunks", "text") if (name := f"{CEILING}{stage}") in known), None)


def table_of(
    columns: Mapping[str, Mapping[str, statistics.Estimate]], metrics: Sequence[str], *, width: int = NARROW
) -> str:
    """Return a table of means with a column per dataset or run, or a block per column if they exceed the width."""
    lines = align_rows(make_mean_rows(columns, metrics))
    if max(map(len, lines)) > width:
        lines = []
        for name, means in columns.items():
            _, *rows = make_mean_rows({name: means}, [metric for metric in metrics if metric in means])
            lines += [_format_head(name, means), *(f"  {line}" for line in align_rows(rows))]
    return "\n".join([*lines, *make_mean_notes(columns)])


def make_mean_rows(columns: Mapping[str, Mapping[str, statistics.Estimate]], metrics: Sequence[str]) -> list[list[str]]:
    """Return the rows of a table of means, each as a list of cells; the first row is the header."""
    head, scale = ["", *(_format_head(name, means) for name, means in columns.items())], read_scale()
    rows = []
    for name in metrics:
        cells = (format_cell(name, means.get(name), scale.of(column, name)) for column, means in columns.items())
        rows.append([_format_title(name), *cells])
    return [head, *rows]


def make_mean_notes(columns: Mapping[str, Mapping[str, statistics.Estimate]]) -> list[str]:
    """Return the notes below a table of means: how a mean over datasets is computed, and how many questions failed."""
    lines = []
    if any(_count_datasets(means) > 1 for means in columns.values()):
        lines.append("The mean over several datasets is the mean of their means: each dataset has the same weight.")
    failed = {name: max((one.errors for one in means.values()), default=0) for name, means in columns.items()}
    if any(failed.values()):
        counts = ", ".join(f"{name}: {count}" for name, count in failed.items() if count)
        lines.append(f"failed questions, which are in no mean: {counts}")
    return lines


def format_cell(name: str, estimate: statistics.Estimate | None, bands: "Bands | None" = None) -> str:
    """Return a mean with its interval, standard deviation, spread over repeats, n, failures and quality band."""
    failed = f", {estimate.errors} failed" if estimate and estimate.errors else ""
    if estimate is None or estimate.mean is None:
        return f"–{failed}"
    figure = describe_metric(name).figure
    parts = [figure(estimate.mean)]
    parts += [f"[{', '.join(map(figure, estimate.ci95))}]"] if estimate.ci95 else []
    parts += [f"SD {figure(estimate.std)}"] if estimate.std is not None and estimate.datasets == 1 else []
    parts += [f"±{figure(estimate.spread)} over {estimate.repeats} runs"] if estimate.spread is not None else []
    parts += [f"({f'{estimate.datasets} datasets' if estimate.datasets > 1 else f'n {estimate.n}'}{failed})"]
    return " ".join([*parts, *([bands.band(estimate.mean).lower()] if bands else [])])


def _format_head(name: str, means: Mapping[str, statistics.Estimate]) -> str:
    datasets = _count_datasets(means)
    return f"{name} (mean of {datasets} datasets)" if datasets > 1 else name


def _count_datasets(means: Mapping[str, statistics.Estimate]) -> int:
    return max((estimate.datasets for estimate in means.values()), default=1)


def _format_title(name: str) -> str:
    """Return a metric's name with its unit and, where less is better, an arrow down."""
    metric = describe_metric(name)
    sign = f" {metric.sign}" if metric.sign else ""
    return f"{name}{sign}{' ↓' if metric.better == 'less' else ''}"


# ---------------------------------------------------------------- two runs


def diff_lines(
    differences: Mapping[str, statistics.Difference], metrics: Sequence[str], overlap: statistics.Overlap
) -> list[str]:
    """Return the lines of a table that compares two runs, and notes on the questions that are not compared."""
    lines = [*align_rows(diff_rows(differences, metrics, overlap)), *describe_not_compared(overlap)]
    if any(differences[name].mean and not differences[name].ci95 for name in metrics):
        lines.append("no interval: the questions are about fewer than ten documents, too few to estimate chance")
    return lines


def diff_rows(
    differences: Mapping[str, statistics.Difference], metrics: Sequence[str], overlap: statistics.Overlap
) -> list[list[str]]:
    """Return the rows of a table that compares two runs, one row per metric.

    A row has the values before and after, the paired change with its interval and p, n, and an arrow if the change is
    significant. The first row after the header is the number of failed questions: more than before is worse,
    whatever the means are.
    """
    rows = [["", "before", "after", "change", "n", ""], _format_failures(overlap)]
    for name in metrics:
        difference = differences[name]
        metric = describe_metric(name)
        if difference.first is None or difference.second is None or difference.mean is None:
            rows.append([_format_title(name), "–", "–", "–", "0", ""])
            continue
        ends = f" [{', '.join(metric.figure(end, signed=True) for end in difference.ci95)}]" if difference.ci95 else ""
        change = " ".join(filter(None, (f"{metric.figure(difference.mean, signed=True)}{ends}", difference.chance)))
        before, after = metric.figure(difference.first), metric.figure(difference.second)
        rows.append(
            [_format_title(name), before, after, change, str(difference.n), _format_direction(name, difference)]
        )
    return rows


def _format_failures(overlap: statistics.Overlap) -> list[str]:
    change = overlap.failed_after - overlap.failed_before
    direction = "=" if not change else "▲ worse" if change > 0 else "▼ better"
    row = ["failed questions ↓", str(overlap.failed_before), str(overlap.failed_after), f"{change:+d}"]
    return [*row, str(overlap.asked), direction]


def format_outcome_counts(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Return a line for each outcome that a question of two runs has: its number before and after."""
    rows = [[f"  {one}", str(before.get(one, 0)), str(after.get(one, 0))] for one in Outcome]
    return align_rows([row for row in rows if row[1:] != ["0", "0"]])


def describe_not_compared(overlap: statistics.Overlap) -> list[str]:
    """Return notes on what is not compared: questions that differ, are in one run only, or failed in one run."""
    lines = [f"{name}: not comparable: no question of it is the same in both runs" for name in overlap.not_comparable]
    if overlap.changed:
        lines.append(
            f"{overlap.changed} questions have the same id in both runs but differ in their words, expected answer, "
            "gold or documents"
        )
    if overlap.answered < overlap.asked:
        lines.append(f"compared over the {overlap.answered} of {overlap.asked} questions that both runs answered")
    for count, which in ((overlap.only_before, "first"), (overlap.only_after, "second")):
        if count:
            lines.append(f"{count} questions are only in the {which} run and are left out")
    return lines


def _format_direction(name: str, difference: statistics.Difference) -> str:
    change = difference.mean or 0.0
    if not change:
        return "="
    arrow = "▲" if change > 0 else "▼"
    if difference.ci95 is None:
        return f"{arrow} no interval"
    if not difference.beyond_chance:
        return f"{arrow} within chance"
    good = describe_metric(name).improves(change)
    return arrow if good is None else f"{arrow} {'better' if good else 'worse'}"
