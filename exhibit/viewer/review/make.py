"""Review by experts: a sample on one page, the reviewers' agreement, and corrected gold as a patch.

    exhibit review make results/demo --sample 40
    exhibit review read review-demo-ada.json review-demo-ben.json --run results/demo
    exhibit review apply results/demo/review/patch-cuad.json --bundle datasets_out/cuad --out reviewed/cuad

The page needs no server and no network. A converter applies a patch on its next run: --patch FILE.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.converters import Tally
from exhibit.converters.core.build import apply_patches, read_asked, write_changed
from exhibit.engine import track
from exhibit.evaluation.scoring import write_json
from exhibit.evidence import Document, Span
from exhibit.evidence.read import read_words
from exhibit.evidence.show import draw_page_uri
from exhibit.runtime import command as cli
from exhibit.runtime.command import parse_positive, print_note
from exhibit.schemas.bundle import TRAIN
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.schemas.review import REVIEW, Review, digest_gold, is_review, read_review
from exhibit.schemas.run import RunQuestion
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import BundleFolder, open_bundle
from exhibit.storage.locations import keep_recent_files
from exhibit.viewer import drawing
from exhibit.viewer.drawing import FileSpans
from exhibit.viewer.page import Record, as_json, cut, format_page, render
from exhibit.viewer.review import reviews as reviewing
from exhibit.viewer.review.reviews import ASPECTS, BY, DraftedBundle, Key, Questions, ReviewedRun

NAME = "review.html"
# most characters of all pictures: a browser opens such a page at once, and it is small enough to mail
MAX_PICTURE_CHARS = 24_000_000
MAX_PAGES = 8  # most pages of a question: first gold, then retrieved passages, pages beside the gold, and other pages
_SCRIPTS = ("build.js", "marking.js", "judging.js", "review.js")
_PASSAGES = 8  # most passages that are quoted
_MAX_TEXT_CHARS = 20_000  # most characters of a reply: a model that repeats itself must not fill the page
_AROUND_CHARS = 1500  # characters that are shown on each side of a span if the document has no pages
Reviewed = ReviewedRun | DraftedBundle


class ReviewPage(NamedTuple):
    path: Path
    cases: int  # the number of questions on the page
    of: int
    sheets: int  # the number of pictures and texts
    left_out: int  # the number of pages that could not be drawn or did not fit


def make_review(run: Reviewed, path: Path, *, size: int, seed: int, save: str = "") -> ReviewPage:
    """Write the review page of a sample of questions; the page sends each judgment to the address `save` at once."""
    if drafted := isinstance(run, DraftedBundle):
        keys = run.choose_worth_judging(size)
    else:
        keys = reviewing.draw_sample(run.questions, size=size, seed=seed)
    if not keys:
        raise ToolkitError(f"{run.folder}: has no question to review; name another run")
    with keep_recent_files():  # download remote documents only once
        cases, sheets, left_out = _make_cases(keys, run)
    # the browser stores judgments under this id, and reviews with the same id belong to the same page
    parts: list[Any] = [run.name, *([*key, run.questions[key].question] for key in keys)]
    digest = hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()[:16]
    sample = {"size": len(keys), "of": len(run.questions), "seed": seed, "by": list(BY)}
    about: Record = {"format": REVIEW, "review": digest, "of": "bundle" if drafted else "run", "run": run.name}
    about |= {"sample": sample, "drafted": drafted, **({"save": save} if save else {})}
    data = {"data": as_json({"about": about, "cases": cases, "sheets": sheets})}
    title, body = f"Review of {run.name} – Exhibit", render("review.html.j2", drafted=drafted, save=save)
    page = format_page(title, body, styles=["review.css"], scripts=_SCRIPTS, served=bool(save), data=data)
    write_whole(path, page)
    return ReviewPage(path, len(cases), len(run.questions), len(sheets), left_out)


def _make_cases(keys: Sequence[Key], run: Reviewed) -> tuple[list[Record], dict[str, Record], int]:
    """Return a review's questions, the document pages shown with them (by key), and how many pages are left out."""
    rows = [run.questions[key] for key in keys]
    files = [drawing.group_spans(row) for row in rows]
    wanted = [_list_sheets(row, spans, run) for row, spans in zip(rows, files, strict=True)]
    drawn: dict[Any, Record | None] = {}
    shown: list[list[Any]] = [[] for _ in keys]
    left = MAX_PICTURE_CHARS
    # draw the first page of every question before any second page, so that the limit does not exclude gold
    steps = [(at, sheet) for turn in zip_longest(*wanted) for at, sheet in enumerate(turn) if sheet is not None]
    for at, (filename, number) in track(steps, total=len(steps), label="pages", unit="page"):
        marked, dataset = files[at].get(filename), rows[at].dataset
        spans = [*marked.gold, *chain(*marked.passages.values())][:MAX_PAGES] if marked and not number else []
        page = (dataset, filename, number, *spans)
        if page not in drawn:
            drawn[page] = sheet = _draw_sheet(run.document(dataset, filename), number, spans, left)
            left -= len(sheet.get("src", "")) if sheet else 0
        shown[at].append(page)
    names = {page: f"s{n}" for n, page in enumerate((page for page, sheet in drawn.items() if sheet), 1)}
    sheets = {names[page]: sheet for page, sheet in drawn.items() if sheet}
    cases = [
        _make_case(row) | {"sheets": [names[page] for page in pages if page in names]}
        for row, pages in zip(rows, shown, strict=True)
    ]
    return cases, sheets, len(drawn) - len(sheets)


