"""Bundles become cases: questions and files are selected, gold is located, problems are reported together."""

import json
import shutil

import pytest

from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.schemas.errors import BundleError
from tests.rag.bundles import row, write_bundle


def load_dataset(folder, **selection):
    [dataset], warnings = load_datasets([folder], Selection(**selection))
    return dataset, warnings


def test_load_datasets_reads_rows_with_gold_and_labels(tmp_path):
    dataset, warnings = load_dataset(write_bundle(tmp_path / "leases"))
    assert (dataset.name, len(dataset.cases), warnings) == ("leases", 9, [])
    law = dataset.cases[3]
    [gold] = law.gold
    [[span]] = gold.places
    text = (tmp_path / "leases" / "corpus" / "birch.txt").read_text()
    assert text[span.start : span.end] == gold.text == "This Agreement is governed by the law of Ohio."
    assert law.labels == {"clause": "law", "party": "b"} and law.gold[0].how == "exact"
    impossible = dataset.cases[2]
    assert impossible.is_impossible and impossible.filename == "alder.txt" and impossible.gold[0].how is None


def test_load_datasets_reads_corpus_subfolders(tmp_path):
    bundle = write_bundle(tmp_path / "leases", gold=False)
    (bundle / "corpus" / "old").mkdir()
    (bundle / "corpus" / "birch.txt").rename(bundle / "corpus" / "old" / "birch.txt")
    dataset, _ = load_dataset(bundle)
    assert sorted(dataset.files) == ["alder.txt", "birch.txt", "cedar.txt"]
    assert dataset.cases[3].gold[0].places, "gold in the subfolder is located"


def test_load_datasets_locates_quotes_when_gold_jsonl_is_missing(tmp_path):
    with_lines, _ = load_dataset(write_bundle(tmp_path / "a"))
    without, _ = load_dataset(write_bundle(tmp_path / "b", gold=False))
    assert [case.gold for case in without.cases] == [case.gold for case in with_lines.cases]
    rows = [row("q1", "Which law?", "Chile", "This Agreement is governed by the law of Chile."),
            row("q2", "Who?", "nobody", "Words that stand in no document at all, wherever one looks.")]  # fmt: skip
    found, absent = load_dataset(write_bundle(tmp_path / "own", rows=rows, gold=False))[0].cases
    assert found.gold[0].filename == "cedar.txt" and found.gold[0].places and found.gold[0].how == "exact"
    assert absent.gold[0].filename is None and not absent.gold[0].places and absent.gold[0].how == "absent"


def test_where_selects_questions_that_match_every_label(tmp_path):
    folder = write_bundle(tmp_path / "leases")
    asked = load_dataset(folder, where={"clause": ("law", "term"), "party": ("a", "c")})[0].cases
    assert [case.id for case in asked] == [0, 1, 6, 7]
    unlabelled = write_bundle(tmp_path / "b", gold=False)
    datasets, warnings = load_datasets([folder, unlabelled], Selection(where={"clause": ("law",)}))
    assert [dataset.name for dataset in datasets] == ["leases"] and "no question matches" in warnings[0]
    message = r"did you mean --where clause=term\?\); the values are clause: law, none, term; court: no such label"
    with pytest.raises(BundleError, match=message):
        load_datasets([folder], Selection(where={"clause": ("Term",), "court": ("TCC",)}))


def test_limit_takes_first_questions_or_seeded_sample(tmp_path):
    folder = write_bundle(tmp_path / "leases")
    ids = lambda **selection: [case.id for case in load_dataset(folder, **selection)[0].cases]  # noqa: E731
    assert ids(limit=3) == [0, 1, 2] and ids(limit=99) == list(range(9))
    drawn = ids(limit=4, sample_seed=7)
    assert drawn == ids(limit=4, sample_seed=7) == sorted(drawn) and len(set(drawn)) == 4
    assert any(ids(limit=4, sample_seed=seed) != drawn for seed in range(5))


def test_file_type_excludes_other_files_and_warns_about_gold_in_excluded_files(tmp_path):
    folder = write_bundle(tmp_path / "leases")
    (folder / "corpus" / "alder.txt").rename(folder / "corpus" / "alder.html")
    dataset, warnings = load_dataset(folder, file_type=("html",))
    assert list(dataset.files) == ["alder.html"]
    assert "6 of 9 questions fail: the gold is in 2 files that are left out by their type" in warnings[0]
    assert "2 of 9 questions fail: the gold is in 1 files that are not in corpus/: alder.txt" in warnings[1]
    assert list(load_dataset(folder)[0].files) == ["alder.html", "birch.txt", "cedar.txt"]


def test_load_datasets_reports_all_problems_together(tmp_path):
    write_bundle(tmp_path / "good")
    (tmp_path / "empty").mkdir()
    bad = write_bundle(tmp_path / "bad")
    (bad / "train.json").write_text(json.dumps([{"question": "", "answer": "x"}]))
    (tmp_path / "other").mkdir()
    write_bundle(tmp_path / "other" / "good")
    paths = [tmp_path / "good", tmp_path / "empty", bad, tmp_path / "other" / "good", tmp_path / "none*"]
    with pytest.raises(BundleError) as caught:
        load_datasets(paths, Selection(file_type=("pdf",)))
    message = str(caught.value)
    for part in ("none*: no file or folder matches", "empty/train.json: missing", "bad/train.json: row 0: question",
                 "another dataset has the name 'good'", "good: corpus/ has no pdf file, only 3 .txt"):  # fmt: skip
        assert part in message


