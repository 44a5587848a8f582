"""The benchmark that compares presets with published figures: each value on its page comes from a run.

A run that exists already is not measured again.
"""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from bench.legalbenchrag.__main__ import main
from bench.legalbenchrag.comparison import compare_with_method, is_comparable, make_marks, score_of
from bench.legalbenchrag.page import write_page
from bench.legalbenchrag.papers import find_best, read_papers
from bench.legalbenchrag.runs import Condition, Figure, Measured, make_bundle, parse_recipe, read_measured
from exhibit.evaluation.metrics import KS
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.validate import validate
from exhibit.storage.bundle import open_bundle

SAMPLES = Path(__file__).parent.parent.parent / "samples"
DATASETS = ("ALL", "privacy_qa", "contractnli", "maud", "cuad")


def on_samples(root: Path, *flags: str) -> int:
    """Run the command on the sample sources with the embedder `hashing`; write everything below `root`."""
    fixed = ["--source", str(SAMPLES / "legalbenchrag"), "--embedder", "hashing", "--jobs", "1"]
    fixed += ["--out", str(root / "out"), "--page", str(root / "docs" / "page.md")]
    return main([*fixed, *flags])


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command as a function, with an output folder and a cache of its own."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    return partial(on_samples, tmp_path)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished command: its folder, its output, its page."""
    root = tmp_path_factory.mktemp("done")
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setenv("EXHIBIT_CACHE", str(root / "cache"))
        assert on_samples(root, "--presets", "naive,sac:depth=8", "--reworded") == 0
    return root, printed.getvalue(), (root / "docs" / "page.md").read_text(encoding="utf-8")


def measured(mean, *, questions=776, files=72, condition=None, ks=KS) -> Measured:
    """Return a run whose values are given by `mean` for each dataset, metric and k."""
    names = ("char_precision", "char_recall", "drm")
    means = {
        dataset: {f"{n}@{k}": Figure(mean(n.removeprefix("char_"), dataset, k), (1.0, 99.0)) for n in names for k in ks}
        for dataset in DATASETS
    }
    config = {"datasets": {"d": {"questions": questions, "files": files}}, "version": "0", "config": {}}
    return Measured("ours", Path("nowhere"), condition or Condition(), config, means)


# ---------------------------------------------------------------- the whole command


def test_every_value_on_the_page_is_the_runs_own(done):
    root, _, page = done
    folder = root / "out" / "runs" / "mini-txt-original" / "naive:embedder=hashing"
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    row = re.findall(r"^\| Recall@k .*?\n\|.*?\n(\| `naive:embedder=hashing` .*?)$", page, re.MULTILINE)[0]
    shown = [float(value) for value in re.findall(r"\*\*([\d.]+)\*\*", row)]
    assert shown == pytest.approx([100 * summary[f"char_recall@{k}"]["mean"] for k in KS], abs=0.05)
    for told in ("15 questions, 7 files", "--presets naive:embedder=hashing,sac:depth=8:embedder=hashing", "version"):
        assert told in page
    # nothing beyond a ranking's depth is made up
    assert re.search(r"\| `sac:depth=8:embedder=hashing` .*\| – \| – \| – \|$", page, re.MULTILINE)
    assert "[retrieval.md](../../docs/retrieval.md)" in page
    assert "22 million" not in page  # that is of another embedder


def test_all_metrics_and_datasets_are_printed_and_the_fall(done):
    _, printed, page = done
    for name in ("ALL", "PrivacyQA", "ContractNLI", "MAUD", "CUAD"):
        for metric in ("Precision", "Recall", "DRM, less is better"):
            assert f"\n{name}: {metric}\n" in printed
    assert "change in points" in printed
    assert "What other wordings cost" in page
    assert re.search(r"\| `naive:embedder=hashing` \| reworded \| [\d.]+ → [\d.]+", page)


def test_the_samples_are_not_compared_with_figures_on_other_questions(done):
    _, printed, page = done
    assert "not the whole published set" in page
    assert not re.search("[▲▽]", page + printed)


