"""Edge cases of comparing runs, of runs over time and of their lists, without a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from exhibit.engine import Limits
from exhibit.evaluation.bands import Bands, Bound, Scale
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.statistics import Difference, Estimate
from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.viewer import drawing
from exhibit.viewer.drawing import Sheets, Wanted, draw_sheets, mark_spans
from exhibit.viewer.listing import CASES, LINES, Cases, Catalogue, PieceWriter, as_json
from exhibit.viewer.matching import Facet, Matching, Outcomes
from exhibit.viewer.page import escape_markdown, format_page, read_words, say, translate
from exhibit.viewer.page_output import find_dataset_roots
from exhibit.viewer.results import format_gold, main
from exhibit.viewer.trend.changes import Fall, Regression, Series, choose_watched_metrics, find_regressions, make_series
from exhibit.viewer.trend.gates import check_gates, parse_gate
from exhibit.viewer.trend.summary import explain, find_changes, list_figures
from tests.evidence import files
from tests.rag.bundles import write_bundle
from tests.viewer.report_data import piece
from tests.viewer.test_results import write_run


def row(id: int | str = 1, verdict: str = "answered", **given: Any) -> RunQuestion:
    reply = {"error": "", **given.pop("reply", {})}
    told = {"dataset": "d", "id": id, "question": "q?", "truth": "t", "verdict": verdict, "reply": reply, **given}
    return RunQuestion.model_validate(told)


# ---------------------------------------------------------------- over time


class Timed(SimpleNamespace):
    """A run whose values are given as attributes."""

    def means_of(self, dataset: str) -> dict[str, Estimate]:
        return {name: Estimate(1.0, 1) for name in self.tables[dataset].values}

    def data_version(self, dataset: str) -> str:
        return self.data

    def rows_of(self, dataset: str) -> list[RunQuestion]:
        return self.rows


def timed(name: str, values: dict[str, list[float | None]], *, ids: Any = None, failed: Any = (), **told: Any) -> Timed:
    ids = list(range(len(next(iter(values.values()))))) if ids is None else list(ids)
    labels = [{"kind": "ab"[at % 2], "name": str(at)} for at, _ in enumerate(ids)]
    table = Table(
        "d", ids, [f"{at % 10}.pdf" for at, _ in enumerate(ids)], values, list(failed) or [0] * len(ids), labels
    )
    rows = [row(id, filename=f"{at % 10}.pdf") for at, id in enumerate(ids)]
    given = {"system_settings": {}, "commit": "", "data": "x", "rows": rows, **told}
    config = SimpleNamespace(version=given.pop("version", "1"))
    provenance = SimpleNamespace(machine=given.pop("machine", None))
    return Timed(name=name, tables={"d": table}, config=config, provenance=provenance, **given)


def series_of(*runs: Timed) -> Series:
    return Series("d", "d", tuple(runs))  # type: ignore[arg-type]


def level(*means: float, metric: str = "answer_f1", count: int = 20) -> Series:
    return series_of(*(timed(f"r{at}", {metric: [mean] * count}) for at, mean in enumerate(means)))


def found(series: Series, *metrics: str) -> list[tuple[str, str, bool]]:
    return [(one.run, one.before, one.stands) for one in find_regressions(series, metrics or ["answer_f1"])]


@pytest.mark.parametrize(
    ("means", "told"),
    [
        ((0.9, 0.5), [("r1", "r0", True)]),
        ((0.5, 0.9), []),
        ((0.9, 0.9), []),
        ((0.9, 0.5, 0.9), [("r1", "r0", False)]),
        ((0.9, 0.5, 0.8), [("r1", "r0", True)]),
        ((0.9, 0.5, 0.4), [("r1", "r0", True), ("r2", "r1", True)]),
        ((0.9, 0.8, 0.9, 0.8, 0.9, 0.8), []),
        ((0.9, 0.9, 0.9, 0.9, 0.8), [("r4", "r3", True)]),
        ((0.5, 0.52, 0.54, 0.56, 0.47), []),
        ((0.5, 0.52, 0.54, 0.56, 0.46), [("r4", "r3", True)]),
    ],
)
def test_a_run_is_worse_where_it_falls_by_more_than_is_usual(means, told):
    assert found(level(*means)) == told


def test_less_is_better_for_some_and_unasked_metrics_are_not_looked_at():
    assert found(level(0.1, 0.5, metric="drm@8"), "drm@8") == [("r1", "r0", True)]
    assert found(level(0.5, 0.1, metric="drm@8"), "drm@8") == [] == found(level(0.9, 0.1), "char_recall@8")


@pytest.mark.parametrize(("shared", "compared"), [(10, True), (9, False), (0, False)])
def test_runs_are_compared_that_share_half_of_their_questions(shared, compared):
    one = timed("r0", {"answer_f1": [0.9] * 20})
    two = timed("r1", {"answer_f1": [0.1] * 20}, ids=range(20 - shared, 40 - shared))
    assert bool(found(series_of(one, two))) is compared
    empty = timed("r1", {"answer_f1": []}, ids=[])
    assert found(series_of(one, empty)) == []


def test_of_several_falls_the_surest_comes_first_and_more_failures_are_one():
    steady = {"answer_f1": [0.9] * 20, "char_recall@8": [0.9] * 20, "drm@8": [0.1] * 20}
    fell = {"answer_f1": [0.5 + 0.02 * (n % 10) for n in range(20)], "char_recall@8": [0.8] * 20, "drm@8": [0.3] * 20}
    [one] = find_regressions(series_of(timed("r0", steady), timed("r1", fell)), list(steady))
    assert [fall.metric for fall in one.falls] == ["drm@8", "char_recall@8", "answer_f1"]
    assert one.more_failed == 0 and all(fall.usual is None for fall in one.falls)
    failing = timed("r1", steady, failed=[1, 1, *[0] * 18])
    [more] = find_regressions(series_of(timed("r0", steady, failed=[1, *[0] * 19]), failing), list(steady))
    assert (more.more_failed, more.falls, more.stands) == (1, (), True)
    mended = series_of(timed("r0", steady), failing, timed("r2", steady))
    assert [one.stands for one in find_regressions(mended, list(steady))] == [False]
    still = series_of(timed("r0", steady), failing, timed("r2", steady, failed=[1, *[0] * 19]))
    assert [one.stands for one in find_regressions(still, list(steady))] == [True]


def test_metrics_are_followed_that_were_asked_for_or_can_get_worse():
    names = ("answer_f1", "char_recall@4", "char_recall@8", "answer_length", "latency", "drm@8")
    series = series_of(timed("r0", {name: [0.5] for name in names}))
    assert choose_watched_metrics(series, ["char_recall"]) == ["char_recall@4", "char_recall@8"]
    assert choose_watched_metrics(series, ["drm@8", "latency"]) == ["latency", "drm@8"]
    every, usual = choose_watched_metrics(series, every=True), choose_watched_metrics(series)
    assert (
        "answer_length" not in every and "latency" not in every and {"answer_f1", "drm@8"} <= set(usual) <= set(every)
    )
    assert "char_recall@4" in every


def test_what_fell_is_told_with_where_and_what_was_changed():
    values: list[float | None] = [0.9] * 20
    after: list[float | None] = [0.9, 0.1, 0.9, 0.5, None, 0.1, *[0.9 + 1e-12] * 13, 0.95]
    settings = [{"system_settings": {"k": "6", "old": "x"}}, {"system_settings": {"k": "3", "new": "y"}}]
    machine = SimpleNamespace(model_dump=lambda: {"cores": 8, "system": "Linux"})
    one = timed("r0", {"answer_f1": values}, commit="a" * 40, machine=machine, **settings[0])
    two = timed("r1", {"answer_f1": after}, data="z", version="2", ids=range(1, 21), failed=[*[0] * 18, 1, 0],
                **settings[1])  # fmt: skip
    two.tables["d"].ids[:] = [*range(19), "new"]
    two.rows = [row(id, "failed" if id == 18 else "wrong document", filename="f.pdf") for id in two.tables["d"].ids]
    fall = Fall("answer_f1", Difference(0.9, 0.8, 20), None)
    told = explain(Regression(series_of(one, two), 1, 0, (fall,)))
    assert [(one.id, one.before, one.after) for one in told.questions] == [
        (18, 0.9, None), (1, 0.9, 0.1), (5, 0.9, 0.1), (3, 0.9, 0.5)
    ]  # fmt: skip
    assert told.questions[0].verdicts == ("answered", "failed") and told.questions[0].document == "f.pdf"
    assert [(one.name, one.fell, one.asked) for one in told.documents] == [
        ("1.pdf", 1, 2), ("3.pdf", 1, 2), ("5.pdf", 1, 2), ("8.pdf", 1, 2)
    ]  # fmt: skip
    assert [(one.name, one.fell, one.asked) for one in told.labels] == [("kind: b", 3, 10)]
    assert [(one.name, one.before, one.after) for one in told.changed] == [
        ("k", "6", "3"), ("new", "–", "y"), ("old", "x", "–"), ("commit", "aaaaaaaa", "unknown"),
        ("version of Exhibit", "1", "2"), ("data", "x", "z"), ("machine: cores", "8", "unknown"),
        ("machine: system", "Linux", "unknown"),
    ]  # fmt: skip
    assert list(find_changes(one, one, "d")) == []  # type: ignore[arg-type]
    alone = explain(Regression(series_of(one, two), 1, 0, ()))
    assert [fallen.id for fallen in alone.questions] == [18] and alone.metric == ""


def test_figures_are_the_newest_the_one_before_and_the_best():
    def told(*means: float | None, metric: str = "answer_f1", bands: Bands | None = None) -> list[dict[str, Any]]:
        series = SimpleNamespace(
            dataset="d", list_means=lambda _: [None if m is None else Estimate(m, 9) for m in means]
        )
        return list_figures(series, [metric], Scale({metric: bands} if bands else {}, {}))  # type: ignore[arg-type]

    [one] = told(0.5, 0.9, None, 0.7)
    assert (one["newest"].mean, one["before"], one["best"], one["band"], one["bounds"]) == (0.7, 0.9, 0.9, "", "")
    assert told(0.5)[0]["before"] is None and told(0.5, None) == [] and told(0.5, 0.9, metric="drm@8")[0]["best"] == 0.5
    [banded] = told(0.7, bands=Bands(Bound(">", 0.6), Bound("<", 0.4)))
    assert banded["band"] == "Good" and banded["bounds"].startswith("good > 0.6")


def test_series_are_told_apart_by_what_differs():
    def run(name: str, dataset: str = "d", **told: str) -> Any:
        measured = SimpleNamespace(parity=told.get("parity"), judge=told.get("judge"))
        config = SimpleNamespace(measured=measured, datasets={dataset: SimpleNamespace(groups=told.get("by"))})
        return SimpleNamespace(name=name, tables={dataset: None}, system="builtin", config=config)

    runs = [run("a"), run("b", parity="p"), run("c", by="kind"), run("e", "e"), run("f")]
    assert {one.title: [run.name for run in one.runs] for one in make_series(runs)} == {
        "d, parity none, means by none": ["a", "f"], "d, parity none, means by kind": ["c"],
        "d, parity p, means by none": ["b"], "e": ["e"],
    }  # fmt: skip


def test_gates_say_what_was_seen():
    newest = timed("r1", {"answer_f1": [0.5] * 4}, failed=[1, 0, 0, 0])
    means = {"answer_f1": Estimate(0.51234, 4)}
    run = SimpleNamespace(name="r1", tables=newest.tables, means_of=lambda _: means)
    series = SimpleNamespace(runs=[run], dataset="d", title="t")
    scale = Scale({"answer_f1": Bands(Bound(">", 0.8), Bound("<", 0.5))}, {})
    checks = check_gates(["d: answer-f1 < 0.6", "failed >= 0.3", "band", "regression"], [series], [], scale)  # type: ignore[list-item]
    assert [(one.suite, one.holds) for one in checks] == [("t", False), ("t", True), ("t", True), ("t", True)]
    assert [one.told for one in checks][:2] == ["answer_f1 is 0.5123 in r1", "failed is 0.25 in r1"]
    assert checks[3].told == "none stands" and "is acceptable (poor: < 0.5) in r1" in checks[2].told
    assert parse_gate("d:answer_f1 >= 1") == "d:answer_f1 >= 1"


# ---------------------------------------------------------------- lists and pieces


def test_pieces_hold_so_many_lines_and_cases(tmp_path):
    for total, lines, cases in (
        (0, 1, 0),
        (1, 1, 1),
        (CASES, 1, 1),
        (CASES + 1, 1, 2),
        (LINES, 1, 10),
        (LINES + 1, 2, 11),
    ):
        folder = tmp_path / str(total)
        folder.mkdir()
        writer = PieceWriter(folder, Catalogue([Facet("f", "F")]), Wanted())
        one = row(scores={"answer_f1": 0.5})
        for number in range(total):
            writer.add([one], [number])
        told = writer.close()
        assert (told["total"], told["lines"], told["cases"]) == (total, 500, 50)
        assert len(list(folder.glob("i*.js"))) == lines and len(list(folder.glob("c*.js"))) == cases
        held = [line for n in range(lines) for line in piece(folder, f"i{n}")]
        assert held == [[number] for number in range(total)]
        if total:
            assert told["metrics"][0][0] == "answer_f1" and len(told["metrics"]) == 1
            assert sum(len(piece(folder, f"c{n}")["cases"]) for n in range(cases)) == total


def test_a_case_has_all_that_is_shown_of_it():
    passages = [
        {"filename": "a.txt", "span": (10, 20), "page": 2, "score": 0.123456, "text": "w" * 10},
        {"filename": "a.txt", "span": (100, 5000), "text": "v" * 4001},
        {"filename": None, "text": None},
        *({"filename": "b.txt", "span": (0, 5), "text": "other"} for _ in range(9)),
    ]
    gold = [
        {"filename": "a.txt", "text": "g", "places": [[(0, 5)], [(15, 18)]], "pages": [2], "how": "exact"},
        {"text": "h"},
    ]
    reply = {"answer": None, "passages": passages, "citations": [1], "seconds": 1.5, "confidence": 0.5, "selected": 3}
    one = row(gold=gold, reply=reply, scores={"answer_f1": 0.123456, "map": None}, labels={"kind": "x"})
    cases = Cases({}, Wanted())
    cases.add([one, None], rank=None)
    told = cases.as_json()
    [case] = told["cases"]
    side, none = case["sides"]
    assert none is None and side["scores"] == [0, 0.1235] and side["answer"] == "" and len(side["passages"]) == 10
    first, long, bare, *_ = side["passages"]
    assert (first["score"], first["gold"], first["ranges"], first["page"]) == (0.1235, True, [(5, 8)], 2)
    assert (long["gold"], long["ranges"], long["score"]) == (False, [], None)
    assert told["texts"][long["text"]] == "v" * 4000 + " …" and (bare["file"], bare["spans"], bare["gold"]) == (
        -1,
        [],
        False,
    )
    assert case["gold"][0]["spans"] == [Span(15, 18)] and case["gold"][1] == {
        "file": -1, "pages": [], "how": "", "text": told["texts"].index("h"), "spans": []
    }  # fmt: skip
    assert told["files"] == {0: "a.txt", 1: "b.txt"} and side["retrieved"] == 12 and side["pages"] == [[0, 2], [0, 0]]
    failed = Cases({}, Wanted())
    failed.add([row(question="q" * 20001, truth="t" * 20000, reply={"error": "e" * 20001}, scores={"map": -1})], rank=0)
    [case] = failed.as_json()["cases"]
    assert case["question"] == "q" * 20000 + " …" and case["truth"] == "t" * 20000
    assert case["sides"][0]["error"] == "e" * 20000 + " …" and case["sides"][0]["scores"] == []


def test_a_passage_in_pieces_shows_each_piece_and_its_added_words():
    summary = "Summary: an ice contract. "
    text = f"{summary}The seller delivers ice. […] Payment is due."
    passage = {"filename": "a.txt", "span": (100, 124), "more": ((300, 315),), "text": text}
    passage |= {"added": ((0, len(summary)), (len(summary) + 24, len(summary) + 29))}
    gold = {"filename": "a.txt", "text": "delivers ice", "places": [[(111, 123)], [(0, 2)]], "pages": [2]}
    wanted = Wanted()
    cases = Cases({}, wanted)
    cases.add([row(gold=[gold], reply={"answer": "x", "passages": [passage]})], rank=0)
    [case] = cases.as_json()["cases"]
    [shown] = case["sides"][0]["passages"]
    assert shown["spans"] == [Span(100, 124), Span(300, 315)] and shown["added"] == ((0, 26), (50, 55))
    [(start, end)] = shown["ranges"]
    assert text[start:end] == "delivers ice", "the gold is marked behind the added words"
    assert wanted.spans(0) == (Span(100, 124), Span(111, 123), Span(300, 315)), "all pieces are drawn"
    other = {**passage, "span": (0, 2), "more": ((111, 120),), "added": (), "text": "of ice"}
    cases.add([row(gold=[gold], reply={"answer": "x", "passages": [other]})], rank=0)
    [piece] = cases.as_json()["cases"][1]["sides"][0]["passages"]
    assert piece["gold"] and piece["ranges"] == [], "gold in a shorter piece counts; which words it is cannot be told"


def folder_of(*rows: RunQuestion) -> Any:
    return SimpleNamespace(name="r", rows=list(rows), content_of=lambda row: str(row.id))


def test_faults_come_first_and_the_first_of_each_kind_is_drawn_before_the_second():
    rows = [row(0), row(1, "wrong document"), row(2, "wrong document"), row(3, "failed", reply={"error": "x 3"}),
            row(4, "wrong document", dataset="e"), row(5)]  # fmt: skip
    matching = Matching([folder_of(*rows)])
    assert len(list(matching.scan())) == len(matching) == 6 and not matching.several
    order = [sides[0].id for sides in matching]
    wrong = [1, 2, 4]
    assert [id for id in order if id in wrong] == wrong and order[-2:] == [0, 5] and len(order) == 6
    ranks = dict(zip(order, matching.ranks, strict=True))
    assert [ranks[id] for id in (1, 2, 4, 3)] == [0, 1, 0, 0]
    assert [ranks[id] for id in (0, 5)] == [1_000_000_000, 1_000_000_001]
    assert [facet.name for facet in matching.make_facets()] == ["verdict", "dataset", "error", "lost"]
    assert matching.values([rows[3]]) == ["failed", "d", "x …", ""] and "won" not in matching.tones


def test_questions_of_two_runs_are_put_side_by_side():
    one = folder_of(row(0), row(1), row(2, "wrong document"))
    two = folder_of(row(2), row(0, "wrong document"), row(7))
    matching = Matching([one, two])
    list(matching.scan())
    told = {(sides[0] or sides[1]).id: matching.kind(sides) for sides in matching}
    assert told == {0: "lost", 1: "not asked by all", 2: "won", 7: "not asked by all"} and next(iter(told)) == 0
    assert [facet.name for facet in matching.make_facets()] == ["change", "dataset", "error", "verdict-1", "verdict-2"]
    assert matching.values([row(1), None]) == ["not asked by all", "d", "", "right passage used", ""]
    assert [tally.questions for tally in matching.tallies] == [3, 3] and "won" in matching.tones


def test_a_reply_of_no_seconds_is_a_reply():
    tally = Outcomes()
    tally.add(row(reply={"seconds": 0.0}, scores={"recall@10": 0.0}))
    tally.add(row(reply={"seconds": None}))
    assert list(tally.seconds) == [0.0] and tally.counts["judged_found"] == 1 and tally.counts["found"] == 0


# ---------------------------------------------------------------- pages


def test_a_page_runs_its_own_scripts_and_nothing_else():
    text = format_page(
        "a < b", "<p>body</p>", scripts=["build.js"], data={"x": as_json({"a": "</script>"})}, pieces=True
    )
    assert "<title>a &lt; b</title>" in text and text.count("</script>") == 2 and "'self' file:" in text
    assert '<script type="application/json" id="x">{"a":"\\u003c/script\\u003e"}</script>' in text
    bare = format_page("t", "half \ud835 of a pair")
    assert "script-src 'none'" in bare and "half ? of a pair" in bare and "<script>" not in bare
    assert '<html lang="en">' in bare and '<html lang="cs">' in format_page("t", "b", language="cs")
    assert as_json("\u2028\u2029&é") == '"\\u2028\\u2029\\u0026é"'
    with pytest.raises(ValueError, match="Out of range"):
        as_json(float("nan"))


def test_words_are_those_of_a_language_where_it_knows_them():
    assert say("en", "{n} of {m}", n=1, m=2) == "1 of 2" and say("cs", "nobody said this {}") == "nobody said this {}"
    known, other = next(iter(read_words("cs").items()))
    assert say("cs", known) == other != known and read_words("en") == {}
    assert translate('"Save the review"', "en") == '"Save the review"' != translate('"Save the review"', "cs")
    assert escape_markdown(" a\n *b* ") == r"a \*b\*"


# ---------------------------------------------------------------- drawing


def sheets(tmp_path: Path, path: Path, pages: tuple[int, ...], *spans: Span) -> Sheets:
    return Sheets(7, path.name, path, pages, spans, tmp_path / "pictures")


def test_pages_are_drawn_with_what_lies_on_them(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(files.pdf("The rent is due."))
    told = draw_sheets(sheets(tmp_path, path, (0, 1, 2), Span(0, 3), Span(4, 8), Span(40, 50)))
    [(number, (name, width, height, boxes))] = told["pages"].items()
    assert (number, width, height) == (1, 595, 842) and re.fullmatch(r"7-1\.(png|webp)", name)
    assert list(boxes) == ["0-3", "4-8"] and len(boxes["0-3"][0]) == 4 and (tmp_path / "pictures" / name).is_file()
    assert boxes["0-3"][0][0] < boxes["4-8"][0][0] and 10 < boxes["0-3"][0][2] < 40 and 4 < boxes["0-3"][0][3] < 20
    assert draw_sheets(sheets(tmp_path, path, (2,))) == {"pages": {}}
    note = tmp_path / "a.txt"
    note.write_text("one two three", encoding="utf-8")
    assert draw_sheets(sheets(tmp_path, note, (), Span(4, 7), Span(8, 13), Span(8, 14))) == {
        "text": [[0, "one two three"]]
    }
    assert draw_sheets(sheets(tmp_path, note, (), Span(8, 14))) == {"text": []}


def test_what_cannot_be_drawn_is_told_and_the_rest_goes_on(tmp_path):
    bundle = write_bundle(tmp_path / "leases")
    (bundle / "corpus" / "bad.pdf").write_bytes(b"%PDF-1.4 and nothing")
    wanted, put = Wanted(), dict[int, Any]()
    for id, (dataset, name) in enumerate(
        [("leases", "alder.txt"), ("leases", "bad.pdf"), ("leases", "gone.txt"), ("nowhere", "a.txt")]
    ):
        passage = {"filename": name, "span": (0, 5), "text": "x", "page": 1 if name == "bad.pdf" else None}
        one = row(id, dataset=dataset, reply={"passages": [passage]})
        wanted.ask(one, mark_spans(one), rank=id)
    roots = {"leases": bundle}
    told = drawing.draw(
        wanted, roots, tmp_path / "pictures", put.__setitem__, most=None, jobs=1, limits=Limits(60, None)
    )
    assert told.documents == [0] == list(put) and (told.pages, told.wanted) == (1, 4)
    assert len(told.faults) == 1 and "bad.pdf" in told.faults[0]
    assert drawing.draw(wanted, roots, tmp_path, put.__setitem__, most=0).documents == []
    missing = drawing.draw(wanted, {"leases": tmp_path / "none"}, tmp_path, put.__setitem__, most=None)
    assert missing.documents == [] and len(missing.faults) == 1


def test_bundles_are_where_runs_had_them_or_where_they_are_given(tmp_path):
    bundle, other = write_bundle(tmp_path / "leases"), write_bundle(tmp_path / "else" / "leases")

    def run(**told: str | None) -> Any:
        entry = SimpleNamespace(**{"origin": None, "path": "", **told})
        return SimpleNamespace(config=SimpleNamespace(datasets={"leases": entry}))

    said: list[str] = []
    here = run(path=str(bundle))
    assert find_dataset_roots([here], say=said.append) == {"leases": bundle}
    assert find_dataset_roots([here, run(path=str(other))], say=said.append) == {"leases": bundle}
    assert find_dataset_roots([run(origin=str(other), path=str(bundle))], say=said.append) == {"leases": other}
    assert find_dataset_roots([here], given=[str(other)], say=said.append) == {"leases": other} and said == []
    for told, words_ in [
        ({}, "its folder: not there"),
        ({"origin": "s3://b/x"}, "s3://b/x: not on this machine"),
        ({"path": str(tmp_path / "none")}, f"{tmp_path / 'none'}: not there"),
    ]:
        assert find_dataset_roots([run(**told)], say=said.append) == {}
        assert said.pop() == (
            f"leases: the pages of its documents are not drawn: {words_}; name its folder with --dataset-paths"
        )
    with pytest.raises(ToolkitError, match="another dataset has the name 'leases'"):
        find_dataset_roots([here], given=[str(bundle), str(other)], say=said.append)


# ---------------------------------------------------------------- commands


def test_gold_that_is_not_located_is_listed_as_far_as_asked():
    def dataset(*hows: str | None) -> Any:
        told = {"filename": "a.pdf", "ambiguous": False}
        gold = [SimpleNamespace(text=None if how is None else "w" * (99 + at), how=how, **told)
                for at, how in enumerate(hows)]  # fmt: skip
        return SimpleNamespace(name="d", cases=[SimpleNamespace(id=5, gold=gold)])

    told = format_gold(dataset("exact", "absent", "absent", "absent", None, None), listed=2)
    assert told == [
        "d: 1 of 4 gold passages located (25.00%)", "  exact   1", "  absent  3", "  2 name a file but quote no words",
        f"  not located: 5, a.pdf: {'w' * 100}", f"  not located: 5, a.pdf: {'w' * 99}…", "  … and 1 more (--list)",
    ]  # fmt: skip
    assert len(format_gold(dataset("absent", "absent"), listed=2)) == 4
    assert format_gold(dataset(), listed=2) == ["d: 0 of 0 gold passages located"]
    blank = dataset("exact")
    blank.cases[0].gold[0].text = "  "
    assert format_gold(blank, listed=2)[-1] == "  1 name a file but quote no words"


def test_a_card_has_a_result_for_each_metric_that_has_a_mean(tmp_path, capsys):
    run = write_run(tmp_path / "r", {"answer_f1": [0.123456] * 4, "recall@10": [None] * 4}, failed=(3,))
    assert main(["card", str(run), "--metrics", "answer_f1,recall@10"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("---\n") and told.endswith("---\n") and "value: 0.1235" in told and "name: r" in told
    assert told.count("type: answer_f1") == 1 and "recall@10" not in told and "failed: 1" in told and "n: 3" in told


def test_two_runs_are_compared_and_what_got_worse_fails(tmp_path, capsys):
    one = write_run(tmp_path / "one", {"answer_f1": [0.9] * 8, "drm@1": [0.1] * 8})
    two = write_run(tmp_path / "two", {"answer_f1": [0.5] * 8, "drm@1": [0.1] * 8}, failed=(0,))
    assert main(["diff", str(one), str(two), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["worse"] == ["answer_f1"] and told["questions"]["failed_after"] == 1
    assert told["metrics"]["answer_f1"]["change"] == pytest.approx(-0.4)
    assert main(["diff", str(one), str(two), "--fail-on-regression", "--metrics", "drm@1"]) == 1, "one more failed"
    same = write_run(tmp_path / "same", {"answer_f1": [0.9] * 8, "drm@1": [0.1] * 8})
    assert main(["diff", str(one), str(same), "--fail-on-regression"]) == 0


def test_pages_are_as_many_as_asked_or_all_or_none(tmp_path):
    run = write_run(tmp_path / "r", {"answer_f1": [1.0]})
    for wrong in ("0", "-1", "some"):
        with pytest.raises(SystemExit):
            main(["report", str(run), "--pages", wrong])
    for right in ("all", "none", "3"):
        assert main(["report", str(run), "--pages", right]) == 0
    assert RunFolder(run).rows[0].id == 0 and (run / "report_files").is_dir()
    assert main(["report", str(run), "--single-file"]) == 0 and not (run / "report_files").exists()
    assert '"folder":null' in (run / "report.html").read_text(encoding="utf-8")
