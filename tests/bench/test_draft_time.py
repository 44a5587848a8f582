"""The benchmark that compares the time of drafting with the time of indexing and prints their ratio."""

from __future__ import annotations

import pytest

from bench.draft_time import main


@pytest.mark.slow
def test_both_are_timed_and_their_ratio_is_printed(tmp_path, capfd):
    text = "LEASE AGREEMENT\n\nThis Lease is made between Elm Ltd and Fir Ltd.\n\n1. Rent. It is £900 a month.\n\n"
    text += "2. Law. This Lease is governed by the laws of England and Wales.\n"
    (tmp_path / "lease.txt").write_text(text, encoding="utf-8")
    assert main([str(tmp_path)]) == 0
    rows = capfd.readouterr().out.split("drafts beside an index")[1].split("\n")
    assert [row.split()[0] for row in rows if row.strip()] == ["command", "-------", "index", "draft", "ratio"]
