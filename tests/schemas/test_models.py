"""The models and the JSON Schema files generated from them agree."""

import json

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError

from exhibit.schemas.generate import FOLDER, generate
from exhibit.schemas.models import Gold, Row
from tests.rag.bundles import gold_line

ROW = {"id": 7, "question": "Who?", "answer": "Ann", "is_impossible": False, "contexts": [{"filename": "a.pdf"}]}
GOLD = {**gold_line(7, 0, "a.pdf", [[3, 9]], {"clause": "Parties"}), "pages": [1], "alternatives": [[[20, 26]]]}


def test_committed_schemas_equal_generated_schemas():
    for name, text in generate().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "change",
    [
        {"id": "7"}, {"id": -1}, {"id": True}, {"id": 7.0}, {"question": " \n"}, {"answer": ""},
        {"is_impossible": "false"}, {"is_impossible": None}, {"contexts": ["a string"]}, {"clause": "Parties"},
        {"contexts": [{"text": "no file"}]}, {"contexts": [{"filename": ""}]},
        {"contexts": [{"filename": "a.pdf", "page": 1}]},
    ],
)  # fmt: skip
def test_models_and_schemas_refuse_the_same_rows(change):
    row = {**ROW, **change}
    with pytest.raises(ValidationError):
        TypeAdapter(Row).validate_json(json.dumps(row))
    schema = json.loads((FOLDER / "train.schema.json").read_text(encoding="utf-8"))
    if change != {"id": 7.0}:  # JSON Schema calls 7.0 an integer; a strict reader of ids must not
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([row], schema)


def test_models_and_schemas_accept_the_same_rows():
    schema = json.loads((FOLDER / "train.schema.json").read_text(encoding="utf-8"))
    for row in (ROW, {**ROW, "contexts": []}, {**ROW, "contexts": [{"filename": "ü%20#x.pdf", "text": "words"}]}):
        jsonschema.validate([row], schema)
        assert TypeAdapter(Row).validate_json(json.dumps(row)).id == 7


@pytest.mark.parametrize("name", ["../a.pdf", "a/b.pdf", "..", ".", "/etc/passwd", "x" * 256, "a\0b"])
def test_row_refuses_a_filename_that_is_not_a_plain_basename(name):
    with pytest.raises(ValidationError):
        Row.model_validate({**ROW, "contexts": [{"filename": name}]})


@pytest.mark.parametrize(
    "name", ["it's & co.pdf", "a%2Fb.pdf", "#fragment.pdf", "c:d.pdf", "back\\slash.pdf", "é" * 127]
)
def test_row_accepts_unusual_but_legal_filenames(name):
    assert Row.model_validate({**ROW, "contexts": [{"filename": name}]}).contexts[0].filename == name


def test_row_refuses_a_passage_for_an_impossible_question():
    with pytest.raises(ValidationError, match="but a context has text"):
        Row.model_validate({**ROW, "is_impossible": True, "contexts": [{"filename": "a.pdf", "text": "here"}]})


@pytest.mark.parametrize(
    "change",
    [
        {"spans": [[9, 3]]}, {"spans": [[-1, 3]]}, {"spans": []}, {"alternatives": [[]]}, {"how": "absent"},
        {"how": "guessed"}, {"pages": [0]}, {"score": 1.5}, {"filename": None},
    ],
)  # fmt: skip
def test_gold_refuses_invalid_and_inconsistent_fields(change):
    assert Gold.model_validate_json(json.dumps(GOLD)).spans == [(3, 9)]
    with pytest.raises(ValidationError):
        Gold.model_validate_json(json.dumps({**GOLD, **change}))
