"""PrivacyQA: sentences become a PDF, in which each sentence that most annotators marked is gold."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from exhibit.evidence import read_document
from exhibit.schemas.bundle import INFO
from tests.converters.account import read_gold, read_rows

LARKSPUR = "Larkspur Weather (com.larkspur.weather).pdf"


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("privacyqa")


def test_privacyqa_gold_of_a_repeated_sentence_is_the_annotated_occurrence(bundle):
    (line,) = [line for line in read_gold(bundle) if line["id"] == 1]
    text = read_document(bundle / "corpus" / LARKSPUR).text
    assert line["labels"]["sentence"].endswith("_13")
    # the second of two policies; the sentence is at its end, although the table lists it before sentence 10
    assert text.count("You may ask us at any time") == 2
    assert line["spans"][0][1] == len(text.rstrip())
    assert line["alternatives"] == []


@pytest.mark.data
@pytest.mark.slow
def test_privacyqa_gold_equals_gold_of_legalbenchrag_for_194_questions(convert, data):
    bundle = convert("privacyqa", "--source", data / "privacyqa")
    counts = json.loads((bundle / INFO).read_text(encoding="utf-8"))["counts"]
    assert counts["questions"] == 194
    assert counts["located"]["absent"] <= 0.001 * counts["contexts"]
    ours: dict[tuple[str, str], list[list[str]]] = defaultdict(list)
    for row in read_rows(bundle).values():
        policy = row["contexts"][0]["filename"].removesuffix(".pdf")
        ours[policy, row["question"].partition("; ")[2]].append([context["text"] for context in row["contexts"]])
    root = data / "legalbenchrag"
    tests = json.loads((root / "benchmarks" / "privacy_qa.json").read_text(encoding="utf-8"))["tests"]
    for test in tests:
        gold: list[str] = []
        for snippet in test["snippets"]:
            text = (root / "corpus" / snippet["file_path"]).read_text(encoding="utf-8")
            # a quote joins adjacent sentences, which are on separate lines in the policy's text
            gold += [line.strip() for line in text[slice(*snippet["span"])].split("\n") if line.strip()]
        policy = Path(snippet["file_path"]).stem.replace(":", "_")
        query = " ".join(test["query"].partition("; ")[2].split())
        ours[policy, query].remove(gold)
    assert not any(ours.values())
