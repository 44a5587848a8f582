"""Conversion marks an agreement and its amendments, in bundle.json and in the labels of their questions."""

from __future__ import annotations

import json

from tests.law.contracts import CONTRACT, FIRST, OTHER, SECOND

KEYS = ("family", "amends", "effective_from")
FILES = {"hosting": CONTRACT, "first": FIRST, "second": SECOND, "osprey": OTHER}


def convert_files(tmp_path, convert, files):
    """Convert some texts, each with one question; return the bundle, its bundle.json and the documents' labels."""
    data = []
    for at, (name, text) in enumerate(files.items()):
        words = text.split("\n")[0]
        qas = [{"id": at, "question": f"What is {name}?", "answers": [{"text": words, "answer_start": 0}]}]
        data.append({"title": name, "paragraphs": [{"context": text, "qas": qas}]})
    (tmp_path / "squad.json").write_text(json.dumps({"data": data}), encoding="utf-8")
    bundle = convert("squad", "--source", tmp_path / "squad.json", "--engine", "serial")
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    labels = {one["filename"].partition(".")[0]: one.get("labels", {}) for one in info["documents"]}
    return bundle, info, {name: {key: one[key] for key in KEYS if key in one} for name, one in labels.items()}


def test_convert_labels_an_agreement_and_its_amendments_as_a_family(tmp_path, convert):
    bundle, info, own = convert_files(tmp_path, convert, FILES)
    contract = next(one["filename"] for one in info["documents"] if one["filename"].startswith("hosting"))
    assert own == {
        "hosting": {"family": contract},
        "first": {"family": contract, "amends": contract, "effective_from": "2019-06-01"},
        "second": {"family": contract, "amends": contract, "effective_from": "2021-01-15"},
        "osprey": {},
    }
    gold = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["labels"].get("family") for line in gold] == [contract, contract, contract, None]
    noted = info["noted"]["amendments of another document of the corpus"]
    assert [line.rpartition(": ")[2] for line in noted] == [f"amends {contract}"] * 2


def test_convert_labels_amendments_as_family_without_amends_when_contract_is_absent(tmp_path, convert):
    files = {"quillfeather systems first amendment": FIRST, "quillfeather systems second amendment": SECOND}
    _, info, own = convert_files(tmp_path, convert, files)
    first = info["documents"][0]["filename"]
    assert [one.get("family") for one in own.values()] == [first, first]
    assert not any("amends" in one for one in own.values())
    assert "amendments of another document of the corpus" not in info["noted"]
