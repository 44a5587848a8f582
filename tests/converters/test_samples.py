"""Each sample becomes exactly the bundle under tests/golden/, as far as its text does not depend on the printer."""

from __future__ import annotations

import json

import pytest

from exhibit.schemas.bundle import TRAIN
from exhibit.schemas.validate import validate
from tests.converters.account import account_of, read_gold

FIELDS = ("id", "context", "filename", "how", "labels")


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("acord", FIELDS),
        ("cpr", ("id", "context", "filename", "pages", "how", "score", "labels")),
        ("cuad", ()),
        ("legalbenchrag", ()),
        ("maud", ("id", "context", "filename", "how", "score", "labels", "alternatives")),
        ("privacyqa", FIELDS),
    ],
)
def test_sample_converts_to_golden_bundle(name, fields, converted, golden):
    bundle = converted(name)
    assert validate(bundle) == []
    golden(f"{name}/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden(f"{name}/account.json", account_of(bundle))
    lines = []
    for line in read_gold(bundle):
        if fields:  # offsets depend on the printer
            line["alternatives"] = len(line["alternatives"])
        lines.append(json.dumps({field: line[field] for field in fields or line}, ensure_ascii=False) + "\n")
    golden(f"{name}/gold.jsonl", "".join(lines))
