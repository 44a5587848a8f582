"""The command prints one table, the path of the report, and each error on one line."""

from __future__ import annotations

import json

import pytest

import evaluate_rag
from exhibit.evaluation import command as command_module
from tests.rag.bundles import write_bundle


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))

    def run(*flags):
        fixed = ["--embedder", "hashing", "--output-dir", str(tmp_path / "results"), "--set", "report_cases=0"]
        return evaluate_rag.main([*fixed, "--run-name", "r", "--threads", "1", *map(str, flags)])

    return run


def test_evaluate_rag_prints_metric_table_and_report_path(command, tmp_path, capsys):
    write_bundle(tmp_path / "data" / "a")
    write_bundle(tmp_path / "data" / "b")
    (tmp_path / "data" / "README.md").touch()
    paths = sorted((tmp_path / "data").iterdir())
    assert command("--dataset-paths", *paths, "--file-type", "txt") == 0
    out, err = capsys.readouterr()
    headline, first_blank, *rows, blank, _, report = out.splitlines()
    assert headline == "6 to 12 of 12 answered correctly, 50 to 100%" and first_blank == blank == ""
    assert [row for row in rows if not row.startswith(" ")][:3] == ["a", "b", "ALL (mean of 2 datasets)"]
    shown = [row.split()[0] for row in rows if row.startswith("  ")]
    assert shown[:6] * 3 == shown and {"answered_rightly", "recall@10", "char_recall@8"} <= set(shown)
    assert report == f"report:  {tmp_path / 'results' / 'r' / 'report.html'}"
    assert "README.md: not a dataset folder" in err
    assert json.loads((tmp_path / "results" / "r" / "config.json").read_text())["file_type"] == ["txt"]


def test_evaluate_rag_flags_override_config_file(command, tmp_path, capsys):
    folder = write_bundle(tmp_path / "leases")
    told = {"dataset_paths": [str(folder)], "limit": 5, "preset": "naive", "chunk_size": 200, "metrics": ["drm@1"]}
    (tmp_path / "c.json").write_text(json.dumps(told))
    assert command("--config", tmp_path / "c.json", "--limit", "2", "--chunk-size", "150", "--where", "clause=law") == 0
    config = json.loads((tmp_path / "results" / "r" / "config.json").read_text())
    assert (config["limit"], config["preset"], config["config"]["chunk_size"]) == (2, "naive", 150)
    assert config["datasets"]["leases"]["questions"] == 2 and config["where"] == {"clause": ["law"]}
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[3:4]] == ["drm@1"]


def test_evaluate_rag_prints_each_error_on_stderr_for_bad_arguments(command, tmp_path, capsys):
    assert command("--dataset-paths", tmp_path / "x*", tmp_path / "y", "--metrics", "bleu") == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("error: ") == 3 and "matches nothing" in err and "no such folder" in err
    assert command() == 1
    assert "name a folder, such as datasets_out/cuad" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        command("--limit", "ten")
    assert ended.value.code == 2


def test_evaluate_rag_suggests_resume_after_keyboard_interrupt(command, tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_module, "evaluate", stop)
    assert command("--dataset-paths", tmp_path) == 130
    assert "--resume" in capsys.readouterr().err
