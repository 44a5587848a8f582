"""The report of a run: an HTML page with its metrics and, for each question, the evidence.

>>> write_report(Path("results/first"))
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.evaluation.bands import read_scale
from exhibit.evaluation.command import main as evaluate
from exhibit.evaluation.judgement import ANSWERED_RIGHTLY
from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.runs import RunResults
from exhibit.runtime.command import guarded
from exhibit.schemas.run import REPORT, Estimate, Means
from exhibit.viewer.drawing import Record
from exhibit.viewer.funnel import make_funnel_rows
from exhibit.viewer.matching import OUTCOMES, Matching, Outcomes, explain_outcome
from exhibit.viewer.metric_tables import group_rows, make_breakdowns, make_metric_rows, run_columns
from exhibit.viewer.page import GROUP_MEANINGS, render, say
from exhibit.viewer.page_output import View
from exhibit.viewer.plots import make_plots, stack_shares
from exhibit.viewer.variants import growth_plots, variant_effects, variant_warnings


def write_report(folder: Path, *, out: Path | None = None, **how: Any) -> Path:
    """Write the report of a results folder and return its path.

    Without `out`, the report is written into that folder; `how` sets the options of `View`.
    """
    run = RunResults(folder)
    return View(**how).write([run], out or folder / REPORT, f"{run.name} – Exhibit report", _make_body)


@guarded("stopped; continue with the same command and --resume")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `exhibit evaluate`: evaluate a system, write the report, and print a table."""
    code: int = evaluate(argv, draw=write_report)
    return code


def _make_body(matching: Matching, meta: Record, notes: list[str]) -> str:
    [run], [tally] = matching.runs, matching.tallies
    language = meta["language"]
    columns, scale = run_columns(run), read_scale()
    total = tally.count_total()
    several = {"All": total} if len(tally.outcomes) > 1 else {}
    return render(
        "report.html.j2",
        run=run,
        tally=tally,
        meta=meta,
        notes=notes,
        language=language,
        tested=describe_system(run, tally, language),
        opening=write_opening(tally, language),
        headlines=write_headlines(run, language),
        tiles=make_tiles(tally),
        looks=choose_worth_looking_at(tally, language),
        shares=stack_shares(several | tally.outcomes),
        funnel_rows=make_funnel_rows(tally.stages, run.means),
        kinds=[(name, OUTCOMES[name].meaning, total[name]) for name in reversed(OUTCOMES) if total[name]],
        groups=group_rows(make_metric_rows(columns, None, scale)),
        meanings=GROUP_MEANINGS,
        every=make_metric_rows(columns, {name: None for means in columns.values() for name in means}, scale),
        columns=list(columns),
        heads_of=[name or "All" for name in columns],
        warnings=_make_warnings(run),
        breakdowns=make_breakdowns(run, scale),
        plots=make_plots(run, tally.seconds),
        effects=variant_effects(run),
        growth=growth_plots(run),
        ingestions={name: read for name in run.datasets if (read := run.read_ingestion(name)).files is not None},
    )


def _make_warnings(run: RunResults) -> list[str]:
    """Return the warnings above the figures of a report.

    They concern questions that a program drafted, gold with invisible text, and information that questions or
    passages lack. They also name each variant of a bundle that has no control in the run; a variant's control is
    the bundle without the change.
    """
    drafted = [f"{name}: {entry.draft}." for name, entry in run.config.datasets.items() if entry.draft]
    missing = (f"{line}." for name in run.datasets for line in run.missing(name).lines)
    return [*drafted, *variant_warnings(run), *missing]


_HEADLINES = ("char_recall", "ndcg", "document_hit")
"""The main metrics of a benchmark: the first that was measured, unless a converter names another."""
_DEPTH = 8  # passages, about the size of a context
_WORTH = 3  # questions that are listed: nobody would look at more


class Tile(NamedTuple):
    """A count with a label that a lawyer understands."""

    words: str
    number: int
    of: int
    among: str = ""
    """The population of the count, in words."""
    note: str = ""

    @property
    def share(self) -> str:
        """The field `number` in per cent of the field `of`, such as `40%`; `–` if `of` is 0."""
        return f"{100 * self.number / self.of:.0f}%" if self.of else "–"


class Look(NamedTuple):
    """A question that is worth looking at, and the reason."""

    key: str
    question: str
    outcome: str
    why: str


def describe_system(run: RunResults, tally: Outcomes, language: str = "en") -> str:
    """Return the sentence that names the tested system, the number of questions, and the date."""
    settings, t = run.settings, partial(say, language)
    if (run.config.target or "builtin") != "builtin":
        address = settings.get("target_url")
        system = t("The system at {name}" if address else "The target {name}", name=address or run.config.target)
    elif "preset" in settings:
        system = t("The built-in pipeline, preset {preset},", preset=settings["preset"])
    else:
        system = t("The built-in pipeline")
    files = [entry.files for entry in run.config.datasets.values()]
    documents = t(" about {files:,} documents", files=sum(filter(None, files))) if all(files) else ""
    names = run.datasets
    listed = names[0] if len(names) == 1 else t("{names} and {last}", names=", ".join(names[:-1]), last=names[-1])
    return t(
        "{system} was asked {questions:,} questions{documents} of {names} {when}.",
        system=system, questions=tally.questions, documents=documents, names=listed, when=format_start(run, language),
    )  # fmt: skip


