"""Ingestion by two checkouts: each runs its own code on the same documents, and the ratio is of processor time."""

from __future__ import annotations

import pytest

from bench import ingest
from bench.ingest import Ingested
from exhibit.schemas.errors import ToolkitError


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"LEASE {number}\n\n1. Rent. The Tenant pays rent.\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_documents_are_indexed_by_the_code_of_a_checkout(source, tmp_path):
    preset = tmp_path / "hashed.toml"
    preset.write_text('embedder = "hashing"\n', encoding="utf-8")
    half = ingest.run(ingest.ROOT, source, str(preset), every=2)
    assert half.documents == 2, "the first and the third"
    assert half.chunks > 0 and half.processor > 0 and half.seconds > 0


def test_a_checkout_without_the_code_is_an_error(source, tmp_path):
    with pytest.raises(ToolkitError, match="routed failed: .*exhibit"):
        ingest.run(tmp_path, source, "routed", every=1)


def test_the_ratio_is_that_of_the_least_processor_time(source, monkeypatch, capsys, tmp_path):
    times = {(tmp_path, "routed"): [100.0, 90.0], (ingest.ROOT, "routed"): [30.0, 45.0], (ingest.ROOT, "naive"): [4, 3]}
    monkeypatch.setattr(
        ingest, "run", lambda where, _, preset, every: Ingested(72, 9000, 60.0, times[where, preset].pop(0))
    )
    assert (
        ingest.main(["--source", str(source), "--before", str(tmp_path), "--rounds", "2", "--presets", "routed,naive"])
        == 0
    )
    ends = [line.split()[-1] for line in capsys.readouterr().out.splitlines()[4:]]
    assert ends == ["1.0", "3.0", "30.0"]


@pytest.mark.slow
def test_the_parts_of_a_checkout_are_timed(source):
    parts = ingest.run_parts(ingest.ROOT, source, "routed", every=1)
    assert list(parts) == ["read_structure", "read_profile", "read_words", "all three"]
    assert parts["all three"] == pytest.approx(sum(list(parts.values())[:3])) and min(parts.values()) > 0


def test_of_parts_in_both_checkouts_the_least_of_each_counts(source, monkeypatch, capsys, tmp_path):
    times = {tmp_path: [{"words": 4.0}, {"words": 5.0}], ingest.ROOT: [{"words": 3.0}, {"words": 2.0}]}
    monkeypatch.setattr(ingest, "run_parts", lambda where, *_, every: times[where].pop(0))
    assert (
        ingest.main(
            [
                "--parts",
                "--source",
                str(source),
                "--before",
                str(tmp_path),
                "--rounds",
                "2",
                "--presets",
                "routed,naive",
            ]
        )
        == 0
    )
    assert capsys.readouterr().out.splitlines()[-1].split() == ["words", "4.00", "2.00", "2.00"]
