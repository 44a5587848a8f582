"""Small guarantees of schemas/: which line, field, default and message."""

from __future__ import annotations

import errno
import json
import logging
import os

import pytest
from pydantic import ValidationError

from exhibit.runtime.command import (
    Invocation,
    guarded,
    is_quiet,
    print_error,
    print_note,
    rename_commands,
    set_invocation,
)
from exhibit.runtime.secrets import is_secret_name, remember_secret, scrub, scrub_logs
from exhibit.schemas import generate
from exhibit.schemas.bundle import Question, read_gold, read_info, read_questions, write_info
from exhibit.schemas.errors import BundleError, ToolkitError, describe_disk_error, escape_surrogates
from exhibit.schemas.models import Account, BundleInfo, Gold
from exhibit.schemas.run_folder import is_secret_setting

GOLD = {"id": 1, "context": 0, "filename": "a.pdf", "pages": [1], "spans": [[0, 4]], "alternatives": [], "how": "exact"}


def test_a_bad_line_of_gold_is_named_by_its_number_and_first_fault(tmp_path):
    path = tmp_path / "gold.jsonl"
    bad = {**GOLD, "id": -1, "pages": [0]}
    path.write_text("\n".join(json.dumps(row) for row in (GOLD, GOLD, bad)), encoding="utf-8")
    lines = read_gold(path)
    assert [next(lines).id, next(lines).id] == [1, 1]
    with pytest.raises(BundleError, match=r"gold\.jsonl: line 3: id: Input should be greater than or equal to 0"):
        next(lines)
    path.write_text(json.dumps({**GOLD, "spans": []}), encoding="utf-8")
    with pytest.raises(BundleError, match=r"line 1: all of it: Value error, must have no spans if"):
        next(read_gold(path))


def test_a_bad_bundle_json_is_named_by_its_first_fault(tmp_path):
    (tmp_path / "bundle.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BundleError) as told:
        read_info(tmp_path / "bundle.json")
    assert "Field required" in str(told.value) and "\n" not in str(told.value)
    (tmp_path / "bundle.json").write_text('{"zzz": 1, "schema": 5}', encoding="utf-8")
    with pytest.raises(BundleError, match=r"bundle\.json: [a-y_]+: "):
        read_info(tmp_path / "bundle.json")


def questions(tmp_path, *rows: object):
    (tmp_path / "train.json").write_text(json.dumps(list(rows)), encoding="utf-8")
    return read_questions(tmp_path / "train.json")


ROW = {"question": "?", "answer": "x"}


def test_what_a_row_leaves_out_has_its_usual_value(tmp_path):
    plain, named, other, told = questions(
        tmp_path, ROW, {**ROW, "query_id": "q"}, {**ROW, "id": None, "query_id": 7}, {**ROW, "is_impossible": True}
    )
    assert (plain.id, plain.is_impossible, plain.contexts) == (0, False, ())
    assert (named.id, other.id, told.id, told.is_impossible) == ("q", 7, 3, True)
    [row] = questions(tmp_path, {**ROW, "contexts": ["a", "b"]})
    assert [(passage.filename, passage.text) for passage in row.contexts] == [(None, "a"), (None, "b")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (5, "row 0: Input should be a valid dictionary"),
        (None, "row 0: Input should be a valid dictionary"),
        (True, "row 0: Input should be a valid dictionary"),
        ([], "row 0: Input should be a valid dictionary"),
        ({**ROW, "question": " "}, "question: a non-empty string is required"),
        ({**ROW, "id": True}, "id.int: Input should be a valid integer"),
        ({**ROW, "id": 1.5}, "id.int: Input should be a valid integer"),
        ({**ROW, "is_impossible": 0}, "is_impossible: Input should be a valid boolean"),
        ({**ROW, "contexts": {}}, "contexts: Input should be a valid list"),
        ({**ROW, "contexts": ["a", {"filename": "b"}]}, "contexts: has both strings and objects"),
        ({**ROW, "contexts": [5]}, "contexts.0: Input should be a dictionary"),
        ({**ROW, "contexts": [{"filename": ""}]}, "contexts.0.filename: a non-empty string is required"),
        ({**ROW, "contexts": [{"filename": "a", "text": 5}]}, "contexts.0.text: Input should be a valid string"),
    ],
)
def test_each_fault_of_a_row(tmp_path, row, message):
    with pytest.raises(BundleError) as told:
        questions(tmp_path, row)
    assert message in str(told.value)


def test_an_id_twice_and_no_array(tmp_path):
    with pytest.raises(BundleError, match="id 1 occurs more than once"):
        questions(tmp_path, {**ROW, "id": 1}, {**ROW, "id": 1})
    (tmp_path / "train.json").write_text('"x"', encoding="utf-8")
    with pytest.raises(BundleError, match="must be a JSON array of objects"):
        read_questions(tmp_path / "train.json")


# ---------------------------------------------------------------- commands


def test_commands_are_named_as_they_were_called_the_longest_name_first():
    names = {"python -m converters": "exhibit convert", "python -m converters.web": "exhibit convert web"}
    with set_invocation(Invocation(names)):
        assert rename_commands("python -m converters.web, python -m converters, python -m converters.mine") == (
            "exhibit convert web, exhibit convert, python -m converters.mine"
        )
    assert rename_commands("python -m converters.web") == "python -m converters.web"


