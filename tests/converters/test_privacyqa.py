"""PrivacyQA: a majority of marks makes gold, sentences become a PDF, each gold sentence is located in it."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections import defaultdict
from pathlib import Path

import pytest

from exhibit.converters import RawRow, Tally, privacyqa
from exhibit.evidence import read_document
from exhibit.evidence.fold import fold
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.validate import validate
from tests.conversion import chosen
from tests.converters.account import account_of

HEADER = "Folder\tDocID\tQueryID\tSentID\tSplit\tQuery\tSegment"
ANNOTATORS = "\t".join(f"Ann{number}" for number in range(1, 7))
LARKSPUR = "Larkspur Weather (com.larkspur.weather).pdf"
UNSURE = "a sentence with more than 2 annotators blank, or with no mark at all"


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("privacyqa")


def read_rows(source: Path, **options: object) -> tuple[list[RawRow], Tally]:
    """Read a source without making a bundle of it, which needs a browser."""
    tally = Tally()
    wanted = {"limit": None, "answerable_only": False, **options}
    benchmark = privacyqa.read(source, Namespace(**{"split": "all", **wanted}), tally)
    return chosen(benchmark, tally, limit=wanted["limit"], answerable_only=wanted["answerable_only"]).rows, tally


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


def test_the_sample_becomes_the_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("privacyqa/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("privacyqa/account.json", account_of(bundle))
    kept = ("id", "context", "filename", "how", "labels")
    lines = [json.dumps({key: line[key] for key in kept}, ensure_ascii=False) for line in gold_of(bundle)]
    golden("privacyqa/gold.jsonl", "\n".join(lines) + "\n")


def test_every_gold_sentence_is_located_in_the_printed_policy(bundle):
    rows = rows_of(bundle)
    documents = {path.name: read_document(path).text for path in (bundle / "corpus").iterdir()}
    lines = [line for line in gold_of(bundle) if line["context"] is not None]
    assert len(lines) == sum(len(row["contexts"]) for row in rows.values()) == 22
    for line in lines:
        (span,) = line["spans"]
        words = rows[line["id"]]["contexts"][line["context"]]["text"]
        assert fold(documents[line["filename"]][slice(*span)]) == fold(words)


def test_a_sentence_that_stands_twice_is_found_where_the_source_says(bundle):
    (line,) = [line for line in gold_of(bundle) if line["id"] == 1]
    text = read_document(bundle / "corpus" / LARKSPUR).text
    assert line["labels"]["sentence"].endswith("_13")
    # the second of two, at the policy's very end, although the table gives it before sentence 10
    assert text.count("You may ask us at any time") == 2
    assert line["spans"][0][1] == len(text.rstrip())
    assert line["alternatives"] == []


def test_policies_are_printed_in_order_with_their_title_on_top(bundle):
    text = read_document(bundle / "corpus" / LARKSPUR).text
    assert text.startswith("Larkspur Weather (com.larkspur.weather) privacy policy")
    order = [
        "This Privacy Policy tells you",
        "We never sell",
        "Our servers keep",
        "Forecasts are made",
        "We may change",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)


def test_gold_is_what_half_of_those_who_answered_call_relevant(bundle):
    rows = rows_of(bundle)
    assert [words[:20] for words in texts(rows[1350])] == ["We keep records of p", "Closing your wallet "]
    assert len(texts(rows[1351])) == 1  # two of six are not half
    assert len(texts(rows[1354])) == 1  # three of four, two annotators None
    assert [words[:16] for words in texts(rows[1356])] == ["We use cookies a", "Our website offe"]  # two of four
    assert rows[1353]["is_impossible"], "one of six is enough for Any_Relevant only"
    assert rows[1353]["contexts"] == []


def test_neighbours_are_contexts_of_their_own_and_the_answer_joins_them(bundle):
    row = rows_of(bundle)[1352]
    assert len(row["contexts"]) == 2
    assert row["answer"] == " ".join(texts(row))


def test_questions_with_too_many_blank_marks_are_left_out_and_named(bundle):
    left_out = info_of(bundle)["left_out"]
    names = [
        "Tidepool: Sleep & Habits_2: question Tidepool: Sleep & Habits_2_3",
        "Mossbank Wallet _1: question Mossbank Wallet _1_5",
    ]
    assert left_out == {UNSURE: names}
    assert not {8, 1355} & rows_of(bundle).keys()


def test_names_are_safe_for_any_file_system_and_titles_keep_the_source_s(bundle):
    documents = {entry["filename"]: entry["title"] for entry in info_of(bundle)["documents"]}
    assert documents["Tidepool_ Sleep & Habits.pdf"] == "Tidepool: Sleep & Habits privacy policy"
    assert documents["Larkspur Weather (com.larkspur.weather.lite).pdf"].startswith("Larkspur Weather (com.larkspur")


def test_quotation_marks_are_read_as_each_table_writes_them(bundle):
    wallet = read_document(bundle / "corpus" / "Mossbank Wallet.pdf").text
    assert 'in the app under "My data".' in " ".join(wallet.split())
    assert texts(rows_of(bundle)[4])[0].startswith('"Device data" means')


# ---------------------------------------------------------------- options


def test_a_split_changes_neither_ids_nor_titles(samples):
    whole, _ = read_rows(samples / "privacyqa")
    test, _ = read_rows(samples / "privacyqa", split="test")
    assert test == [row for row in whole if row.id >= 1350]
    assert len(test) == 10


def test_the_test_table_alone_has_the_ids_of_the_whole_release(samples):
    table = samples / "privacyqa" / "data" / "policy_test_data.csv"
    rows, tally = read_rows(table, limit=1)
    assert [row.id for row in rows] == [1350, 1351, 1352, 1353, 1354, 1356, 1357]
    assert tally.noted == {"half of the release: the other table is not there": [table.name]}


def test_answerable_only_counts_what_it_leaves_out(samples):
    rows, tally = read_rows(samples / "privacyqa", split="train", limit=1, answerable_only=True)
    assert [row.id for row in rows] == [0, 1, 2, 4]
    assert tally.left_out == {
        "no answer in the document (--answerable-only)": ["Larkspur Weather _1: question Larkspur Weather _1_3"]
    }


# ---------------------------------------------------------------- sources that are wrong


def test_a_source_that_is_not_there_says_what_is_expected(convert, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    convert("privacyqa", "--source", tmp_path / "empty", expect=1)
    error = capsys.readouterr().err
    assert "policy_train_data.csv" in error
    assert "https://github.com/AbhilashaRavichander/PrivacyQA_EMNLP" in error


def test_a_missing_set_is_an_error(convert, samples, tmp_path, capsys):
    shutil.copy(samples / "privacyqa" / "data" / "policy_test_data.csv", tmp_path)
    convert("privacyqa", "--source", tmp_path, "--split", "train", expect=1)
    assert "no train set in it" in capsys.readouterr().err


def test_a_git_lfs_pointer_is_recognised(convert, tmp_path, capsys):
    source = write(
        tmp_path / "raw", "policy_test_data.csv", "version https://git-lfs.github.com/spec/v1", "oid sha256:00"
    )
    convert("privacyqa", "--source", source, expect=1)
    assert "git lfs pull" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (HEADER, "no column 'Ann1'"),
        (f"{HEADER}\tLabel".replace("SentID", "Sentence"), "no column 'SentID'"),
    ],
)
def test_wrong_columns_are_named(convert, tmp_path, capsys, header, complaint):
    source = write(tmp_path / "raw", "policy_test_data.csv", header, sentence(0, "Words."))
    convert("privacyqa", "--source", source, expect=1)
    error = capsys.readouterr().err
    assert complaint in error
    assert "Folder, DocID" in error


def test_a_line_with_too_many_cells_is_named(convert, tmp_path, capsys):
    lines = [f"{HEADER}\tLabel", sentence(0, "Words.", "Relevant"), sentence(1, "More.", "Relevant", "Relevant")]
    convert("privacyqa", "--source", write(tmp_path / "raw", "policy_train_data.csv", *lines), expect=1)
    assert "line 3 has 9 cells, but the header has 8" in capsys.readouterr().err


def test_marks_that_contradict_are_counted_and_strict_stops_at_them(convert, tmp_path, capsys):
    lines = [
        f"{HEADER}\tLabel",
        sentence(0, "It is free.", "Relevant"),
        sentence(0, "It is not free.", "Relevant"),
        sentence(0, "It is free.", "Irrelevant"),
        sentence(1, "It is good.", "Perhaps"),
        sentence(0, "It is free.", "Relevant", query="what does it cost?", question=1),
    ]
    source = write(tmp_path / "raw", "policy_train_data.csv", *lines)
    rows, tally = read_rows(source)
    place = "App _1: question App _1_0"
    assert tally.left_out == {
        "sentence with other words than before under its id": [f"{place}, sentence App _1_0"],
        "second, different marks for a sentence": [f"{place}, sentence App _1_0"],
        "mark 'perhaps' that is neither Relevant nor Irrelevant, counted as blank": [f"{place}, sentence App _1_1"],
        UNSURE: [place],
    }
    assert [(row.id, row.answer) for row in rows] == [(1, "It is free.")]
    convert("privacyqa", "--source", source, "--strict", expect=1)
    assert "other words than before" in capsys.readouterr().err


def test_trailing_empty_cells_may_be_cut_off(tmp_path):
    lines = [
        f"{HEADER}\t{ANNOTATORS}",
        sentence(0, "It is free.", *["Relevant"] * 4),
        sentence(1, "It is good.", *["Irrelevant"] * 5),
    ]
    rows, _ = read_rows(write(tmp_path / "raw", "policy_test_data.csv", *lines))
    assert [row.answer for row in rows] == ["It is free."]


# ---------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.slow
def test_gold_equals_legalbenchrag_s_for_its_194_questions(convert, data):
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
