"""Passages are located: format and file names do not change metrics; unknown values and stale files are reported."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import evaluate_rag
from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.placement import Documents
from exhibit.evaluation.replies import read_passages
from exhibit.evaluation.scoring import Evidence
from exhibit.evidence import Document, Page, Span
from exhibit.schemas.errors import ToolkitError
from tests.rag.bundles import row, rows_of, write_files


def test_repeated_text_is_located_on_the_page_that_the_system_names(monkeypatch):
    words = "Each party shall keep the terms of this Lease secret for three years after its end."
    text, pages = "", []
    for number, matter in enumerate(("water", "grain", "rent"), 1):
        start = len(text)
        text += f"The part on the {matter} of the Mill.\n\n{words}\n\n"
        pages.append(Page(number, Span(start, len(text)), 595.0, 842.0))
    document = Document("parts.pdf", text, tuple(pages))
    shelf = Documents({"parts.pdf": Path("parts.pdf")})
    monkeypatch.setattr(shelf, "get", lambda name: document)
    assert shelf.place(Passage(words, "parts.pdf", told_page=3)).pages == (3,)
    assert shelf.place(Passage(words, "parts.pdf", told_page=9)).pages == (1,), "a page without the words is ignored"


PARTIES = """Alder Freight, Birch Court, Cedar & Daughters, Dune Rail, Élan Voyages, Fjord Ferries, Grove Mills,
Harbour Light, Iris Print, Juniper Wines, Kestrel Tools, Larch Homes, Moor Stone, Nettle Tea, Oak Lodge""".split(",")
ENDING = "Either party may end this Agreement by ninety (90) days' notice in writing to the other party."
TERM = "The term of this Agreement is five years from the date on which it is signed by the last party to sign it."


def template(party: str) -> str:
    """Return a contract that differs from the others only in the name in its title."""
    return (
        f"SERVICE AGREEMENT\n\nbetween {party} and the Customer\n\n1. Term. {TERM}\n\n"
        f"2. Notice. {ENDING}\n\n3. Law. This Agreement is governed by the law of Norway.\n"
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Fifteen contracts from one template, with a question on the same clause of each."""
    texts, rows = {}, []
    for number, party in enumerate(" ".join(party.split()) for party in PARTIES):
        name = f"{party}.txt"
        texts[name] = template(party)
        question = f"Consider the Service Agreement of {party}; how is it ended?"
        rows.append(row(number, question, "By ninety days' notice", {"filename": name, "text": ENDING}))
    return write_files(tmp_path_factory.mktemp("data") / "templates", texts, rows)


@pytest.fixture(scope="module")
def dataset(folder):
    [dataset], _ = load_datasets([folder], Selection())
    return dataset


def test_words_added_to_a_chunk_are_marked_and_reported(dataset):
    words, case = "This chunk is from a contract on freight", dataset.cases[0]
    passage = dataset.documents.place(Passage(f"{words}.\n\n{ENDING}", case.filename), case.gold)
    assert [passage.text[start:end] for start, end in passage.added] == [words]
    notes = Evidence().add(replace(case, reply=Reply("By notice.", (passage,))))
    assert "1 of 1 passages have words that their document lacks" in notes


def test_passage_with_wrong_file_name_is_assigned_to_the_document_that_contains_the_text(dataset):
    case = dataset.cases[0]
    title = "SERVICE AGREEMENT\n\nbetween Birch Court and the Customer"
    passage = dataset.documents.place(Passage(title, case.filename), case.gold)
    assert (passage.filename, passage.told_filename, passage.misnamed) == ("Birch Court.txt", case.filename, True)
    notes = Evidence().add(replace(case, reply=Reply("By notice.", (passage,))))
    assert "1 of 1 passages name one document, but have the words of another" in notes


def passages_of(case: Case) -> list[dict[str, str]]:
    """Return three passages: the right clause, another clause of the same contract, and one of another contract."""
    other = "Oak Lodge.txt" if case.filename != "Oak Lodge.txt" else "Nettle Tea.txt"
    return [{"filename": name, "text": text} for name, text in
            ((case.filename, f"2. Notice. {ENDING}"), (case.filename, f"1. Term. {TERM}"), (other, TERM))]  # fmt: skip


def measure_replies(dataset, passages):
    """Return the metrics of replies with these passages, and the cases."""
    cases = []
    for case in dataset.cases:
        read = read_passages(passages(case), names=dataset.documents.named)
        placed = tuple(dataset.documents.place(passage, case.gold) for passage in read)
        cases.append(replace(case, reply=Reply("By 90 days' notice.", placed)))
    return measure(cases), cases


def test_passages_without_file_names_count_in_passage_metrics_but_not_in_document_metrics(dataset):
    values, cases = measure_replies(dataset, lambda case: [{"text": hit["text"]} for hit in passages_of(case)])
    assert set(values["char_recall@8"]) == set(values["recall@10"]) == {1.0}
    assert set(values["document_hit@1"]) == set(values["drm@8"]) == {None}
    assert "3 of 3 passages have words that are in several files (ambiguous)" in Evidence().add(cases[0])
    gold = measure_replies(dataset, lambda case: [{"text": ENDING}])[0]
    assert set(gold["char_recall@1"]) == set(gold["char_precision@1"]) == {1.0}


