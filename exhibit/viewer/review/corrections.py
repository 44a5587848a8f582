"""Turn reviews into a patch of corrected gold for each dataset.

Gold is corrected if more reviewers call it wrong than right, and all the corrections that they propose agree.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from exhibit.evidence import fold
from exhibit.schemas import review
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.review.source import Judged, Key, ReviewedRun, group_by_question, join_words, place_passage

_NO_PROPOSAL = "wrong, but nobody marked better words"


@dataclass
class Corrections:
    """The result of reviews: patches by dataset, corrected questions, and uncorrected questions by reason."""

    patches: dict[str, review.Patch] = field(default_factory=dict)
    corrected: list[Key] = field(default_factory=list)
    left: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))


def correct(reviews: Sequence[review.Review], run: ReviewedRun, *, set_aside_wrong: bool = False) -> Corrections:
    """Return the corrections of a run's gold on which the reviewers agree, and a patch for each dataset.

    With `set_aside_wrong`, a patch also removes each question whose gold reviewers call wrong without proposing
    other gold.
    """
    result = Corrections()
    aside: dict[str, list[review.SetAsideQuestion]] = defaultdict(list)
    fixes: dict[str, list[review.Correction]] = defaultdict(list)
    judgments = group_by_question(reviews)
    for key in sorted(judgments, key=lambda key: (key[0], str(key[1]))):
        row, wrong = run.questions.get(key), [one for one in judgments[key] if one[1].gold == "wrong"]
        better = _find_agreed([case.better for _, case in wrong if case.better.says_something])
        reason = _explain_refusal(key, row, judgments[key])
        if reason or row is None:
            if reason != "right":
                result.left[reason].append(key)
        elif isinstance(better, review.Better):
            fix = _make_correction(key, row, better, wrong, run)
            if fix is None:
                result.left["the marked words are not in the document"].append(key)
            else:
                result.corrected.append(key)
                fixes[key[0]].append(fix)
        elif set_aside_wrong and better == _NO_PROPOSAL:
            words = _join_comments(wrong) or "reviewers call its gold wrong"
            aside[key[0]].append(review.SetAsideQuestion(id=int(key[1]), reason=words))
        else:
            result.left[better].append(key)
    names = ", ".join(dict.fromkeys(one.reviewer for one in reviews))
    for dataset in dict.fromkeys([*fixes, *aside]):
        result.patches[dataset] = review.Patch(
            format=review.PATCH,
            dataset=run.find_bundle_name(dataset),
            about=f"Review of the run {run.name} by {names}.",
            questions=aside[dataset],
            corrections=fixes[dataset],
        )
    return result


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


def _find_agreed(proposals: Sequence[review.Better]) -> review.Better | str:
    """Return the correction that the reviewers agree on; if there is none, return the reason."""
    if not proposals:
        return _NO_PROPOSAL
    places = {str(sorted((c.filename, c.spans) for c in better.contexts)) for better in proposals}
    if len(places) > 1 or len({better.is_impossible for better in proposals}) > 1:
        return "wrong, but the better words differ"
    answers = [better.answer for better in proposals if better.answer.strip()]
    return proposals[0].model_copy(update={"answer": answers[0] if answers else ""})


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

    It changes only if the old answer was the text of the old gold, or if the documents were said not to answer.
    """
    if not contexts:
        return None
    quotes = fold("".join(gold.text or "" for gold in row.gold), loose=True)
    is_quote = fold(row.truth.replace("[…]", ""), loose=True) == quotes
    return join_words(contexts) if row.is_impossible or is_quote else None
