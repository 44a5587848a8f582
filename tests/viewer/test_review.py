"""Review by an expert: judgments made in a browser, saved, read, and applied to the gold of the judged questions."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from playwright.sync_api import Page

from exhibit.conversion import main as convert
from exhibit.evidence.check import check_gold
from exhibit.schemas.generate import FOLDER as SCHEMAS
from exhibit.schemas.review import Review, digest_gold, read_patch, read_review
from exhibit.schemas.run import SUMMARY
from exhibit.schemas.validate import validate
from exhibit.viewer.review import make
from exhibit.viewer.review.make import main, make_review
from exhibit.viewer.review.reviews import (
    ReviewedRun,
    compute_agreements,
    compute_kappa,
    correct,
    count_right,
    draw_sample,
)
from tests.rag.bundles import rows_of, write_bundle
from tests.viewer.report_data import make_results, write
from tests.viewer.watching import CONTRASTS, served, watched

HOSTILE = "<img src=x onerror='window.pwned=1'></script><script>window.pwned=2</script>\u2028"
FEW = ["--max-documents", "2", "--jobs", "1"]
"""Two contracts are enough for forty questions."""


@pytest.fixture(scope="module")
def bundles(samples, tmp_path_factory) -> dict[str, Path]:
    """A bundle of PDFs made by its converter, and one of text."""
    root = tmp_path_factory.mktemp("bundles")
    flags = ["--source", str(samples / "cuad"), "--out", str(root / "cuad"), *FEW]
    assert convert(["cuad", *flags]) == 0
    leases = write_bundle(root / "leases")
    rows = json.loads((leases / "train.json").read_text(encoding="utf-8"))
    rows[0]["question"] += HOSTILE
    (leases / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    return {"cuad": root / "cuad", "leases": leases}


@pytest.fixture(scope="module")
def folder(bundles, tmp_path_factory) -> Path:
    """An invented run over both bundles, with replies of every kind."""
    made = make_results(tmp_path_factory.mktemp("results") / "first", bundles, limit=60)
    for name, path in bundles.items():  # as in a real run, the gold has the words of train.json
        quotes = {row["id"]: row["contexts"] for row in json.loads((path / "train.json").read_text(encoding="utf-8"))}
        rows = rows_of(made / name / "eval_results.jsonl")
        for row in rows:
            for gold, context in zip(row["gold"], quotes[row["id"]], strict=False):
                gold["text"] = context["text"]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (made / name / "eval_results.jsonl").write_text(lines, encoding="utf-8")
    config = json.loads((made / "config.json").read_text(encoding="utf-8"))
    datasets = {name: {"path": str(path), "groups": None} for name, path in bundles.items()}
    write(made / "config.json", config | {"datasets": datasets, "measured": {"parity": "", "ks": [1, 2, 4, 8, 16]}})
    return made


@pytest.fixture(scope="module")
def run(folder) -> ReviewedRun:
    return ReviewedRun(folder)


@pytest.fixture(scope="module", params=[8, *(pytest.param(size, marks=pytest.mark.slow) for size in (12, 40))])
def sheet(folder, request) -> Path:
    """The review page with a given number of questions; each takes the browser a fifth of a second."""
    assert main(["make", str(folder), "--sample", str(request.param), "--seed", "3"]) == 0
    return folder / "review.html"


def read_data(page: Page) -> dict[str, Any]:
    record: dict[str, Any] = page.evaluate("DATA")
    return record


def review_of(run: ReviewedRun, reviewer: str, **cases: Any) -> Review:
    """Return a review with these judgments: `q33={"gold": "wrong"}` judges question 33 of cuad."""
    records = [{"dataset": "cuad", "id": int(name[1:]), **case} for name, case in cases.items()]
    about = {"format": "exhibit-review/1", "review": "r", "run": run.name, "reviewer": reviewer}
    sample = {"size": len(records), "of": len(run.questions), "seed": 1, "by": ["outcome"]}
    return Review.model_validate_json(json.dumps({**about, "sample": sample, "cases": records}))


def make_corrected_gold(run: ReviewedRun, id: int, *, start: int = 40, end: int = 90) -> dict[str, Any]:
    """Return corrected gold for a question: a span of its document."""
    name = run.questions["cuad", id].document
    document = run.document("cuad", name)
    assert document
    words = document.text[start:end]
    context = {"filename": name, "spans": [[start, end]], "text": " ".join(words.split())}
    return {"contexts": [context], "is_impossible": False, "answer": ""}


def ids_with_gold(run: ReviewedRun, count: int) -> list[int]:
    """Return the ids of some questions of cuad that have gold."""
    return [int(key[1]) for key, row in run.questions.items() if key[0] == "cuad" and row.gold][:count]


def test_draw_sample_covers_all_outcomes_and_is_identical_for_the_same_seed(run):
    drawn = draw_sample(run.questions, size=40, seed=1)
    assert len(set(drawn)) == 40 and drawn == draw_sample(run.questions, size=40, seed=1)
    assert drawn != draw_sample(run.questions, size=40, seed=2)
    assert {run.questions[key].outcome for key in drawn} == {row.outcome for row in run.questions.values()}


def test_draw_sample_returns_all_questions_when_size_exceeds_run(run):
    assert len(draw_sample(run.questions, size=5000, seed=1)) == len(run.questions)


def test_review_judgments_are_saved_read_and_applied_to_gold(
    request, sheet, folder, bundles, samples, browser, tmp_path, capsys
):
    """Follows every step of the reviewer and of the person who requested the review."""
    size = request.node.callspec.params["sheet"]
    corrected: dict[int, list[list[int]]] = {}
    with watched(browser, sheet.as_uri(), viewport={"width": 1400, "height": 1000}) as page:
        cases = read_data(page)["cases"]
        whole = f"{len(cases)} of {len(cases)}"
        answerable = sum(case["dataset"] == "cuad" and not case["impossible"] for case in cases)
        mended = min(answerable, 5 if size >= 12 else 2)
        assert mended >= 2
        assert len(cases) >= size and f"0 of {len(cases)}" in page.inner_text("#done")
        page.click("#save")
        assert "enter your name" in page.inner_text("#told")
        page.keyboard.type("Ada Lowe")
        page.locator("#case").focus()
        for number, case in enumerate(cases):
            better = case["dataset"] == "cuad" and not case["impossible"] and len(corrected) < mended
            page.keyboard.press("2" if better else "1")
            page.keyboard.press(str(4 + number % 3))
            if better:
                corrected[case["id"]] = mark_words(page, by_mouse=bool(len(corrected) % 2))
            page.locator("#case").focus()
            page.keyboard.press("j")
        assert whole in page.inner_text("#done")
        page.reload()
        assert whole in page.inner_text("#done") and page.input_value("#reviewer") == "Ada Lowe"
        with page.expect_download() as download:
            page.click("#save")
        saved = tmp_path / download.value.suggested_filename
        download.value.save_as(saved)
    assert saved.name == "review-first-ada-lowe.json" and len(corrected) == mended
    jsonschema.validate(json.loads(saved.read_text()), json.loads((SCHEMAS / "review.schema.json").read_text()))
    assert len(read_review(saved).cases) == len(cases)

    assert main(["read", str(saved), "--run", str(folder), "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr().out
    assert f"corrected: {mended} questions" in output and "and the run's outcome on the answers: kappa" in output
    patch = tmp_path / "out" / "patch-cuad.json"
    assert {fix.id: fix.contexts[0].spans for fix in read_patch(patch).corrections} == {
        id: [tuple(span) for span in spans] for id, spans in corrected.items()
    }
    jsonschema.validate(json.loads(patch.read_text()), json.loads((SCHEMAS / "patch.schema.json").read_text()))

    flags = ["--source", str(samples / "cuad"), "--out", str(tmp_path / "again"), *FEW, "--patch", str(patch)]
    assert convert(["cuad", *flags]) == 0
    check_changes(bundles["cuad"], tmp_path / "again", corrected)
    flags = ["--bundle", str(bundles["cuad"]), "--out", str(tmp_path / "applied")]
    assert main(["apply", str(patch), *flags]) == 0
    for name in ("train.json", "gold.jsonl"):  # without the source, the result is the same
        assert (tmp_path / "applied" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    check_changes(bundles["cuad"], tmp_path / "applied", corrected)


def mark_words(page: Page, *, by_mouse: bool) -> list[list[int]]:
    """Mark five words of the first page; return the offsets that they have in the document's text."""
    words = page.evaluate("sheets[0].words.slice(5, 10)")
    if by_mouse:
        first, last = (page.locator(f".sheet >> nth=0 >> .word[data-at='{at}'] rect").first for at in (5, 9))
        first.scroll_into_view_if_needed()
        first.hover()
        page.mouse.down()
        last.hover()
        page.mouse.up()
    else:
        page.keyboard.press("m")
        page.keyboard.press("Home")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        for _ in range(4):
            page.keyboard.press("Shift+ArrowRight")
        assert page.inner_text("#told") == " ".join(word[2] for word in words)
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
    assert page.locator(".marked li q").all_inner_texts() == [" ".join(word[2] for word in words)]
    return [[words[0][0], words[-1][1]]]