def test_quiet_leaves_out_notes_and_never_errors_and_verbose_says_where(capsys):
    with set_invocation(Invocation(quiet=True)):
        assert is_quiet()
        print_note("a note")
        print_error(ToolkitError("one"))
    assert capsys.readouterr().err == "error: one\n" and not is_quiet()
    with set_invocation(Invocation(verbose=True)):
        print_error(ToolkitError("one"))
    assert capsys.readouterr().err.startswith("exhibit.schemas.errors.ToolkitError: one\n")


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "/x: No space left on device; free some space"),
        (errno.EROFS, "/x: Read-only file system; free some space"),
    ],
)
def test_trouble_with_files_is_an_error_in_words_and_says_what_to_do(capsys, number, message):
    @guarded()
    def main(error: OSError) -> int:
        raise error

    assert main(OSError(number, os.strerror(number), "/x")) == 1
    assert message in capsys.readouterr().err
    assert main(OSError(errno.EIO, "odd")) == 1
    assert capsys.readouterr().err.startswith("error: the disk: odd; is the path right")
    assert (
        describe_disk_error(OSError(errno.ENOSPC, "full"))
        == "the disk: full; free some space, or choose another folder"
    )


def test_words_of_an_error_can_be_printed_anywhere():
    assert str(ToolkitError("a\udcff")) == "a\\udcff" == escape_surrogates("a\udcff") and str(ToolkitError()) == ""


# ---------------------------------------------------------------- schema files


def test_schema_files_are_written_when_they_differ(tmp_path):
    assert generate.write_schemas(tmp_path / "json") == list(generate.SCHEMAS)
    assert generate.write_schemas(tmp_path / "json") == []
    gold = tmp_path / "json" / "gold.schema.json"
    gold.write_text("{}", encoding="utf-8")
    assert generate.write_schemas(tmp_path / "json") == ["gold.schema.json"]
    assert json.loads(gold.read_text(encoding="utf-8"))["$schema"].endswith("schema")


# ---------------------------------------------------------------- secrets


def test_logs_are_scrubbed_with_their_tracebacks_and_only_meanwhile(caplog):
    remember_secret("marmot-0815")
    log = logging.getLogger("scrub")
    with scrub_logs():
        log.error("sent %s", "marmot-0815")
        log.error("nothing secret in %s", "this")
        try:
            raise ValueError("marmot-0815")
        except ValueError:
            log.exception("failed")
        broken = logging.getLogRecordFactory()("scrub", logging.ERROR, "x.py", 1, "bad %d", ("args",), None)
    told = [record.getMessage() for record in caplog.records[:3]]
    assert told == ["sent ***", "nothing secret in this", "failed"]
    assert caplog.records[1].args == ("this",), "what holds no secret is as it was"
    assert "ValueError: ***" in (caplog.records[2].exc_text or "") and caplog.records[2].exc_info is None
    assert broken.args == ("args",), "logging reports it itself"
    log.error("sent %s", "marmot-0815")
    assert caplog.records[3].getMessage() == "sent marmot-0815"


@pytest.mark.parametrize(("value", "hidden"), [("abc-1234", True), ("abc-123", False), ("abcdefgh", False)])
def test_the_environments_secrets_have_eight_characters_and_are_no_words(monkeypatch, value, hidden):
    monkeypatch.setenv("MY_TOKEN", value)
    monkeypatch.setenv("MY_NAME", "visible-name")
    assert (scrub(f"it is {value} visible-name") == "it is *** visible-name") is hidden
    assert is_secret_name("MY_TOKEN") and scrub("x y-z", "y-z", None) == "x ***"
    assert scrub("x y-z-1", "y-z", "y-z-1") == "x ***", "the longest first, or a part of it would stay"


def test_bundle_json_is_indented_by_one_and_ends_with_a_line(tmp_path):
    write_info(BundleInfo.model_construct(name="leases", documents=[]), tmp_path / "bundle.json")
    text = (tmp_path / "bundle.json").read_bytes()
    assert text.startswith(b'{\n "') and b'\n "name": "leases"' in text and text.endswith(b"\n}\n")


@pytest.mark.parametrize(
    ("name", "fits"), [("é" * 127 + "a", True), ("é" * 128, False), ("a" * 255, True), ("a" * 256, False)]
)
def test_a_name_has_255_bytes_at_most(name, fits):
    told = {**GOLD, "filename": name}
    if fits:
        assert Gold.model_validate_json(json.dumps(told)).filename == name
    else:
        with pytest.raises(ValidationError):
            Gold.model_validate_json(json.dumps(told))


@pytest.mark.parametrize(("span", "fits"), [([0, 1], True), ([1, 1], False), ([2, 1], False), ([-1, 1], False)])
def test_a_span_has_its_start_before_its_end(span, fits):
    told = json.dumps({**GOLD, "spans": [span]})
    if fits:
        assert Gold.model_validate_json(told).spans == [(0, 1)]
    else:
        with pytest.raises(ValidationError):
            Gold.model_validate_json(told)


def test_an_account_adds_up():
    assert Account(given=5, kept=3, left_out={"empty": 1, "broken": 1}).given == 5
    for kept in (2, 4):
        with pytest.raises(ValidationError, match="given must be the sum"):
            Account(given=5, kept=kept, left_out={"empty": 1, "broken": 1})


@pytest.mark.parametrize(("name", "secret"), [("judge.api_key", True), ("max_tokens", False), ("key_field", False)])
def test_a_setting_is_a_secret_by_its_name(name, secret):
    assert is_secret_setting(name) is secret


def test_a_question_is_answerable_unless_told_otherwise():
    assert not Question(1, "Who pays?", "Alder").is_impossible
