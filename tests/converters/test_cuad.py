"""CUAD: the sample source becomes this very bundle, and every documented quirk is met on the way."""

from __future__ import annotations

from schemas.bundle import GOLD, TRAIN
from schemas.validate import validate


def test_the_sample_becomes_the_golden_bundle(convert, golden, samples):
    bundle = convert("cuad", "--source", samples / "cuad")
    assert validate(bundle) == []
    golden("cuad/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("cuad/gold.jsonl", (bundle / GOLD).read_text(encoding="utf-8"))
