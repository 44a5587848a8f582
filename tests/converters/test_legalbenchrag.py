"""LegalBench-RAG: the published spans are the gold, whatever the file names and texts look like."""

from __future__ import annotations

import json
import random
import shutil
from argparse import Namespace
from pathlib import Path

import pytest

from exhibit.conversion import main
from exhibit.converters import Benchmark, Tally, legalbenchrag
from exhibit.evidence import read_document
from exhibit.evidence.fold import Fold, fold
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from exhibit.storage.bundle import open_bundle
from tests.converters.account import account_of

NDA = "Quillmere%20Mutual%20NDA%20rev2"
MERGER = "Orrin Holdings Corp._Calder Group plc.pdf||Orrin Holdings Corp._Calder Group plc Amendment No. 2"
WRONG_SPAN = "span whose text is not the stored answer: the answer was located instead"
NO_FILE = "test on a document that is not in corpus/ or cannot be read"
NO_WORDS = "test with a snippet that says nothing"


@pytest.fixture(scope="module")
def source(samples: Path) -> Path:
    return samples / "legalbenchrag"


@pytest.fixture(scope="module")
def printed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the sample with its texts printed as PDF, converted once."""
    folder = tmp_path_factory.mktemp("legalbenchrag") / "bundle"
    assert main(["legalbenchrag", "--source", str(source), "--as", "pdf", "--out", str(folder), "--jobs", "1"]) == 0
    return folder


def read(source: Path, *, strict: bool = False, **options: object) -> tuple[Benchmark, Tally]:
    """Read a source without making a bundle of it."""
    tally = Tally(strict=strict)
    chosen = {"engine": "serial", "jobs": 1, "mini": False, "as": "text", "limit": None, **options}
    return legalbenchrag.read(source, Namespace(**chosen), tally), tally


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


def published(source: Path) -> list[tuple[str, str, list[tuple[str, list[int], str]]]]:
    """Return benchmark, query and snippets of every test, straight from the files."""
    found = []
    for path in sorted((source / "benchmarks").glob("*.json")):
        for test in json.loads(path.read_text(encoding="utf-8"))["tests"]:
            snippets = [(Path(s["file_path"]).name, s["span"], s.get("answer")) for s in test["snippets"]]
            found.append((path.stem, test["query"], snippets))
    return found


# ---------------------------------------------------------------- the sample


def test_the_sample_becomes_the_golden_bundle(convert, golden, source):
    bundle = convert("legalbenchrag", "--source", source)
    assert validate(bundle) == []
    golden("legalbenchrag/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("legalbenchrag/account.json", account_of(bundle))
    golden("legalbenchrag/gold.jsonl", (bundle / GOLD).read_text(encoding="utf-8"))
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert info["groups"] == "benchmark"
    assert info["left_out"] == {
        WRONG_SPAN: ["contractnli 5: contractnli/brackenridge-nda-form.txt (592, 666)"],
        NO_FILE: ["cuad 3: cuad/Nettlecombe Tools.txt (100, 140)"],
    }
    assert info["noted"] == {
        "two files of one name, told apart by their folder": [
            "cuad/Amendment No. 1.txt -> cuad - Amendment No. 1.txt",
            "maud/Amendment No. 1.txt -> maud - Amendment No. 1.txt",
        ]
    }


def test_the_texts_are_copied_byte_for_byte_and_unused_ones_are_searched_too(convert, source):
    bundle = open_bundle(convert("legalbenchrag", "--source", source))
    for entry in bundle.info.documents:
        assert bundle.files[entry.filename].read_bytes() == (source / CORPUS / entry.source).read_bytes()
    assert len(bundle.files) == 8
    assert "Fernway.txt" in bundle.files


def test_every_gold_passage_is_the_text_at_its_span(convert, source):
    bundle = open_bundle(convert("legalbenchrag", "--source", source))
    questions = {question.id: question for question in bundle.questions}
    for line in bundle.gold:
        text = read_document(bundle.files[line.filename]).text
        ((start, end),) = line.spans
        assert text[start:end] == questions[line.id].contexts[line.context].text
        assert (line.how, line.alternatives, line.score) == ("exact", [], 1.0)


def test_ids_count_all_tests_of_all_benchmarks_and_a_filter_never_renumbers(source):
    everything, _ = read(source)
    assert [row.id for row in everything.rows] == [*range(9), *range(10, 16)]  # 9 has no file
    three, _ = read(source, limit=3)
    assert {row.id: row for row in three.rows}.items() <= {row.id: row for row in everything.rows}.items()
    assert {row.id for row in three.rows} < {row.id for row in everything.rows}
    assert len(three.documents) == 3


def test_printed_gold_is_carried_over_to_the_same_occurrence(printed, source, golden):
    assert validate(printed) == []
    bundle = open_bundle(printed)
    texts, _ = read(source)
    assert [question.question for question in bundle.questions] == [row.question for row in texts.rows]
    originals = {raw.filename: raw.text_path for raw in texts.documents}
    quotes = [quote for row in texts.rows for quote in row.quotes]
    for line, quote in zip(bundle.gold, quotes, strict=True):
        document = read_document(bundle.files[line.filename])
        ((start, end),) = line.spans
        assert fold(document.text[start:end]) == fold(quote.text)
        assert line.pages == [1]
        if quote.spans:  # all but the one whose span is wrong
            assert line.alternatives == []
            before = read_document(originals[quote.filename]).text[: quote.spans[0][0]]
            # most machines have no font for the shell
            assert fold(document.text[:start]).replace("🐚", "") == fold(before).replace("🐚", "")
    golden("legalbenchrag/train.pdf.json", (printed / TRAIN).read_text(encoding="utf-8"))


def test_printed_files_keep_all_of_their_name_but_the_ending(printed):
    names = open_bundle(printed).files
    assert {f"{MERGER}.pdf", f"{NDA}.pdf", "Tidepool: Habits & Streaks.pdf", "cuad - Amendment No. 1.pdf"} < set(names)
    assert len(names) == 8


# ---------------------------------------------------------------- what can be wrong


def test_newlines_and_marks_count_as_they_are(tmp_path, convert):
    text = "\ufeffOne.\r\nTwo 🐚.\r\nThree.\n"
    start = text.index("Three")
    root = make(tmp_path / "s", {"a/x.txt": text}, a=[("q?", [snippet("a/x.txt", start, start + 6, "Three.")])])
    bundle = open_bundle(convert("legalbenchrag", "--source", root))
    assert bundle.files["x.txt"].read_bytes() == text.encode("utf-8")
    assert bundle.gold[0].spans == [(start, start + 6)]


def test_a_wrong_span_is_a_fault_and_its_answer_is_located(tmp_path, convert, capsys):
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
        ([("q?", [])], "test without snippets"),
        ([("q?", None)], "test without snippets"),
        ([(" ", [snippet("a/x.txt", 0, 3, "The")])], "test without a query"),
        ([("q?", [{"span": [0, 3], "answer": "The"}])], "snippet without a file_path"),
        ([("q?", [{"file_path": "a/x.txt", "span": [0, 99]}])], NO_WORDS),
        ([("q?", [{"file_path": "a/x.txt", "span": "0-3"}])], NO_WORDS),
        ([("q?", [snippet("a/x.txt", 3, 4, " ")])], NO_WORDS),
        ([("q?", [snippet("a/../../secret.txt", 0, 3, "The")])], NO_FILE),
        ([("q?", [snippet("a/x.txt", 0, 3, "The"), snippet("a/none.txt", 0, 3, "The")])], NO_FILE),
    ],
)
def test_a_bad_test_is_counted_and_the_others_keep_their_ids(tmp_path, tests, reason):
    good = ("good?", [snippet("a/x.txt", 0, 3, "The")])
    root = make(tmp_path / "s", {"a/x.txt": "The end."}, a=[*tests, good])
    benchmark, tally = read(root)
    assert [(row.id, row.question) for row in benchmark.rows] == [(1, "good?")]
    assert list(tally.left_out) == [reason]
    with pytest.raises(SourceError, match="--strict"):
        read(root, strict=True)


def test_a_text_that_is_no_utf8_is_left_out_with_its_tests(tmp_path):
    tests = [(f"{name}?", [snippet(f"a/{name}.txt", 0, 3, "The")]) for name in ("good", "bad")]
    root = make(tmp_path / "s", {"a/good.txt": "The end."}, a=tests)
    (root / CORPUS / "a" / "bad.txt").write_bytes(b"The \xff end")
    benchmark, tally = read(root)
    assert [row.question for row in benchmark.rows] == ["good?"]
    assert [raw.filename for raw in benchmark.documents] == ["good.txt"]
    assert tally.left_out["document cannot be read"] == ["a/bad.txt: not UTF-8 (byte 4); convert it with iconv first"]


def test_an_accent_in_a_name_may_be_spelled_in_two_ways(tmp_path):
    root = make(
        tmp_path / "s",
        {"a/MOE\u0308T.txt": "The end."},
        a=[("q?", [snippet("a/MO\u00cbT.txt", 0, 3, "The")])],
    )
    benchmark, tally = read(root)
    assert len(benchmark.rows) == 1
    assert not tally.left_out


def test_names_that_cannot_be_told_apart_are_an_error(tmp_path):
    texts = {"a/x.txt": "One.", "a/x.TXT": "Two."}
    root = make(tmp_path / "s", texts, a=[("q?", [snippet("a/x.txt", 0, 3, "One")])])
    with pytest.raises(SourceError, match=r"corpus/a/x.TXT and corpus/a/x.txt would both be 'x.pdf'"):
        read(root, **{"as": "pdf"})


def test_a_wrong_source_says_what_was_expected(tmp_path, convert, capsys):
    convert("legalbenchrag", "--source", tmp_path, expect=1)
    error = capsys.readouterr().err
    assert "benchmarks/*.json" in error
    assert "github.com/zeroentropy-cc/legalbenchrag" in error
    convert("legalbenchrag", expect=1)
    assert "pass --source with benchmarks/*.json and corpus/" in capsys.readouterr().err
    root = make(tmp_path / "s", {"a/x.txt": "x"})
    (root / "benchmarks" / "a.json").write_text("[]", encoding="utf-8")
    with pytest.raises(SourceError, match="is this file from LegalBench-RAG"):
        read(root)
    (root / "benchmarks" / "a.json").write_text("{", encoding="utf-8")
    with pytest.raises(SourceError, match="not JSON"):
        read(root)


def test_a_source_may_lie_further_down_but_there_must_be_one(tmp_path, source):
    shutil.copytree(source, tmp_path / "down" / "data")
    assert len(read(tmp_path)[0].rows) == 15
    shutil.copytree(source, tmp_path / "other")
    with pytest.raises(SourceError, match="several benchmarks"):
        read(tmp_path)


# ---------------------------------------------------------------- the published sample


def drawn(test: dict) -> float:
    """Return the random number by which the published rule sorts a test, computed as that rule states."""
    random.seed(test["snippets"][0]["file_path"])
    return random.random()


def sampled(tests: list[dict]) -> list[dict]:
    return sorted(tests, key=drawn)[:194] if len(tests) > 194 else tests


def test_mini_keeps_the_tests_of_the_published_rule(tmp_path):
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
    benchmark, tally = read(root, mini=True)
    expected = []
    for name in ("big", "small"):
        data = json.loads((root / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
        expected += sampled(data["tests"])
    assert {row.question for row in benchmark.rows} == {test["query"] for test in expected}
    assert len(benchmark.rows) == 388
    assert [row.id for row in benchmark.rows] == sorted(row.id for row in benchmark.rows)
    assert all(row.question == f"big {row.id}?" for row in benchmark.rows if row.labels["benchmark"] == "big")
    used = {s["file_path"] for test in expected for s in test["snippets"]}
    assert {raw.source for raw in benchmark.documents} == used
    assert len(tally.left_out["not in the published sample (--mini)"]) == 206
    assert tally.left_out["file that the published sample does not use (--mini)"] == sorted(set(texts) - used)


def test_mini_leaves_the_random_state_of_others_alone(source):
    random.seed(1)
    expected = random.random()
    random.seed(1)
    read(source, mini=True)
    assert random.random() == expected


# ---------------------------------------------------------------- the real thing


@pytest.mark.data
@pytest.mark.slow
def test_the_published_mini_set_is_kept_whole_and_its_spans_are_the_gold(data, convert):
    source = data / "legalbenchrag"
    folder = convert("legalbenchrag", "--source", source, "--mini")
    bundle = open_bundle(folder)
    assert bundle.info.left_out == bundle.info.noted == {}
    assert len(bundle.questions) == 776
    assert len(bundle.files) == 72
    assert sum(entry.characters for entry in bundle.info.documents) == 8_682_104
    lines: dict[int, list] = {}
    for line in bundle.gold:
        assert line.how == "exact"
        lines.setdefault(line.id, []).append((line.filename, list(line.spans[0])))
    expected = published(source)
    assert [question.question for question in bundle.questions] == [query for _, query, _ in expected]
    for index, (benchmark, _, snippets) in enumerate(expected):
        assert lines[index] == [(name, span) for name, span, _ in snippets]
        assert [c.text for c in bundle.questions[index].contexts] == [answer for *_, answer in snippets]
        assert bundle.labels[index] == {"benchmark": benchmark}


@pytest.mark.data
@pytest.mark.slow
def test_the_published_sample_was_drawn_by_this_rule(data):
    # the three benchmarks that were sampled are stored in the order that the rule sorts them into
    for name in ("contractnli", "cuad", "maud"):
        text = (data / "legalbenchrag" / "benchmarks" / f"{name}.json").read_text(encoding="utf-8")
        numbers = [drawn(test) for test in json.loads(text)["tests"]]
        assert numbers == sorted(numbers)
        assert numbers[-1] < 0.3  # the first of many more


@pytest.mark.data
@pytest.mark.slow
def test_the_mini_set_prints_and_every_place_is_carried_over(data, convert):
    source = data / "legalbenchrag"
    bundle = open_bundle(convert("legalbenchrag", "--source", source, "--as", "pdf"))
    quotes = [(name, span) for _, _, snippets in published(source) for name, span, _ in snippets]
    texts = {path.name: Fold.of(read_document(path).text, loose=True) for path in (source / CORPUS).rglob("*.txt")}
    documents = {name: read_document(path).loose for name, path in bundle.files.items()}
    carried = 0
    for line, (name, span) in zip(bundle.gold, quotes, strict=True):
        # the same characters, as far into the text, and nowhere else
        text, document = texts[name], documents[line.filename]
        (first, last), (start, end) = text.find_folded_range(*span), document.find_folded_range(*line.spans[0])
        same = text.text[first:last] == document.text[start:end]
        carried += same and first == start and len(line.spans) == 1 and not line.alternatives
    assert carried / len(quotes) >= 0.999