def check_changes(old: Path, new: Path, corrected: dict[int, list[list[int]]]) -> None:
    """Check that a bundle is valid, and differs from another only in the gold of these questions."""
    assert validate(new) == []
    count, wrong = check_gold(new)
    assert wrong == [] and count > 0
    before, after = ({row["id"]: row for row in json.loads((root / "train.json").read_text())} for root in (old, new))
    assert {id for id in before if before[id] != after[id]} == set(corrected) and before.keys() == after.keys()
    lines = [{}, {}]
    for at, root in enumerate((old, new)):
        for line in rows_of(root / "gold.jsonl"):
            lines[at].setdefault(line["id"], []).append(line)
    assert {id for id in before if lines[0][id] != lines[1][id]} == set(corrected)
    for id, spans in corrected.items():
        [line] = lines[1][id]
        assert line["spans"] == spans and line["how"] in ("exact", "folded") and line["pages"]
        assert line["labels"] == lines[0][id][0]["labels"]
    info = json.loads((new / "bundle.json").read_text())
    assert [(told["name"], told["corrections"]) for told in info["patches"]] == [("patch-cuad.json", len(corrected))]
    assert "gold corrected by review" in (new / "README.md").read_text()
    assert "patches" not in json.loads((old / "bundle.json").read_text())


