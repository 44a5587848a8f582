"""Published figures are complete and have a source; the best of them are the values to exceed."""

from __future__ import annotations

import pytest

from bench.legalbenchrag.papers import FOLDER, find_best, read_paper, read_papers
from exhibit.evaluation.metrics import KS
from exhibit.schemas.errors import ToolkitError


def test_every_paper_says_where_its_figures_come_from():
    papers = {paper.key: paper for paper in read_papers()}
    assert set(papers) == {path.stem for path in FOLDER.glob("*.toml")} >= {"pipitone2024", "reuter2025"}
    for paper in papers.values():
        assert paper.url.startswith("https://arxiv.org/abs/")
        assert paper.place and paper.date and paper.embedder and paper.note
    assert "labels of Table 4, wrong as printed, are corrected" in papers["pipitone2024"].note
    assert papers["pipitone2024"].same_set and not papers["reuter2025"].same_set


def test_recall_never_falls_as_k_grows():
    for paper in read_papers():
        for method in paper.method:
            for curve in method.recall.values():
                assert curve == sorted(curve), method.name


def test_the_mean_of_the_four_datasets_is_the_published_mean():
    [naive] = [m for paper in read_papers() for m in paper.method if m.name == "naive"]
    for curves in (naive.precision, naive.recall):
        for position in range(len(KS)):
            four = [curve[position] for name, curve in curves.items() if name != "ALL"]
            assert len(four) == 4
            assert sum(four) / 4 == pytest.approx(curves["ALL"][position], abs=0.02)


def test_the_best_is_over_methods_on_the_same_questions_only():
    assert find_best("precision", "ALL")[:3] == [7.86, 7.31, 6.65]  # the third is RCTS with a reranker
    assert find_best("recall", "ALL")[0] == 7.45  # SAC has 15.5, on another sample
    assert find_best("drm", "ALL") is None


def test_a_curve_that_misses_a_k_is_an_error(tmp_path):
    text = (FOLDER / "reuter2025.toml").read_text(encoding="utf-8").replace("20.2, 16.6", "20.2")
    path = tmp_path / "short.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ToolkitError, match="short.toml: not a file of published figures"):
        read_paper(path)
