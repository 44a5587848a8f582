"""Plug-ins are found by their file names; there is no list of them."""

import sys

import pytest

from exhibit.runtime.plugins import list_plugins, load_plugin, points_of
from exhibit.schemas.errors import ToolkitError


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "toasters"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "two_slots.py").write_text("SLOTS = 2", encoding="utf-8")
    (folder / "_wires.py").write_text("raise RuntimeError('machinery is not for users')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    points_of.cache_clear()
    yield "toasters"
    points_of.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "toasters"]:
        del sys.modules[name]


def test_load_plugin_loads_a_new_plugin_file_and_splits_name_from_argument(package):
    module, argument = load_plugin(package, "two-slots:BAAI/bge-m3:latest")
    assert module.SLOTS == 2 and argument == "BAAI/bge-m3:latest"
    assert load_plugin(package, "two_slots")[1] is None
    assert load_plugin(package, "two-slots:")[1] is None


@pytest.mark.parametrize("name", ["four", "_wires", "", "two.slots", ".."])
def test_load_plugin_lists_known_names_for_an_unknown_name(package, name):
    with pytest.raises(ToolkitError, match="no toaster .*choose one of two-slots$"):
        load_plugin(package, name)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: .*nowhere_to_be_found"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
    ],
)
def test_broken_plugin_is_named_with_its_distribution(package, tmp_path, text, fault):
    (tmp_path / "fires.py").write_text(text, encoding="utf-8")
    about = tmp_path / "house_toasters-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: house-toasters\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[exhibit.toasters]\nfires = fires\n", encoding="utf-8")
    assert "fires" in list_plugins(package)
    message = rf"^fires \(exhibit.toasters\) of house-toasters cannot be loaded: {fault}.*; fix fires or uninstall"
    with pytest.raises(ToolkitError, match=f"{message} house-toasters$"):
        load_plugin(package, "fires")


def test_list_plugins_excludes_private_modules():
    assert {"minilm", "openai", "sentence_transformers"} <= set(list_plugins("exhibit.models.embedders"))
    assert not any(name.startswith("_") for name in list_plugins("exhibit.models.embedders"))
