"""Titles are cleaned and made unique; an LLM's titles are requested once."""

import itertools
import json
from pathlib import Path

import pytest

from exhibit.converters.core import titles
from exhibit.converters.core.titles import choose_unique_titles, join_names, pair_files
from exhibit.evidence.fold import align
from tests.models.openai_server import KEY, serve_openai


def test_join_names_lists_names_and_shortens_long_lists():
    assert [join_names(n) for n in ([], ["A"], ["A", "B"], ["A", "B", "C"])] == ["", "A", "A and B", "A, B and C"]
    assert join_names(["A", "B", "C", "D", "E"]) == "A, B and 3 others"


def test_choose_unique_titles_uses_the_least_precise_title_that_is_unique():
    candidates = {
        "a.pdf": ["Lease of X", "Lease of X dated 1/1/01", "Lease of X dated 1/1/01 (a)"],
        "b.pdf": ["Lease of X", "Lease of X dated 2/2/02", "Lease of X dated 2/2/02 (b)"],
        "c.pdf": ["Lease of Y", "Lease of Y dated 2/2/02"],
        "d.pdf": ["LEASE of x", "Lease of X dated 2/2/02", "Lease of X dated 2/2/02 (d)"],
    }
    assert choose_unique_titles(candidates) == {
        "a.pdf": "Lease of X dated 1/1/01",
        "b.pdf": "Lease of X dated 2/2/02 (b)",
        "c.pdf": "Lease of Y",
        "d.pdf": "Lease of X dated 2/2/02 (d)",
    }


def test_pair_files_skips_comparison_of_names_with_different_letters(monkeypatch):
    compared = []
    monkeypatch.setattr(titles, "align", lambda *names, most: compared.append(names) or align(*names, most=most))
    paths = [Path("Verre-Élor agreement of 2019.pdf"), *(Path(f"Harbour lease of berth {n}.pdf") for n in range(99))]
    names = ["Verre-_lor agreement of 2019.pdf", "Verre agreement of 2019.pdf"]
    assert (pair_files(names, paths), len(compared)) == (({0: paths[0]}, [0]), 1)
    services = [f"harbour-services-agreement-{year}.txt" for year in (2019, 2020)]
    files, similar = pair_files(services, [Path("harbour-services-agreement.txt")])
    assert (list(files), similar) == ([0], []), "a file is paired with at most one name"


@pytest.fixture
def llm(monkeypatch, tmp_path):
    """A local OpenAI-compatible server that returns titles; its replies are cached in a separate folder."""
    numbers = itertools.count(1)
    with serve_openai() as server:
        server.reply = lambda _: f'"Deed {next(numbers)} between A and B."'
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_MODEL", "tiny")
        monkeypatch.setattr("exhibit.models.openai._BACKOFF_SECONDS", 0.01)
        monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
        yield server


@pytest.fixture
def flags(samples):
    return ["cuad", "--source", samples / "cuad" / "CUAD_v1", "--titles", "llm", "--max-documents", "2"]


def test_llm_titles_are_requested_once_and_cached(llm, flags, convert, capsys, tmp_path):
    first = convert(*flags, out="first")
    questions = {
        row["question"].split(";")[0] for row in json.loads((first / "train.json").read_text(encoding="utf-8"))
    }
    assert questions == {"Consider the Deed 1 between A and B", "Consider the Deed 2 between A and B"}
    assert (llm.asked[0]["model"], llm.asked[0]["temperature"]) == ("tiny", 0)
    assert any("HOSTING AGREEMENT" in body["messages"][0]["content"] for body in llm.asked)
    second = convert(*flags, out="second")
    assert len(llm.asked) == 2
    assert (second / "train.json").read_bytes() == (first / "train.json").read_bytes()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "cache" / "titles").iterdir())
    assert b"Deed 1" in kept and KEY.encode() not in kept + capsys.readouterr().err.encode()


@pytest.mark.parametrize("fault", [500, "JSON array"])
def test_convert_reports_missing_title_when_llm_fails_or_reply_is_unusable(llm, flags, convert, capsys, fault):
    llm.faults[""] = [fault] * 99
    convert(*flags, expect=1)
    error = capsys.readouterr().err
    assert "no title" in error and KEY not in error
