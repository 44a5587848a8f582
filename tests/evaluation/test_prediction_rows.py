"""Files of predictions, passages located in documents, checks of files and questions, grades, labels, commits."""

import json
import subprocess
from dataclasses import replace

import pytest

from exhibit.evaluation.cases import GoldPassage, Passage
from exhibit.evaluation.datasets import Selection, load_datasets, read_grades
from exhibit.evaluation.evaluate import commit_of
from exhibit.evaluation.journal import Journal
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.placement import Documents, touches
from exhibit.evaluation.replies import read_reply
from exhibit.evaluation.runs import kinds_of
from exhibit.evaluation.targets import TargetOptions
from exhibit.evaluation.targets.predictions import Predictions, id_of, question_of, read_rows
from exhibit.evidence import Span
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import Gold
from tests.evaluation.systems import FILES, evaltools, nvidia_rows, ragas, write_content
from tests.rag.bundles import write_bundle

WHOLE = ("answer_f1", "abstention_accuracy", "char_recall@8", "document_hit@1", "recall@10")


@pytest.fixture
def predictions(tmp_path):
    """A function that returns the target for a file with these rows."""
    return lambda rows: Predictions(write_content(tmp_path / "p.json", rows), TargetOptions())


ROWS = [{"id": 1, "answer": "a"}, {"id": 2, "answer": "b"}]


@pytest.mark.parametrize(("name", "content"), [
    ("p.json", ROWS), ("p.json", {"results": ROWS}), ("p.json", {"id": [1, 2], "answer": ["a", "b"]}),
    ("p.jsonl", '\ufeff{"id": 1, "answer": "a"}\n\n{"id": 2, "answer": "b"}\n'),
])  # fmt: skip
def test_read_rows_accepts_lists_lines_and_columns(tmp_path, name, content):
    assert read_rows(write_content(tmp_path / name, content)) == ROWS


def test_read_rows_parses_table_cells_as_text_or_passages(tmp_path):
    table = 'id,answer,passages\n1,"[1] says so","[""x"", ""y""]"\n2,,"[{\'text\': \'z\'}]"\n3,[,{\n'
    rows = list(read_rows(write_content(tmp_path / "p.csv", table)))
    assert rows[0] == {"id": "1", "answer": "[1] says so", "passages": ["x", "y"]}
    assert rows[1] == {"id": "2", "passages": [{"text": "z"}]} and rows[2]["answer"] == "["
    assert list(read_rows(write_content(tmp_path / "p.tsv", "id\tanswer\n1\ta, b\n"))) == [
        {"id": "1", "answer": "a, b"}
    ]
    assert read_rows(write_content(tmp_path / "s.csv", "id,answer\n1,a; b; c\n")) == [{"id": "1", "answer": "a; b; c"}]
    [row] = read_rows(write_content(tmp_path / "q.csv", f"id,answer\n1,{'x' * 200_000}\n"))
    assert len(row["answer"]) == 200_000


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.json", "{", "not JSON"),
        ("p.json", [3], "expected a list of objects"),
        ("p.json", [{"id": 1, "answer": "a"}, {"answer": "b"}], "row 1 has neither an id nor a question"),
        ("p.jsonl", '{"id": 1, "answer": "a"}\n\n{"id": 2, "answer": \n', "line 3: Expecting value"),
    ],
)
def test_read_rows_rejects_invalid_predictions_file(tmp_path, name, content, words):
    with pytest.raises(ToolkitError, match=words):
        read_rows(write_content(tmp_path / name, content))


def test_unusable_id_or_question_of_a_prediction_row_is_read_as_none():
    assert (id_of({"id": 0}), id_of({"id": ""}), id_of({})) == ("0", None, None)
    assert question_of({"question": " A\n b "}) == "a b" and question_of({"question": 3}) is None


