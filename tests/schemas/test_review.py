"""Reviews and patches: valid content, invalid content, and the message about a broken file."""

import hashlib
import json
from contextlib import nullcontext

import pytest
from pydantic import ValidationError

from exhibit.schemas import review as review_module
from exhibit.schemas.errors import SourceError
from exhibit.schemas.review import Better, Patch, Review, digest_gold, read_patch, read_review

PASSAGE = {"filename": "a.pdf", "spans": [[0, 4]], "text": "rent"}
SHA = "0" * 64
CORRECTION = {"id": 3, "was": SHA, "contexts": [PASSAGE], "reviewers": ["Ada"]}
PATCH = {"format": "exhibit-patch/1", "dataset": "leases", "about": "A slip."}
REVIEW = {
    "format": "exhibit-review/1", "review": "r1", "run": "run 1", "reviewer": "Ada",
    "sample": {"size": 2, "of": 9, "seed": 1, "by": ["dataset"]}, "cases": [{"dataset": "leases", "id": 1}],
}  # fmt: skip


def patch(**fields: object) -> Patch:
    return Patch.model_validate_json(json.dumps({**PATCH, **fields}))


def review(**fields: object) -> Review:
    return Review.model_validate_json(json.dumps({**REVIEW, **fields}))


def make_better(**fields: object) -> Better:
    return Better.model_validate_json(json.dumps(fields))


def test_corrected_question_cannot_have_passages_and_be_impossible():
    assert make_better(contexts=[PASSAGE]).has_correction and make_better(is_impossible=True).has_correction
    assert not make_better(answer="ten").has_correction
    with pytest.raises(ValidationError, match="is_impossible is true, but there are passages"):
        make_better(contexts=[PASSAGE], is_impossible=True)


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({}, True),
        ({"contexts": [], "is_impossible": True}, True),
        ({"contexts": []}, False),
        ({"reviewers": []}, False),
        ({"is_impossible": True}, False),
    ],
)
def test_patch_correction_either_has_passages_or_marks_its_question_as_impossible(fields, fits):
    refused = pytest.raises(ValidationError, match="must have contexts if is_impossible is false|at least 1 item")
    with nullcontext() if fits else refused:
        assert patch(corrections=[{**CORRECTION, **fields}]).corrections


def test_patch_and_review_refuse_duplicate_questions_and_documents():
    aside = {"filename": "a.pdf", "reason": "a draft"}
    with pytest.raises(ValidationError, match=r"the document a\.pdf occurs more than once"):
        patch(documents=[aside, aside])
    question = {"id": 3, "reason": "unclear"}
    assert patch(questions=[question, {**question, "id": 4}], documents=[aside]).questions[1].id == 4
    for twice in ({"questions": [question, question]}, {"questions": [question], "corrections": [CORRECTION]}):
        with pytest.raises(ValidationError, match="the question 3 occurs more than once"):
            patch(**twice)
    case = {"dataset": "leases", "id": 1}
    assert len(review(cases=[case, {**case, "id": 2}, {**case, "dataset": "ndas"}]).cases) == 3
    with pytest.raises(ValidationError, match="the case leases 1 occurs more than once"):
        review(cases=[case, case])


@pytest.mark.parametrize("fields", [{"unknown": 1}, {"format": "exhibit-patch/2"}, {"about": " "}, {"dataset": 5}])
def test_patch_refuses_invalid_fields_and_is_frozen(fields):
    with pytest.raises(ValidationError):
        patch(**fields)
    with pytest.raises(ValidationError, match="frozen"):
        patch().about = "other"  # type: ignore[misc]


def test_digest_gold_depends_on_files_words_and_their_order_but_not_on_white_space():
    content = json.dumps([["é.pdf", "the rent"], [None, ""]])
    assert digest_gold([("é.pdf", " the\n rent "), (None, None)]) == hashlib.sha256(content.encode("ascii")).hexdigest()
    assert digest_gold([("a", "x"), ("b", "y")]) != digest_gold([("b", "y"), ("a", "x")])


def test_read_patch_and_read_review_report_an_invalid_file(tmp_path, monkeypatch):
    path = tmp_path / "patch.json"
    path.write_text(json.dumps(PATCH), encoding="utf-8")
    assert read_patch(path).dataset == "leases"
    with pytest.raises(
        SourceError, match=r"patch\.json: is not a valid review: format: Input should be 'exhibit-review/1'; "
    ):
        read_review(path)
    path.write_text(json.dumps({str(number): 0 for number in range(9)}), encoding="utf-8")
    with pytest.raises(SourceError) as told:
        read_patch(path)
    assert str(told.value).count("; ") == 4, "5 of 12 faults are shown"
    path.write_text("[", encoding="utf-8")
    with pytest.raises(SourceError, match=r"is not a valid patch: all of it: Invalid JSON"):
        read_patch(path)
    with pytest.raises(SourceError, match=r"none\.json: missing"):
        read_patch(tmp_path / "none.json")
    monkeypatch.setattr(review_module, "LARGEST_FILE", 20)
    path.write_bytes(b" " * 21)
    with pytest.raises(SourceError, match="cannot be read: more than 20 bytes"):
        read_review(path)