def format_start(run: RunResults, language: str = "en") -> str:
    """Return the day and time when a run began."""
    try:
        began = datetime.fromisoformat(run.provenance.started)
    except ValueError:
        return say(language, "at an unknown time")
    return say(language, "on {began.day} {began:%B %Y} at {began:%H:%M} UTC", began=began)


def headline_of(run: RunResults, dataset: str, means: Means) -> str | None:
    """Return the name of a dataset's main metric: the metric that its converter names, if that has a value.

    Otherwise return the first of `char_recall`, `ndcg` and `document_hit` that has a value, or None.
    """
    known = [name for name, one in means.items() if one.mean is not None]
    named = run.config.datasets[dataset].headline
    if named in known:
        return named
    families = ([name for name in known if name.partition("@")[0] == family] for family in _HEADLINES)
    return next((min(names, key=_measure_distance) for names in families if names), None)


def _measure_distance(metric: str) -> int:
    depth = metric.partition("@")[2]
    return abs(int(depth) - _DEPTH) if depth.isdecimal() else 0


def write_headlines(run: RunResults, language: str = "en") -> list[str]:
    """Return a sentence for each main metric: its value for each benchmark, with the interval."""
    by_metric: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for name in run.datasets:
        means = run.means_of(name)
        metric = headline_of(run, name, means)
        if metric:
            by_metric[metric][name] = means[metric]
    sentences = []
    for metric, estimates in by_metric.items():
        depth = metric.partition("@")[2]
        far = say(language, " in the first {depth} passages", depth=depth) if depth else ""
        parts = [
            say(language, "{figure} for {name}", figure=_format_figure(metric, one, language, first=not at), name=name)
            for at, (name, one) in enumerate(estimates.items())
        ]
        sentences.append(f"{say(language, describe_metric(metric).title)}{far}: {'; '.join(parts)}.")
    return sentences


def _format_figure(metric: str, one: Estimate, language: str, *, first: bool) -> str:
    described = describe_metric(metric)
    ends = ""
    if one.ci95:
        low, high = map(described.in_words, one.ci95)
        ends = say(language, " (95% interval {low} to {high})" if first else " ({low} to {high})", low=low, high=high)
    return f"{described.in_words(one.mean)}{described.unit_behind}{ends}"


def make_tiles(tally: Outcomes) -> list[Tile]:
    """Return the figures at the top of a report, each with the number of questions that it refers to.

    The first is the share of right answers. Refusals are counted as in `false_refusal_rate` and
    `abstention_accuracy`, and found gold as in `recall@10`.
    """
    counts = tally.counts
    not_judged = counts["answerable"] - counts["judged_right"]
    among = "judged answers"
    every = [
        Tile("answered rightly", counts["right"], counts["judged_right"], among, "the reply gives the expected answer"),
        Tile(
            "gold passage found", counts["found"], counts["judged_found"], "questions with located gold",
            "the first 10 passages hold at least half of a gold passage",
        ),
        Tile("wrongly refused", counts["refused"], counts["judged_refused"], "questions that the documents answer",
             OUTCOMES["wrongly refused"].meaning),
        Tile("rightly refused", counts["abstained"], counts["judged_abstained"],
             "questions that the documents do not answer", OUTCOMES["rightly refused"].meaning),
        Tile("answers not judged", not_judged, counts["answerable"], "questions that the documents answer",
             "nothing tells whether the reply is right: the expected answer has no figure, date or name to look for"),
        Tile("failed", counts["failed"], tally.questions, "questions", OUTCOMES["failed"].meaning),
    ]  # fmt: skip
    return [tile for tile in every if tile.of and (tile.number or tile.words not in ("failed", "answers not judged"))]


def write_opening(tally: Outcomes, language: str = "en") -> list[str]:
    """Return the first sentences of a report: the number of right answers, and the kinds of questions."""
    counts, t = tally.counts, partial(say, language)
    judged, sentences = counts["judged_right"], []
    if judged:
        share = describe_metric(ANSWERED_RIGHTLY)
        ends = tally.compute_right_interval()
        interval = (
            t("; 95% interval {low} to {high}", low=share.in_words(ends[0]), high=share.in_words(ends[1]))
            if ends
            else ""
        )
        sentences.append(
            t(
                "Answered rightly: {right:,} of {judged:,} judged answers, {share}%{interval}.",
                right=counts["right"], judged=judged, share=share.in_words(counts["right"] / judged), interval=interval,
            )
        )  # fmt: skip
    else:
        sentences.append(t("No answer could be judged."))
    parts = [t("{count:,} that the documents answer", count=counts["answerable"])]
    parts += [t("{count:,} that they do not answer", count=counts["impossible"])] if counts["impossible"] else []
    parts += [t("{count:,} that failed", count=counts["failed"])] if counts["failed"] else []
    return [*sentences, t("Of {questions:,} questions: {parts}.", questions=tally.questions, parts=", ".join(parts))]


def choose_worth_looking_at(tally: Outcomes, language: str = "en") -> list[Look]:
    """Return the questions to look at first: one for each of the most serious kinds of mistake.

    From all questions with the same kind of mistake, the one with the most confident answer is chosen.
    """
    kinds = [name for name in OUTCOMES if name in tally.worst and name != "failed"][:_WORTH]
    rows = [(name, tally.worst[name]) for name in kinds]
    return [
        Look(
            f"{row.dataset}/{row.id}", row.question, name, " ".join(say(language, one) for one in explain_outcome(row))
        )
        for name, row in rows
    ]
