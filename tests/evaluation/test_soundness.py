"""A damaged file of a run is one line that names it; a fault of ours keeps its traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import evaluate_rag
from exhibit.evaluation import results
from exhibit.evaluation.records import CONFIG, RESULTS
from exhibit.evaluation.soundness import explained, faults
from exhibit.review.__main__ import main as review_main
from exhibit.schemas.errors import BundleError
from tests.rag.bundles import write_bundle


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory):
    """A small run; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
        flags = [
            "--dataset-paths",
            str(write_bundle(folder / "supply")),
            "--output-dir",
            str(folder),
            "--run-name",
            "r",
        ]
        assert evaluate_rag.main([*flags, "--embedder", "hashing", "--report-cases", "0", "--jobs", "1"]) == 0
    return folder / "r"


def changed(path: Path, *keys: str, value: Any) -> None:
    """Put something else at a place of a JSON file; of lines, of the first."""
    first, *rest = path.read_text(encoding="utf-8").split("\n") if path.suffix == ".jsonl" else [path.read_text()]
    content = json.loads(first)
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text("\n".join([json.dumps(content), *rest]), encoding="utf-8")


def test_nothing_is_wrong_with_what_we_write(sound_run):
    assert list(faults(sound_run)) == list(faults(sound_run.parent)) == []


@pytest.mark.parametrize(
    ("file", "keys", "value", "command"),
    [
        (f"supply/{RESULTS}", ("reply",), None, "summary"),
        (f"supply/{RESULTS}", ("scores", "answer_f1"), 10**400, "summary"),
        (f"supply/{RESULTS}", ("reply", "citations"), -1, "report"),
        (f"supply/{RESULTS}", ("id",), {}, "review"),
        ("supply/ingestion.json", ("set_aside",), 5, "report"),
        ("supply/summary.json", ("answer_f1",), {"mean": {}}, "report"),
        ("provenance.json", ("data", "supply"), 7, "index"),
        ("provenance.json", ("machine",), {"cores": 2}, "index"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(sound_run, tmp_path, capsys, file, keys, value, command):
    run = Path(shutil.copytree(sound_run, tmp_path / "runs" / "r"))
    changed(run / file, *keys, value=value)
    if command == "review":
        code = review_main(["make", str(run), "--out", str(tmp_path / "review.html")])
    else:
        code = results.main([command, str(run.parent if command == "index" else run)])
    err = capsys.readouterr().err
    assert code == 1 and err.startswith(f"error: {run / file}: ") and len(err.splitlines()) == 1
    assert "not as evaluate_rag.py writes it" in err


def test_a_fault_of_ours_is_not_blamed_on_a_run(sound_run):
    with pytest.raises(ZeroDivisionError), explained([sound_run]):
        raise ZeroDivisionError


def test_json_that_is_nested_too_deep_is_named(sound_run, tmp_path):
    run = Path(shutil.copytree(sound_run, tmp_path / "r"))
    (run / CONFIG).write_text("[" * 100_000, encoding="ascii")
    with pytest.raises(BundleError, match=r"config.json: JSON that is nested too deep"), explained([run]):
        raise TypeError
