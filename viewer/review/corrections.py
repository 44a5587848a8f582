"""Better gold from reviews, as a patch for each dataset: what most reviewers call wrong and agree how to mend."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from exhibit.evidence import fold
from exhibit.schemas.review import (
    PATCH,
    Better,
    Correction,
    MarkedPassage,
    Patch,
    Review,
    SetAsideQuestion,
    gold_digest,
)
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.review.source import Key, ReviewedRun

_JOINT = " […] "
"""Between the passages of an answer that is made of several."""


@dataclass
class Outcome:
    """What reviews come to: a patch for each dataset that has one, and what was left as it is, with the reason."""

    patches: dict[str, Patch] = field(default_factory=dict)
    corrected: dict[Key, Correction] = field(default_factory=dict)
    left: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))


def correct(reviews: Sequence[Review], run: ReviewedRun, *, set_aside_wrong: bool = False) -> Outcome:
    """Return the corrections; with `set_aside_wrong` also questions whose gold is wrong and that nobody mended."""
    outcome = Outcome()
    aside: dict[str, list[SetAsideQuestion]] = defaultdict(list)
    fixes: dict[str, list[Correction]] = defaultdict(list)
    votes = _votes(reviews)
    for key in sorted(votes, key=lambda key: (key[0], str(key[1]))):
        row = run.questions.get(key)
        reason = _refusal(key, row, votes[key])
        if reason:
            if reason != "right":
                outcome.left[reason].append(key)
            continue
        better = _agreed([better for better in votes[key].better if better.says_something])
        if isinstance(better, Better) and row is not None:
            fix = _correction(key, row, better, votes[key], run)
            if fix is None:
                outcome.left["the words marked are not in the document"].append(key)
                continue
            outcome.corrected[key] = fix
            fixes[key[0]].append(fix)
        elif set_aside_wrong and better == _NOBODY:
            words = "; ".join(dict.fromkeys(votes[key].comments)) or "reviewers call its gold wrong"
            aside[key[0]].append(SetAsideQuestion(id=int(key[1]), reason=words))
        else:
            outcome.left[str(better)].append(key)
    for dataset in dict.fromkeys([*fixes, *aside]):
        outcome.patches[dataset] = Patch(
            format=PATCH,
            dataset=run.bundle_name(dataset),
            about=f"Review of the run {run.name} by {', '.join(dict.fromkeys(r.reviewer for r in reviews))}.",
            questions=aside[dataset],
            corrections=fixes[dataset],
        )
    return outcome


_NOBODY = "wrong, and nobody marked better words"
_DIFFER = "wrong, but the better words differ"


@dataclass
class _Votes:
    """What was said of one question."""

    gold: Counter[str] = field(default_factory=Counter)
    better: list[Better] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)


def _votes(reviews: Sequence[Review]) -> dict[Key, _Votes]:
    votes: dict[Key, _Votes] = defaultdict(_Votes)
    for review in reviews:
        for case in review.cases:
            if case.gold is None:
                continue
            mine = votes[case.dataset, case.id]
            mine.gold[case.gold] += 1
            if case.gold == "wrong":
                mine.better.append(case.better)
                mine.reviewers.append(review.reviewer)
                mine.comments += [" ".join(case.comment.split())] if case.comment.strip() else []
    return dict(votes)


def _refusal(key: Key, row: RunQuestion | None, votes: _Votes) -> str:
    """Return why a question is not corrected; empty where more reviewers call its gold wrong than right."""
    if votes.gold["wrong"] == 0:
        return "right" if votes.gold["right"] else "unclear"
    if votes.gold["wrong"] <= votes.gold["right"]:
        return "reviewers are divided"
    if row is None:
        return "not in this run"
    return "" if isinstance(key[1], int) else "its id is no number, so no converter knows it"


def _agreed(given: Sequence[Better]) -> Better | str:
    """Return the better gold that was given, by one or by all alike."""
    if not given:
        return _NOBODY
    places = {str(sorted((c.filename, c.spans) for c in better.contexts)) for better in given}
    if len(places) > 1 or len({better.is_impossible for better in given}) > 1:
        return _DIFFER
    answers = [better.answer for better in given if better.answer.strip()]
    return given[0].model_copy(update={"answer": answers[0] if answers else ""})


def _correction(key: Key, row: RunQuestion, better: Better, votes: _Votes, run: ReviewedRun) -> Correction | None:
    contexts = []
    for marked in better.contexts:
        passage = _exact(key[0], marked, run)
        if passage is None:
            return None
        contexts.append(passage)
    contexts.sort(key=lambda context: (context.filename, context.spans[0]))
    return Correction(
        id=int(key[1]),
        was=gold_digest((gold.filename, gold.text) for gold in row.gold),
        contexts=contexts,
        is_impossible=better.is_impossible,
        answer=better.answer.strip() or _answer(row, contexts),
        reviewers=list(dict.fromkeys(votes.reviewers)),
        reason="; ".join(dict.fromkeys(votes.comments)),
    )


def _exact(dataset: str, marked: MarkedPassage, run: ReviewedRun) -> MarkedPassage | None:
    """Return a passage with the document's own words at its place; None where they are not those that were marked."""
    document = run.document(dataset, marked.filename)
    if document is None or not marked.spans or max(end for _, end in marked.spans) > len(document.text):
        return None
    words = " ".join(document.text[start:end] for start, end in marked.spans)
    if fold(words, loose=True) != fold(marked.text, loose=True):
        return None
    return marked.model_copy(update={"text": words})


def _answer(row: RunQuestion, contexts: Sequence[MarkedPassage]) -> str | None:
    """Return the expected answer anew where it was made of the gold's own words; None where it stays."""
    if not contexts:
        return None
    quotes = fold("".join(gold.text or "" for gold in row.gold), loose=True)
    answer = fold(row.truth.replace("[…]", ""), loose=True)
    if row.is_impossible or answer == quotes:
        return _JOINT.join(" ".join(context.text.split()) for context in contexts)
    return None