def _draw_sheet(document: Document | None, number: int, spans: Sequence[Span], most: int) -> Record | None:
    """Return a page with its picture as a data URL; None if it cannot be drawn, or the URL exceeds `most` characters.

    For number 0, return the text of a document without pages.
    """
    if document is None or number > len(document.pages):
        return None
    if not number:
        return make_sheet(document, 0, spans, "")
    page = document.pages[number - 1]
    with suppress(DocumentError):  # the page may exceed the time limit
        picture = draw_page_uri(document.path, page, width=drawing.WIDTH) if document.path and page.width else ""
        if 0 < len(picture) <= most:
            return make_sheet(document, number, (), picture)
    return None


def _make_case(row: RunQuestion) -> Record:
    """Return the question, gold, answer and passages that a reviewer sees, but not the run's outcome."""
    reply = row.reply
    case: Record = {"dataset": row.dataset, "id": row.id, "question": row.question, "impossible": row.is_impossible}
    case |= {"truth": cut(row.truth, _MAX_TEXT_CHARS), "error": reply.error}
    case["answer"] = None if reply.answer is None else cut(reply.answer, _MAX_TEXT_CHARS)
    case["was"] = digest_gold((gold.filename, gold.text) for gold in row.gold)
    case["gold"] = [
        {"filename": gold.filename or "", "pages": gold.pages, "text": cut(gold.text or "", _MAX_TEXT_CHARS),
         "spans": gold.places[0] if gold.places else []}
        for gold in row.gold
    ]  # fmt: skip
    case["passages"] = [
        {"filename": passage.filename or "", "page": passage.page, "spans": drawing.list_passage_spans(passage),
         "text": cut(passage.text or "", _MAX_TEXT_CHARS), "cited": number in reply.citations}
        for number, passage in enumerate(reply.passages[:_PASSAGES], 1)
    ]  # fmt: skip
    return case


