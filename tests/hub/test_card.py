"""The card: YAML that the Hub reads, and words that a person believes."""

from __future__ import annotations

import json

import pytest
import yaml

from hub.card import render_card, size_category
from schemas.bundle import read_info
from schemas.models import Licence, Row


@pytest.fixture
def bundle(convert, samples):
    return convert("cuad", "--source", samples / "cuad")


def head(text: str) -> dict:
    assert text.startswith("---\n")
    return yaml.safe_load(text.split("---\n")[1])


def test_the_head_is_what_the_hub_reads(bundle):
    data = head((bundle / "README.md").read_text(encoding="utf-8"))
    assert data["license"] == "cc-by-4.0" and data["language"] == ["en"] and data["pretty_name"] == "CUAD on its PDFs"
    assert data["task_categories"] == ["question-answering", "text-retrieval"]
    assert "legal" in data["tags"] and data["size_categories"] == ["n<1K"]
    configs = {config["config_name"]: config for config in data["configs"]}
    assert configs["questions"]["default"] and configs["questions"]["data_files"] == [
        {"split": "train", "path": "train.json"}
    ]
    assert configs["gold"]["data_files"][0]["path"] == "gold.jsonl"


def test_the_body_says_what_came_out_and_what_did_not(bundle):
    text = (bundle / "README.md").read_text(encoding="utf-8")
    info = read_info(bundle / "bundle.json")
    for how, number in info.counts.located.items():
        assert f"| {how} | {number:,} |" in text
    assert "| ambiguous contract: one of several versions or parts | 2 |" in text
    assert "python -m converters.cuad --titles rule --out datasets_out/cuad" in text
    assert info.source.sha256["master_clauses.csv"] in text and "hendrycks2021cuad" in text
    assert 'load_dataset("PATH_OR_REPO", "questions"' in text
    example = json.loads(text.split("```json\n")[1].split("```")[0])
    assert list(example) == ["id", "question", "answer", "is_impossible", "contexts"]


def test_nothing_in_a_title_breaks_the_head(bundle):
    info = read_info(bundle / "bundle.json").model_copy(
        update={"title": 'A: "b" # c\n---\n- d', "licence": Licence(id="other", name="Terms: x", url="https://e.org")}
    )
    row = Row(id=0, question="q?", answer="a", is_impossible=False, contexts=[])
    data = head(render_card(info, example=row, tags=("t: x",)).replace("\\n---\\n", ""))
    assert (
        data["pretty_name"].startswith('A: "b" # c') and data["license_name"] == "Terms: x" and "t: x" in data["tags"]
    )


def test_sizes():
    assert [size_category(n) for n in (0, 999, 1000, 20_910, 5_000_000)] == [
        "n<1K",
        "n<1K",
        "1K<n<10K",
        "10K<n<100K",
        "1M<n<10M",
    ]