def test_load_datasets_skips_files_and_partial_folders_from_shell_glob(tmp_path):
    write_bundle(tmp_path / "leases")
    (tmp_path / "README.md").write_text("bundles")
    (tmp_path / "next.partial").mkdir()
    datasets, warnings = load_datasets(sorted(tmp_path.iterdir()), Selection())
    assert [dataset.name for dataset in datasets] == ["leases"] and len(warnings) == 2
    twice, _ = load_datasets([tmp_path / "leases", tmp_path / "lea*"], Selection())
    assert len(twice) == 1


def test_file_type_skips_dataset_without_files_of_that_type(tmp_path):
    texts, pages = write_bundle(tmp_path / "texts"), write_bundle(tmp_path / "pages")
    for path in (pages / "corpus").iterdir():
        path.rename(path.with_suffix(".html"))
    datasets, warnings = load_datasets([texts, pages], Selection(file_type=("txt",)))
    assert [dataset.name for dataset in datasets] == ["texts"]
    assert any("pages: corpus/ has no txt file, only 3 .html" in warning for warning in warnings)


def test_file_type_defaults_to_pdf_when_all_gold_is_in_pdfs(converted, tmp_path):
    bundle = shutil.copytree(converted("cuad"), tmp_path / "cuad")
    (bundle / "bundle.json").unlink()
    (bundle / "corpus" / "notes.txt").write_text("Notes on the contracts.", encoding="utf-8")
    dataset, warnings = load_dataset(bundle)
    assert "notes.txt" not in dataset.files
    assert "1 files that are not PDFs are left out; use --file-type all to include them" in warnings[0]
    assert "notes.txt" in load_dataset(bundle, file_type=("all",))[0].files
    leases = write_bundle(tmp_path / "leases")
    shutil.copy(next((bundle / "corpus").glob("*.[pP][dD][fF]")), leases / "corpus" / "more.pdf")
    assert len(load_dataset(leases)[0].files) == 4, "gold in text files selects all files"


def test_file_type_pdf_recognises_pdf_without_extension_by_content(converted, tmp_path):
    bundle = shutil.copytree(converted("maud"), tmp_path / "mergers")
    for extra in ("bundle.json", "gold.jsonl"):
        (bundle / extra).unlink()
    names = {path.name: f"Report_{number}" for number, path in enumerate(sorted((bundle / "corpus").iterdir()))}
    for name, new in names.items():
        (bundle / "corpus" / name).rename(bundle / "corpus" / new)
    rows = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    for asked in rows:
        for context in asked["contexts"]:
            context["filename"] = names[context["filename"]]
    (bundle / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    (bundle / "corpus" / "Notes_2023").write_text("Notes on the mergers.", encoding="utf-8")
    pdfs, _ = load_dataset(bundle, file_type=("pdf",))
    assert sorted(pdfs.files) == sorted(names.values())
    assert any(gold.pages for case in pdfs.cases for gold in case.gold)
    usual, notes = load_dataset(bundle)
    assert usual.files == pdfs.files and "1 files that are not PDFs" in notes[0]
    assert list(load_dataset(bundle, file_type=("txt",))[0].files) == ["Notes_2023"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("contracts", r"documents without questions \(train.json\); draft questions first: exhibit draft .*contracts"),
        ("out/leases/train.json", r"a file; name the bundle's folder, such as .*leases$"),
        ("out", r"a folder with several bundles; name them as .*out/\*"),
        ("out/leasse", "no such folder; did you mean .*out/leases"),
        ("out/zebra", "zebra: no such folder$"),
    ],
)
def test_load_datasets_suggests_remedy_for_path_without_bundle(tmp_path, path, message):
    write_bundle(tmp_path / "out" / "leases")
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "lease.txt").write_text("A lease.", encoding="utf-8")
    with pytest.raises(BundleError, match=message):
        load_datasets([tmp_path / path], Selection())


@pytest.mark.parametrize(
    ("answer", "how"),
    [
        ("This Agreement is governed by the law of Chile.", "exact"),
        ("This Agreement is governed by the law of Peru, as agreed.", None),
        ("the law of Chile.", None),
    ],
)
def test_load_datasets_uses_long_verbatim_answer_as_gold(tmp_path, answer, how):
    rows = [row("q", "Which law?", answer, {"filename": "cedar.txt"})]
    dataset, warnings = load_dataset(write_bundle(tmp_path / "own", rows=rows, gold=False))
    [gold] = dataset.cases[0].gold
    assert (gold.how, bool(gold.places), gold.text) == (how, bool(how), answer if how else None)
    assert any("1 questions without gold: the expected answer is used" in warning for warning in warnings) is bool(how)
