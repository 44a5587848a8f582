"""Edge cases of the review page and of applying reviews, without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.document import Page
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.review import MarkedPassage, Review, read_patch
from exhibit.schemas.run import RunQuestion
from exhibit.viewer.drawing import mark_spans
from exhibit.viewer.review import corrections, make
from exhibit.viewer.review.__main__ import main
from exhibit.viewer.review.corrections import correct, rescore_run
from exhibit.viewer.review.make import Album, make_review, sheets_of
from exhibit.viewer.review.source import (
    ReviewedRun,
    collect_judgments,
    collect_marks,
    collect_verdicts,
    compute_agreements,
    compute_shares,
    draw_sample,
    group_by_question,
    place_passage,
)
from tests.evidence import files
from tests.rag.bundles import write_bundle
from tests.viewer.report_data import block_of, make_results

LONG = 20_000


def row(id: int | str = 1, verdict: str = "answered", **given: Any) -> RunQuestion:
    reply = {"error": "", **given.pop("reply", {})}
    told = {"dataset": "d", "id": id, "question": "q?", "truth": "t", "verdict": verdict, "reply": reply, **given}
    return RunQuestion.model_validate(told)


def run_of(*rows: RunQuestion, **documents: Document) -> Any:
    named = {document.filename: document for document in documents.values()}
    questions = {one.key: one for one in rows}
    return SimpleNamespace(
        name="r", folder="results/r", questions=questions, document=lambda _, name: named.get(name),
        find_bundle_name=lambda dataset: f"{dataset} bundle",
    )  # fmt: skip


def review_of(reviewer: str, *cases: dict[str, Any], by: tuple[str, ...] = ()) -> Review:
    told = [{"dataset": "d", **case} for case in cases]
    about = {"format": "exhibit-review/1", "review": "p", "run": "r", "reviewer": reviewer}
    sample = {"size": len(told), "of": 9, "seed": 1, "by": list(by)}
    return Review.model_validate_json(json.dumps({**about, "sample": sample, "cases": told}))


# ---------------------------------------------------------------- the page


def made(run: Any, tmp_path: Any, size: int = 9) -> Any:
    page = make_review(run, tmp_path / "r.html", by=[], size=size, seed=1)
    return page, block_of(page.path, "data")


def test_a_reviewer_is_shown_texts_up_to_a_length_and_eight_passages(tmp_path):
    passages = [{"filename": "a.txt", "text": f"{n}" * 3, "span": (n, n + 3)} for n in range(9)]
    passages[1]["text"] = "p" * (LONG + 1)
    gold = {"filename": "a.txt", "text": "g" * (LONG + 1), "places": [[(0, 3)], [(5, 9)]], "pages": []}
    reply = {"answer": "a" * (LONG + 1), "passages": passages, "citations": [2, 8, 9]}
    one = row(truth="t" * (LONG + 1), gold=[gold, {"filename": None, "text": None}], reply=reply)
    page, data = made(run_of(one, row(2, truth="t" * LONG), a=Document("a.txt", "word " * 9)), tmp_path)
    assert (page.cases, page.of, page.sheets, page.left_out) == (2, 2, 1, 0)
    case = next(case for case in data["cases"] if case["id"] == 1)
    for text, letter in ((case["truth"], "t"), (case["answer"], "a"), (case["gold"][0]["text"], "g")):
        assert text == letter * LONG + " …"
    assert case["passages"][1]["text"] == "p" * LONG + " …" and len(case["passages"]) == 8
    assert [n for n, passage in enumerate(case["passages"], 1) if passage["cited"]] == [2, 8]
    assert case["gold"][0]["spans"] == [[0, 3]] and case["gold"][1] == {
        "filename": "", "pages": [], "text": "", "spans": []
    }  # fmt: skip
    other = next(case for case in data["cases"] if case["id"] == 2)
    assert other["truth"] == "t" * LONG and other["answer"] is None and other["sheets"] == []
    about = data["about"]
    assert about["sample"] == {"size": 2, "of": 2, "seed": 1, "by": []} and len(about["review"]) == 16
    assert about["drafted"] is False and about["run"] == "r"
    again = made(run_of(one, row(2, question="other?"), a=Document("a.txt", "word " * 9)), tmp_path)[1]["about"]
    assert again["review"] != about["review"], "answers in a browser's store are of other questions"
    with pytest.raises(ToolkitError, match="results/r: has no question to review"):
        make_review(run_of(), tmp_path / "r.html", by=[], size=3, seed=1)


def test_a_text_without_pages_is_shown_around_eight_places(tmp_path):
    text = "".join(f"w{n:05} " for n in range(8000))
    passages = [{"filename": "a.txt", "text": "x", "span": (5600 * n, 5600 * n + 6)} for n in range(9)]
    _, data = made(run_of(row(reply={"passages": passages}), a=Document("a.txt", text)), tmp_path)
    [sheet] = data["sheets"].values()
    starts = [sheet["words"][at][0] for at in sheet["breaks"]]
    assert len(starts) == 7 and all(0 <= 5600 * n - start - 1500 < 7 for n, start in enumerate(starts, 1))
    assert 0 <= sheet["words"][-1][1] - (5600 * 7 + 6 + 1500) < 7, "the ninth place is left out"
    assert sheet["words"][0] == [0, 6, "w00000"] and sheet["number"] == 0


def test_lines_of_a_text_end_where_they_do(tmp_path):
    album = Album(run_of(a=Document("a.txt", "one two\nthree four  five\n\nsix")))
    key = album.add("d", "a.txt", 0)
    assert key == "s1" and album.sheets["s1"]["breaks"] == [2, 5]
    assert [word[2] for word in album.sheets["s1"]["words"]] == ["one", "two", "three", "four", "five", "six"]
    assert album.sheets["s1"]["words"][2] == [8, 13, "three"]
    assert album.add("d", "a.txt", 0) == "s1" and album.add("d", "a.txt", 1) is None and album.left_out == 0
    assert album.add("d", "b.txt", 0) is None and album.add("d", "a.txt", 0, Span(0, 3)) == "s2"


def test_pictures_are_kept_as_far_as_the_budget_goes(tmp_path):
    (tmp_path / "a.pdf").write_bytes(files.pdf("The rent is due."))
    document = read_document(tmp_path / "a.pdf")
    whole = Album(run_of(a=document))
    assert whole.add("d", "a.pdf", 1) == "s1" and whole.add("d", "a.pdf", 2) is None
    sheet = whole.sheets["s1"]
    assert (sheet["number"], sheet["width"], sheet["height"]) == (1, 595, 842)
    first, *rest = sheet["words"]
    assert first[:3] == [0, 3, "The"] and len(first[3]) == 4 and len(rest) == 3
    left, top, width, height = first[3]
    assert left == pytest.approx(60, abs=2) and 10 < width < 30 and 5 < height < 20 and 125 < top < 145
    size = len(sheet["src"])
    for budget, kept in ((size - 1, 0), (size, 1), (2 * size - 1, 1), (2 * size, 2)):
        album = Album(run_of(a=document, b=Document("b.pdf", document.text, document.pages, path=document.path)),
                      budget=budget)  # fmt: skip
        keys = [album.add("d", name, 1) for name in ("a.pdf", "b.pdf")]
        assert len(album.sheets) == kept and album.left_out == 2 - kept and keys.count(None) == 2 - kept
    lost = Album(run_of(a=Document("a.pdf", document.text, document.pages)))
    assert lost.add("d", "a.pdf", 1) is None and lost.left_out == 1, "a file that is no longer there"


def test_a_page_has_room_for_twenty_four_million_characters_of_pictures(monkeypatch):
    monkeypatch.setattr(make, "draw_page_uri", lambda path, page, width: "x" * 8_000_000)
    monkeypatch.setattr(make, "read_words", lambda document, number: [])
    pages = tuple(Page(number, Span(0, 1), 600.0, 800.0) for number in range(1, 5))
    album = Album(run_of(a=Document("a.pdf", "x", pages, path=Path("a.pdf"))))
    assert [album.add("d", "a.pdf", number) for number in range(1, 5)] == ["s1", "s2", "s3", None]
    assert album.left_out == 1


def test_pages_beside_the_gold_and_then_all_others_are_worth_seeing(tmp_path):
    (tmp_path / "a.pdf").write_bytes(files.pdf("The rent is due."))
    page = read_document(tmp_path / "a.pdf").pages[0]
    pages = tuple(type(page)(n, Span(0, 1), page.width, page.height) for n in range(1, 13))
    run = run_of(a=Document("a.pdf", "x", pages), b=Document("b.txt", "x"))

    def seen(**given: Any) -> list[tuple[str, int]]:
        one = row(**given)
        return sheets_of(one, mark_spans(one), run)

    gold = [{"filename": "a.pdf", "text": "x", "places": [[(0, 1)]], "pages": [5]}]
    assert seen(gold=gold, filename="a.pdf") == [("a.pdf", n) for n in (5, 4, 6, 1, 2, 3, 7, 8)]
    assert seen(gold=[{**gold[0], "pages": [1]}]) == [("a.pdf", 1), ("a.pdf", 2)], "there is no page before the first"
    assert seen(filename="b.txt") == [("b.txt", 0)] and seen(filename="c.txt") == seen() == []
    assert seen(filename="a.pdf") == [("a.pdf", n) for n in range(1, 9)]


def test_the_best_page_of_every_question_comes_before_the_second_of_any(tmp_path):
    (tmp_path / "a.pdf").write_bytes(files.pdf("The rent is due."))
    document = read_document(tmp_path / "a.pdf")
    texts = [Document(f"{name}.txt", "x y") for name in "bc"]
    passages = [{"filename": name, "text": "x", "span": (0, 1)} for name in ("b.txt", "c.txt")]
    one = row(1, reply={"passages": passages})
    two = row(2, filename="a.pdf", gold=[{"filename": "a.pdf", "text": "T", "places": [[(0, 1)]], "pages": [1]}])
    run = run_of(one, two, a=document, b=texts[0], c=texts[1])
    _, data = made(run, tmp_path)
    order = [sheet["filename"] for sheet in data["sheets"].values()]
    assert set(order[:2]) == {"a.pdf", "b.txt"} and order[2] == "c.txt"


# ---------------------------------------------------------------- what is made of reviews


def test_a_passage_is_found_anew_where_its_document_was_changed():
    document = Document("a.txt", "First of all. The rent is due in advance. The end.")
    where = (14, 41)

    def passage(text: str, *spans: tuple[int, int]) -> MarkedPassage | None:
        return place_passage(MarkedPassage(filename="a.txt", text=text, spans=list(spans)), document)

    same = passage("The  rent is due in advance.", where)
    assert same is not None and (same.text, same.spans) == ("The rent is due in advance.", [where])
    for spans in ([], [(0, 5)]):
        moved = passage("The rent is due in advance.", *spans)
        assert moved is not None and (moved.spans, moved.text) == ([where], "The rent is due in advance.")
    two = passage("First of all. The end.", (0, 13), (42, 50))
    assert two is not None and two.text == "First of all. The end."
    assert passage("Nothing of the kind was ever said here.", (0, 5)) is None
    assert place_passage(MarkedPassage(filename="a.txt", text="x", spans=[]), None) is None


def better(*spans: tuple[int, int], text: str, **given: Any) -> dict[str, Any]:
    return {"contexts": [{"filename": "a.txt", "spans": [span], "text": text} for span in spans], **given}


def test_gold_is_mended_as_most_say_and_its_answer_with_it():
    text = "The rent is due. The term is long."
    document = Document("a.txt", text)
    quoted = {"filename": "a.txt", "text": "The term is long.", "places": [[(17, 34)]], "pages": []}
    rows = [
        row(1, truth="The term is long.", gold=[quoted]), row(2, truth="In five years.", gold=[quoted]),
        row(3, is_impossible=True), row("x", gold=[quoted]), row(5, gold=[quoted]), row(6, gold=[quoted]),
    ]  # fmt: skip
    run = run_of(*rows, a=document)
    rent = better((0, 16), text="The rent is due.")
    both = {"contexts": [*better((17, 34), text="The term is long.")["contexts"], *rent["contexts"]]}
    wrong = {"gold": "wrong", "better": rent}
    ada = review_of(
        "Ada", {"id": 1, **wrong, "comment": " Not\nthis. "}, {"id": 2, **wrong},
        {"id": 3, "gold": "wrong", "better": both},
        {"id": "x", **wrong}, {"id": 5, **wrong}, {"id": 6, "gold": "unclear"}, {"id": 7, **wrong},
    )  # fmt: skip
    answered = {"gold": "wrong", "better": {**rent, "answer": " By May. "}, "comment": "Not this."}
    ben = review_of("Ben", {"id": 1, **answered}, {"id": 5, "gold": "right"}, {"id": 6}, {"id": 8, "gold": "right"})
    told = correct([ada, ben], run)
    fixes = {id: fix for (_, id), fix in told.corrected.items()}
    assert list(fixes) == [1, 2, 3] and fixes[1].answer == "By May." and fixes[1].reason == "Not this."
    assert fixes[1].reviewers == ["Ada", "Ben"] and fixes[2].reviewers == ["Ada"] and fixes[2].answer is None
    assert fixes[3].answer == "The rent is due. […] The term is long." and not fixes[3].is_impossible
    assert [context.spans for context in fixes[3].contexts] == [[(0, 16)], [(17, 34)]], "in their order"
    assert {reason: [id for _, id in keys] for reason, keys in told.left.items()} == {
        "reviewers are divided": [5], "unclear": [6], "not in this run": [7],
        "its id is not a number, so no converter knows it": ["x"],
    }  # fmt: skip
    patch = told.patches["d"]
    assert patch.dataset == "d bundle" and patch.about == "Review of the run r by Ada, Ben."
    alone = correct([review_of("Ada", {"id": 1, **wrong})], run).corrected["d", 1]
    assert alone.answer == "The rent is due.", "made of the gold's own words, as it was"
    differ = {"gold": "wrong", "better": {"is_impossible": True}}
    left = correct([ada, review_of("Ben", {"id": 2, **differ})], run).left
    assert left["wrong, but the better words differ"] == [("d", 2)]
    none = correct([review_of("Ada", {"id": 2, **differ})], run).corrected["d", 2]
    assert none.is_impossible and none.contexts == [] and none.answer is None
    [aside] = correct([review_of("Ada", {"id": 2, "gold": "wrong"})], run, set_aside_wrong=True).patches["d"].questions
    assert aside.reason == "reviewers call its gold wrong"


@pytest.fixture
def small(tmp_path) -> ReviewedRun:
    """A run over three contracts as text."""
    bundle = write_bundle(tmp_path / "leases")
    return ReviewedRun(make_results(tmp_path / "first", {"leases": bundle}, limit=9))


def test_cases_are_measured_anew_with_the_words_of_all_passages(small, monkeypatch):
    seen: list[Any] = []
    real = corrections.measure
    monkeypatch.setattr(corrections, "measure", lambda cases, options: seen.extend(cases) or real(cases, options))
    key = next(key for key, one in small.questions.items() if one.gold and len(one.reply.passages) > 10)
    asked = small.questions[key]
    name = asked.gold[0].filename
    document = small.document("leases", name)
    start = document.text.index("The price")
    marked = {"filename": name, "spans": [(start, start + 50)], "text": document.text[start : start + 50]}
    case = {"dataset": "leases", "id": key[1], "gold": "wrong", "better": {"contexts": [marked], "answer": "In May."}}
    before, after = rescore_run(small, correct([review_of("Ada", case)], small).corrected)
    [measured] = seen
    assert (measured.truth, measured.filename, measured.is_impossible) == ("In May.", name, False)
    assert measured.gold[0].places == ((Span(start, start + 50),),)
    for passage, recorded in zip(measured.reply.passages, asked.reply.passages, strict=True):
        there = small.document("leases", recorded.filename)
        assert passage.text == there.text[slice(*recorded.span)] and len(passage.text) > 3
    [one], [other] = before, after
    assert one.ids == other.ids and one.values != other.values and other.values.keys() == one.values.keys()
    assert (
        rescore_run(small, {})[1][0] is rescore_run(small, {})[0][0]
        or rescore_run(small, {})[1] == rescore_run(small, {})[0]
    )
    none = {"dataset": "leases", "id": key[1], "gold": "wrong", "better": {"is_impossible": True}}
    seen.clear()
    rescore_run(small, correct([review_of("Ada", none)], small).corrected)
    assert seen[0].truth.startswith("Not found") and seen[0].gold == () and seen[0].filename == asked.filename


def test_a_review_is_read_into_files_and_lines(small, tmp_path, capsys):
    ids = [key[1] for key, one in small.questions.items() if one.gold][:3]
    cases = [{"dataset": "leases", "id": id, "gold": said, "answer": "right"}
             for id, said in zip(ids, ("right", "wrong", "unclear"), strict=True)]  # fmt: skip
    paths = []
    for name, given in (("Ada", cases), ("Ben", [{**case, "gold": "right"} for case in cases])):
        paths.append(tmp_path / f"{name}.json")
        told = review_of(name, *given).model_dump(mode="json")
        paths[-1].write_text(json.dumps({**told, "run": small.name}), encoding="utf-8")
    out = tmp_path / "out"
    assert main(["read", *map(str, paths), "--run", str(small.folder), "--out", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Ada: gold right in 1 of 2, 1 unclear; in the whole run about 50%"
    assert lines[1].startswith("Ada: answers right in 3 of 3; in the whole run about 100%")
    assert any(line.startswith("Ada and Ben on the gold: kappa 0.00") for line in lines)
    assert "Ada and Ben on the answers: kappa is undefined, they agree in 3 of 3" in lines
    assert "corrected: 0 questions" in lines and "not corrected: reviewers are divided: 1" in lines
    assert lines[-1] == f"review: {out / 'review.json'}" and not any(line.startswith("patch") for line in lines)
    told = json.loads((out / "review.json").read_text(encoding="utf-8"))
    assert told["reviewers"] == {"Ada": 3, "Ben": 3} and told["format"] == "exhibit-reviewed/1"
    assert told["left"] == {"reviewers are divided": [["leases", ids[1]]]} and told["corrected"] == []
    assert main(["read", str(paths[0]), "--run", str(small.folder), "--set-aside-wrong", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    [patch] = printed["patches"]
    assert [one.id for one in read_patch(small.folder / "review" / "patch-leases.json").questions] == [ids[1]]
    assert patch.endswith("review/patch-leases.json")


# ---------------------------------------------------------------- agreement


def test_what_was_said_is_told_by_question_and_by_what_it_is_of():
    review = review_of("Ada", {"id": 1, "gold": "right"}, {"id": 2, "answer": "wrong"}, {"id": 3, "gold": "unclear"})
    assert list(group_by_question([review])) == [("d", 1), ("d", 3)]
    assert collect_judgments(review, "gold") == {("d", 1): "right", ("d", 3): "unclear"}
    assert collect_judgments(review, "answer") == {("d", 2): "wrong"}
    rows = {("d", n): row(n, verdict) for n, verdict in enumerate(
        ("answered", "expected answer given", "failed", "wrong document", "gold not located"))}  # fmt: skip
    assert list(collect_verdicts(rows).values()) == ["right", "right", "wrong", "wrong"]
    marked = {("d", n): row(n, scores={"answer_correctness": mark}) for n, mark in enumerate((3.9, 4.0, None))}
    assert collect_marks(marked) == {("d", 0): "wrong", ("d", 1): "right"}


def test_a_share_counts_each_question_for_those_it_was_drawn_from():
    rows = {("d", n): row(n, labels={"kind": "a" if n < 8 else "b"}, filename=f"{n}.pdf") for n in range(10)}
    said = {0: "right", 1: "wrong", 8: "right", 9: "unclear", 77: "right"}
    cases = [{"id": id, "gold": gold} for id, gold in said.items()]
    [share] = compute_shares([review_of("Ada", *cases, by=("kind",))], rows)
    assert (share.reviewer, share.aspect, share.right, share.judged, share.unclear) == ("Ada", "gold", 2, 3, 1)
    assert share.estimate == pytest.approx((4 + 2) / 10)
    assert share.ci95 == pytest.approx((0.0, 1.0))
    [unclear] = compute_shares([review_of("Ada", {"id": 9, "gold": "unclear"})], rows)
    assert (unclear.judged, unclear.unclear, unclear.estimate, unclear.ci95) == (0, 1, None, None)
    one = dict.fromkeys(rows, row(filename="same.pdf"))
    assert compute_shares([review_of("Ada", *cases[:3])], one)[0].ci95 is None


def test_two_reviewers_are_compared_and_each_with_the_machines():
    rows = {("d", n): row(n, "answered" if n % 2 else "failed", filename=f"{n}.pdf") for n in range(6)}
    ada = review_of("Ada", *({"id": n, "answer": "right" if n % 2 else "wrong"} for n in range(6)))
    ben = review_of("Ben", *({"id": n, "answer": "right" if n < 3 else "unclear"} for n in range(6)))
    told = {(one.first, one.second): one for one in compute_agreements([ada, ben], rows)}
    assert set(told) == {("Ada", "Ben"), ("Ada", "the run's verdict"), ("Ben", "the run's verdict")}
    own = told["Ada", "the run's verdict"]
    assert (own.n, own.same, own.kappa, own.ci95) == (6, 6, 1.0, (1.0, 1.0))
    assert (told["Ada", "Ben"].n, told["Ada", "Ben"].same) == (6, 1) and told["Ben", "the run's verdict"].n == 3


def test_a_sample_takes_turns_and_is_shuffled():
    rows = {("d", n): row(n, labels={"kind": "abc"[n % 3]}) for n in range(30)}
    drawn = draw_sample(rows, by=["kind"], size=7, seed=4)
    kinds = [rows[key].labels["kind"] for key in drawn]
    assert sorted(map(kinds.count, "abc")) == [2, 2, 3] and kinds != sorted(kinds)
    assert kinds[:3] != ["a", "b", "c"] or kinds[3:6] != ["a", "b", "c"], "the next kind is not told by the last"