@pytest.mark.parametrize(("row", "field", "value"), [
    ({"answer": "a", "error": "down"}, "error", "down"), ({"answer": "late", "latency": -1}, "error", "late"),
    ({"latency": "-1"}, "error", "the row is marked as failed"),
    ({"id": 1}, "error", "neither an answer nor passages"), ({"id": 1, "answer": " "}, "answer", ""),
    ({"answer": "a", "confidence": 0.5}, "confidence", 0.5), ({"answer": "a", "selected": 1}, "selected", 1),
    ({"answer": "a", "latency": "3"}, "seconds", 3.0), ({"answer": "a", "seconds": -2}, "seconds", None),
    ({"answer": "a", "seconds": 0}, "seconds", 0.0),
])  # fmt: skip
def test_read_reply_reads_error_confidence_selected_passages_and_seconds(row, field, value):
    assert getattr(read_reply(row, lambda name: name), field) == value


def test_predictions_match_rows_by_id_then_question(predictions, dataset):
    first, second, *_ = dataset.cases
    target = predictions([{"id": first.id, "answer": "a"}, {"question": second.question, "answer": "b"}])
    replies = [reply for _, reply in target.ask(dataset, dataset.cases[:3])]
    assert [reply.answer for reply in replies] == ["a", "b", None] and replies[2].error == "no prediction in p.json"
    notes = target.probe(dataset, dataset.cases)
    assert "7 of 9 questions of leases have no row: they count as failed" in notes[1] and len(notes) == 2
    assert len(target.probe(dataset, dataset.cases[:2])) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": id, "answer": "a"} for id in "xyx"], "rows 1 and 3 both answer 'x'"),
        ([{"id": 1, "odd": 3}], "not recognised as replies: {id: number"),
        ([{"id": 1, "truth": "t", "is_impossible": False}], "not recognised as replies: {id: number"),
        ([{"id": "none", "answer": "a"}], r"no row answers .* question 0 \(.{1,80}\); is the file for another"),
        ("a question that occurs twice", "a question occurs twice"),
        ("train.json", "contains the questions of leases with the expected answers"),
        ("columns of train.json", "contains the questions of leases with the expected answers"),
    ],
)
def test_predictions_reject_file_whose_rows_are_ambiguous_or_are_no_replies(predictions, dataset, rows, message):
    truths = json.loads((dataset.root / "train.json").read_text(encoding="utf-8"))
    rows = {
        "a question that occurs twice": [{"question": dataset.cases[0].question, "answer": answer} for answer in "ab"],
        "train.json": truths,
        "columns of train.json": [
            {key: row[key] for key in ("id", "question", "answer", "contexts")} for row in truths
        ],
    }.get(str(rows), rows)
    with pytest.raises(ToolkitError, match=message):
        predictions(rows).probe(dataset, [case for case in dataset.cases if case.gold])


def test_predictions_without_ids_reject_bundle_with_repeated_question(predictions, dataset):
    first = dataset.cases[0]
    row, twice = {"question": first.question, "answer": "x"}, replace(dataset, cases=(first, replace(first, id=99)))
    with pytest.raises(ToolkitError, match="a question occurs twice"):
        predictions([row]).probe(twice, twice.cases)
    both = predictions([{"id": 0, **row}, {"id": 99, **row}])
    assert both.probe(twice, twice.cases), "ids distinguish equal questions"


def test_predictions_accept_two_replies_equal_to_expected_answers(predictions, dataset):
    truths = json.loads((dataset.root / "train.json").read_text(encoding="utf-8"))
    assert predictions(truths).probe(dataset, [case for case in dataset.cases if case.gold][:2])


def test_predictions_probe_states_which_fields_are_read(predictions, dataset):
    rows = [{"id": case.id, "answer": "a", "passages": ["x"], "truth": "t"} for case in dataset.cases[:2]]
    [note] = predictions(rows).probe(dataset, dataset.cases[:2])
    assert note == "p.json: the answer is answer, the passages are passages"
    assert "the passages are not given" in predictions([{"id": 0, "answer": "a"}]).probe(dataset, dataset.cases[:1])[0]