def _list_sheets(row: RunQuestion, files: dict[str, FileSpans], run: Reviewed) -> list[tuple[str, int]]:
    """Return the pages to show for a question, the most important first; 0 for a document without pages."""
    gold = [(passage.filename or "", page) for passage in row.gold for page in passage.pages]
    beside = [(name, page + step) for name, page in gold for step in (-1, 1) if page + step > 0]
    # a reviewer must see the whole document to judge that it has no answer
    name = row.filename or ""
    document = run.document(row.dataset, name) if name else None
    all_pages = [(name, page.number) for page in document.pages] or [(name, 0)] if document else []
    return list(dict.fromkeys([*drawing.choose_pages(row, files, most=MAX_PAGES), *beside, *all_pages]))[:MAX_PAGES]


def make_sheet(document: Document, number: int, spans: Sequence[tuple[int, int]], address: str) -> Record:
    """Return a page's size, words and image address for the script that marks words.

    For number 0, return the text of a document without pages.
    """
    if number:
        page = document.pages[number - 1]
        words = [
            [*span, document.text[span.start : span.end], *map(drawing.measure_box, boxes)]
            for span, boxes in read_words(document, number)
            if boxes
        ]
        size = {"width": page.width, "height": page.height, "src": address}
        return {"filename": document.filename, "number": number, **size, "words": words}
    return _cut_text(document, [Span(*span) for span in spans])


def _cut_text(document: Document, spans: Sequence[Span]) -> Record:
    """Return the words in and around some spans, each with its offsets.

    `breaks` has the indexes of the words that begin a line.
    """
    words: list[list[Any]] = []
    breaks = []
    for start, text in drawing.cut_windows(document.text, spans or [Span(0, 0)], around=_AROUND_CHARS):
        for word in re.finditer(r"\S+", text):
            first, last = start + word.start(), start + word.end()
            if words and (not word.start() or "\n" in document.text[words[-1][1] : first]):
                breaks.append(len(words))
            words.append([first, last, word[0]])
    return {"filename": document.filename, "number": 0, "words": words, "breaks": breaks}


# ---------------------------------------------------------------- the commands

FOLDER = "review"
Result = tuple[Any, list[str]]  # the record of a command for --json, and its lines for a person


@cli.guarded()
def main(argv: Sequence[str]) -> int:
    """Run a subcommand of `exhibit review`: `make` (the default), `read` or `apply`."""
    words = list(argv)
    if words and words[0] not in ("make", "read", "apply", "-h", "--help"):
        words = ["make", *words]  # only a run or a drafted bundle is named: make its page
    options = _make_parser().parse_args(words)
    record, lines = options.work(options)
    cli.print_results(record, "\n".join(lines), as_json=options.json)
    return 0


def _make_parser() -> cli.Parser:
    parser = cli.build_parser("exhibit review", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="write a page to review sample questions of a run or a drafted bundle")
    make.set_defaults(work=_make)
    make.add_argument("run", type=Path, metavar="RUN")
    make.add_argument("--sample", type=parse_positive, default=40, metavar="N", help="number of questions (default 40)")
    make.add_argument("--seed", type=int, default=1, metavar="N", help="the seed of the sample (default: 1)")
    make.add_argument("--out", type=Path, metavar="FILE", help=f"the page to write (default: RUN/{NAME})")

    read = commands.add_parser("read", help="measure how far the reviewers agree, and write corrected gold as patches")
    read.set_defaults(work=_read)
    read.add_argument("files", nargs="+", type=Path, metavar="FILE", help="the saved reviews, one file per reviewer")
    read.add_argument("--run", type=Path, metavar="RUN", help="the run that was reviewed (default: results/NAME)")
    read.add_argument("--out", type=Path, metavar="DIR", help=f"the folder for patches (default: RUN/{FOLDER})")

    apply = commands.add_parser("apply", help="write a copy of a bundle to which a patch or reviews are applied")
    apply.set_defaults(work=_apply)
    what = "a patch; for a drafted bundle, the saved reviews"
    apply.add_argument("patch", nargs="+", type=Path, metavar="FILE", help=what)
    apply.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    apply.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the corrected bundle")
    apply.add_argument("--force", action="store_true", help="replace an existing bundle")
    for command in (make, read):
        command.add_argument("--dataset-paths", nargs="+", default=[], metavar="DIR", help="moved bundles of the run")
    for command in (make, read, apply):
        cli.add_json(command)
    return parser


