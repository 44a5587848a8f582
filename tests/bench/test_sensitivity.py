"""One constant at a time: it is changed and restored, measured like a run, and reported."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from bench.legalbenchrag.runs import Condition, make_bundle, parse_recipe, read_measured, run
from bench.sensitivity.__main__ import BEGIN, END, PAGE, fill, main
from bench.sensitivity.panels import WAYS, draw, write_page_block
from bench.sensitivity.trials import (
    METRICS,
    SETTINGS,
    Trial,
    Trying,
    Way,
    choose_settings,
    curves_of,
    trials_of,
    ways_of,
)
from exhibit.evaluation.cases import Case, GoldPassage
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.rag import Config, Pipeline
from exhibit.rag.config import describe_settings
from exhibit.rag.retrieval import extents
from exhibit.schemas.errors import ToolkitError

SOURCE = Path(__file__).parent.parent.parent / "samples" / "legalbenchrag"
RECIPE = {"embedder": "hashing"}
NAMED = Way(unnamed=False, filenames=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The samples as a bundle."""
    return make_bundle(SOURCE, tmp_path_factory.mktemp("bundle"), Condition(), engine="serial", jobs=1)


@pytest.fixture(scope="module")
def trying(bundle, tmp_path_factory):
    """A function that measures trials on an index of the samples."""
    folder = tmp_path_factory.mktemp("index")
    [dataset], _ = load_datasets([bundle], Selection(("txt",)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
        Pipeline(Config.preset("routed", **RECIPE), jobs=1).index(dataset.files.values(), folder / "index")
        yield Trying(folder / "index", dataset.cases, RECIPE)


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


# ---------------------------------------------------------------- what is varied


def test_every_setting_of_the_route_is_varied():
    varied = {setting.name for setting in SETTINGS if setting.module is None}
    layers = {"weight_summary", "weight_gist"}  # of an index with all layers, which the route has not
    weights = {name for name in describe_settings() if name.startswith("weight_")} - layers
    assert weights | {"most_documents", "trim_first", "candidate_chunks"} == varied


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.shown)
def test_a_setting_has_a_reason_and_values_besides_its_own(setting):
    assert setting.why
    assert setting.default in setting.values
    assert len(setting.values) >= 2
    assert setting.default not in setting.others, "a value that is tried is the default now: choose another"


def test_each_value_is_tried_in_each_way_and_the_defaults_once():
    settings = choose_settings(["KEEP", "candidate_chunks", "trim_first"])
    trials = trials_of(settings)
    assert len(trials) == len(set(trials))
    assert {trial.way for trial in trials if not trial.setting} == set(WAYS.values())
    for setting in settings:
        tried = [(trial.way, trial.value) for trial in trials if trial.setting == setting.name]
        assert tried == [(way, value) for way in ways_of(setting) for value in sorted(setting.others)]


def test_a_setting_that_there_is_not_is_named_with_those_that_there_are():
    with pytest.raises(ToolkitError, match=r"no setting weight_luck; there are weight_lexical, .*_MENTION"):
        choose_settings(["trim_first", "weight_luck"])


# ---------------------------------------------------------------- a trial


def test_the_defaults_are_measured_as_a_run_measures_them(trying, bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    recipe = parse_recipe("routed", shared=RECIPE)
    folder = run(recipe, bundle, tmp_path, Condition(), say=lambda _: None, engine="serial", jobs=1)
    official = read_measured(folder, Condition()).means["ALL"]
    [curve, _] = curves_of(choose_settings(["trim_first"]), Both(trying), trying.cases, "benchmark")
    default = dict(curve.points)[True]
    assert {name: figure.mean for name, figure in default.items()} == pytest.approx(
        {name: official[name].mean for name in METRICS}
    )


class Both(dict):
    """The measured values of each trial of `trim_first`, keyed by trial."""

    def __init__(self, trying):
        super().__init__({trial: trying(trial) for trial in trials_of(choose_settings(["trim_first"]))})


def test_a_setting_and_a_constant_change_what_is_found(trying):
    default = trying(Trial(NAMED))
    for name, value in (("trim_first", False), ("KEEP", 0.3)):
        other = trying(Trial(NAMED, name, value))
        assert mean(other["char_precision@1"]) < mean(default["char_precision@1"])
    assert trying(Trial(NAMED)) == default


def test_a_constant_is_set_back_even_when_a_trial_fails(trying):
    before = extents.KEEP
    trying(Trial(NAMED, "KEEP", 0.3))
    assert before == extents.KEEP
    broken = Trying(trying.index / "nowhere", trying.cases, RECIPE)
    with pytest.raises(ToolkitError):
        broken(Trial(NAMED, "KEEP", 0.3))
    assert before == extents.KEEP


def test_questions_lose_their_documents_name_where_that_is_the_way(trying):
    named, unnamed = (mean(trying(Trial(Way(u, True)))["drm@8"]) for u in (False, True))
    assert unnamed > named


# ---------------------------------------------------------------- curves, pictures, page


def made(*, default, other, setting="trim_first"):
    """Return the curves of a setting for eight invented cases: two datasets, four documents, two cases on each.

    `default` and `other` are functions from a case to its value, with the default setting and with another one.
    """
    cases = [
        Case(n, "q", "", (GoldPassage(f"{n % 4}.txt", "x"),), labels={"benchmark": "maud" if n % 2 else "cuad"})
        for n in range(8)
    ]
    chosen = choose_settings([setting])
    measured = {
        trial: {name: [(other if trial.setting else default)(case) for case in cases] for name in METRICS}
        for trial in trials_of(chosen)
    }
    return curves_of(chosen, measured, cases, "benchmark")


def test_a_figure_is_the_datasets_mean_the_worst_of_them_and_the_paired_change():
    def default(case):
        return 0.8 if case.labels["benchmark"] == "cuad" else 0.4

    def other(case):
        return default(case) - 0.1

    with_names, without = made(default=default, other=other)
    assert (with_names.way.filenames, without.way.filenames) == (True, False)
    (off, changed), (on, own) = with_names.points
    assert (off, on) == (False, True)
    assert own["char_recall@8"][:3] == pytest.approx((60, 40, 0))
    assert changed["char_recall@8"][:3] == pytest.approx((50, 30, -10))
    assert changed["char_recall@8"].told == "−10.0 [−10.0, −10.0]"
    assert changed["char_recall@8"].beyond_chance
    assert not own["char_recall@8"].beyond_chance
    assert own["drm@8"].worst == pytest.approx(80)  # of this one the highest is the worst


def test_a_change_of_one_document_is_within_chance():
    curve, _ = made(default=lambda _: 0.5, other=lambda case: 0.9 if case.id in {0, 4} else 0.5)
    figure = dict(curve.points)[False]["char_recall@64"]
    assert figure.change == pytest.approx(10)
    assert not figure.beyond_chance


def test_a_picture_has_a_panel_a_setting_with_its_default_marked():
    curves = [made(default=lambda _: 0.5, other=lambda _: 0.4, setting=name)[0] for name in ("trim_first", "KEEP")]
    root = ET.fromstring(draw(curves))
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in root.iter(f"{space}text")]
    assert {"trim_first", "extents.KEEP", "off", "on", "0.7"} <= set(texts)
    lines = [element.get("class") for element in root.iter(f"{space}line")]
    assert lines.count("own") == 1 + len(curves)  # and one in the legend
    assert len(list(root.iter(f"{space}polyline"))) == len(METRICS) * len(curves)
    edges = [float(at) for element in root.iter() for at in (element.get("cx"), element.get("x")) if at]
    assert all(0 <= edge <= float(root.get("width")) for edge in edges)
    heights = [float(element.get("cy")) for element in root.iter(f"{space}circle")]
    assert all(0 <= height <= float(root.get("height")) for height in heights)


def test_the_page_says_what_is_within_chance_and_what_is_not():
    loud = write_page_block(made(default=lambda _: 0.5, other=lambda _: 0.4), questions=8)
    calm = write_page_block(made(default=lambda _: 0.5, other=lambda _: 0.5), questions=8)
    assert re.search(
        r"^\| `trim_first` \| on \| .* \| – \| off: P@1 −10.0 \[.*DRM@8 −10.0 \[−10.0, −10.0\] without names \|$",
        loud,
        re.M,
    )
    assert re.search(r"^\| `trim_first` \| on \| .* \| off \| – \|$", calm, re.M)
    assert "| `trim_first` | **on** | without file names | 50.0 (50.0) |" in loud


# ---------------------------------------------------------------- the command


@pytest.mark.slow
def test_the_command_writes_pictures_and_between_the_markers_only(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}\nafter\n", encoding="utf-8")
    flags = ["--source", str(SOURCE), "--embedder", "hashing", "--jobs", "1", "--settings", "KEEP"]
    assert main([*flags, "--out", str(tmp_path / "images"), "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}8 questions.")  # every second of fifteen
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    for name in re.findall(r"\(images/(.*?)\)", text):
        ET.parse(tmp_path / "images" / name)
    assert "extents.KEEP, without file names" in capsys.readouterr().out


def test_a_page_without_markers_is_an_error_before_any_work(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("no place\n", encoding="utf-8")
    assert main(["--source", str(tmp_path / "nowhere"), "--page", str(page)]) == 1
    assert "no lines <!-- sensitivity -->" in capsys.readouterr().err


def test_the_documented_page_has_a_place_pictures_and_every_constant():
    fill(PAGE, "")
    text = PAGE.read_text(encoding="utf-8")
    for name in re.findall(r"\((images/.*?)\)", text):
        assert (PAGE.parent / name).is_file(), name
    for setting in SETTINGS:
        assert f"| `{setting.shown}` |" in text, f"{setting.shown}: run python -m bench.sensitivity"
