"""Lines of code are counted in three languages, without comments, docstrings and blank lines."""

from __future__ import annotations

import json

from bench import size


def test_comments_docstrings_and_blank_lines_are_no_code(tmp_path):
    (tmp_path / "a.py").write_text('"""What it is."""\n\n# why\nX = 1\n"""A number."""\n\ndef f():\n    return X\n')
    (tmp_path / "b.toml").write_text("# names\n[a]\nb = 1\n\n")
    (tmp_path / "c.js").write_text("// draws\nlet a = 1;\n\n/* long */\n")
    (tmp_path / "d.md").write_text("words\n")
    measured = size.measure(tmp_path.iterdir())
    assert measured == size.Size(files=3, python=3, toml=2, javascript=1) and measured.lines == 6


def test_what_a_user_may_vary_is_counted_apart(capsys):
    assert size.main(["--json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    data, product = tables["part"]["users' data"], tables["part"]["product"]
    assert data["python"] == 0 and data["toml"] > 1000 and product["javascript"] > 1000
    assert tables["room"]["all"]["javascript"] == product["javascript"]
    assert size.main([]) == 0 and "users' data" in capsys.readouterr().out
