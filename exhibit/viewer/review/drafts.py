"""Review of a bundle whose questions a program drafted.

The module chooses the drafts that a person judges first, and writes the bundle with the judgments applied.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from exhibit.converters.benchmark import Label
from exhibit.converters.steps.patches import ChangedBundle, replace_gold, row_of, write_changed
from exhibit.evaluation.documents import Documents
from exhibit.evidence import Document
from exhibit.schemas.bundle import drafts_text
from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import DRAFTS
from exhibit.schemas.models import BundleInfo, DraftInfo, Gold, Row
from exhibit.schemas.review import Review, ReviewedCase, digest_gold
from exhibit.schemas.run import RunGold, RunQuestion, RunReply
from exhibit.schemas.validate import read_drafts
from exhibit.storage.bundle import BundleFolder, open_bundle
from exhibit.viewer.review.added import make_added_rows
from exhibit.viewer.review.source import JOINT, Judged, Key, Questions, ReviewedRun, group_by_question, place_passage

_ENOUGH = 20  # judged playbook drafts from which on their confidence is fitted again: fewer say little
_STEPS = 20  # iterations of Newton's method, which needs about five
_PRIOR = 5.0  # the weight of the old confidence, in judgments, so that a few judgments do not change it much
_PER_STATUS = 0.3  # the share of sure drafts in the sample: their error rate is shown beside every figure


@dataclass
class DraftedBundle:
    """A drafted bundle with the interface of a run, so that the review page can show its questions and documents."""

    folder: Path
    name: str = ""
    bundle: BundleFolder = field(init=False)
    info: BundleInfo = field(init=False)
    draft: DraftInfo = field(init=False)

    def __post_init__(self) -> None:
        self.bundle = open_bundle(self.folder)
        if self.bundle.info is None or self.bundle.info.draft is None:
            raise BundleError(
                f"{self.folder}: not a bundle made by exhibit draft; evaluate it, then review the run: "
                "exhibit review make results/RUN"
            )
        self.info, self.draft = self.bundle.info, self.bundle.info.draft
        self.name = self.name or self.folder.name

    @cached_property
    def waiting(self) -> dict[int, tuple[Row, list[Gold]]]:
        """The rows that wait for a person's judgment, by id, each with its proposed gold."""
        taken = {int(question.id) for question in self.bundle.questions}
        return {draft.id: (draft.row, draft.gold) for draft in read_drafts(self.folder, self.bundle.files, taken)}

    @cached_property
    def rows(self) -> dict[int, tuple[Row, list[Gold]]]:
        """All rows by id, each with its gold: first those of train.json, then those that wait for a judgment."""
        gold: dict[int, list[Gold]] = {}
        for line in self.bundle.gold:
            gold.setdefault(line.id, []).append(line)
        sure = {int(question.id): row_of(question) for question in self.bundle.questions}
        return {id: (row, gold.get(id, [])) for id, row in sure.items()} | self.waiting

    @cached_property
    def questions(self) -> Questions:
        """The drafted questions, by bundle name and id, in the form of a run's questions but without replies."""
        return {(self.name, id): self._make_question(row, gold) for id, (row, gold) in self.rows.items()}

    def _make_question(self, row: Row, gold: Sequence[Gold]) -> RunQuestion:
        places = [
            RunGold(
                filename=line.filename,
                pages=line.pages,
                text=_get_words(row, line),
                places=[line.spans] if line.spans else [],
            )
            for line in gold
            if line.context is not None
        ]
        labels = dict(gold[0].labels) if gold else {}
        return RunQuestion(
            dataset=self.name,
            id=row.id,
            question=row.question,
            truth=row.answer,
            is_impossible=row.is_impossible,
            filename=gold[0].filename if gold else None,
            labels=labels,
            gold=places,
            reply=RunReply(error="", confidence=_read_number(labels.get("confidence"))),
            verdict=str(labels.get("draft", "")),
        )

    def document(self, dataset: str, filename: str) -> Document | None:  # noqa: ARG002 - there is only one dataset
        """Return a document, read only once; None if it is missing or cannot be read."""
        return self._documents.get(filename)

    @cached_property
    def _documents(self) -> Documents:
        return Documents(self.bundle.files)

    def choose_worth_judging(self, size: int) -> list[Key]:
        """Return at most `size` drafted questions for a person to judge: first `unsure` drafts, then `sure` drafts.

        The `unsure` drafts are sorted by confidence: nearest to 0.5 first. If two are equally near, the rarer kind
        of question comes first. At least 30% of the sample are `sure` drafts in a pseudo-random order, if there are
        enough, to estimate how many `sure` drafts are wrong. Drafts that a person has already judged are returned
        only if there are no `unsure` and no `sure` drafts.
        """
        order: dict[_Status, list[RunQuestion]] = {"unsure": [], "sure": [], "judged": []}
        for row in self.questions.values():
            order[_find_status(row.labels)].append(row)
        kinds = Counter(str(row.labels.get("asks_for")) for row in order["unsure"])
        order["unsure"].sort(key=lambda row: (_measure_distance(row), kinds[str(row.labels.get("asks_for"))], row.id))
        # a random order that is the same on every machine: ids are hashes of the question
        kept = order["sure"] if order["sure"] or order["unsure"] else order["judged"]
        kept.sort(key=lambda row: (int(row.id) * 2654435761 % (1 << 32), row.id))
        checks = min(len(kept), max(size - len(order["unsure"]), round(size * _PER_STATUS)))
        return [row.key for row in (*order["unsure"][: size - checks], *kept[:checks])]


