"""Turn reviews into a patch of corrected gold for each dataset.

Gold is corrected if more reviewers call it wrong than right, and all the corrections that they propose
agree.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from exhibit.evaluation.cases import Case, GoldPassage, Reply, Values
from exhibit.evaluation.journal import REPLY
from exhibit.evaluation.judgement import prefer_judge
from exhibit.evaluation.metrics import Options, Parity, find_needing, measure
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.score_table import Table
from exhibit.evidence import Document, Span, fold
from exhibit.schemas import IMPOSSIBLE_ANSWER, review
from exhibit.schemas.run import RunQuestion, RunReply
from exhibit.viewer.review.source import JOINT, Judged, Key, ReviewedRun, group_by_question, place_passage


@dataclass
class Corrections:
    """The result of reviews: patches by dataset, corrections by question, and uncorrected questions by reason."""

    patches: dict[str, review.Patch] = field(default_factory=dict)
    corrected: dict[Key, review.Correction] = field(default_factory=dict)
    left: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))


def correct(reviews: Sequence[review.Review], run: ReviewedRun, *, set_aside_wrong: bool = False) -> Corrections:
    """Return the corrections of a run's gold on which the reviewers agree, and a patch for each dataset.

    With `set_aside_wrong`, a patch also removes each question whose gold reviewers call wrong without proposing
    other gold.
    """
    outcome = Corrections()
    aside: dict[str, list[review.SetAsideQuestion]] = defaultdict(list)
    fixes: dict[str, list[review.Correction]] = defaultdict(list)
    judged = group_by_question(reviews)
    for key in sorted(judged, key=lambda key: (key[0], str(key[1]))):
        row = run.questions.get(key)
        reason = _explain_refusal(key, row, judged[key])
        if reason:
            if reason != "right":
                outcome.left[reason].append(key)
            continue
        wrong = [one for one in judged[key] if one[1].gold == "wrong"]
        better = _find_agreed([case.better for _, case in wrong if case.better.says_something])
        if isinstance(better, review.Better) and row is not None:
            fix = _make_correction(key, row, better, wrong, run)
            if fix is None:
                outcome.left["the marked words are not in the document"].append(key)
                continue
            outcome.corrected[key] = fix
            fixes[key[0]].append(fix)
        elif set_aside_wrong and better == _NOBODY:
            words = _join_comments(wrong) or "reviewers call its gold wrong"
            aside[key[0]].append(review.SetAsideQuestion(id=int(key[1]), reason=words))
        else:
            outcome.left[str(better)].append(key)
    for dataset in dict.fromkeys([*fixes, *aside]):
        outcome.patches[dataset] = review.Patch(
            format=review.PATCH,
            dataset=run.find_bundle_name(dataset),
            about=f"Review of the run {run.name} by {', '.join(dict.fromkeys(r.reviewer for r in reviews))}.",
            questions=aside[dataset],
            corrections=fixes[dataset],
        )
    return outcome


_NOBODY = "wrong, but nobody marked better words"
_DIFFER = "wrong, but the better words differ"


def _join_comments(wrong: Judged) -> str:
    return "; ".join(dict.fromkeys(" ".join(case.comment.split()) for _, case in wrong if case.comment.strip()))


def _explain_refusal(key: Key, row: RunQuestion | None, judged: Judged) -> str:
    """Return the reason why a question is not corrected, such as `unclear`; empty if it is to be corrected."""
    votes = Counter(case.gold for _, case in judged)
    if votes["wrong"] == 0:
        return "right" if votes["right"] else "unclear"
    if votes["wrong"] <= votes["right"]:
        return "reviewers are divided"
    if row is None:
        return "not in this run"
    return "" if isinstance(key[1], int) else "its id is not a number, so no converter knows it"


def _find_agreed(given: Sequence[review.Better]) -> review.Better | str:
    """Return the correction that the reviewers agree on; if there is none, return the reason."""
    if not given:
        return _NOBODY
    places = {str(sorted((c.filename, c.spans) for c in better.contexts)) for better in given}
    if len(places) > 1 or len({better.is_impossible for better in given}) > 1:
        return _DIFFER
    answers = [better.answer for better in given if better.answer.strip()]
    return given[0].model_copy(update={"answer": answers[0] if answers else ""})


def _make_correction(
    key: Key, row: RunQuestion, better: review.Better, wrong: Judged, run: ReviewedRun
) -> review.Correction | None:
    contexts = []
    for marked in better.contexts:
        passage = place_passage(marked, run.document(key[0], marked.filename))
        if passage is None:
            return None
        contexts.append(passage)
    contexts.sort(key=lambda context: (context.filename, context.spans[0]))
    return review.Correction(
        id=int(key[1]),
        was=review.digest_gold((gold.filename, gold.text) for gold in row.gold),
        contexts=contexts,
        is_impossible=better.is_impossible,
        answer=better.answer.strip() or _make_answer(row, contexts),
        reviewers=[name for name, _ in wrong],
        reason=_join_comments(wrong),
    )


def _make_answer(row: RunQuestion, contexts: Sequence[review.MarkedPassage]) -> str | None:
    """Return the new expected answer, made of the corrected passages; None if the expected answer does not change.

    The answer changes only if the old answer was the text of the old gold, or if the question was impossible
    before (that is, the documents were said not to answer it).
    """
    if not contexts:
        return None
    quotes = fold("".join(gold.text or "" for gold in row.gold), loose=True)
    answer = fold(row.truth.replace("[…]", ""), loose=True)
    if row.is_impossible or answer == quotes:
        return JOINT.join(" ".join(context.text.split()) for context in contexts)
    return None


def rescore_run(run: ReviewedRun, corrections: Mapping[Key, review.Correction]) -> tuple[list[Table], list[Table]]:
    """Return a run's score tables twice: as they are, and with corrected questions scored against their new gold.

    In the second version, metrics that need a judge, the whole corpus or usage data (such as token counts) keep
    their values. If a question's expected answer changed, a judge's mark that depends on it is removed.
    """
    before = read_tables(run)
    after = []
    for table in before:
        mine = {key[1]: fix for key, fix in corrections.items() if key[0] == table.name}
        after.append(_replace_scores(table, _rescore_rows(run, table, mine), mine) if mine else table)
    return before, after


def _rescore_rows(
    run: ReviewedRun, table: Table, fixes: Mapping[int | str, review.Correction]
) -> dict[int | str, dict[str, float | None]]:
    cases = [_make_case(run, (table.name, id), fix) for id, fix in fixes.items()]
    measured = run.config.measured
    options = Options(parity=cast(Parity, measured.parity or ""))
    options = replace(options, ks=tuple(measured.ks)) if measured.ks else options
    values = measure(cases, options)
    anew = (
        set(values)
        - set(find_needing(values, "judge"))
        - set(find_needing(values, "corpus"))
        - set(find_needing(values, "usage"))
    )
    return {case.id: {name: values[name][at] for name in anew} for at, case in enumerate(cases)}


def _replace_scores(
    table: Table, scores: Mapping[int | str, Mapping[str, float | None]], fixes: Mapping[int | str, review.Correction]
) -> Table:
    stale = {id for id, fix in fixes.items() if fix.answer or fix.is_impossible}
    columns: dict[str, Values] = {}
    for name, column in table.values.items():
        judged = bool(find_needing([name], "judge")) and bool(find_needing([name], "truth"))
        columns[name] = [
            None if judged and id in stale else scores[id][name] if name in scores.get(id, {}) else value
            for id, value in zip(table.ids, column, strict=True)
        ]
    return replace(table, values=prefer_judge(columns), repeats=())


def _make_case(run: ReviewedRun, key: Key, fix: review.Correction) -> Case:
    row = run.questions[key]
    golds = tuple(
        GoldPassage(
            context.filename,
            context.text,
            (tuple(Span(*span) for span in context.spans),) if context.spans else (),
            _find_pages(run.document(key[0], context.filename), [Span(*span) for span in context.spans]),
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
        reply=_make_reply(run, key[0], row.reply),
    )


def _find_pages(document: Document | None, spans: Sequence[Span]) -> tuple[int, ...]:
    return tuple(sorted({page for span in spans for page in document.pages_of(span)})) if document else ()


def _make_reply(run: ReviewedRun, dataset: str, recorded: RunReply) -> Reply:
    """Return a recorded reply with the text of all its passages.

    The run's file has only the text of the first passages; the other texts are read from the documents.
    """
    reply = REPLY.validate_python(recorded.model_dump(exclude_none=True))
    passages = []
    for one in reply.passages:
        document = run.document(dataset, one.filename) if one.filename and one.span else None
        text = document.text[one.span.start : one.span.end] if document and one.span and not one.text else one.text
        passages.append(replace(one, text=text, pages=_find_pages(document, [one.span] if one.span else [])))
    return replace(reply, passages=tuple(passages))