def test_predictions_prefer_row_that_names_the_dataset_of_the_question(predictions, dataset):
    first, second, *_ = dataset.cases
    rows = [
        {"id": first.id, "dataset": "other", "answer": "o"}, {"id": first.id, "dataset": "leases", "answer": "mine"},
        {"id": second.id, "answer": "x", "error": "down"},
    ]  # fmt: skip
    mine, failed = (reply for _, reply in predictions(rows).ask(dataset, [first, second]))
    assert (mine.answer, mine.error, failed.error) == ("mine", "", "p.json: down")


@pytest.mark.parametrize("shape", FILES)
def test_predictions_from_gold_score_1_in_every_file_format(dataset, tmp_path, shape):
    rows = [FILES[shape](case) for case in dataset.cases]
    runs = []
    for name in ("p.json", "p.jsonl", "p.csv"):
        target = Predictions(write_content(tmp_path / name, rows), TargetOptions())
        assert target.probe(dataset, dataset.cases)[0].startswith(f"{name}: the answer is")
        runs.append(list(Journal(tmp_path / f"run-{name}", dataset, target).ask()))
    assert [case.reply for case in runs[0]] == [case.reply for case in runs[1]] == [case.reply for case in runs[2]]
    # ragas names no files, and three contracts have the same clause: it is located in the first
    names = WHOLE[: 2 if shape == "ragas" else None]
    for values in measure(runs[0], names=names).values():
        assert set(values) - {None} == {1.0}


@pytest.mark.parametrize("shape", [nvidia_rows, ragas, evaltools])
def test_predictions_never_use_expected_answer_column_as_reply(predictions, dataset, shape):
    rows = [shape(case) for case in dataset.cases]
    for row, case in zip(rows, dataset.cases, strict=True):
        truth = next(key for key, value in row.items() if value == "THE TRUTH")
        answer = next(key for key, value in row.items() if value == case.truth)
        row[truth], row[answer] = case.truth, "quite another answer"
    target = predictions(rows)
    assert f"the answer is {answer}" in target.probe(dataset, dataset.cases)[0]
    assert {reply.answer for _, reply in target.ask(dataset, dataset.cases)} == {"quite another answer"}


LEASE = "The rent is 500 crowns a month and is due in advance on the first working day of each month.\n"


