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


@dataclass
class Corrections:
    """The result of reviews: patches by dataset, corrected questions, and uncorrected questions by reason."""

    patches: dict[str, review.Patch] = field(default_factory=dict)
    corrected: list[Key] = field(default_factory=list)
    left: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))


def correct(reviews: Sequence[review.Review], run: ReviewedRun) -> Corrections:
    """Return the corrections of a run's gold on which the reviewers agree, and a patch for each dataset."""
    result = Corrections()
    fixes: dict[str, list[review.Correction]] = defaultdict(list)
    judgments = group_by_question(reviews)
    for key in sorted(judgments, key=lambda key: (key[0], str(key[1]))):
        row, wrong = run.questions.get(key), [judgment for judgment in judgments[key] if judgment[1].gold == "wrong"]
        reason, better = _explain_refusal(key, row, judgments[key]), None
        if not reason:
            better, reason = _find_agreed([case.better for _, case in wrong if case.better.says_something])
        fix = _make_correction(key, row, better, wrong, run) if row and better else None
        if fix:
            result.corrected.append(key)
            fixes[key[0]].append(fix)
        elif reason != "right":
            result.left[reason or "the marked words are not in the document"].append(key)
    names = ", ".join(dict.fromkeys(one.reviewer for one in reviews))
    for dataset, corrections in fixes.items():
        result.patches[dataset] = review.Patch(
            format=review.PATCH,
            dataset=run.find_bundle_name(dataset),
            about=f"Review of the run {run.name} by {names}.",
            corrections=corrections,
        )
    return result


def _explain_refusal(key: Key, row: RunQuestion | None, judged: Judged) -> str:
    votes = Counter(case.gold for _, case in judged)
    if votes["wrong"] == 0:
        return "right" if votes["right"] else "unclear"
    if votes["wrong"] <= votes["right"]:
        return "reviewers are divided"
    if row is None:
        return "not in this run"
    return "" if isinstance(key[1], int) else "its id is not a number, so no converter knows it"


def _find_agreed(proposals: Sequence[review.Better]) -> tuple[review.Better | None, str]:
    """Return the correction that the reviewers agree on, or the reason why there is none."""
    if not proposals:
        return None, "wrong, but no reviewer marked better words"
    places = {str(sorted((c.filename, c.spans) for c in better.contexts)) for better in proposals}
    if len(places) > 1 or len({better.is_impossible for better in proposals}) > 1:
        return None, "wrong, but the better words differ"
    answer = next((better.answer for better in proposals if better.answer.strip()), "")
    return proposals[0].model_copy(update={"answer": answer}), ""


def _make_correction(
    key: Key, row: RunQuestion, better: review.Better, wrong: Judged, run: ReviewedRun
) -> review.Correction | None:
    placed = [place_passage(marked, run.document(key[0], marked.filename)) for marked in better.contexts]
    contexts = sorted(filter(None, placed), key=lambda context: (context.filename, context.spans[0]))
    if len(contexts) < len(placed):
        return None
    return review.Correction(
        id=int(key[1]),
        was=review.digest_gold((gold.filename, gold.text) for gold in row.gold),
        contexts=contexts,
        is_impossible=better.is_impossible,
        answer=better.answer.strip() or _make_answer(row, contexts),
        reviewers=[name for name, _ in wrong],
        reason="; ".join(dict.fromkeys(" ".join(case.comment.split()) for _, case in wrong if case.comment.strip())),
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
