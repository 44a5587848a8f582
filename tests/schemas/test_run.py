"""The format of a run: a finished run is valid, and one line names each damaged file."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import evaluate_rag
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import CONFIG, RESULTS
from exhibit.schemas.run_folder import RunFolder, RunRows
from exhibit.storage.bundle import main as validate
from exhibit.viewer import results
from exhibit.viewer.review.make import main as review_main
from tests.rag.bundles import write_bundle


@pytest.fixture(scope="module")
def sound_run(tmp_path_factory):
    """A small run; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
        flags = ["--dataset-paths", str(write_bundle(folder / "supply")), "--output-dir", str(folder)]
        flags += ["--run-name", "r", "--embedder", "hashing", "--report-cases", "0", "--jobs", "1"]
        assert evaluate_rag.main(flags) == 0
    return folder / "r"


def replace_value(path: Path, *keys: str, value: Any) -> None:
    """Replace the value at these keys in a JSON file, or in the first line of a JSONL file."""
    first, *rest = path.read_text(encoding="utf-8").split("\n") if path.suffix == ".jsonl" else [path.read_text()]
    content = json.loads(first)
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text("\n".join([json.dumps(content), *rest]), encoding="utf-8")


def test_validate_accepts_a_finished_run_and_names_a_damaged_row(sound_run, tmp_path, capsys):
    assert validate([str(sound_run)]) == 0 and capsys.readouterr().out == f"{sound_run}: sound\n"
    run = Path(shutil.copytree(sound_run, tmp_path / "r"))
    replace_value(run / "supply" / RESULTS, "scores", "recall@11", value=2.0)
    assert validate([str(run)]) == 1 and "recall@11: is in the rows, but not in" in capsys.readouterr().out
    replace_value(run / "supply" / RESULTS, "outcome", value=3)
    assert validate([str(run)]) == 1 and f"supply/{RESULTS}: line 1: not in the format" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "keys", "value", "command"),
    [
        (f"supply/{RESULTS}", ("reply",), None, "summary"),
        (f"supply/{RESULTS}", ("scores", "answer_f1"), 10**400, "summary"),
        (f"supply/{RESULTS}", ("reply", "citations"), -1, "report"),
        (f"supply/{RESULTS}", ("id",), {}, "review"),
        ("supply/ingestion.json", ("set_aside",), 5, "report"),
        ("supply/summary.json", ("answer_f1",), {"mean": {}}, "report"),
        ("provenance.json", ("data", "supply"), 7, "summary"),
    ],
)
def test_commands_name_the_damaged_file_of_a_run(sound_run, tmp_path, capsys, file, keys, value, command):
    run = Path(shutil.copytree(sound_run, tmp_path / "runs" / "r"))
    replace_value(run / file, *keys, value=value)
    if command == "review":
        code = review_main(["make", str(run), "--out", str(tmp_path / "review.html")])
    else:
        code = results.main([command, str(run)])
    # on a busy machine, a progress message may come first
    err = "\n".join(line for line in capsys.readouterr().err.splitlines() if "documents" not in line)
    assert code == 1 and err.startswith(f"error: {run / file}: ") and len(err.splitlines()) == 1
    assert "not in the format that evaluate_rag.py writes" in err


def test_run_folder_refuses_a_run_of_another_format_version(sound_run, tmp_path):
    run = Path(shutil.copytree(sound_run, tmp_path / "r"))
    replace_value(run / CONFIG, "format", value="exhibit-run/9")
    with pytest.raises(BundleError, match=r"format: Input should be 'exhibit-run/2'; run the evaluation again"):
        _ = RunFolder(run).config


def test_run_rows_count_the_questions_of_all_datasets(sound_run, tmp_path):
    run = Path(shutil.copytree(sound_run, tmp_path / "r"))
    shutil.copytree(run / "supply", run / "again")
    rows = RunRows(run, ["supply", "again"])
    every = list(rows)
    assert len(rows) == len(every) > 3 and [rows[place] for place in range(len(rows))] == every
    assert rows[len(rows) - 1].dataset == "again"
    with pytest.raises(IndexError):
        rows[len(every)]
