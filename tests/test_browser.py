"""The browser of the tests draws pages even on machines without fonts."""

from __future__ import annotations

import pytest

from tests.browser import browsing
from tests.converters.fontconfigs import no_fonts


@pytest.mark.slow  # of the tests themselves; what is printed on such a machine is seen in test_print.py
def test_words_have_a_size_where_there_is_no_font(tmp_path, monkeypatch):
    monkeypatch.setenv("FONTCONFIG_FILE", str(no_fonts(tmp_path)))
    with browsing() as browser:
        page = browser.new_page()
        page.set_content("<span>The rent is due.</span>")
        box = page.locator("span").bounding_box()
        assert box is not None and box["width"] > 10
