"""The review of a bundle whose questions a program drafted, and questions that reviewers add to any bundle."""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from exhibit.converters import Label, Tally
from exhibit.converters.core.documents import NOWHERE
from exhibit.converters.core.patches import read_asked, replace_gold, write_changed
from exhibit.evaluation.placement import Documents
from exhibit.evidence import Document
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, DraftInfo, Gold, Row
from exhibit.schemas.review import Review, ReviewedCase, digest_gold
from exhibit.schemas.run import Outcome, RunGold, RunQuestion, RunReply
from exhibit.storage.bundle import BundleFolder, open_bundle
from exhibit.viewer.review import runs
from exhibit.viewer.review.runs import Judged, Key, Questions

_CHECKED_SHARE = 0.3  # least share of sure drafts in a sample: their error rate is shown beside every figure

Drafted = tuple[Row, list[Gold]]
# unsure: a reviewer must decide; sure: used without a review; judged: already reviewed
Status = Literal["unsure", "sure", "judged"]


class DraftedBundle:
    """A drafted bundle with the interface of a run, so that the review page can show its questions and documents."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self.bundle = folder, folder.name, open_bundle(folder)
        if self.bundle.info is None or self.bundle.info.draft is None:
            advice = "evaluate it, then review the run: exhibit review make results/RUN"
            raise BundleError(f"{folder}: not a bundle made by exhibit draft; {advice}")
        self.info, self.draft = self.bundle.info, self.bundle.info.draft
        self._documents = Documents(self.bundle.files)

    @cached_property
    def rows(self) -> dict[int, Drafted]:
        """All rows by id, each with its gold: first the rows of train.json, then the rows without a judgment."""
        used, waiting = read_asked(self.bundle)
        return {row.id: (row, gold) for row, gold in (*used, *waiting)}

    @cached_property
    def questions(self) -> Questions:
        """The drafted questions, by bundle name and id, in the form of a run's questions but without replies."""
        return {(self.name, id): self._make_question(row, gold) for id, (row, gold) in self.rows.items()}

    def _make_question(self, row: Row, gold: Sequence[Gold]) -> RunQuestion:
        labels, quoted = _get_labels(gold), [line for line in gold if line.context is not None]
        confidence = labels.get("confidence")
        quotes = [
            RunGold(filename=line.filename, pages=line.pages, text=row.contexts[line.context or 0].text,
                    places=[line.spans] if line.spans else [])
            for line in quoted
        ]  # fmt: skip
        reply = RunReply(error="", confidence=float(confidence) if isinstance(confidence, int | float) else None)
        return RunQuestion(
            dataset=self.name, id=row.id, question=row.question, truth=row.answer, is_impossible=row.is_impossible,
            filename=gold[0].filename if gold else None, labels=dict(labels), gold=quotes, reply=reply,
            outcome=Outcome.NOT_JUDGED,
        )  # fmt: skip

    def document(self, _: str, filename: str) -> Document | None:
        """Return a document, read only once; None if it is missing or cannot be read."""
        return self._documents.get(filename)

    def choose_worth_judging(self, size: int) -> list[Key]:
        """Return up to `size` drafts: unsure ones, least certain first, and at least 30% sure (or judged) ones."""
        order: dict[Status, list[RunQuestion]] = {"unsure": [], "sure": [], "judged": []}
        for row in self.questions.values():
            order[find_status(row.labels)].append(row)
        unsure, checks = order["unsure"], order["sure"] if order["sure"] or order["unsure"] else order["judged"]
        unsure.sort(key=lambda row: (abs((row.reply.confidence or 0.0) - 0.5), row.id))
        # a pseudorandom order that is the same on every machine
        checks.sort(key=lambda row: (int(row.id) * 2654435761 % (1 << 32), row.id))
        count = min(len(checks), max(size - len(unsure), round(size * _CHECKED_SHARE)))
        return [row.key for row in (*unsure[: size - count], *checks[:count])]


def _get_labels(gold: Sequence[Gold]) -> dict[str, Label]:
    return gold[0].labels if gold else {}


def find_status(labels: dict[str, Any]) -> Status:
    if labels.get("draft") == "unsure":
        return "unsure"  # also if a reviewer judged it, but must judge it again
    return "judged" if labels.get("draft") == "judged" or "added_by" in labels else "sure"


def apply_reviews(
    reviews: Sequence[Review], drafted: DraftedBundle, out: Path, *, force: bool = False
) -> tuple[DraftInfo, int]:
    """Write a drafted bundle with the judgments applied; return its draft info and how many rows to judge again."""
    judgments, reopened = _collect_judged(reviews, drafted)
    asked, waiting, tally = list[Drafted](), list[Drafted](), Tally()
    counts: Counter[str] = Counter()
    for id, (row, gold) in drafted.rows.items():
        judged, status = judgments.get(id), find_status(_get_labels(gold))
        counts["before"] += status == "judged"
        if judged is not None:
            settled = _settle(row, gold, judged, drafted)
            if settled is None:
                tally.leave_out("called wrong by a reviewer", f"row {id}: {row.question}")
            asked += [settled] if settled else []
            counts["reviewed"] += settled is not None
            counts["judged"] += status == "sure"
            counts["wrong"] += status == "sure" and not _is_right(judged)
        elif id not in reopened and status != "unsure":
            counts["reviewed"] += status == "judged"
            asked.append((row, gold))
        else:
            waiting.append((row, _add_labels(gold, {"draft": "unsure"})))
    added = make_added_rows(reviews, drafted.bundle, first=max(drafted.rows, default=-1) + 1)
    before = drafted.draft
    update = {"reviewed": before.reviewed - counts["before"] + counts["reviewed"] + len(added)}
    update |= {"judged_sure": before.judged_sure + counts["judged"], "wrong": before.wrong + counts["wrong"]}
    about = drafted.info.model_copy(update={"draft": before.model_copy(update=update)})
    written = write_changed(drafted.bundle, about, [*asked, *added], waiting, tally, out, force=force)
    return written.draft or before, len(reopened)


