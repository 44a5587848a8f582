"""A file appears whole or not at all."""

from __future__ import annotations

import pytest

from exhibit.storage.whole import whole, write_whole


def test_a_file_is_replaced_in_one_step_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "deep" / "a.json"
    write_whole(path, "one")
    with pytest.raises(RuntimeError), whole(path) as partial:
        partial.write_text("half", encoding="utf-8")
        assert path.read_text(encoding="utf-8") == "one"
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "one"
    write_whole(path, b"two")
    assert path.read_bytes() == b"two" and [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_half_a_surrogate_pair_is_a_question_mark(tmp_path):
    write_whole(tmp_path / "a", "x\ud800y")
    assert (tmp_path / "a").read_bytes() == b"x?y"
