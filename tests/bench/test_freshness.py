"""A page whose code changed after its measurement is listed and marked."""

from __future__ import annotations

from bench.freshness import ROOT, WARNING, find_stale_pages, main


def test_a_page_is_stale_when_its_code_changes_and_fresh_when_it_is_renewed(tmp_path, capsys):
    code = tmp_path / "engine" / "parts.py"
    page = tmp_path / "docs" / "speed.md"
    for path, text in ((code, "LEVEL = 1\n"), (page, "# Speed\n\n<!-- measured-with: engine sha256: -->\n\n12 s\n")):
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
    root = ["--root", str(tmp_path)]
    assert main([*root, "--renew", str(page)]) == 0 and find_stale_pages(tmp_path) == {}
    fresh = page.read_text(encoding="utf-8")
    code.write_text("LEVEL = 2\n", encoding="utf-8")
    assert main([*root, "--mark"]) == 0 and main([*root, "--mark"]) == 0
    assert "docs/speed.md: engine changed since it was measured" in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").count(WARNING) == 1
    code.write_text("LEVEL = 1\n", encoding="utf-8")
    assert main([*root, "--renew", str(page)]) == 0 and page.read_text(encoding="utf-8") == fresh


def test_every_stale_page_of_the_project_says_so():
    for page in find_stale_pages(ROOT):
        assert WARNING in page.read_text(encoding="utf-8"), f"{page.name}: python -m bench.freshness --mark"