def _settle(row: Row, gold: list[Gold], judged: Judged, drafted: DraftedBundle) -> Drafted | None:
    """Return a judged row: unchanged if most reviewers call it right, otherwise with the first proposed correction.

    Return None if the row is wrong and nobody has proposed a correction.
    """
    who: dict[str, Any] = {"draft": "judged", "judged_by": ", ".join(name for name, _ in judged)}
    reworded = next((words for _, case in judged if (words := case.better.question.strip())), row.question)
    row = row.model_copy(update={"question": reworded})
    if _is_right(judged):
        return row, _add_labels(gold, who)
    better = next((c.better for _, c in judged if c.gold == "wrong" and c.better.has_correction), None)
    if better is None:
        return None
    answer = better.answer.strip() or runs.join_words(better.contexts)
    return replace_gold(row, gold, better.contexts, answer, {**_get_labels(gold), **who}, drafted.bundle)


def _add_labels(gold: Sequence[Gold], labels: dict[str, Any]) -> list[Gold]:
    return [line.model_copy(update={"labels": {**line.labels, **labels}}) for line in gold]


def _is_right(judged: Judged) -> bool:
    return sum(1 if case.gold == "right" else -1 for _, case in judged) > 0


def _collect_judged(reviews: Sequence[Review], drafted: DraftedBundle) -> tuple[dict[int, Judged], set[int]]:
    """Return the judgments of each row, without unclear ones, and the ids of the rows to be judged again.

    A row must be judged again if all its judgments are about another text than the proposed one, or if the marked words
    no longer exist.
    """
    clear, reopened = dict[int, Judged](), set[int]()
    for (_, id), judged in runs.group_by_question(reviews).items():
        if id not in drafted.rows:
            continue
        row, gold = drafted.rows[int(id)]
        now = digest_gold((context.filename, context.text) for context in row.contexts)
        current = [(name, case) for name, case in judged if case.was in (None, now)]
        if find_status(_get_labels(gold)) == "judged":
            judged = current  # ignore judgments of the text before an earlier review was applied
        valid = [(name, placed) for name, case in current if (placed := _place_case(case, drafted))]
        reopened |= {int(id)} if judged and not valid else set()
        clear[int(id)] = [judgment for judgment in valid if judgment[1].gold != "unclear"]
    return {id: judged for id, judged in clear.items() if judged}, reopened


def _place_case(case: ReviewedCase, drafted: DraftedBundle) -> ReviewedCase | None:
    """Return a judgment with its corrected passages located in the current documents; None if one is not found."""
    marked = case.better.contexts
    contexts = [passage for c in marked if (passage := runs.place_passage(c, drafted.document("", c.filename)))]
    if len(contexts) < len(marked):
        return None
    return case.model_copy(update={"better": case.better.model_copy(update={"contexts": contexts})})


def add_questions(reviews: Sequence[Review], root: Path, out: Path, *, force: bool = False) -> int:
    """Write a copy of a bundle with the questions that reviewers added; return the number of added questions."""
    bundle = open_bundle(root)
    if bundle.info is None:
        raise BundleError(f"{root}: has no bundle.json; questions can be added only to a bundle that Exhibit made")
    asked, _ = read_asked(bundle)
    added = make_added_rows(reviews, bundle, first=max((row.id for row, _ in asked), default=-1) + 1)
    write_changed(bundle, bundle.info, [*asked, *added], [], Tally(), out, force=force)
    return len(added)


def make_added_rows(reviews: Sequence[Review], bundle: BundleFolder, *, first: int) -> list[Drafted]:
    """Return the questions that reviewers added, with their gold, numbered from `first`."""
    rows = list[Drafted]()
    for reviewer, added in ((review.reviewer, added) for review in reviews for added in review.added):
        if added.filename is not None and added.filename not in bundle.files:
            where = f"its document {added.filename} is not in {bundle.root}; is this the right bundle?"
            raise BundleError(f"the added question {added.question!r}: {where}")
        number = first + len(rows)
        labels: dict[str, Label] = {"added_by": reviewer, **({"comment": added.comment} if added.comment else {})}
        answer = added.answer.strip() or runs.join_words(added.contexts)
        fields: dict[str, Any] = {"id": number, "question": added.question, "is_impossible": added.is_impossible}
        row = Row(**fields, answer=answer or IMPOSSIBLE_ANSWER, contexts=[])
        nowhere = [NOWHERE.make_gold(number, None, added.filename, labels)]
        rows.append(replace_gold(row, nowhere, added.contexts, answer, labels, bundle))
    return rows
