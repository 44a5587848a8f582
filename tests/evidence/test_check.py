"""Gold whose position was changed is reported; correct gold is not."""

import json
import shutil
import sys

import pytest

from exhibit.engine import Limits, apply_limits, run_in_worker
from exhibit.engine.limits import get_limits
from exhibit.evidence import Document, Page, Span
from exhibit.evidence.check import check_gold, compute_similarity, faults_of, main
from exhibit.evidence.check import main as check
from exhibit.evidence.show import main as show
from exhibit.schemas.bundle import LooseContext, Question
from exhibit.schemas.errors import LimitError
from exhibit.schemas.models import Gold


def test_check_gold_accepts_a_converted_sample_and_reports_planted_faults(converted, tmp_path, capsys):
    bundle = shutil.copytree(converted("cuad", "--keep-ambiguous"), tmp_path / "bundle")
    count, wrong = check_gold(bundle)
    assert count > 150 and wrong == []
    assert main([str(bundle)]) == 0

    lines = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    first = next(line for line in lines if line["how"] == "exact")
    first["spans"] = [[first["spans"][0][0] + 2, first["spans"][0][1] + 2]]
    paged = next(line for line in lines if line["how"] == "folded")
    paged["pages"] = [99]
    (bundle / "gold.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert len(check_gold(bundle)[1]) == 2
    assert main([str(bundle)]) == 1
    out = capsys.readouterr().out
    assert "contains other words" in out and "not [99]" in out

    (bundle / "corpus" / paged["filename"]).write_bytes(b"no PDF")
    wrong = check_gold(bundle)[1]
    assert sum("not a PDF" in line for line in wrong) == 1 and not any(
        "row" in line for line in wrong if paged["filename"] in line
    )
    (bundle / "corpus" / paged["filename"]).unlink()
    assert f"{paged['filename']}: not in corpus/" in check_gold(bundle)[1]


@pytest.mark.parametrize(("command", "step", "more"), [(check, "check_gold", []), (show, "draw_row", ["1"])])
def test_commands_apply_item_limits_to_every_document(monkeypatch, tmp_path, command, step, more):
    held: list[Limits] = []

    def record_limits(*_, **__):
        held.append(get_limits())
        return {"check_gold": (0, []), "draw_row": []}[step]

    monkeypatch.setattr(f"{command.__module__}.{step}", record_limits)
    assert command([str(tmp_path), *more, "--item-timeout", "7", "--item-memory", "64"]) == 0
    assert held == [Limits(7, 64 << 20)] and get_limits() == Limits()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_run_in_worker_applies_the_memory_limit_that_apply_limits_sets():
    with apply_limits(Limits(memory=64 << 20)), pytest.raises(LimitError, match="needs more than 64 MiB of memory"):
        run_in_worker(bytearray, 1 << 30)


def test_compute_similarity_ignores_the_order_of_pieces():
    assert compute_similarity(["abc", "def"], "abcdef") == 1
    assert compute_similarity(["abc", "def"], "defabc") == 1
    assert compute_similarity(["abcdefghij"], "abcdefghix") == 0.9
    assert compute_similarity(["abc"], "abcabc") == 0.5
    assert compute_similarity(["abc"], "") == 0


def test_show_draws_gold_of_a_row_and_reports_an_unknown_row(converted, tmp_path, capsys):
    bundle = converted("cuad")
    assert show([str(bundle), "0", "--out", str(tmp_path / "page.png")]) == 0
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert "page 1" in capsys.readouterr().out
    assert show([str(bundle), "999999", "--out", str(tmp_path / "no.png")]) == 1
    assert "gold.jsonl does not have this id" in capsys.readouterr().err


def test_gold_check_accepts_provisions_without_heading():
    text = "§ 535 Inhalt\nDer Vermieter gewährt den Gebrauch.\n§ 536 Mangel\nDie Miete ist gemindert.\n"
    quote = "§ 535 Inhalt\nDer Vermieter gewährt den Gebrauch."
    question = Question(0, "Was schuldet der Vermieter?", quote, False, (LooseContext("bgb.txt", quote),))
    other = text.index("§ 536")
    line = Gold(
        id=0, context=0, filename="bgb.txt", pages=[], spans=[(0, len(quote))], how="section",
        alternatives=[[(other, len(text) - 1)]], labels={"provision": "§ 535 BGB"},
    )  # fmt: skip
    document = Document("bgb.txt", text)
    assert list(faults_of(line, question, document)) == []
    moved = line.model_copy(update={"spans": [(other, len(text) - 1)]})
    assert any("contains other words" in fault for fault in faults_of(moved, question, document))
    beyond = line.model_copy(update={"alternatives": [[(0, 999)]]})
    assert any("beyond the end" in fault for fault in faults_of(beyond, question, document))


def question(*quotes: str) -> Question:
    return Question(1, "?", "x", contexts=tuple(LooseContext("a.txt", quote) for quote in quotes))


def gold(**fields: object) -> Gold:
    row = {"id": 1, "filename": "a.txt", "context": 0, "spans": [[0, 4]], "alternatives": [], "pages": []}
    return Gold.model_validate_json(json.dumps({**row, "how": "exact", **fields}))


def faults(line: Gold, text: str = "rent is due", quote: str = "rent") -> list[str]:
    return list(faults_of(line, question(quote), Document("a.txt", text)))


def test_gold_check_reports_each_fault_of_a_gold_line():
    assert faults(gold()) == []
    assert faults(gold(context=1)) == ["there is no context 1 in train.json"]
    assert faults(gold(spans=[[5, 12]])) == ["span (5, 12) is beyond the end of the text, which has 11 characters"]
    assert faults(gold(spans=[[5, 11]]), quote="is due") == []
    assert faults(gold(spans=[[0, 5]]), quote="rents")[0].startswith(
        "span [(0, 5)] contains other words than the quote (similarity 0."
    )
    assert faults(gold(pages=[2])) == ["gold is on pages [], not [2]"]
    assert len(faults(gold(alternatives=[[[5, 7]]]))) == 1


def test_gold_check_requires_equal_words_for_exact_gold_and_similar_words_for_fuzzy_gold():
    text = "x" * 39 + "y"
    assert len(faults(gold(spans=[[0, 40]]), text, "x" * 40)) == 1
    assert faults(gold(spans=[[0, 40]], how="fuzzy", score=0.975), text, "x" * 40) == []
    assert faults(gold(spans=[[0, 40]], how="fuzzy", score=0.9), "x" * 37 + "yyy", "x" * 40) != []


def test_gold_check_requires_a_section_to_begin_with_its_heading():
    fields = {"how": "section", "spans": [[0, 11]], "labels": {"heading": "Rent"}}
    assert faults(gold(**fields), quote="rent is due") == []
    assert "does not begin with the heading" in faults(gold(**{**fields, "spans": [[5, 11]]}), quote="is due")[0]
    loud = faults(gold(**{**fields, "labels": {"heading": "Re-nt"}}), "RENT is due", "rent is due")
    assert loud == [], "case and hyphens are ignored"
    short = faults(gold(**{**fields, "spans": [[0, 3], [5, 11]]}), quote="ren<omitted>is due")
    assert short == ["span (0, 3) does not begin with the heading 'Rent'"], "the first span is too short"
    assert faults(gold(**{**fields, "spans": [[0, 4], [5, 11]]}), quote="rent<omitted>is due") == []
    assert faults(gold(**{**fields, "labels": {}}), quote="rent is due") == [], "gold without labels has no heading"


def test_gold_check_accepts_a_quote_that_continues_in_a_running_foot():
    texts = [f"Clause {word}.\n{word} Initials ___\nSanofi Initials ___\n" for word in ("Alpha", "Bravo", "Delta")]
    starts = [len("".join(texts[:number])) for number in range(3)]
    pages = [Page(n + 1, Span(starts[n], starts[n] + len(texts[n])), 600, 800) for n in range(3)]
    document = Document("a.txt", "".join(texts), tuple(pages))
    assert [document.text[slice(*line)] for line in document.furniture] == ["Sanofi Initials ___\n"] * 3
    start = document.text.index("Bravo Initials")
    line = gold(spans=[[start, start + 18]], pages=[2], how="fuzzy")
    assert list(faults_of(line, question("Bravo Initials Sanofi Initials"), document)) == []
    assert "other words" in next(faults_of(line, question("Delta Initials Sanofi Initials"), document))
