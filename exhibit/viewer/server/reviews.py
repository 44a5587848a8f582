"""Save judgments and new questions at once, in the file of their reviewer, under a lock: two tabs may write it."""

import hashlib
import json
import re
from pathlib import Path

from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.layout import TRAIN
from exhibit.schemas.review import REVIEW, AddedQuestion, Review, Sample, read_review
from exhibit.storage.atomic import lock_folder, write_whole

MAX_NAME_CHARS = 80


def find_review_folder(folder: Path) -> Path:
    """Return the folder of the reviews: inside a run, but beside a bundle, whose files have checksums."""
    return folder.with_name(f"{folder.name}-review") if (folder / TRAIN).is_file() else folder / "review"


def make_review_path(folder: Path, review: str, reviewer: str) -> Path:
    """Return the path of a reviewer's file for one review; a digest in its name keeps similar names apart."""
    name = re.sub(r"\W+", "-", reviewer.lower()).strip("-")[:40] or "reviewer"
    digest = hashlib.sha256(json.dumps([review, reviewer]).encode()).hexdigest()[:8]
    return folder / f"review-{name}-{digest}.json"


def list_reviews(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("review-*.json")) if path.is_file() and not path.is_symlink()]


def save(folder: Path, review: Review) -> Review:
    """Add judgments, which replace earlier ones, and new questions to the reviewer's file; return what it holds."""
    path = make_review_path(folder, review.review, review.reviewer)
    folder.mkdir(parents=True, exist_ok=True)
    with lock_folder(path, busy=f"{path}: is being written", say=lambda _: None):
        before = read_review(path) if path.exists() else review.model_copy(update={"cases": [], "added": []})
        cases = {(one.dataset, one.id): one for one in [*before.cases, *review.cases]}
        update = {"cases": list(cases.values()), "added": [*before.added, *review.added]}
        after = before.model_copy(update=update)
        write_whole(path, after.model_dump_json(indent=1) + "\n")
    return after


def begin_review(review: str, bundle: str, reviewer: str, question: AddedQuestion) -> Review:
    """Return a review of a bundle that adds a question; raise an error if the reviewer's name is empty or too long."""
    name = " ".join(reviewer.split())
    if not name or len(name) > MAX_NAME_CHARS:
        raise ToolkitError("enter your name first: it identifies your review")
    about = {"format": REVIEW, "review": review, "run": bundle, "of": "bundle", "reviewer": name, "cases": []}
    return Review.model_validate({**about, "sample": Sample(size=0, of=0, seed=1, by=[]), "added": [question]})
