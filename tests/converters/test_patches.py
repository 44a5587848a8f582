"""Reviewers' corrections change only the gold that they name, and are counted and listed in bundle.json."""

import json
from pathlib import Path

import pytest

from exhibit.converters import Quote
from exhibit.converters.core.build import CORRECTED, ELSEWHERE, UNFIT, apply_patches
from exhibit.converters.core.documents import Finder
from exhibit.evidence import Document, Span
from exhibit.schemas.errors import SourceError
from exhibit.schemas.review import digest_gold
from exhibit.schemas.validate import validate

RENT = "The rent is due. Rent is due on the first."
FIRST = (("a.txt.pdf", "The rent is due."),)
SQUAD = {
    "a": (RENT, "What of the rent?", "The rent is due."),
    "b": ("The roof leaks in winter.", "What of the roof?", "The roof leaks"),
    "c": ("No dogs are allowed here.", "What of the dog?", ""),
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory, samples) -> Path:
    """A bundle of three documents with one question each; the last question is impossible."""
    from exhibit.conversion import main

    folder = tmp_path_factory.mktemp("patched")
    (folder / "texts").mkdir()
    rows = []
    for name, (text, question, quote) in SQUAD.items():
        (folder / "texts" / f"{name}.txt").write_text(text, encoding="utf-8")
        rows.append({"question": question, "answer": quote or "none", "quote": quote, "file": f"{name}.txt",
                     "is_impossible": not quote})  # fmt: skip
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    flags = ["--source", folder / "rows.jsonl", "--documents", folder / "texts", "--out", folder / "bundle"]
    assert main(["table", *map(str, flags), "--jobs", "1"]) == 0
    return folder / "bundle"


def fix(id: int, was: tuple[tuple[str, str], ...], **fields: object) -> dict[str, object]:
    return {"id": id, "was": digest_gold(was), "contexts": [], "reviewers": ["Ada"], **fields}


def write(path: Path, **fields: object) -> Path:
    content = {"format": "exhibit-patch/1", "dataset": "rows", "about": "A test.", **fields}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def context(text: str, *spans: list[int], filename: str = "a.txt.pdf") -> dict[str, object]:
    return {"filename": filename, "spans": list(spans), "text": text}


def apply(bundle: Path, *patches: Path, strict: bool = False) -> tuple[dict[int, dict], dict[int, dict], dict]:
    """Apply patches; return the rows, the first gold line of each row, and bundle.json."""
    out = patches[0].parent / "out"
    apply_patches(patches, bundle, out, strict=strict)
    assert validate(out) == []
    rows = {row["id"]: row for row in json.loads((out / "train.json").read_text(encoding="utf-8"))}
    lines = [json.loads(line) for line in (out / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    gold = {line["id"]: line for line in reversed(lines)}
    return rows, gold, json.loads((out / "bundle.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("spans", [[17, 42], [0, 25], [900, 925]])
def test_apply_patches_replaces_reviewed_gold(bundle, tmp_path, spans):
    better = context("Rent is due on the first.", spans)
    patch = write(tmp_path / "p.json", corrections=[fix(0, FIRST, contexts=[better], reason="the day counts")])
    rows, gold, info = apply(bundle, patch)
    assert rows[0]["contexts"] == [{"filename": "a.txt.pdf", "text": "Rent is due on the first."}]
    assert (rows[0]["answer"], gold[0]["spans"]) == ("The rent is due.", [[17, 42]])
    assert info["noted"][CORRECTED] == ["question 0: by Ada: the day counts"]
    [entry] = info["patches"]
    assert (entry["name"], entry["corrections"], entry["documents"], entry["questions"]) == ("p.json", 1, 0, 0)


def test_apply_patches_makes_a_question_impossible_or_answerable(bundle, tmp_path):
    dog = context("No dogs", [0, 7], filename="c.txt.pdf")
    patch = write(tmp_path / "p.json", corrections=[fix(0, FIRST, is_impossible=True), fix(2, (), contexts=[dog])])
    rows, gold, _ = apply(bundle, patch)
    assert rows[0]["is_impossible"] and rows[0]["contexts"] == [] and gold[0]["filename"] == "a.txt.pdf"
    assert not rows[2]["is_impossible"] and rows[2]["answer"] == "No dogs"


def test_apply_patches_skips_and_counts_gold_that_changed_since_the_review(bundle, tmp_path):
    patch = write(tmp_path / "p.json", corrections=[fix(0, (("a.txt.pdf", "Other words."),), is_impossible=True)])
    rows, _, info = apply(bundle, patch)
    assert not rows[0]["is_impossible"] and info["noted"][UNFIT] == ["question 0"]
    with pytest.raises(SourceError, match="the gold has changed since the review"):
        apply_patches([patch], bundle, tmp_path / "strict", strict=True)


def test_apply_patches_excludes_documents_and_questions_and_records_the_reasons(bundle, tmp_path):
    first = write(
        tmp_path / "1.json",
        documents=[{"filename": "b.txt.pdf", "reason": "it is a draft"}, {"filename": "z.pdf", "reason": "gone"}],
        corrections=[fix(0, FIRST, contexts=[context("Rent is due", [17, 28])])],
    )
    now = (("a.txt.pdf", "Rent is due"),)
    second = write(tmp_path / "2.json", questions=[{"id": 2, "reason": "it is a joke"}, {"id": 9, "reason": "gone"}],
                   corrections=[fix(0, now, contexts=[context("The rent", [0, 8])])])  # fmt: skip
    rows, _, info = apply(bundle, first, second)
    assert [(id, row["contexts"][0]["text"]) for id, row in rows.items()] == [(0, "The rent")]
    assert [entry["filename"] for entry in info["documents"]] == ["a.txt.pdf", "c.txt.pdf"]
    assert info["left_out"] == {
        "set aside by a patch: it is a draft": ["b.txt.pdf", "question 1"],
        "set aside by a patch: it is a joke": ["question 2"],
    }
    assert info["noted"][ELSEWHERE] == ["1.json: z.pdf", "2.json: question 9"]
    assert [entry["name"] for entry in info["patches"]] == ["1.json", "2.json"]


def test_apply_patches_refuses_a_patch_of_another_dataset_or_format(bundle, tmp_path):
    for row, message in [({"dataset": "cuad"}, "is a patch for cuad, not for rows"), ({"more": 1}, "more: Extra")]:
        with pytest.raises(SourceError, match=message):
            apply_patches([write(tmp_path / "p.json", **row)], bundle, tmp_path / "out")


def test_shipped_maud_patch_excludes_agreements_with_known_faults(convert, samples):
    folder = convert("maud", "--source", samples / "maud", "--patch", "shipped")
    info = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    assert validate(folder) == []
    assert "contract_88.pdf" not in {document["filename"] for document in info["documents"]}
    reason = "set aside by a patch: the text ends early: it is about a quarter of the agreement"
    assert "contract_88.pdf" in info["left_out"][reason] and len(info["left_out"][reason]) == 4
    assert info["noted"][ELSEWHERE] == ["maud.json: contract_149.pdf"]  # the agreement has none of its excerpts
    [entry] = info["patches"]
    assert (entry["name"], entry["documents"], entry["questions"]) == ("maud.json", 1, 3)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert reason in card and "--patch shipped" in card


def test_marked_span_beyond_the_end_of_its_document_is_located_by_its_words():
    document = Document("lease.txt", "The fee is due on 1 May.")
    where = Finder("", document).place(Quote("lease.txt", "The fee is due on 1 May.", marked=(Span(0, 29),)))
    assert (where.spans, where.how) == ([Span(0, 24)], "exact")