def test_evaluate_warns_of_missing_or_unknown_file_names_in_terminal_and_report(folder, dataset, tmp_path, capsys):
    path = tmp_path / "replies.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for case in dataset.cases:
            passages = [ENDING, {"text": TERM, "source": f"doc-{case.id}"}]
            file.write(json.dumps({"id": case.id, "answer": "By 90 days' notice.", "passages": passages}) + "\n")
    flags = ["--dataset-paths", str(folder), "--target", f"predictions:{path}", "--output-dir", str(tmp_path)]
    assert evaluate_rag.main([*flags, "--run-name", "r", "--metrics", "char-recall,document-hit,answer-contained"]) == 0
    output = capsys.readouterr()
    assert "templates: 15 of 30 passages name files that the bundle lacks: doc-0, doc-1, doc-2" in output.err
    assert "templates: 15 of 30 passages have no name" in output.err and "30 of 30 passages have words" in output.err
    assert "no passage has a known file (15 of 15 questions)" in output.err
    assert "1.000 [1.000, 1.000] SD 0.000 (n 15)" in output.out
    report = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert report.index("passages name files that the bundle lacks: doc-0, doc-1, doc-2") < report.index('id="outcome"')
    [first, *_] = rows_of(tmp_path / "r" / "templates" / "eval_results.jsonl")
    named = first["reply"]["passages"]
    assert [passage.get("told_filename") for passage in named] == ["", "doc-0"] and named[0]["filename"] is None
    assert named[0]["also_in"][0] == "Alder Freight.txt" and len(named[0]["also_in"]) == 15
    assert first["scores"]["document_hit@1"] is None and first["scores"]["answer_contained"] == 1.0


def test_passage_metrics_are_none_without_located_gold(dataset):
    _, cases = measure_replies(dataset, passages_of)
    lost = replace(cases[0], gold=(GoldPassage(cases[0].filename, "words of another edition", absent=True),))
    values = {name: column[0] for name, column in measure([lost]).items()}
    known = {"document_hit@1": 1.0, "drm@1": 0.0, "answer_contained": 1.0}
    assert {name: values[name] for name in known} == known, "document and answer metrics have values"
    passage_metrics = ("char_", "recall", "ndcg", "mrr", "exact_match", "span_f1", "chunk_")
    assert not [name for name, value in values.items() if name.startswith(passage_metrics) and value is not None]


def test_gold_that_is_not_located_is_ignored_by_measure_and_reported_by_evidence(dataset):
    _, cases = measure_replies(dataset, passages_of)
    half = replace(cases[0], gold=(*cases[0].gold, GoldPassage("Oak Lodge.txt", "of another edition", absent=True)))
    values = measure([half], names=["char_recall@8", "recall", "ndcg@10", "mrr"])
    assert {value for column in values.values() for value in column} == {1.0}
    assert "some gold is not located: passage metrics use the other gold" in Evidence().add(half)


HIT = {"text": ENDING, "filename": "Alder Freight.txt"}
LACKS = {
    "no passages": ([], {"char_recall@8": 0.0, "recall@10": 0.0, "document_hit@1": 0.0, "drm@1": None},
                    "the reply has no passages"),
    "no words": ([{"filename": "Alder Freight.txt"}],
                 {"char_recall@8": None, "recall@10": None, "document_hit@1": 1.0, "drm@1": 0.0},
                    "no passage has words"),
    "unknown words without file name": ([{"text": "summary of a clause"}],
                               {"char_recall@8": None, "recall@10": None, "document_hit@1": None, "drm@1": None},
                    "1 of 1 passages have words that are in no document, or too few to be located"),
    "unknown words": ([{"text": "A summary of this clause in the system's words.", "filename": "Alder Freight.txt"}],
                      {"char_recall@8": None, "recall@10": None, "document_hit@1": 1.0, "drm@1": 0.0},
                    "1 of 1 passages have words that are in no document, or too few to be located"),
    "a file that the bundle lacks": ([{"text": "other words", "filename": "Quarry.txt"}],
                              {"char_recall@8": 0.0, "document_hit@1": 0.0, "drm@1": 1.0},
                    "1 of 1 passages name files that the bundle lacks"),
    "the same passage twice": ([HIT, HIT], {"char_recall@8": 1.0, "char_precision@2": 1.0, "ndcg@10": 1.0},
                    None),
    "offsets beyond the end": ([{**HIT, "start": 5, "end": 10**7}], {"char_recall@8": 1.0, "char_precision@1": 1.0},
                    None),
    "a score of NaN": ([{**HIT, "score": float("nan")}], {"char_recall@8": 1.0}, None),
    "passages of another document": ([{"text": template("Birch Court"), "filename": "Birch Court.txt"}],
                                    {"char_recall@8": 0.0, "document_hit@1": 0.0, "drm@1": 1.0},
                    None),
}  # fmt: skip


