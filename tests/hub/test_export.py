"""Each export format contains every item of the bundle that it can express; the other items are counted."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import evaluate_rag
from exhibit.conversion import main as convert_main
from exhibit.evidence import read_document
from exhibit.hub.exports import format_names, main, merge_cuts, score_chunks, tile
from exhibit.schemas.bundle import CORPUS, GOLD, TRAIN, write_gold, write_train
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, Context, Gold, Row
from exhibit.storage.bundle import open_bundle
from tests.hub.bundles import files_of
from tests.rag.bundles import rows_of

ONE, TWO = 'one "1".txt', "two.txt"
FEE, DUE, LAW = (1, 10), (12, 21), (0, 11)


@pytest.fixture(scope="module")
def pdf_bundle(converted) -> Path:
    """A bundle of PDFs with impossible rows, gold passages of several spans, and one passage that is absent."""
    return converted("cuad", "--keep-ambiguous")


def write_bundle(root: Path, documents: dict[str, bytes], rows: list[tuple]) -> Path:
    for name, data in documents.items():
        (root / CORPUS / name).parent.mkdir(parents=True, exist_ok=True)
        (root / CORPUS / name).write_bytes(data)
    train, gold = [], []
    for number, (question, passages) in enumerate(rows):
        contexts = [Context(filename=name, text=text) for name, text, _ in passages]
        answer = passages[0][1] if passages else IMPOSSIBLE_ANSWER
        train.append(Row(id=number, question=question, answer=answer, is_impossible=not passages, contexts=contexts))
        for index, (name, _, spans) in enumerate(passages or [(TWO, "", [])]):
            how = "exact" if spans else "absent"
            line = {"id": number, "context": index if passages else None, "filename": name, "pages": []}
            gold.append(Gold.model_validate({**line, "spans": spans, "alternatives": [], "how": how, "labels": {}}))
    write_train(train, root / TRAIN)
    write_gold(gold, root / GOLD)
    return root


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A bundle with gold in two files, a passage of two spans, a passage without location, and an impossible row."""
    documents = {ONE: "\ufeffFee: 5 🐚.\r\nDue: May.".encode(), f"deep/{TWO}": b"Law: Maine."}
    rows = [
        ("fee?", [(ONE, "Fee: 5 … Due: May.", [FEE, DUE])]),
        ("law?", [(TWO, "Law: Maine.", [LAW]), (ONE, "Due: May.", [DUE])]),
        ("seal?", [(ONE, "Sealed.", [])]),
        ("age?", []),
    ]
    return write_bundle(tmp_path / "small", documents, rows)


def export(root: Path, name: str, out: Path, *flags: str | Path, expect: int = 0) -> Path:
    assert main([str(root), "--to", name, "--out", str(out), *map(str, flags)]) == expect
    return out


def record(folder: Path) -> dict:
    return json.loads((folder / "export.json").read_text(encoding="utf-8"))


