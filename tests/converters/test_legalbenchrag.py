"""LegalBench-RAG: the published spans are the gold; if a span is wrong, its answer is located instead."""

import json
import random
from pathlib import Path

import pytest

from exhibit.converters import legalbenchrag
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.errors import SourceError
from exhibit.storage.bundle import open_bundle
from tests.conversion import read_source

WRONG_SPAN = "span whose text is not the stored answer: the answer was located instead"
NO_FILE = "test on a document that is not in corpus/ or cannot be read"
NO_FORM = "record that is not in the release's format"
NO_WORDS = "test with an empty snippet"


def make(folder: Path, texts: dict[str, str], **benchmarks: list[tuple[str, list[dict]]]) -> Path:
    """Write a source with these texts and tests."""
    (folder / "benchmarks").mkdir(parents=True)
    for path, text in texts.items():
        target = folder / CORPUS / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8"))
    for name, tests in benchmarks.items():
        records = [{"query": query, "snippets": snippets} for query, snippets in tests]
        text = json.dumps({"tests": records})
        (folder / "benchmarks" / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def snippet(path: str, start: int, end: int, answer: str) -> dict:
    return {"file_path": path, "span": [start, end], "answer": answer}


def test_legalbenchrag_counts_a_wrong_span_and_locates_the_answer_instead(tmp_path, convert, capsys):
    texts = {"a/x.txt": "The fee is due in May. The fee is five pounds."}
    root = make(tmp_path / "s", texts, a=[("fee?", [snippet("a/x.txt", 0, 22, "The fee is five pounds.")])])
    bundle = open_bundle(convert("legalbenchrag", "--source", root))
    assert bundle.gold[0].spans == [(23, 46)]
    assert bundle.info.left_out == {WRONG_SPAN: ["a 0: a/x.txt (0, 22)"]}
    convert("legalbenchrag", "--source", root, "--strict", out="strict", expect=1)
    assert WRONG_SPAN in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ([("q?", [])], NO_FORM),
        ([("q?", None)], NO_FORM),
        ([(" ", [snippet("a/x.txt", 0, 3, "The")])], NO_FORM),
        ([("q?", [{"span": [0, 3], "answer": "The"}])], NO_FORM),
        ([("q?", [{"file_path": "a/x.txt", "span": [0, 99]}])], NO_WORDS),
        ([("q?", [{"file_path": "a/x.txt", "span": "0-3"}])], NO_FORM),
        ([("q?", [snippet("a/x.txt", 3, 4, " ")])], NO_WORDS),
        ([("q?", [snippet("a/../../secret.txt", 0, 3, "The")])], NO_FILE),
        ([("q?", [snippet("a/x.txt", 0, 3, "The"), snippet("a/none.txt", 0, 3, "The")])], NO_FILE),
    ],
)
def test_legalbenchrag_counts_a_malformed_test_without_changing_other_row_ids(tmp_path, tests, reason):
    good = ("good?", [snippet("a/x.txt", 0, 3, "The")])
    root = make(tmp_path / "s", {"a/x.txt": "The end."}, a=[*tests, good])
    benchmark, tally = read_source(legalbenchrag, root)
    assert [(row.id, row.question) for row in benchmark.rows] == [(1, "good?")]
    assert list(tally.left_out) == [reason]
    with pytest.raises(SourceError, match="--strict"):
        read_source(legalbenchrag, root, strict=True)


def random_number_of(test: dict) -> float:
    """Return the random number by which the published rule sorts a test, computed as that rule states."""
    random.seed(test["snippets"][0]["file_path"])
    return random.random()


def sample_tests(tests: list[dict]) -> list[dict]:
    return sorted(tests, key=random_number_of)[:194] if len(tests) > 194 else tests


def test_legalbenchrag_mini_selects_the_same_tests_as_the_published_rule(tmp_path):
    texts = {f"{name}/{n}.txt": "The end." for name in ("big", "small") for n in range(60)}
    texts["big/unused.txt"] = "The end."
    order = random.Random(7)
    tests = {
        name: [
            (f"{name} {n}?", [snippet(f"{name}/{order.randrange(60)}.txt", 0, 3, "The") for _ in range(2)])
            for n in range(count)
        ]
        for name, count in (("big", 400), ("small", 194))
    }
    root = make(tmp_path / "s", texts, **tests)
    benchmark, tally = read_source(legalbenchrag, root, "--mini")
    expected = []
    for name in ("big", "small"):
        data = json.loads((root / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
        expected += sample_tests(data["tests"])
    assert {row.question for row in benchmark.rows} == {test["query"] for test in expected}
    assert len(benchmark.rows) == 388
    assert [row.id for row in benchmark.rows] == sorted(row.id for row in benchmark.rows)
    assert all(row.question == f"big {row.id}?" for row in benchmark.rows if row.labels["benchmark"] == "big")
    used = {s["file_path"] for test in expected for s in test["snippets"]}
    assert {raw.source for raw in benchmark.documents} == used
    assert len(tally.left_out["not in the published sample (--mini)"]) == 206
    assert tally.left_out["file that the published sample does not use (--mini)"] == sorted(set(texts) - used)