def test_review_page_from_server_works_with_mouse(sheet, browser, tmp_path):
    with served(sheet.parent) as home, watched(browser, f"{home}/review.html") as page:
        data = read_data(page)
        at = next(
            n for n, case in enumerate(data["cases"]) if case["dataset"] == "cuad" and case["gold"] and case["passages"]
        )
        page.locator("#list button").nth(at).click()
        case = data["cases"][at]
        assert page.inner_text("h2") == case["question"]
        gold = page.evaluate("[...document.querySelectorAll('.sheet')][0].querySelectorAll('.word.gold').length")
        assert gold == page.evaluate(
            "sheets[0].words.filter((w) => sheets[0].shown.gold.some((s) => s[2] === sheets[0].content.filename"
            " && touches(w, s))).length"
        )
        page.locator("details:has(ol) summary").click()
        assert page.locator(".hittext").count() == len([passage for passage in case["passages"] if passage["text"]])
        page.check("#gold-wrong")
        page.check("#answer-unclear")
        page.fill("#comment", "The clause before it is meant.")
        words = page.locator(".sheet >> nth=0 >> .word")
        words.nth(30).locator("rect").first.click()
        words.nth(31).locator("rect").first.click()  # an adjacent word: both become one passage
        assert page.locator(".marked li").count() == 1
        words.nth(60).locator("rect").first.click()
        assert page.locator(".marked li").count() == 2 and page.locator(".word.better").count() == 3
        page.locator(".marked button").first.click()
        assert page.locator(".marked li").count() == 1
        page.fill("#better-answer", "Thirty days.")
        page.fill("#reviewer", "Ben")
        with page.expect_download() as download:
            page.click("#save")
        saved = tmp_path / "ben.json"
        download.value.save_as(saved)
        [mark] = read_review(saved).cases
        assert (mark.gold, mark.answer, mark.comment) == ("wrong", "unclear", "The clause before it is meant.")
        assert mark.better.answer == "Thirty days." and len(mark.better.contexts) == 1
        page.check("#impossible")
        assert page.locator(".marked li").count() == 0
        page.reload()
        assert page.inner_text("#done").startswith("1 of "), "the browser stores judgments"
        page.get_by_role("button", name="Next question").click()
        page.get_by_role("button", name="Previous").click()
        assert page.evaluate("window.pwned") is None


