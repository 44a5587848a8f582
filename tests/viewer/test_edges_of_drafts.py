"""Edge cases of draft reviews: the drafts shown, the effect of judgments, and other drafts' confidence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo, DraftInfo
from exhibit.schemas.review import Review, digest_gold
from exhibit.storage.bundle import open_bundle
from exhibit.viewer.review import drafts
from exhibit.viewer.review.drafts import DraftedBundle, apply_reviews

CLAUSE = "Clause {} says so."


def a_draft(id: int, **labels: Any) -> dict[str, Any]:
    """A row and its line of gold, as train.json, gold.jsonl and drafts.jsonl have them."""
    said, start = CLAUSE.format(f"{id:04}"), id * 19
    gold = {"id": id, "context": 0, "filename": "a.txt", "pages": [], "spans": [[start, start + 18]],
            "alternatives": [], "how": "exact", "score": 1.0, "labels": {"draft": "sure", **labels}}  # fmt: skip
    row = {"id": id, "question": f"Q{id}?", "answer": said, "is_impossible": False}
    return {**row, "contexts": [{"filename": "a.txt", "text": said}], "gold": [gold]}


@pytest.fixture
def bundle_of(tmp_path, monkeypatch):
    """A function that makes a bundle of these drafts; later writes to it are kept in memory."""

    def make(*given: dict[str, Any], **info: Any) -> DraftedBundle:
        folder = tmp_path / "leases"
        (folder / "corpus").mkdir(parents=True)
        text = "".join(CLAUSE.format(f"{n:04}") + "\n" for n in range(1 + max(one["id"] for one in given)))
        (folder / "corpus" / "a.txt").write_text(text, encoding="utf-8")
        waiting = [one for one in given if one["gold"] and one["gold"][0]["labels"].get("draft") == "unsure"]
        sure = [one for one in given if one not in waiting]
        rows = [{name: value for name, value in one.items() if name != "gold"} for one in sure]
        (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
        lines = [json.dumps(line) + "\n" for one in sure for line in one["gold"]]
        (folder / "gold.jsonl").write_text("".join(lines), encoding="utf-8")
        if waiting:
            lines = [json.dumps(one) + "\n" for one in waiting]
            (folder / "drafts.jsonl").write_text("".join(lines), encoding="utf-8")
        whole = BundleInfo.model_construct(draft=DraftInfo(**info))
        monkeypatch.setattr(drafts, "open_bundle", lambda path: replace(open_bundle(path), info=whole))
        return DraftedBundle(folder)

    return make


def judged(drafted: DraftedBundle, reviewer: str, **cases: dict[str, Any]) -> Review:
    """A review of rows: `q3={"gold": "right"}` is of row 3."""
    told = [{"dataset": drafted.name, "id": int(name[1:]), **case} for name, case in cases.items()]
    about = {"format": "exhibit-review/1", "review": "r", "run": drafted.name, "reviewer": reviewer}
    sample = {"size": len(told), "of": 9, "seed": 1, "by": []}
    return Review.model_validate_json(json.dumps({**about, "sample": sample, "cases": told}))


@pytest.fixture
def applied(monkeypatch):
    """A function that applies reviews and returns the result: rows, labels, waiting drafts, open questions."""

    def apply(drafted: DraftedBundle, *reviews: Review) -> Any:
        kept: dict[str, Any] = {}

        def write(bundle, info, changed, out, extra, *, force):
            kept.update(info=info.draft, rows={row.id: row for row in changed.rows}, left_out=changed.left_out)
            kept["labels"] = {line.id: line.labels for line in changed.gold}
            [text] = extra.values()
            kept["waiting"] = {line["id"]: line for line in map(json.loads, text.splitlines())}

        monkeypatch.setattr(drafts, "write_changed", write)
        info, reopened = apply_reviews(reviews, drafted, Path("out"))
        assert info == kept["info"]
        return {**kept, "reopened": reopened}

    return apply


# ---------------------------------------------------------------- what is shown


def test_a_drafted_bundle_is_read_with_what_waits_last(bundle_of, tmp_path):
    drafted = bundle_of(a_draft(2, confidence=0.9, drafted="playbook"), a_draft(1, draft="unsure"), a_draft(0))
    assert drafted.name == "leases" and list(drafted.rows) == [2, 0, 1] and list(drafted.waiting) == [1]
    question = drafted.questions["leases", 2]
    assert (question.question, question.truth, question.filename) == ("Q2?", "Clause 0002 says so.", "a.txt")
    assert (question.reply.confidence, question.verdict, question.is_impossible) == (0.9, "sure", False)
    [gold] = question.gold
    assert (gold.text, gold.places, gold.filename) == ("Clause 0002 says so.", [[(38, 56)]], "a.txt")
    assert drafted.questions["leases", 0].reply.confidence is None
    document = drafted.document("leases", "a.txt")
    assert document is not None and document.text.startswith("Clause 0000") and drafted.document("", "b.txt") is None


def test_a_row_without_gold_and_one_whose_gold_is_absent_are_read(bundle_of):
    bare = {**a_draft(3), "gold": []}
    absent = a_draft(4, draft="absent")
    absent["gold"][0] |= {"context": None, "spans": [], "how": "absent"}
    absent |= {"contexts": [], "is_impossible": True}
    drafted = bundle_of(bare, absent)
    assert drafted.questions["leases", 3].gold == [] and drafted.questions["leases", 3].filename is None
    assert drafted.questions["leases", 3].labels == {} and drafted.questions["leases", 3].verdict == ""
    assert drafted.questions["leases", 4].gold == [] and drafted.questions["leases", 4].filename == "a.txt"


def test_a_bundle_that_nobody_drafted_is_refused(tmp_path, bundle_of, monkeypatch):
    folder = bundle_of(a_draft(0)).folder
    for info in (None, BundleInfo.model_construct(draft=None)):
        monkeypatch.setattr(drafts, "open_bundle", lambda path, info=info: replace(open_bundle(path), info=info))
        with pytest.raises(BundleError, match="not a bundle made by exhibit draft; evaluate it"):
            DraftedBundle(folder)


@pytest.mark.parametrize(
    ("size", "unsure", "checks"),
    [(1, [3], 0), (2, [3], 1), (4, [3, 5, 4], 1), (10, [3, 5, 4, 7, 6, 8, 9], 3), (20, [3, 5, 4, 7, 6, 8, 9], 13),
     (99, [3, 5, 4, 7, 6, 8, 9], 30)],
)  # fmt: skip
def test_the_least_sure_and_rarest_come_first_and_three_in_ten_are_checks(bundle_of, size, unsure, checks):
    told = [(3, 0.5, "b"), (4, 0.6, "b"), (5, 0.4, "a"), (6, 0.3, "b"), (7, 0.7, "a"), (8, 0.9, "b"), (9, None, "b")]
    waiting = [a_draft(id, draft="unsure", asks_for=kind, **({} if sure is None else {"confidence": sure}))
               for id, sure, kind in told]  # fmt: skip
    sure = [a_draft(id) for id in range(20, 50)]
    shown = [id for _, id in bundle_of(*sure, *waiting).choose_worth_judging(size)]
    assert shown[: len(shown) - checks] == unsure
    assert shown[len(shown) - checks :] == sorted(range(20, 50), key=lambda id: id * 2654435761 % 2**32)[:checks]


def test_what_a_person_judged_or_wrote_is_shown_only_when_nothing_else_is_left(bundle_of):
    done = [a_draft(id, draft="judged", judged_by="Ada") for id in range(20, 30)]
    wrote = a_draft(30, added_by="Ada")
    del wrote["gold"][0]["labels"]["draft"]
    drafted = bundle_of(*done, wrote, a_draft(1, draft="unsure", confidence=0.5), a_draft(2))
    assert drafted.choose_worth_judging(10) == [("leases", 1), ("leases", 2)]
    del drafted.rows[1]
    vars(drafted).pop("questions")
    assert drafted.choose_worth_judging(10) == [("leases", 2)]
    del drafted.rows[2]
    vars(drafted).pop("questions")
    shown = [id for _, id in drafted.choose_worth_judging(4)]
    assert shown == sorted(range(20, 31), key=lambda id: id * 2654435761 % 2**32)[:4]


# ---------------------------------------------------------------- what judgments make


def test_judgments_keep_mend_and_leave_out_rows(bundle_of, applied):
    better = {"contexts": [{"filename": "a.txt", "spans": [[0, 18]], "text": "Clause 0000 says so."}]}
    better["contexts"][0] |= {"spans": [[0, 20]]}
    drafted = bundle_of(
        *(a_draft(id) for id in range(1, 7)), a_draft(7, draft="unsure"), a_draft(8, draft="unsure"),
        reviewed=10, judged_sure=20, wrong=3,
    )  # fmt: skip
    ada = judged(
        drafted, "Ada", q1={"gold": "right"}, q2={"gold": "wrong"}, q3={"gold": "wrong", "better": better},
        q4={"gold": "right", "better": {"question": " Better? "}}, q5={"gold": "unclear"}, q6={"gold": "right"},
        q7={"gold": "right"}, q99={"gold": "right"},
    )  # fmt: skip
    ben = judged(drafted, "Ben", q1={"gold": "right"}, q6={"gold": "wrong"})
    told = applied(drafted, ada, ben)
    assert list(told["rows"]) == [1, 3, 4, 5, 7] and list(told["waiting"]) == [8] and told["reopened"] == 0
    assert told["labels"][1] == {"draft": "judged", "judged_by": "Ada, Ben"} and told["labels"][5] == {"draft": "sure"}
    assert told["rows"][4].question == "Better?" and told["rows"][1].question == "Q1?"
    assert told["rows"][3].answer == "Clause 0000 says so." and told["labels"][3]["judged_by"] == "Ada"
    assert told["waiting"][8]["gold"][0]["labels"] == {"draft": "unsure"}
    assert told["left_out"] == {"called wrong by a reviewer": ["row 2: Q2?", "row 6: Q6?"]}
    info = told["info"]
    assert (info.sure, info.unsure, info.reviewed, info.judged_sure, info.wrong) == (5, 1, 14, 25, 6)


def test_a_judgment_of_other_words_opens_a_row_again(bundle_of, applied):
    drafted = bundle_of(a_draft(1), a_draft(2), a_draft(3))
    now = digest_gold([("a.txt", "Clause 0001 says so.")])
    gone = {
        "contexts": [{"filename": "a.txt", "spans": [[0, 5]], "text": "Words that are nowhere to be found at all."}]
    }
    told = applied(drafted, judged(
        drafted, "Ada", q1={"gold": "right", "was": now}, q2={"gold": "right", "was": now},
        q3={"gold": "wrong", "better": gone},
    ))  # fmt: skip
    assert told["reopened"] == 2 and list(told["rows"]) == [1] and list(told["waiting"]) == [2, 3]
    assert told["waiting"][2]["gold"][0]["labels"]["draft"] == "unsure"


@pytest.mark.parametrize(
    ("wrong", "of", "stays"), [(1, 5, True), (2, 5, False), (4, 4, True), (2, 10, True), (3, 10, False)]
)
def test_a_kind_that_is_wrong_in_more_than_a_fifth_of_five_waits(bundle_of, applied, wrong, of, stays):
    headings = [a_draft(id, drafted="heading") for id in range(1, 12)]
    drafted = bundle_of(*headings, a_draft(20, drafted="table"), a_draft(21, drafted="table", draft="unsure"),
                        a_draft(22, drafted="playbook", confidence=0.9, asks_for="lease/rent"))  # fmt: skip
    said = {f"q{id}": {"gold": "wrong" if id <= wrong else "right"} for id in range(1, 1 + of)}
    told = applied(drafted, judged(drafted, "Ada", **said))
    assert (11 in told["rows"]) is stays is (11 not in told["waiting"])
    assert {20, 22} <= set(told["rows"]) and 21 in told["waiting"]


def fitted(confidences: list[float], rights: list[bool]) -> tuple[float, float]:
    """Return the best-fitting slope and offset, with a prior of five judgments, found by gradient descent."""
    told = np.clip(confidences, 1e-3, 1 - 1e-3)  # nothing is quite sure
    x = np.log(told / (1 - told))
    table, y, moved = np.stack([x - x.mean(), np.ones(len(x))], axis=1), np.array(rights, float), np.zeros(2)
    for _ in range(4_000):
        p = 1 / (1 + np.exp(-(x + table @ moved)))
        moved -= 0.05 * (table.T @ (p - y) + 5 * moved)
    return float(1 + moved[0]), float(moved[1] - moved[0] * x.mean())


@pytest.mark.parametrize("few", [False, True])
def test_judgments_move_the_confidence_from_which_on_drafts_are_sure(bundle_of, applied, few):
    grid = [round(0.5 + 0.0048 * n, 4) for n in range(100)]
    labels = {"drafted": "playbook", "asks_for": "lease/rent"}
    kept = [a_draft(100 + n, confidence=sure, **labels) for n, sure in enumerate(grid)]
    absent = [a_draft(300 + n, confidence=0.6, **{**labels, "draft": "absent"}) for n in range(2)]
    other = [
        a_draft(400, confidence=0.55, **{**labels, "asks_for": "deed/rent"}),
        a_draft(500, confidence=1.0, **labels),
    ]
    asked = [round(0.5 + 0.02 * n, 4) for n in range(24)] + [0.0, 1.0]
    right = [sure > 0.72 or n % 5 == 0 for n, sure in enumerate(asked)]
    rows = [a_draft(1 + n, confidence=sure, **{**labels, "draft": "sure" if sure else "unsure"})
            for n, sure in enumerate(asked)]  # fmt: skip
    drafted = bundle_of(*kept, *absent, *other, *rows)
    said = {f"q{1 + n}": {"gold": "right" if well else "wrong"} for n, well in enumerate(right)}
    if few:
        told = applied(drafted, judged(drafted, "Ada", **dict(list(said.items())[:19])))
        assert {100 + n for n in range(100)} <= set(told["rows"]), "nineteen say too little"
        return
    told = applied(drafted, judged(drafted, "Ada", **said))
    slope, offset = fitted(asked, right)
    moved = {n: slope * np.log(sure / (1 - sure)) + offset for n, sure in enumerate(grid)}
    assert {n for n in moved if 100 + n in told["rows"]} == {n for n, odds in moved.items() if odds >= 0.0}
    assert 10 < sum(100 + n in told["rows"] for n in moved) < 90
    assert 500 in told["rows"], "the surest"
    assert (300 in told["rows"]) == (slope * np.log(0.6 / 0.4) + offset >= np.log(0.6 / 0.4))
    assert (400 in told["rows"]) == (slope * np.log(0.55 / 0.45) + offset >= np.log(0.55 / 0.45))


def test_a_second_judgment_of_a_row_is_no_second_judgment_of_a_draft(bundle_of, applied):
    done = [a_draft(id, draft="judged", judged_by="Ada", drafted="heading") for id in range(1, 8)]
    drafted = bundle_of(*done, a_draft(8, drafted="heading"), a_draft(9, drafted="heading"),
                        reviewed=7, judged_sure=7, wrong=1)  # fmt: skip
    said = {f"q{id}": {"gold": "wrong" if id < 4 else "right"} for id in (1, 2, 3, 4, 5, 8)}
    told = applied(drafted, judged(drafted, "Ben", **said))
    assert list(told["rows"]) == [4, 5, 6, 7, 8, 9] and not told["waiting"], (
        "three wrong of six, but of rows, not drafts"
    )
    assert [told["labels"][id].get("judged_by") for id in told["rows"]] == ["Ben", "Ben", "Ada", "Ada", "Ben", None]
    info = told["info"]
    assert (info.reviewed, info.judged_sure, info.wrong) == (5, 8, 1), "of train.json; once each; once each"


def test_an_older_judgment_of_a_row_that_was_corrected_since_is_ignored(bundle_of, applied):
    nowhere = {"contexts": [{"filename": "a.txt", "spans": [[0, 5]], "text": "Words that are nowhere to be found."}]}
    drafted = bundle_of(*(a_draft(id, draft="judged", judged_by="Ada") for id in (1, 2)), reviewed=2)
    old = digest_gold([("a.txt", "What the draft proposed.")])
    told = applied(drafted, judged(drafted, "Ada", q1={"gold": "wrong", "was": old}, q2={"better": nowhere}))
    assert list(told["rows"]) == [1] and told["labels"][1] == {"draft": "judged", "judged_by": "Ada"}
    assert list(told["waiting"]) == [2] and told["reopened"] == 1, "a person found it wrong now"
    assert told["info"].reviewed == 1


def test_what_a_person_wrote_and_doubts_again_waits_and_is_shown(bundle_of):
    drafted = bundle_of(a_draft(1, draft="unsure", added_by="Ada"), a_draft(2, draft="judged"))
    assert drafted.choose_worth_judging(5) == [("leases", 1)]


def test_rows_of_an_earlier_review_stay_and_do_not_lower_the_level(bundle_of, applied):
    labels = {"drafted": "playbook", "asks_for": "lease/rent"}
    done = [a_draft(id, confidence=0.1 * id, draft="judged", judged_by="Ada", **labels) for id in (1, 2)]
    sure = [a_draft(10 + n, confidence=0.9, **labels) for n in range(24)]
    waits = a_draft(40, confidence=0.3, draft="unsure", **labels)
    drafted = bundle_of(*done, *sure, waits, reviewed=2)
    told = applied(drafted, judged(drafted, "Ben", **{f"q{10 + n}": {"gold": "right"} for n in range(22)}))
    assert {1, 2, 32, 33} <= set(told["rows"]) and told["labels"][1]["judged_by"] == "Ada"
    assert list(told["waiting"]) == [40], "0.9 is the level, not 0.1 or 0.2"
    assert (told["info"].reviewed, told["info"].judged_sure, told["info"].wrong) == (24, 22, 0)
