"""Save judgments and new questions immediately, in the review file of their reviewer.

Each reviewer has a separate file beside the bundle, or in the run's folder: two reviewers never write one
file. Two tabs of one reviewer write the same file under a lock, one case at a time, so neither overwrites
the other.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults
from exhibit.schemas.review import REVIEW, AddedQuestion, Review, ReviewedCase, Sample, read_review
from exhibit.storage.atomic import lock_folder, write_whole

_LONGEST_NAME = 80  # characters of a reviewer's name
_NOT_IN_A_NAME = re.compile(r"[^\w]+")


def review_folder(folder: Path, *, is_run: bool) -> Path:
    """Return the folder for the reviews of a run or a bundle.

    A run's reviews are inside its folder. A bundle's reviews are beside its folder, because the bundle's files
    have checksums.
    """
    return folder / "review" if is_run else folder.with_name(f"{folder.name}-review")


def review_path(folder: Path, review: str, reviewer: str) -> Path:
    """Return the path of a reviewer's file for one review; a digest in its name keeps similar names apart."""
    words = _NOT_IN_A_NAME.sub("-", reviewer.lower()).strip("-")[:40] or "reviewer"
    digest = hashlib.sha256(json.dumps([review, reviewer]).encode()).hexdigest()[:8]
    return folder / f"review-{words}-{digest}.json"


def list_reviews(folder: Path, review: str | None = None) -> list[Path]:
    """Return the paths of the review files in a folder: those with the review id `review`, or all if it is None."""
    paths = [path for path in sorted(folder.glob("review-*.json")) if path.is_file() and not path.is_symlink()]
    return [path for path in paths if review is None or read_review(path).review == review]


def save_case(folder: Path, about: Review, case: ReviewedCase) -> int:
    """Write a judgment into its reviewer's file, replacing an earlier one; return the number of cases in the file."""
    return len(_change_review(folder, about, case=case).cases)


def save_question(folder: Path, about: Review, question: AddedQuestion) -> int:
    """Add a question to its reviewer's file; return the number of questions that the reviewer has added."""
    return len(_change_review(folder, about, question=question).added)


def _change_review(
    folder: Path, about: Review, *, case: ReviewedCase | None = None, question: AddedQuestion | None = None
) -> Review:
    path = review_path(folder, about.review, about.reviewer)
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(path, busy=f"{path}: is being written", say=lambda _: None):
        before = read_review(path) if path.exists() else about
        cases = {(one.dataset, one.id): one for one in before.cases}
        if case is not None:
            cases[case.dataset, case.id] = case
        added = [*before.added, *([question] if question is not None else [])]
        after = before.model_copy(update={"cases": list(cases.values()), "added": added})
        write_whole(path, after.model_dump_json(indent=1) + "\n")
    return after


def begin_review(*, of: str, review: str, run: str, reviewer: str, sample: Sample | None = None) -> Review:
    """Return a new review without judgments; raise an error if the reviewer's name is empty or too long."""
    name = " ".join(reviewer.split())
    if not name or len(name) > _LONGEST_NAME:
        raise ToolkitError("enter your name first: it identifies your review")
    try:
        return Review(
            format=REVIEW, review=review, run=run, of=of, reviewer=name,  # type: ignore[arg-type]
            sample=sample or Sample(size=0, of=0, seed=1, by=[]), cases=[],
        )  # fmt: skip
    except ValidationError as error:
        raise ToolkitError(f"the review is invalid: {format_faults(error, most=1)}; reload the page") from error


def list_added(folder: Path) -> Sequence[tuple[str, AddedQuestion]]:
    """Return the questions that reviewers have added, each with the reviewer's name."""
    reviews = [read_review(path) for path in list_reviews(folder)]
    return [(review.reviewer, question) for review in reviews for question in review.added]
