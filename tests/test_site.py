"""Scripts of docs/: the hooks of the site, and the fonts."""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace

from tests.conftest import ROOT


def test_links_that_the_site_has_stay_and_links_of_the_host_become_text():
    hooks = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="files/samples/log/README.md"))
    pages = {"tutorial.md", "files/LICENSE"}
    files = SimpleNamespace(get_file_from_path=lambda path: path if path in pages else None)
    text = (
        "[tutorial](../../../tutorial.md#start), [licence](../../LICENSE), [tags](../../tags), [web](https://x.example)"
    )
    shown = hooks["on_page_markdown"](text, page=page, config=None, files=files)
    assert shown == "[tutorial](../../../tutorial.md#start), [licence](../../LICENSE), tags, [web](https://x.example)"


def test_fonts_are_made_where_they_are_read(monkeypatch):
    tools = ModuleType("fontTools")
    monkeypatch.setattr(tools, "subset", None, raising=False)
    lib = ModuleType("fontTools.ttLib")
    monkeypatch.setattr(lib, "TTFont", None, raising=False)
    monkeypatch.setitem(sys.modules, "fontTools", tools)
    monkeypatch.setitem(sys.modules, "fontTools.ttLib", lib)
    made = runpy.run_path(str(ROOT / "docs" / "typefaces.py"))["OUT"]
    assert (made / "SHA256SUMS").is_file()