@pytest.fixture
def documents(tmp_path):
    texts = {"a.txt": f"A. {LEASE}The roof leaks.\n", "b.txt": f"B. {LEASE}The rent is due.\nThe rent is due.\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Documents({name: tmp_path / name for name in ("a.txt", "b.txt", "gone.txt")})


def test_documents_locate_passage_by_span_or_text(documents):
    def locate_passage(*given, golds=(), **fields):
        located = documents.place(Passage(*given, **fields), golds)
        return located.filename, located.span, located.also_in

    assert locate_passage("The roof leaks.") == ("a.txt", Span(96, 111), ())
    assert locate_passage("The roof leaks.", "a.txt", Span(96, 111)) == ("a.txt", Span(96, 111), ())
    assert locate_passage("The roof leaks.", "a.txt", Span(0, 15)) == ("a.txt", Span(96, 111), ()), "wrong span"
    assert locate_passage("", "a.txt", Span(0, 112)) == ("a.txt", Span(0, 112), ())
    assert locate_passage("", "a.txt", Span(0, 113))[1] is None
    assert locate_passage(" ", "a.txt") == ("a.txt", None, ()) and locate_passage("Nobody wrote this anywhere.") == (
        None,
        None,
        (),
    )
    whole = LEASE.strip()
    assert locate_passage(whole) == (None, Span(3, 3 + len(whole)), ("a.txt", "b.txt"))
    gold = GoldPassage("b.txt", whole, ((Span(3, 9),),))
    assert locate_passage(whole, golds=[gold]) == (None, Span(3, 3 + len(whole)), ("b.txt", "a.txt"))
    second = GoldPassage("b.txt", "x", ((Span(113, 120),),))
    assert locate_passage("The rent is due.", "b.txt")[1] == Span(96, 112)
    assert locate_passage("The rent is due.", "b.txt", golds=[second])[1] == Span(113, 129), "gold is preferred"
    assert documents.get("gone.txt") is None and documents.get(None) is None
    assert [document.filename for document in documents.all()] == ["a.txt", "b.txt"]


def test_find_matches_locates_repeated_and_partial_text(documents):
    cut = LEASE.strip() + " And nothing else was ever agreed between them."
    assert {name for name, _ in documents.find_matches(LEASE.strip())} == {"a.txt", "b.txt"}
    assert documents.find_matches(LEASE.strip(), "gone.txt") == [] and documents.find_matches("") == []
    assert len(documents.find_matches("The rent is due.", "b.txt")) == 2
    assert {name for name, _ in documents.find_matches(cut[:100])} <= {"a.txt", "b.txt"}


def test_span_touches_gold_only_if_both_contain_the_same_character():
    gold = GoldPassage("a", "x", ((Span(5, 10),), (Span(20, 30), Span(40, 50))))
    assert [touches(Span(*span), gold) for span in ((0, 5), (0, 6), (9, 12), (10, 12), (45, 46))] == [
        False, True, True, False, True,
    ]  # fmt: skip


def test_load_datasets_refuses_question_with_gold_beyond_document_end(tmp_path):
    bundle = write_bundle(tmp_path / "leases")
    lines = [json.loads(text) for text in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    size = len((bundle / "corpus" / lines[0]["filename"]).read_text(encoding="utf-8"))
    for end, refused in ((size, False), (size + 1, True)):
        lines[0]["spans"] = [[0, end]]
        (bundle / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        [dataset], warnings = load_datasets([bundle], Selection())
        assert list(dataset.refused) == [0] * refused and len(warnings) == refused
    assert dataset.refused[0] == "alder.txt: shorter than the offsets of the gold; convert the bundle again"
    assert "1 of 9 questions fail: the gold is in 1 files that are shorter than" in warnings[0]


def line(id, filename, **labels):
    given = {"id": id, "context": 0, "filename": filename, "pages": [], "spans": [], "alternatives": []}
    return Gold.model_validate({**given, "how": "absent", "labels": labels})


def test_read_grades_uses_the_best_of_several_grades():
    grades = read_grades(
        [line(1, "a", grade=2), line(1, "a", grade=4), line(1, "b", grade=0), line(1, "b", grades='{"b": 3, "c": 1}'),
         line(2, "d", grade=5), line(2, "e", grade=True)],
        where="x",
    )  # fmt: skip
    assert grades == {1: {"a": 4, "b": 3, "c": 1}}
    for bad in ("[1]", "{", '{"a": 5}', '{"a": -1}', '{"a": true}'):
        with pytest.raises(BundleError, match="x: row 1: labels.grades: "):
            read_grades([line(1, "a", grades=bad)], where="x")


def test_question_kinds_are_labels_with_few_values():
    rows = [{"kind": n % 2, "same": 1, "own": n, "none": None, "some": n % 4 or None} for n in range(8)]
    assert kinds_of(rows) == ["kind", "some"] and kinds_of(rows, most=2) == ["kind"]
    assert kinds_of(rows[:3]) == ["kind", "some"] and kinds_of([{"kind": 1}]) == []


def git(folder, *words):
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def test_commit_is_read_from_ci_variable_or_git_head(tmp_path):
    assert commit_of(tmp_path, {"GITHUB_SHA": "abc", "CI_COMMIT_SHA": "x"}) == {"commit": "abc", "changed_files": None}
    assert commit_of(tmp_path, {"GITHUB_SHA": ""}) == {"commit": None, "changed_files": None}
    git(tmp_path, "init", "-q")
    assert commit_of(tmp_path, {}) == {"commit": None, "changed_files": None}, "there is no commit yet"
    for name in "ab":
        (tmp_path / name).write_text("x", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "m")
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    assert len(head) == 40 and commit_of(tmp_path, {}) == {"commit": head, "changed_files": 0}
    for name in "abc":
        (tmp_path / name).write_text("y", encoding="utf-8")
    assert commit_of(tmp_path, {}) == {"commit": head, "changed_files": 2}, "an untracked file is not counted"
