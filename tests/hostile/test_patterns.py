"""No text makes a regular expression of the product take more than linear time."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("hostile_patterns", Path(__file__).with_name("patterns.py"))
patterns = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = patterns
spec.loader.exec_module(patterns)


def test_every_expression_is_linear_on_texts_made_from_itself():
    checked = [one for one in patterns.expressions() if one.where not in patterns.SHORT]
    assert len(checked) > 300
    slow = [found for one in checked if (found := patterns.slowness(one)) is not None]
    assert slow == []


@pytest.mark.parametrize(
    "written",
    [r"(a|a)*b", r"\s*<think>", r"(?:<!--.*?-->\s*)*<html", r"<meta\b[^>]*>", r"\d+\s*-\s*\d+", r"(?:x+x+)+y"],
)
def test_what_is_not_linear_is_found_out(written):
    one = patterns.Expression("here", re.compile(written, re.DOTALL), frozenset({"search"}))
    assert patterns.slowness(one) is not None


@pytest.mark.parametrize("written", [r"(?<!\s)\s*<think>", r"[a-z]+", r"\s{0,9},\s{0,9}x", r"(?<!a)a*+b"])
def test_what_is_linear_passes(written):
    assert patterns.slowness(patterns.Expression("here", re.compile(written), frozenset({"search"}))) is None