def qrels(folder: Path) -> list[list[str]]:
    with (folder / "qrels" / "test.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))


def test_format_names_returns_all_export_formats_and_exports_are_reproducible(small, tmp_path):
    assert set(format_names()) == {"beir", "legalbenchrag", "mteb", "questions", "squad", "text"}
    for name in ("beir", "legalbenchrag", "mteb", "squad"):
        first, second = (export(small, name, tmp_path / folder / name) for folder in "ab")
        assert files_of(first) == files_of(second)


@pytest.mark.parametrize("name", ["squad", "legalbenchrag", "mteb"])
def test_export_reads_markdown_and_cp1252_text_with_gold_offsets(name, tmp_path):
    """Markdown is rendered, and a text that is not UTF-8 is decoded: offsets refer to the reader's text."""
    files = {"lease.md": b"# Lease\n\nThe **rent** is *due* in May.\n", "fee.txt": "Gebühr: fünf\n".encode("cp1252")}
    for name_, data in files.items():
        (tmp_path / name_).write_bytes(data)
    texts = {name_: read_document(tmp_path / name_).text for name_ in files}
    quotes = {"lease.md": "rent is due", "fee.txt": "fünf"}
    rows = []
    for name_, quote in quotes.items():
        start = texts[name_].index(quote)
        rows.append((f"{name_}?", [(name_, quote, [(start, start + len(quote))])]))
    out = export(write_bundle(tmp_path / "in", files, rows), name, tmp_path / "out")
    if name == "squad":
        data = json.loads((out / "squad.json").read_text(encoding="utf-8"))["data"]
        found = {entry["title"]: entry["paragraphs"][0]["qas"][0]["answers"][0]["text"] for entry in data}
    elif name == "legalbenchrag":
        tests = json.loads((out / "benchmarks" / "in.json").read_text(encoding="utf-8"))["tests"]
        found = {test["query"][:-1]: test["snippets"][0]["answer"] for test in tests}
    else:
        corpus = {entry["id"]: entry["text"] for entry in rows_of(out / "corpus.jsonl")}
        rows = rows_of(out / "qrels.jsonl")
        assert all(quotes[query] in corpus[row["corpus-id"]] for row, query in zip(rows, quotes, strict=True))
        return
    assert found == quotes


def test_export_refuses_documents_whose_length_differs_from_bundle_json(pdf_bundle, tmp_path, capsys):
    changed = Path(shutil.copytree(pdf_bundle, tmp_path / "changed"))
    info = json.loads((changed / "bundle.json").read_text(encoding="utf-8"))
    info["documents"][0]["characters"] += 1
    (changed / "bundle.json").write_text(json.dumps(info), encoding="utf-8")
    export(changed, "squad", tmp_path / "out", expect=1)
    assert "but bundle.json says" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_export_replaces_only_an_earlier_export(small, tmp_path, capsys):
    out = export(small, "squad", tmp_path / "out")
    export(small, "squad", out, expect=1)
    export(small, "beir", out, "--force")
    assert (out / "corpus.jsonl").is_file() and not (out / "squad.json").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine", encoding="utf-8")
    export(small, "squad", tmp_path / "mine", "--force", expect=1)
    assert (tmp_path / "mine" / "thesis.txt").is_file() and "an export" in capsys.readouterr().err


def test_export_refuses_gold_past_the_end_of_a_document(small, tmp_path, capsys):
    lines = (small / GOLD).read_text(encoding="utf-8").replace("[[0, 11]]", "[[0, 99]]")
    (small / GOLD).write_text(lines, encoding="utf-8")
    export(small, "squad", tmp_path / "out", expect=1)
    assert "gold at 0-99 is past the end" in capsys.readouterr().err
    (small / GOLD).unlink()
    export(small, "squad", tmp_path / "out", expect=1)
    assert "this format needs the locations of the gold" in capsys.readouterr().err


def test_legalbenchrag_export_converts_back_to_the_same_gold(converted, tmp_path):
    before = open_bundle(converted("legalbenchrag"))
    out = export(before.root, "legalbenchrag", tmp_path / "out")
    back = tmp_path / "back"
    assert convert_main(["legalbenchrag", "--source", str(out), "--out", str(back), "--jobs", "1"]) == 0
    after = open_bundle(back)
    assert [question.question for question in after.questions] == [question.question for question in before.questions]
    joined = {int(id) for id in record(out)["noted"]["snippets of a test at most one character apart were merged"]}
    assert joined, "a question must have overlapping gold"
    for number, (old, new) in enumerate(zip(before.questions, after.questions, strict=True)):
        if old.id not in joined:
            spans = [[line.spans for line in b.gold if line.id == q.id] for b, q in ((before, old), (after, new))]
            assert spans[0] == spans[1] and old.contexts == new.contexts, number


def test_legalbenchrag_export_snippets_equal_the_text_at_the_stated_spans(small, tmp_path):
    out = export(small, "legalbenchrag", tmp_path / "out")
    tests = json.loads((out / "benchmarks" / "small.json").read_text(encoding="utf-8"))["tests"]
    answers = [[snippet["answer"] for snippet in test["snippets"]] for test in tests]
    assert answers == [["Fee: 5 🐚.", "Due: May."], ["Law: Maine.", "Due: May."]]
    assert record(out)["left_out"] == {
        "passage that is not located in the document": [f"2: {ONE}"],
        "question without a located passage": ["2"],
        "impossible question": ["3"],
    }


def test_legalbenchrag_export_merges_snippets_at_most_a_character_apart():
    cuts = [("b", 0, 2), ("a", 4, 6), ("a", 0, 3), ("a", 7, 9), ("a", 5, 8)]
    assert merge_cuts(cuts) == [("b", 0, 2), ("a", 0, 9)]


def test_beir_export_has_documents_queries_and_relevant_documents(small, tmp_path):
    out = export(small, "beir", tmp_path / "out")
    assert {line["_id"]: line["text"] for line in rows_of(out / "corpus.jsonl")}[TWO] == "Law: Maine."
    assert [line["text"] for line in rows_of(out / "queries.jsonl")] == ["fee?", "law?", "seal?", "age?"]
    assert qrels(out)[1:] == [["0", ONE, "1"], ["1", TWO, "1"], ["1", ONE, "1"], ["2", ONE, "1"]]
    assert record(out)["noted"] == {"query without a relevant text": ["3"]}


@pytest.mark.parametrize("text", ["", "a", "word " * 900, "x" * 2500, "One.\n\n" * 400, "line\n" * 700 + "y" * 1500])
def test_tile_covers_text_with_chunks_of_at_most_1000_characters(text):
    assert "".join(text[start:end] for start, end in tile(text)) == text
    assert all(end - start <= 1000 for start, end in tile(text))


@pytest.mark.parametrize(
    ("text", "end"),
    [("a. b\nc\n\nd" + " e" * 9, 8), ("ab\nc. d. e" + "f" * 9, 9), ("abcde fghijklmno", 6), ("a" * 20, 10)],
)
def test_tile_ends_a_chunk_at_the_best_break_in_the_second_half_of_the_chunk(text, end):
    assert next(tile(text, 10)) == (0, end)


def test_chunk_with_half_of_the_gold_gets_a_higher_grade_than_a_chunk_with_less():
    line = Gold(id=0, context=0, filename="a", pages=[], spans=[(5, 15)], alternatives=[], how="exact")
    assert score_chunks([line], {"a": [(0, 7), (7, 20)]}) == {"a#0-7": 1, "a#7-20": 2}


def test_squad_export_answers_occur_at_the_stated_offsets(small, tmp_path):
    out = export(small, "squad", tmp_path / "out")
    data = json.loads((out / "squad.json").read_text(encoding="utf-8"))["data"]
    entries = {}
    for document in data:
        [paragraph] = document["paragraphs"]
        for entry in paragraph["qas"]:
            entries[entry["id"], document["title"]] = entry
            for answer in entry["answers"]:
                assert paragraph["context"].startswith(answer["text"], answer["answer_start"])
    assert set(entries) == {("0", ONE), ("1-1", TWO), ("1-2", ONE), ("3", TWO)} and entries["3", TWO]["is_impossible"]
    assert record(out)["noted"] == {"question on several documents, repeated for each": ["1"]}


def test_mteb_task_describes_the_bundle_and_compiles(pdf_bundle, tmp_path):
    out = export(pdf_bundle, "mteb", tmp_path / "mteb")
    task = json.loads((out / "task.json").read_text(encoding="utf-8"))
    assert task["main_score"] == "ndcg_at_10" and task["license"] == "cc-by-4.0"
    compile((out / "task.py").read_text(encoding="utf-8"), "task.py", "exec")


@pytest.mark.parametrize(
    ("languages", "named"),
    [("fr", ["fra-Latn"]), ("el, en", ["ell-Grek", "eng-Latn"]), ("qu", ["eng-Latn"]), ("qu, cs", ["ces-Latn"])],
)
def test_mteb_task_names_only_languages_that_mteb_knows(small, tmp_path, languages, named):
    (small / "README.md").write_text(f"---\nlanguage: [{languages}]\n---\n", encoding="utf-8")
    out = export(small, "mteb", tmp_path / "mteb")
    assert json.loads((out / "task.json").read_text(encoding="utf-8"))["eval_langs"] == named


def test_evaluate_rejects_predictions_for_another_bundle_version(pdf_bundle, tmp_path, capsys):
    out = export(pdf_bundle, "questions", tmp_path / "asked")
    asked, seal = rows_of(out / "questions.jsonl"), json.loads((out / "sealed.json").read_text(encoding="utf-8"))
    assert {frozenset(row) for row in asked} == {frozenset({"id", "question", "sealed"})}
    assert {row["sealed"] for row in asked} == {seal["sealed"]} and seal["questions"] == len(asked)
    assert "answer" not in (out / "sealed.json").read_text(encoding="utf-8")
    for name, sealed, code in (("ours", seal["sealed"], 0), ("other", "0" * 64, 1)):
        rows = [{**row, "answer": "Not found in provided documents", "sealed": sealed} for row in asked]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        words = ["--target", f"predictions:{path}", "--output-dir", str(tmp_path / "results"), "--run-name", name]
        assert evaluate_rag.main([str(pdf_bundle), *words, "--set", "report_cases=0"]) == code
    assert "another version" in capsys.readouterr().err
