"""Explain regressions, and make the output for CI: a summary in Markdown, and checks as JUnit XML."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exhibit.evaluation.bands import Scale
from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.records import kinds_of
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import EQUAL, match_questions
from exhibit.schemas.run import Id, RunQuestion
from exhibit.viewer.drawing import Record
from exhibit.viewer.page import render
from exhibit.viewer.trend.changes import Fall, Regression, Series
from exhibit.viewer.trend.gates import Check

LISTED = 40
"""The number of questions, documents and labels that are listed; the total is shown with them."""
_SHORTEST = 8
"""Characters of a digest or a commit that are shown."""


@dataclass(frozen=True)
class Fallen:
    """A question that got worse or failed in a run, with its values and verdicts in both runs."""

    id: Id
    question: str
    document: str
    before: float | None
    after: float | None
    verdicts: tuple[str, str]
    error: str = ""


class FallenValues(NamedTuple):
    """The values of one metric for a question that got worse or failed: `before` and `after`, in two runs.

    `earlier` is the question's id in the earlier run. `after` is None if the question failed in the later run.
    """

    earlier: Id
    before: float | None
    after: float | None


@dataclass(frozen=True)
class FallenGroup:
    """A document or a label value: how many questions it has (`asked`), and how many of them got worse (`fell`)."""

    name: str
    fell: int
    asked: int


@dataclass(frozen=True)
class ChangedSetting:
    """A property that differs between two runs (a setting, commit, data or machine), with its old and new value."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Explanation:
    """A regression's extent and possible causes: the worse questions, where they cluster, and what changed."""

    regression: Regression
    metric: str
    """The metric by which the questions fell; empty where they only failed."""
    questions: list[Fallen]
    documents: list[FallenGroup]
    labels: list[FallenGroup]
    changed: list[ChangedSetting]


def explain(regression: Regression) -> Explanation:
    """Return the questions that a regression affects, where they cluster, and what changed between the two runs.

    A question is affected if it newly failed, or got worse by the regression's most significant metric.
    """
    series = regression.series
    before, after = series.runs[regression.prior], series.runs[regression.at]
    metric = regression.falls[0].metric if regression.falls else ""
    tables = before.tables[series.dataset], after.tables[series.dataset]
    fallen = _find_fallen(*tables, metric)
    earlier = {one.earlier for one in fallen.values()}
    old = {row.id: row for row in before.rows_of(series.dataset) if row.id in earlier}
    new = {row.id: row for row in after.rows_of(series.dataset) if row.id in fallen}
    questions = [_make_fallen(one, old[one.earlier], new[id]) for id, one in fallen.items()]
    where = _count_documents(tables[1], set(fallen)), _count_labels(tables[1], set(fallen))
    return Explanation(regression, metric, questions, *where, list(find_changes(before, after, series.dataset)))


def find_changes(before: RunResults, after: RunResults, dataset: str) -> Iterator[ChangedSetting]:
    """Yield the differences between two runs in their settings, commit, data and machine."""
    one, other = before.system_settings, after.system_settings
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            yield ChangedSetting(name, one.get(name, "–"), other.get(name, "–"))
    pairs = {
        "commit": (before.commit, after.commit),
        "version of Exhibit": (before.config.version, after.config.version),
        "data": tuple(run.data_version(dataset) for run in (before, after)),
        "questions": tuple(str(len(run.tables[dataset].ids)) for run in (before, after)),
    }
    for name, (old, new) in pairs.items():
        if old != new:
            yield ChangedSetting(name, shorten_digest(old) or "unknown", shorten_digest(new) or "unknown")
    machines = [m.model_dump() if (m := run.provenance.machine) else {} for run in (before, after)]
    for name in sorted(machines[0].keys() | machines[1].keys()):
        if machines[0].get(name) != machines[1].get(name):
            yield ChangedSetting(f"machine: {name}", *(str(machine.get(name, "unknown")) for machine in machines))