Reviewed = ReviewedRun | DraftedBundle
"""The object of a review: a run with its replies, or a bundle of drafted questions."""


_Status = Literal["unsure", "sure", "judged"]


def _find_status(labels: Mapping[str, object]) -> _Status:
    """Return the status of a drafted row: `unsure`, `sure` or `judged`.

    An `unsure` row waits for a reviewer. A `sure` row is used without a review. A `judged` row was judged in an
    earlier review, or was written by a reviewer.
    """
    if labels.get("draft") == "unsure":
        return "unsure"  # also a person's work that is open again
    return "judged" if labels.get("draft") == "judged" or "added_by" in labels else "sure"


def _get_labels(gold: Sequence[Gold]) -> dict[str, Label]:
    return gold[0].labels if gold else {}


def _measure_distance(row: RunQuestion) -> float:
    """Return how far the confidence of a draft is from one half, where a judgment is most informative."""
    return abs((row.reply.confidence or 0.0) - 0.5)


def _read_number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _get_words(row: Row, line: Gold) -> str | None:
    return row.contexts[line.context].text if line.context is not None else None


# ---------------------------------------------------------------- the bundle after the judgments


def apply_reviews(
    reviews: Sequence[Review], drafted: DraftedBundle, out: Path, *, force: bool = False
) -> tuple[DraftInfo, int]:
    """Write a drafted bundle with the reviewers' judgments applied.

    Return the new draft info and the number of reopened rows. A row is reopened if its judgments no longer fit
    the documents. The labels of a judged row name its reviewers. A row that was judged in an earlier review
    stays as it is, unless it is judged again. A row that is judged twice counts as one reviewed row.
    """
    said, reopened = _collect_judged(reviews, drafted)
    fitted = _fit(said, drafted)
    changed, waiting = ChangedBundle(), []
    counts: Counter[str] = Counter()
    for id, (row, gold) in drafted.rows.items():
        judged, status = said.get(id), _find_status(_get_labels(gold))
        counts["before"] += status == "judged"
        if judged is not None:
            counts["reviewed"] += _settle(row, gold, judged, changed, drafted)
            counts["judged"] += status == "sure"
            counts["wrong"] += status == "sure" and not _is_right(judged)
        elif id not in reopened and _stays(gold, status, fitted):
            counts["reviewed"] += status == "judged"
            changed.rows.append(row)
            changed.gold += gold
        else:
            waiting.append((row, _add_labels(gold, {"draft": "unsure"})))
    new, places = make_added_rows(reviews, drafted.bundle, first=max(drafted.rows, default=-1) + 1)
    changed.rows += new
    changed.gold += places
    info = drafted.draft.model_copy(
        update={
            "sure": len(changed.rows),
            "unsure": len(waiting),
            "reviewed": drafted.draft.reviewed - counts["before"] + counts["reviewed"] + len(new),
            "judged_sure": drafted.draft.judged_sure + counts["judged"],
            "wrong": drafted.draft.wrong + counts["wrong"],
        }
    )
    drafts = {DRAFTS: drafts_text(waiting)}
    write_changed(drafted.bundle, drafted.info.model_copy(update={"draft": info}), changed, out, drafts, force=force)
    return info, len(reopened)


