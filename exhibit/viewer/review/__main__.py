"""Review by experts: a sample on one page, the reviewers' agreement, and corrected gold as a patch.

    exhibit review make results/demo --sample 40
    exhibit review read review-demo-ada.json review-demo-ben.json --run results/demo
    exhibit review apply results/demo/review/patch-cuad.json --bundle datasets_out/cuad --out reviewed/cuad

The page needs no server and no network. A converter applies a patch on its next run: --patch FILE.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exhibit.converters.core.patches import apply_patches
from exhibit.evaluation.scoring import write_json
from exhibit.runtime import command as cli
from exhibit.runtime.command import add_json, parse_positive, print_note
from exhibit.schemas.bundle import TRAIN
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.review import Review, digest_gold, is_review, read_review
from exhibit.storage.bundle import open_bundle
from exhibit.viewer.review.drafts import DraftedBundle, add_questions, apply_reviews
from exhibit.viewer.review.make import NAME, make_review
from exhibit.viewer.review.runs import ASPECTS, Questions, ReviewedRun, compute_agreements, correct, count_right

FOLDER = "review"
Result = tuple[Any, list[str]]  # the record of a command for --json, and its lines for a person


@cli.guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand of `exhibit review`: `make`, `read` or `apply`; without one of these names, `make`."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] not in ("make", "read", "apply", "-h", "--help"):
        words = ["make", *words]  # only a run or a drafted bundle is named: make its page
    options = _make_parser().parse_args(words)
    record, lines = options.work(options)
    cli.print_results(record, "\n".join(lines), as_json=options.json)
    return 0


def _make_parser() -> cli.Parser:
    parser = cli.build_parser("exhibit review", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="write a page with a sample of a run or of a drafted bundle")
    make.set_defaults(work=_make)
    make.add_argument("run", type=Path, metavar="RUN")
    make.add_argument("--sample", type=parse_positive, default=40, metavar="N", help="how many questions (default: 40)")
    make.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of the sample (default: 1)")
    make.add_argument("--out", type=Path, metavar="FILE", help=f"the page (default: RUN/{NAME})")

    read = commands.add_parser("read", help="measure how far the reviewers agree, and write corrected gold as patches")
    read.set_defaults(work=_read)
    read.add_argument("files", nargs="+", type=Path, metavar="FILE", help="the saved reviews, one file per reviewer")
    read.add_argument("--run", type=Path, metavar="RUN", help="the run that was reviewed (default: results/NAME)")
    read.add_argument("--out", type=Path, metavar="DIR", help=f"the folder for patches (default: RUN/{FOLDER})")

    apply = commands.add_parser("apply", help="write a bundle with a patch or with reviews applied")
    apply.set_defaults(work=_apply)
    what = "a patch; for a drafted bundle, the reviews themselves"
    apply.add_argument("patch", nargs="+", type=Path, metavar="FILE", help=what)
    apply.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    apply.add_argument("--out", type=Path, required=True, metavar="DIR", help="the corrected bundle")
    apply.add_argument("--force", action="store_true", help="replace an existing bundle")
    for command in (make, read):
        command.add_argument("--dataset-paths", nargs="+", default=[], metavar="DIR", help="the bundles, if they moved")
    for command in (make, read, apply):
        add_json(command)
    return parser


def _make(options: Any) -> Result:
    drafted = (options.run / TRAIN).is_file()
    run = DraftedBundle(options.run) if drafted else ReviewedRun(options.run, paths=options.dataset_paths)
    # not inside a bundle, which lists the checksums of all its files
    default = options.run.with_name(f"{options.run.name}-{NAME}") if drafted else options.run / NAME
    made = make_review(run, options.out or default, size=options.sample, seed=options.seed)
    if made.left_out:
        print_note(f"{made.left_out} pages could not be drawn or did not fit; their questions show the text instead")
    after = "apply FILE --bundle DIR --out DIR" if drafted else "read FILE"
    lines = [f"{made.cases} of {made.of} questions, {made.sheets} pages", f"page: {made.path}"]
    return made._asdict(), [*lines, f"next: open the page, judge, save; then exhibit review {after}"]


def _read(options: Any) -> Result:
    reviews = _read_reviews(options.files, several_pages=False)
    if reviews[0].of == "bundle":
        advice = f"apply it: exhibit review apply {' '.join(map(str, options.files))} --bundle DIR --out DIR"
        raise ToolkitError(f"{options.files[0]}: is a review of the bundle {reviews[0].run}, not of a run; {advice}")
    folder = options.run or Path("results") / reviews[0].run
    if not folder.is_dir():
        raise ToolkitError(f"{folder}: no such run; name the reviewed run with --run")
    run = ReviewedRun(folder, paths=options.dataset_paths)
    _check_same_questions(reviews, run.questions, folder)
    if reviews[0].run != folder.resolve().name:
        print_note(f"the review is of the run {reviews[0].run!r}, whose answers may differ from those of {folder}")
    agreements, shares, result = compute_agreements(reviews, run.questions), count_right(reviews), correct(reviews, run)
    out = options.out or folder / FOLDER
    patches = {out / f"patch-{dataset}.json": patch for dataset, patch in result.patches.items()}
    for path, patch in patches.items():
        write_json(path, patch.model_dump(mode="json"))
    summary: dict[str, Any] = {"format": "exhibit-reviewed/1", "run": reviews[0].run}
    summary["reviewers"] = {review.reviewer: len(review.cases) for review in reviews}
    summary |= {"agreement": [pair._asdict() for pair in agreements], "right": shares}
    summary["corrected"] = [list(key) for key in result.corrected]
    summary["left"] = {reason: [list(key) for key in keys] for reason, keys in result.left.items()}
    write_json(out / "review.json", summary)
    words = "{reviewer} {on}: {right} of {judged} right, {unclear} unclear"
    lines = [words.format(on=ASPECTS[share["aspect"]], **share) for share in shares]
    lines += [*map(str, agreements), f"corrected: {len(result.corrected)} questions"]
    lines += [f"not corrected: {reason}: {len(keys)}" for reason, keys in result.left.items()]
    lines += [f"review: {out / 'review.json'}", *(f"patch:  {path}" for path in patches)]
    lines += [f"next: exhibit review apply {path} --bundle DIR --out DIR" for path in patches]
    return {**summary, "patches": list(patches)}, lines


def _apply(options: Any) -> Result:
    if is_review(options.patch[0]):
        return _apply_reviews(_read_reviews(options.patch, several_pages=True), options)
    [patch] = options.patch
    entry = apply_patches([patch], options.bundle, options.out, force=options.force, must_fit=True).patches[-1]
    counts = {"corrected": entry.corrections, "questions": entry.questions, "documents": entry.documents}
    words = "{corrected} questions corrected, {questions} questions and {documents} documents set aside"
    return {"bundle": options.out, **counts}, [f"{options.out}: {words.format(**counts)}"]


def _apply_reviews(reviews: Sequence[Review], options: Any) -> Result:
    info = open_bundle(options.bundle).info
    if info is None or info.draft is None:
        return _add_questions(reviews, options)
    drafted = DraftedBundle(options.bundle)
    _check_same_questions(reviews, drafted.questions, options.bundle)
    draft, reopened = apply_reviews(reviews, drafted, options.out, force=options.force)
    if reopened:
        print_note(f"{reopened} questions are open again, because their proposed text has changed since the judgment")
    record = {"bundle": options.out, "sure": draft.sure, "unsure": draft.unsure, "reopened": reopened}
    counts = f"{draft.sure:,} questions, {draft.words(draft.sure)}; {draft.unsure:,} still need a person"
    return record, [f"{options.out}: {counts}"]


def _add_questions(reviews: Sequence[Review], options: Any) -> Result:
    """Write a copy of a bundle with the questions that reviewers added; judgments on a run are not applied here."""
    judged = sum(len(review.cases) for review in reviews)
    advice = f"first make a patch of judgments on a run: exhibit review read {' '.join(map(str, options.patch))}"
    if judged and not any(review.added for review in reviews):
        raise ToolkitError(f"{options.patch[0]}: contains judgments on a run; {advice}")
    count = add_questions(reviews, options.bundle, options.out, force=options.force)
    if judged:
        print_note(f"{judged} judgments are not applied: {advice}")
    lines = [f"{options.out}: {count} questions added", f"next: exhibit evaluate {options.out}"]
    return {"bundle": options.out, "added": count}, lines


def _check_same_questions(reviews: Sequence[Review], questions: Questions, where: Path) -> None:
    """Raise an error if no judged question is in the run or bundle with the same gold; print a note if some are not."""
    other = total = 0
    for case in (case for review in reviews for case in review.cases):
        row = questions.get((case.dataset, case.id))
        gold = row and digest_gold((gold.filename, gold.text) for gold in row.gold)
        other += gold is None or case.was not in (None, gold)
        total += 1
    if total and other == total:
        raise ToolkitError(f"{where}: has none of the reviewed questions; the review is of {reviews[0].run!r}")
    if other:
        print_note(f"{other} of {total} judged questions are not in {where}, or have other gold there")


def _read_reviews(files: Sequence[Path], *, several_pages: bool) -> list[Review]:
    """Read the reviews of one page; refuse a second review by the same reviewer.

    With `several_pages`, the reviews may be from several pages, because a drafted bundle grows.
    """
    reviews = [read_review(path) for path in files]
    seen: dict[tuple[str, str], Path] = {}
    for review, path in zip(reviews, files, strict=True):
        if review.review != reviews[0].review and not several_pages:
            advice = "run exhibit review read for each page separately"
            raise ToolkitError(f"{path}: is a review of another page than {files[0]}; {advice}")
        if first := seen.get((review.review, review.reviewer)):
            raise ToolkitError(f"{path}: {review.reviewer} reviewed this page in {first} too; give only the later file")
        seen[review.review, review.reviewer] = path
    return reviews


if __name__ == "__main__":
    sys.exit(main())