def test_review_page_marks_words_of_document_without_pages(bundles, folder, browser, tmp_path):
    run = ReviewedRun(folder)
    run.questions = {key: row for key, row in run.questions.items() if key[0] == "leases" and row.gold}
    made = make_review(run, tmp_path / "r.html", size=3, seed=1)
    assert made.cases == 3 and made.left_out == 0
    with watched(browser, made.path.as_uri()) as page:
        assert page.locator("span.word.gold").count() > 0
        page.keyboard.press("m")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Enter")
        span, name, text = page.evaluate(
            "[states[0].better.contexts[0].spans[0], states[0].better.contexts[0].filename,"
            " states[0].better.contexts[0].text]"
        )
        document = run.document("leases", name)
        assert document and " ".join(document.text[slice(*span)].split()) == text and len(text.split()) == 2
        page.keyboard.press("Backspace")
        assert page.locator(".marked li").count() == 0
        assert page.evaluate("window.pwned") is None


def test_review_page_does_not_reveal_outcome(sheet, run):
    text = sheet.read_text(encoding="utf-8")
    assert '"outcome"' not in text.partition('id="data"')[2].replace('"by":["confidence","outcome","dataset"]', "")


def test_review_page_fits_screen_width_with_readable_contrast(sheet, browser):
    with watched(browser, sheet.as_uri()) as page:
        for width, theme in ((400, "dark"), (1000, "light"), (1600, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            page.reload()
            page.locator("#list button").nth(1).click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, theme
            assert page.evaluate(CONTRASTS) == [], (width, theme)


def test_review_page_leaves_out_and_counts_pages_beyond_size_limit(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(make, "MAX_PICTURE_CHARS", 10)
    run = ReviewedRun(folder)
    run.questions = {key: row for key, row in run.questions.items() if key[0] == "cuad"}
    made = make_review(run, tmp_path / "r.html", size=2, seed=1)
    assert made.cases == 2 and made.sheets == 0 < made.left_out


@pytest.mark.parametrize(
    ("pairs", "value"),
    [
        # the textbook's table: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no
        ([("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15, 0.4),
        ([("a", "a"), ("b", "b"), ("c", "c")], 1.0),
        ([("a", "b"), ("b", "a")], -1.0),
        ([("a", "a"), ("a", "a")], None),
        ([], None),
    ],
)
def test_compute_kappa_matches_known_values(pairs, value):
    assert compute_kappa(pairs) == (None if value is None else pytest.approx(value))


def test_compute_agreements_compares_reviewers_with_each_other_and_with_judge(run):
    first, second = ids_with_gold(run, 2)
    rows = dict(run.questions.items())
    for id, mark in ((first, 4.5), (second, 3.0)):
        rows["cuad", id] = rows["cuad", id].model_copy(update={"scores": {"answer_correctness": mark}})
    ada = review_of(
        run, "Ada", **{f"q{first}": {"gold": "right", "answer": "right"}, f"q{second}": {"answer": "wrong"}}
    )
    ben = review_of(
        run, "Ben", **{f"q{first}": {"gold": "wrong", "answer": "right"}, f"q{second}": {"answer": "unclear"}}
    )
    found = {(row.first, row.second, row.aspect): (row.n, row.same) for row in compute_agreements([ada, ben], rows)}
    assert found["Ada", "Ben", "gold"] == (1, 0) and found["Ada", "Ben", "answer"] == (2, 1)
    assert found["Ada", "the judge", "answer"] == (2, 2) and found["Ben", "the judge", "answer"] == (1, 1)
    by_name = {(row["reviewer"], row["aspect"]): row for row in count_right([ada, ben])}
    assert (by_name["Ada", "answer"]["right"], by_name["Ada", "answer"]["judged"]) == (1, 2)
    assert (by_name["Ben", "answer"]["judged"], by_name["Ben", "answer"]["unclear"]) == (1, 1)


def test_correct_changes_gold_only_when_reviewers_agree_on_better_words(run):
    mended, divided, differ, unmended, right, odd = ids_with_gold(run, 6)
    wrong = {"gold": "wrong"}
    ada = {
        mended: {**wrong, "better": make_corrected_gold(run, mended)},
        divided: {**wrong, "better": make_corrected_gold(run, divided)},
        differ: {**wrong, "better": make_corrected_gold(run, differ)},
        unmended: {**wrong, "comment": "about another lease"},
        right: {"gold": "right"},
        odd: {**wrong, "better": make_corrected_gold(run, odd)},
    }
    ben = {
        mended: {**wrong, "better": make_corrected_gold(run, mended), "comment": "the next\nclause"},
        divided: {"gold": "right"},
        differ: {**wrong, "better": make_corrected_gold(run, differ, end=99)},
        unmended: wrong,
    }
    ada[odd]["better"]["contexts"][0]["text"] = "words that are not there"
    reviews = [
        review_of(run, name, **{f"q{id}": case for id, case in judgments.items()})
        for name, judgments in (("Ada", ada), ("Ben", ben))
    ]
    outcome = correct(reviews, run)
    assert set(outcome.corrected) == {("cuad", mended)}
    assert outcome.corrected == [("cuad", mended)]
    [fix] = outcome.patches["cuad"].corrections
    assert fix.reviewers == ["Ada", "Ben"] and fix.reason == "the next clause"
    row = run.questions["cuad", mended]
    assert fix.was == digest_gold((gold.filename, gold.text) for gold in row.gold)
    assert {reason: [id for _, id in keys] for reason, keys in outcome.left.items()} == {
        "the reviewers disagree": [divided],
        "wrong, but the reviewers marked different words as better": [differ],
        "wrong, but no reviewer marked better words": [unmended],
        "the marked words are not in the document": [odd],
    }


def test_read_command_names_fault_of_invalid_review(folder, run, tmp_path, capsys):
    [id] = ids_with_gold(run, 1)
    review = review_of(run, "Ada", **{f"q{id}": {"gold": "right"}}).model_dump(mode="json")
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    first.write_text(json.dumps(review))
    for content, message in (
        (review, "Ada reviewed this page in"),
        ({**review, "review": "s", "reviewer": "Ben"}, "is a review of another page"),
        ({**review, "cases": review["cases"] * 2}, "occurs more than once"),
        ({**review, "reviewer": " "}, "reviewer"),
        ({**review, "more": 1}, "more: Extra inputs"),
    ):
        second.write_text(json.dumps(content))
        assert main(["read", str(first), str(second), "--run", str(folder)]) == 1
        assert message in capsys.readouterr().err
    second.write_text("{")
    assert main(["read", str(second), "--run", str(folder)]) == 1 and "is not a valid review" in capsys.readouterr().err
    assert main(["read", str(tmp_path / "none.json")]) == 1 and "missing" in capsys.readouterr().err
    assert main(["read", str(first)]) == 1 and "--run" in capsys.readouterr().err


def test_read_command_rejects_review_of_other_questions_and_warns_of_changed_gold(folder, run, tmp_path, capsys):
    first, second = ids_with_gold(run, 2)
    path, other = tmp_path / "review.json", {"gold": "right", "was": "0" * 64}
    path.write_text(review_of(run, "Ada", q999999={"gold": "wrong"}, **{f"q{first}": other}).model_dump_json())
    assert main(["read", str(path), "--run", str(folder)]) == 1
    assert "has none of the reviewed questions" in capsys.readouterr().err
    path.write_text(review_of(run, "Ada", **{f"q{first}": other, f"q{second}": {"gold": "right"}}).model_dump_json())
    assert main(["read", str(path), "--run", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert "1 of 2 judged questions are not in" in capsys.readouterr().err
    path.write_text(
        review_of(run, "Ada", **{f"q{second}": {"answer": "right"}}).model_copy(update={"run": "x"}).model_dump_json()
    )
    assert main(["read", str(path), "--run", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert "the review is of the run 'x', whose answers may differ" in capsys.readouterr().err


def test_make_command_asks_for_dataset_paths_when_bundle_has_moved(folder, bundles, tmp_path, capsys):
    config = json.loads((folder / "config.json").read_text())
    moved = tmp_path / "moved"
    for name in ("cuad", "leases"):
        (moved / name).mkdir(parents=True)
        for file in ("eval_results.jsonl", SUMMARY):
            (moved / name / file).write_bytes((folder / name / file).read_bytes())
        config["datasets"][name]["path"] = str(tmp_path / "gone" / name)
    write(moved / "config.json", config)
    assert main(["make", str(moved), "--sample", "1"]) == 1 and "--dataset-paths" in capsys.readouterr().err
    assert main(["make", str(moved), "--sample", "1", "--dataset-paths", *map(str, bundles.values())]) == 0
