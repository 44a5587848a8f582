"""PrivacyQA: a majority of marks makes gold, sentences become a PDF, each gold sentence is located in it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from exhibit.evidence import read_document
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.validate import validate
from tests.converters.account import account_of

HEADER = "Folder\tDocID\tQueryID\tSentID\tSplit\tQuery\tSegment"
LARKSPUR = "Larkspur Weather (com.larkspur.weather).pdf"
UNSURE = "a sentence with more than 2 annotators blank, or with no mark at all"


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("privacyqa")


def rows_of(bundle: Path) -> dict[int, dict]:
    return {row["id"]: row for row in json.loads((bundle / TRAIN).read_text(encoding="utf-8"))}


def gold_of(bundle: Path) -> list[dict]:
    return [json.loads(line) for line in (bundle / GOLD).read_text(encoding="utf-8").splitlines()]


def info_of(bundle: Path) -> dict:
    return json.loads((bundle / INFO).read_text(encoding="utf-8"))


def texts(row: dict) -> list[str]:
    return [context["text"] for context in row["contexts"]]


def write(folder: Path, name: str, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return folder


def sentence(number: int, words: str, *marks: str, query: str = "is it free?", question: int = 0) -> str:
    cells = ["x/com.app", "App _1", f"App _1_{question}", f"App _1_{number}", "test", query, words, *marks]
    return "\t".join(cells)


# ---------------------------------------------------------------- the sample


def test_privacyqa_sample_converts_to_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("privacyqa/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("privacyqa/account.json", account_of(bundle))
    kept = ("id", "context", "filename", "how", "labels")
    lines = [json.dumps({key: line[key] for key in kept}, ensure_ascii=False) for line in gold_of(bundle)]
    golden("privacyqa/gold.jsonl", "\n".join(lines) + "\n")


def test_privacyqa_gold_is_the_occurrence_given_by_the_source_when_a_sentence_repeats(bundle):
    (line,) = [line for line in gold_of(bundle) if line["id"] == 1]
    text = read_document(bundle / "corpus" / LARKSPUR).text
    assert line["labels"]["sentence"].endswith("_13")
    # the second of two, at the policy's very end, although the table gives it before sentence 10
    assert text.count("You may ask us at any time") == 2
    assert line["spans"][0][1] == len(text.rstrip())
    assert line["alternatives"] == []


# ---------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.slow
def test_privacyqa_gold_equals_gold_of_legalbenchrag_for_194_questions(convert, data):
    bundle = convert("privacyqa", "--source", data / "privacyqa")
    counts = info_of(bundle)["counts"]
    assert counts["questions"] == 194
    assert counts["located"]["absent"] <= 0.001 * counts["contexts"]
    ours: dict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for row in rows_of(bundle).values():
        policy = row["contexts"][0]["filename"].removesuffix(".pdf")
        ours[policy, row["question"].partition("; ")[2]].append(texts(row))
    root = data / "legalbenchrag"
    tests = json.loads((root / "benchmarks" / "privacy_qa.json").read_text(encoding="utf-8"))["tests"]
    for test in tests:
        gold: list[str] = []
        for snippet in test["snippets"]:
            text = (root / "corpus" / snippet["file_path"]).read_text(encoding="utf-8")
            # it joins neighbouring sentences, which the policy's text has on lines of their own
            gold += [line.strip() for line in text[slice(*snippet["span"])].split("\n") if line.strip()]
        policy = Path(snippet["file_path"]).stem.replace(":", "_")
        query = " ".join(test["query"].partition("; ")[2].split())
        ours[policy, query].remove(gold)
    assert not any(ours.values())
