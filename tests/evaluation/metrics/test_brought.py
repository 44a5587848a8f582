"""Metrics from an installed distribution: they cannot redefine our names, and their errors take one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from exhibit.runtime.plugins import points_of
from exhibit.schemas.errors import ToolkitError

ROOT = Path(__file__).parents[3]
SCORE = """
import sys
from exhibit.evaluation.metrics import measure
from exhibit.runtime.command import guarded
from tests.evaluation.metrics.build import at, case, gold

@guarded()
def main():
    values = measure([case([gold((0, 9))], [at(0, 9)])], names=sys.argv[1:])
    print(values)
    return 0

if __name__ == "__main__":
    sys.exit(main())
"""


def brought(folder: Path, modules: dict[str, str], *, name: str = "house", group: str = "exhibit.metrics") -> None:
    """Write a distribution with these modules, each registered as an entry point under its own name."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", encoding="utf-8")
    points = "".join(f"{module.removesuffix('_other')} = {module}\n" for module in modules)
    (about / "entry_points.txt").write_text(f"[{group}]\n{points}", encoding="utf-8")


def score(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    (folder / "score_it.py").write_text(SCORE, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    command = [sys.executable, str(folder / "score_it.py"), *names]
    return subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False, cwd=folder)


def metric(*names: str, body: str = "return {name: [0.5] * len(cases) for name in NAMES}") -> str:
    return f"NAMES = {names!r}\n\ndef measure(cases, options):\n    {body}\n"


def test_a_sound_one_is_measured(tmp_path):
    brought(tmp_path, {"commas": metric("commas")})
    done = score(tmp_path, "commas")
    assert (done.returncode, done.stdout.strip()) == (0, str({"commas": [0.5]})), done.stderr


@pytest.mark.parametrize(
    ("text", "asked", "told"),
    [
        (
            metric("recall@10"),
            "recall@10",
            "error: the metrics 'commas' and 'recall' both return the name 'recall'",
        ),
        (metric("recall"), "drm@8", "both return the name 'recall'; change this name in"),
        (metric("commas", body="return {'recall@10': [1.0]}"), "commas", "it returns 'recall@10', which is not in"),
        (metric("commas", body="raise KeyError('x')"), "commas", "commas.py failed: KeyError: 'x'"),
        (metric("commas", body="return {'commas': [0.5, 0.5]}"), "commas", "2 values for 1 cases"),
        (metric("commas", body="return {'commas': ['much']}"), "commas", "neither a number nor None"),
        (metric("commas", body="return None"), "commas", "failed: AttributeError"),
        ("NAMES = 'commas'\n", "drm@8", "has no NAMES, the list of the figures that it returns"),
        ("", "drm@8", "has no NAMES"),
    ],
)
def test_what_it_does_wrong_is_one_line_that_names_it(tmp_path, text, asked, told):
    brought(tmp_path, {"commas": text})
    done = score(tmp_path, asked)
    assert done.returncode == 1 and "Traceback" not in done.stderr and done.stderr.startswith("error: ")
    assert told in done.stderr and not done.stdout, done.stderr


def test_two_of_one_name_are_refused_whatever_the_search_path(tmp_path):
    brought(tmp_path, {"commas": metric("commas")})
    brought(tmp_path, {"commas_other": metric("commas")}, name="office")
    done = score(tmp_path, "commas")
    assert done.returncode == 1 and "commas (exhibit.metrics) is installed twice, by " in done.stderr
    assert "house" in done.stderr and "office" in done.stderr


def test_any_part_that_raises_is_named_with_its_owner(tmp_path):
    brought(tmp_path, {"lines": "def open(argument):\n    return {}['nothing']\n"}, group="exhibit.splitters")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.txt").write_text("The rent is due.", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    words = [
        "index",
        "documents",
        "--out",
        "index",
        "--splitter",
        "lines",
        "--embedder",
        "hashing",
        "--engine",
        "serial",
    ]
    command = [sys.executable, "-c", f"import sys\nfrom exhibit.__main__ import main\nsys.exit(main({words!r}))"]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False, cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert (
        "error: lines (exhibit.splitters) of house failed: KeyError: 'nothing'; fix the plug-in, or uninstall it"
        in done.stderr
    )


def test_the_same_part_found_twice_is_one(tmp_path, monkeypatch):
    """A distribution that is found twice on the search path provides each entry point twice."""
    package = tmp_path / "toasters"
    package.mkdir()
    (package / "__init__.py").touch()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        brought(tmp_path / folder, {"fires": "HOT = 1"}, name="house", group="exhibit.toasters")
        monkeypatch.syspath_prepend(tmp_path / folder)
    points_of.cache_clear()
    assert set(points_of("toasters")) == {"fires"}
    brought(tmp_path / "two", {"fires_other": ""}, name="office", group="exhibit.toasters")
    points_of.cache_clear()
    with pytest.raises(ToolkitError, match="is installed twice"):
        points_of("toasters")
    points_of.cache_clear()