def test_curves_are_svg_that_names_every_value(done):
    picture = ET.parse(done[0] / "docs" / "images" / "legalbenchrag-mini-txt.svg").getroot()
    lines = [node for node in picture.iter() if node.tag.endswith("polyline")]
    assert len(lines) == 2 * 3 * 5  # presets x metrics x datasets
    for line in lines:
        depth = 8 if (line[0].text or "").startswith("sac") else 64
        assert len(line.get("points", "").split()) == sum(k <= depth for k in KS)
        assert f"at k = {depth}" in (line[0].text or "")


@pytest.mark.slow
def test_a_finished_run_is_read_a_stopped_one_goes_on_and_a_changed_one_is_made_anew(command, tmp_path, capsys):
    recipe = tmp_path / "mine.toml"
    recipe.write_text('splitter = "naive"\naugment = "none"\n', encoding="utf-8")
    assert command("--presets", str(recipe)) == 0
    folder = tmp_path / "out" / "runs" / "mini-txt-original" / "mine:embedder=hashing"
    summary = folder / "summary.json"
    [bundle] = (tmp_path / "out" / "bundles").glob("*/*/bundle.json")
    first = summary.stat().st_mtime_ns, bundle.stat().st_mtime_ns
    assert command("--presets", str(recipe)) == 0
    assert (summary.stat().st_mtime_ns, bundle.stat().st_mtime_ns) == first
    journal = next(folder.glob("*/journal.jsonl"))
    kept = journal.read_text(encoding="utf-8").splitlines(keepends=True)[:7]
    journal.write_text("".join(kept), encoding="utf-8")
    summary.unlink()
    assert command("--presets", str(recipe)) == 0
    assert journal.read_text(encoding="utf-8").startswith("".join(kept))
    assert len(journal.read_text(encoding="utf-8").splitlines()) == 15
    assert "anew" not in capsys.readouterr().err
    recipe.write_text('splitter = "naive"\naugment = "none"\nchunk_size = 300\n', encoding="utf-8")
    assert command("--presets", str(recipe)) == 0
    assert "measured anew, as settings" in capsys.readouterr().err
    assert read_measured(folder, Condition()).config["config"]["chunk_size"] == 300
    assert command("--presets", str(recipe), "--anew") == 0
    assert "measured anew" in capsys.readouterr().err


def test_a_quick_look_writes_no_page_unless_asked(samples, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("bench.legalbenchrag.__main__.PAGE", tmp_path / "page.md")
    flags = ["--source", str(samples / "legalbenchrag"), "--embedder", "hashing", "--jobs", "1", "--presets", "naive"]
    assert main([*flags, "--out", str(tmp_path / "out"), "--limit", "5"]) == 0
    assert "5 questions" in capsys.readouterr().out
    assert not (tmp_path / "page.md").exists()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--presets", "none-such"], "no preset 'none-such'"),
        (["--presets", "naive:colour=red"], "'colour=red' is not a setting"),
        (["--presets", "naive", "--source", "nowhere"], "nowhere"),
    ],
)
def test_what_there_is_not_is_an_error_in_words(command, flags, told, capsys):
    assert command(*flags) == 1
    assert told in capsys.readouterr().err


# ---------------------------------------------------------------- conditions


def test_without_file_names_files_are_numbers_and_gold_follows_them(samples, tmp_path):
    source, flags = samples / "legalbenchrag", {"engine": "serial", "jobs": 1}
    plain = open_bundle(make_bundle(source, tmp_path, Condition(), **flags))
    nameless = open_bundle(make_bundle(source, tmp_path, Condition(filenames=False), **flags))
    assert validate(nameless.root) == []
    assert sorted(nameless.files) == [f"{number}.txt" for number in range(1, len(plain.files) + 1)]
    text = (nameless.root / "bundle.json").read_text(encoding="utf-8")
    assert not [d.title for d in nameless.info.documents if not d.title.isdigit()], text
    for old, new in zip(plain.gold, nameless.gold, strict=True):
        assert (old.spans, old.labels) == (new.spans, new.labels)
        assert plain.files[old.filename].read_bytes() == nameless.files[new.filename].read_bytes()


