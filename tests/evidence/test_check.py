"""Gold whose position was changed is reported; correct gold is not."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from exhibit.engine import Limits, apply_limits, run_in_worker
from exhibit.engine.limits import get_limits
from exhibit.evidence import Document
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

    def look(*_, **__):
        held.append(get_limits())
        return {"check_gold": (0, []), "draw_row": []}[step]

    monkeypatch.setattr(f"{command.__module__}.{step}", look)
    assert command([str(tmp_path), *more, "--item-timeout", "7", "--item-memory", "64"]) == 0
    assert held == [Limits(7, 64 << 20)] and get_limits() == Limits()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_run_in_worker_applies_the_memory_limit_of_apply_limits():
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
    assert "gold.jsonl has no such row" in capsys.readouterr().err


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
