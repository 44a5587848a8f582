"""Pages, errors and advice name flags and commands that exist today."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from exhibit.evaluation.catalogue import list_settings

ROOT = Path(__file__).parents[1]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = [path for path in sorted((ROOT / "exhibit").rglob("*.py")) if path.name != "catalogue.py"]
SYSTEMS = sorted((ROOT / "exhibit" / "evaluation" / "targets" / "systems").glob("*.toml"))
OLD = re.compile(r"python -m (?:evaluation|rag|review|storage|hub|evidence|viewer|draft|engine|models)\b[\w.]*")
"""Modules that were commands once; `exhibit VERB` took their place."""


def own_flags() -> set[str]:
    """Return every flag of this project's commands, from help texts, TOML tables and parsers."""
    helps = json.loads((ROOT / "exhibit" / "help.json").read_text(encoding="utf-8")).values()
    listed = [line for text in helps for line in text.splitlines() if re.match(r"\s*(?:usage:|\[?-)", line)]
    flags = {flag for line in listed for flag in FLAG.findall(line)}
    for table in (ROOT / "exhibit").rglob("*.toml"):
        flags |= set(re.findall(r'^"?(--[a-z][a-z0-9-]*)"? *=', table.read_text(encoding="utf-8"), re.MULTILINE))
    for folder in ("exhibit", "bench", "training", "docs", "."):
        for path in (ROOT / folder).glob("*.py" if folder == "." else "**/*.py"):
            for call in re.findall(r"add_argument\(([^)]*)", path.read_text(encoding="utf-8")):
                flags |= set(re.findall(r'"(--[a-z][a-z0-9-]*)"', call))
    return flags


def settings_as_flags() -> set[str]:
    """Return settings spelled as flags: `--report-cases` for what is now `--set report_cases=N`."""
    return {f"--{name.replace('_', '-')}" for name in list_settings()} | {"--force-ingestion", "--skip-ingestion"}


def texts_of(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a page, or the strings of a module: its messages, help and docstrings."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(content.splitlines(), 1))
    nodes = ast.walk(ast.parse(content))
    return [
        (node.lineno, node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def words_of(*paths: Path) -> Iterator[tuple[str, str]]:
    """Yield the position (`file:line`) and the text of each string in the files."""
    for path in paths:
        yield from ((f"{path.relative_to(ROOT).as_posix()}:{line}", text) for line, text in texts_of(path))


def test_no_setting_is_spelled_as_a_flag_that_is_gone():
    gone = settings_as_flags() - own_flags()
    assert {"--report-cases", "--target-key", "--force-ingestion"} <= gone and "--target-url" not in gone
    texts = list(words_of(*PAGES, *SYSTEMS, *SOURCES))
    stale = [(place, flag) for place, text in texts for flag in FLAG.findall(text) if flag in gone]
    stale += [(place, "--target-{…}") for place, text in texts if text.endswith("--target-")]
    assert not stale, "say --set NAME=VALUE, or the flag of today"


def test_the_command_lines_of_pages_have_flags_that_exist():
    known = own_flags()
    command = re.compile(r"\s*(?:exhibit|python evaluate_rag\.py|python -m (?:bench|converters))\b")
    lines = [(place, text) for place, text in words_of(*PAGES) if command.match(text)]
    assert len(lines) > 50
    assert not [(place, flag) for place, text in lines for flag in FLAG.findall(text) if flag not in known]


def test_a_page_gives_parity_as_a_flag_to_score_alone():
    """`--parity` is a flag of score.py; of an evaluation it is a setting."""
    texts = [(place, text) for place, text in words_of(*PAGES) if "--parity" in text]
    assert [place for place, text in texts if "score.py" not in text] == []


def test_no_command_is_called_by_its_old_module():
    texts = words_of(*PAGES, *SYSTEMS, *SOURCES)
    assert [(place, match[0]) for place, text in texts for match in OLD.finditer(text)] == []
