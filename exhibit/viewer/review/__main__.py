"""Review by experts: a sample on one page, the reviewers' agreement, and corrected gold as a patch.

    exhibit review make results/demo --sample 40
    exhibit review read review-demo-ada.json review-demo-ben.json --run results/demo
    exhibit review apply results/demo/review/patch-cuad.json --bundle datasets_out/cuad --out reviewed/cuad

The page needs no server and no network. A converter applies a patch on its next run: --patch FILE.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exhibit.converters.steps.patches import apply_patch
from exhibit.engine import parse_positive
from exhibit.evaluation.metrics import split_requests
from exhibit.evaluation.records import write_json
from exhibit.evaluation.statistics import Estimate, Interval, summarise_run
from exhibit.evaluation.text_tables import choose_metrics, table_of
from exhibit.runtime.command import guarded, parser_of, print_note, print_results
from exhibit.schemas.bundle import TRAIN
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import read_beside
from exhibit.schemas.review import Review, is_review, read_patch, read_review
from exhibit.storage.bundle import open_bundle
from exhibit.viewer.page import list_languages
from exhibit.viewer.review.added import add_questions
from exhibit.viewer.review.corrections import Corrections, correct, rescore_run
from exhibit.viewer.review.drafts import DraftedBundle, Reviewed, apply_reviews
from exhibit.viewer.review.make import NAME, make_review
from exhibit.viewer.review.source import BY, Agreement, JudgedShare, ReviewedRun, compute_agreements, compute_shares

FOLDER = "review"
_COMMANDS = ("make", "read", "apply")


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand of `exhibit review`: `make`, `read` or `apply`; without one of these names, `make`."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] not in (*_COMMANDS, "-h", "--help"):
        words = ["make", *words]  # a bare run or drafted bundle: make its page
    options = _make_parser().parse_args(words)
    commands = {"make": _make, "read": _read, "apply": _apply}
    return commands[options.command](options)


def _make(options: Any) -> int:
    run = _open_reviewed(options)
    # never into a bundle, whose files have checksums
    beside = (
        options.run.with_name(f"{options.run.name}-{NAME}") if isinstance(run, DraftedBundle) else options.run / NAME
    )
    made = make_review(
        run, options.out or beside, by=options.by, size=options.sample, seed=options.seed, language=options.language
    )
    if made.left_out:
        print_note(f"{made.left_out} pages could not be drawn or did not fit; their questions show the text instead")
    lines = f"{made.cases} of {made.of} questions, {made.sheets} pages\npage: {made.path}\n"
    command = "apply FILE --bundle DIR --out DIR" if isinstance(run, DraftedBundle) else "read FILE"
    lines += f"next: open the page, judge, save; then exhibit review {command}"
    print_results(made._asdict(), lines, as_json=options.json)
    return 0


def _open_reviewed(options: Any) -> Reviewed:
    """Open a folder as a drafted bundle if it contains train.json, otherwise as a run."""
    if (options.run / TRAIN).is_file():
        return DraftedBundle(options.run)
    return ReviewedRun(options.run, paths=options.dataset_paths)


def _read(options: Any) -> int:
    reviews = [read_review(path) for path in options.files]
    _check(reviews, options.files)
    if reviews[0].of == "bundle":
        files = " ".join(map(str, options.files))
        raise ToolkitError(
            f"{options.files[0]}: is a review of the bundle {reviews[0].run}, not of a run; apply it: exhibit review "
            f"apply {files} --bundle DIR --out DIR"
        )
    folder = options.run or Path("results") / reviews[0].run
    if not folder.is_dir():
        raise ToolkitError(f"{folder}: no such run; name the reviewed run with --run")
    run = ReviewedRun(folder, paths=options.dataset_paths)
    agreed, shared = compute_agreements(reviews, run.questions), compute_shares(reviews, run.questions)
    outcome = correct(reviews, run, set_aside_wrong=options.set_aside_wrong)
    before, after = rescore_run(run, outcome.corrected)
    columns = {"gold as it is": summarise_run(before), "reviewed gold": summarise_run(after)}
    out = options.out or folder / FOLDER
    for dataset, patch in outcome.patches.items():
        write_json(out / f"patch-{dataset}.json", patch.model_dump(mode="json"))
    summary = _make_summary(reviews, agreed, shared, outcome, columns)
    write_json(out / "review.json", summary)
    lines = _format_lines(agreed, shared, outcome)
    if outcome.corrected:
        lines.append(table_of(columns, choose_metrics(columns["gold as it is"], options.metrics)))
    patches = [out / f"patch-{dataset}.json" for dataset in outcome.patches]
    lines += [f"review: {out / 'review.json'}", *(f"patch:  {patch}" for patch in patches)]
    lines += [f"next: exhibit review apply {patch} --bundle DIR --out DIR" for patch in patches]
    print_results({**summary, "patches": patches}, "\n".join(lines), as_json=options.json)
    return 0


def _apply(options: Any) -> int:
    if is_review(options.patch[0]):
        return _apply_reviews(options)
    [patch] = options.patch
    entry = apply_patch(read_patch(patch), patch, options.bundle, options.out, force=options.force)
    counts = {"corrected": entry.corrections, "questions": entry.questions, "documents": entry.documents}
    lines = "{corrected} questions corrected, {questions} questions and {documents} documents set aside"
    print_results({"bundle": options.out, **counts}, f"{options.out}: {lines.format(**counts)}", as_json=options.json)
    return 0


def _apply_reviews(options: Any) -> int:
    reviews = [read_review(path) for path in options.patch]
    _check(reviews, options.patch, several_pages=True)
    bundle = open_bundle(options.bundle)
    if bundle.info is None or bundle.info.draft is None:
        return _add_questions(reviews, options)
    drafted = DraftedBundle(options.bundle)
    agreed = compute_agreements(reviews, drafted.questions)
    info, reopened = apply_reviews(reviews, drafted, options.out, force=options.force)
    open_cases = sum(case.gold is None and not case.better.says_something for one in reviews for case in one.cases)
    if open_cases:
        print_note(f"{open_cases} cases have no judgment on the proposed text; their questions are unchanged")
    if reopened:
        print_note(f"{reopened} questions are open again: the judged text is no longer the proposed one")
    lines = list(map(_format_agreement, agreed))
    lines.append(
        f"{options.out}: {info.sure:,} questions, {info.words(info.sure)}; {info.unsure:,} still need a person"
    )
    record = {"bundle": options.out, "sure": info.sure, "unsure": info.unsure, "reopened": reopened}
    record |= {"agreement": [{"of": [one.first, one.second], "kappa": one.kappa, "n": one.n} for one in agreed]}
    print_results(record, "\n".join(lines), as_json=options.json)
    return 0


def _add_questions(reviews: Sequence[Review], options: Any) -> int:
    """Write a copy of a bundle with the questions that reviewers added; not for bundles of `exhibit draft`.

    The reviews may also contain judgments on a run. These judgments are not applied: a note tells the user how
    to turn them into a patch. Raise an error if the reviews contain judgments but no added questions.
    """
    judged = sum(len(review.cases) for review in reviews)
    if judged and not any(review.added for review in reviews):
        files = " ".join(map(str, options.patch))
        raise ToolkitError(
            f"{options.patch[0]}: contains judgments on a run; make a patch of them first: exhibit review read {files}"
        )
    count = add_questions(reviews, options.bundle, options.out, force=options.force)
    if judged:
        print_note(f"{judged} judgments on a run are not applied here; make a patch of them: exhibit review read FILE")
    line = f"{options.out}: {count} questions added\nnext: exhibit evaluate {options.out}"
    print_results({"bundle": options.out, "added": count}, line, as_json=options.json)
    return 0


def _check(reviews: Sequence[Review], files: Sequence[Path], *, several_pages: bool = False) -> None:
    """Raise an error if the reviews belong to different review pages, or if one reviewer reviewed a page twice.

    With `several_pages`, different pages are allowed: a drafted bundle grows, so several pages may be made of
    it, one after another.
    """
    seen: dict[tuple[str, str], Path] = {}
    for review, path in zip(reviews, files, strict=True):
        key = review.review, review.reviewer
        if review.review != reviews[0].review and not several_pages:
            raise ToolkitError(
                f"{path}: is a review of another page than {files[0]}; run exhibit review read for each page separately"
            )
        if key in seen:
            raise ToolkitError(
                f"{path}: {review.reviewer} reviewed this page in {seen[key]} too; give only the later file"
            )
        seen[key] = path


def _make_summary(
    reviews: Sequence[Review],
    agreed: Sequence[Agreement],
    shared: Sequence[JudgedShare],
    outcome: Corrections,
    columns: dict[str, dict[str, Estimate]],
) -> dict[str, Any]:
    return {
        "format": "exhibit-reviewed/1",
        "run": reviews[0].run,
        "reviewers": {review.reviewer: len(review.cases) for review in reviews},
        "agreement": [asdict(one) for one in agreed],
        "right": [asdict(one) for one in shared],
        "corrected": [list(key) for key in outcome.corrected],
        "left": {reason: [list(key) for key in keys] for reason, keys in outcome.left.items()},
        "metrics": {
            name: {title: means[name].as_json() for title, means in columns.items()}
            for name in columns["gold as it is"]
        },
    }


def _format_lines(agreed: Sequence[Agreement], shared: Sequence[JudgedShare], outcome: Corrections) -> list[str]:
    lines = []
    for share in shared:
        unclear = f", {share.unclear} unclear" if share.unclear else ""
        over = (
            f"; in the whole run about {share.estimate:.0%}{_format_interval(share.ci95, '.0%')}"
            if share.estimate is not None
            else ""
        )
        what = "gold" if share.aspect == "gold" else "answers"
        lines.append(f"{share.reviewer}: {what} right in {share.right} of {share.judged}{unclear}{over}")
    lines += map(_format_agreement, agreed)
    lines.append(f"corrected: {len(outcome.corrected)} questions")
    lines += [f"not corrected: {reason}: {len(keys)}" for reason, keys in outcome.left.items()]
    return lines


def _format_agreement(one: Agreement) -> str:
    what = "on the gold" if one.aspect == "gold" else "on the answers"
    kappa = "kappa is undefined" if one.kappa is None else f"kappa {one.kappa:.2f}{_format_interval(one.ci95, '.2f')}"
    return f"{one.first} and {one.second} {what}: {kappa}, they agree in {one.same} of {one.n}"


def _format_interval(ci95: Interval | None, form: str) -> str:
    return f" [{ci95[0]:{form}}, {ci95[1]:{form}}]" if ci95 else ""


def _make_parser() -> argparse.ArgumentParser:
    kinds = {
        "positive": parse_positive,
        "metrics": split_requests,
        "kinds": _split_parts,
        "languages": list_languages(),
    }
    words = {"by": ", ".join(BY), "page": NAME, "folder": FOLDER}
    return parser_of("exhibit review", __doc__, read_beside(__file__), kinds, **words)[0]


def _split_parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


if __name__ == "__main__":
    sys.exit(main())
