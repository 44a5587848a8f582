"""docs/python.md: its examples are run from its top, in an empty folder, and show every public name."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import exhibit
from exhibit.evaluation.other_tools import OTHER_NAMES
from exhibit.evaluation.settings import Settings
from exhibit.rag.config import Config
from tests.rag.models import link_models

PAGE = (Path(__file__).parent.parent / "docs" / "python.md").read_text(encoding="utf-8")


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXHIBIT_CACHE", str(link_models(tmp_path / "cache")))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "docs/python.md", "exec"), names)
    assert "nowhere: no such folder" in capsys.readouterr().out
    assert (tmp_path / "results" / "after" / "report.html").is_file()


def test_every_public_function_is_on_the_page_and_typed():
    for name in ("load", "convert", "evaluate", "compare", "locate", "read_document", "publish"):
        function = getattr(exhibit, name)
        assert f"exhibit.{name}(" in PAGE and function.__doc__
        parameters = inspect.signature(function).parameters.values()
        assert all(one.annotation is not one.empty for one in parameters)
        assert all(one.kind is not one.VAR_KEYWORD for one in parameters), f"{name}: settings are named"


def test_the_parameters_of_evaluate_are_settings():
    known = {*Settings.model_fields, *Config.model_fields, *OTHER_NAMES["settings"], "target_url"}
    assert set(inspect.signature(exhibit.evaluate).parameters) - {"bundles", "settings"} <= known
