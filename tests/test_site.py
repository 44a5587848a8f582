"""Scripts of docs/: the hooks of the site, and the fonts."""

from __future__ import annotations

import runpy
from types import SimpleNamespace

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