def _stays(gold: Sequence[Gold], status: _Status, fitted: "Fitted | None") -> bool:
    """Return whether a drafted row that nobody judged in this review is used without a change.

    A row that was judged in an earlier review is used. Any other row is used if `fitted`, which corrects the
    confidence of drafts, calls it sure. If `fitted` is None, the row is used if its status is `sure`.
    """
    return status == "judged" or (status == "sure" if fitted is None else fitted.is_sure(gold))


def _settle(row: Row, gold: list[Gold], judged: Judged, changed: ChangedBundle, drafted: DraftedBundle) -> bool:
    """Add a judged row to the new bundle, unchanged or corrected; return False if the row is dropped instead.

    The gold stays if more reviewers call it right than wrong. Otherwise the row gets the first correction that
    a reviewer proposed. Without a proposed correction, the row is dropped.
    """
    who: dict[str, Any] = {"draft": "judged", "judged_by": ", ".join(name for name, _ in judged)}
    reworded = next((words for _, case in judged if (words := case.better.question.strip())), row.question)
    row = row.model_copy(update={"question": reworded})
    better = next((c.better for _, c in judged if c.gold == "wrong" and c.better.says_something), None)
    if _is_right(judged):
        lines = _add_labels(gold, who)
    elif better is not None:
        answer = better.answer.strip() or JOINT.join(" ".join(c.text.split()) for c in better.contexts)
        labels = {**_get_labels(gold), **who}
        row, lines = replace_gold(row, gold, better.contexts, answer, labels, drafted.bundle)
    else:
        changed.left_out.setdefault("called wrong by a reviewer", []).append(f"row {row.id}: {row.question}")
        return False
    changed.rows.append(row)
    changed.gold += lines
    return True


def _add_labels(gold: Sequence[Gold], labels: dict[str, Any]) -> list[Gold]:
    return [line.model_copy(update={"labels": {**line.labels, **labels}}) for line in gold]


def _collect_judged(reviews: Sequence[Review], drafted: DraftedBundle) -> tuple[dict[int, Judged], set[int]]:
    """Return the judgments of each row, without unclear ones, and the ids of the rows to be judged again.

    A row must be judged again if none of its judgments is still valid. A judgment is no longer valid if the
    proposed text has changed since, or if the text that the reviewer marked no longer exists. If an earlier
    review was already applied to a row, judgments of the text before that review are ignored.
    """
    clear: dict[int, Judged] = {}
    reopened: set[int] = set()
    for (_, id), said in group_by_question(reviews).items():
        if id not in drafted.rows:
            continue
        row, gold = drafted.rows[int(id)]
        now = digest_gold((context.filename, context.text) for context in row.contexts)
        if _find_status(_get_labels(gold)) == "judged":
            said = [(name, case) for name, case in said if case.was in (None, now)]
        current = [(name, _place_case(case, drafted)) for name, case in said if case.was in (None, now)]
        valid = [(name, case) for name, case in current if case is not None]
        reopened |= {int(id)} if said and not valid else set()
        clear[int(id)] = [one for one in valid if one[1].gold != "unclear"]
    return {id: said for id, said in clear.items() if said}, reopened


def _place_case(case: ReviewedCase, drafted: DraftedBundle) -> ReviewedCase | None:
    """Return a judgment with its corrected passages located in the current documents; None if one is not found."""
    given = case.better.contexts
    contexts = [place for c in given if (place := place_passage(c, drafted.document("", c.filename)))]
    if len(contexts) < len(given):
        return None
    return case.model_copy(update={"better": case.better.model_copy(update={"contexts": contexts})})


def _is_right(judged: Judged) -> bool:
    """Return whether more reviewers judge a row's gold right than wrong; return False if the numbers are equal."""
    return sum(1 if case.gold == "right" else -1 for _, case in judged) > 0


