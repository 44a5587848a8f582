"""Conversion marks an agreement and its amendments, in bundle.json and in the labels of their questions."""

from __future__ import annotations

import json

from tests.law.contracts import CONTRACT, FIRST, OTHER, SECOND

FILES = {"hosting": CONTRACT, "first": FIRST, "second": SECOND, "osprey": OTHER}


def test_convert_labels_an_agreement_and_its_amendments_as_a_family(tmp_path, convert):
    data = []
    for at, (name, text) in enumerate(FILES.items()):
        answers = [{"text": text.split("\n")[0], "answer_start": 0}]
        qas = [{"id": at, "question": f"What is {name}?", "answers": answers}]
        data.append({"title": name, "paragraphs": [{"context": text, "qas": qas}]})
    (tmp_path / "squad.json").write_text(json.dumps({"data": data}), encoding="utf-8")
    bundle = convert("squad", "--source", tmp_path / "squad.json", "--engine", "serial")
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    contract = next(one["filename"] for one in info["documents"] if one["filename"].startswith("hosting"))
    assert {one["filename"].partition(".")[0]: one.get("labels", {}) for one in info["documents"]} == {
        "hosting": {"family": contract},
        "first": {"family": contract, "amends": contract, "effective_from": "2019-06-01"},
        "second": {"family": contract, "amends": contract, "effective_from": "2021-01-15"},
        "osprey": {},
    }
    gold = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["labels"].get("family") for line in gold] == [contract, contract, contract, None]
    noted = info["noted"]["amendments of another document of the corpus"]
    assert [line.rpartition(": ")[2] for line in noted] == [f"amends {contract}"] * 2