@pytest.mark.parametrize("lack", LACKS)
def test_reply_with_missing_fields_gets_expected_metrics_and_notes(dataset, lack):
    given, expected, note = LACKS[lack]
    case = dataset.cases[0]
    read = read_passages(given, names=dataset.documents.named)
    placed = tuple(dataset.documents.place(passage, case.gold) for passage in read)
    case = replace(case, reply=Reply("By ninety (90) days' notice.", placed))
    values = measure([case], names=list(expected))
    assert {name: column[0] for name, column in values.items()} == expected
    notes = Evidence().add(case)
    assert notes == [] if note is None else note in notes


TRUTHS = {
    "no answer": ({}, Reply(None, (Passage(ENDING, "Alder Freight.txt"),)),
                  {"answer_contained": None, "answer_f1": None, "false_refusal_rate": None},
                  "the reply has no answer"),
    "no expected answer": ({"truth": " "}, Reply("90 days"),
                           {"answer_contained": None, "answer_f1": None, "answer_correctness": None}, None),
    "gold without words": ({"gold": (GoldPassage("Alder Freight.txt", None),)},
                             Reply("90 days", (Passage(ENDING, "Alder Freight.txt", Span(0, 9)),)),
                             {"mrr@10": None, "recall@10": None, "char_recall@8": None,
                              "document_hit@1": 1.0}, "the gold quotes no words: document and answer metrics only"),
    "an impossible question": ({"is_impossible": True}, Reply("90 days", (Passage(ENDING, "Alder Freight.txt"),)),
                   {"abstention_accuracy": 0.0, "false_refusal_rate": None, "answer_f1": None, "recall@10": None,
                    "document_hit@1": None, "answer_contained": None}, None),
    "an error": ({}, Reply(error="HTTP 500"), {"answer_f1": None, "recall@10": None, "document_hit@1": None}, None),
}  # fmt: skip


@pytest.mark.parametrize("lack", TRUTHS)
def test_metrics_are_none_if_required_fields_are_missing(dataset, lack):
    fields, reply, expected, note = TRUTHS[lack]
    case = replace(dataset.cases[0], reply=reply, **fields)
    values = measure([case], names=list(expected))
    assert {name: column[0] for name, column in values.items() if name in expected} == expected
    assert note is None or note in Evidence().add(case)


def load_changed_copy(folder, tmp_path, name, change):
    """Copy the bundle, apply `change` to the copy, and load the copy."""
    copy = shutil.copytree(folder, tmp_path / name)
    change(copy)
    return load_datasets([copy], Selection(file_type=("all",)))


def append(path, text=" "):
    path.write_bytes(path.read_bytes() + text.encode())


def test_load_datasets_checks_files_against_bundle_json(converted, tmp_path):
    bundle = converted("cuad")
    for name in ("gold.jsonl", "train.json"):
        with pytest.raises(ToolkitError, match=rf"1 files differ from bundle.json \({name}\)"):
            load_changed_copy(bundle, tmp_path, name, lambda copy, name=name: append(copy / name, "\n"))
    [dataset], warnings = load_changed_copy(
        bundle, tmp_path, "stray", lambda copy: (copy / "corpus" / "stray.txt").write_text("x")
    )
    assert "stray.txt" not in dataset.files and "1 files not listed in bundle.json (stray.txt)" in warnings[0]
    first = next(path.name for path in sorted((bundle / "corpus").iterdir()))
    [dataset], warnings = load_changed_copy(bundle, tmp_path, "lost", lambda copy: (copy / "corpus" / first).unlink())
    lost = [case.id for case in dataset.cases if case.filename == first]
    assert lost and set(dataset.refused) == set(lost) and "not in corpus/" in warnings[0]
    assert all("not in corpus/" in reason for reason in dataset.refused.values())


def test_resume_refuses_run_when_files_have_changed(folder, dataset, tmp_path, capsys):
    data = shutil.copytree(folder, tmp_path / "templates")
    path = tmp_path / "replies.jsonl"
    lines = [json.dumps({"id": case.id, "answer": "x", "passages": [ENDING]}) for case in dataset.cases]
    path.write_text("\n".join(lines), encoding="utf-8")
    flags = ["--dataset-paths", str(data), "--target", f"predictions:{path}", "--output-dir", str(tmp_path / "r")]
    flags += ["--run-name", "r", "--report-cases", "0"]
    assert evaluate_rag.main(flags) == 0 and evaluate_rag.main([*flags, "--resume"]) == 0
    path.write_text("\n".join(lines).replace('"x"', '"y"'), encoding="utf-8")
    assert evaluate_rag.main([*flags, "--resume"]) == 1
    assert "was started with other files (replies.jsonl), so its replies are out of date" in capsys.readouterr().err
    path.write_text("\n".join(lines), encoding="utf-8")
    append(data / "corpus" / "Alder Freight.txt")
    assert evaluate_rag.main([*flags, "--resume"]) == 1
    assert "other files (templates/corpus/Alder Freight.txt)" in capsys.readouterr().err
