"""A run's metrics with the gold that reviewers gave it: only the corrected questions are scored anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply, Values
from exhibit.evaluation.metrics import Options, Parity, measure, needing
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.statistics import Table
from exhibit.evidence import Span
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.review import Correction
from exhibit.schemas.run import RunPassage, RunReply
from exhibit.viewer.review.source import Key, ReviewedRun


def rescored(run: ReviewedRun, corrections: Mapping[Key, Correction]) -> tuple[list[Table], list[Table]]:
    """Return the run's tables as they are, and with the corrected questions scored against their better gold.

    What needs a judge, or the whole corpus, keeps its value; the judge's mark of correctness is taken away where the
    expected answer changed.
    """
    before = read_tables(run)
    after = []
    for table in before:
        mine = {key[1]: fix for key, fix in corrections.items() if key[0] == table.name}
        after.append(_with(table, _scores(run, table, mine), mine) if mine else table)
    return before, after


def _scores(
    run: ReviewedRun, table: Table, fixes: Mapping[int | str, Correction]
) -> dict[int | str, dict[str, float | None]]:
    cases = [_case(run, (table.name, id), fix) for id, fix in fixes.items()]
    told = run.config.measured
    options = Options(parity=cast(Parity, told.parity or ""))
    options = replace(options, ks=tuple(told.ks)) if told.ks else options
    values = measure(cases, options)
    anew = set(values) - set(needing(values, "judge")) - set(needing(values, "corpus")) - set(needing(values, "usage"))
    return {case.id: {name: values[name][at] for name in anew} for at, case in enumerate(cases)}


def _with(
    table: Table, scores: Mapping[int | str, Mapping[str, float | None]], fixes: Mapping[int | str, Correction]
) -> Table:
    stale = {id for id, fix in fixes.items() if fix.answer or fix.is_impossible}
    columns: dict[str, Values] = {}
    for name, column in table.values.items():
        judged = bool(needing([name], "judge")) and bool(needing([name], "truth"))
        columns[name] = [
            None if judged and id in stale else scores[id][name] if name in scores.get(id, {}) else value
            for id, value in zip(table.ids, column, strict=True)
        ]
    return replace(table, values=columns, repeats=())


def _case(run: ReviewedRun, key: Key, fix: Correction) -> Case:
    row = run.questions[key]
    golds = tuple(
        GoldPassage(
            context.filename,
            context.text,
            (tuple(Span(*span) for span in context.spans),) if context.spans else (),
            _pages(run, key[0], context.filename, [Span(*span) for span in context.spans]),
        )
        for context in fix.contexts
    )
    return Case(
        id=key[1],
        question=row.question,
        truth=IMPOSSIBLE_ANSWER if fix.is_impossible else fix.answer or row.truth,
        gold=golds,
        is_impossible=fix.is_impossible,
        filename=golds[0].filename if golds else row.filename,
        labels=row.labels,
        reply=_reply(run, key[0], row.reply),
    )


def _pages(run: ReviewedRun, dataset: str, filename: str, spans: Sequence[Span]) -> tuple[int, ...]:
    document = run.document(dataset, filename)
    return tuple(sorted({page for span in spans for page in document.pages_of(span)})) if document else ()


def _reply(run: ReviewedRun, dataset: str, told: RunReply) -> Reply:
    return Reply(
        answer=told.answer,
        passages=tuple(_passage(run, dataset, one) for one in told.passages),
        selected=told.selected,
        context=None if told.context is None else tuple(told.context),
        seconds=told.seconds,
        error=told.error,
        usage={name: value for name, value in told.usage.items() if value is not None},
        first_token=told.first_token,
        confidence=told.confidence,
    )


def _passage(run: ReviewedRun, dataset: str, told: RunPassage) -> Passage:
    span = Span(*told.span) if told.span else None
    text = told.text
    if text is None:  # the file has the words of the first passages alone
        document = run.document(dataset, told.filename) if told.filename else None
        text = document.text[span.start : span.end] if document and span else ""
    pages = _pages(run, dataset, told.filename, [span]) if told.filename and span else ()
    return Passage(text, told.filename, span, told.score, told.page, told.told_page, pages)