def shorten_digest(text: str) -> str:
    """Return a long commit hash or digest cut to 8 characters; a final `+`, which marks changed files, is kept."""
    mark = "+" if text.endswith("+") else ""
    plain = text.removesuffix("+")
    return f"{plain[:_SHORTEST]}{mark}" if len(plain) >= 40 else text


def _find_fallen(before: Table, after: Table, metric: str) -> dict[Id, FallenValues]:
    """Return the questions whose value got worse or that failed, the worst first, with both values."""
    worse: dict[Id, tuple[float, FallenValues]] = {}
    old, new = (table.values.get(metric) or [None] * len(table.ids) for table in (before, after))
    for row, at in match_questions(before, after):
        id, was, value = after.ids[at], old[row], new[at]
        if after.has_failed(at) and not before.has_failed(row):
            worse[id] = (float("inf"), FallenValues(before.ids[row], was, None))
        elif was is None or value is None or abs(value - was) <= EQUAL:
            continue
        elif describe_metric(metric).improves(value - was) is False:
            worse[id] = (abs(value - was), FallenValues(before.ids[row], was, value))
    ranked = sorted(worse, key=lambda id: (-worse[id][0], isinstance(id, str), id))
    return {id: worse[id][1] for id in ranked}


def _make_fallen(values: FallenValues, before: RunQuestion, after: RunQuestion) -> Fallen:
    verdicts = (before.verdict, after.verdict)
    return Fallen(
        after.id, after.question, after.filename or "", values.before, values.after, verdicts, after.reply.error
    )


def _count_shares(table: Table, fallen: set[Id], names_of: Callable[[int], Iterable[str]]) -> list[FallenGroup]:
    """Return, for each group of questions, how many questions it has and how many of them got worse.

    `names_of` returns the names of the groups to which a table row belongs, such as its document.
    """
    fell: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for row, id in enumerate(table.ids):
        names = list(names_of(row))
        asked.update(names)
        fell.update(names if id in fallen else ())
    return [FallenGroup(name, fell[name], count) for name, count in asked.items()]


def _count_documents(table: Table, fallen: set[Id]) -> list[FallenGroup]:
    shares = _count_shares(table, fallen, lambda row: [table.documents[row]])
    named = [share for share in shares if share.fell and not share.name.startswith("\0")]
    return sorted(named, key=lambda share: (-share.fell, -share.fell / share.asked, share.name))


def _count_labels(table: Table, fallen: set[Id]) -> list[FallenGroup]:
    """Return the label values whose questions got worse more often than average; the largest excess comes first."""
    if not table.labels or not fallen:
        return []
    kinds, overall = kinds_of(table.labels), sum(id in fallen for id in table.ids) / len(table.ids)
    labelled = [{name: str(labels[name]) for name in kinds if labels.get(name) is not None} for labels in table.labels]
    shares = _count_shares(table, fallen, lambda row: [f"{name}: {value}" for name, value in labelled[row].items()])
    above = [share for share in shares if share.fell / share.asked > overall]
    return sorted(above, key=lambda share: (overall * share.asked - share.fell, share.name))


def format_markdown(
    series: Sequence[Series],
    metrics: Mapping[str, Sequence[str]],
    explanations: Sequence[Explanation],
    checks: Sequence[Check],
    scale: Scale,
) -> str:
    """Return a Markdown summary of the runs over time.

    It lists the regressions that still exist, the figures of the newest run with their ratings (`Good`,
    `Acceptable` or `Poor`), and the result of each check.
    """
    return render(
        "summary.md.j2",
        standing=[one for one in explanations if one.regression.stands],
        series=[(one, list_figures(one, metrics[one.title], scale)) for one in series],
        checks=checks,
        headline=write_headline,
        sentences=sentences,
        value=format_value,
        metric_title=format_metric_title,
    )


def format_junit(checks: Sequence[Check]) -> str:
    """Return the checks as JUnit XML, one suite per dataset."""
    return render("junit.xml.j2", checks=checks)


