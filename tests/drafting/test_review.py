"""The review of drafts: their order on the page, and the bundle after the judgments."""

import json
import re
import shutil

import pytest

from exhibit.schemas.validate import read_drafts, validate
from exhibit.viewer.review.make import main as review
from exhibit.viewer.review.reviews import DraftedBundle
from tests.drafting.test_draft import draft, write_contracts


@pytest.fixture(scope="module")
def drafted_once(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        source, out, _ = write_contracts(tmp_path_factory.mktemp("drafted"), patch)
        return out, *draft(source, out, "--impossible", "1")


@pytest.fixture
def drafted(drafted_once, tmp_path):
    """A copy of the drafted bundle, and its rows, its gold, and the drafts that wait for review."""
    out, *lines = drafted_once
    return shutil.copytree(out, tmp_path / "out"), *lines


def page_of(out, tmp_path, *flags):
    path = tmp_path / "page.html"
    assert review([str(out), "--out", str(path), *flags]) == 0
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    return json.loads(data)


def save_review(tmp_path, data, judge, reviewer="Ada"):
    """Return the file that the page saves when a reviewer judges every question."""
    about = {name: value for name, value in data["about"].items() if name != "drafted"}
    cases = [{"dataset": case["dataset"], "id": case["id"], **judge(case)} for case in data["cases"]]
    path = tmp_path / f"review-{reviewer}.json"
    path.write_text(json.dumps({**about, "reviewer": reviewer, "cases": cases}), encoding="utf-8")
    return path


def test_review_page_shows_unsure_drafts_before_a_sample_of_sure_drafts(drafted, tmp_path):
    out, _, _, waiting = drafted
    data = page_of(out, tmp_path, "--sample", "10")
    unsure = {line["id"] for line in waiting}
    order = [case["id"] in unsure for case in data["cases"]]
    assert data["about"]["drafted"] is True and order == sorted(order, reverse=True)
    assert sum(order) == min(7, len(unsure)) and len(order) == 10
    assert all(case["sheets"] for case in data["cases"] if case["gold"])


def test_review_apply_writes_judged_drafts_to_the_final_bundle(drafted, tmp_path):
    out, _, _, waiting = drafted
    data = page_of(out, tmp_path, "--sample", "12")
    first, second, third, *_ = [case["id"] for case in data["cases"]]

    def judge(case):
        if case["id"] == first:
            return {"gold": "wrong", "better": {"is_impossible": True}}
        if case["id"] == second:
            return {"gold": "right", "better": {"question": "In better words: who pays?"}}
        return {"gold": "wrong"} if case["id"] == third else {"gold": "right"}

    final = tmp_path / "final"
    assert review(["apply", str(save_review(tmp_path, data, judge)), "--bundle", str(out), "--out", str(final)]) == 0
    assert validate(final) == []
    made = {row["id"]: row for row in json.loads((final / "train.json").read_text("utf-8"))}
    lines = [json.loads(line) for line in (final / "gold.jsonl").read_text("utf-8").splitlines()]
    labels = {line["id"]: line["labels"] for line in lines}
    assert made[first]["is_impossible"] and labels[first]["judged_by"] == "Ada"
    assert made[second]["question"] == "In better words: who pays?" and labels[second]["draft"] == "judged"
    assert third not in made, "a wrong draft without correction is removed"
    info = json.loads((final / "bundle.json").read_text("utf-8"))
    assert info["draft"]["reviewed"] == 11 and "called wrong by a reviewer" in info["left_out"]
    left = [json.loads(line)["id"] for line in (final / "drafts.jsonl").read_text("utf-8").splitlines()]
    shown = {case["id"] for case in data["cases"]} & {line["id"] for line in waiting}
    assert not set(left) & set(made) and len(left) == len(waiting) - len(shown)
    assert "reviewed by a person" in (final / "README.md").read_text("utf-8")


def test_review_apply_reopens_only_rows_whose_gold_changed(contracts, tmp_path, capsys):
    source, out, _ = contracts
    draft(source, out)
    data = page_of(out, tmp_path, "--sample", "500")
    marked = {"filename": "Birch.txt.pdf", "spans": [[3, 40]], "text": "The deposit is returned within thirty days"}

    def judge(case):
        mended = case["id"] == birch["id"]
        better = {"gold": "wrong", "better": {"contexts": [marked]}} if mended else {"gold": "right"}
        return {"was": case["was"], **better}

    birch = next(case for case in data["cases"] if case["gold"] and case["gold"][0]["filename"] == marked["filename"])
    path = save_review(tmp_path, data, judge)
    before = {case["id"]: [gold["text"] for gold in case["gold"]] for case in data["cases"]}
    changed = source / "Alder.txt"
    words = changed.read_text("utf-8").replace("within thirty days", "within ninety days")
    changed.write_text(words.replace("SUPPLY AGREEMENT", "SUPPLY AGREEMENT\n\nwith annexes"), encoding="utf-8")
    draft(source, out, "--force")
    after = {id: [c.text for c in row.contexts] for id, (row, _) in DraftedBundle(out).rows.items()}
    moved = {id for id in after.keys() & before.keys() if before[id] != after[id]}
    assert moved and len(moved) < len(before) / 2
    capsys.readouterr()
    final = tmp_path / "final"
    assert review(["apply", str(path), "--bundle", str(out), "--out", str(final)]) == 0
    assert f"{len(moved)} questions are open again" in capsys.readouterr().err
    judged = {id for id, (_, gold) in DraftedBundle(final).rows.items() if gold[0].labels["draft"] == "judged"}
    assert judged == (after.keys() & before.keys()) - moved
    assert moved <= {draft.id for draft in read_drafts(final, DraftedBundle(final).bundle.files, set())}
    [context] = DraftedBundle(final).rows[birch["id"]][0].contexts
    assert context.text == marked["text"], "the gold is located again after its words moved"


def test_review_apply_combines_several_review_files(drafted, tmp_path):
    out, *_ = drafted
    first = page_of(out, tmp_path, "--sample", "4")
    file = save_review(tmp_path, first, lambda case: {"gold": "right", "was": case["was"]})
    second = page_of(out, tmp_path, "--sample", "500")
    fresh = [case for case in second["cases"] if case["id"] not in {case["id"] for case in first["cases"]}]
    two = save_review(
        tmp_path, {**second, "cases": fresh[:3]}, lambda case: {"gold": "right", "was": case["was"]}, "Ben"
    )
    final = tmp_path / "final"
    assert review(["apply", str(file), str(two), "--bundle", str(out), "--out", str(final)]) == 0
    assert json.loads((final / "bundle.json").read_text("utf-8"))["draft"]["reviewed"] == 7
    assert review(["apply", str(file), str(file), "--bundle", str(out), "--out", str(final), "--force"]) == 1


def read_applied(folder):
    """Return a bundle's labels by id, the ids of train.json, and the counts on its card."""
    rows = DraftedBundle(folder).rows
    info = json.loads((folder / "bundle.json").read_text("utf-8"))["draft"]
    kept = {row["id"] for row in json.loads((folder / "train.json").read_text("utf-8"))}
    return {id: gold[0].labels for id, (_, gold) in rows.items()}, kept, info


def test_second_review_of_a_bundle_preserves_judgments_of_the_first_review(drafted, tmp_path):
    out, _, _, waiting = drafted
    unsure = {line["id"] for line in waiting}
    first = page_of(out, tmp_path, "--sample", "12")
    shown = [case["id"] for case in first["cases"]]
    bad = shown[-1]  # a sure draft, because sure drafts come last
    first_bundle, second_bundle = tmp_path / "one", tmp_path / "two"
    path = save_review(
        tmp_path, first, lambda case: {"gold": "wrong" if case["id"] == bad else "right", "was": case["was"]}
    )
    assert review(["apply", str(path), "--bundle", str(out), "--out", str(first_bundle)]) == 0
    labels, kept, info = read_applied(first_bundle)
    approved = set(shown) - {bad}
    assert {id for id in labels if labels[id]["draft"] == "judged"} == approved <= kept
    checks = len(set(shown) - unsure)
    assert checks > 1 and approved & unsure
    assert (info["reviewed"], info["judged_sure"], info["wrong"]) == (11, checks, 1)

    second = page_of(first_bundle, tmp_path, "--sample", "500")
    assert {case["id"] for case in second["cases"]} == labels.keys() - approved, "no draft is shown twice"
    asked = sorted(id for id in labels.keys() - approved if labels[id]["drafted"] == "playbook")
    wrong = set(asked[::2])  # enough wrong drafts that the confidence of the others is fitted, and falls
    second["cases"] = [case for case in second["cases"] if case["id"] in wrong]
    assert len(wrong) >= 20
    path = save_review(tmp_path, second, lambda case: {"gold": "wrong", "was": case["was"]}, "Ben")
    assert review(["apply", str(path), "--bundle", str(first_bundle), "--out", str(second_bundle)]) == 0
    assert validate(second_bundle) == []
    before, (labels, kept, info) = labels, read_applied(second_bundle)
    assert approved <= kept and not wrong & labels.keys()
    assert {labels[id]["judged_by"] for id in approved} == {"Ada"}
    assert {labels[id]["draft"] for id in approved} == {"judged"}
    sure = sum(before[id]["draft"] != "unsure" for id in wrong)
    assert sure and (info["reviewed"], info["judged_sure"], info["wrong"]) == (11, checks + sure, 1 + sure)
    third = page_of(second_bundle, tmp_path, "--sample", "500")
    assert {case["id"] for case in third["cases"]} == labels.keys() - approved


def test_review_page_shows_at_most_3_passages_of_unsure_drafts(drafted, tmp_path):
    out, *_ = drafted
    data = page_of(out, tmp_path, "--sample", "500")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "A program drafted these questions" in text and "put to a system" not in text
    unsure = {draft.id for draft in read_drafts(out, DraftedBundle(out).bundle.files, set())}
    assert all(len(case["gold"]) <= 3 for case in data["cases"] if case["id"] in unsure)


def test_review_refuses_a_bundle_that_was_not_written_by_exhibit_draft(tmp_path, drafted, capsys):
    out, *_ = drafted
    info = json.loads((out / "bundle.json").read_text("utf-8"))
    (out / "bundle.json").write_text(json.dumps({**info, "draft": None}), encoding="utf-8")
    assert review([str(out), "--out", str(tmp_path / "page.html")]) == 1
    assert "not a bundle made by exhibit draft" in capsys.readouterr().err