@dataclass(frozen=True)
class Fitted:
    """A logistic curve that corrects the models' confidence in drafted questions.

    The curve is fitted to the reviewers' judgments. It then decides which of the drafts without a judgment
    count as `sure`.
    """

    slope: float
    offset: float
    levels: Mapping[tuple[str, bool], float]
    """The confidence from which on a playbook's answers, and its absences, count as sure."""
    doubtful: frozenset[str]
    """Kinds of constructed drafts of which too many were wrong."""

    def is_sure(self, gold: Sequence[Gold]) -> bool:
        """Return whether the models are confident enough in a draft to use it without a person's judgment.

        The labels of `gold`, the draft's lines of gold, state the confidence.
        """
        labels = _get_labels(gold)
        if labels.get("drafted") in self.doubtful:
            return False
        if labels.get("drafted") != "playbook":
            return labels.get("draft") != "unsure"
        odds = self.slope * _compute_logit(_read_number(labels.get("confidence")) or 0.0) + self.offset
        return odds >= _compute_logit(self.levels.get(_find_playbook(labels), 1.0)) - 1e-9


def _find_playbook(labels: Mapping[str, object]) -> tuple[str, bool]:
    """Return the name of a draft's playbook (a list of standard questions), and whether the draft is `absent`.

    An `absent` draft states that the document does not answer the question.
    """
    return str(labels.get("asks_for")).partition("/")[0], labels.get("draft") == "absent"


def _find_levels(drafted: DraftedBundle) -> dict[tuple[str, bool], float]:
    """Return, for each playbook, the lowest confidence at which a draft was accepted without a judgment.

    A key is the playbook's name and whether the drafts state that the document has no answer. Drafts that a
    person judged are left out, because a person accepts a draft whatever its confidence is.
    """
    levels: dict[tuple[str, bool], float] = {}
    for _, gold in drafted.rows.values():
        labels = _get_labels(gold)
        if labels.get("drafted") == "playbook" and _find_status(labels) == "sure":
            key, sure = _find_playbook(labels), _read_number(labels.get("confidence")) or 0.0
            levels[key] = min(sure, levels.get(key, 1.0))
    return levels


_WRONG = 0.2  # share of wrong drafts of a kind: above it, the rest of the kind needs a person's judgment
_FEW = 5  # judgments of a kind; with fewer its share says nothing


def _fit(said: Mapping[int, Judged], drafted: DraftedBundle) -> Fitted | None:
    """Return a correction of the drafts' confidence, fitted to the reviewers' judgments of playbook drafts.

    The result also names the other kinds of drafts that were often wrong. If too few playbook drafts were
    judged, the confidence stays unchanged; if no kind was often wrong either, the result is None. Rows with the
    status `judged` are not used: a reviewer wrote or judged them earlier, so their text may differ from the
    draft.
    """
    judged = [(gold, _is_right(votes)) for id, votes in said.items()
              if _find_status(_get_labels(gold := drafted.rows[id][1])) != "judged"]  # fmt: skip
    kinds: dict[str, list[bool]] = {}
    for gold, right in judged:
        kinds.setdefault(str(gold[0].labels.get("drafted")) if gold else "", []).append(right)
    doubtful = frozenset(
        kind for kind, rights in kinds.items()
        if kind != "playbook" and len(rights) >= _FEW and rights.count(False) > _WRONG * len(rights)
    )  # fmt: skip
    asked = [(_read_number(gold[0].labels.get("confidence")) or 0.0, right) for gold, right in judged
             if gold and gold[0].labels.get("drafted") == "playbook"]  # fmt: skip
    levels = _find_levels(drafted)
    if len(asked) < _ENOUGH:
        return Fitted(1.0, 0.0, levels, doubtful) if doubtful else None
    x = np.array([_compute_logit(confidence) for confidence, _ in asked])
    y = np.array([right for _, right in asked], float)
    # the models' confidence, centred, so that a shift and a steeper curve can be separated
    middle = float(np.mean(x))
    table, moved = np.stack([x - middle, np.ones(len(x))], axis=1), np.zeros(2)
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(x + table @ moved)))
        curve = (table * (p * (1 - p))[:, None]).T @ table + _PRIOR * np.eye(2)
        moved -= np.linalg.solve(curve, table.T @ (p - y) + _PRIOR * moved)
    slope, offset = 1 + float(moved[0]), float(moved[1] - moved[0] * middle)
    return Fitted(slope, offset, levels, doubtful)


def _compute_logit(confidence: float) -> float:
    p = min(max(confidence, 1e-3), 1 - 1e-3)
    return float(np.log(p / (1 - p)))