def list_figures(series: Series, metrics: Sequence[str], scale: Scale) -> list[Record]:
    """Return a record for each metric that the newest run of a series has.

    The record contains the newest mean with its quality band, the mean of the previous run, and the best mean
    of all runs.
    """
    rows: list[Record] = []
    for metric in metrics:
        means = [mean for mean in series.list_means(metric) if mean and mean.mean is not None]
        newest = series.list_means(metric)[-1]
        if newest is None or newest.mean is None:
            continue
        bands = scale.of(series.dataset, metric)
        known = sorted(mean.mean or 0.0 for mean in means)
        fields: Record = {"metric": metric, "newest": newest, "before": means[-2].mean if len(means) > 1 else None}
        fields |= {"best": known[0 if describe_metric(metric).better == "less" else -1]}
        fields |= {"band": bands.band(newest.mean) if bands else ""}
        rows.append(fields | {"bounds": f"good {bands.good}, poor {bands.poor}" if bands else ""})
    return rows


_NAMED = 3
"""The number of documents, labels and settings that a sentence names."""


def format_metric_title(metric: str) -> str:
    """Return a metric's name in words, with its cutoff."""
    depth = metric.partition("@")[2]
    return describe_metric(metric).title + (f", k = {depth}" if depth else "")


def format_value(metric: str, number: float | None) -> str:
    """Return a metric's value with its unit; a share is given in per cent, and an unknown value as `–`."""
    return "–" if number is None else f"{describe_metric(metric).in_words(number)}{describe_metric(metric).unit_behind}"


def write_headline(explanation: Explanation) -> str:
    """Return the sentence that names the worse run, the run before it, and the dataset."""
    regression = explanation.regression
    what = f"{regression.run} is worse than {regression.before} on {regression.series.title}"
    if not regression.falls:
        return f"{what}: {regression.more_failed} more questions failed"
    return f"{what}: {fall_in_words(regression.falls[0])}"


def fall_in_words(fall: Fall) -> str:
    """Return a metric's change in words: its old and new value, the difference, and the interval."""
    step = fall.step
    way = "fell" if (step.mean or 0) < 0 else "rose"
    old, new = format_value(fall.metric, step.first), format_value(fall.metric, step.second)
    change = describe_metric(fall.metric).change_in_words
    ends = f", 95% interval {' to '.join(map(change, step.ci95))}" if step.ci95 else ""
    return f"{format_metric_title(fall.metric)} {way} from {old} to {new} ({change(step.mean or 0.0)}{ends})"


def sentences(explanation: Explanation) -> list[str]:
    """Return sentences about a regression.

    They state how many questions got worse, where these questions cluster, what changed between the two runs,
    and whether the regression persists in the newest run.
    """
    regression = explanation.regression
    asked = len(regression.series.tables[regression.at].ids)
    lines = [f"{len(explanation.questions)} of {asked} questions got worse{_describe_clusters(explanation)}."]
    if regression.falls and regression.more_failed:
        lines.append(f"{regression.more_failed} more questions failed than before.")
    others = [format_metric_title(fall.metric) for fall in regression.falls[1:]]
    if others:
        lines.append(f"Also worse: {'; '.join(others)}.")
    lines.append(_describe_changed(explanation.changed))
    lines.append("It persists in the newest run." if regression.stands else "It was corrected since.")
    if regression.falls and all(fall.usual is None for fall in regression.falls):
        lines.append("There are too few runs to know how much the figures vary without any change.")
    return lines


def _describe_clusters(explanation: Explanation) -> str:
    first = [share for share in explanation.documents[:_NAMED] if share.fell > 1]
    parts = [f"{share.fell} of {share.asked} about {share.name}" for share in first]
    labels = [f"{share.fell} of {share.asked} with {share.name}" for share in explanation.labels[:1] if share.fell > 1]
    return f": {', '.join([*parts, *labels])}" if parts or labels else ""


def _describe_changed(changed: Sequence[ChangedSetting]) -> str:
    if not changed:
        return "No recorded property was changed: settings, commit, data and machine are the same."
    shown = [f"{one.name} from {_shorten(one.before)} to {_shorten(one.after)}" for one in changed[:_NAMED]]
    more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    return f"Changed since the run before: {', '.join(shown)}{more}."


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
