"""Why a run is worse: the questions that fell, the documents and labels they share, and what else was changed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from exhibit.evaluation.metrics import about
from exhibit.evaluation.statistics import Table
from exhibit.schemas.run import Id, RunQuestion
from exhibit.viewer.trend.changes import EQUAL, Regression
from exhibit.viewer.trend.series import Series, TrendRun

LISTED = 40
"""Questions, documents and labels that are listed; their number is told beside them."""
_SHORTEST = 8
"""Characters of a digest or a commit that are shown."""


@dataclass(frozen=True)
class Fallen:
    """A question that a run answered worse."""

    id: Id
    question: str
    document: str
    before: float | None
    after: float | None
    verdicts: tuple[str, str]
    error: str = ""


@dataclass(frozen=True)
class Share:
    """A document, or a label's value: how many of its questions fell."""

    name: str
    fell: int
    asked: int


@dataclass(frozen=True)
class Changed:
    """A setting, the commit, the data or the machine: what it was and what it is."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Explanation:
    """What is known of a regression."""

    regression: Regression
    metric: str
    """The one by which questions are said to have fallen; empty where they only failed."""
    questions: tuple[Fallen, ...]
    documents: tuple[Share, ...]
    labels: tuple[Share, ...]
    changed: tuple[Changed, ...]


def explain(regression: Regression) -> Explanation:
    """Return which questions fell by the surest metric or failed, where they cluster, and what was changed."""
    series = regression.series
    before, after = series.runs[regression.prior], series.runs[regression.at]
    metric = regression.falls[0].metric if regression.falls else ""
    tables = before.tables[series.dataset], after.tables[series.dataset]
    fallen = _fallen(*tables, metric, more_than=usual_change(series, metric, regression.at))
    rows = [_rows(run, series.dataset, set(fallen)) for run in (before, after)]
    questions = [_question(fallen[id], rows[0].get(id), rows[1][id]) for id in fallen]
    return Explanation(
        regression,
        metric,
        tuple(questions),
        tuple(_documents(tables[1], set(fallen))),
        tuple(_labels(tables[1], set(fallen))),
        tuple(changes_between(before, after, series.dataset)),
    )


def changes_between(before: TrendRun, after: TrendRun, dataset: str) -> Iterator[Changed]:
    """Yield what differs between two runs in their settings and in what they stood on."""
    one, other = before.asked, after.asked
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            yield Changed(name, one.get(name, "–"), other.get(name, "–"))
    pairs = {
        "commit": (before.commit, after.commit),
        "version of Exhibit": (before.config.version, after.config.version),
        "data": tuple(run.data_version(dataset) for run in (before, after)),
        "questions": tuple(str(len(run.tables[dataset].ids)) for run in (before, after)),
    }
    for name, (old, new) in pairs.items():
        if old != new:
            yield Changed(name, shown_digest(old) or "unknown", shown_digest(new) or "unknown")
    machines = [m.model_dump() if (m := run.provenance.machine) else {} for run in (before, after)]
    for name in sorted(machines[0].keys() | machines[1].keys()):
        if machines[0].get(name) != machines[1].get(name):
            yield Changed(f"machine: {name}", *(str(machine.get(name, "unknown")) for machine in machines))


def shown_digest(text: str) -> str:
    """Return a commit or a digest as short as it is still told apart, with its mark of changed files."""
    mark = "+" if text.endswith("+") else ""
    plain = text.removesuffix("+")
    return f"{plain[:_SHORTEST]}{mark}" if len(plain) >= 40 else text


def usual_change(series: Series, metric: str, at: int) -> float:
    """Return the change that 19 of 20 questions stay below in a usual step; 0 where there is no other step."""
    tails = []
    for place in (place for place in range(1, len(series.runs)) if place != at):
        old, new = (
            dict(zip(t.ids, t.values.get(metric, ()), strict=False)) for t in series.tables[place - 1 : place + 1]
        )
        pairs = [(was, now) for id, was in old.items() if was is not None and (now := new.get(id)) is not None]
        changes = sorted(abs(now - was) for was, now in pairs)
        tails += [changes[int(0.95 * len(changes))]] if changes else []
    return median(tails) if tails else 0.0


def _fallen(
    before: Table, after: Table, metric: str, *, more_than: float
) -> dict[Id, tuple[float | None, float | None]]:
    """Return the questions whose value got worse or that failed, the worst first, with both values."""
    old = dict(zip(before.ids, before.values.get(metric) or [None] * len(before.ids), strict=True))
    failed_before = {id for id, bad in zip(before.ids, before.failed, strict=False) if bad}
    worse: dict[Id, tuple[float, float | None, float | None]] = {}
    new = after.values.get(metric) or [None] * len(after.ids)
    failed = list(after.failed) or [0] * len(after.ids)
    for id, value, bad in zip(after.ids, new, failed, strict=True):
        if id not in old:
            continue
        was = old[id]
        if bad and id not in failed_before:
            worse[id] = (float("inf"), was, None)
        elif was is None or value is None or abs(value - was) <= max(EQUAL, more_than):
            continue
        elif about(metric).improves(value - was) is False:
            worse[id] = (abs(value - was), was, value)
    ranked = sorted(worse, key=lambda id: (-worse[id][0], isinstance(id, str), id))
    return {id: worse[id][1:] for id in ranked}


def _rows(run: TrendRun, dataset: str, wanted: set[Id]) -> dict[Id, RunQuestion]:
    return {row.id: row for row in run.rows_of(dataset) if row.id in wanted}


def _question(values: tuple[float | None, float | None], before: RunQuestion | None, after: RunQuestion) -> Fallen:
    verdicts = ("" if before is None else before.verdict, after.verdict)
    return Fallen(after.id, after.question, after.file, *values, verdicts, after.reply.error)


def _documents(table: Table, fallen: set[Id]) -> list[Share]:
    asked = Counter(table.documents)
    fell = Counter(document for id, document in zip(table.ids, table.documents, strict=True) if id in fallen)
    shares = [Share(name, count, asked[name]) for name, count in fell.items() if not name.startswith("\0")]
    return sorted(shares, key=lambda share: (-share.fell, -share.fell / share.asked, share.name))


def _labels(table: Table, fallen: set[Id]) -> list[Share]:
    """Return the labels' values with which more questions fell than with others, the largest excess first."""
    if not table.labels or not fallen:
        return []
    overall = sum(id in fallen for id in table.ids) / len(table.ids)
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for id, labels in zip(table.ids, table.labels, strict=True):
        for name, value in _plain(labels):
            counts[name][value][0] += id in fallen
            counts[name][value][1] += 1
    shares = []
    for name, values in counts.items():
        if 1 < len(values) <= len(table.ids) // 2:  # a label that every question has another of sorts nothing
            shares += [Share(f"{name}: {value}", fell, asked) for value, (fell, asked) in values.items() if fell]
    above = [share for share in shares if share.fell / share.asked > overall]
    return sorted(above, key=lambda share: (overall * share.asked - share.fell, share.name))


def _plain(labels: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    return ((name, str(value)) for name, value in labels.items() if value is not None and len(str(value)) <= 80)
