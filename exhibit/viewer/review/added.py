"""Turn the questions that reviewers wrote into rows of a bundle with located gold."""

from collections.abc import Sequence
from pathlib import Path

from exhibit.converters.benchmark import Label
from exhibit.converters.steps.build import gold_of
from exhibit.converters.steps.materialise import NOWHERE
from exhibit.converters.steps.patches import ChangedBundle, replace_gold, row_of, write_changed
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, Gold, Row
from exhibit.schemas.review import AddedQuestion, Review
from exhibit.storage.bundle import BundleFolder, open_bundle
from exhibit.viewer.review.source import JOINT


def make_added_rows(reviews: Sequence[Review], bundle: BundleFolder, *, first: int) -> tuple[list[Row], list[Gold]]:
    """Return the rows and gold of all questions that reviewers added, numbered from `first`."""
    rows: list[Row] = []
    gold: list[Gold] = []
    for review in reviews:
        for question in review.added:
            row, lines = _make_row(question, review.reviewer, bundle, first + len(rows))
            rows.append(row)
            gold += lines
    return rows, gold


def _make_row(added: AddedQuestion, reviewer: str, bundle: BundleFolder, number: int) -> tuple[Row, list[Gold]]:
    labels: dict[str, Label] = {"added_by": reviewer, **({"comment": added.comment} if added.comment else {})}
    answer = added.answer.strip() or JOINT.join(" ".join(context.text.split()) for context in added.contexts)
    row = Row(
        id=number, question=added.question, answer=answer or IMPOSSIBLE_ANSWER, is_impossible=added.is_impossible,
        contexts=[],
    )  # fmt: skip
    if added.filename is not None and added.filename not in bundle.files:
        raise BundleError(
            f"the added question {added.question!r}: its document {added.filename} is not in {bundle.root}; "
            "is this the right bundle?"
        )
    place = [gold_of(number, None, added.filename, NOWHERE, labels)]
    return replace_gold(row, place, added.contexts, answer, labels, bundle)


def find_next_id(bundle: BundleFolder) -> int:
    """Return the id for the next question of a bundle: one more than its largest id; 0 without questions."""
    return max((int(question.id) for question in bundle.questions), default=-1) + 1


def add_questions(reviews: Sequence[Review], root: Path, out: Path, *, force: bool = False) -> int:
    """Write a copy of a bundle with the questions that reviewers added; return the number of added questions."""
    bundle = open_bundle(root)
    if bundle.info is None:
        raise BundleError(f"{root}: has no bundle.json; questions can be added only to a bundle that Exhibit made")
    rows, gold = make_added_rows(reviews, bundle, first=find_next_id(bundle))
    changed = ChangedBundle([*map(row_of, bundle.questions), *rows], [*bundle.gold, *gold])
    write_changed(bundle, bundle.info, changed, out, {}, force=force)
    return len(rows)
