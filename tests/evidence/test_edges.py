"""Faults that the check of gold names, and the flags of scans."""

from __future__ import annotations

import argparse
import json

import pytest

from exhibit.evidence import Document
from exhibit.evidence.check import faults_of
from exhibit.evidence.scan import add_ocr_arguments, read_ocr_flags
from exhibit.schemas.bundle import LooseContext, Question
from exhibit.schemas.models import Gold

# ---------------------------------------------------------------- checking gold


def question(*quotes: str) -> Question:
    return Question(1, "?", "x", contexts=tuple(LooseContext("a.txt", quote) for quote in quotes))


def gold(**fields: object) -> Gold:
    told = {"id": 1, "filename": "a.txt", "context": 0, "spans": [[0, 4]], "alternatives": [], "pages": []}
    return Gold.model_validate_json(json.dumps({**told, "how": "exact", **fields}))


def faults(line: Gold, text: str = "rent is due", quote: str = "rent") -> list[str]:
    return list(faults_of(line, question(quote), Document("a.txt", text)))


def test_gold_check_reports_each_fault_of_a_gold_line():
    assert faults(gold()) == []
    assert faults(gold(context=1)) == ["there is no context 1 in train.json"]
    assert faults(gold(spans=[[5, 12]])) == ["span (5, 12) is beyond the end of the text (11)"]
    assert faults(gold(spans=[[5, 11]]), quote="is due") == []
    assert faults(gold(spans=[[0, 5]]), quote="rents")[0].startswith(
        "span [(0, 5)] contains other words (similarity 0."
    )
    assert faults(gold(pages=[2])) == ["is on pages [], not [2]"]
    assert len(faults(gold(alternatives=[[[5, 7]]]))) == 1


def test_gold_check_requires_equal_words_only_for_exact_gold():
    text = "x" * 39 + "y"
    assert len(faults(gold(spans=[[0, 40]]), text, "x" * 40)) == 1
    assert faults(gold(spans=[[0, 40]], how="fuzzy", score=0.975), text, "x" * 40) == []
    assert faults(gold(spans=[[0, 40]], how="fuzzy", score=0.9), "x" * 37 + "yyy", "x" * 40) != []


def test_gold_check_requires_a_section_to_begin_with_its_heading():
    told = {"how": "section", "spans": [[0, 11]], "labels": {"heading": "Rent"}}
    assert faults(gold(**told), quote="rent is due") == []
    assert "does not begin with the heading" in faults(gold(**{**told, "spans": [[5, 11]]}), quote="is due")[0]
    loud = faults(gold(**{**told, "labels": {"heading": "Re-nt"}}), "RENT is due", "rent is due")
    assert loud == [], "neither case nor a hyphen makes another heading"
    short = faults(gold(**{**told, "spans": [[0, 3], [5, 11]]}), quote="ren<omitted>is due")
    assert short == ["span (0, 3) does not begin with the heading 'Rent'"], "the heading is whole in its first span"
    assert faults(gold(**{**told, "spans": [[0, 4], [5, 11]]}), quote="rent<omitted>is due") == []
    assert faults(gold(**{**told, "labels": {}}), quote="rent is due") == [], "a provision has no heading"


# ---------------------------------------------------------------- scans


def test_ocr_flags_have_defaults_and_refuse_an_invalid_language(capsys):
    parser = argparse.ArgumentParser()
    add_ocr_arguments(parser)
    assert read_ocr_flags(parser.parse_args([])) is None
    assert parser.parse_args(["--ocr-language", "cs_CZ"]).ocr_language == "cs_CZ"
    assert (parser.parse_args([]).ocr_language, parser.parse_args([]).ocr_engine) == ("en", "auto")
    for wrong in ("", "c s", "../x"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--ocr-language", wrong])
        assert "must be a language tag" in capsys.readouterr().err