def test_wordings_share_a_dataset_name_and_so_an_index():
    names = {Condition(wording=wording).dataset for wording in ("original", "reworded", "unnamed")}
    assert len(names) == 1
    assert Condition(file_type="pdf").dataset not in names


def test_settings_overruled_are_part_of_the_name():
    recipe = parse_recipe("sac:depth=32:chunk_size=400", shared={"embedder": "minilm"})
    assert recipe.label == "sac:depth=32:chunk_size=400"  # the shared embedder is the preset's own
    assert parse_recipe("sac", shared={"embedder": "hashing"}).label == "sac:embedder=hashing"
    own = parse_recipe("sac:embedder=hashing", shared={"embedder": "model2vec"})
    assert own.label == "sac:embedder=hashing", "a recipe's own setting is stronger than a shared one"
    with pytest.raises(ToolkitError, match="chunk_size"):
        parse_recipe("sac:chunk_size=-1")


# ---------------------------------------------------------------- beside the published


def test_a_mark_says_whether_ours_is_above_the_best_published_value():
    highest = find_best("precision", "maud")
    above = measured(lambda metric, dataset, k: highest[KS.index(k)] + 0.01)
    equal = measured(lambda metric, dataset, k: highest[KS.index(k)])
    assert make_marks(above, "precision", "maud", highest) == ["▲"] * 7
    assert make_marks(equal, "precision", "maud", highest) == ["▽"] * 7
    assert make_marks(above, "drm", "ALL", None) == [""] * 7


def test_the_score_counts_every_dataset_k_and_metric_and_names_what_is_lost():
    everywhere = score_of(measured(lambda metric, dataset, k: 100.0))
    assert (everywhere.won, everywhere.places, everywhere.lost) == (70, 70, [])
    but = score_of(
        measured(lambda metric, dataset, k: 0.0 if (metric, dataset) == ("recall", "cuad") and k < 8 else 99.9)
    )
    assert (but.won, but.lost) == (67, ["CUAD recall at k = 1, 2, 4"])


def test_what_was_published_on_another_sample_is_told_apart_and_less_drm_is_better():
    [sac] = [method for paper in read_papers() if not paper.same_set for method in paper.method]
    ours = measured(lambda metric, dataset, k: 20.5)
    assert compare_with_method(ours, sac) == ["precision at 7 of 7 k", "recall at 1 of 7 k", "drm at 7 of 7 k"]


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, True),
        ({"questions": 775}, False),
        ({"files": 71}, False),
        ({"condition": Condition(wording="reworded")}, False),
        ({"condition": Condition(size="full")}, False),
        ({"condition": Condition(filenames=False)}, True),
        ({"condition": Condition(file_type="pdf")}, True),
    ],
)
def test_only_the_published_sample_as_it_was_asked_is_compared(changed, wanted):
    assert is_comparable([measured(lambda *_: 1.0, **changed)]) is wanted


def test_a_page_without_runs_is_an_error(tmp_path):
    with pytest.raises(ToolkitError, match="there is no finished run"):
        write_page([], tmp_path / "page.md")


# ---------------------------------------------------------------- the real thing


@pytest.mark.slow
def test_texts_are_printed_and_searched_as_pdf(command, tmp_path):
    assert command("--presets", "naive", "--file-type", "pdf", "--no-filenames") == 0
    page = (tmp_path / "docs" / "page.md").read_text(encoding="utf-8")
    assert "## LegalBench-RAG-mini, PDF, no file names" in page
    assert "gold located in print" in page and "printed anew" in page
    [corpus] = (tmp_path / "out" / "bundles" / "original-nameless").glob("*/corpus")
    assert {path.suffix for path in corpus.iterdir()} == {".pdf"}


@pytest.mark.slow
@pytest.mark.data
def test_the_published_sample_is_recognised_and_compared(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    flags = ["--source", str(data / "legalbenchrag"), "--embedder", "hashing", "--presets", "naive", "--unnamed"]
    assert main([*flags, "--out", str(tmp_path / "out"), "--page", str(tmp_path / "page.md")]) == 0
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "776 questions, 72 files" in page and "of 70" in page and "▽" in page
    assert "The longest passage that any run retrieved has 500 characters" in page