def _make(options: Any) -> Result:
    drafted = (options.run / TRAIN).is_file()
    run = DraftedBundle(options.run) if drafted else ReviewedRun(options.run, paths=options.dataset_paths)
    # not inside a bundle, which lists the checksums of all its files
    default = options.run.with_name(f"{options.run.name}-{NAME}") if drafted else options.run / NAME
    made = make_review(run, options.out or default, size=options.sample, seed=options.seed)
    if made.left_out:
        print_note(f"{made.left_out} pages of documents could not be drawn, or were too many; their text is shown")
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
    agreements, shares = reviewing.compute_agreements(reviews, run.questions), reviewing.count_right(reviews)
    result = reviewing.correct(reviews, run)
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
    bundle = open_bundle(options.bundle)
    if bundle.info is None or bundle.info.draft is None:
        return _add_questions(reviews, bundle, options)
    drafted = DraftedBundle(options.bundle)
    _check_same_questions(reviews, drafted.questions, options.bundle)
    draft, reopened = reviewing.apply_reviews(reviews, drafted, options.out, force=options.force)
    if reopened:
        print_note(f"{reopened} questions are open again, because their proposed text has changed since the judgment")
    record = {"bundle": options.out, "sure": draft.sure, "unsure": draft.unsure, "reopened": reopened}
    counts = f"{draft.sure:,} questions, {draft.words(draft.sure)}; {draft.unsure:,} still need a person"
    return record, [f"{options.out}: {counts}"]


def _add_questions(reviews: Sequence[Review], bundle: BundleFolder, options: Any) -> Result:
    """Write a copy of a bundle with the questions that reviewers added; judgments on a run are not applied here."""
    judged = sum(len(review.cases) for review in reviews)
    advice = f"first make a patch of judgments on a run: exhibit review read {' '.join(map(str, options.patch))}"
    if judged and not any(review.added for review in reviews):
        raise ToolkitError(f"{options.patch[0]}: contains judgments on a run; {advice}")
    if bundle.info is None:
        advice = "questions can be added only to a bundle that Exhibit made"
        raise ToolkitError(f"{options.bundle}: has no bundle.json; {advice}")
    asked, _ = read_asked(bundle)
    added = reviewing.make_added_rows(reviews, bundle, first=max((row.id for row, _ in asked), default=-1) + 1)
    write_changed(bundle, bundle.info, [*asked, *added], [], Tally(), options.out, force=options.force)
    if judged:
        print_note(f"{judged} judgments are not applied: {advice}")
    lines = [f"{options.out}: {len(added)} questions added", f"next: exhibit evaluate {options.out}"]
    return {"bundle": options.out, "added": len(added)}, lines


def _check_same_questions(reviews: Sequence[Review], questions: Questions, where: Path) -> None:
    """Check that a run or bundle has the judged questions with the same gold; raise if it has none of them."""
    other = total = 0
    for case in (case for review in reviews for case in review.cases):
        row = questions.get((case.dataset, case.id))
        gold = row and digest_gold((gold.filename, gold.text) for gold in row.gold)
        other += gold is None or case.was not in (None, gold)
        total += 1
    if total and other == total:
        raise ToolkitError(f"{where}: has none of the reviewed questions; name {reviews[0].run!r}, which was reviewed")
    if other:
        print_note(f"{other} of {total} judged questions are not in {where}, or have other gold there")


def _read_reviews(files: Sequence[Path], *, several_pages: bool) -> list[Review]:
    """Read the reviews of one page; refuse a second review by the same reviewer.

    With `several_pages`, the reviews may be from several review pages: a drafted bundle gets a new page when it grows.
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
